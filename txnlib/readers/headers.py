"""Where are the batches of a segment, and can each be believed? Bytes to numpy, no Kafka semantics beyond the header.

The lengths are a linked list, so one plain loop walks them; everything else works on a block of headers at once. A CRC
covers a batch from its attributes on, not its offset, length and magic, so those are judged by what stands around them.

CRC-32C is checked where the bytes are at hand anyway: on every control batch, every coordinator batch and every batch of
at most one page, which the read of its header brought along; and on whatever looks odd. Larger data batches are trusted
by their header.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import google_crc32c
import numpy as np

from txnlib.core.record_batch import (
    COMPRESSION_MASK,
    CONTROL_FLAG,
    CRC_STARTS_AT,
    HEADER,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    CompressionType,
)
from txnlib.core.wire import MAX_INT32, MAX_INT64
from txnlib.readers.block_buffer import BlockBuffer
from txnlib.readers.block_buffer import Buffer as Buffer
from txnlib.readers.range_crc import RangeCrcs, crc32, crc32c

Headers = np.ndarray[Any, np.dtype[Any]]
Positions = np.ndarray[Any, np.dtype[np.int64]]
Raw = np.ndarray[Any, np.dtype[np.uint8]]

#: The 61 bytes of a v2 batch header, in order (Kafka: `DefaultRecordBatch`).
HEADER_DTYPE: Final = np.dtype(
    [
        ("base_offset", ">i8"),
        ("batch_length", ">i4"),
        ("partition_leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("records_count", ">i4"),
    ]
)
BLOCK: Final = 65_536
#: The same right behind damage: where every second batch is damaged, each walk must not go through all that follows.
BLOCK_BEHIND_DAMAGE: Final = 64
PAGE: Final = 4_096
#: Smallest lengths after the overhead: a v2 batch without records, and a v0 message without key and value.
MIN_V2_LENGTH: Final = HEADER.size - LOG_OVERHEAD
MIN_LENGTH: Final = 14
#: The length of the batch at a position: behind its offset.
_LENGTH: Final = struct.Struct(">8xi")
#: Bytes that are looked at together, at first and at most.
_LOOK: Final = 1 << 10
_SCAN: Final = 1 << 20
#: Headers that are looked at together behind damage.
_TOGETHER: Final = 4_096
#: A batch is at most as large as a segment, whose positions are int32.
MAX_LENGTH: Final = MAX_INT32 - LOG_OVERHEAD
NO_LEADER_EPOCH: Final = -1


@dataclass(frozen=True, slots=True)
class Block:
    """Up to 65 536 believable batches that stand back to back."""

    positions: Positions
    headers: Headers
    #: Last offset of the batch before the first one; None at the start of the file.
    previous_last_offset: int | None

    @property
    def last_offsets(self) -> Positions:
        return last_offsets(self.headers)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Bytes that cannot be believed. `next_offset` is that of the batch after it; None where none follows."""

    position: int
    length: int
    reason: str
    next_offset: int | None


@dataclass(frozen=True, slots=True)
class Tail:
    """How the file ends: CLEAN, ZEROS (preallocated), TORN (inside a batch), CORRUPT."""

    how: str
    position: int


@dataclass(frozen=True, slots=True)
class Pause:
    """Where reading stopped because it was asked to, and of the batch before it (None: no batch yet) the last offset and the
    leader epoch (-1: it has none)."""

    position: int
    last_offset: int | None
    leader_epoch: int | None = None


BEGINNING: Final = Pause(0, None)


def last_offsets(headers: Headers) -> Positions:
    """Offset of the last record of each batch; message sets of v0 and v1 hold the offset itself."""
    base = headers["base_offset"].astype(np.int64)
    return np.asarray(np.where(headers["magic"] == 2, base + headers["last_offset_delta"], base))


