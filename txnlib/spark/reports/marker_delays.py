"""Times from decisions to markers. The rules are in `core.reports.broker_clocks`."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.spark.instants import clock_ms
from txnlib.spark.schemas import PRODUCER, TOPIC_PARTITION


def marker_delays(transactions: DataFrame) -> DataFrame:
    """For each coordinator partition and partition, how soon markers followed decisions.

    Columns: those of `core.reports.broker_clocks.MarkerDelays`. Of each producer and partition, only the newest completed decision
    counts: the present leaders stamped it, unless they have moved since.
    """
    said_ms = F.unix_millis("start") + F.col("time_to_decide_ms")
    decided = transactions.where(F.col("completed").isNotNull()).select(
        "producer_id",
        "coordinator_partition",
        F.coalesce(said_ms, F.unix_millis("prepared")).alias("at_ms"),
        F.inline("markers"),
    )
    newest = F.max_by(F.struct("coordinator_partition", "at_ms", "marker_ms", "clock_offset_ms"), "at_ms").alias("newest")
    took_ms = clock_ms("marker_ms") - F.col("at_ms")
    return (
        decided.where(F.col("marker_offset").isNotNull() & F.col("at_ms").isNotNull())
        .groupBy(*PRODUCER)
        .agg(newest)
        .select(*TOPIC_PARTITION, "newest.*")
        .groupBy("coordinator_partition", *TOPIC_PARTITION)
        .agg(
            F.count(took_ms).alias("samples"),
            F.min(took_ms).alias("least_ms"),
            F.max_by("clock_offset_ms", F.abs("clock_offset_ms")).alias("applied_ms"),
        )
    )
