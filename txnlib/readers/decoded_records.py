"""Records of batches: decompressed, and decoded by the core.

Records that cannot be decoded are listed separately.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

import cramjam
import numpy as np

from txnlib.core.kafka.record_batch import (
    COMPRESSION_MASK,
    CONTROL_FLAG,
    HEADER,
    LOG_OVERHEAD,
    MAX_BODY_BYTES,
    TIMESTAMP_TYPE_FLAG,
    TRANSACTIONAL_FLAG,
    CompressionType,
    EndTxnMarker,
    Record,
    iter_records,
    read_end_txn_marker,
    unstorable,
)
from txnlib.core.kafka.transaction_log import (
    PRODUCER_ID_FIELDS,
    TransactionLogEntry,
    UnknownVersionError,
    read_offset_commit_key,
    read_offset_commit_value,
    read_transaction_log_key,
    read_transaction_log_value,
)
from txnlib.core.kafka.wire import CorruptRecordError, on_disk, optional, read_int32
from txnlib.readers.batch_headers import Block
from txnlib.readers.header_columns import gather
from txnlib.readers.storage.block_buffer import Buffer

Value = TypeVar("Value")

XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
#: Most records of a batch that are kept until the last one has been read. Of more, each is read twice: a batch may have
#: millions.
_FEW_RECORDS: Final = 1_000
#: Number of bytes of a batch that suffice to detect a body above the limit.
MAX_BATCH_BYTES: Final = HEADER.size + MAX_BODY_BYTES + 1


def iter_batch_records(batch: bytes) -> Iterator[Record]:
    """Yields the records of one complete v2 batch, with any compression codec. `unstorable` says which do not fit their
    columns.

    Raises CorruptRecordError, before the first record, if the body cannot be decompressed, is larger than
    `MAX_BODY_BYTES`, or does not contain what the header declares.
    """
    base_offset, *_, attributes, _delta, base_timestamp, max_timestamp, _id, _epoch, _sequence, count = (
        HEADER.unpack_from(batch)
    )
    body = decompress(attributes & COMPRESSION_MASK, batch[HEADER.size :])
    log_append_time = max_timestamp if attributes & TIMESTAMP_TYPE_FLAG else None
    records = partial(iter_records, body, count, base_offset, base_timestamp, log_append_time)
    if count <= _FEW_RECORDS:
        yield from [*records()]
        return
    for _ in records():
        pass
    yield from records()


def iter_decoded(
    batch: bytes,
    decode: Callable[[Record], Value | str | None],
    problem: str = "UNDECODABLE_RECORD",
    problem_of_all: str = "",
) -> Iterator[Value | str]:
    """Yields what `decode` makes of each record of one complete batch, unless it is None; and a problem, as a string,
    for a record that it cannot decode.

    A problem of the whole batch begins with `problem_of_all`, or else with the plural of `problem`.
    """
    header = HEADER.unpack_from(batch)
    first_offset, last_offset = header[0], header[0] + header[6]
    try:
        for record in iter_batch_records(batch):
            if (impossible := unstorable(record, first_offset, last_offset)) is not None:
                yield f"{problem}: {impossible}"
                continue
            try:
                value = decode(record)
            except CorruptRecordError as error:
                value = f"{problem}: offset {record.offset}, {error.problem}"
            if value is not None:
                yield value
    except CorruptRecordError as error:
        yield f"{problem_of_all or f'{problem}S'}: {error.problem}"


def decompress(codec: int, body: bytes) -> bytes:
    """The decompressed body of a batch.

    Raises CorruptRecordError if the codec is unknown, if its stream is broken, or if the body is larger than
    `MAX_BODY_BYTES`. Never uses more memory than that.
    """
    if codec == CompressionType.NONE:
        if len(body) > MAX_BODY_BYTES:
            raise _too_large("its body")
        return body
    if codec not in DECOMPRESSORS:
        raise CorruptRecordError(HEADER.size, f"compression codec {codec} is not known")
    name = f"its {CompressionType(codec).name.lower()} stream"
    try:
        return DECOMPRESSORS[codec](body)
    except cramjam.DecompressionError as error:
        if _OVERFLOW in str(error):
            raise _too_large(name) from None
        raise CorruptRecordError(HEADER.size, f"{name.removeprefix('its ')} is broken: {error}") from error


def _too_large(what: str) -> CorruptRecordError:
    return CorruptRecordError(HEADER.size, f"{what} holds more than {MAX_BODY_BYTES >> 20} MiB")


#: Part of cramjam's error if the output does not fit: the message of Rust's `Write::write_all`.
_OVERFLOW: Final = "whole buffer"


def _into_limit(decompress_into: Callable[[bytes, Any], int], body: bytes) -> bytes:
    """The decompressed stream, up to the limit. The system allocates memory only for the pages that are written."""
    unpacked: Any = np.empty(MAX_BODY_BYTES, dtype=np.uint8)
    within: Any = memoryview(unpacked)[: decompress_into(body, unpacked)]
    return within  # type: ignore[no-any-return]  # reads like bytes, without a second copy


def _snappy(body: bytes) -> bytes:
    """Plain snappy, or snappy-java's framing: a magic, two versions, then blocks of (length, raw snappy)."""
    if not body.startswith(XERIAL_MAGIC):
        return _raw_snappy(body, MAX_BODY_BYTES)
    blocks, position, room = [], len(XERIAL_MAGIC) + 8, MAX_BODY_BYTES
    while position < len(body):
        length, position = read_int32(body, position)
        if not 0 < length <= len(body) - position:
            raise CorruptRecordError(HEADER.size, f"snappy stream is broken: a block of {length} bytes")
        blocks.append(_raw_snappy(body[position : position + length], room))
        position += length
        room -= len(blocks[-1])
    return b"".join(blocks)


