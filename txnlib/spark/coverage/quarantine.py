"""`quarantine`: the ranges of the capture that could not be read, and why."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.spark.coverage.contradicted_batches import contradicted_batches, epochs_of_segments
from txnlib.spark.coverage.coverage import PRINTED, paths_of_segments
from txnlib.spark.schemas import COPY, QUARANTINE, conform


def quarantine(
    segments: DataFrame,
    record_batches: DataFrame,
    checkpoints: DataFrame,
    checked_batches: DataFrame | None = None,
    *,
    is_any_damaged: bool = True,
) -> DataFrame:
    """One row per unreadable range of bytes or text, and per batch that its CRC or its surroundings refuted afterwards.

    `is_any_damaged`: whether `coverage` has a DAMAGED copy; without one, no batch is contradicted. Columns: QUARANTINE.
    """
    once = segments.where(F.col("kind") != PRINTED)
    unreadable = conform(once.select(*COPY, "path", F.inline("unreadable")), QUARANTINE)
    rows = [unreadable]
    if is_any_damaged:
        contradicted = contradicted_batches(epochs_of_segments(record_batches), segments, checkpoints)
        located = contradicted.join(paths_of_segments(segments), on=[*COPY, "segment_base_offset"], how="left")
        rows.append(_of_batches(located).distinct())
    if checked_batches is not None:
        by_crc = checked_batches.where(~F.col("is_crc_valid")).withColumn("reason", F.lit("CORRUPT_BATCH: its CRC does not fit"))
        rows.append(_of_batches(by_crc).distinct())
    return reduce(DataFrame.unionByName, rows)


def _of_batches(refuted: DataFrame) -> DataFrame:
    rows = refuted.select(
        *COPY,
        "path",
        "position",
        F.col("size").cast("long").alias("length"),
        "reason",
        F.lit(None).cast("string").alias("sample"),
        (F.col("last_offset") + 1).alias("next_offset"),
    )
    return conform(rows, QUARANTINE)
