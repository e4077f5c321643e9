"""Logs of tests as frames, and the comparison of frames."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from chispa import assert_df_equality
from hypothesis import HealthCheck, Phase, settings
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType

from txnlib.core.kafka.record_batch import RecordBatch
from txnlib.readers import arrow_schemas
from txnlib.readers.decoded_records import entry_row
from txnlib.spark.frames import local_rows, no_rows


def examples(count: int) -> settings:
    """Few, because each is a Spark job over many logs; none is shrunk: a failing row names its own log."""
    kept = {"derandomize": True, "database": None, "deadline": None, "suppress_health_check": list(HealthCheck)}
    return settings(max_examples=count, phases=[Phase.generate], **kept)


def assert_same(actual: DataFrame, expected: DataFrame) -> None:
    """Both frames have the same columns and, in any order, the same rows; chispa shows the rows that differ."""
    assert_df_equality(actual, expected, ignore_row_order=True, ignore_nullable=True)


def assert_rows(actual: DataFrame, expected: Iterable[Sequence[Any]], *columns: str | Column) -> None:
    """The rows of a frame, or those of some of its columns, in any order; chispa shows the rows that differ."""
    chosen = actual.select(*columns) if columns else actual
    assert_same(chosen, actual.sparkSession.createDataFrame(list(expected), chosen.schema))


def frame(spark: SparkSession, schema: StructType, *rows: Mapping[str, Any]) -> DataFrame:
    """Rows with some of the schema's columns; the others are NULL."""
    return local_rows(spark, [[row.get(name) for name in schema.names] for row in rows], schema)


def empty(spark: SparkSession, schema: StructType | str) -> DataFrame:
    return no_rows(spark, schema)


#: Fields of a batch that are columns, too.
SAME = (
    "base_offset",
    "last_offset",
    "records_count",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "last_sequence",
)
SAME = (*SAME, "partition_leader_epoch", "is_transactional", "is_control")


def batch_row(batch: RecordBatch, topic: str, partition: int, source: str = "raw:1") -> dict[str, Any]:
    """A batch as the raw reader would yield it."""
    marker = batch.marker
    control_type = None if marker is None or marker.control_type is None else marker.control_type.name
    epoch = None if marker is None else marker.coordinator_epoch
    where = {
        "topic": topic,
        "partition": partition,
        "source": source,
        "segment_base_offset": 0,
        "position": 0,
        "size": 100,
    }
    read = {
        "control_type": control_type,
        "coordinator_epoch": epoch,
        "timestamp_type": batch.timestamp_type.name,
        "magic": 2,
    }
    return where | read | {name: getattr(batch, name) for name in SAME} | {"max_timestamp_ms": batch.max_timestamp}


def record_batches(spark: SparkSession, logs: Mapping[tuple[str, int], Iterable[RecordBatch]]) -> DataFrame:
    """The logs of some partitions as `record_batches`."""
    rows = [batch_row(batch, *where) for where, log in logs.items() for batch in log]
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=arrow_schemas.RECORD_BATCHES))


def transaction_log_row(entry: Any, partition: int, offset: int, timestamp: int, epoch: int = 0) -> dict[str, Any]:
    """A coordinator record (an entry, or the id of a tombstone) as the raw reader would yield it."""
    transactional_id = entry if isinstance(entry, str) else entry.transactional_id
    where = {
        "topic": "__transaction_state",
        "partition": partition,
        "source": "raw:1",
        "path": f"__transaction_state-{partition}",
    }
    read = {"position": 0, "offset": offset, "timestamp_ms": timestamp, "coordinator_epoch": epoch}
    return where | read | {"transactional_id": transactional_id, **entry_row(None if isinstance(entry, str) else entry)}


def transaction_log(spark: SparkSession, rows: list[dict[str, Any]]) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=arrow_schemas.TRANSACTION_LOG))
