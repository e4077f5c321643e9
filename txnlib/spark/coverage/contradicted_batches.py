"""Last batches of segments whose offset or leader epoch contradicts their surroundings.

No CRC covers a batch's base offset and leader epoch. Inside a segment, the reader compares them with those of the batches before
and after (`readers.batch_headers`). The last batch of a segment has none after it, so it is compared here with the next segment and
with the checkpoints of its own copy. Kafka: `LeaderEpochFileCache`; `UnifiedLog.roll` names a segment after its first offset.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.spark import windows
from txnlib.spark.batch_runs import batches_count
from txnlib.spark.joins import broadcast
from txnlib.spark.schemas import COPY

_SEGMENT: Final = (*COPY, "segment_base_offset")
EPOCH: Final = "CORRUPT_BATCH: its leader epoch contradicts those of its neighbours"
UNLISTED_EPOCH: Final = "CORRUPT_BATCH: its leader epoch is above those in the leader epoch checkpoint"
OVERLAP: Final = "CORRUPT_BATCH: it reaches into the next segment"
GAP: Final = "CORRUPT_BATCH: offsets are missing before it, and no high watermark shows that it was there"


def epochs_of_segments(record_batches: DataFrame) -> DataFrame:
    """One row per segment and leader epoch. Columns: _SEGMENT, epoch (null: formats 0 and 1), batches, begins, ends, last."""
    batch = F.struct("base_offset", "last_offset", "position", "size", "offset_gap")
    return record_batches.groupBy(*_SEGMENT, F.col("partition_leader_epoch").alias("epoch")).agg(
        F.sum(batches_count()).alias("batches"),
        F.min("base_offset").alias("begins"),
        F.max("last_offset").alias("ends"),
        # The last batch of a segment, and the only one of an epoch, are never part of a run.
        F.max(batch).alias("last"),
    )


def contradicted_batches(epochs: DataFrame, segments: DataFrame, checkpoints: DataFrame) -> DataFrame:
    """The contradicted batches, usually none. Columns: _SEGMENT, epoch, base_offset, last_offset, position, size, reason.

    `epochs`: see `epochs_of_segments`.
    """
    last_of_segments = epochs.groupBy(*_SEGMENT).agg(F.max(F.struct("last.*", "epoch")).alias("last"))
    by_offset = _reasons(_by_offset(last_of_segments, segments, checkpoints), F.col("last.epoch"))
    return _reasons(_by_epoch(epochs, checkpoints), F.col("epoch")).unionByName(by_offset)


def _reasons(rows: DataFrame, epoch: Column) -> DataFrame:
    names = ("base_offset", "last_offset", "position", "size")
    contradicted = rows.where(F.col("reason").isNotNull())
    return contradicted.select(*_SEGMENT, epoch.alias("epoch"), *[F.col(f"last.{name}").alias(name) for name in names], "reason")


def _by_epoch(epochs: DataFrame, checkpoints: DataFrame) -> DataFrame:
    """The rows of `epochs`, with the reason why the only batch of an epoch is contradicted; null if it is not."""
    window = windows.epochs_of_copy()
    listed = checkpoints.where(F.col("name") == "leader_epoch").groupBy(*COPY).agg(F.max("value").alias("highest_epoch"))
    rows = epochs.where(F.col("epoch").isNotNull()).join(broadcast(listed), on=list(COPY), how="left")
    rows = rows.withColumns({"before": F.lag("epoch").over(window), "after": F.lead("epoch").over(window)})
    is_alone, epoch, before, after = F.col("batches") == 1, F.col("epoch"), F.col("before"), F.col("after")
    is_raised = is_alone & (after < epoch) & (F.coalesce(before, after) <= after)
    rows = rows.withColumn("is_raised", F.coalesce(is_raised, F.lit(False)))
    follows_raised = F.coalesce(F.lag("is_raised").over(window), F.lit(False))
    is_lowered = is_alone & (before > epoch) & ~follows_raised & (F.coalesce(after, before) >= before)
    # An election while the files are copied may look the same, until the new leader appends a second batch.
    is_unlisted = is_alone & after.isNull() & (epoch > F.col("highest_epoch"))
    return rows.withColumn("reason", F.when(F.col("is_raised") | is_lowered, EPOCH).when(is_unlisted, UNLISTED_EPOCH))


def _by_offset(last_of_segments: DataFrame, segments: DataFrame, checkpoints: DataFrame) -> DataFrame:
    """The last batch of each segment, with the reason why its offset is contradicted; null if it is not."""
    marks = checkpoints.where(F.col("name") == "high_watermark").groupBy(*COPY).agg(F.max("value").alias("high_watermark"))
    damaged = segments.where(F.size("unreadable") > 0).select(*COPY, F.lit(True).alias("is_damaged")).distinct()
    rows = last_of_segments.withColumn("next_base_offset", F.lead("segment_base_offset").over(windows.segments_of_copy()))
    for of_copy in (marks, damaged):
        rows = rows.join(broadcast(of_copy), on=list(COPY), how="left")
    base, gap = F.col("last.base_offset"), F.col("last.offset_gap")
    following, before = F.col("next_base_offset"), base - gap - 1
    reaches = (F.col("last.last_offset") >= following) & (F.coalesce(before, F.col("segment_base_offset")) < following)
    # The cleaner never cleans the last segment, so only a follower of a compacted topic has a gap there, and its high watermark
    # soon shows it.
    is_unproven = following.isNull() & (gap > 0) & F.col("is_damaged").isNull()
    is_unproven &= F.coalesce(F.col("high_watermark") <= base, F.lit(True))
    return rows.withColumn("reason", F.when(reaches, OVERLAP).when(is_unproven, GAP))
