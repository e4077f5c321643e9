"""Batch headers as columns, CRCs of batches, and the way out of damage.

After damage, reading resumes at the next batch that its offset, length and CRC prove.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import google_crc32c
import numpy as np

from txnlib.core.kafka.constants import MAX_INT32, MAX_INT64
from txnlib.core.kafka.record_batch import (
    COMPRESSION_MASK,
    CRC_STARTS_AT,
    HEADER,
    HEADER_FIELDS,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    CompressionType,
    stored_crc,
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
    """Bytes in memory that contain `width` bytes at a position.

    Returns the bytes, the position of the first one, and the highest position at which they contain `width` bytes.
    """
    if not isinstance(buffer, BlockBuffer):
        return buffer, 0, len(buffer) - width
    content, begin = buffer.block_at(position)
    reach = begin + len(content) - width
    return (content, begin, reach) if position <= reach else (buffer[position : position + width], position, position)


def gather(buffer: Buffer, positions: Positions, width: int, size: int) -> Raw:
    """The `width` bytes at each position as rows, in one copy. Beyond `size`, the last byte is repeated."""
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
    """The same for a buffer of ranges: positions within one block together, a position whose bytes span two blocks by
    itself."""
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


def is_crc_valid(buffer: Buffer, position: int, end: int) -> bool:
    """Whether the CRC of the batch in [position, end) matches, for any magic. With at most a MiB in memory."""
    (stored, start, is_crc32c), crc = crc_of(buffer, position), 0
    for at in range(start, end, _READ_BYTES):
        crc = _EXTEND[is_crc32c](crc, buffer[at : min(at + _READ_BYTES, end)])
    return crc == stored


def crc_of(buffer: Buffer, position: int) -> tuple[int, int, bool]:
    """`stored_crc` of the batch at a position; the bytes that it covers begin at a position, too."""
    stored, begin, is_crc32c = stored_crc(buffer[position : position + CRC_STARTS_AT])
    return stored, position + begin, is_crc32c


def read_int32(buffer: Buffer, position: int) -> int:
    """The signed big-endian int32 at a position."""
    return int.from_bytes(buffer[position : position + 4], "big", signed=True)


def read_int64(buffer: Buffer, position: int) -> int:
    """The signed big-endian int64 at a position."""
    return int.from_bytes(buffer[position : position + 8], "big", signed=True)


#: Whether it is CRC-32C, or CRC-32 as in message sets before version 2 -> (CRC so far, more bytes) -> CRC.
_EXTEND: Final[Mapping[bool, Callable[[int, bytes], int]]] = {
    True: google_crc32c.extend,
    False: lambda crc, more: zlib.crc32(more, crc),
}
#: Number of bytes to read at once.
_READ_BYTES: Final = 1 << 20


# ---- Resuming after damage


#: Number of bytes to search at once, at first and at most.
_LOOK: Final = 1 << 10
SCAN: Final = 1 << 20
#: Number of headers to check at once after damage.
_TOGETHER: Final = 4_096
#: How often each byte may be read for a CRC after damage, on average. An honest file needs two or three; a crafted one
#: may look like a batch that reaches to its end, wherever one begins to read.
_MOST_READS: Final = 16


class BatchChecks:
    """Checks of the batches of a file: which offsets may follow the current position, and CRCs."""

    def __init__(self, buffer: Buffer, size: int, segment_base_offset: int) -> None:
        self.buffer, self.size = buffer, size
        #: The next offsets are above this one ...
        self.floor = segment_base_offset - 1
        #: ... and at most this one: a segment's index stores them as int32, relative to the base offset.
        self.ceiling = min(segment_base_offset + MAX_INT32, MAX_INT64 - 1)
        self.is_damaged = False
        self._bytes_left = _MOST_READS * size
        self._ahead: tuple[int, int | None] | None = None

    def next_believable(self, bad: int) -> int | None:
        """Position of the first batch after damage that CRC, length and offset prove; None if there is none.

        A second call for the same position returns the first result. It follows only if `is_denied` is false, so the
        floor, which is higher by then, would not change the result.
        """
        if self._ahead is None or self._ahead[0] != bad:
            self.is_damaged = True
            self._ahead = bad, _next_believable(self, bad)
        return self._ahead[1]

    @property
    def is_spent(self) -> bool:
        """Whether more bytes look like batches than may be read."""
        return self._bytes_left < 0

    def is_crc_valid(self, position: int, end: int) -> bool:
        """Whether the CRC of the batch in [position, end) matches, for any magic. None does once `is_spent` is true."""
        if self.is_damaged:
            self._bytes_left -= end - position
        return not self.is_spent and is_crc_valid(self.buffer, position, end)


def _growing_ranges(start: int, end: int) -> Iterator[tuple[int, int]]:
    """[start, end) in growing pieces, so that an early match costs little."""
    count = _LOOK
    while start < end:
        yield start, min(start + count, end)
        start, count = start + count, min(2 * count, SCAN)


def is_zeros(buffer: Buffer, position: int, size: int) -> bool:
    """Whether only zeros follow: the unused end of a preallocated segment."""
    return all(not any(buffer[start:end]) for start, end in _growing_ranges(position, size))


def is_torn(checks: BatchChecks, position: int) -> bool:
    """Whether the file ends inside a batch with a plausible start, as copies of a log that is being written do."""
    buffer, size = checks.buffer, checks.size
    if size - position <= MAGIC_POSITION:
        return True
    length = read_int32(buffer, position + 8)
    is_cut = length >= MIN_LENGTH and position + length + LOG_OVERHEAD > size
    return (
        is_cut
        and checks.floor < read_int64(buffer, position) <= checks.ceiling
        and buffer[position + MAGIC_POSITION] <= 2
    )


def _next_believable(checks: BatchChecks, bad: int) -> int | None:
    """Position of the first batch after `bad` that CRC, length and offset prove; None if there is none."""
    if checks.size - bad > MAGIC_POSITION:
        length = read_int32(checks.buffer, bad + 8)
        after = bad + length + LOG_OVERHEAD
        if length >= MIN_LENGTH and _first_believable(checks, after, after + 1) is not None:
            return after
    return _first_believable(checks, bad + 1, checks.size)


def _first_believable(checks: BatchChecks, start: int, end: int) -> int | None:
    """Position of the first batch in [start, end) that CRC, length and offset prove; None if there is none."""
    for look in _growing_ranges(start, end):
        for position, after in _candidates(checks, *look):
            if checks.is_crc_valid(position, after):
                return position
    return None


def is_denied(checks: BatchChecks, headers: Headers, bad: int) -> bool:
    """Whether a batch between two damaged ranges has a wrong offset: the next valid batch has no higher offset.

    After damage, only the floor confirms an offset. A wrong offset would make all following batches seem invalid.
    """
    following = checks.next_believable(bad)
    return following is not None and read_int64(checks.buffer, following) <= int(last_offsets(headers)[0])


def _candidates(checks: BatchChecks, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Start and end of each possible batch that starts in [start, end). The caller checks the CRC."""
    buffer, size = checks.buffer, checks.size
    count = min(end, size - MAGIC_POSITION) - start
    if count <= 0:
        return
    window = np.frombuffer(buffer[start : start + count + MAGIC_POSITION], dtype=np.uint8).astype(np.int64)
    offset = sum(window[i : i + count] << (8 * (7 - i)) for i in range(8))
    length = sum(window[i : i + count] << (8 * (11 - i)) for i in range(8, 12))
    after = np.arange(start, start + count) + length + LOG_OVERHEAD
    is_possible = (window[MAGIC_POSITION:] <= 2) & (length >= MIN_LENGTH) & (after <= size)
    is_possible &= (offset > checks.floor) & (offset <= checks.ceiling)
    indexes = np.flatnonzero(is_possible)
    for some in np.split(indexes, range(_TOGETHER, len(indexes), _TOGETHER)) if len(indexes) else ():
        headers = gather(buffer, start + some, HEADER.size, size).view(HEADER_DTYPE).reshape(-1)
        likely = some[is_plausible(headers) & (last_offsets(headers) <= checks.ceiling)]
        yield from zip((start + likely).tolist(), after[likely].tolist(), strict=True)
