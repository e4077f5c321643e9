"""The rows of a capture. Each file is read once, for all tables.

On Spark, each task reads some files into Arrow batches; no file is split between tasks. Spark keeps what the tasks have
read on the disks of its executors, until every table has taken its rows. A Python DataSource would start two more
Python processes per table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StructField, StructType

from txnlib.readers import table_readers
from txnlib.readers.capture import Capture, CaptureFile
from txnlib.readers.table_readers import READ_TABLES, bundle, may_hold, read_files
from txnlib.spark.frames import no_rows
from txnlib.spark.python_tasks import in_tasks
from txnlib.spark.schemas import TABLES

#: Number of tasks if the session does not give one.
_MANY_TASKS: Final = 200


@dataclass(slots=True)
class CaptureSource(ABC):
    """The rows of a capture, by table; each file is read once. The tables are those of `readers.table_readers`."""

    spark: SparkSession
    capture: Capture
    #: Called with the bytes of some files once they were read.
    is_read: Callable[[int], object] = field(default=lambda size: None, kw_only=True, repr=False)

    def may_have(self, table: str) -> bool:
        """Whether the table may have rows, as far as it is known before any file is read."""
        return any(may_hold(table, file) for file in self.capture.files)

    def replace_capture(self, capture: Capture) -> None:
        """Reads the files of another capture from now on."""
        if capture is not self.capture:
            self.forget()
            self.capture = capture

    @abstractmethod
    def forget(self) -> None:
        """Frees the disk space of what was read. A later `read` reads the files again."""

    @abstractmethod
    def read(self, table: str) -> DataFrame:
        """The rows of a table. Raises UnreadableInputError as `read_tables` does."""


@dataclass(slots=True)
class TaskSource(CaptureSource):
    """A capture that tasks of Spark read."""

    #: What they have read (`read_capture`).
    _read: DataFrame | None = field(default=None, init=False, repr=False)
    #: Whether Spark keeps it. Serverless compute of Databricks does not: there, tasks read the files again for each
    #: table.
    _is_kept: bool = field(default=True, init=False, repr=False)

    def forget(self) -> None:
        read, self._read = self._read, None
        if read is not None:
            read.unpersist()

    def read(self, table: str) -> DataFrame:
        if not self.may_have(table):
            return no_rows(self.spark, SCHEMAS[table])
        if self._read is None and self._is_kept:
            self._read = read_capture(self.spark, self.capture, READ_TABLES)
            try:
                self._read.persist(StorageLevel.DISK_ONLY)
            except PySparkException:
                self._read, self._is_kept = None, False
        read = read_capture(self.spark, self.capture, [table]) if self._read is None else self._read
        return read.select(F.inline(table))


#: The columns of the tables that files fill.
SCHEMAS: Final[Mapping[str, StructType]] = {
    **TABLES,
    "console_log": TABLES["transaction_log"],
}


def tasks_of(spark: SparkSession) -> int:
    """The number of tasks over which a session spreads work: that of a shuffle."""
    try:
        configured = spark.conf.get("spark.sql.shuffle.partitions") or ""
    except PySparkException:  # not every server tells it
        configured = ""
    return max(int(configured), 1) if configured.isdecimal() else _MANY_TASKS  # Databricks may say "auto"


#: About how many bytes of rows are one array of `read_capture`: enough to amortise it, little enough to hold.
_ARRAY_BYTES: Final = 1 << 20


def read_capture(spark: SparkSession, capture: Capture, tables: Iterable[str]) -> DataFrame:
    """What tasks read of a capture. Columns: each of these tables for which it has files, as an array of rows, or NULL.

    An array for each table and not a struct, because an absent struct takes as much room in Arrow as a present one.
    """
    files = capture.files
    tables = [table for table in tables if any(may_hold(table, file) for file in files)]
    holding = [file for file in files if any(may_hold(table, file) for table in tables)]
    schema = StructType([StructField(table, ArrayType(SCHEMAS[table], containsNull=False)) for table in tables])
    columns = pa.schema([(table, pa.list_(pa.struct(list(table_readers.SCHEMAS[table])))) for table in tables])

    def read(files: list[CaptureFile]) -> Iterator[pa.RecordBatch]:
        for table, batch in read_files(tables, files):
            rows_each = max(_ARRAY_BYTES * batch.num_rows // max(batch.nbytes, 1), 1)
            ends = [*range(0, batch.num_rows, rows_each), batch.num_rows]
            rows = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), batch.to_struct_array())
            arrays = [rows if column.name == table else pa.nulls(len(rows), column.type) for column in columns]
            yield pa.RecordBatch.from_arrays(arrays, schema=columns)

    return in_tasks(spark, bundle(holding, tasks_of(spark)), read, schema, weight=len)
