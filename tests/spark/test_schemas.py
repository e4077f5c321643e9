"""The schemas of Spark and Arrow, compared with the catalogue."""

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from txnlib.core.schema import TABLES
from txnlib.core.schema.columns import BOOLEAN, INT, LONG, STRING, TIMESTAMP, Array, Column, struct
from txnlib.readers import arrow_schemas
from txnlib.spark import schemas

COLUMNS = (
    Column("topic", STRING, "Topic."),
    Column("size", INT),
    Column("is_control", BOOLEAN),
    Column("as_of", TIMESTAMP),
    Column("tails", Array(struct(position=LONG, kinds=Array(STRING)))),
    Column("offset", LONG, nullable=False),
)


def test_a_spark_schema_has_the_columns_with_their_comments():
    assert schemas.spark_schema(COLUMNS, has_comments=True) == StructType(
        [
            StructField("topic", StringType(), metadata={"comment": "Topic."}),
            StructField("size", IntegerType()),
            StructField("is_control", BooleanType()),
            StructField("as_of", TimestampType()),
            StructField(
                "tails",
                ArrayType(
                    StructType([StructField("position", LongType()), StructField("kinds", ArrayType(StringType()))])
                ),
            ),
            StructField("offset", LongType(), nullable=False),
        ]
    )


def test_an_arrow_schema_has_the_columns():
    assert arrow_schemas.arrow_schema(COLUMNS) == pa.schema(
        [
            ("topic", pa.string()),
            ("size", pa.int32()),
            ("is_control", pa.bool_()),
            ("as_of", pa.timestamp("us", tz="UTC")),
            ("tails", pa.list_(pa.struct([("position", pa.int64()), ("kinds", pa.list_(pa.string()))]))),
            pa.field("offset", pa.int64(), nullable=False),
        ]
    )


def shape(schema):
    return [(field.name, field.dataType, field.nullable) for field in schema]


@pytest.mark.parametrize("name", arrow_schemas.TABLES)
def test_readers_yield_what_spark_expects(name):
    arrow, spark = (
        getattr(arrow_schemas, name.upper()),
        schemas.TABLES[name],
    )
    assert shape(from_arrow_schema(arrow)) == shape(spark)


@pytest.mark.parametrize("name", TABLES)
def test_a_schema_has_the_name_of_its_table(name):
    assert getattr(schemas, name.upper(), schemas.TABLES[name]) == schemas.TABLES[name]
    assert tuple(schemas.TABLES[name].names) == TABLES[name].names
    if name in arrow_schemas.TABLES:
        assert arrow_schemas.TABLES[name] == getattr(arrow_schemas, name.upper())
