"""A DataFrame over the files of a capture. Tasks open the files; the driver only lists the work.

A task for some files, which reads them to Arrow batches. A Python DataSource does the same, but starts two Python processes of
its own for every table that is read, which a small audit pays for in seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from txnlib.readers import arrow_schemas
from txnlib.readers.capture import Capture, CaptureFile, FileKind
from txnlib.readers.file_parts import put_together
from txnlib.readers.snapshot_start import READ_WHOLE
from txnlib.readers.table_readers import ONLY_IN, SEGMENT_PARTS_TABLE, may_hold, read_table
from txnlib.spark.python_tasks import in_tasks
from txnlib.spark.schemas import READ_ONLY, SEGMENT_PARTS, TABLES

#: Bytes of small files that share one task: enough to be worth a task, little enough to spread.
TASK_BYTES: Final = 32 << 20
#: Of a large capture a task takes more, since each Python task costs its start.
MOST_TASK_BYTES: Final = 256 << 20
#: Of a segment whose records are not decoded, so many bytes are read in the time of one of another file, or in less.
HEADERS_ONLY: Final = 4
#: Every file costs its opening, so a task takes only so many.
TASK_FILES: Final = 256
#: Tasks of which a cluster that does not tell may have use.
_MANY_TASKS: Final = 200


def bundle(files: Sequence[CaptureFile], tasks: int) -> list[list[CaptureFile]]:
    """The files in lists of about the same work, in order: so many lists, or as many as keep each worth a task.

    Of several lists, none mixes topics that every audit reads whole with others: what a task writes is a file, and the next audit
    takes over files of which all holds.
    """
    works = [_work(file) for file in files]
    whole = max(sum(works), 1)
    count = -(-whole // min(max(TASK_BYTES, whole // tasks), MOST_TASK_BYTES))
    bundles: list[list[CaptureFile]] = []
    done, last = 0, (-1, False)
    for file, work in zip(files, works, strict=True):
        kind = ((2 * done + work) * count // (2 * whole), count > 1 and file.topic in READ_WHOLE)
        if kind != last or len(bundles[-1]) == TASK_FILES:
            bundles.append([])
        bundles[-1].append(file)
        done, last = done + work, kind
    return bundles


def _work(file: CaptureFile) -> int:
    is_decoded = file.kind is not FileKind.SEGMENT or file.topic in ONLY_IN.values()
    return file.extent if is_decoded else file.extent // HEADERS_ONLY


def tasks_of(spark: SparkSession) -> int:
    """The tasks that a session spreads work over: those of a shuffle."""
    told = spark.conf.get("spark.sql.shuffle.partitions", "") or ""
    return max(int(told), 1) if told.isdecimal() else _MANY_TASKS  # Databricks may say "auto"


def read_capture(spark: SparkSession, capture: Capture, table: str, held: DataFrame | None = None) -> DataFrame:
    """What a capture holds of one table, with the columns of `readers.columns.TABLES[table]`; one task per bundle.

    The rows are the same however the capture's files are split (`capture_splits`). `held`: what an earlier run has read of
    its segments, as rows of the table, or for `segments` of SEGMENT_PARTS (`continued_segments`).
    """
    schema = READ_ONLY[table] if table in READ_ONLY else TABLES[table]
    found = [file for file in capture.files if may_hold(table, file)]
    if table != "segments" or not capture.parts:
        new = _read(spark, table, [part for file in found for part in _parts_of(capture, file)], schema)
        return new if held is None else held.unionByName(new)
    # One row a file, whoever read it.
    whole = _read(spark, table, [file for file in found if file.path not in capture.parts], schema)
    split = [part for file in found if file.path in capture.parts for part in _parts_of(capture, file)]
    new = _read(spark, SEGMENT_PARTS_TABLE, split, SEGMENT_PARTS)
    parts = new if held is None else held.unionByName(new)
    return whole.unionByName(parts.groupBy("path").applyInArrow(_put_together, schema))


def _parts_of(capture: Capture, file: CaptureFile) -> tuple[CaptureFile, ...]:
    parts = capture.parts.get(file.path)
    return (file,) if parts is None else tuple(replace(file, part=part) for part in parts)


def _read(spark: SparkSession, table: str, files: Sequence[CaptureFile], schema: StructType) -> DataFrame:
    def read(files: list[CaptureFile]) -> Iterator[pa.RecordBatch]:
        for file in files:
            yield from read_table(table, file)

    return in_tasks(spark, bundle(files, tasks_of(spark)), read, schema, weight=len)


def _put_together(parts: pa.Table) -> pa.Table:
    return pa.Table.from_pylist([put_together(parts.to_pylist())], schema=arrow_schemas.SEGMENTS)
