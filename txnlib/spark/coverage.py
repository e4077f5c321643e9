"""Facts about copies, as columns for transforms of tables of the log.

`core.coverage` makes the table.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.core.copies import HARMLESS_REASONS
from txnlib.spark.batch_runs import batches_count
from txnlib.spark.schemas import COPY

_SEGMENT: Final = (*COPY, "segment_base_offset")


def epochs_of_segments(record_batches: DataFrame) -> DataFrame:
    """One row per segment and leader epoch. Columns: those of `core.coverage.leader_epochs.EpochOfSegment`."""
    batch = F.struct("base_offset", "last_offset", "position", "size", "offset_gap")
    epochs = record_batches.groupBy(*_SEGMENT, F.col("partition_leader_epoch").alias("epoch")).agg(
        F.sum(batches_count()).alias("batches"),
        F.min("base_offset").alias("begins"),
        F.max("last_offset").alias("ends"),
        # The last batch of a segment, and the only one of an epoch, are never part of a run.
        F.max(batch).alias("last"),
    )
    return epochs.select(*_SEGMENT, "epoch", "batches", "begins", "ends", "last.*")


def newest_snapshots(producer_snapshots: DataFrame) -> DataFrame:
    """One row per copy with producer snapshots. Columns: COPY, snapshot_offset."""
    of_files = producer_snapshots.where(F.col("is_answer").isNull())
    return of_files.groupBy(*COPY).agg(F.max("snapshot_offset").alias("snapshot_offset"))


def is_harmful(unreadable: Column) -> Column:
    """`copies.is_harmful` over a column of unreadable ranges."""
    return ~unreadable["reason"].rlike(f"^({'|'.join(HARMLESS_REASONS)})")


def paths_of_segments(segments: DataFrame) -> DataFrame:
    """The file of each segment, and its kind. Columns: COPY, segment_base_offset, path, kind (raw or text)."""
    files = segments.where(F.col("kind").isin("raw", "text"))
    return files.groupBy(*_SEGMENT).agg(F.max_by("path", "bytes").alias("path"), F.max("kind").alias("kind"))


#: Whether a copy was read only from above its log start on: by scope, or from a snapshot (`readers.file_splits`). SQL.
BEGINS_AT_SNAPSHOT: Final = "coalesce(read_from_offset > log_start_offset, FALSE)"
#: Whether a judged copy shows every marker from where it begins, and whether that is after the start of the log. SQL.
SHOWS_MARKERS: Final = "(gap_offset IS NULL AND damaged_offset IS NULL AND is_decoded)"
BEGINS_LATE: Final = f"({BEGINS_AT_SNAPSHOT} OR log_start_offset > 0)"


def survives() -> Column:
    """Whether a batch or record survived: no newer leader truncated it. Columns: truncated, leader_epoch, at_offset."""

    def cuts(cut: Column) -> Column:
        return (cut["leader_epoch"] == F.col("leader_epoch")) & (cut["from_offset"] <= F.col("at_offset"))

    return ~F.coalesce(F.exists("truncated", cuts), F.lit(False))


def sound_copies(coverage: DataFrame) -> DataFrame:
    """The rows of `coverage` of judged copies without damage."""
    return coverage.where(F.col("is_judged") & F.col("damaged_offset").isNull() & F.col("tail").isin("CLEAN", "ZEROS"))


def broker() -> Column:
    """`core.coverage.captured_files.broker_of` over the column `source`."""
    parts = F.filter(F.slice(F.split("source", "[:/]"), 2, 100), lambda part: ~part.isin(".", "..", ""))
    numbers = F.filter(parts, lambda part: part.rlike("^[0-9]+$"))
    return F.coalesce(F.try_element_at(numbers, F.lit(1)), F.try_element_at(parts, F.lit(-1)))
