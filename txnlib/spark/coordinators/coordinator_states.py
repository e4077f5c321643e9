"""`coordinator_states`: each coordinator record with the state before it, and illegal steps.

A record contains the whole state, so one `lag` is sufficient. Compaction may have removed records between two survivors; a step is
judged only if every offset between them is present.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, WindowSpec
from pyspark.sql import functions as F

from txnlib.core.instants import NO_INSTANT_MS
from txnlib.core.kafka.constants import EXHAUSTED_EPOCH, TRANSACTION_STATE_TOPIC
from txnlib.core.kafka.transaction_state import ACTIVE_STATES, NEVER_WRITTEN_STATES, PREPARED_STATES, TransactionState
from txnlib.spark import windows
from txnlib.spark.core_udfs import legality, transition_findings
from txnlib.spark.coverage import survives
from txnlib.spark.instants import clock_ms, is_shown
from txnlib.spark.joins import broadcast
from txnlib.spark.local_rows import no_rows
from txnlib.spark.schemas import COORDINATOR_STATES, conform

#: The judged copies of coordinator partitions that are current and show all records: their partition, source and end.
CURRENT_COPIES: Final = "partition int, current string, copy_end long"


def coordinator_log(transaction_log: DataFrame, coverage: DataFrame, current_copies: DataFrame | None = None) -> DataFrame:
    """The records of `transaction_log`, each offset of a partition once, with the column is_superseded.

    is_superseded: the current copy of the partition extends beyond the record but does not have it. Compaction keeps the newest
    record of an id until the id expires, so such a record is not the newest of its id, or the id has expired. Rows without an
    offset are unused records of console text (`console_copies`). `current_copies` (CURRENT_COPIES): None if there are none.
    Kafka: `LogCleaner`.
    """
    copies = coverage.where(F.col("topic") == TRANSACTION_STATE_TOPIC)
    cut = copies.select("partition", "source", "truncated", "is_deleted", (~F.col("is_judged")).alias("is_other"))
    current = no_rows(coverage.sparkSession, CURRENT_COPIES) if current_copies is None else current_copies
    located = transaction_log.join(broadcast(cut), on=["partition", "source"], how="left").join(
        broadcast(current), on="partition", how="left"
    )
    existing = located.where(~F.coalesce("is_deleted", F.lit(False)))
    history = existing.withColumns({"leader_epoch": F.col("coordinator_epoch"), "at_offset": F.col("offset")}).where(survives())
    ranked = (
        history.where(F.col("offset").isNotNull())
        .withColumn("lacks_start", F.col("start_ms").isNull())
        .withColumns(
            {
                "rank": F.row_number().over(windows.copies_of_record()),
                "is_held": F.max(F.col("source") == F.col("current")).over(windows.whole(windows.copies_of_record())),
            }
        )
    )
    is_superseded = F.coalesce(~F.col("is_held") & (F.col("offset") < F.col("copy_end")), F.lit(False))
    return ranked.where("rank = 1").select(*transaction_log.columns, is_superseded.alias("is_superseded"))


# ---- `coordinator_states`


_REMEMBERED: Final = (
    "is_tombstone",
    "state",
    "producer_id",
    "next_producer_id",
    "producer_epoch",
    "next_producer_epoch",
    "transaction_timeout_ms",
    "partitions",
    "last_update_ms",
    "start_ms",
    "value_version",
    "coordinator_epoch",
    "dense",
    "offset",
)
_EMPTY: Final = TransactionState.EMPTY.kafka_name
_ONGOING: Final = TransactionState.ONGOING.kafka_name
_PREPARED: Final = [state.kafka_name for state in sorted(PREPARED_STATES)]
_ACTIVE: Final = [state.kafka_name for state in sorted(ACTIVE_STATES)]


def coordinator_states(transaction_log: DataFrame, coverage: DataFrame, current_copies: DataFrame | None = None) -> DataFrame:
    """One row per coordinator record. Columns: COORDINATOR_STATES. Kafka: `TransactionMetadata.prepareTransitionTo`.

    `current_copies`: see `coordinator_log`.
    """
    window = windows.records_of_id()
    # Offset minus rank: equal for two records exactly if nothing is missing between them.
    dense = F.col("offset") - F.row_number().over(windows.records_of_coordinator())
    log = coordinator_log(transaction_log, coverage, current_copies).withColumns(
        {"dense": dense, "expected_offset": _expected_offset()}
    )
    log = log.withColumn("newest_ms", F.max(clock_ms("timestamp_ms")).over(windows.whole(windows.records_of_coordinator())))
    hole = {"hole_ms": _written_by(), "hole_offset": F.col("offset")}
    log = log.withColumns({name: F.max(F.when(_follows_hole(), value)).over(_so_far()) for name, value in hole.items()})
    log = log.withColumnRenamed("partition", "coordinator_partition")
    remembered = log.withColumn("before", F.lag(F.struct(*_REMEMBERED)).over(window))
    is_consecutive = F.coalesce(F.col("before.dense") == F.col("dense"), F.lit(False))
    state_before = F.col("before.state")
    stepped = remembered.withColumns(
        {
            "state_before": state_before,
            "is_consecutive": is_consecutive,
            "legality": F.when(is_consecutive, legality(state_before, F.col("state"))).otherwise("UNKNOWN"),
            "transition": F.concat_ws(" → ", *[F.coalesce(s, F.lit("none")) for s in (state_before, F.col("state"))]),
            "begins": _begins().cast("int"),
            "belongs": F.coalesce(F.col("state") != TransactionState.EMPTY.kafka_name, F.lit(False)),
        }
    )
    number = F.when(F.col("belongs"), F.sum("begins").over(windows.until_now(window)))
    numbered = stepped.withColumn("transaction_number", number)
    judged = numbered.withColumns(
        {
            "findings": F.when(_is_clean(), F.array().cast("array<string>")).otherwise(
                transition_findings()("before", F.struct(*_REMEMBERED), "is_consecutive")
            ),
            "start_ms": F.coalesce("start_ms", _derived_start()),
        }
    )
    return conform(judged, COORDINATOR_STATES)


def _so_far() -> WindowSpec:
    return windows.until_now(windows.records_of_coordinator())


def _expected_offset() -> Column:
    """The offset after the previous record in the log; 0 for the first record, and after records from console text."""
    before = F.lag("offset").over(windows.records_of_coordinator())
    return F.when(before >= 0, before + 1).otherwise(F.lit(0).cast("long"))


def _follows_hole() -> Column:
    """Whether records are missing directly before this one. These are older than this record."""
    return (F.col("offset") >= 0) & (F.col("offset") > F.col("expected_offset"))


def _written_by() -> Column:
    """The latest time at which a record was written, in ms.

    For a record with a time that no clock shows, the newest time in the log: the record is not younger.
    """
    return F.when(~is_shown("timestamp_ms"), F.coalesce("newest_ms", F.lit(NO_INSTANT_MS))).otherwise(F.col("timestamp_ms"))


def _begins() -> Column:
    """Whether a record is the first of a transaction, as far as the surviving records show."""
    before, state = F.col("before"), F.col("state")
    continues = before["state"].isin(_ACTIVE) & F.coalesce(before["start_ms"] == F.col("start_ms"), F.lit(True))
    begins_ongoing = (state == _ONGOING) & ~F.coalesce(continues & _is_same_instance(), F.lit(False))
    begins_prepared = state.isin(_PREPARED) & ~F.coalesce(continues, F.lit(False))
    is_complete = state.isin("CompleteCommit", "CompleteAbort")
    begins_complete = is_complete & ~F.coalesce(before["state"].isin(*_PREPARED, state), F.lit(False))
    return F.coalesce(begins_ongoing | begins_prepared | begins_complete, F.lit(False))


def _is_same_instance() -> Column:
    """Whether two records are of one transaction.

    If records may be missing between them, a new epoch, or a partition list that is no superset, means two transactions.
    """
    before = F.col("before")
    grows = F.size(F.array_except(F.coalesce(before["partitions"], F.array()), F.coalesce("partitions", F.array()))) == 0
    return F.coalesce(before["dense"] == F.col("dense"), F.lit(False)) | (
        (before["producer_epoch"] == F.col("producer_epoch")) & grows
    )


def _derived_start() -> Column:
    """Start of a transaction if the text does not print it: the update time of its first Ongoing record."""
    window = windows.records_of_id()
    first_ongoing = F.when((F.col("begins") == 1) & (F.col("state") == _ONGOING), F.col("last_update_ms"))
    begun = F.last(F.when(F.col("begins") == 1, F.struct(first_ongoing.alias("ms"))), ignorenulls=True)
    is_unprinted = F.col("value_version").isNull() & F.col("belongs")
    return F.when(is_unprinted, begun.over(windows.until_now(window))["ms"])


def _is_clean() -> Column:
    """Whether a record cannot have a finding; the core checks all others."""
    before, state = F.col("before"), F.col("state")
    never_written = [s.kafka_name for s in NEVER_WRITTEN_STATES]
    without_start = F.col("start_ms").isNull()
    alone = (
        F.coalesce(~state.isin(never_written), F.lit(True))
        & F.coalesce((state != _EMPTY) | (F.col("partitions").isNull() & without_start), F.lit(True))
        & F.coalesce((state == _EMPTY) | ~without_start | F.col("value_version").isNull(), F.lit(True))
        & F.coalesce(F.col("producer_epoch") <= EXHAUSTED_EPOCH, F.lit(True))
    )
    order = F.coalesce(F.col("coordinator_epoch") >= before["coordinator_epoch"], F.lit(False)) & F.coalesce(
        (F.col("producer_epoch") >= before["producer_epoch"]), F.col("is_tombstone") | before["is_tombstone"]
    )
    step = F.col("legality").isin("LEGAL", "TRANSACTIONS_V2") & F.coalesce(_is_plain_step(), F.lit(False))
    return alone & (before.isNull() | (order & (~F.col("is_consecutive") | step)))


def _is_plain_step() -> Column:
    """Whether a legal step keeps the required fields: the common rows of the core's STEP_CHECKS, without their exceptions."""
    before, state = F.col("before"), F.col("state")
    is_active = F.coalesce(before["state"].isin(_ACTIVE), F.lit(False))
    same_id = F.col("producer_id") == before["producer_id"]
    rise = F.col("producer_epoch") - before["producer_epoch"]
    same = same_id & (F.col("transaction_timeout_ms") == before["transaction_timeout_ms"])
    same_start = ~is_active | before["start_ms"].eqNullSafe(F.col("start_ms"))
    listed = F.coalesce("partitions", F.array())
    listed_before = F.when(is_active, F.coalesce(before["partitions"], F.array())).otherwise(F.array())
    kept = F.size(F.array_except(listed_before, listed)) == 0
    equal = kept & (F.size(listed) == F.size(listed_before))
    return (
        F.when(F.col("is_tombstone") | before["is_tombstone"], F.lit(True))
        .when(state == _EMPTY, F.when(same_id, rise <= 1).otherwise(F.col("producer_epoch") == 0))
        .when(state == _ONGOING, same & (rise == 0) & same_start & kept)
        .when(state.isin(_PREPARED), same & F.when(is_active, rise <= 1).otherwise(rise == 1) & same_start & equal)
        .otherwise(same & (rise == 0) & same_start & F.coalesce(before["next_producer_epoch"] < 0, F.lit(True)))
    )