def _raw_snappy(block: bytes, room: int) -> bytes:
    if cramjam.snappy.decompress_raw_len(block) > room:
        raise _too_large("its snappy stream")
    return bytes(cramjam.snappy.decompress_raw(block))


#: codec in the attributes -> decompressor
DECOMPRESSORS: Final[Mapping[int, Callable[[bytes], bytes]]] = {
    CompressionType.GZIP: partial(_into_limit, cramjam.gzip.decompress_into),
    CompressionType.SNAPPY: _snappy,
    CompressionType.LZ4: partial(_into_limit, cramjam.lz4.decompress_into),
    CompressionType.ZSTD: partial(_into_limit, cramjam.zstd.decompress_into),
}


# ---- Records of `__transaction_state`


#: A record of `__transaction_state` with its transactional id, and its value; None for a tombstone.
CoordinatorEntry = tuple[Record, str, TransactionLogEntry | None]


def iter_entries(batch: bytes) -> Iterator[CoordinatorEntry | str]:
    """Yields the entries of one complete batch of `__transaction_state`, and a problem as a string for each undecodable
    record.

    Kafka's loader skips a record with an unknown key version but stops at an unknown or broken value. Both are problems
    here, and no field of such a record is guessed.
    """
    return iter_decoded(batch, _entry)


def _entry(record: Record) -> CoordinatorEntry | str:
    if record.key is None:
        return f"NULL_KEY: record {record.offset} has no key"
    try:
        transactional_id = read_transaction_log_key(record.key)
    except UnknownVersionError as error:
        return f"UNKNOWN_KEY_VERSION: version {error.version} at offset {record.offset}"
    except CorruptRecordError as error:
        return f"UNDECODABLE_KEY: offset {record.offset}, {error.problem}"
    try:
        entry = None if record.value is None else read_transaction_log_value(transactional_id, record.value)
    except UnknownVersionError as error:
        return f"UNKNOWN_VALUE_VERSION: version {error.version} at offset {record.offset}"
    except CorruptRecordError as error:
        return f"UNDECODABLE_VALUE: offset {record.offset}, {error.problem}"
    return record, transactional_id, entry


