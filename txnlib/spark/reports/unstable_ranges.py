"""Batches and spans around last stable offsets. The rules are in `core.reports.partitions`."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.spark.batch_runs import first_timestamp_ms, is_divided_at, single_batches
from txnlib.spark.instants import clock_ms
from txnlib.spark.joins import broadcast
from txnlib.spark.schemas import TOPIC_PARTITION


def unstable_offsets(producer_spans: DataFrame, coverage: DataFrame) -> DataFrame:
    """The first unstable offset of each partition. Columns: topic, partition, first_unstable_offset.

    Unstable are open transactions, and those ended by a marker at or above the high watermark.
    """
    marks = coverage.where("is_judged").select(*TOPIC_PARTITION, F.coalesce("high_watermark", "end_offset", F.lit(0)).alias("mark"))
    return (
        producer_spans.where(F.col("first_offset").isNotNull())
        .join(broadcast(marks), on=list(TOPIC_PARTITION), how="inner")
        .where(F.col("marker_offset").isNull() | (F.col("marker_offset") >= F.col("mark")))
        .groupBy(*TOPIC_PARTITION)
        .agg(F.min("first_offset").alias("first_unstable_offset"))
    )


def unstable_batches(ranges: DataFrame, record_batches: DataFrame) -> DataFrame:
    """Bytes of the batches in each range, and the time of the first. Columns: topic, partition, lag_bytes, stable_ms.

    `ranges`: topic, partition, source, last_stable_offset, high_watermark.
    """
    is_behind = (F.col("last_offset") >= F.col("last_stable_offset")) & (F.col("base_offset") < F.col("high_watermark"))
    behind = record_batches.join(broadcast(ranges), on=[*TOPIC_PARTITION, "source"], how="inner").where(is_behind)
    is_divided = is_divided_at(F.col("last_stable_offset")) | is_divided_at(F.col("high_watermark"))
    each = single_batches(behind, is_divided).where(is_behind)
    return each.groupBy(*TOPIC_PARTITION).agg(
        F.sum(F.col("size").cast("long")).alias("lag_bytes"),
        clock_ms(F.min_by(first_timestamp_ms(), F.col("base_offset"))).alias("stable_ms"),
    )