def read_blocks(
    buffer: Buffer,
    size: int,
    segment_base_offset: int,
    *,
    check_all: bool,
    start: Pause = BEGINNING,
    until: int | None = None,
) -> Iterator[Block | Stretch | Tail | Pause]:
    """The batches of a segment in order, what could not be believed between them, and last how it ends.

    `check_all` checks the CRC of every batch, whatever its size. After damage, reading goes on at the next batch whose
    CRC, offset and length prove it. With `until`, it pauses before the first batch from there on, and may be taken up again
    there: what is read is the same with any pauses. The time it takes grows with the size, whatever the file holds.
    """
    position, last_offset, leader_epoch = start.position, start.last_offset, start.leader_epoch
    known = _Known(buffer, size, segment_base_offset)
    if last_offset is not None:
        known.floor = last_offset
    most, resumed = BLOCK, None
    while True:
        if until is not None and position >= until:
            yield Pause(position, last_offset, leader_epoch)
            return
        positions, stop, is_full = _walk(buffer, position, size, most, until=until)
        most = min(2 * most, BLOCK)
        good, reason = 0, ""
        if len(positions):
            headers = gather(buffer, positions, HEADER.size, size).view(HEADER_DTYPE).reshape(-1)
            chain = _Chain(positions, headers, leader_epoch, is_first=position == 0, is_full=is_full)
            good, reason = _count_believable(known, chain, check_all, is_before_damage=stop < size and not is_full)
            if good == 1 and position == resumed:
                good = 0 if _is_denied(known, headers, stop if len(positions) == 1 else int(positions[1])) else 1
            # Whether the last one can be believed shows at the batch behind it, so it is read again with that one.
            kept = good - 1 if is_full and good == len(positions) else good
            if kept:
                yield Block(positions[:kept], headers[:kept], last_offset)
                known.floor = last_offset = int(last_offsets(headers[:kept])[-1])
                leader_epoch = int(leader_epochs(headers[:kept])[-1])
        is_whole_block = good == len(positions)
        if is_whole_block and is_full:
            position = int(positions[-1])
            continue
        bad = stop if is_whole_block else int(positions[good])
        if bad >= size:
            yield Tail("CLEAN", bad)
            return
        if is_zeros(buffer, bad, size):
            yield Tail("ZEROS", bad)
            return
        resumed = known.next_believable(bad)
        reason = "CORRUPT_LENGTH" if is_whole_block else reason
        if resumed is None:
            how = "TORN" if is_whole_block and _is_torn(known, bad) else "CORRUPT"
            yield Stretch(bad, size - bad, "INCOMPLETE_BATCH" if how == "TORN" else reason, None)
            yield Tail(how, bad)
            return
        yield Stretch(bad, resumed - bad, reason, _read_int64(buffer, resumed))
        position, most = resumed, min(BLOCK_BEHIND_DAMAGE, BLOCK)


class _Known:
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

        Asked twice, it was not denied what its offset has to be above (`_is_denied`): the answer is the same.
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
        stored, start, is_crc32c = _stored_crc(self.buffer, position)
        if is_crc32c not in self._ranges:
            self._ranges[is_crc32c] = RangeCrcs(self.buffer, self._origin, is_crc32c=is_crc32c)
        return self._ranges[is_crc32c].crc(start, end) == stored


@dataclass(frozen=True, slots=True)
class _Chain:
    """Batches that lengths chain, with what stands before them."""

    positions: Positions
    headers: Headers
    #: Of the batch before the first one.
    leader_epoch: int | None
    #: Whether the first one is the first of the file, and whether more follows the last.
    is_first: bool
    is_full: bool


def leader_epochs(headers: Headers) -> Positions:
    """Leader epoch of each batch; -1 for message sets of v0 and v1, which have none."""
    return np.asarray(np.where(headers["magic"] == 2, headers["partition_leader_epoch"], NO_LEADER_EPOCH).astype(np.int64))


def _walk(
    buffer: Buffer, position: int, size: int, most: int, span: int | None = None, until: int | None = None
) -> tuple[Positions, int, bool]:
    """Positions of batches that the length fields chain, where the walk stopped, and whether it could have gone on.

    It could if it has `most` batches, or one at `until` or behind it, or went through as much as a buffer of ranges holds;
    then it has two at least.
    """
    pause_at = size if until is None else until
    positions: list[int] = []
    note, start = positions.append, position
    unpack = _LENGTH.unpack_from
    last = stop_after = size - MAGIC_POSITION - 1
    # What is at hand of the buffer: of one in ranges a block, which need not hold all of what begins in it.
    content: Any = buffer
    begin, reach = 0, size
    if isinstance(buffer, BlockBuffer):
        span = span or buffer.span
        stop_after, reach = min(last, start + span), -1
    for _ in range(most):
        if position > stop_after:
            break
        if position > reach:
            content, begin, reach = _at_hand(buffer, position, _LENGTH.size)
        (length,) = unpack(content, position - begin)
        after = position + length + LOG_OVERHEAD
        if length < MIN_LENGTH or after > size:
            return np.array(positions, dtype=np.int64), position, False
        note(position)
        if position >= pause_at:
            return np.array(positions, dtype=np.int64), after, True
        position = after
    else:
        return np.array(positions, dtype=np.int64), position, True
    is_full = position <= last
    if is_full and span and len(positions) == 1:
        return _walk(buffer, start, size, most, 2 * span, until)
    return np.array(positions, dtype=np.int64), position, is_full


