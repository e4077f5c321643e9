"""`transaction_outcomes`: each transaction on each of its partitions, with its marker.

The rows of a transaction come from its coordinator's list of partitions, and from the markers that `transactions` matched with the
decision. What only a log shows has a row, too, because compaction removes what coordinators wrote. The state of each marker is
looked up in `core.verdicts.transaction_outcome.MARKER_STATES`.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.core.finding_catalogue import Finding
from txnlib.core.verdicts.transaction_outcome import MARKER_STATES, DecisionState, MarkerEvidence, MarkerState
from txnlib.spark.coordinators.transaction_markers import lost_markers
from txnlib.spark.coverage import begins_at_snapshot
from txnlib.spark.instants import clock_ms, instant
from txnlib.spark.joins import broadcast
from txnlib.spark.local_rows import settled
from txnlib.spark.producers.producer_spans import open_spans
from txnlib.spark.schemas import PRODUCER, TOPIC_PARTITION, TRANSACTION_OUTCOMES, conform

_KEY: Final = ("transactional_id", "coordinator_partition", "transaction_number")
_PLACE: Final = (*_KEY, *TOPIC_PARTITION)
#: What is known of a transaction: columns of every row.
_TRANSACTION: Final = (
    *_KEY,
    "producer_id",
    "producer_epoch",
    "is_two_phase_commit",
    "decided_outcome",
    "decision_state",
    "start_ms",
    "decided_ms",
    "completed_ms",
    "epoch",
)
_OF_SPAN: Final = ("first_offset", "records", "bytes", "marker_type", "marker_epoch", "marker_coordinator_epoch", "marker_ms")


def transaction_outcomes(
    transactions: DataFrame,
    producer_spans: DataFrame,
    producer_id_owners: DataFrame,
    findings: DataFrame,
    coverage: DataFrame,
    *,
    as_of_ms: int,
) -> DataFrame:
    """One row per transaction and partition that it touched. Columns: TRANSACTION_OUTCOMES."""
    of_coordinators = settled(_of_coordinators(transactions))
    ended = producer_spans.where(F.col("marker_offset").isNotNull()).select(*PRODUCER, "marker_offset", *_OF_SPAN)
    listed = settled(_with_markers_by_time(of_coordinators, _listed(transactions, of_coordinators), ended))
    told = settled(_with_contradictions(listed, ended, findings))
    proven = _with_absence(told, lost_markers(transactions, producer_spans, coverage), coverage)
    opened = open_spans(producer_spans).select(*PRODUCER, "producer_epoch", "marker_offset", "first_timestamp_ms", *_OF_SPAN)
    found = settled(_with_spans(proven, ended, opened))
    unlisted = _unlisted(found, producer_spans, opened, producer_id_owners)
    rows = found.unionByName(unlisted, allowMissingColumns=True).withColumn("marker", _marker())
    shown = {
        "as_of": instant(F.lit(as_of_ms)),
        "decided": instant("decided_ms"),
        "marked": instant("marker_ms"),
        "outcome": _outcome(),
        "says": _says(),
    }
    return conform(rows.withColumns(shown), TRANSACTION_OUTCOMES)


def _of_coordinators(transactions: DataFrame) -> DataFrame:
    """What the coordinators' records say of each transaction. Columns: _TRANSACTION."""
    is_open = F.col("outcome") == "OPEN"
    state = (
        F.when(is_open & F.col("is_two_phase_commit"), DecisionState.TWO_PHASE.value)
        .when(is_open, DecisionState.OPEN.value)
        .when(F.col("state").startswith("Complete"), DecisionState.COMPLETE.value)
        .otherwise(DecisionState.DECIDED.value)
    )
    said_ms = F.unix_millis("start") + F.col("time_to_decide_ms")
    return transactions.select(
        *_KEY,
        "producer_id",
        "producer_epoch",
        "is_two_phase_commit",
        F.col("outcome").alias("decided_outcome"),
        state.alias("decision_state"),
        F.unix_millis("start").alias("start_ms"),
        F.coalesce(said_ms, F.unix_millis("prepared")).alias("decided_ms"),
        F.unix_millis("completed").alias("completed_ms"),
        F.coalesce("decided_epoch", "producer_epoch").alias("epoch"),
    )


