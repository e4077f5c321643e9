"""The run to continue, and what it has read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import astuple, dataclass, replace
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from txnlib.core.chains import Chain, FinishedRun, RunHistory
from txnlib.engine.engine import Engine
from txnlib.engine.store import RunStore, Store
from txnlib.errors import MissingTableError
from txnlib.readers import arrow_schemas
from txnlib.readers.capture import Capture, FileKind, ResumedSegment
from txnlib.readers.file_parts import first_segments, read_before, resumed_copies, unchanged_until
from txnlib.spark.capture_source import CaptureSource
from txnlib.spark.frames import local_rows
from txnlib.spark.joins import broadcast
from txnlib.spark.python_tasks import mapped
from txnlib.spark.schemas import COPY, SEGMENT_PARTS, TABLES
from txnlib.version import __version__

_SEGMENT: Final = (*COPY, "segment_base_offset")
_FILES_PER_TASK: Final = 64
#: Columns of `readers.capture.ResumedSegment`.
RESUMED: Final = (
    "topic string, partition int, source string, segment_base_offset long, path string, position long, last_offset"
    " long, leader_epoch int"
)


def resume_segments(spark: SparkSession, capture: Capture, segments: DataFrame, checkpoints: DataFrame) -> Capture:
    """The capture, with the segments of resumed copies; only what was appended to them is to be read.

    `segments`: of the earlier run. `checkpoints`: of this capture. A partition with a cleaner's offset is compacted, so
    it is read in full.
    """
    listed = [
        (file.topic, file.partition, file.source, file.offset, file.path) for file in capture.of_kind(FileKind.SEGMENT)
    ]
    if not listed:
        return capture
    now = local_rows(
        spark, listed, "topic string, partition int, source string, segment_base_offset long, path_now string"
    )
    raw = segments.where(F.col("kind") == "raw")
    cleaned = checkpoints.where(F.col("name") == "cleaner_offset").select(*COPY)
    candidates = raw.join(cleaned, on=list(COPY), how="left_anti").join(now, on=list(_SEGMENT), how="inner")
    tasks = candidates.select(*TABLES["segments"].names, "path_now").repartition(-(-len(listed) // _FILES_PER_TASK))
    found = mapped(tasks, _unchanged, RESUMED).collect()
    read = raw.select(*_SEGMENT, (F.size("landmarks") > 0).alias("has_batches")).collect()
    resumed = resumed_copies(
        [ResumedSegment(*row) for row in found],
        [
            ((row["topic"], row["partition"], row["source"], row["segment_base_offset"]), row["has_batches"])
            for row in read
        ],
        first_segments(capture),
    )
    return replace(capture, resumed=resumed)


def _unchanged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        found = []
        for row in batch.to_pylist():
            if (at := unchanged_until(row, row["path_now"])) is not None:
                found.append(
                    (*(row[name] for name in _SEGMENT), row["path_now"], at.position, at.last_offset, at.leader_epoch)
                )
        yield pa.RecordBatch.from_pylist(
            [dict(zip(_RESUMED.names, row, strict=True)) for row in found], schema=_RESUMED
        )


_RESUMED: Final = pa.schema(
    {
        **{name: arrow_schemas.SEGMENTS.field(name).type for name in (*_SEGMENT, "path")},
        "position": pa.int64(),
        "last_offset": pa.int64(),
        "leader_epoch": pa.int32(),
    }
)


def resumed_frame(spark: SparkSession, capture: Capture) -> DataFrame:
    """The segments of a capture that an earlier run has read in part. Columns: RESUMED."""
    return local_rows(spark, map(astuple, capture.resumed), RESUMED)


def _read_before(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = [read_before(row, **row.pop("now")) for row in batch.to_pylist()]
        yield pa.RecordBatch.from_pylist(rows, schema=arrow_schemas.SEGMENT_PARTS)


# ---- The run to continue


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """A finished run that another one can continue, and its tables."""

    run: FinishedRun
    tables: RunStore


def history_of(store: Store, cluster: str) -> RunHistory:
    """The finished runs of a cluster."""
    try:
        runs = store.read_all("audit_runs")
    except MissingTableError:
        return RunHistory()
    finished = runs.where((F.col("cluster") == cluster) & (F.col("status") == "DONE"))
    instants = [F.unix_millis("as_of"), F.unix_millis("finished_at")]
    rows = finished.select("run_id", *instants, "chain", "night", "version", "settings").collect()
    found = []
    for run_id, as_of_ms, finished_ms, chain, night, version, settings in rows:
        expiration_ms = json.loads(settings).get("producer_id_expiration_ms")
        found.append(FinishedRun(run_id, as_of_ms, finished_ms, chain, night, version, expiration_ms))
    return RunHistory(frozenset(found))


def runs_to_continue(store: Store, cluster: str, history: RunHistory, before_ms: int | None) -> list[EarlierRun]:
    """The audits of a cluster that another one can continue, newest first.

    They were made by this version: another version may read the same bytes differently.
    """
    found = history.to_continue(__version__, before_ms)
    return [EarlierRun(run, RunStore(store, cluster, run.run_id, Chain(run.chain, run.night))) for run in found]


def resume_from(engine: Engine, capture: Capture, earlier: RunStore) -> Capture:
    """The capture, with the segments that an earlier run has already read."""
    few = engine.source(replace(capture, files=capture.of_kind(FileKind.CHECKPOINT)))
    found = resume_segments(engine.spark, capture, earlier.read("segments"), few.read("checkpoints"))
    few.forget()
    return found


def resumed_source(engine: Engine, capture: Capture, earlier: RunStore) -> CaptureSource:
    """The rows of a capture, with what an earlier run has already read of its segments."""
    if not capture.resumed:
        return engine.source(capture)
    now = resumed_frame(engine.spark, capture)
    now = now.select(*_SEGMENT, F.struct("path", "position", "last_offset").alias("now"))
    raw = earlier.read("segments").where(F.col("kind") == "raw").join(broadcast(now), on=list(_SEGMENT), how="inner")
    read = mapped(raw.select(*TABLES["segments"].names, "now"), _read_before, SEGMENT_PARTS)
    return engine.source(capture, read)
