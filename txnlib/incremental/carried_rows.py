"""Rows carried over unchanged from an earlier run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from txnlib.incremental.linked_files import DataFile
from txnlib.spark.schemas import TABLES

#: The boolean column that flags rows to carry over.
IS_UNCHANGED: Final = "is_unchanged"


class RunTables(Protocol):
    """The tables of one run."""

    @property
    def run_id(self) -> str: ...

    def read(self, name: str) -> DataFrame: ...


@dataclass(frozen=True, slots=True)
class CarriedRows:
    """Rows of a table that are the same in an earlier run and in this one."""

    earlier: RunTables
    #: Adds the boolean column `is_unchanged` to rows of the earlier run, and removes none.
    flag: Callable[[DataFrame], DataFrame]
    #: Topics and partitions with rows that may have changed; None means all.
    changed_partitions: frozenset[tuple[str, int]] | None = None
    #: `changed_partitions` applies only to files with these values of the partition columns of the table, and without NULL in the
    #: columns `not_null`. All other files are checked row by row.
    partition_values: Mapping[str, str] = field(default_factory=dict)
    not_null: tuple[str, ...] = ()

    def among(self, rows: DataFrame, name: str) -> DataFrame:
        """The unchanged rows among these rows of the earlier run."""
        return self.flag(rows).where(IS_UNCHANGED).select(*TABLES[name].names)

    def rows(self, name: str) -> DataFrame:
        """All unchanged rows of the earlier run."""
        return self.among(self.earlier.read(name), name)

    def is_unchanged(self, file: DataFile) -> bool:
        """Whether the statistics of a file in the log prove that all its rows are unchanged."""
        applies = self.partition_values.items() <= file.values.items() and all(file.nulls.get(name) == 0 for name in self.not_null)
        first, last, low, high = (bound.get(name) for name in ("topic", "partition") for bound in (file.least, file.most))
        if self.changed_partitions is None or not applies or first is None or last is None or low is None or high is None:
            return False
        return not any(first <= topic <= last and low <= partition <= high for topic, partition in self.changed_partitions)

    def split(self, spark: SparkSession, name: str, files: Sequence[DataFile]) -> tuple[list[DataFile], DataFrame]:
        """The files of the earlier run in which every row is unchanged, and the unchanged rows of its other files."""
        unproven = [file for file in files if not self.is_unchanged(file)]
        unchanged = unchanged_files(self.flag(rows_of_files(spark, name, unproven))) if unproven else set()
        changed = [file for file in unproven if file.path.name not in unchanged]
        return [file for file in files if file not in changed], self.among(rows_of_files(spark, name, changed), name)


@dataclass(frozen=True, slots=True)
class ResumedTable:
    """A table of a run that resumes: its new rows, and those carried over."""

    new: DataFrame
    carried: CarriedRows


def unchanged_files(flagged: DataFrame) -> set[str]:
    """The files, by column `file`, in which every row is unchanged."""
    by_file = flagged.groupBy("file").agg(F.bool_and(IS_UNCHANGED).alias(IS_UNCHANGED))
    return {row["file"] for row in by_file.where(IS_UNCHANGED).collect()}


def rows_of_files(spark: SparkSession, name: str, files: Sequence[DataFile]) -> DataFrame:
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