def _listed(transactions: DataFrame, of_coordinators: DataFrame) -> DataFrame:
    """A row for each partition that a coordinator lists, with the marker that `transactions` matched."""
    nowhere = F.transform(
        "partitions",
        lambda place: F.struct(
            place["topic"].alias("topic"),
            place["partition"].alias("partition"),
            F.lit(None).cast("long").alias("marker_offset"),
            F.lit(False).alias("is_followed"),
        ),
    )
    matched = F.transform(
        "markers",
        lambda marker: F.struct(*[marker[name].alias(name) for name in (*TOPIC_PARTITION, "marker_offset", "is_followed")]),
    )
    is_matched = F.col("markers").isNotNull()
    places = transactions.select(*_KEY, is_matched.alias("is_matched"), F.inline(F.coalesce(matched, nowhere)))
    return of_coordinators.join(places, on=list(_KEY), how="inner").withColumn("known_from", F.lit("COORDINATOR"))


def _with_markers_by_time(of_coordinators: DataFrame, listed: DataFrame, ended: DataFrame) -> DataFrame:
    """`listed`, where the markers of a transaction whose Prepare record is lost are those between its start and its completion.

    Its partitions are lost, too, if only its Complete record is left. Then its markers tell them.
    """
    is_told = listed.where("is_matched").select(*_KEY).distinct()
    untold = of_coordinators.where(F.col("decision_state") == DecisionState.COMPLETE.value).join(
        is_told, on=list(_KEY), how="left_anti"
    )
    at_ms = clock_ms("marker_ms")
    is_of_it = (
        at_ms.between(F.col("start_ms"), F.col("completed_ms"))
        & F.coalesce(F.col("marker_type") == F.col("decided_outcome"), F.lit(True))
        & (F.col("marker_epoch") == F.col("epoch"))
    )
    markers = (
        ended.join(untold, on="producer_id", how="inner")  # after compaction as many as there are ids, so not broadcast
        .where(is_of_it)
        .groupBy(*_PLACE)
        .agg(F.max("marker_offset").alias("marker_by_time"))
    )
    joined = listed.join(markers, on=list(_PLACE), how="left")
    joined = joined.withColumn("marker_offset", F.coalesce("marker_offset", "marker_by_time")).drop("marker_by_time")
    others = (
        of_coordinators.join(markers, on=list(_KEY), how="inner")
        .join(listed.select(*_PLACE), on=list(_PLACE), how="left_anti")
        .withColumnsRenamed({"marker_by_time": "marker_offset"})
        .withColumns({"known_from": F.lit("MARKER_TIME"), "is_followed": F.lit(False), "is_matched": F.lit(False)})
    )
    return joined.unionByName(others)


def _with_contradictions(listed: DataFrame, ended: DataFrame, findings: DataFrame) -> DataFrame:
    """`listed` with the marker that ended records of the transaction against its decision, or before it."""
    names = {
        DecisionState.OPEN.value: Finding.ABORTED_WHILE_ONGOING.name,
        DecisionState.TWO_PHASE.value: Finding.ABORTED_WHILE_ONGOING.name,
    }
    expected = F.coalesce(
        F.create_map(*[F.lit(x) for pair in names.items() for x in pair])[F.col("decision_state")],
        F.lit(Finding.SPLIT_OUTCOME.name),
    )
    odd = findings.where(F.col("name").isin(Finding.SPLIT_OUTCOME.name, Finding.ABORTED_WHILE_ONGOING.name)).select(
        "name", *PRODUCER, F.col("offset").alias("marker_offset")
    )
    markers = settled(
        ended.join(broadcast(odd.distinct()), on=[*PRODUCER, "marker_offset"], how="inner").select(
            "name", *PRODUCER, F.col("marker_offset").alias("other_offset"), "marker_type", clock_ms("marker_ms").alias("at_ms")
        )
    )
    differs = F.coalesce(F.col("marker_type") != F.col("decided_outcome"), F.lit(True))
    apart_ms = F.abs(F.col("at_ms") - F.coalesce("decided_ms", "start_ms"))
    nearest = (
        listed.select(*_PLACE, "producer_id", "decision_state", "decided_outcome", "decided_ms", "start_ms")
        .join(broadcast(markers), on=list(PRODUCER), how="inner")
        .where((F.col("name") == expected) & differs)
        .withColumn("apart_ms", apart_ms)
        .groupBy(*PRODUCER, "other_offset")
        .agg(F.min_by(F.struct(*_KEY), "apart_ms").alias("of"))
        .select("of.*", *TOPIC_PARTITION, "other_offset")
        .groupBy(*_PLACE)
        .agg(F.max("other_offset").alias("other_offset"))
    )
    return listed.join(broadcast(nearest), on=list(_PLACE), how="left")


