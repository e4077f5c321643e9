"""The batches that verdicts on open transactions rest on, each with whether its CRC fits.

Readers look at headers only of batches above a page (docs/decisions/0001), so that one flipped bit could make an orphan out of
nothing. Before a transaction may hang, its first and last batch, and the producer's batch before them, are read again as a whole:
few rows, at known positions. Source: DESIGN.md 5.4; Kafka: `DefaultRecordBatch.isValid`.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.spark.decisions import is_batch_valid
from txnlib.spark.producer_spans import newest_spans
from txnlib.spark.schemas import CHECKED_BATCHES, COPY, PRODUCER, TOPIC_PARTITION, conform

#: Batches up to this size were checked when they were read (`readers.headers.PAGE`).
CHECKED_WHEN_READ: Final = 4_096


def checked_batches(record_batches: DataFrame, producer_spans: DataFrame, coverage: DataFrame, segments: DataFrame) -> DataFrame:
    """One row per batch that the verdict on an open transaction rests on. Columns: CHECKED_BATCHES."""
    opened = open_spans(producer_spans, coverage)
    own = record_batches.join(F.broadcast(opened), on=[*COPY, "producer_id"], how="inner").where(~F.col("is_control"))
    batch = F.struct("base_offset", "last_offset", "position", "size", "segment_base_offset", "producer_epoch", *_SEQUENCES)
    is_before = F.col("base_offset") < F.col("start_offset")
    found = own.groupBy(*COPY, "producer_id", "start_offset").agg(
        F.max(F.when(is_before, batch)).alias("before"),
        F.min(F.when(~is_before, batch)).alias("first"),
        F.max(F.when(~is_before, batch)).alias("last"),
    )
    rows = [F.struct(F.lit(what).alias("place"), F.col(what).alias("batch")) for what in ("before", "first", "last")]
    each = (
        found.select(*COPY, "producer_id", "start_offset", F.explode(F.array(*rows)).alias("row"))
        .select(*COPY, "producer_id", "start_offset", "row.place", "row.batch.*")
        .where(F.col("base_offset").isNotNull())
    )
    paths = (
        segments.where(F.col("kind").isin("raw", "text"))
        .groupBy(*COPY, "segment_base_offset")
        .agg(F.max_by("path", "bytes").alias("path"), F.max("kind").alias("kind"))
    )
    located = each.join(paths, on=[*COPY, "segment_base_offset"], how="left")
    return conform(located.withColumn("is_crc_valid", _is_valid()), CHECKED_BATCHES)


_SEQUENCES: Final = ("base_sequence", "last_sequence")


def _is_valid() -> Column:
    """NULL where there are no bytes to check: of text, and of files that lie there no more."""
    is_raw = F.col("kind") == "raw"
    was_checked = is_raw & (F.col("size") <= CHECKED_WHEN_READ)
    again = is_batch_valid()(F.when(is_raw & ~was_checked, F.col("path")), F.col("position"), F.col("size"))
    return F.when(was_checked, F.lit(True)).otherwise(again)


def open_spans(producer_spans: DataFrame, coverage: DataFrame) -> DataFrame:
    """What is open in the judged copies: topic, partition, source, producer_id, start_offset."""
    opened = newest_spans(producer_spans).where(F.col("first_offset").isNotNull() & F.col("marker_offset").isNull())
    judged = coverage.where("is_judged").select(*COPY)
    return opened.select(*PRODUCER, F.col("first_offset").alias("start_offset")).join(
        F.broadcast(judged), on=list(TOPIC_PARTITION), how="inner"
    )
