"""The rows of a capture: read in the driver if it is small, else by tasks that open the files.

Each task reads some files into Arrow batches. A Python DataSource does the same, but starts two more Python processes per table,
which costs a small audit seconds.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from txnlib.core.batch_runs import RUNS
from txnlib.readers import arrow_schemas
from txnlib.readers.capture import Capture, CaptureFile
from txnlib.readers.file_parts import put_together
from txnlib.readers.file_splits import Chunk, Reached, bundle, chunks_of, parts_of, reach
from txnlib.readers.table_readers import (
    BATCH_RUNS_TABLE,
    CONSOLE_TEXTS_TABLE,
    SEGMENT_PARTS_TABLE,
    files_of,
    may_hold,
    read_files,
    read_small_capture,
)
from txnlib.spark.local_rows import MAX_BYTES, MAX_ROWS, local_relation
from txnlib.spark.python_tasks import in_tasks
from txnlib.spark.schemas import SEGMENT_PARTS, TABLES

#: Number of tasks if the session does not give one.
_MANY_TASKS: Final = 200


@dataclass(slots=True)
class CaptureSource:
    """The rows of a capture, by table. The driver reads a small one, each file once; tasks read any other, table by table.

    The tables are those of `readers.table_readers`, with `record_batches` of the capture's detail.
    """

    spark: SparkSession
    capture: Capture
    #: Whether the driver is to read it.
    is_small: bool = False
    #: What an earlier run has read of files in this capture, as rows of SEGMENT_PARTS.
    earlier_parts: DataFrame | None = None
    #: What the driver has read: nothing if it was too much, so that tasks read it after all.
    _rows: Mapping[str, pa.Table] | None = field(default=None, init=False, repr=False)
    _reading: Lock = field(default_factory=Lock, init=False, repr=False)

    def read(self, table: str) -> DataFrame | pa.Table:
        """The rows of a table, in the driver if it has read them. Raises UnreadableInputError as `read_tables` does."""
        rows = self._read_by_driver().get(table) if self.is_small else None
        return read_capture(self.spark, self.capture, table, self.earlier_parts) if rows is None else rows

    def frame(self, table: str) -> DataFrame:
        """The same rows as a frame."""
        rows = self.read(table)
        return rows if isinstance(rows, DataFrame) else local_relation(self.spark, rows, _schema_of(table))

    def may_have(self, table: str) -> bool:
        """Whether the table may have rows, as far as it is known without a task."""
        rows = self._read_by_driver().get(table) if self.is_small else None
        return any(may_hold(table, file) for file in self.capture.files) if rows is None else rows.num_rows > 0

    def _read_by_driver(self) -> Mapping[str, pa.Table]:
        with self._reading:
            if self._rows is None:
                earlier = [] if self.earlier_parts is None else self.earlier_parts.toArrow().to_pylist()
                self._rows = read_small_capture(self.capture, earlier, most_rows=MAX_ROWS, most_bytes=MAX_BYTES) or {}
            return self._rows


def _schema_of(table: str) -> StructType:
    return TABLES[{"console_log": "transaction_log", CONSOLE_TEXTS_TABLE: "segments"}.get(table, table)]


def tasks_of(spark: SparkSession) -> int:
    """The number of tasks over which a session spreads work: that of a shuffle."""
    configured = spark.conf.get("spark.sql.shuffle.partitions", "") or ""
    return max(int(configured), 1) if configured.isdecimal() else _MANY_TASKS  # Databricks may say "auto"


def read_capture(spark: SparkSession, capture: Capture, table: str, earlier_parts: DataFrame | None = None) -> DataFrame:
    """The rows of one table in a capture, with the columns of `readers.arrow_schemas.TABLES[table]`; one task per bundle.

    The rows do not depend on how the capture's files are split (`capture_splits`). `earlier_parts`: for `segments`, what an
    earlier run has read of its files, as rows of SEGMENT_PARTS.
    """
    schema = _schema_of(table)
    if table == "record_batches" and capture.detail == RUNS:
        table = BATCH_RUNS_TABLE
    files = [file for file in capture.files if may_hold(table, file)]
    if table != "segments" or not capture.parts:
        return _read(spark, table, [part for file in files for part in files_of(capture, file)], schema)
    # One row per file, however many tasks read it.
    whole = _read(spark, table, [file for file in files if file.path not in capture.parts], schema)
    split = [part for file in files if file.path in capture.parts for part in files_of(capture, file)]
    new = _read(spark, SEGMENT_PARTS_TABLE, split, SEGMENT_PARTS)
    parts = new if earlier_parts is None else earlier_parts.unionByName(new)
    return whole.unionByName(parts.groupBy("path").applyInArrow(_put_together, schema))


def _read(spark: SparkSession, table: str, files: Sequence[CaptureFile], schema: StructType) -> DataFrame:
    def read(files: list[CaptureFile]) -> Iterator[pa.RecordBatch]:
        return read_files(table, files)

    return in_tasks(spark, bundle(files, tasks_of(spark)), read, schema, weight=len)


def _put_together(parts: pa.Table) -> pa.Table:
    return pa.Table.from_pylist([put_together(parts.to_pylist())], schema=arrow_schemas.SEGMENTS)


_REACHED: Final = pa.schema([("chunk", pa.int64()), ("reached", pa.binary())])


def split_large_files(spark: SparkSession, capture: Capture, split_bytes: int | None = None) -> Capture:
    """The capture, with the parts of its files that are larger than `split_bytes`; None: larger than is good for one task."""
    chunks = chunks_of(capture, split_bytes)
    if not chunks:
        return capture
    reached: dict[str, dict[int, Reached]] = defaultdict(dict)
    for row in in_tasks(spark, list(enumerate(chunks)), _reached, "chunk long, reached binary").collect():
        chunk = chunks[row["chunk"]]
        reached[chunk.file.path][chunk.number] = pickle.loads(row["reached"])
    parts = {path: parts_of(found) for path, found in reached.items()}
    return replace(capture, parts={**capture.parts, **{path: found for path, found in parts.items() if len(found) > 1}})


def _reached(numbered: tuple[int, Chunk]) -> Iterator[pa.RecordBatch]:
    number, chunk = numbered
    found = reach(chunk)
    if found is not None:
        yield pa.RecordBatch.from_pylist([{"chunk": number, "reached": pickle.dumps(found)}], schema=_REACHED)
