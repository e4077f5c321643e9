"""`ended_transactions`: open transactions of an earlier audit that are no longer open."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.core.finding_catalogue import Finding
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS, TRANSACTION_STATE_TOPIC
from txnlib.core.verdicts.evidence import Owner
from txnlib.core.verdicts.reason import Reason
from txnlib.spark.coverage.sound_copies import shows_absence
from txnlib.spark.instants import clock_ms, instant
from txnlib.spark.joins import broadcast
from txnlib.spark.schemas import ENDED_TRANSACTIONS, OPEN_TRANSACTION, PRODUCER, TOPIC_PARTITION, conform

#: Columns from the run that last saw the transaction -> their names here.
_THEN: Final = {"transactional_id": "transactional_id", "verdict": "verdict", "reason": "reason", "run_id": "run_id_then"}
_NOT_CAPTURED: Final = "NOT_CAPTURED"
#: Reasons that mean that no coordinator decides for the producer id any more, so a marker of it was written by hand.
_UNOWNED: Final = [
    reason.value
    for reason in (Reason.PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR, Reason.TRANSACTIONAL_ID_EXPIRED, Reason.PRODUCER_ID_ROTATED)
]


def needs_somebody(transaction_max_timeout_ms: int) -> Column:
    """`core.verdicts.abort_plan.needs_somebody` over columns."""
    open_ms = F.unix_millis("as_of") - F.unix_millis(F.coalesce("transaction_start", "blocks_since"))
    is_forgotten = (F.col("reason") == Reason.TWO_PHASE_COMMIT.value) & (open_ms > transaction_max_timeout_ms)
    return (F.col("verdict") != "OPEN") | F.coalesce(is_forgotten, F.lit(False))


def warned_of(open_transactions: DataFrame, ended_transactions: DataFrame, *, transaction_max_timeout_ms: int) -> DataFrame:
    """The open transactions of a run that need an operator, and those of earlier runs that it could not check.

    Columns: the identity, transactional_id, verdict, reason, and run_id and as_of of the run that judged the transaction.
    """
    columns = [*OPEN_TRANSACTION, *_THEN, "as_of"]
    unseen = ended_transactions.where(F.col("how") == _NOT_CAPTURED).drop("run_id", "as_of")
    carried = unseen.withColumnsRenamed({"run_id_then": "run_id", "last_seen": "as_of"})
    needy = open_transactions.where(needs_somebody(transaction_max_timeout_ms))
    return needy.select(*columns).unionByName(carried.select(*columns))


def ended_transactions(
    earlier: DataFrame,
    open_transactions: DataFrame,
    producer_spans: DataFrame,
    transactions: DataFrame,
    producer_id_owners: DataFrame,
    findings: DataFrame,
    coverage: DataFrame,
    *,
    as_of_ms: int,
) -> DataFrame:
    """One row per transaction of `earlier` that is not open now. Columns: ENDED_TRANSACTIONS.

    `earlier` is what the earlier run warned of (`warned_of`). A transaction was ended by the first marker of its producer after its
    start. If there is none and the producer has an open transaction, it is still the same one, seen from another log start.
    """
    warned = earlier.select(
        *OPEN_TRANSACTION, *[F.col(name).alias(alias) for name, alias in _THEN.items()], F.col("as_of").alias("last_seen")
    )
    gone = warned.join(open_transactions.select(*OPEN_TRANSACTION), on=list(OPEN_TRANSACTION), how="left_anti")
    still_open = open_transactions.select(*PRODUCER, F.lit(True).alias("is_open")).distinct()
    spans = producer_spans.where(F.col("marker_offset").isNotNull()).select(*PRODUCER, "marker_offset", "marker_type", "marker_ms")
    ends = (
        spans.join(broadcast(gone.select(*OPEN_TRANSACTION)), on=list(PRODUCER), how="inner")
        .where(F.col("marker_offset") > F.col("start_offset"))
        .groupBy(*OPEN_TRANSACTION)
        .agg(F.min(F.struct("marker_offset", "marker_type", "marker_ms")).alias("marker"))
        .select(*OPEN_TRANSACTION, "marker.*")
    )
    decided = transactions.select("producer_id", F.inline("markers")).where(F.col("marker_offset").isNotNull())
    decided = decided.select(*PRODUCER, "marker_offset", F.lit(True).alias("is_decided")).distinct()
    odd = findings.select(*PRODUCER, F.col("offset").alias("marker_offset"), F.col("name").alias("finding")).where(
        F.col("finding").isin(Finding.MARKER_WITHOUT_DECISION.name, Finding.SPLIT_OUTCOME.name)
    )
    of_copy = ("log_start_offset", "end_offset", "gap_offset", "damaged_offset", "is_gone")
    copies = coverage.where(F.col("is_judged") | F.col("is_gone")).select(*TOPIC_PARTITION, *of_copy)
    joined = (
        gone.join(ends, on=list(OPEN_TRANSACTION), how="left")
        .join(still_open, on=list(PRODUCER), how="left")
        .where(F.col("marker_offset").isNotNull() | F.col("is_open").isNull())
        .join(decided, on=[*PRODUCER, "marker_offset"], how="left")
        .join(odd, on=[*PRODUCER, "marker_offset"], how="left")
        .join(_last_records(producer_id_owners, coverage), on="producer_id", how="left")
        .join(broadcast(copies), on=list(TOPIC_PARTITION), how="left")
        .withColumn("how", _how())
    )
    return conform(
        joined.withColumns(
            {
                "as_of": instant(F.lit(as_of_ms)),
                "ended_at": instant("marker_ms"),
                "outcome": F.col("marker_type"),
                "says": _says(),
            }
        ),
        ENDED_TRANSACTIONS,
    )


def _last_records(producer_id_owners: DataFrame, coverage: DataFrame) -> DataFrame:
    """For each current producer id: its last coordinator record, and the instant up to which no later record was overlooked."""
    whole = coverage.where((F.col("topic") == TRANSACTION_STATE_TOPIC) & F.col("is_judged") & shows_absence())
    known = whole.select(F.col("partition").alias("coordinator_partition"), F.unix_millis("known_until").alias("known_ms"))
    return (
        producer_id_owners.where(F.col("owner") == Owner.CURRENT.value)
        .join(broadcast(known), on="coordinator_partition", how="inner")
        .groupBy("producer_id")
        .agg(F.max(F.unix_millis("last_seen")).alias("last_record_ms"), F.min("known_ms").alias("known_ms"))
    )


def _is_by_hand() -> Column:
    """Whether the marker was written by hand, without a coordinator's decision.

    A coordinator would have written its Complete record after the marker, and compaction keeps the last record of an id.
    """
    marker_ms = clock_ms("marker_ms")
    is_quiet = (F.col("last_record_ms") < marker_ms - CLOCKS_DIFFER_MS) & (F.col("known_ms") > marker_ms + CLOCKS_DIFFER_MS)
    return F.col("finding").isNotNull() | (F.col("marker_offset").isNotNull() & (F.col("reason").isin(_UNOWNED) | is_quiet))


def _how() -> Column:
    start = F.col("start_offset")
    # A lagging, broken or older copy may lack what is in the log.
    is_unread = F.col("end_offset").isNull() | (F.col("end_offset") <= start) | (F.greatest("gap_offset", "damaged_offset") > start)
    return (
        F.when(F.col("finding") == Finding.SPLIT_OUTCOME.name, "SPLIT")
        .when(F.col("is_decided"), "DECIDED")
        .when(_is_by_hand(), "BY_HAND")
        .when(F.col("marker_offset").isNotNull(), "MARKED")
        .when(F.col("is_gone"), "TOPIC_GONE")
        .when(start < F.col("log_start_offset"), "LOG_START_MOVED")
        .when(is_unread, _NOT_CAPTURED)
        .otherwise("GONE")
    )


def _says() -> Column:
    """How it ended, as a sentence."""
    marker = F.concat(
        F.coalesce(F.concat("marker_type", F.lit(" ")), F.lit("")), F.lit("marker at offset "), F.col("marker_offset")
    )
    texts = {
        "DECIDED": F.concat(F.lit("ended by its coordinator's "), marker),
        "BY_HAND": F.concat(F.lit("ended by hand: "), marker, F.lit(", which no coordinator decided")),
        "SPLIT": F.concat(F.lit("ended by hand, against what its coordinator decided: "), marker),
        "MARKED": F.concat(F.lit("ended by the "), marker, F.lit("; who decided that is in no coordinator's log")),
        _NOT_CAPTURED: F.lit("its place in the partition was not captured this time"),
        "LOG_START_MOVED": F.lit("the log now begins behind it, and no snapshot remembers it"),
        "TOPIC_GONE": F.lit("its topic no longer exists"),
        "GONE": F.lit("no batch of it is in the log any more: truncated, or the topic was created again"),
    }
    sentence = F.lit(None).cast("string")
    for name, text in texts.items():
        sentence = F.when(F.col("how") == name, text).otherwise(sentence)
    return sentence
