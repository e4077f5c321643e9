"""How do the files of a capture become a DataFrame? A Python DataSource whose tasks open the files themselves.

The driver only makes the work list; a task gets some of its files and yields Arrow batches. Small files share a task.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final, cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from txnlib.readers.capture import Capture, CaptureFile, FileKind
from txnlib.readers.tables import READERS, read_table
from txnlib.spark.schemas import READ_ONLY, TABLES

FORMAT: Final = "kafka-capture"
#: Bytes of small files that share one task: enough to be worth a task, little enough to spread.
TASK_BYTES: Final = 32 << 20
#: Every file costs its opening, so a task takes only so many.
TASK_FILES: Final = 256


class Files(InputPartition):
    """The files of one task."""

    def __init__(self, files: Sequence[CaptureFile]) -> None:
        self.files = tuple(files)


class CaptureReader(DataSourceReader):
    def __init__(self, table: str, files: Sequence[CaptureFile]) -> None:
        self._table = table
        self._files = files

    def partitions(self) -> Sequence[Files]:
        # Without any partition Spark would make one of its own, which has no files.
        return [Files(files) for files in bundle(self._files)] or [Files(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for file in cast(Files, partition).files:
            yield from read_table(self._table, file)


class CaptureDataSource(DataSource):
    """`spark.read.format("kafka-capture")`, with the work list as options `table` and `files`."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        table = self.options["table"]
        return READ_ONLY[table] if table in READ_ONLY else TABLES[table]

    def reader(self, schema: StructType) -> CaptureReader:
        return CaptureReader(self.options["table"], _loads(self.options["files"]))


def bundle(files: Sequence[CaptureFile], task_bytes: int = TASK_BYTES) -> list[list[CaptureFile]]:
    """The files in lists of about `task_bytes`, in order; a larger file stands alone."""
    bundles: list[list[CaptureFile]] = []
    room = slots = 0
    for file in files:
        if not bundles or file.size > room or slots == 0:
            bundles.append([])
            room, slots = task_bytes, TASK_FILES
        bundles[-1].append(file)
        room, slots = room - file.size, slots - 1
    return bundles


def read_capture(spark: SparkSession, capture: Capture, table: str) -> DataFrame:
    """What a capture holds of one table, with the columns of `readers.columns.TABLES[table]`."""
    kinds = [kind for name, kind in READERS if name == table]
    files = capture.of_kind(*kinds)
    spark.dataSource.register(CaptureDataSource)
    return spark.read.format(FORMAT).option("table", table).option("files", _dumps(files)).load()


def _dumps(files: Sequence[CaptureFile]) -> str:
    return json.dumps([{**asdict(file), "kind": file.kind.value} for file in files])


def _loads(text: Any) -> list[CaptureFile]:
    return [CaptureFile(**{**fields, "kind": FileKind(fields["kind"])}) for fields in json.loads(text)]
