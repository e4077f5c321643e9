"""The header of a record batch, and its control record. Kafka: `DefaultRecordBatch`, `ControlRecordType`.

The 61-byte header contains everything about a producer except whether a marker commits or aborts. That is in the single
record of a control batch, so only control batches and those of coordinators are read beyond the header.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from txnlib.core.kafka.constants import MAX_INT64, MAX_SEQUENCE
from txnlib.core.kafka.wire import (
    CorruptRecordError,
    optional,
    read_bytes,
    read_int8,
    read_int16,
    read_int32,
    read_varint,
    read_varlong,
)

#: The fields of a batch header, in order -> their types, big-endian: `i4` is a signed integer of four bytes.
HEADER_FIELDS: Final = {
    "base_offset": "i8",
    "batch_length": "i4",  # bytes after this field
    "partition_leader_epoch": "i4",
    "magic": "i1",
    "crc": "u4",  # CRC-32C of everything after it
    "attributes": "i2",
    "last_offset_delta": "i4",
    "base_timestamp": "i8",  # or the delete horizon
    "max_timestamp": "i8",
    "producer_id": "i8",
    "producer_epoch": "i2",
    "base_sequence": "i4",
    "records_count": "i4",
}
_CODES: Final = {"i1": "b", "i2": "h", "i4": "i", "u4": "I", "i8": "q"}
HEADER: Final = struct.Struct(">" + "".join(_CODES[kind] for kind in HEADER_FIELDS.values()))
#: Bytes of base offset and length, which the length does not count (Kafka: `Records.LOG_OVERHEAD`).
LOG_OVERHEAD: Final = 12
#: Position of the magic byte in every version of the format.
MAGIC_POSITION: Final = 16
#: The CRC covers everything from here to the end of the batch.
CRC_STARTS_AT: Final = 21
#: Largest body of a decoded batch, uncompressed. A marker has 17 bytes, and brokers accept batches of a coordinator
#: only up to `max.message.bytes`, 1 MiB by default; but 22 KB of compressed data may claim to be 1.5 GB.
MAX_BODY_BYTES: Final = 64 << 20

#: Positions of the stored CRC: of a batch of version 2, and of the messages before, whose CRC-32 covers all from the
#: magic on.
_CRC_AT, _OLD_CRC_AT = 17, 12

COMPRESSION_MASK: Final = 0x07
TIMESTAMP_TYPE_FLAG: Final = 0x08
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20
DELETE_HORIZON_FLAG: Final = 0x40


def stored_crc(header: bytes) -> tuple[int, int, bool]:
    """The CRC in the first CRC_STARTS_AT bytes of a batch, where the bytes that it covers begin, and whether it is
    CRC-32C.

    Kafka: `DefaultRecordBatch.checksum`, `LegacyRecord.checksum`.
    """
    if header[MAGIC_POSITION] == 2:
        return int.from_bytes(header[_CRC_AT:CRC_STARTS_AT], "big"), CRC_STARTS_AT, True
    return int.from_bytes(header[_OLD_CRC_AT:MAGIC_POSITION], "big"), MAGIC_POSITION, False


class CompressionType(IntEnum):
    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class TimestampType(IntEnum):
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class ControlType(IntEnum):
    """Kafka: `ControlRecordType`. Other types are kept by number and do not concern producers."""

    ABORT = 0
    COMMIT = 1


@dataclass(frozen=True, slots=True)
class EndTxnMarker:
    """Kafka: `EndTransactionMarker`. None: a text dump does not show the field, or the marker has no coordinator
    epoch."""

    control_type: ControlType | None
    coordinator_epoch: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordBatch:
    """One batch, with the fields that are relevant for transactions. None: the batch has no such value."""

    base_offset: int
    last_offset: int
    producer_id: int | None = None
    producer_epoch: int | None = None
    base_sequence: int | None = None
    max_timestamp: int | None = None
    is_transactional: bool = False
    is_control: bool = False
    marker: EndTxnMarker | None = None
    records_count: int = 1
    partition_leader_epoch: int | None = None
    timestamp_type: TimestampType = TimestampType.CREATE_TIME

    @property
    def last_sequence(self) -> int | None:
        """Sequence of the last record, from the header. Compaction may have removed that record."""
        if self.base_sequence is None:
            return None
        return increment_sequence(self.base_sequence, self.last_offset - self.base_offset)


@dataclass(frozen=True, slots=True)
class Record:
    """One record inside a batch, keys and values as bytes (None: null)."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


