"""The Spark schemas of the tables, derived from the catalogue of columns.

Add or change columns in `txnlib/core/schema`. `engine.store` adds `cluster` and
`run_id` to every table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from txnlib.core import schema as catalogue
from txnlib.core.schema import coordinator_tables, coverage_tables, producers, rows_of_runs

_SCALARS: Final[Mapping[catalogue.Scalar, DataType]] = {
    catalogue.Scalar.STRING: StringType(),
    catalogue.Scalar.INT: IntegerType(),
    catalogue.Scalar.LONG: LongType(),
    catalogue.Scalar.BOOLEAN: BooleanType(),
    catalogue.Scalar.TIMESTAMP: TimestampType(),
}


def spark_type(kind: catalogue.Type) -> DataType:
    match kind:
        case catalogue.Scalar():
            return _SCALARS[kind]
        case catalogue.Array(element):
            return ArrayType(spark_type(element))
        case catalogue.Struct(fields):
            return spark_schema(fields)


def spark_schema(columns: Iterable[catalogue.Column], *, has_comments: bool = False) -> StructType:
    """The Spark schema of columns. Comments belong to stored tables only: the embedded engine does not compare columns
    that have metadata with others."""
    return StructType(
        [
            StructField(
                *(each.name, spark_type(each.type), each.nullable),
                {"comment": each.comment} if has_comments and each.comment else None,
            )
            for each in columns
        ]
    )


TOPIC_PARTITION: Final = catalogue.TOPIC_PARTITION
COPY: Final = catalogue.COPY
PRODUCER: Final = catalogue.PRODUCER
OPEN_TRANSACTION: Final = catalogue.OPEN_TRANSACTION

TABLES: Final[Mapping[str, StructType]] = {
    name: spark_schema(table.columns) for name, table in catalogue.TABLES.items()
}
#: The columns that `engine.store` puts before those of every table.
RUN_COLUMNS: Final = spark_schema(rows_of_runs.RUN_COLUMNS)
STATE_FIELDS: Final = spark_schema(producers.STATE_FIELDS.fields)
BATCH_FIELDS: Final = spark_schema(producers.BATCH_FIELDS.fields)
MARKER_FIELDS: Final = spark_schema(producers.MARKER_FIELDS.fields)
TRUNCATED: Final = spark_type(coverage_tables.TRUNCATED)
MARKERS: Final = spark_type(coordinator_tables.MARKERS)


def named(fields: StructType, values: Iterable[str]) -> str:
    """A struct with these fields, of one value for each. SQL."""
    typed = zip(fields, values, strict=True)
    pairs = (f"'{each.name}', CAST({value} AS {each.dataType.simpleString()})" for each, value in typed)
    return f"named_struct({', '.join(pairs)})"


def conform(frame: DataFrame, schema: StructType) -> DataFrame:
    """The frame with exactly the columns, order and types of the schema."""
    return frame.select(*schema.names).to(schema)
