"""Which marker carried which decision? The decisions of coordinators beside the markers of partitions, in time order.

Time and epoch join them: in transactions v0 and v1 many transactions share an epoch, and a decision is followed by its
markers within moments. Looking back and ahead by a running `last` keeps that linear, however often a producer commits.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.core.sentinels import CLOCKS_DIFFER_MS
from txnlib.spark import windows
from txnlib.spark.schemas import MARKERS, TOPIC_PARTITION

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


def decision_markers(instances: DataFrame, producer_spans: DataFrame) -> DataFrame:
    """For each decided transaction, `markers`: its partitions, each with the marker that carried the decision, or none.

    The nearest marker behind the decision counts, or one just before it, if clocks differ; type and epoch must agree. A marker
    before it that is nearer to the decision before was that one's: transactions may follow each other faster than clocks differ.
    """
    decided = instances.where(F.col("decided_ms").isNotNull()).select(
        F.col("decided_producer_id").alias("producer_id"),
        F.inline("partitions"),
        F.col("decided_ms").alias("at_ms"),
        F.struct(*_INSTANCE, F.col("outcome").alias("type"), F.col("decided_epoch").alias("epoch")).alias("decision"),
    )
    written = markers_of(producer_spans)
    both = decided.unionByName(written, allowMissingColumns=True)
    prior = F.when(F.col("decision").isNotNull(), F.struct("decision.type", "decision.epoch", "at_ms"))
    forth, back = windows.decisions_and_markers(), windows.decisions_and_markers_downwards()
    seen = both.withColumns(
        {
            "before": F.last("marker", ignorenulls=True).over(windows.before_now(forth)),
            "after": F.last("marker", ignorenulls=True).over(windows.before_now(back)),
            "prior": F.last(prior, ignorenulls=True).over(windows.before_now(forth)),
        }
    ).where(F.col("decision").isNotNull())
    since_before, until_after = F.col("at_ms") - F.col("before.marker_ms"), F.col("after.marker_ms") - F.col("at_ms")
    is_near = since_before <= CLOCKS_DIFFER_MS
    is_of_prior = agrees("before", "prior") & (F.abs(F.col("before.marker_ms") - F.col("prior.at_ms")) <= since_before)
    is_before = agrees("before", "decision") & is_near & ~is_of_prior
    is_after = agrees("after", "decision") & ~(is_before & (since_before < until_after))
    marker = F.when(is_after, F.col("after")).when(is_before, F.col("before"))
    is_followed = (F.col("after").isNotNull() | F.coalesce(is_near, F.lit(False))).alias("is_followed")
    placed = F.struct("topic", "partition", *[marker[name].alias(name) for name in _MARKER], is_followed)
    listed = F.sort_array(F.collect_list(placed)).cast(MARKERS)
    return seen.groupBy(*[F.col(f"decision.{name}").alias(name) for name in _INSTANCE]).agg(listed.alias("markers"))


def markers_of(producer_spans: DataFrame) -> DataFrame:
    """The markers of all partitions: producer_id, topic, partition, at_ms, marker."""
    return producer_spans.where(F.col("marker_offset").isNotNull()).select(
        "producer_id", *TOPIC_PARTITION, F.col("marker_ms").alias("at_ms"), F.struct(*_MARKER).alias("marker")
    )


def agrees(marker: str, decision: str) -> Column:
    """Whether a marker carries a decision, by type and epoch; what a dump does not print cannot disagree."""
    same_type = F.coalesce(F.col(f"{marker}.marker_type") == F.col(f"{decision}.type"), F.lit(True))
    same_epoch = F.col(f"{marker}.marker_epoch") == F.col(f"{decision}.epoch")
    return F.coalesce(F.col(marker).isNotNull() & same_type & same_epoch, F.lit(False))
