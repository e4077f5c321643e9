"""Copies of which the earlier run has read a part. Its rows still count; reading resumes after them.

Tasks look for the fingerprint of each segment in the new copy (`readers.segment_fingerprint`). A copy is resumed if the fingerprint
of every segment is unchanged up to its last batch, except of segments below the new log start, which were deleted. All other copies
are read in full: the logs of coordinators and groups, whose records are decoded, all text, and all copies with a segment that was
rewritten, lost or compacted, or is damaged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from txnlib.readers.capture import Capture, FileKind, ResumedSegment
from txnlib.readers.file_parts import Part
from txnlib.readers.reader_state import ReaderState
from txnlib.readers.segment_fingerprint import resume_position
from txnlib.readers.snapshot_start import READ_WHOLE
from txnlib.readers.storage import files
from txnlib.readers.text_files import READ_ERRORS
from txnlib.spark.coverage.coverage import is_harmful
from txnlib.spark.joins import broadcast
from txnlib.spark.local_rows import local_rows
from txnlib.spark.python_tasks import begin_task
from txnlib.spark.schemas import COPY, SEGMENT_PARTS, conform

_SEGMENT: Final = (*COPY, "segment_base_offset")
_FILES_PER_TASK: Final = 64
#: Columns of `readers.capture.ResumedSegment`.
RESUMED: Final = (
    "topic string, partition int, source string, segment_base_offset long, path string, position long, last_offset long, "
    "leader_epoch int"
)


def resume_segments(spark: SparkSession, capture: Capture, segments: DataFrame, checkpoints: DataFrame) -> Capture:
    """The capture, with the segments of resumed copies; only what was appended to them is to be read.

    `checkpoints` are those of this capture. A partition with a cleaner's offset is compacted, and is read in full.
    """
    raw = capture.of_kind(FileKind.SEGMENT)
    if not raw:
        return capture
    listed = local_rows(
        spark,
        [(file.topic, file.partition, file.source, file.offset, file.path) for file in raw],
        "topic string, partition int, source string, segment_base_offset long, path string",
    )
    cleaned = checkpoints.where(F.col("name") == "cleaner_offset").select(*COPY)
    resumable = _resumable(segments).join(cleaned, on=list(COPY), how="left_anti")
    candidates = resumable.join(listed, on=list(_SEGMENT), how="inner")
    tasks = candidates.repartition(-(-len(raw) // _FILES_PER_TASK))
    found = tasks.select(*_SEGMENT, "path", "landmarks", "last_offset_before").mapInArrow(_find_positions, RESUMED).collect()
    read_until = {(*(row[name] for name in _SEGMENT),): row["last"] for row in _ends(segments).collect()}
    resumed = resumed_copies([ResumedSegment(*row) for row in found], read_until, first_segments(capture))
    parts = {
        each.path: (Part(each.position, None, ReaderState(each.position, each.last_offset, each.leader_epoch)),) for each in resumed
    }
    return replace(capture, parts={**capture.parts, **parts}, resumed=resumed)


#: Topic, partition and source; and the same with the base offset of a segment.
Copy = tuple[str | None, int | None, str]
Segment = tuple[str | None, int | None, str, int]


def first_segments(capture: Capture) -> dict[Copy, int]:
    """The copies of a capture with segments, each with the base offset of its first one."""
    first: dict[Copy, int] = {}
    for file in capture.of_kind(FileKind.SEGMENT):
        copy = (file.topic, file.partition, file.source)
        first[copy] = min(first.get(copy, file.offset), file.offset)
    return first


def resumed_copies(
    found: Sequence[ResumedSegment], read_until: Mapping[Segment, int], first: Mapping[Copy, int]
) -> tuple[ResumedSegment, ...]:
    """The segments of the copies that can be resumed, in the order of their paths.

    `found`: segments with an unchanged fingerprint, each with the position after it. `read_until`: the segments of the earlier run
    with batches, each with the position of its last one. `first`: see `first_segments`.
    """
    by_segment: dict[Segment, list[ResumedSegment]] = {}
    for each in found:
        by_segment.setdefault(_segment_of(each), []).append(each)
    changed: set[Copy] = set()
    for segment, last in read_until.items():
        copy, base_offset, resumed = segment[:3], segment[3], by_segment.get(segment, [])
        # If a segment is listed twice, it is unknown which one the rows belong to.
        is_resumed = len(resumed) == 1 and resumed[0].position > last
        if base_offset >= first.get(copy, 0) and not is_resumed:
            changed.add(copy)
    kept = (each for each in found if (each.topic, each.partition, each.source) not in changed)
    return tuple(sorted(kept, key=lambda segment: segment.path))


def _segment_of(segment: ResumedSegment) -> Segment:
    return segment.topic, segment.partition, segment.source, segment.segment_base_offset


def _ends(segments: DataFrame) -> DataFrame:
    """The segments of a run with batches, each with the position of its last one. Columns: _SEGMENT, last."""
    last = F.element_at("landmarks", -1)["position"]
    with_batches = segments.where((F.col("kind") == "raw") & (F.size("landmarks") > 0))
    return with_batches.groupBy(*_SEGMENT).agg(F.max(last).alias("last"))


def _resumable(segments: DataFrame) -> DataFrame:
    """The segments whose rows may be unchanged: with batches, without holes, and with nothing unreadable before the last batch."""
    last = F.element_at("landmarks", -1)["position"]
    damaged = F.exists("unreadable", lambda unreadable: is_harmful(unreadable) & (unreadable["position"] < last))
    return segments.where(
        (F.col("kind") == "raw")
        & ~F.col("topic").isin(*READ_WHOLE)
        & (F.size("landmarks") > 0)
        & F.col("last_gap_offset").isNull()
        & ~damaged
    ).drop("path")


def _find_positions(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    begin_task()
    for batch in batches:
        rows = batch.select(["path", "landmarks", "last_offset_before"]).to_pylist()
        states = [_resume_position(row["path"], row["landmarks"], row["last_offset_before"]) for row in rows]
        where = batch.select([*_SEGMENT, "path"])
        positions = pa.array([None if at is None else at.position for at in states], pa.int64())
        last_offsets = pa.array([None if at is None else at.last_offset for at in states], pa.int64())
        leader_epochs = pa.array([None if at is None else at.leader_epoch for at in states], pa.int32())
        columns = [*where.schema.names, "position", "last_offset", "leader_epoch"]
        located = pa.RecordBatch.from_arrays([*where.columns, positions, last_offsets, leader_epochs], names=columns)
        yield located.filter(positions.is_valid())


def _resume_position(path: str, landmarks: list[dict[str, int]], last_offset_before: int | None) -> ReaderState | None:
    """The position in a file after its fingerprint. None for a file that cannot be read: the table readers report it."""
    try:
        with files.open_buffer(path) as opened:
            return resume_position(opened.buffer, opened.size, landmarks, last_offset_before)
    except READ_ERRORS:
        return None


def resumed_frame(spark: SparkSession, capture: Capture) -> DataFrame:
    """The segments of a capture that an earlier run has read in part. Columns: RESUMED."""
    return local_rows(spark, map(astuple, capture.resumed), RESUMED)


def resumed_parts(segments: DataFrame, resumed: DataFrame) -> DataFrame:
    """What the earlier run has read of each resumed segment, as the first part of it. Columns: SEGMENT_PARTS."""
    now = resumed.select(
        *_SEGMENT,
        F.col("path").alias("path_now"),
        F.col("position").alias("read_from"),
        F.col("last_offset").alias("read_until"),
    )
    raw = segments.where(F.col("kind") == "raw").join(broadcast(now), on=list(_SEGMENT), how="inner")
    parts = raw.withColumns(
        {
            "path": F.col("path_now"),
            "end_offset": F.col("read_until") + 1,
            "tail": F.lit(None).cast("string"),
            "is_decoded": F.lit(None).cast("boolean"),
            "unreadable": F.filter("unreadable", lambda unreadable: unreadable["position"] < F.col("read_from")),
            "part_position": F.lit(0).cast("long"),
        }
    )
    return conform(parts, SEGMENT_PARTS)