def _at_hand(buffer: Buffer, position: int, width: int) -> tuple[bytes, int, int]:
    """Bytes of which `width` are at a position, where they begin, and up to which position `width` of them are there."""
    if not isinstance(buffer, BlockBuffer):
        return buffer, 0, len(buffer) - width
    content, begin = buffer.block_at(position)
    reach = begin + len(content) - width
    return (content, begin, reach) if position <= reach else (buffer[position : position + width], position, position)


def gather(buffer: Buffer, positions: Positions, width: int, size: int) -> Raw:
    """The `width` bytes at each position as rows, in one copy; past `size`, the last byte again."""
    if isinstance(buffer, BlockBuffer):
        return _gather_ranges(buffer, positions, width, size)
    start, reach = int(positions[0]), size - width
    if int(positions[-1]) > reach:
        window = np.frombuffer(buffer, dtype=np.uint8, count=size - start, offset=start)
        return np.take(window, (positions - start)[:, None] + np.arange(width), mode="clip")
    # An element at every byte, of which those at the positions are copied whole: a third of the time of single bytes.
    count = int(positions[-1]) - start + 1
    places: Any = np.ndarray(count, dtype=f"V{width}", buffer=buffer, offset=start, strides=(1,))
    return np.asarray(places[positions - start].view(np.uint8).reshape(-1, width))


def _gather_ranges(buffer: BlockBuffer, positions: Positions, width: int, size: int) -> Raw:
    """The same of a buffer in ranges: at once what lies in one block, alone what lies in two."""
    pieces, index = [], 0
    while index < len(positions):
        position = int(positions[index])
        content, begin, reach = _at_hand(buffer, position, width)
        if position < reach:
            stop = int(np.searchsorted(positions, reach, side="right"))
            pieces.append(gather(content, positions[index:stop] - begin, width, len(content)))
        else:
            stop = index + 1
            row = buffer[position : min(position + width, size)]
            pieces.append(np.frombuffer(row.ljust(width, row[-1:]), dtype=np.uint8).reshape(1, width))
        index = stop
    return np.concatenate(pieces)


def _count_believable(known: _Known, chain: _Chain, check_all: bool, *, is_before_damage: bool) -> tuple[int, str]:
    """How many batches from the first on can be believed, and why not the next."""
    positions, headers = chain.positions, chain.headers
    sizes = headers["batch_length"].astype(np.int64) + LOG_OVERHEAD
    last = last_offsets(headers)
    plausible = _is_plausible(headers) & (headers["base_offset"] <= known.ceiling) & (last <= known.ceiling)
    plausible[0] &= headers["base_offset"][0] > known.floor
    plausible[1:] &= headers["base_offset"][1:] > last[:-1]
    is_control = headers["attributes"] & CONTROL_FLAG != 0
    checked = is_control | (sizes <= PAGE) | (headers["magic"] != 2)
    if check_all:
        checked[:] = True
    # A wrong length or offset shows at the batch behind it, a wrong leader epoch on either side: distrust both.
    falls = _falls(chain)
    suspects = np.concatenate([np.flatnonzero(~plausible), falls])
    checked[suspects] = True
    checked[suspects[suspects > 0] - 1] = True
    if is_before_damage:
        checked[-1] = True
    bad = np.flatnonzero(~plausible)
    first = int(bad[0]) if len(bad) else len(positions)
    refuted = _first_refuted(known, positions, sizes, headers, np.flatnonzero(checked[:first]))
    first = first if refuted is None else refuted
    if first < len(positions) and _is_offset_misplaced(headers, last, first, known.floor):
        first -= 1
    contradicted = (_contradicted(known, chain, fall, first) for fall in falls.tolist())
    index = next((index for index in contradicted if index is not None), None)
    return (first, CORRUPT_BATCH) if index is None else (index, CONTRADICTED_EPOCH)


