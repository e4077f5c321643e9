"""Facts about copies, as SQL for transforms of tables of the log.

`core.coverage` makes the table.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame

from txnlib.spark.batch_runs import BATCHES
from txnlib.spark.instants import clock_ms
from txnlib.spark.joins import select

#: Whether a copy begins above its log start, by scope.
BEGINS_BY_SCOPE: Final = "coalesce(read_from_offset > log_start_offset, FALSE)"
#: Whether a judged copy shows every marker from where it begins, and whether that is after the start of the log.
SHOWS_MARKERS: Final = "(gap_offset IS NULL AND damaged_offset IS NULL AND is_decoded)"
BEGINS_LATE: Final = f"({BEGINS_BY_SCOPE} OR log_start_offset > 0)"
#: The copies that exist.
LIVING: Final = "source IS NOT NULL AND NOT coalesce(is_deleted, FALSE)"


def survives(leader_epoch: str, offset: str) -> str:
    """Whether a batch or record survived: no newer leader truncated it. Column: truncated."""
    return (
        f"NOT coalesce(exists(truncated, cut -> cut.leader_epoch = {leader_epoch} AND cut.from_offset <= {offset}),"
        " FALSE)"
    )


def epochs_of_segments(record_batches: DataFrame) -> DataFrame:
    """One row per segment and leader epoch. Columns: the fields of `core.coverage.leader_epochs.EpochOfSegment`."""
    # The last batch of a segment, and the only one of an epoch, are never part of a run.
    text = f"""
    SELECT topic, partition, source, segment_base_offset, epoch, batches, begins, ends, stamped_ms,
      last.base_offset, last.last_offset,
      last.position, last.size, last.offset_gap
    FROM (
      SELECT topic, partition, source, segment_base_offset, partition_leader_epoch AS epoch, sum({BATCHES}) AS batches,
        min(base_offset) AS begins, max(last_offset) AS ends,
        min(if(is_control AND producer_id IS NOT NULL, {clock_ms("max_timestamp_ms")}, NULL)) AS stamped_ms,
        max(struct(base_offset, last_offset, position, size, offset_gap)) AS last
      FROM {{batches}} GROUP BY topic, partition, source, segment_base_offset, partition_leader_epoch
    )
    """
    return select(text, batches=record_batches)


def newest_snapshots(producer_snapshots: DataFrame) -> DataFrame:
    """One row per copy with producer snapshots. Columns: COPY, snapshot_offset."""
    text = """
    SELECT topic, partition, source, max(snapshot_offset) AS snapshot_offset FROM {snapshots}
    WHERE is_answer IS NULL GROUP BY topic, partition, source
    """
    return select(text, snapshots=producer_snapshots)
