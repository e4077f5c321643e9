"""The core inside Spark: its tables as map literals, its steps as Arrow UDFs. The only module with `F.udf`.

UDFs see few rows: those that a native predicate could not clear, and those that are open at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import lru_cache, wraps
from typing import Any, cast

from pyspark.sql import Column, Row
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BooleanType, DataType, IntegerType, LongType, StringType, StructField, StructType

from txnlib.core.findings.application import application_of as application_in
from txnlib.core.findings.application import compiled
from txnlib.core.findings.ended_by import Ending
from txnlib.core.findings.ended_by import ended_by as by_records
from txnlib.core.findings.marker_check import Decision, Marker
from txnlib.core.findings.marker_check import marker_finding as finding_of_marker
from txnlib.core.kafka.coordinator import CoordinatorRecord, transition
from txnlib.core.kafka.coordinator_partition import partition_for
from txnlib.core.kafka.producer_state import ProducerState, append, append_origin
from txnlib.core.kafka.record_batch import ControlType, EndTxnMarker, RecordBatch
from txnlib.core.kafka.transaction_log import TopicPartition, TransactionLogEntry
from txnlib.core.kafka.transaction_state import BY_KAFKA_NAME, STEPS
from txnlib.core.verdicts.abort_plan import IDLE, OF_WHOLE_TRANSACTION, OpenTransaction
from txnlib.core.verdicts.abort_plan import plan as plan_of
from txnlib.core.verdicts.in_doubt import Identity
from txnlib.core.verdicts.in_doubt import kept_identity as identity_kept
from txnlib.core.verdicts.marker_repair import LostMarker, Repair
from txnlib.core.verdicts.marker_repair import repair as repair_of
from txnlib.errors import UnreadableInputError
from txnlib.readers.header_columns import is_crc_valid
from txnlib.readers.storage.files import read_range
from txnlib.spark.python_tasks import begin_task
from txnlib.spark.schemas import STEPS as PLAN_STEPS
from txnlib.spark.typed_rows import plain

NO_STATE = "none"


def legality(state_before: Column, state_after: Column) -> Column:
    """Name of the step between two states (Kafka's names, null for none), from the core's table."""
    steps: Mapping[str, str] = {
        f"{NO_STATE if before is None else before.kafka_name} > {NO_STATE if after is None else after.kafka_name}": step.name
        for (before, after), step in STEPS.items()
    }
    table = F.create_map(*[F.lit(text) for item in steps.items() for text in item])
    step = F.concat_ws(" > ", F.coalesce(state_before, F.lit(NO_STATE)), F.coalesce(state_after, F.lit(NO_STATE)))
    return table[step]


def _udf(decide: Callable[..., Any], returns: DataType) -> Any:
    @wraps(decide)
    def decided(*values: Any) -> Any:
        begin_task()
        return decide(*values)

    return F.udf(decided, returns, useArrow=True)


@lru_cache
def coordinator_partition_of() -> Any:
    """UDF (transactional_id, partitions) -> the coordinator partition of the id's hash."""
    return _udf(partition_for, IntegerType())


@lru_cache
def is_batch_valid() -> Any:
    """UDF (path, position, size) -> whether the CRC of that batch matches; null without a path, or if it cannot be read."""

    def valid(path: str | None, position: int | None, size: int | None) -> bool | None:
        if path is None or position is None or size is None:
            return None
        try:
            content = read_range(path, position, size)
        except (OSError, UnreadableInputError):
            return None
        return len(content) == size and is_crc_valid(content, 0, size)

    return _udf(valid, BooleanType())


@lru_cache
def application_of(own_patterns: tuple[str, ...]) -> Any:
    """UDF (transactional_id) -> its application, by the operator's patterns and those of `core.findings.application`."""
    patterns = compiled(own_patterns)

    def application(transactional_id: str | None) -> str | None:
        return None if transactional_id is None else application_in(transactional_id, patterns)

    return _udf(application, StringType())


@lru_cache
def batch_findings() -> Any:
    """UDF (topic, before, batch, producer_id, expiration) -> names of the findings about the batch."""

    def findings(topic: str, before: Row, batch: Row, producer_id: int, expiration_ms: int) -> list[str]:
        appended = append(
            _state(before),
            _batch(batch, producer_id),
            origin=append_origin(topic),
            producer_id_expiration_ms=expiration_ms,
        )
        return [finding.name for finding in appended.findings]

    return _udf(findings, ArrayType(StringType()))


def _state(row: Row) -> ProducerState:
    return ProducerState(**row.asDict())


def _batch(row: Row, producer_id: int) -> RecordBatch:
    marker = None
    if row["is_marker"]:
        control_type = None if row["control_type"] is None else ControlType[row["control_type"]]
        marker = EndTxnMarker(control_type, row["coordinator_epoch"])
    return RecordBatch(
        base_offset=row["base_offset"],
        last_offset=row["last_offset"],
        producer_id=producer_id,
        producer_epoch=row["producer_epoch"],
        base_sequence=row["base_sequence"],
        max_timestamp=row["max_timestamp_ms"],
        is_transactional=row["is_transactional"],
        is_control=row["is_marker"],
        marker=marker,
    )


@lru_cache
def transition_findings() -> Any:
    """UDF (before, after, is_consecutive) -> names of the findings about a coordinator record, or about the step to it."""

    def findings(before: Row | None, after: Row, is_consecutive: bool) -> list[str]:
        earlier = None if before is None else _record(before)
        return [f.name for f in transition(earlier, _record(after), is_consecutive=is_consecutive).findings]

    return _udf(findings, ArrayType(StringType()))


def _record(row: Row) -> CoordinatorRecord:
    entry = None
    if not row["is_tombstone"]:
        partitions = row["partitions"]
        entry = TransactionLogEntry(
            transactional_id="",
            producer_id=row["producer_id"],
            producer_epoch=row["producer_epoch"],
            transaction_timeout_ms=row["transaction_timeout_ms"],
            transaction_state=BY_KAFKA_NAME[row["state"]],
            transaction_partitions=None
            if partitions is None
            else tuple(TopicPartition(p["topic"], p["partition"]) for p in partitions),
            last_update_timestamp_ms=row["last_update_ms"],
            start_timestamp_ms=row["start_ms"],
            version=row["value_version"],
            next_producer_id=row["next_producer_id"],
            next_producer_epoch=row["next_producer_epoch"],
        )
    return CoordinatorRecord(entry, row["coordinator_epoch"])


@lru_cache
def ended_by() -> Any:
    """UDF (the fields of `core.findings.ended_by.Ending`) -> who decided the transaction."""

    def decided(ending: Row) -> str:
        return by_records(Ending(**ending.asDict())).value

    return _udf(decided, StringType())


@lru_cache
def marker_finding() -> Any:
    """UDF (the fields of `core.findings.marker_check.Marker`) -> name of the finding about the marker, or null."""

    def finding(row: Row) -> str | None:
        fields = row.asDict()
        beside = {side: None if fields[side] is None else Decision(**fields[side].asDict()) for side in ("before", "after")}
        found = finding_of_marker(Marker(**{**fields, **beside}))
        return None if found is None else found.name

    return _udf(finding, StringType())


PLAN = StructType(
    [
        StructField("action", StringType()),
        StructField("action_order", IntegerType()),
        StructField("command", StringType()),
        StructField("command_for_old_brokers", StringType()),
        StructField("before", PLAN_STEPS),
        StructField("after", PLAN_STEPS),
        StructField("notes", ArrayType(StringType())),
        StructField("effect", StringType()),
        StructField("is_idle", BooleanType()),
        StructField("is_of_whole_transaction", BooleanType()),
    ]
)


@lru_cache
def plan() -> Any:
    """UDF (the fields of `core.verdicts.abort_plan.OpenTransaction`, Kafka's version) -> PLAN; null if nothing needs to be done."""

    def planned(row: Row, kafka_version: str | None) -> dict[str, Any] | None:
        fields = row.asDict()
        fields["committed_siblings"] = tuple(fields["committed_siblings"] or ())
        found = plan_of(OpenTransaction(**fields), kafka_version)
        if found is None:
            return None
        return {
            **plain(found),
            "action": found.action.name,
            "action_order": int(found.action),
            "is_idle": found.action in IDLE,
            "is_of_whole_transaction": found.action in OF_WHOLE_TRANSACTION,
        }

    return _udf(planned, PLAN)


@lru_cache
def marker_repair() -> Any:
    """UDF (the fields of `core.verdicts.marker_repair.LostMarker`, Kafka's version) -> its Repair."""

    def repaired(row: Row, kafka_version: str | None) -> dict[str, Any]:
        return cast(dict[str, Any], plain(repair_of(LostMarker(**row.asDict()), kafka_version)))

    return _udf(repaired, StructType([StructField(field.name, StringType()) for field in fields(Repair)]))


@lru_cache
def kept_identity() -> Any:
    """UDF (producer_id, producer_epoch, next_producer_id, next_producer_epoch) -> the Identity of a kept transaction."""

    def kept(producer_id: int, producer_epoch: int, next_producer_id: int | None, next_epoch: int | None) -> dict[str, Any]:
        return cast(dict[str, Any], plain(identity_kept(producer_id, producer_epoch, next_producer_id, next_epoch)))

    types = {"producer_id": LongType(), "producer_epoch": IntegerType()}
    return _udf(kept, StructType([StructField(field.name, types[field.name]) for field in fields(Identity)]))