def _with_absence(told: DataFrame, lost: DataFrame, coverage: DataFrame) -> DataFrame:
    """The rows with `evidence`, what the copy shows of the marker, and `hidden_by`, why it shows nothing."""
    of_copy = coverage.where("is_judged").select(
        *TOPIC_PARTITION,
        F.unix_millis("known_until").alias("known_ms"),
        (F.col("gap_offset").isNull() & F.col("damaged_offset").isNull() & F.col("is_decoded")).alias("is_whole"),
        (begins_at_snapshot() | (F.col("log_start_offset") > 0)).alias("begins_late"),
        F.greatest("read_from_offset", "log_start_offset").alias("from_offset"),
        F.lit(True).alias("is_captured"),
    )
    gone = coverage.where("is_gone").select(*TOPIC_PARTITION, F.lit(True).alias("is_gone")).distinct()
    joined = (
        told.join(broadcast(of_copy), on=list(TOPIC_PARTITION), how="left")
        .join(broadcast(gone), on=list(TOPIC_PARTITION), how="left")
        .join(broadcast(lost.select(*_PLACE, F.lit(True).alias("is_lost"))), on=list(_PLACE), how="left")
    )
    is_decided = F.col("decision_state") == DecisionState.DECIDED.value
    is_known = F.coalesce(F.col("is_whole") & (F.col("known_ms") >= F.col("decided_ms")) & ~F.col("is_followed"), F.lit(False))
    evidence = (
        F.when(F.col("other_offset").isNotNull(), MarkerEvidence.DIFFERS.value)
        .when(F.col("marker_offset").isNotNull(), MarkerEvidence.AGREES.value)
        .when(F.col("is_lost") | (is_decided & is_known), MarkerEvidence.ABSENT.value)
        .otherwise(MarkerEvidence.HIDDEN.value)
    )
    ended_ms = F.coalesce("completed_ms", "decided_ms")
    hidden_by = (
        F.when(F.col("is_gone"), F.lit("the topic no longer exists"))
        .when(F.col("is_captured").isNull(), F.lit("no copy of the partition was captured"))
        .when(
            F.col("is_followed"), F.lit("later markers of the producer are here, and which one is of this transaction is not known")
        )
        .when(~F.coalesce("is_whole", F.lit(False)), F.lit("the copy has holes, damage or markers that were not printed"))
        .when(
            ~F.coalesce(F.col("known_ms") > ended_ms, F.lit(False)),
            F.concat(F.lit("the copy is known only until "), F.coalesce(_time("known_ms"), F.lit("an unknown instant"))),
        )
        .when(F.col("begins_late"), F.concat(F.lit("the copy begins at offset "), F.col("from_offset")))
        .otherwise(F.lit("nothing proves that the marker should still be here"))
    )
    return joined.withColumns(
        {
            "evidence": evidence,
            "hidden_by": hidden_by,
            "marker_offset": F.coalesce("other_offset", "marker_offset"),
        }
    ).drop("other_offset", "is_whole", "begins_late", "from_offset", "is_captured", "is_gone", "is_lost")


