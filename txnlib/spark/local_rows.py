"""Rows of the driver as frames that Spark's optimiser knows whole: what is made of empty ones needs no job.

`createDataFrame` with a list pickles the rows for Python tasks, so the optimiser does not even know whether there are
any.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, cast

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, StructType

#: Most rows to collect, and most bytes of them to keep. A driver of 2 GiB can hold as many for every table of a run.
MAX_ROWS: Final = 100_000
MAX_BYTES: Final = 32 << 20
#: Most rows to keep in plans. Spark holds each as objects, once for each use in a plan, of which the largest has fifty.
KEPT_ROWS: Final = 10_000
#: Error condition of Spark if a result has more bytes than `spark.driver.maxResultSize`.
_TOO_LARGE: Final = "spark.driver.maxResultSize"
#: The setting that plans again after every stage. It is off when a session is tuned for few rows (`delta.tuning`).
ADAPTIVE: Final = "spark.sql.adaptive.enabled"
_SCALARS: Final = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}


def local_rows(spark: SparkSession, rows: Iterable[Sequence[object]], schema: StructType | str) -> DataFrame:
    """A frame of a few rows. `schema`: also as text (`topic string, partition int`)."""
    columns = schema if isinstance(schema, StructType) else cast(StructType, StructType.fromDDL(schema))
    return spark.createDataFrame(arrow_table(rows, columns), columns)


def arrow_table(rows: Iterable[Sequence[object]], schema: StructType) -> pa.Table:
    """Rows with the columns of a Spark schema, in order."""
    named = [dict(zip(schema.names, row, strict=True)) for row in rows]
    return pa.Table.from_pylist(named, schema=arrow_schema(schema))


def collect(frame: DataFrame, most_rows: int | None = None) -> pa.Table | None:
    """The rows of a frame; None if there are too many to hold. `most_rows`: MAX_ROWS unless given."""
    most = MAX_ROWS if most_rows is None else most_rows
    try:
        rows = frame.limit(most + 1).toArrow()
    except Exception as error:  # Spark 4.2 throws what only py4j knows, which Spark Connect has not
        if _TOO_LARGE in str(error):
            return None
        raise
    return None if rows.num_rows > most else rows


def local_relation(spark: SparkSession, rows: pa.Table, schema: StructType) -> DataFrame:
    """Collected rows as a frame of one partition.

    In one partition, joins, windows and aggregates need no shuffle, which would be a stage of its own.
    """
    if rows.num_rows == 0:  # createDataFrame refuses columns without chunks
        rows = pa.Table.from_arrays([pa.array([], field.type) for field in rows.schema], schema=rows.schema)
    # After an empty chunk it would lose the rows of all others, without a word (seen with Spark 4.2).
    return spark.createDataFrame(rows.combine_chunks(), schema).coalesce(1)


def settled(frame: DataFrame) -> DataFrame:
    """The frame with its rows already computed, in a session that is tuned for few rows; elsewhere the frame itself.

    A plan contains a frame as often as later steps use it, and Spark optimises each of these copies. For few rows, that
    takes longer than computing them.
    """
    if setting(frame.sparkSession, ADAPTIVE) != "false":
        return frame
    nullable = relaxed(frame)
    rows = collect(nullable, KEPT_ROWS)
    is_much = rows is None or rows.nbytes > MAX_BYTES
    return frame if is_much else local_relation(frame.sparkSession, rows, nullable.schema)


def relaxed(frame: DataFrame) -> DataFrame:
    """The frame, where every part of a value may be NULL.

    Arrow refuses a struct that is NULL if one of its fields must not be, as those of an outer join may be.
    """
    before = frame.schema
    after = before.toNullable()
    changed = [(old.name, new.dataType) for old, new in zip(before, after, strict=True) if old.dataType != new.dataType]
    return (
        frame.withColumns({name: F.col(f"`{name}`").cast(data_type) for name, data_type in changed})
        if changed
        else frame
    )


def no_rows(spark: SparkSession, schema: StructType | str) -> DataFrame:
    """A frame without rows."""
    return local_rows(spark, (), schema)


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema of a Spark schema."""
    return pa.schema(_fields(schema))


def _fields(schema: StructType) -> list[Any]:
    return [pa.field(field.name, _arrow_type(field.dataType), field.nullable) for field in schema]


def _arrow_type(data_type: DataType) -> Any:
    match data_type:
        case ArrayType():
            return pa.list_(pa.field("element", _arrow_type(data_type.elementType), data_type.containsNull))
        case StructType():
            return pa.struct(_fields(data_type))
    return _SCALARS[data_type.simpleString()]


def setting(spark: SparkSession, key: str) -> str | None:
    """The value of a setting; None if it has none, or if the server does not tell it (serverless compute of
    Databricks)."""
    try:
        value = spark.conf.get(key, None)
    except PySparkException:
        return None
    return None if value is None else str(value)