#: Columns of `transaction_log` with the name of the field.
_SAME_NAMES: Final = (
    *PRODUCER_ID_FIELDS,
    "producer_epoch",
    "next_producer_epoch",
    "last_producer_epoch",
    "transaction_timeout_ms",
)


def entry_row(entry: TransactionLogEntry | None) -> dict[str, Any]:
    """The columns of `transaction_log` that come from the record's value; a tombstone has only `is_tombstone`."""
    if entry is None:
        return {"is_tombstone": True}
    partitions = entry.transaction_partitions
    return {
        **{name: getattr(entry, name) for name in _SAME_NAMES},
        "is_tombstone": False,
        "value_version": entry.version,
        "state": entry.transaction_state.kafka_name,
        # A set: the log and the tools' text list it in different orders.
        "partitions": None
        if partitions is None
        else [{"topic": p.topic, "partition": p.partition} for p in sorted(partitions)],
        "last_update_ms": entry.last_update_timestamp_ms,
        "start_ms": entry.start_timestamp_ms,
        "client_transaction_version": entry.client_transaction_version if entry.version else None,
        "unknown_tags": list(entry.unknown_tags),
    }


def entry_rows(where: Mapping[str, Any], batch: bytes) -> Iterator[dict[str, Any]]:
    """The rows of `transaction_log` from one complete batch, each with the columns of `where`."""
    leader_epoch = HEADER.unpack_from(batch)[2]
    for found in iter_entries(batch):
        if not isinstance(found, str):
            record, transactional_id, entry = found
            yield {
                **where,
                "offset": record.offset,
                "timestamp_ms": record.timestamp,
                "coordinator_epoch": optional(leader_epoch),
                "transactional_id": transactional_id,
                **entry_row(entry),
            }


# ---- Offset commits in `__consumer_offsets`


#: Prefix of every problem of a commit. No verdict depends on a commit.
UNDECODABLE_COMMIT = "UNDECODABLE_COMMIT"


def iter_commits(batch: bytes) -> Iterator[dict[str, Any] | str]:
    """Yields the columns of the commits of one complete batch, and a problem as a string for each undecodable record.

    Records other than offset commits are skipped. After a tombstone, the group has no committed offset any more.
    """
    return iter_decoded(batch, _commit, UNDECODABLE_COMMIT, UNDECODABLE_COMMIT)


def _commit(record: Record) -> dict[str, Any] | None:
    key = read_offset_commit_key(record.key or b"")
    if key is None:
        return None
    commit = None if record.value is None else read_offset_commit_value(record.value)
    return {
        "offset": record.offset,
        "group_id": key.group_id,
        "committed_topic": key.topic,
        "committed_partition": key.partition,
        "is_tombstone": commit is None,
        "committed_offset": commit and commit.offset,
        "commit_timestamp_ms": commit and commit.commit_timestamp_ms,
    }


def commit_rows(where: Mapping[str, Any], batch: bytes) -> Iterator[dict[str, Any]]:
    """The rows of `committed_offsets` from one complete batch, each with the columns of `where`.

    Commits of a batch that is not transactional take effect as soon as they are written: they have no producer id.
    """
    _offset, _length, _epoch, _magic, _crc, attributes, _delta, _base, _newest, producer_id, *_rest = (
        HEADER.unpack_from(batch)
    )
    has_producer = attributes & TRANSACTIONAL_FLAG and producer_id >= 0
    for commit in iter_commits(batch):
        if not isinstance(commit, str):
            yield {**where, "producer_id": producer_id if has_producer else None, **commit}


# ---- Markers: the control batches of producers


