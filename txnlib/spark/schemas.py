"""The Spark schemas of the tables, derived from the catalogue of columns.

A schema has the name of its table, in capitals. Add or change columns in `txnlib/core/schema`. `delta.store` adds `cluster` and
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
from txnlib.core.schema import coordinators, coverage, ingested, producers, reports, runs

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
    return StructType([column(each.name, spark_type(each.type), each.comment, nullable=each.nullable) for each in columns])


def column(name: str, data_type: DataType, comment: str, *, nullable: bool = True) -> StructField:
    return StructField(name, data_type, nullable, metadata={"comment": comment} if comment else None)


TOPIC_PARTITION: Final = catalogue.TOPIC_PARTITION
COPY: Final = catalogue.COPY
PRODUCER: Final = catalogue.PRODUCER
OPEN_TRANSACTION: Final = catalogue.OPEN_TRANSACTION

TABLES: Final[Mapping[str, StructType]] = {name: spark_schema(table.columns) for name, table in catalogue.TABLES.items()}

RECORD_BATCHES: Final = TABLES["record_batches"]
TRANSACTION_LOG: Final = TABLES["transaction_log"]
COMMITTED_OFFSETS: Final = TABLES["committed_offsets"]
LIVE_PRODUCERS: Final = TABLES["live_producers"]
LIVE_TRANSACTIONS: Final = TABLES["live_transactions"]
SEGMENTS: Final = TABLES["segments"]
PRODUCER_SNAPSHOTS: Final = TABLES["producer_snapshots"]
ABORTED_TRANSACTIONS: Final = TABLES["aborted_transactions"]
CHECKPOINTS: Final = TABLES["checkpoints"]
METADATA_LOG: Final = TABLES["metadata_log"]
PARTITION_ASSIGNMENTS: Final = TABLES["partition_assignments"]
CLUSTER_SETTINGS: Final = TABLES["cluster_settings"]
BROKER_SESSIONS: Final = TABLES["broker_sessions"]
PRODUCER_ID_BLOCKS: Final = TABLES["producer_id_blocks"]
COVERAGE: Final = TABLES["coverage"]
QUARANTINE: Final = TABLES["quarantine"]
PRODUCER_SPANS: Final = TABLES["producer_spans"]
CHECKED_BATCHES: Final = TABLES["checked_batches"]
PRODUCER_STATES: Final = TABLES["producer_states"]
PARTITION_TRANSACTIONS: Final = TABLES["partition_transactions"]
COORDINATOR_STATES: Final = TABLES["coordinator_states"]
TRANSACTIONAL_IDS: Final = TABLES["transactional_ids"]
TRANSACTIONS: Final = TABLES["transactions"]
PRODUCER_ID_OWNERS: Final = TABLES["producer_id_owners"]
TRANSACTION_OUTCOMES: Final = TABLES["transaction_outcomes"]
OPEN_TRANSACTIONS: Final = TABLES["open_transactions"]
HANGING_TRANSACTIONS: Final = TABLES["hanging_transactions"]
LATE_TRANSACTIONS: Final = TABLES["late_transactions"]
BROKERS: Final = TABLES["brokers"]
PARTITIONS: Final = TABLES["partitions"]
FINDINGS: Final = TABLES["findings"]
AUDIT_RUNS: Final = TABLES["audit_runs"]

#: The columns that `delta.store` puts before those of every table.
RUN_COLUMNS: Final = spark_schema(runs.RUN_COLUMNS)
CHAIN_COLUMNS: Final = spark_schema(runs.CHAIN_COLUMNS)
SEGMENT_PARTS: Final = spark_schema(ingested.SEGMENT_PARTS.fields)
STATE_FIELDS: Final = spark_schema(producers.STATE_FIELDS.fields)
BATCH_FIELDS: Final = spark_schema(producers.BATCH_FIELDS.fields)
MARKER_FIELDS: Final = spark_schema(producers.MARKER_FIELDS.fields)
CAUSE: Final = spark_schema(reports.CAUSE.fields)
EVIDENCE_RECORD: Final = spark_schema(reports.EVIDENCE_RECORD.fields)
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
