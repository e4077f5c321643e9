"""Encoders for batches, coordinator records and snapshots: the counterpart of the decoders in `txnlib.core`."""

from __future__ import annotations

import struct
from itertools import groupby

import google_crc32c

from txnlib.core.kafka.transaction_log import TAGGED_FIELDS, TransactionLogEntry
from txnlib.core.kafka.wire import on_disk

#: What is not written: a tag that has its default.
_DEFAULTS = {"client_transaction_version": 0}


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
    return struct.pack(">h", 0) + _string(transactional_id)


def transaction_log_value(entry: TransactionLogEntry) -> bytes:
    """A value of the entry's version, 0 or 1."""
    head = struct.pack(
        ">hqhib",
        entry.version,
        on_disk(entry.producer_id),
        on_disk(entry.producer_epoch),
        entry.transaction_timeout_ms,
        entry.transaction_state,
    )
    times = struct.pack(">qq", on_disk(entry.last_update_timestamp_ms), on_disk(entry.start_timestamp_ms))
    if entry.version == 0:
        return head + _partitions_v0(entry) + times
    return head + _partitions_v1(entry) + times + _tags(entry)


def _topics(entry: TransactionLogEntry) -> list[tuple[str, list[int]]]:
    by_topic = groupby(entry.transaction_partitions or (), key=lambda listed: listed.topic)
    return [(topic, [listed.partition for listed in group]) for topic, group in by_topic]


def _partitions_v0(entry: TransactionLogEntry) -> bytes:
    if entry.transaction_partitions is None:
        return struct.pack(">i", -1)
    topics = [_string(name) + struct.pack(f">i{len(ids)}i", len(ids), *ids) for name, ids in _topics(entry)]
    return struct.pack(">i", len(topics)) + b"".join(topics)


def _partitions_v1(entry: TransactionLogEntry) -> bytes:
    if entry.transaction_partitions is None:
        return _uvarint(0)
    topics = [
        _uvarint(len(name.encode()) + 1) + name.encode() + _uvarint(len(ids) + 1) + struct.pack(f">{len(ids)}i", *ids) + b"\0"
        for name, ids in _topics(entry)
    ]
    return _uvarint(len(topics) + 1) + b"".join(topics)


def _tags(entry: TransactionLogEntry) -> bytes:
    written = [
        _uvarint(tag) + _uvarint(size) + int(getattr(entry, name)).to_bytes(size, "big", signed=True)
        for tag, (name, _read, size) in sorted(TAGGED_FIELDS.items())
        if getattr(entry, name) not in (None, _DEFAULTS.get(name))
    ]
    return _uvarint(len(written)) + b"".join(written)


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text.encode())) + text.encode()


def _sized(content: bytes | None) -> bytes:
    return _varint(-1) if content is None else _varint(len(content)) + content


def _varint(value: int) -> bytes:
    return _uvarint(value << 1 if value >= 0 else -2 * value - 1)


def _uvarint(value: int) -> bytes:
    groups = bytearray()
    while value >= 0x80:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*groups, value])
