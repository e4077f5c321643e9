"""Resuming after damage: at the next batch that offset, length and CRC prove."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from txnlib.core.kafka.record_batch import HEADER, LOG_OVERHEAD, MAGIC_POSITION
from txnlib.core.kafka.wire import MAX_INT32, MAX_INT64
from txnlib.readers.header_columns import (
    HEADER_DTYPE,
    MIN_LENGTH,
    PAGE,
    Headers,
    gather,
    header_at,
    is_crc_valid,
    is_plausible,
    last_offsets,
    leader_epochs,
    read_int32,
    read_int64,
    stored_crc,
)
from txnlib.readers.range_crc import RangeCrcs
from txnlib.readers.storage.block_buffer import Buffer

#: Bytes that are looked at together, at first and at most.
_LOOK: Final = 1 << 10
SCAN: Final = 1 << 20
#: Headers that are looked at together behind damage.
_TOGETHER: Final = 4_096


@dataclass(frozen=True, slots=True)
class Pause:
    """Where reading stopped because it was asked to, and of the batch before it (None: no batch yet) the last offset and the
    leader epoch (-1: it has none)."""

    position: int
    last_offset: int | None
    leader_epoch: int | None = None


BEGINNING: Final = Pause(0, None)


class Known:
    """What is known of a file where it is being read: which offsets can follow, and CRCs."""

    def __init__(self, buffer: Buffer, size: int, segment_base_offset: int) -> None:
        self.buffer, self.size = buffer, size
        #: Offsets of what follows lie above this one ...
        self.floor = segment_base_offset - 1
        #: ... and not above this one: the index of a segment holds them as int32, relative to its name.
        self.ceiling = min(segment_base_offset + MAX_INT32, MAX_INT64 - 1)
        self._ranges: dict[bool, RangeCrcs] = {}
        self._origin: int | None = None
        self._ahead: tuple[int, int | None] | None = None

    def begin_damage(self, position: int) -> None:
        """From here on ranges that are checked may overlap."""
        if self._origin is None:
            self._origin = position

    def next_believable(self, bad: int) -> int | None:
        """Position of the first batch after damage that CRC, length and offset prove; None if there is none.

        Asked twice, it was not denied what its offset has to be above (`is_denied`): the answer is the same.
        """
        if self._ahead is None or self._ahead[0] != bad:
            self.begin_damage(bad)
            self._ahead = bad, _next_believable(self, bad)
        return self._ahead[1]

    @property
    def is_damaged(self) -> bool:
        return self._origin is not None

    def is_crc_valid(self, position: int, end: int) -> bool:
        """Whether the CRC of the batch in [position, end) fits, of any magic."""
        if self._origin is None or position < self._origin or end - position <= PAGE:
            return is_crc_valid(self.buffer, position, end)
        stored, start, is_crc32c = stored_crc(self.buffer, position)
        if is_crc32c not in self._ranges:
            self._ranges[is_crc32c] = RangeCrcs(self.buffer, self._origin, is_crc32c=is_crc32c)
        return self._ranges[is_crc32c].crc(start, end) == stored


def _looks(start: int, end: int) -> Iterator[tuple[int, int]]:
    """[start, end) in pieces that grow, so that what is found soon costs little."""
    count = _LOOK
    while start < end:
        yield start, min(start + count, end)
        start, count = start + count, min(2 * count, SCAN)


def is_zeros(buffer: Buffer, position: int, size: int) -> bool:
    """Whether nothing but zeros follows: the unused end of a preallocated segment."""
    return all(not any(buffer[start:end]) for start, end in _looks(position, size))


def is_torn(known: Known, position: int) -> bool:
    """Whether the file ends inside a batch that begins believably, as a copy of a busy broker does."""
    buffer, size = known.buffer, known.size
    if size - position <= MAGIC_POSITION:
        return True
    length = read_int32(buffer, position + 8)
    is_cut = length >= MIN_LENGTH and position + length + LOG_OVERHEAD > size
    return is_cut and known.floor < read_int64(buffer, position) <= known.ceiling and buffer[position + MAGIC_POSITION] <= 2


def _next_believable(known: Known, bad: int) -> int | None:
    """Position of the first batch after `bad` that CRC, length and offset prove; None if there is none."""
    if known.size - bad > MAGIC_POSITION:
        length = read_int32(known.buffer, bad + 8)
        after = bad + length + LOG_OVERHEAD
        if length >= MIN_LENGTH and _first_believable(known, after, after + 1) is not None:
            return after
    return _first_believable(known, bad + 1, known.size)


def _first_believable(known: Known, start: int, end: int) -> int | None:
    """Position of the first batch in [start, end) that CRC, length and offset prove; None if there is none."""
    for look in _looks(start, end):
        for position, after in _candidates(known, *look):
            if known.is_crc_valid(position, after):
                return position
    return None


def is_denied(known: Known, headers: Headers, bad: int) -> bool:
    """Whether a batch between two damaged places has a wrong offset: the next that can be believed is not above it.

    Behind damage nothing but the floor vouches for an offset, and a wrong one would take all that follows with it.
    """
    following = known.next_believable(bad)
    return following is not None and read_int64(known.buffer, following) <= int(last_offsets(headers)[0])


def _candidates(known: Known, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Beginnings in [start, end), and ends, of what could be a batch; the CRC is for the caller to check."""
    buffer, size = known.buffer, known.size
    count = min(end, size - MAGIC_POSITION) - start
    if count <= 0:
        return
    window = np.frombuffer(buffer[start : start + count + MAGIC_POSITION], dtype=np.uint8).astype(np.int64)
    offset = sum(window[i : i + count] << (8 * (7 - i)) for i in range(8))
    length = sum(window[i : i + count] << (8 * (11 - i)) for i in range(8, 12))
    after = np.arange(start, start + count) + length + LOG_OVERHEAD
    found = (window[MAGIC_POSITION:] <= 2) & (length >= MIN_LENGTH) & (after <= size)
    found &= (offset > known.floor) & (offset <= known.ceiling)
    indexes = np.flatnonzero(found)
    for some in np.split(indexes, range(_TOGETHER, len(indexes), _TOGETHER)) if len(indexes) else ():
        headers = gather(buffer, start + some, HEADER.size, size).view(HEADER_DTYPE).reshape(-1)
        likely = some[is_plausible(headers) & (last_offsets(headers) <= known.ceiling)]
        yield from zip((start + likely).tolist(), after[likely].tolist(), strict=True)


def find_boundary(buffer: Buffer, start: int, end: int, size: int, segment_base_offset: int) -> Pause | None:
    """The end of the first batch in [start, end) that CRC, length and offset prove; None if there is none, or none follows."""
    known = Known(buffer, size, segment_base_offset)
    known.begin_damage(start)
    position = _first_believable(known, start, end)
    if position is None:
        return None
    header = header_at(buffer, position)
    after = position + int(header["batch_length"][0]) + LOG_OVERHEAD
    return Pause(after, int(last_offsets(header)[0]), int(leader_epochs(header)[0])) if after < size else None
