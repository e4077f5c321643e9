"""What leaders answered when a capture was taken over the wire.

Kafka: to `ListOffsetsRequest` with isolation level READ_COMMITTED, a leader answers the last stable offset.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.spark.instants import instant
from txnlib.spark.joins import broadcast
from txnlib.spark.schemas import TOPIC_PARTITION

#: Columns of the notes on partitions in capture.json that come from the leader.
ANSWERS: Final = (
    "log_start_offset",
    "high_watermark",
    "high_watermark_before",
    "last_stable_offset",
    "answered_at_ms",
    "fetched_from",
)
#: The notes on partitions in capture.json, as a frame.
PARTITION_NOTES: Final = "topic string, partition int, leader int, replicas array<int>, " + ", ".join(
    f"{answer} long" for answer in ANSWERS
)


def with_answers(copies: DataFrame, partition_notes: DataFrame) -> DataFrame:
    """The copies with what their leader answered, and `is_scoped`: whether a copy begins above its log start by choice.

    The log start of such a copy is the one that the leader answered, not the begin of its first segment.
    """
    joined = copies.join(broadcast(_answers(partition_notes)), on=list(TOPIC_PARTITION), how="left")
    is_scoped = (F.col("first_segment_offset") == F.col("fetched_from")) & (F.col("fetched_from") > F.col("noted_start"))
    return joined.withColumns(
        {
            "is_scoped": F.coalesce(is_scoped, F.lit(False)),
            "log_start_offset": F.when(is_scoped, F.col("noted_start")).otherwise(F.col("log_start_offset")),
        }
    ).drop("fetched_from", "noted_start", "noted_mark")


def with_nothing_open(missing: DataFrame, partition_notes: DataFrame) -> DataFrame:
    """`missing` with what the leader answered, and `is_nothing_open`: whether that proves that nothing was open; else NULL."""
    joined = missing.join(broadcast(_answers(partition_notes)), on=list(TOPIC_PARTITION), how="left")
    is_nothing_open = F.when(F.col("answered_stable_offset") == F.col("noted_mark"), F.lit(True))
    return joined.withColumn("is_nothing_open", is_nothing_open).drop("fetched_from", "noted_start", "noted_mark")


def _answers(partition_notes: DataFrame) -> DataFrame:
    return partition_notes.where(F.col("answered_at_ms").isNotNull()).select(
        *TOPIC_PARTITION,
        instant("answered_at_ms").alias("answered_at"),
        F.col("last_stable_offset").alias("answered_stable_offset"),
        # Of several answers, the one before it: what was appended later does not count.
        F.coalesce("high_watermark_before", "high_watermark").alias("answered_high_watermark"),
        F.col("log_start_offset").alias("noted_start"),
        F.col("high_watermark").alias("noted_mark"),
        "fetched_from",
    )
