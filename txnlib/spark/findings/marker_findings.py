"""Findings about markers and decisions that do not match.

Spark finds those that may not, the core judges them.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.core.findings.odd_markers import of_early_writes, of_markers, of_undecided_aborts, of_unmarked
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.spark import windows
from txnlib.spark.coordinators.transaction_markers import agrees, clock, lost_markers, markers_of
from txnlib.spark.coordinators.transactions import DECIDED_MS
from txnlib.spark.instants import clock_ms
from txnlib.spark.joins import broadcast
from txnlib.spark.local_rows import settled
from txnlib.spark.schemas import TOPIC_PARTITION

_PRODUCER: Final = ("producer_id", *TOPIC_PARTITION)
#: Maximum number of writes before their transaction to check per partition.
_SUSPECTS_OF_PARTITION: Final = 100


def _clocks(listed: DataFrame, *key: str) -> DataFrame:
    """The result of `clock_differences`, from the markers that transactions list."""
    return listed.groupBy(*key).agg(
        F.max("clock_offset_ms").alias("clock_offset_ms"), F.max("clocks_differ_ms").alias("clocks_differ_ms")
    )


def odd_markers(
    transactions: DataFrame, producer_spans: DataFrame, coordinator_states: DataFrame, coverage: DataFrame
) -> DataFrame:
    """The markers beside decisions of their producers, but for the first after each that matches it."""
    decided = transactions.where(f"{DECIDED_MS} IS NOT NULL AND outcome != 'OPEN'").selectExpr(
        "producer_id",
        "inline(markers)",
        f"{DECIDED_MS} AS at_ms",
        "struct(transactional_id, coordinator_partition) AS owner",
        f"struct(outcome AS type, decided_epoch AS epoch, unix_millis(start) AS start_ms, {DECIDED_MS} AS decided_ms, "
        "unix_millis(completed) AS completed_ms, decided_coordinator_epoch AS coordinator_epoch) AS decision",
    )
    # Only markers of producers with decisions can be odd. Sorting those of all other producers would be most of the work of a
    # report.
    markers = (
        markers_of(producer_spans)
        .join(_clocks(decided, *_PRODUCER), on=list(_PRODUCER), how="inner")
        .withColumn("at_ms", F.col("at_ms") - F.col("clock_offset_ms"))
        .drop("clock_offset_ms")
    )
    both = decided.select(*_PRODUCER, "at_ms", "owner", "decision").unionByName(markers, allowMissingColumns=True)
    forth, back = windows.before_now(windows.decisions_and_markers()), windows.before_now(windows.decisions_and_markers_downwards())
    beside = both.withColumns(
        {
            "before": F.last("decision", ignorenulls=True).over(forth),
            "after": F.last("decision", ignorenulls=True).over(back),
            "owner": F.coalesce(F.last("owner", ignorenulls=True).over(forth), F.last("owner", ignorenulls=True).over(back)),
            "marker_before_ms": F.last(F.when(F.col("marker").isNotNull(), F.col("at_ms")), ignorenulls=True).over(forth),
        }
    ).where("marker IS NOT NULL AND owner IS NOT NULL AND at_ms IS NOT NULL")
    is_first = F.coalesce(F.col("marker_before_ms") < F.col("before.decided_ms"), F.col("marker_before_ms").isNull())
    suspects = beside.withColumn("is_first", is_first).where(~_is_innocent())
    located = suspects.withColumn("coordinator_partition", F.col("owner.coordinator_partition")).join(
        broadcast(_history(coordinator_states, coverage)), on="coordinator_partition", how="left"
    )
    return located.selectExpr(
        *TOPIC_PARTITION,
        "producer_id",
        "owner.transactional_id",
        "marker.marker_offset AS offset",
        "marker.first_offset",
        "struct(marker.marker_type AS type, marker.marker_epoch AS epoch, marker.marker_coordinator_epoch AS coordinator_epoch, "
        "at_ms AS ms, marker.first_offset IS NOT NULL AS ends_data, before, after, is_first, complete_since_ms, known_until_ms, "
        "clocks_differ_ms) AS marker",
    )


def _is_innocent() -> Column:
    """Whether this is the first marker after a decision, and matches it, as nearly all markers do."""
    is_newer = F.coalesce(F.col("marker.marker_coordinator_epoch") >= F.col("before.coordinator_epoch"), F.lit(True))
    return agrees("marker", "before") & is_newer & F.col("is_first")


def _coordinators(coverage: DataFrame) -> DataFrame:
    """What is known of the log of each coordinator partition."""
    judged = coverage.where((F.col("topic") == TRANSACTION_STATE_TOPIC) & F.col("is_judged"))
    return judged.select(
        F.col("partition").alias("coordinator_partition"),
        F.unix_millis("known_until").alias("known_until_ms"),
        clock().alias("coordinator_clock"),
        F.expr("coalesce(greatest(gap_offset, damaged_offset), 0L)").alias("from_offset"),
    )


def _history(coordinator_states: DataFrame, coverage: DataFrame) -> DataFrame:
    """The instants between which no record of each coordinator partition is missing."""
    records = coordinator_states.join(broadcast(_coordinators(coverage)), on="coordinator_partition", how="inner")
    return (
        records.where("offset >= from_offset")
        .groupBy("coordinator_partition")
        .agg(F.min(clock_ms("timestamp_ms")).alias("complete_since_ms"), F.first("known_until_ms").alias("known_until_ms"))
    )


def undecided_aborts(transactions: DataFrame, producer_spans: DataFrame, coverage: DataFrame) -> DataFrame:
    """ABORT markers of no decision, on a partition of a transaction of the producer that is Ongoing."""
    stamped_by = coverage.where("is_judged").select(*TOPIC_PARTITION, clock().alias("clock"))
    pair = ("coordinator_partition", *TOPIC_PARTITION)
    clocks = _clocks(transactions.selectExpr("coordinator_partition", "inline(markers)"), *pair)
    ongoing = (
        transactions.where("outcome = 'OPEN' AND start IS NOT NULL")
        .selectExpr(
            *("producer_id", "producer_epoch", "transactional_id", "coordinator_partition"),
            "unix_millis(start) AS start_ms",
            "inline(partitions)",
        )
        .join(broadcast(_coordinators(coverage).drop("from_offset")), on="coordinator_partition", how="inner")
        .join(broadcast(clocks), on=list(pair), how="left")
        .join(broadcast(stamped_by), on=list(TOPIC_PARTITION), how="left")
    )
    key = [*_PRODUCER, "marker_offset"]
    decided = transactions.selectExpr("producer_id", "inline(markers)").where("marker_offset IS NOT NULL").select(*key)
    written = (
        producer_spans.where("marker_type = 'ABORT' AND first_offset IS NOT NULL")
        .select(*key, "marker_epoch", "marker_ms", "first_offset")
        .join(decided, on=key, how="left_anti")
    )
    return written.join(broadcast(ongoing), on=list(_PRODUCER), how="inner").where("marker_epoch = producer_epoch")


def early_writes(transactions: DataFrame, producer_spans: DataFrame) -> DataFrame:
    """Records whose first batch may be older than the transaction that ended them."""
    early = settled(
        transactions.where("start IS NOT NULL")
        .selectExpr("transactional_id", "producer_id", "unix_millis(start) AS began_ms", "inline(markers)")
        # On the partition's clock, as far as the two were compared.
        .withColumn("start_ms", F.expr("began_ms + clock_offset_ms - clocks_differ_ms"))
        .where("first_offset IS NOT NULL AND first_timestamp_ms < start_ms")
        .withColumn("number", F.row_number().over(windows.spans_of_partition()))
        .where(F.col("number") <= _SUSPECTS_OF_PARTITION)
    )
    stamps = markers_of(producer_spans).selectExpr(*TOPIC_PARTITION, "at_ms AS stamp_ms", "marker.marker_offset AS stamp_offset")
    key = [*TOPIC_PARTITION, "producer_id", "first_offset", "marker_offset", "start_ms"]
    # A log has many markers and few suspects, so the suspects are broadcast.
    oldest = (
        stamps.join(broadcast(early.select(*key)), on=list(TOPIC_PARTITION), how="inner")
        .where("stamp_offset BETWEEN first_offset AND marker_offset")
        .groupBy(*key)
        .agg(F.min("stamp_ms").alias("stamp_ms"))
    )
    return early.join(oldest, on=key, how="left")


#: What is selected here, and the function of the core that makes findings of it.
RULES: Final = (
    (odd_markers, of_markers),
    (lost_markers, of_unmarked),
    (early_writes, of_early_writes),
    (undecided_aborts, of_undecided_aborts),
)