#: Size in bytes of a marker batch as brokers write it: 61 of header, 17 of one record with a 4-byte key and a 6-byte
#: value.
MARKER_SIZE: Final = 78
NO_CONTROL_TYPE: Final = -1


def batches_at(buffer: Buffer, block: Block, indexes: Any) -> Iterator[tuple[int, int, bytes]]:
    """Position, size and bytes of the batches at some indexes. For a batch too large to decode, only its first
    bytes."""
    for index in indexes:
        position, size = int(block.positions[index]), int(block.headers["batch_length"][index]) + LOG_OVERHEAD
        yield position, size, buffer[position : position + min(size, MAX_BATCH_BYTES)]


def read_markers(buffer: Buffer, size: int, block: Block) -> tuple[Any, Any]:
    """Control type and coordinator epoch of each batch; -1 for batches that are not markers. `size`: of the segment.

    Nearly every marker has the 78 bytes that brokers write, so these are read as columns. Compaction leaves markers of
    other sizes. As in Kafka, an undecodable marker changes nothing for its producer. Its batch is still listed.
    """
    control_types = np.full(len(block.headers), NO_CONTROL_TYPE, dtype=np.int32)
    epochs = np.full(len(block.headers), -1, dtype=np.int32)
    usual, bodies, unusual = _split_markers(buffer, size, block)
    control_types[usual] = bodies[:, 8]
    epochs[usual] = bodies[:, 12:16].copy().view(">i4").reshape(-1)
    for index, (_position, _size, batch) in zip(unusual, batches_at(buffer, block, unusual), strict=True):
        with suppress(CorruptRecordError):
            marker = _marker(batch)
            if marker is not None and marker.control_type is not None:
                control_types[index], epochs[index] = marker.control_type, on_disk(marker.coordinator_epoch)
    return control_types, epochs


def undecodable_markers(buffer: Buffer, size: int, block: Block) -> Iterator[tuple[int, int, bytes, str]]:
    """Position, size and bytes of the control batches that cannot be decoded, and why."""
    for position, length, batch in batches_at(buffer, block, _split_markers(buffer, size, block)[2]):
        try:
            _marker(batch)
        except CorruptRecordError as error:
            yield position, length, batch, f"UNDECODABLE_MARKER: {error.problem}"


def _split_markers(buffer: Buffer, size: int, block: Block) -> tuple[Any, Any, Any]:
    """Indexes of the markers as brokers write them, the 17 bytes after their headers, and indexes of all other
    markers."""
    headers = block.headers
    is_control = (headers["magic"] == 2) & (headers["attributes"] & CONTROL_FLAG != 0)
    candidates = np.flatnonzero(is_control & (headers["records_count"] > 0) & (headers["producer_id"] >= 0))
    is_plain = headers["batch_length"][candidates] == MARKER_SIZE - LOG_OVERHEAD
    plain, length = candidates[is_plain], MARKER_SIZE - HEADER.size
    bodies = np.empty((0, length), dtype=np.uint8)
    if len(plain):
        bodies = gather(buffer, block.positions[plain] + HEADER.size, length, size)
    # varint 4 before the key, varint 6 before the value, after the usual one-byte timestamp delta.
    is_usual = (bodies[:, 4] == 8) & (bodies[:, 9] == 12) & (headers["attributes"][plain] & COMPRESSION_MASK == 0)
    is_usual &= (bodies[:, 7] == 0) & (bodies[:, 8] <= 1)
    return plain[is_usual], bodies[is_usual], np.concatenate([candidates[~is_plain], plain[~is_usual]])


def _marker(batch: bytes) -> EndTxnMarker | None:
    """The marker in a control batch; None for other control records. Its timestamp and offset are those of the
    header."""
    return read_end_txn_marker(next(iter_batch_records(batch)))


# ---- Records of `__cluster_metadata`, from segments and snapshots

# An idle controller writes two NoOpRecords a second. Consecutive ones are one row, and their batches are recognised
# without decoding.
