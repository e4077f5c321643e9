"""What do the records of one batch say? The bytes of a batch to records of the core, decompressed by cramjam."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import cramjam

from txnlib.core.record_batch import (
    COMPRESSION_MASK,
    HEADER,
    TIMESTAMP_TYPE_FLAG,
    CompressionType,
    Record,
    read_records,
)
from txnlib.core.wire import CorruptRecordError, read_int32

XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"


def read_batch_records(batch: bytes) -> list[Record]:
    """The records of one whole v2 batch, whatever its codec.

    Raises CorruptRecordError where the body does not decompress, or does not hold what the header promises.
    """
    (
        base_offset,
        _length,
        _leader_epoch,
        _magic,
        _crc,
        attributes,
        _delta,
        base_timestamp,
        max_timestamp,
        *_producer,
        count,
    ) = HEADER.unpack_from(batch)
    body = decompress(attributes & COMPRESSION_MASK, batch[HEADER.size :])
    log_append_time = max_timestamp if attributes & TIMESTAMP_TYPE_FLAG else None
    return read_records(body, count, base_offset, base_timestamp, log_append_time)


def decompress(codec: int, body: bytes) -> bytes:
    """The plain body of a batch. Raises CorruptRecordError if the codec is unknown or its stream is broken."""
    if codec == CompressionType.NONE:
        return body
    if codec not in DECOMPRESSORS:
        raise CorruptRecordError(HEADER.size, f"compression codec {codec} is not known")
    try:
        return bytes(DECOMPRESSORS[codec](body))
    except cramjam.DecompressionError as error:
        raise CorruptRecordError(HEADER.size, f"{CompressionType(codec).name.lower()} stream is broken: {error}") from error


def _decompress_xerial(body: bytes) -> bytes:
    """Snappy as snappy-java frames it: a magic, two versions, then blocks of (length, raw snappy)."""
    if not body.startswith(XERIAL_MAGIC):
        return bytes(cramjam.snappy.decompress_raw(body))
    blocks, position = [], len(XERIAL_MAGIC) + 8
    while position < len(body):
        length, position = read_int32(body, position)
        blocks.append(bytes(cramjam.snappy.decompress_raw(body[position : position + length])))
        position += length
    return b"".join(blocks)


#: codec in the attributes -> what undoes it.
DECOMPRESSORS: Final[Mapping[int, Callable[[bytes], Any]]] = {
    CompressionType.GZIP: cramjam.gzip.decompress,
    CompressionType.SNAPPY: _decompress_xerial,
    CompressionType.LZ4: cramjam.lz4.decompress,
    CompressionType.ZSTD: cramjam.zstd.decompress,
}
