"""CRCs of batches, and the way out of damage.

After damage, reading resumes at the next batch that its offset, length and CRC prove.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import google_crc32c
import numpy as np

from txnlib.core.kafka.constants import MAX_INT32, MAX_INT64
from txnlib.core.kafka.record_batch import CRC_STARTS_AT, HEADER, LOG_OVERHEAD, MAGIC_POSITION, stored_crc
from txnlib.readers.header_columns import (
    HEADER_DTYPE,
    MIN_LENGTH,
    Headers,
    gather,
    is_plausible,
    last_offsets,
    read_int32,
    read_int64,
)
from txnlib.readers.storage.block_buffer import Buffer

#: Whether it is CRC-32C, or CRC-32 as in message sets before version 2 -> (CRC so far, more bytes) -> CRC.
_EXTEND: Final[Mapping[bool, Callable[[int, bytes], int]]] = {
    True: google_crc32c.extend,
    False: lambda crc, more: zlib.crc32(more, crc),
}
#: Number of bytes to read at once.
_READ_BYTES: Final = 1 << 20


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
