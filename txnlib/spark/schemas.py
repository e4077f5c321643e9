"""The Spark schemas of the tables, derived from the catalogue of columns.

Add or change columns in `txnlib/core/schema`. `delta.store` adds `cluster` and
`run_id` to every table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
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
from txnlib.core.schema import coordinators, coverage, ingested, producers, runs

_SCALARS: Final[Mapping[catalogue.Scalar, DataType]] = {
    catalogue.Scalar.STRING: StringType(),
    catalogue.Scalar.INT: IntegerType(),
    catalogue.Scalar.LONG: LongType(),
    catalogue.Scalar.BOOLEAN: BooleanType(),
    catalogue.Scalar.TIMESTAMP: TimestampType(),
    catalogue.Scalar.BINARY: BinaryType(),
}


def spark_type(kind: catalogue.Type) -> DataType:
    match kind:
        case catalogue.Scalar():
            return _SCALARS[kind]
        case catalogue.Array(element):
            return ArrayType(spark_type(element))
        case catalogue.Struct(fields):
            return spark_schema(fields)


def spark_schema(columns: Iterable[catalogue.Column]) -> StructType:
    return StructType(
        [
            StructField(
                each.name, spark_type(each.type), each.nullable, {"comment": each.comment} if each.comment else None
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
#: The columns that `delta.store` puts before those of every table.
RUN_COLUMNS: Final = spark_schema(runs.RUN_COLUMNS)
CHAIN_COLUMNS: Final = spark_schema(runs.CHAIN_COLUMNS)
SEGMENT_PARTS: Final = spark_schema(ingested.SEGMENT_PARTS.fields)
STATE_FIELDS: Final = spark_schema(producers.STATE_FIELDS.fields)
BATCH_FIELDS: Final = spark_schema(producers.BATCH_FIELDS.fields)
MARKER_FIELDS: Final = spark_schema(producers.MARKER_FIELDS.fields)
TRUNCATED: Final = spark_type(coverage.TRUNCATED)
MARKERS: Final = spark_type(coordinators.MARKERS)


def conform(frame: DataFrame, schema: StructType) -> DataFrame:
    """The frame with exactly the columns, order, types and comments of the schema.

    Raises ValueError if a column is missing: `DataFrame.to` alone would fill it with nulls.
    """
    missing = [field.name for field in schema if field.name not in frame.columns]
    if missing:
        raise ValueError(f"columns are missing: {', '.join(missing)}")
    return frame.to(schema)
