"""Batch headers as columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from txnlib.core.kafka.constants import MAX_INT32
from txnlib.core.kafka.record_batch import (
    COMPRESSION_MASK,
    HEADER,
    HEADER_FIELDS,
    LOG_OVERHEAD,
    CompressionType,
)
from txnlib.readers.storage.block_buffer import BlockBuffer, Buffer


@dataclass(frozen=True, slots=True)
class ReaderState:
    """The position, and the last offset and leader epoch of the batch before it.

    `last_offset` and `leader_epoch` are None before the first batch; `leader_epoch` is -1 if the batch has none.
    """

    position: int
    last_offset: int | None
    leader_epoch: int | None = None


AT_START: Final = ReaderState(0, None)


Headers = np.ndarray[Any, np.dtype[Any]]
Positions = np.ndarray[Any, np.dtype[np.int64]]
Raw = np.ndarray[Any, np.dtype[np.uint8]]
#: A batch header as numpy reads it.
HEADER_DTYPE: Final = np.dtype([(name, f">{kind}") for name, kind in HEADER_FIELDS.items()])
PAGE: Final = 4_096
#: Smallest values of the length field: a v2 batch without records, and a v0 message without key and value.
MIN_V2_LENGTH: Final = HEADER.size - LOG_OVERHEAD
MIN_LENGTH: Final = 14
#: A batch is at most as large as a segment, whose positions are int32.
MAX_LENGTH: Final = MAX_INT32 - LOG_OVERHEAD
NO_LEADER_EPOCH: Final = -1


def last_offsets(headers: Headers) -> Positions:
    """Offset of the last record of each batch. For message sets of v0 and v1, this is the offset in the header."""
    base = headers["base_offset"].astype(np.int64)
    return np.asarray(np.where(headers["magic"] == 2, base + headers["last_offset_delta"], base))


def leader_epochs(headers: Headers) -> Positions:
    """Leader epoch of each batch; -1 for message sets of v0 and v1, which have none."""
    return np.asarray(
        np.where(headers["magic"] == 2, headers["partition_leader_epoch"], NO_LEADER_EPOCH).astype(np.int64)
    )


def at_hand(buffer: Buffer, position: int, width: int) -> tuple[bytes, int, int]:
    """Bytes that are in memory and contain the `width` bytes at a position.

    Returns these bytes, the position of the first of them, and the highest position at which they contain `width`
    bytes.
    """
    if not isinstance(buffer, BlockBuffer):
        return buffer, 0, len(buffer) - width
    content, begin = buffer.block_at(position)
    reach = begin + len(content) - width
    return (content, begin, reach) if position <= reach else (buffer[position : position + width], position, position)


def gather(buffer: Buffer, positions: Positions, width: int, size: int) -> Raw:
    """A row for each position, of the `width` bytes there, in one copy. Beyond `size`, the last byte is repeated."""
    if isinstance(buffer, BlockBuffer):
        return _gather_ranges(buffer, positions, width, size)
    start, reach = int(positions[0]), size - width
    if int(positions[-1]) > reach:
        window = np.frombuffer(buffer, dtype=np.uint8, count=size - start, offset=start)
        return np.take(window, (positions - start)[:, None] + np.arange(width), mode="clip")
    # An array with an overlapping element at every byte, so that numpy copies whole elements: a third of the time of
    # single bytes.
    count = int(positions[-1]) - start + 1
    places: Any = np.ndarray(count, dtype=f"V{width}", buffer=buffer, offset=start, strides=(1,))
    return np.asarray(places[positions - start].view(np.uint8).reshape(-1, width))


def _gather_ranges(buffer: BlockBuffer, positions: Positions, width: int, size: int) -> Raw:
    """As `gather`, from a buffer of ranges: positions within one block at once, and a position whose bytes span two
    blocks by itself."""
    pieces, index = [], 0
    while index < len(positions):
        position = int(positions[index])
        content, begin, reach = at_hand(buffer, position, width)
        if position < reach:
            stop = int(np.searchsorted(positions, reach, side="right"))
            pieces.append(gather(content, positions[index:stop] - begin, width, len(content)))
        else:
            stop = index + 1
            row = buffer[position : min(position + width, size)]
            pieces.append(np.frombuffer(row.ljust(width, row[-1:]), dtype=np.uint8).reshape(1, width))
        index = stop
    return np.concatenate(pieces)


def header_at(buffer: Buffer, position: int) -> Headers:
    """The header at a position, padded with zeros if the file ends inside it."""
    return np.frombuffer(buffer[position : position + HEADER.size].ljust(HEADER.size, b"\0"), dtype=HEADER_DTYPE)


def is_plausible(headers: Headers) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether each header, by itself, can be that of a batch: its sizes, counts and sums are in range."""
    is_v2 = (
        (headers["magic"] == 2)
        & (headers["batch_length"] >= MIN_V2_LENGTH)
        & (headers["partition_leader_epoch"] >= NO_LEADER_EPOCH)
        & (headers["last_offset_delta"] >= 0)
        & (headers["records_count"] >= 0)
        & (headers["records_count"] <= headers["last_offset_delta"].astype(np.int64) + 1)
        & (headers["attributes"] & COMPRESSION_MASK <= max(CompressionType))
        & (headers["producer_id"] >= -1)
    )
    is_v2 &= last_offsets(headers) >= headers["base_offset"]  # the sum is an int64
    is_known = is_v2 | (headers["magic"] == 0) | (headers["magic"] == 1)
    return np.asarray(is_known & (headers["batch_length"] <= MAX_LENGTH))


def read_int32(buffer: Buffer, position: int) -> int:
    """The signed big-endian int32 at a position."""
    return int.from_bytes(buffer[position : position + 4], "big", signed=True)


def read_int64(buffer: Buffer, position: int) -> int:
    """The signed big-endian int64 at a position."""
    return int.from_bytes(buffer[position : position + 8], "big", signed=True)
