"""The stretches of the capture that could not be read, and why."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.spark.coverage import PRINTED
from txnlib.spark.schemas import COPY, QUARANTINE, conform


def quarantine(segments: DataFrame, checked_batches: DataFrame | None = None) -> DataFrame:
    """One row per unreadable stretch of bytes or text, and per batch whose CRC was refuted afterwards. Columns: QUARANTINE."""
    once = segments.where(F.col("kind") != PRINTED)
    found = conform(once.select(*COPY, "path", F.inline("unreadable")), QUARANTINE)
    if checked_batches is None:
        return found
    refuted = checked_batches.where(~F.col("is_crc_valid")).select(
        *COPY,
        "path",
        "position",
        F.col("size").cast("long").alias("length"),
        F.lit("CORRUPT_BATCH: its CRC does not fit").alias("reason"),
        F.lit(None).cast("string").alias("sample"),
        (F.col("last_offset") + 1).alias("next_offset"),
    )
    return found.unionByName(conform(refuted.distinct(), QUARANTINE))
