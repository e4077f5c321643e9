"""Clock difference between a partition's leader and a coordinator.

The partition's leader stamps a marker moments after its coordinator decided. So a producer's newest decision and newest marker, if
they belong together, give the offset between the two clocks.
Source: docs/rules/copies.md#clocks-of-two-brokers.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS, TRANSACTION_STATE_TOPIC, UNKNOWN_CLOCKS_DIFFER_MS
from txnlib.spark.instants import clock_ms
from txnlib.spark.joins import broadcast
from txnlib.spark.schemas import PRODUCER, TOPIC_PARTITION

#: Minimum number of pairs of a decision and its marker for an estimate.
SAMPLES: Final = 3
_PAIR: Final = ("coordinator_partition", *TOPIC_PARTITION)


def clock_differences(decided: DataFrame, markers: DataFrame, coverage: DataFrame) -> DataFrame:
    """One row per coordinator partition and partition: clock_offset_ms and clocks_differ_ms.

    clock_offset_ms is the leader's clock minus the coordinator's, clocks_differ_ms how far they may still differ. `decided`:
    producer_id, topic, partition, coordinator_partition, at_ms, type, epoch, is_complete. `markers`: as from
    `transaction_markers.markers_of`. One broker has one clock. Clocks of different brokers are compared if enough samples agree.
    """
    newest = (
        decided.where("is_complete")
        .groupBy(*PRODUCER)
        .agg(F.max_by(F.struct("coordinator_partition", "at_ms", "type", "epoch"), "at_ms").alias("decision"))
    )
    written = markers.groupBy(*PRODUCER).agg(F.max_by("marker", "marker.marker_offset").alias("marker"))
    agrees = (F.col("marker.marker_epoch") == F.col("decision.epoch")) & F.coalesce(
        F.col("marker.marker_type") == F.col("decision.type"), F.lit(True)
    )
    samples = (
        newest.join(written, on=list(PRODUCER), how="inner")
        .where(agrees)
        .select(
            *TOPIC_PARTITION,
            "decision.coordinator_partition",
            (clock_ms("marker.marker_ms") - F.col("decision.at_ms")).alias("difference_ms"),
        )
        .where(F.col("difference_ms").isNotNull())
    )
    clocks = coverage.where("is_judged").select(*TOPIC_PARTITION, clock().alias("clock"))
    of_coordinator = (
        clocks.where(F.col("topic") == TRANSACTION_STATE_TOPIC)
        .withColumnsRenamed({"partition": "coordinator_partition", "clock": "coordinator_clock"})
        .drop("topic")
    )
    pairs = decided.select(*_PAIR).distinct()
    located = pairs.join(broadcast(of_coordinator), on="coordinator_partition", how="left").join(
        broadcast(clocks), on=list(TOPIC_PARTITION), how="left"
    )
    two = ("coordinator_clock", "clock")
    estimates = (
        samples.join(located, on=list(_PAIR), how="inner")
        .groupBy(*two)
        .agg(
            F.count("*").alias("samples"),
            F.percentile_approx("difference_ms", F.lit(0.25)).alias("lower_ms"),
            F.percentile_approx("difference_ms", F.lit(0.75)).alias("upper_ms"),
        )
    )
    return located.join(broadcast(estimates), on=list(two), how="left").select(
        *_PAIR, _offset().alias("clock_offset_ms"), _differ().alias("clocks_differ_ms")
    )


def clock() -> Column:
    """Whose clock stamps a partition: its leader's; if the leader is not noted, a clock of its own. Columns: those of COVERAGE."""
    own = F.concat_ws("-", "topic", "partition")
    return F.when(F.col("leader") != "-1", F.col("leader")).otherwise(own)


def is_one_clock() -> Column:
    """Whether one broker stamps both. Columns: clock, coordinator_clock."""
    return F.coalesce(F.col("coordinator_clock") == F.col("clock"), F.lit(False))


def _is_estimated() -> Column:
    is_narrow = F.col("upper_ms") - F.col("lower_ms") <= CLOCKS_DIFFER_MS
    return F.coalesce((F.col("samples") >= SAMPLES) & is_narrow, F.lit(False))


def _offset() -> Column:
    # The time until a marker is written is not a clock difference.
    is_far = F.abs(F.col("lower_ms")) > CLOCKS_DIFFER_MS
    return F.when(~is_one_clock() & _is_estimated() & is_far, F.col("lower_ms")).otherwise(F.lit(0).cast("long"))


def _differ() -> Column:
    return F.when(is_one_clock() | _is_estimated(), CLOCKS_DIFFER_MS).otherwise(UNKNOWN_CLOCKS_DIFFER_MS).cast("long")
