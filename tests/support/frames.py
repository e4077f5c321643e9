"""Logs of tests as frames, and the comparison of frames."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from chispa import assert_df_equality
from hypothesis import HealthCheck, Phase, settings
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql.types import StructType

from txnlib.core.kafka.record_batch import RecordBatch
from txnlib.readers.decoded_records import entry_row
from txnlib.spark.frames import arrow_of, frame_of, local_rows, no_rows
from txnlib.spark.schemas import TABLES


def examples(count: int) -> settings:
    """Few, because each is a query over many logs; none is shrunk: a failing row names its own log. On Spark, still
    fewer: `conftest.py`."""
    kept = {"derandomize": True, "database": None, "deadline": None, "suppress_health_check": list(HealthCheck)}
    return settings(max_examples=min(count, settings.default.max_examples), phases=[Phase.generate], **kept)


def assert_same(actual: DataFrame, expected: DataFrame) -> None:
    """Both frames have the same columns and, in any order, the same rows; chispa shows the rows that differ."""
    assert_df_equality(_ordered(actual), _ordered(expected), ignore_nullable=True, ignore_metadata=True)


def _ordered(rows: DataFrame) -> DataFrame:
    """The frame, computed and in order: no engine sorts every type."""
    found = arrow_of(rows)
    texts = list(map(repr, found.to_pylist()))
    places = sorted(range(found.num_rows), key=texts.__getitem__)
    return frame_of(rows.sparkSession, found.take(places), rows.schema)


def assert_rows(actual: DataFrame, expected: Iterable[Sequence[Any]], *columns: str | Column) -> None:
    """The rows of a frame, or those of some of its columns, in any order."""
    chosen = actual.select(*columns) if columns else actual
    assert in_order(values(chosen)) == in_order(plain(tuple(row)) for row in expected)


def shape(rows: DataFrame) -> list[tuple[str, str]]:
    """Names and types; whether a column happens to have no NULL is not compared."""
    return [(field.name, field.dataType.simpleString()) for field in rows.schema]


def values(rows: DataFrame) -> list[tuple[Any, ...]]:
    """The rows as plain values."""
    found = arrow_of(rows)
    return list(zip(*[column.to_pylist() for column in found.columns], strict=True)) if found.num_columns else []


def in_order(rows: Iterable[Any]) -> list[Any]:
    return sorted(rows, key=repr)


def plain(value: Any) -> Any:
    """A value as Arrow gives it: structs as dicts, instants in UTC."""
    match value:
        case Row():
            return {name: plain(part) for name, part in zip(value.__fields__, value, strict=True)}
        case tuple():
            return tuple(map(plain, value))
        case list():
            return list(map(plain, value))
        case datetime(tzinfo=None):
            return value.replace(tzinfo=UTC)
        case bytearray():
            return bytes(value)
    return value


def kept(rows: DataFrame) -> DataFrame:
    """The frame, computed: as a step of an audit reads a table that another one wrote."""
    return frame_of(rows.sparkSession, arrow_of(rows), rows.schema)


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
    "partition_leader_epoch",
    "is_transactional",
    "is_control",
)


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
    return frame(spark, TABLES["record_batches"], *rows)


def transaction_log_row(entry: Any, partition: int, offset: int, timestamp: int, epoch: int = 0) -> dict[str, Any]:
    """A coordinator record (an entry, or the id of a tombstone) as the raw reader would yield it."""
    transactional_id = entry if isinstance(entry, str) else entry.transactional_id
    where = {
        "topic": "__transaction_state",
        "partition": partition,
        "source": "raw:1",
        "segment_base_offset": 0,
    }
    read = {"position": 0, "offset": offset, "timestamp_ms": timestamp, "coordinator_epoch": epoch}
    return where | read | {"transactional_id": transactional_id, **entry_row(None if isinstance(entry, str) else entry)}


def transaction_log(spark: SparkSession, rows: list[dict[str, Any]]) -> DataFrame:
    return frame(spark, TABLES["transaction_log"], *rows)
