"""Segments that the earlier run has read. Their rows are carried over; reading resumes after them.

Tasks look for the fingerprint of a segment in the new copy (`readers.segment_fingerprint`). If all of it is unchanged, the rows are
carried over, and reading resumes at the last batch or after it. Everything else is read in full: the logs of coordinators and
groups, whose records are decoded, all text, and all segments that were compacted or are damaged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import astuple, replace
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from txnlib.incremental.carried_rows import IS_UNCHANGED
from txnlib.readers.capture import Capture, FileKind, ResumedSegment
from txnlib.readers.file_parts import Part
from txnlib.readers.reader_state import ReaderState
from txnlib.readers.segment_fingerprint import resume_position
from txnlib.readers.snapshot_start import READ_WHOLE
from txnlib.readers.storage import files
from txnlib.readers.text_files import READ_ERRORS
from txnlib.spark.coverage.coverage import is_harmful
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
    """The capture, with its segments that `segments` of the earlier run already contains; only their appended bytes are to be read.

    `checkpoints` are those of this capture. A partition with a cleaner's offset is compacted, and is read in full.
    """
    raw = capture.of_kind(FileKind.SEGMENT)
    if not raw:
        return capture
    listed = spark.createDataFrame(
        [(file.topic, file.partition, file.source, file.offset, file.path) for file in raw],
        "topic string, partition int, source string, segment_base_offset long, path string",
    )
    cleaned = checkpoints.where(F.col("name") == "cleaner_offset").select(*COPY)
    resumable = _resumable(segments).join(cleaned, on=list(COPY), how="left_anti")
    candidates = resumable.join(listed, on=list(_SEGMENT), how="inner")
    tasks = candidates.repartition(-(-len(raw) // _FILES_PER_TASK))
    found = tasks.select(*_SEGMENT, "path", "landmarks", "last_offset_before").mapInArrow(_find_positions, RESUMED).collect()
    # If a segment is listed twice, it is unknown which one the rows belong to.
    times = Counter(row[: len(_SEGMENT)] for row in found)
    once = (ResumedSegment(*row) for row in found if times[row[: len(_SEGMENT)]] == 1)
    resumed = tuple(sorted(once, key=lambda segment: segment.path))
    parts = {
        each.path: (Part(each.position, None, ReaderState(each.position, each.last_offset, each.leader_epoch)),) for each in resumed
    }
    return replace(capture, parts={**capture.parts, **parts}, resumed=resumed)


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
    return spark.createDataFrame([astuple(segment) for segment in capture.resumed], RESUMED)


def flag_batches(record_batches: DataFrame, resumed: DataFrame) -> DataFrame:
    """Rows of `record_batches` of the earlier run, with a boolean column `is_unchanged`: whether this run has the same row."""
    joined = record_batches.join(F.broadcast(_read_from(resumed)), on=list(_SEGMENT), how="left")
    return joined.withColumn(IS_UNCHANGED, F.coalesce(F.col("position") < F.col("read_from"), F.lit(False)))


def changed_segments(segments: DataFrame, resumed: DataFrame) -> DataFrame:
    """The segments of the earlier run of which some row may have changed. Columns: those of `segments`, and `read_from`."""
    joined = segments.where(F.col("topic").isNotNull()).join(F.broadcast(_read_from(resumed)), on=list(_SEGMENT), how="left")
    return joined.where(~F.coalesce(F.col("read_from") > F.element_at("landmarks", -1)["position"], F.lit(False)))


def _read_from(resumed: DataFrame) -> DataFrame:
    """The position from which each segment is read."""
    return resumed.select(*_SEGMENT, F.col("position").alias("read_from"))


def resumed_parts(segments: DataFrame, resumed: DataFrame) -> DataFrame:
    """What the earlier run has read of each resumed segment, as the first part of it. Columns: SEGMENT_PARTS."""
    before = F.filter("unreadable", lambda unreadable: unreadable["position"] < F.col("read_from"))
    landmarks = F.filter("landmarks", lambda landmark: landmark["position"] < F.col("read_from"))
    is_last_unchanged = F.element_at("landmarks", -1)["position"] < F.col("read_from")
    now = resumed.select(
        *_SEGMENT,
        F.col("path").alias("path_now"),
        F.col("position").alias("read_from"),
        F.col("last_offset").alias("read_until"),
    )
    raw = segments.where(F.col("kind") == "raw").join(F.broadcast(now), on=list(_SEGMENT), how="inner")
    parts = raw.withColumns(
        {
            "path": F.col("path_now"),
            "end_offset": F.col("read_until") + 1,
            "batches": F.col("batches") - F.when(is_last_unchanged, 0).otherwise(1),
            "tail": F.lit(None).cast("string"),
            "is_decoded": F.lit(None).cast("boolean"),
            "unreadable": before,
            "landmarks": landmarks,
            "last_offset_before": F.when(is_last_unchanged, F.col("last_offset_before")),
            "part_position": F.lit(0).cast("long"),
        }
    )
    return conform(parts, SEGMENT_PARTS)
