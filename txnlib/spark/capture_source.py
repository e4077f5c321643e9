"""The rows of a capture: read in the driver if it is small, else by tasks. Either way each file is read once, for all
tables.

Each task reads some files into Arrow batches; no file is split between tasks. Spark keeps what the tasks have read on
the disks of its executors, until every table has taken its rows. A Python DataSource would start two more Python
processes per table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StructField, StructType

from txnlib.readers import arrow_schemas
from txnlib.readers.capture import READ_WHOLE, Capture, CaptureFile, FileKind
from txnlib.readers.file_parts import put_together
from txnlib.readers.table_readers import (
    READ_TABLES,
    SCHEMAS,
    SEGMENT_PARTS_TABLE,
    files_to_read,
    may_hold,
    read_files,
    read_small_capture,
)
from txnlib.spark.local_rows import MAX_BYTES, MAX_ROWS, local_relation, no_rows
from txnlib.spark.python_tasks import in_tasks
from txnlib.spark.schemas import SEGMENT_PARTS, TABLES

#: Number of tasks if the session does not give one.
_MANY_TASKS: Final = 200


@dataclass(slots=True)
class CaptureSource:
    """The rows of a capture, by table. The driver reads a small one, tasks read any other; each file once.

    The tables are those of `readers.table_readers`.
    """

    spark: SparkSession
    capture: Capture
    #: Whether the driver is to read it.
    is_small: bool = False
    #: What an earlier run has read of files in this capture, as rows of SEGMENT_PARTS.
    earlier_parts: DataFrame | None = None
    #: What the driver has read: nothing if it was too much, so that tasks read it after all.
    _rows: Mapping[str, pa.Table] | None = field(default=None, init=False, repr=False)
    #: What tasks have read (`read_capture`).
    _read: DataFrame | None = field(default=None, init=False, repr=False)
    #: Whether Spark keeps it. Serverless compute of Databricks does not: there, tasks read the files again for each
    #: table.
    _is_kept: bool = field(default=True, init=False, repr=False)
    #: Held while the capture is read, so that two steps do not both read it.
    _reading: Lock = field(default_factory=Lock, init=False, repr=False)

    def read(self, table: str) -> DataFrame | pa.Table:
        """The rows of a table, in the driver if it has read them. Raises UnreadableInputError as `read_tables` does."""
        rows = self._read_by_driver().get(table) if self.is_small else None
        if rows is not None:
            return rows
        found = self._rows_by_tasks(table)
        if table != "segments" or not self.capture.resumed:
            return found
        # One row per file, with what an earlier run has read of it.
        parts = self._rows_by_tasks(SEGMENT_PARTS_TABLE)
        parts = parts if self.earlier_parts is None else self.earlier_parts.unionByName(parts)
        return found.unionByName(parts.groupBy("path").applyInArrow(_put_together, _SCHEMAS[table]))

    def frame(self, table: str) -> DataFrame:
        """The same rows as a frame."""
        rows = self.read(table)
        return rows if isinstance(rows, DataFrame) else local_relation(self.spark, rows, _SCHEMAS[table])

    def may_have(self, table: str) -> bool:
        """Whether the table may have rows, as far as it is known without a task."""
        rows = self._read_by_driver().get(table) if self.is_small else None
        return any(may_hold(table, file) for file in self.capture.files) if rows is None else rows.num_rows > 0

    def forget(self) -> None:
        """Frees the disk space of what tasks have read. If it is asked for again, they read it again."""
        read, self._read = self._read, None
        if read is not None:
            read.unpersist()

    def _read_by_driver(self) -> Mapping[str, pa.Table]:
        with self._reading:
            if self._rows is None:
                earlier = [] if self.earlier_parts is None else self.earlier_parts.toArrow().to_pylist()
                self._rows = read_small_capture(self.capture, earlier, most_rows=MAX_ROWS, most_bytes=MAX_BYTES) or {}
            return self._rows

    def _rows_by_tasks(self, table: str) -> DataFrame:
        with self._reading:
            if self._read is None and self._is_kept:
                self._read = read_capture(self.spark, self.capture, READ_TABLES)
                try:
                    self._read.persist(StorageLevel.DISK_ONLY)
                except PySparkException:
                    self._read, self._is_kept = None, False
            read = read_capture(self.spark, self.capture, [table]) if self._read is None else self._read
        return read.select(F.inline(table)) if table in read.columns else no_rows(self.spark, _SCHEMAS[table])


#: The columns of the tables that files fill.
_SCHEMAS: Final[Mapping[str, StructType]] = {
    **TABLES,
    SEGMENT_PARTS_TABLE: SEGMENT_PARTS,
    "console_log": TABLES["transaction_log"],
}


def tasks_of(spark: SparkSession) -> int:
    """The number of tasks over which a session spreads work: that of a shuffle."""
    configured = spark.conf.get("spark.sql.shuffle.partitions", "") or ""
    return max(int(configured), 1) if configured.isdecimal() else _MANY_TASKS  # Databricks may say "auto"


#: About how many bytes of rows are one array of `read_capture`: enough to amortise it, little enough to hold.
_ARRAY_BYTES: Final = 1 << 20


def read_capture(spark: SparkSession, capture: Capture, tables: Iterable[str]) -> DataFrame:
    """What tasks read of a capture. Columns: each of these tables for which it has files, as an array of rows, or NULL.

    An array for each table and not a struct, because an absent struct takes as much room in Arrow as a present one.
    """
    files = list(files_to_read(capture))
    tables = [table for table in tables if any(may_hold(table, file) for file in files)]
    files = [file for file in files if any(may_hold(table, file) for table in tables)]
    schema = StructType([StructField(table, ArrayType(_SCHEMAS[table], containsNull=False)) for table in tables])
    columns = pa.schema([(table, pa.list_(pa.struct(list(SCHEMAS[table])))) for table in tables])

    def read(files: list[CaptureFile]) -> Iterator[pa.RecordBatch]:
        for table, batch in read_files(tables, files):
            rows_each = max(_ARRAY_BYTES * batch.num_rows // max(batch.nbytes, 1), 1)
            ends = [*range(0, batch.num_rows, rows_each), batch.num_rows]
            rows = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), batch.to_struct_array())
            arrays = [rows if column.name == table else pa.nulls(len(rows), column.type) for column in columns]
            yield pa.RecordBatch.from_arrays(arrays, schema=columns)

    return in_tasks(spark, bundle(files, tasks_of(spark)), read, schema, weight=len)


def _put_together(parts: pa.Table) -> pa.Table:
    return pa.Table.from_pylist([put_together(parts.to_pylist())], schema=arrow_schemas.SEGMENTS)


# ---- Files of one task

#: Number of bytes of small files per task: enough to be worth a task, and few enough to spread.
TASK_BYTES: Final = 32 << 20
#: In a large capture, a task reads more, because every Python task has a startup cost.
MOST_TASK_BYTES: Final = 256 << 20
#: A segment whose records are not decoded costs at most 1/4 of the time per byte of any other file.
HEADERS_ONLY: Final = 4
#: Number of small files per task, because opening each file takes time. In a large capture, a task reads more of them,
#: too.
TASK_FILES: Final = 256
MOST_TASK_FILES: Final = 2_048


def bundle(files: Sequence[CaptureFile], tasks: int) -> list[list[CaptureFile]]:
    """The files in lists of about equal work, in order: `tasks` lists, or fewer if these would be too small.

    If there are several lists, no list mixes topics that every audit reads in full with others: each task writes its
    own file, and an incremental audit carries over files in which all rows are unchanged.
    """
    works = [
        file.extent if file.kind is not FileKind.SEGMENT or file.topic in READ_WHOLE else file.extent // HEADERS_ONLY
        for file in files
    ]
    whole = max(sum(works), 1)
    count = -(-whole // min(max(TASK_BYTES, whole // tasks), MOST_TASK_BYTES))
    most_files = min(max(TASK_FILES, len(files) // tasks), MOST_TASK_FILES)
    bundles: list[list[CaptureFile]] = []
    done, last = 0, (-1, False)
    for file, work in zip(files, works, strict=True):
        kind = ((2 * done + work) * count // (2 * whole), count > 1 and file.topic in READ_WHOLE)
        if kind != last or len(bundles[-1]) == most_files:
            bundles.append([])
        bundles[-1].append(file)
        done, last = done + work, kind
    return bundles
