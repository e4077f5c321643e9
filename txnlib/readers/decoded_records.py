"""Records of one batch, decompressed by cramjam and decoded by the core."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import cramjam
import numpy as np

from txnlib.core.kafka.record_batch import (
    COMPRESSION_MASK,
    HEADER,
    MAX_BODY_BYTES,
    TIMESTAMP_TYPE_FLAG,
    CompressionType,
    Record,
    iter_records,
    unstorable,
)
from txnlib.core.kafka.wire import CorruptRecordError, read_int32

XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
#: Number of bytes of a batch that suffice to detect a body above the limit.
MAX_BATCH_BYTES: Final = HEADER.size + MAX_BODY_BYTES + 1
#: Maximum number of undecodable records per batch that are named; the others are counted.
_NAMED_PROBLEMS: Final = 100


@dataclass(frozen=True, slots=True)
class UnreadableRecord:
    """A record whose offset or timestamp does not fit its column; the other records of the batch are read."""

    problem: str
    record: Record


def read_batch_records(batch: bytes) -> list[Record | UnreadableRecord]:
    """The records of one complete v2 batch, as a list. See `iter_batch_records`."""
    return list(iter_batch_records(batch))


def iter_batch_records(batch: bytes) -> Iterator[Record | UnreadableRecord]:
    """Yields the records of one complete v2 batch, with any compression codec.

    Raises CorruptRecordError, before the first record, if the body cannot be decompressed, is larger than `MAX_BODY_BYTES`, or does
    not contain what the header declares.
    """
    (
        base_offset,
        _length,
        _leader_epoch,
        _magic,
        _crc,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        *_producer,
        count,
    ) = HEADER.unpack_from(batch)
    body = decompress(attributes & COMPRESSION_MASK, batch[HEADER.size :])
    log_append_time = max_timestamp if attributes & TIMESTAMP_TYPE_FLAG else None
    for _ in iter_records(body, count, base_offset, base_timestamp, log_append_time):
        pass
    for record in iter_records(body, count, base_offset, base_timestamp, log_append_time):
        problem = unstorable(record, base_offset, base_offset + last_offset_delta)
        yield record if problem is None else UnreadableRecord(problem, record)


def named(problems: Iterator[str]) -> Iterator[str]:
    """The problems of one batch; after the first 100, only the number of the others."""
    more = 0
    for number, problem in enumerate(problems):
        if number < _NAMED_PROBLEMS:
            yield problem
        else:
            more += 1
    if more:
        yield f"UNDECODABLE_RECORDS: {more:,} more in this batch"


def decompress(codec: int, body: bytes) -> bytes:
    """The decompressed body of a batch.

    Raises CorruptRecordError if the codec is unknown, if its stream is broken, or if the body is larger than `MAX_BODY_BYTES`.
    Never uses more memory than that.
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


def _gzip(body: bytes) -> bytes:
    return _into_limit(cramjam.gzip.decompress_into, body)


def _lz4(body: bytes) -> bytes:
    return _into_limit(cramjam.lz4.decompress_into, body)


def _zstd(body: bytes) -> bytes:
    return _into_limit(cramjam.zstd.decompress_into, body)


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
    """Decompresses raw snappy, which starts with the decompressed length."""
    if cramjam.snappy.decompress_raw_len(block) > room:
        raise _too_large("its snappy stream")
    return bytes(cramjam.snappy.decompress_raw(block))


#: codec in the attributes -> decompressor
DECOMPRESSORS: Final[Mapping[int, Callable[[bytes], bytes]]] = {
    CompressionType.GZIP: _gzip,
    CompressionType.SNAPPY: _snappy,
    CompressionType.LZ4: _lz4,
    CompressionType.ZSTD: _zstd,
}
