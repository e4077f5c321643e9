"""Rows carried over unchanged from an earlier run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from txnlib.delta.linked_files import DataFile
from txnlib.spark.schemas import TABLES

#: The boolean column that marks rows to carry over.
HOLDS: Final = "holds"


class Readable(Protocol):
    """The tables of one run."""

    @property
    def run_id(self) -> str: ...

    def read(self, name: str) -> DataFrame: ...


@dataclass(frozen=True, slots=True)
class Held:
    """Rows of a table that are the same in an earlier run and in this one."""

    earlier: Readable
    #: Adds the boolean column `holds` to rows of the earlier run, and removes none.
    mark: Callable[[DataFrame], DataFrame]
    #: Topics and partitions with rows that may have changed; None means all.
    doubtful: frozenset[tuple[str, int]] | None = None
    #: `doubtful` applies only to files with these values of the partition columns of the table, and without NULL in the columns
    #: `without_null`. All other files are checked row by row.
    told_of: Mapping[str, str] = field(default_factory=dict)
    without_null: tuple[str, ...] = ()

    def of(self, rows: DataFrame, name: str) -> DataFrame:
        """The given rows of the earlier run that are unchanged."""
        return self.mark(rows).where(HOLDS).select(*TABLES[name].names)

    def rows(self, name: str) -> DataFrame:
        """All unchanged rows of the earlier run."""
        return self.of(self.earlier.read(name), name)

    def is_whole(self, file: DataFile) -> bool:
        """Whether the statistics of a file in the log prove that all its rows are unchanged."""
        is_told = self.told_of.items() <= file.values.items() and all(file.nulls.get(name) == 0 for name in self.without_null)
        first, last, low, high = (bound.get(name) for name in ("topic", "partition") for bound in (file.least, file.most))
        if self.doubtful is None or not is_told or first is None or last is None or low is None or high is None:
            return False
        return not any(first <= topic <= last and low <= partition <= high for topic, partition in self.doubtful)

    def in_files(self, spark: SparkSession, name: str, files: Sequence[DataFile]) -> tuple[list[DataFile], DataFrame]:
        """The files of the earlier run in which every row is unchanged, and the unchanged rows of its other files."""
        doubtful = [file for file in files if not self.is_whole(file)]
        whole = whole_files(self.mark(rows_in(spark, name, doubtful))) if doubtful else set()
        torn = [file for file in doubtful if file.path.name not in whole]
        return [file for file in files if file not in torn], self.of(rows_in(spark, name, torn), name)


@dataclass(frozen=True, slots=True)
class Grown:
    """A table of a run: new rows, and rows carried over."""

    made: DataFrame
    held: Held


def whole_files(marked: DataFrame) -> set[str]:
    """The files, by column `file`, in which every row is unchanged."""
    by_file = marked.groupBy("file").agg(F.bool_and(HOLDS).alias(HOLDS))
    return {row["file"] for row in by_file.where(HOLDS).collect()}


def rows_in(spark: SparkSession, name: str, files: Sequence[DataFile]) -> DataFrame:
    """The rows of some files of a table, with the name of the file as column `file`."""
    rows = spark.createDataFrame([], TABLES[name]).withColumn("file", F.lit(""))
    for values in {tuple(file.values.items()): file.values for file in files}.values():
        # Partition values are in the log, not in the file.
        inside = StructType([field for field in TABLES[name] if field.name not in values])
        constants = {field.name: F.lit(values[field.name]).cast(field.dataType) for field in TABLES[name] if field.name in values}
        paths = [str(file.path) for file in files if file.values == values]
        read = spark.read.schema(inside).parquet(*paths)
        rows = rows.unionByName(read.withColumns({**constants, "file": F.col("_metadata.file_name")}))
    return rows
