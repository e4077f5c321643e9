"""Encoders for batches, coordinator records and snapshots: the counterpart of the decoders in `txnlib.core`."""

from __future__ import annotations

import struct
from itertools import groupby

import google_crc32c

from txnlib.core.kafka.transaction_log import KEY, VALUE, TransactionLogEntry
from txnlib.core.kafka.wire import on_disk, write_unsigned_varint


def batch(
    offset: int,
    delta: int,
    attributes: int,
    time: int,
    producer: int,
    sequence: int,
    count: int,
    body: bytes,
    *,
    newest: int | None = None,
    epoch: int = 0,
    leader_epoch: int = 0,
) -> bytes:
    """One v2 batch with a right CRC; `time` is its base timestamp, and without `newest` its max timestamp too."""
    max_time = time if newest is None else newest
    covered = struct.pack(">hiqqqhii", attributes, delta, time, max_time, producer, epoch, sequence, count) + body
    return struct.pack(">qiibI", offset, 9 + len(covered), leader_epoch, 2, google_crc32c.value(covered)) + covered


def encode_record(offset_delta: int, time_delta: int, key: bytes | None, value: bytes | None) -> bytes:
    """One record without headers."""
    record = b"\0" + _varint(time_delta) + _varint(offset_delta) + _sized(key) + _sized(value) + b"\0"
    return _varint(len(record)) + record


def transaction_log_key(transactional_id: str) -> bytes:
    return struct.pack(">h", 0) + KEY.write(0, {"transactionalId": transactional_id})


def transaction_log_value(entry: TransactionLogEntry) -> bytes:
    """A value of the entry's version, 0 or 1."""
    listed = groupby(entry.transaction_partitions or (), key=lambda listed: listed.topic)
    topics = [{"topic": topic, "partitionIds": [place.partition for place in group]} for topic, group in listed]
    fields = {
        "producerId": on_disk(entry.producer_id),
        "previousProducerId": entry.previous_producer_id,
        "nextProducerId": entry.next_producer_id,
        "producerEpoch": on_disk(entry.producer_epoch),
        "nextProducerEpoch": entry.next_producer_epoch,
        "lastProducerEpoch": entry.last_producer_epoch,
        "transactionTimeoutMs": entry.transaction_timeout_ms,
        "transactionStatus": entry.transaction_state,
        "transactionPartitions": None if entry.transaction_partitions is None else topics,
        "transactionLastUpdateTimestampMs": on_disk(entry.last_update_timestamp_ms),
        "transactionStartTimestampMs": on_disk(entry.start_timestamp_ms),
        "clientTransactionVersion": entry.client_transaction_version or None,
    }
    written = {name: value for name, value in fields.items() if value is not None or name == "transactionPartitions"}
    return struct.pack(">h", entry.version) + VALUE.write(entry.version, written)


def _sized(content: bytes | None) -> bytes:
    return _varint(-1) if content is None else _varint(len(content)) + content


def _varint(value: int) -> bytes:
    return write_unsigned_varint(value << 1 if value >= 0 else -2 * value - 1)
