"""The marker of each coordinator decision, by a join in time order.

Decisions and markers are joined by time and epoch: in transactions v0 and v1, many transactions share an epoch, and the markers
follow a decision within moments. The times of markers are first converted to the coordinator's clock (`clock_differences`). A
running `last` in both directions keeps the join linear, however often a producer commits.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS, TRANSACTION_STATE_TOPIC, UNKNOWN_CLOCKS_DIFFER_MS
from txnlib.spark import windows
from txnlib.spark.coverage import BEGINS_LATE, SHOWS_MARKERS
from txnlib.spark.instants import clock_ms
from txnlib.spark.joins import broadcast
from txnlib.spark.local_rows import settled
from txnlib.spark.schemas import MARKERS, PRODUCER, TOPIC_PARTITION

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


# ---- The marker of each decision


_INSTANCE: Final = ("transactional_id", "coordinator_partition", "transaction_number")
_MARKER: Final = (
    "marker_offset",
    "marker_type",
    "marker_epoch",
    "marker_coordinator_epoch",
    "marker_ms",
    "first_offset",
    "first_timestamp_ms",
    "is_broker_clock",
)


def decision_markers(instances: DataFrame, producer_spans: DataFrame, coverage: DataFrame) -> DataFrame:
    """For each decided transaction, `markers`: its partitions, each with the marker of the decision, or without.

    This is the nearest marker after the decision, or the one just before it, if the clocks may differ that much. Type and epoch
    must match. But if a marker before the decision is nearer to the previous decision, it belongs to that one: transactions may
    follow each other faster than the clocks differ.
    """
    decided = instances.where(F.col("decided_ms").isNotNull()).select(
        F.col("decided_producer_id").alias("producer_id"),
        F.inline("partitions"),
        "coordinator_partition",
        F.col("decided_ms").alias("at_ms"),
        F.col("outcome").alias("type"),
        F.col("decided_epoch").alias("epoch"),
        F.col("completed_ms").isNotNull().alias("is_complete"),
        F.struct(*_INSTANCE, F.col("outcome").alias("type"), F.col("decided_epoch").alias("epoch")).alias("decision"),
    )
    written = settled(markers_of(producer_spans))
    clocks = settled(clock_differences(decided, written, coverage))
    columns = ["producer_id", *TOPIC_PARTITION, "at_ms", "decision", "clock_offset_ms", "clocks_differ_ms"]
    timed = decided.join(broadcast(clocks), on=["coordinator_partition", *TOPIC_PARTITION], how="left").select(*columns)
    both = timed.unionByName(on_coordinators_clock(written, decided, clocks), allowMissingColumns=True)
    prior = F.when(F.col("decision").isNotNull(), F.struct("decision.type", "decision.epoch", "at_ms"))
    before_ms, after_ms = F.col("before.at_ms"), F.col("after.at_ms")
    at = F.struct("at_ms", "marker")
    is_marker = F.col("marker").isNotNull()
    placed_marker = F.when(is_marker & F.col("at_ms").isNotNull(), at)
    forth, back = windows.decisions_and_markers(), windows.decisions_and_markers_downwards()
    seen = both.withColumns(
        {
            "before": F.last(placed_marker, ignorenulls=True).over(windows.before_now(forth)),
            "after": F.last(placed_marker, ignorenulls=True).over(windows.before_now(back)),
            "prior": F.last(prior, ignorenulls=True).over(windows.before_now(forth)),
            # Markers without a time come first; each of them may be that of the decision.
            "has_untimed": F.max(is_marker & F.col("at_ms").isNull()).over(windows.before_now(forth)),
        }
    ).where(F.col("decision").isNotNull())
    since_before, until_after = F.col("at_ms") - before_ms, after_ms - F.col("at_ms")
    is_near = since_before <= F.col("clocks_differ_ms")
    is_of_prior = agrees("before.marker", "prior") & (F.abs(before_ms - F.col("prior.at_ms")) <= since_before)
    is_before = agrees("before.marker", "decision") & is_near & ~is_of_prior
    is_after = agrees("after.marker", "decision") & ~(is_before & (since_before < until_after))
    marker = F.when(is_after, F.col("after.marker")).when(is_before, F.col("before.marker"))
    is_followed = (F.col("after").isNotNull() | F.coalesce(is_near | F.col("has_untimed"), F.lit(False))).alias("is_followed")
    clock = ("clock_offset_ms", "clocks_differ_ms")
    placed = F.struct("topic", "partition", *[marker[name].alias(name) for name in _MARKER], is_followed, *clock)
    listed = F.sort_array(F.collect_list(placed)).cast(MARKERS)
    return seen.groupBy(*[F.col(f"decision.{name}").alias(name) for name in _INSTANCE]).agg(listed.alias("markers"))


def on_coordinators_clock(markers: DataFrame, decided: DataFrame, clocks: DataFrame) -> DataFrame:
    """Markers with `at_ms` on the clock of the coordinator that decides for their producer, if the two were compared."""
    owners = decided.groupBy("producer_id").agg(F.max("coordinator_partition").alias("coordinator_partition"))
    offsets = broadcast(clocks.where("clock_offset_ms <> 0"))
    located = markers.join(owners, on="producer_id", how="left").join(
        offsets.drop("clocks_differ_ms"), on=["coordinator_partition", *TOPIC_PARTITION], how="left"
    )
    at_ms = F.col("at_ms") - F.coalesce("clock_offset_ms", F.lit(0))
    return located.select("producer_id", *TOPIC_PARTITION, at_ms.alias("at_ms"), "marker")


def markers_of(producer_spans: DataFrame) -> DataFrame:
    """The markers of all partitions. Columns: producer_id, topic, partition, at_ms (NULL if no clock shows that time), marker."""
    return producer_spans.where(F.col("marker_offset").isNotNull()).select(
        "producer_id", *TOPIC_PARTITION, clock_ms("marker_ms").alias("at_ms"), F.struct(*_MARKER).alias("marker")
    )


def agrees(marker: str, decision: str) -> Column:
    """Whether a marker matches a decision, by type and epoch. A field that a dump does not print always matches."""
    same_type = F.coalesce(F.col(f"{marker}.marker_type") == F.col(f"{decision}.type"), F.lit(True))
    same_epoch = F.col(f"{marker}.marker_epoch") == F.col(f"{decision}.epoch")
    return F.coalesce(F.col(marker).isNotNull() & same_type & same_epoch, F.lit(False))


_TRANSACTION: Final = ("transactional_id", "coordinator_partition", "transaction_number", "producer_id", "outcome", "completed")


def lost_markers(transactions: DataFrame, producer_spans: DataFrame, coverage: DataFrame) -> DataFrame:
    """Partitions of completed transactions without a marker, if the marker could not have been overlooked.

    Columns: transactional_id, coordinator_partition, transaction_number, producer_id, outcome, completed, topic, partition.
    """
    unmarked = settled(
        transactions.where(F.col("completed").isNotNull() & F.col("start").isNotNull())
        .select(*_TRANSACTION, "start", F.inline("markers"))
        .where(F.col("marker_offset").isNull() & ~F.col("is_followed"))
    )
    # Copies in which holes, damage, a snapshot, or the instant of the copy hide nothing.
    whole = coverage.where(f"is_judged AND {SHOWS_MARKERS} AND NOT {BEGINS_LATE}").selectExpr(
        *TOPIC_PARTITION, "unix_millis(known_until) AS known_until_ms"
    )
    stamps = markers_of(producer_spans).groupBy(*TOPIC_PARTITION).agg(F.min("at_ms").alias("oldest_ms"))
    return (
        unmarked.join(broadcast(whole), on=list(TOPIC_PARTITION), how="inner")
        .where(F.col("known_until_ms") > F.unix_millis("completed") + F.col("clocks_differ_ms"))
        .join(stamps, on=list(TOPIC_PARTITION), how="inner")
        # If the oldest marker of the log is younger, the topic may have been deleted and created again.
        .where(F.col("oldest_ms") < F.unix_millis("start"))
        .select(*_TRANSACTION, *TOPIC_PARTITION)
    )
