"""Rows of the driver as frames that Spark's optimiser knows whole: what is made of empty ones needs no job.

`createDataFrame` with a list pickles the rows for Python tasks, so the optimiser does not even know whether there are any.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, DataType, StructType

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
    named = [dict(zip(columns.names, row, strict=True)) for row in rows]
    table = pa.Table.from_pylist(named, schema=pa.schema(_fields(columns)))
    return spark.createDataFrame(table, columns)


def no_rows(spark: SparkSession, schema: StructType | str) -> DataFrame:
    """A frame without rows."""
    return local_rows(spark, (), schema)


def _fields(schema: StructType) -> list[Any]:
    return [pa.field(field.name, _arrow_type(field.dataType), field.nullable) for field in schema]


def _arrow_type(data_type: DataType) -> Any:
    match data_type:
        case ArrayType():
            return pa.list_(pa.field("element", _arrow_type(data_type.elementType), data_type.containsNull))
        case StructType():
            return pa.struct(_fields(data_type))
    return _SCALARS[data_type.simpleString()]
