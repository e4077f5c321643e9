"""Delta tables of a path or of a catalog schema, kept by Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from txnlib.core.schema import TABLES as CATALOGUE
from txnlib.core.schema.schema_number import Shape, contains, shape_of, stored_shape
from txnlib.core.sql_text import quoted
from txnlib.engine.spark_session import all_settings, change
from txnlib.engine.tables import (
    AUDIT_RUNS,
    CONSTRAINT,
    STATISTICS,
    Commit,
    Rows,
    constraints_of,
    newest_commit,
    statistics_of,
    stored_columns,
)
from txnlib.spark.frames import frame_of, no_rows
from txnlib.spark.schemas import TABLES, spark_schema
from txnlib.version import SCHEMA_NUMBER, SCHEMA_PROPERTY

#: A run writes only its own partition, in one or two kinds of files, so rows need not be sorted by partition first. The
#: sort takes half of a large write.
SETTINGS: Final = {
    "spark.sql.maxConcurrentOutputFileWriters": "3",
    # Spark's default, INT96, stores nanoseconds, and other readers wrap values beyond their range (years after 2262).
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}


def stored_schema(name: str) -> StructType:
    """The columns of a table as stored, with their comments."""
    return spark_schema(stored_columns(name), has_comments=True)


@dataclass(frozen=True, slots=True)
class SparkTables:
    """The tables under a folder or any Hadoop URI, or in a catalog schema; never both."""

    spark: SparkSession
    output: str | None = None
    schema: str | None = None
    #: Tables that were seen; none of them goes away.
    _seen: set[str] = field(default_factory=set, repr=False, compare=False)

    def exists(self, name: str) -> bool:
        if name in self._seen:
            return True
        try:
            _ = self._load(name).schema  # Spark Connect looks up the table only here
        except AnalysisException as error:
            if not str(error.getCondition()).endswith("NOT_FOUND"):
                raise
            return False
        self._seen.add(name)
        return True

    def read(self, name: str) -> DataFrame:
        return self._load(name)

    def if_any(self, made: DataFrame) -> Rows | None:
        with suppress(PySparkException):  # serverless compute of Databricks keeps nothing
            made.persist(StorageLevel.DISK_ONLY)
        if not made.isEmpty():
            return made
        made.unpersist()
        return None

    def write(self, name: str, made: Rows, stamps: Mapping[str, Any], *, replaced: str | None) -> Commit:
        is_new = not self.exists(name)
        rows: Any = frame_of(self.spark, made, TABLES[name]) if isinstance(made, pa.Table) else made
        writer = (
            self._stored(rows, name, stamps).write.format("delta").mode("append" if replaced is None else "overwrite")
        )
        # By one of these, the commit is found again.
        writer = writer.option(*(("replaceWhere", replaced) if replaced else ("userMetadata", stamps["run_id"])))
        if is_new or self.schema is None:
            writer = writer.partitionBy("run_id").options(
                **{STATISTICS: ",".join(statistics_of(name))},
                **{f"{CONSTRAINT}{key}": condition for key, condition in constraints_of(name).items()},
            )
        with _set(self.spark, SETTINGS):
            self._save(writer, name)
        rows.unpersist()
        if is_new and self.schema is not None:  # no option of a writer does this (Spark 4.2)
            self.spark.sql(f"COMMENT ON TABLE {self.sql_name(name)} IS {quoted(CATALOGUE[name].comment)}")
        if name == AUDIT_RUNS and self.noted_number() is None:
            self.note_number()
        if isinstance(made, pa.Table):
            return Commit(made.num_rows)
        return newest_commit(self.spark, self.sql_name(name), str(stamps["run_id"]))

    def noted_number(self) -> str | None:
        return self._properties(AUDIT_RUNS).get(SCHEMA_PROPERTY)

    def shape(self, name: str) -> Shape:
        return stored_shape(json.loads(self._load(name).schema.json()))

    def extend(self, name: str, *, is_constrained_anew: bool) -> None:
        if not contains(self.shape(name), shape_of(stored_columns(name))):
            rows = no_rows(self.spark, stored_schema(name))
            self._save(rows.write.format("delta").mode("append").option("mergeSchema", "true"), name)
        if is_constrained_anew:
            for key in self._properties(name):
                if key.startswith(CONSTRAINT):
                    self._alter(name, f"DROP CONSTRAINT {key.removeprefix(CONSTRAINT)}")
            for key, condition in constraints_of(name).items():
                self._alter(name, f"ADD CONSTRAINT {key} CHECK ({condition})")

    def note_number(self) -> None:
        self._alter(AUDIT_RUNS, f"SET TBLPROPERTIES ({quoted(SCHEMA_PROPERTY)} = '{SCHEMA_NUMBER}')")

    def _alter(self, name: str, how: str) -> None:
        self.spark.sql(f"ALTER TABLE {self.sql_name(name)} {how}")

    def _properties(self, name: str) -> dict[str, str]:
        # SHOW TBLPROPERTIES finds no path where another catalog than Spark's is the current one.
        (detail,) = self.spark.sql(f"DESCRIBE DETAIL {self.sql_name(name)}").collect()
        return dict(detail["properties"])

    def delete(self, name: str, condition: str) -> None:
        self.spark.sql(f"DELETE FROM {self.sql_name(name)} WHERE {condition}")

    def compact(self, name: str, run_id: str) -> None:
        of_run = f"run_id = {quoted(run_id)}"
        self.spark.sql(f"OPTIMIZE {self.sql_name(name)} WHERE {of_run}")

    def vacuum(self, name: str) -> None:
        """By the log of the table, in about a second. If the log does not go back far enough, lists all files."""
        try:
            self.spark.sql(f"VACUUM {self.sql_name(name)} LITE")
        except Exception as error:
            if "VACUUM FULL" not in str(error):
                raise
            self.spark.sql(f"VACUUM {self.sql_name(name)}")

    def sql_name(self, name: str) -> str:
        """The name of a table in a SQL statement."""
        if self.output is None:
            return f"{self.schema}.{name}"
        folder = self.output.replace("`", "``")
        return f"delta.`{folder}/{name}`"

    def _load(self, name: str) -> DataFrame:
        if self.output is None:
            return self.spark.read.table(f"{self.schema}.{name}")
        return self.spark.read.format("delta").load(f"{self.output}/{name}")

    def _save(self, writer: DataFrameWriter, name: str) -> None:
        if self.output is None:
            writer.saveAsTable(f"{self.schema}.{name}")
        else:
            writer.save(f"{self.output}/{name}")

    def _stored(self, rows: DataFrame, name: str, stamps: Mapping[str, Any]) -> DataFrame:
        """The rows as they are stored.

        Types are passed as text, without a collation: Spark Connect adds it to each string type that a client passes,
        and Delta stores it: `string collate UTF8_BINARY`, which other readers refuse (seen with Spark 4.2, Delta 4.4).
        """
        columns = []
        for column in stored_schema(name):
            value = F.lit(stamps[column.name]) if column.name in stamps else F.col(column.name)
            columns.append(value.cast(column.dataType.simpleString()).alias(column.name, metadata=column.metadata))
        return rows.select(*columns)


@contextmanager
def _set(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Settings of the session while something is written."""
    known = all_settings(spark)
    change(spark, settings)
    try:
        yield
    finally:
        change(spark, {key: known.get(key) for key in settings})