CORRUPT_BATCH: Final = "CORRUPT_BATCH"
CONTRADICTED_EPOCH: Final = "CORRUPT_BATCH: its leader epoch contradicts those of its neighbours"


def _falls(chain: _Chain) -> Positions:
    """Indexes of the batches whose leader epoch is lower than that of the batch before; they never fall as offsets rise."""
    epochs = leader_epochs(chain.headers)
    before = np.concatenate([[NO_LEADER_EPOCH if chain.leader_epoch is None else chain.leader_epoch], epochs[:-1]])
    return np.flatnonzero((epochs > NO_LEADER_EPOCH) & (epochs < before))


def _contradicted(known: _Known, chain: _Chain, fall: int, end: int) -> int | None:
    """Index of the one batch whose leader epoch is wrong where epochs fall, among the batches up to `end`; None: no single one.

    No CRC covers leader epochs. Where one batch stands between others that agree, it is wrong. Where they fall and stay so, a
    leader that knew less wrote on: that is told elsewhere, and nothing is damaged (`spark.coverage`).
    """
    epochs = leader_epochs(chain.headers)
    if fall >= end:
        return None
    if fall > 0 and _is_raised(known, chain, epochs, fall):
        return fall - 1
    if fall == len(epochs) - 1 and chain.is_full:
        return None  # read again, with what follows
    before = chain.leader_epoch if fall == 0 else int(epochs[fall - 1])
    is_isolated = fall + 1 >= end or epochs[fall + 1] >= before
    return fall if is_isolated else None


def _is_raised(known: _Known, chain: _Chain, epochs: Positions, fall: int) -> bool:
    """Whether the batch before a fall is higher than both its neighbours, which are equal; the first of a file has two after it."""
    if fall > 1 or chain.leader_epoch is not None:
        return bool(epochs[fall] == (epochs[fall - 2] if fall > 1 else chain.leader_epoch))
    second = int(chain.positions[1]) + int(chain.headers["batch_length"][1]) + LOG_OVERHEAD
    if not chain.is_first or second + HEADER.size > known.size:
        return False
    return bool(leader_epochs(header_at(known.buffer, second))[0] == epochs[fall])


def _first_refuted(known: _Known, positions: Positions, sizes: Positions, headers: Headers, indexes: Any) -> int | None:
    """The first of the batches at `indexes` whose CRC does not fit; None if all do. The one loop that costs time."""
    starts = positions[indexes]
    ends = (starts + sizes[indexes]).tolist()
    is_plain = (headers["magic"][indexes] == 2).all() and not known.is_damaged and (sizes[indexes] <= _SCAN).all()
    if not is_plain:
        for number, (start, end) in enumerate(zip(starts.tolist(), ends, strict=True)):
            if not known.is_crc_valid(start, end):
                return int(indexes[number])
        return None
    buffer, crcs, value = known.buffer, headers["crc"][indexes].tolist(), google_crc32c.value
    content: Any = b""
    begin, reach = 0, -1
    for start, end, crc in zip((starts + CRC_STARTS_AT).tolist(), ends, crcs, strict=True):
        if end > reach:
            content, begin, reach = _at_hand(buffer, start, min(end - start, PAGE))
            reach = begin + len(content)
        if value(content[start - begin : end - begin] if end <= reach else buffer[start:end]) != crc:
            return int(indexes[ends.index(end)])
    return None


def _is_plausible(headers: Headers) -> np.ndarray[Any, np.dtype[np.bool_]]:
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


def _is_offset_misplaced(headers: Headers, last: Positions, bad: int, floor: int) -> bool:
    """Whether the batch *before* an apparently late one carries the wrong offset: no CRC covers offsets."""
    if bad == 0:
        return False
    before = floor if bad == 1 else int(last[bad - 2])
    base = int(headers["base_offset"][bad])
    return before < base <= int(last[bad - 1]) and int(headers["base_offset"][bad - 1]) > before + 1


