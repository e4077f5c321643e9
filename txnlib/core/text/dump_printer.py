"""Records as `kafka-dump-log.sh` prints them. An operator can search for these lines.

Kafka: `DumpLogSegments`, as of 4.1; `key` and `payload` as `--transaction-log-decoder` prints them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from txnlib.core.display import printable
from txnlib.core.kafka.transaction_log import VALUE
from txnlib.core.kafka.transaction_state import BY_KAFKA_NAME
from txnlib.core.kafka.wire import on_disk

Row = Mapping[str, Any]


def batch_line(batch: Row) -> str:
    """The line of a batch, from a row of `record_batches`."""
    horizon = batch["delete_horizon_ms"]
    stamp = "LogAppendTime" if batch["timestamp_type"] == "LOG_APPEND_TIME" else "CreateTime"
    fields = {
        "baseOffset": batch["base_offset"],
        "lastOffset": batch["last_offset"],
        "count": batch["records_count"],
        "baseSequence": on_disk(batch["base_sequence"]),
        "lastSequence": on_disk(batch["last_sequence"]),
        "producerId": on_disk(batch["producer_id"]),
        "producerEpoch": on_disk(batch["producer_epoch"]),
        "partitionLeaderEpoch": on_disk(batch["partition_leader_epoch"]),
        "isTransactional": str(bool(batch["is_transactional"])).lower(),
        "isControl": str(bool(batch["is_control"])).lower(),
        "deleteHorizonMs": "OptionalLong.empty" if horizon is None else f"OptionalLong[{horizon}]",
        "position": batch["position"],
        stamp: on_disk(batch["max_timestamp_ms"]),
        "size": batch["size"],
        "magic": batch["magic"],
        "compresscodec": batch["compression_type"],
        "crc": batch["crc"],
        "isvalid": "true",
    }
    return " ".join(f"{name}: {value}" for name, value in fields.items())


def marker_line(batch: Row) -> str:
    """The record line of a marker, from the row of its batch in `record_batches`."""
    stamp = "LogAppendTime" if batch["timestamp_type"] == "LOG_APPEND_TIME" else "CreateTime"
    end = f"endTxnMarker: {batch['control_type']} coordinatorEpoch: {on_disk(batch['coordinator_epoch'])}"
    head = f"| offset: {batch['base_offset']} {stamp}: {batch['max_timestamp_ms']}"
    return f"{head} keySize: 4 valueSize: 6 sequence: -1 headerKeys: [] {end}"


def coordinator_line(record: Row) -> str:
    """The record line of a coordinator record, from a row of `transaction_log`."""
    name = record["transactional_id"]
    key_size = 4 + len(name.encode())
    offset = record["offset"] if record["offset"] >= 0 else "not printed"
    head = f"| offset: {offset} CreateTime: {on_disk(record['timestamp_ms'])} keySize: {key_size}"
    if record["is_tombstone"]:
        size, payload = -1, "<DELETE>"
    elif record["value_version"] is None:
        size, payload = value_size(record), _text_value(record)
    else:
        size, payload = value_size(record), _json({"version": str(record["value_version"]), "data": _fields(record)})
    is_text = not record["is_tombstone"] and record["value_version"] is None
    key = (
        f"transaction_metadata::transactionalId={name}"
        if is_text
        else _json({"type": "0", "data": {"transactionalId": name}})
    )
    return printable(f"{head} valueSize: {size} sequence: -1 headerKeys: [] key: {key} payload: {payload}")


def _fields(record: Row) -> dict[str, Any]:
    """The fields of the value, in the order of Kafka's schema."""
    fields = {
        "producerId": on_disk(record["producer_id"]),
        "previousProducerId": record.get("previous_producer_id"),
        "nextProducerId": record.get("next_producer_id"),
        "producerEpoch": on_disk(record["producer_epoch"]),
        "nextProducerEpoch": record.get("next_producer_epoch"),
        "lastProducerEpoch": record.get("last_producer_epoch"),
        "transactionTimeoutMs": record["transaction_timeout_ms"],
        "transactionStatus": BY_KAFKA_NAME[record["state"]].value,
        "transactionPartitions": _topics(record),
        "transactionLastUpdateTimestampMs": on_disk(record["last_update_ms"]),
        "transactionStartTimestampMs": on_disk(record["start_ms"]),
        "clientTransactionVersion": record.get("client_transaction_version") or None,
    }
    return {name: value for name, value in fields.items() if value is not None or name == "transactionPartitions"}


def _topics(record: Row) -> list[dict[str, Any]] | None:
    if record["partitions"] is None:
        return None
    topics: dict[str, list[int]] = {}
    for place in record["partitions"]:
        topics.setdefault(place["topic"], []).append(place["partition"])
    return [{"topic": topic, "partitionIds": numbers} for topic, numbers in topics.items()]


def _text_value(record: Row) -> str:
    """The value as tools up to 4.0 print it: without the start timestamp."""
    names = ",".join(f"{place['topic']}-{place['partition']}" for place in record["partitions"] or ())
    return (
        f"producerId:{record['producer_id']},producerEpoch:{record['producer_epoch']},state={record['state']},"
        f"partitions=[{names}],txnLastUpdateTimestamp={record['last_update_ms']},txnTimeoutMs={record['transaction_timeout_ms']}"
    )


def value_size(record: Row) -> int:
    """Size of the value on disk, in bytes. Brokers whose tools print no version write version 0."""
    return 2 + len(VALUE.write(record["value_version"] or 0, _fields(record)))


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