def increment_sequence(sequence: int, increment: int) -> int:
    """Sequence after `increment` more records; 0 follows 2147483647. Kafka: `DefaultRecordBatch.incrementSequence`."""
    return (sequence + increment) % (MAX_SEQUENCE + 1)


def iter_records(
    body: bytes, count: int, base_offset: int, base_timestamp: int, log_append_time: int | None = None
) -> Iterator[Record]:
    """The `count` records of an uncompressed batch body, one by one, because even a body within the limit may contain
    millions.

    Raises CorruptRecordError if a length, the count or the end of the body does not match. Kafka:
    `DefaultRecord.readFrom`.
    """
    position = 0
    for _ in range(count):
        length, start = read_varint(body, position)
        end = start + length
        if length < 0 or end > len(body):
            raise CorruptRecordError(position, f"record of {length} bytes reaches past the end of its batch")
        _attributes, position = read_int8(body, start)
        timestamp_delta, position = read_varlong(body, position)
        offset_delta, position = read_varint(body, position)
        key, position = _read_nullable_bytes(body, position)
        value, position = _read_nullable_bytes(body, position)
        position = _skip_headers(body, position)
        if position != end:
            raise CorruptRecordError(start, f"record promises {length} bytes and holds {position - start}")
        timestamp = base_timestamp + timestamp_delta if log_append_time is None else log_append_time
        yield Record(base_offset + offset_delta, timestamp, key, value)
    if position != len(body):
        raise CorruptRecordError(position, f"{len(body) - position} bytes are left after {count} records")


def unstorable(record: Record, base_offset: int, last_offset: int) -> str | None:
    """Why the offset or time of a record in a batch from `base_offset` to `last_offset` is impossible; None if it is
    possible.

    Both are sums with a delta from the record, which may have any size.
    """
    if not base_offset <= record.offset <= last_offset:
        return f"offset {record.offset} lies outside of its batch, {base_offset} to {last_offset}"
    if not -MAX_INT64 - 1 <= record.timestamp <= MAX_INT64:
        return f"offset {record.offset}, its time {record.timestamp} is no int64"
    return None


def _read_nullable_bytes(body: bytes, position: int) -> tuple[bytes | None, int]:
    length, position = read_varint(body, position)
    return (None, position) if length == -1 else read_bytes(body, position, length)


def _skip_headers(body: bytes, position: int) -> int:
    count, position = read_varint(body, position)
    if count < 0:
        raise CorruptRecordError(position, f"{count} headers are promised")
    for _ in range(count):
        key, position = _read_nullable_bytes(body, position)
        if key is None:
            raise CorruptRecordError(position, "header without a key")
        _value, position = _read_nullable_bytes(body, position)
    return position


def read_end_txn_marker(record: Record) -> EndTxnMarker | None:
    """The marker in a control record; None for control records that do not concern producers.

    Higher versions are read by their prefix, as Kafka does (`EndTransactionMarker.deserialize`).
    """
    if record.key is None or record.value is None:
        raise CorruptRecordError(0, "control record without key or value")
    _version, position = read_int16(record.key, 0)
    control_type, _ = read_int16(record.key, position)
    if control_type not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    _version, position = read_int16(record.value, 0)
    coordinator_epoch, _ = read_int32(record.value, position)
    return EndTxnMarker(ControlType(control_type), optional(coordinator_epoch))