def is_crc_valid(buffer: Buffer, position: int, end: int) -> bool:
    """Whether the CRC of the batch in [position, end) fits, of any magic."""
    stored, start, is_crc32c = _stored_crc(buffer, position)
    return (crc32c if is_crc32c else crc32)(buffer, start, end) == stored


def _stored_crc(buffer: Buffer, position: int) -> tuple[int, int, bool]:
    """The CRC in the header of a batch, where what it covers begins, and whether it is CRC-32C."""
    if buffer[position + MAGIC_POSITION] == 2:
        return int.from_bytes(buffer[position + 17 : position + 21], "big"), position + CRC_STARTS_AT, True
    return int.from_bytes(buffer[position + 12 : position + 16], "big"), position + MAGIC_POSITION, False


def _looks(start: int, end: int) -> Iterator[tuple[int, int]]:
    """[start, end) in pieces that grow, so that what is found soon costs little."""
    count = _LOOK
    while start < end:
        yield start, min(start + count, end)
        start, count = start + count, min(2 * count, _SCAN)


def is_zeros(buffer: Buffer, position: int, size: int) -> bool:
    """Whether nothing but zeros follows: the unused end of a preallocated segment."""
    return all(not any(buffer[start:end]) for start, end in _looks(position, size))


def _is_torn(known: _Known, position: int) -> bool:
    """Whether the file ends inside a batch that begins believably, as a copy of a busy broker does."""
    buffer, size = known.buffer, known.size
    if size - position <= MAGIC_POSITION:
        return True
    length = _read_int32(buffer, position + 8)
    is_cut = length >= MIN_LENGTH and position + length + LOG_OVERHEAD > size
    return is_cut and known.floor < _read_int64(buffer, position) <= known.ceiling and buffer[position + MAGIC_POSITION] <= 2


def _next_believable(known: _Known, bad: int) -> int | None:
    """Position of the first batch after `bad` that CRC, length and offset prove; None if there is none."""
    if known.size - bad > MAGIC_POSITION:
        length = _read_int32(known.buffer, bad + 8)
        after = bad + length + LOG_OVERHEAD
        if length >= MIN_LENGTH and _first_believable(known, after, after + 1) is not None:
            return after
    return _first_believable(known, bad + 1, known.size)


def _first_believable(known: _Known, start: int, end: int) -> int | None:
    """Position of the first batch in [start, end) that CRC, length and offset prove; None if there is none."""
    for look in _looks(start, end):
        for position, after in _candidates(known, *look):
            if known.is_crc_valid(position, after):
                return position
    return None


def _is_denied(known: _Known, headers: Headers, bad: int) -> bool:
    """Whether a batch between two damaged places has a wrong offset: the next that can be believed is not above it.

    Behind damage nothing but the floor vouches for an offset, and a wrong one would take all that follows with it.
    """
    following = known.next_believable(bad)
    return following is not None and _read_int64(known.buffer, following) <= int(last_offsets(headers)[0])


def _candidates(known: _Known, start: int, end: int) -> Iterator[tuple[int, int]]:
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
        likely = some[_is_plausible(headers) & (last_offsets(headers) <= known.ceiling)]
        yield from zip((start + likely).tolist(), after[likely].tolist(), strict=True)


def header_at(buffer: Buffer, position: int) -> Headers:
    """The header at a position; where the file ends before it does, with zeros."""
    return np.frombuffer(buffer[position : position + HEADER.size].ljust(HEADER.size, b"\0"), dtype=HEADER_DTYPE)


def find_boundary(buffer: Buffer, start: int, end: int, size: int, segment_base_offset: int) -> Pause | None:
    """The end of the first batch in [start, end) that CRC, length and offset prove; None if there is none, or none follows."""
    known = _Known(buffer, size, segment_base_offset)
    known.begin_damage(start)
    position = _first_believable(known, start, end)
    if position is None:
        return None
    header = header_at(buffer, position)
    after = position + int(header["batch_length"][0]) + LOG_OVERHEAD
    return Pause(after, int(last_offsets(header)[0]), int(leader_epochs(header)[0])) if after < size else None


def _read_int32(buffer: Buffer, position: int) -> int:
    return int.from_bytes(buffer[position : position + 4], "big", signed=True)


def _read_int64(buffer: Buffer, position: int) -> int:
    return int.from_bytes(buffer[position : position + 8], "big", signed=True)