def _with_spans(rows: DataFrame, ended: DataFrame, opened: DataFrame) -> DataFrame:
    """The rows with what the transaction wrote on the partition: of the span that its marker ended, else of the open one."""
    of_marker = rows.where(F.col("marker_offset").isNotNull()).join(ended, on=[*PRODUCER, "marker_offset"], how="left")
    # If the transaction is complete, the open records may be of a later one.
    is_of_it = (F.col("decision_state") != DecisionState.COMPLETE.value) | (
        (F.col("evidence") == MarkerEvidence.ABSENT.value) & (clock_ms("first_timestamp_ms") <= F.col("completed_ms"))
    )
    written = opened.select(*PRODUCER, "first_timestamp_ms", *_OF_SPAN)
    unmarked = rows.where(F.col("marker_offset").isNull()).join(written, on=list(PRODUCER), how="left")
    own = {name: F.when(is_of_it, F.col(name)) for name in _OF_SPAN}
    return of_marker.unionByName(unmarked.withColumns(own).drop("first_timestamp_ms"))


def _unlisted(found: DataFrame, producer_spans: DataFrame, opened: DataFrame, producer_id_owners: DataFrame) -> DataFrame:
    """Transactions on a partition that no record of a coordinator explains, with the only owner of their producer id."""
    columns = (*PRODUCER, "producer_epoch", "marker_offset", *_OF_SPAN)
    has_data = producer_spans.where(F.col("first_offset").isNotNull() & F.col("marker_offset").isNotNull()).select(*columns)
    spans = has_data.unionByName(opened.select(*columns))
    told = found.where(F.col("first_offset").isNotNull()).select(*PRODUCER, "first_offset").distinct()
    owners = (
        producer_id_owners.groupBy("producer_id")
        .agg(F.collect_set(F.struct("transactional_id", "coordinator_partition")).alias("owners"))
        .where(F.size("owners") == 1)
        .select("producer_id", F.inline("owners"))
    )
    evidence = F.when(F.col("marker_offset").isNotNull(), MarkerEvidence.AGREES.value).otherwise(MarkerEvidence.ABSENT.value)
    return (
        spans.join(told, on=[*PRODUCER, "first_offset"], how="left_anti")
        .join(owners, on="producer_id", how="left")
        .withColumns(
            {
                "known_from": F.lit("PARTITION"),
                "decision_state": F.lit(DecisionState.NOT_KNOWN.value),
                "evidence": evidence,
            }
        )
    )


def _marker() -> Column:
    """The state of the marker, from the core's table."""
    pairs = [F.lit(x) for key, state in MARKER_STATES.items() for x in (" ".join(key), state.value)]
    return F.create_map(*pairs)[F.concat_ws(" ", "decision_state", "evidence")]


def _outcome() -> Column:
    """How the transaction ended on the partition."""
    is_marked = F.col("marker_offset").isNotNull()
    is_unknown = F.col("marker") == MarkerState.UNKNOWN.value
    found = F.when(F.col("marker") == MarkerState.FOUND.value, F.col("decided_outcome"))
    return F.when(is_marked, F.coalesce("marker_type", found)).when(~is_unknown, F.lit("OPEN"))


def _says() -> Column:
    """The state of the marker as a sentence."""
    decision, at = F.col("decided_outcome"), F.col("marker_offset").cast("string")
    marker = F.when(F.col("marker_type") == "ABORT", "an ABORT").otherwise("a COMMIT")
    sentences = {
        MarkerState.CONTRADICTING: F.concat(
            marker, F.lit(" marker at offset "), at, F.lit(" contradicts the decision, "), decision
        ),
        MarkerState.EARLY: F.concat(
            marker, F.lit(" marker at offset "), at, F.lit(" ended records of a transaction that is not decided")
        ),
        MarkerState.MISSING: F.concat(
            F.lit("the coordinator completed the "), decision, F.lit(", but its marker never reached this log")
        ),
        MarkerState.PENDING: F.concat(F.lit("the "), decision, F.lit(" is decided, but its marker is not here yet")),
        MarkerState.UNKNOWN: F.concat(
            F.lit("not known whether the marker of the "), decision, F.lit(" is here: "), F.col("hidden_by")
        ),
    }
    chosen = F.lit(None).cast("string")
    for state, sentence in sentences.items():
        chosen = F.when(F.col("marker") == state.value, sentence).otherwise(chosen)
    return chosen


def _time(ms: str) -> Column:
    return F.date_format(instant(ms), "yyyy-MM-dd'T'HH:mm:ss'Z'")
