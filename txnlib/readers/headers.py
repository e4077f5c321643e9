"""Where are the batches of a segment, and can each be believed? Bytes to numpy, no Kafka semantics beyond the header.

The lengths are a linked list, so one plain loop walks them; everything else works on a block of headers at once. A CRC
covers a batch from its attributes on, not its offset, length and magic, so those are judged by what stands around them.

CRC-32C is checked where the bytes are at hand anyway: on every control batch, every coordinator batch and every batch of
at most one page, which the read of its header brought along; and on whatever looks odd. Larger data batches are trusted
by their header.
"""

from __future__ import annotations

import struct
import zlib
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
from txnlib.readers.block_buffer import BlockBuffer

#: Both slice to bytes; what needs memory (`unpack_from`, `frombuffer`) is told apart in `_walk`, `gather` and `_first_refuted`.
Buffer = bytes | BlockBuffer
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
PAGE: Final = 4_096
#: Smallest lengths after the overhead: a v2 batch without records, and a v0 message without key and value.
MIN_V2_LENGTH: Final = HEADER.size - LOG_OVERHEAD
MIN_LENGTH: Final = 14
#: The length of the batch at a position: behind its offset.
_LENGTH: Final = struct.Struct(">8xi")
_SCAN: Final = 1 << 20


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
    """Where reading stopped because it was asked to, and the last offset before it (None: no batch yet)."""

    position: int
    last_offset: int | None


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
    there: what is read is the same with any pauses.
    """
    position, last_offset = start.position, start.last_offset
    floor = segment_base_offset - 1 if last_offset is None else last_offset
    while True:
        if until is not None and position >= until:
            yield Pause(position, last_offset)
            return
        positions, stop, is_full = _walk(buffer, position, size, until=until)
        good = 0
        if len(positions):
            headers = gather(buffer, positions, HEADER.size, size).view(HEADER_DTYPE).reshape(-1)
            is_before_damage = stop < size and not is_full
            good = _count_believable(buffer, positions, headers, floor, check_all, is_before_damage=is_before_damage)
            # Whether the last one can be believed shows at the batch behind it, so it is read again with that one.
            kept = good - 1 if is_full and good == len(positions) else good
            if kept:
                yield Block(positions[:kept], headers[:kept], last_offset)
                floor = last_offset = int(last_offsets(headers[:kept])[-1])
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
        resumed = _next_believable(buffer, bad, size, floor)
        reason = "CORRUPT_BATCH" if is_whole_block is False else "CORRUPT_LENGTH"
        if resumed is None:
            how = "TORN" if is_whole_block and _is_torn(buffer, bad, size, floor) else "CORRUPT"
            yield Stretch(bad, size - bad, "INCOMPLETE_BATCH" if how == "TORN" else reason, None)
            yield Tail(how, bad)
            return
        yield Stretch(bad, resumed - bad, reason, _read_int64(buffer, resumed))
        position = resumed


def _walk(
    buffer: Buffer, position: int, size: int, span: int | None = None, until: int | None = None
) -> tuple[Positions, int, bool]:
    """Positions of batches that the length fields chain, where the walk stopped, and whether it could have gone on.

    It could if it has BLOCK batches, or one at `until` or behind it, or went through as much as a buffer of ranges holds;
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
    for _ in range(BLOCK):
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
        return _walk(buffer, start, size, 2 * span, until)
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


def _count_believable(
    buffer: Buffer, positions: Positions, headers: Headers, floor: int, check_all: bool, *, is_before_damage: bool
) -> int:
    """How many batches from the first on can be believed."""
    sizes = headers["batch_length"].astype(np.int64) + LOG_OVERHEAD
    plausible = _is_plausible(headers)
    last = last_offsets(headers)
    plausible[0] &= headers["base_offset"][0] > floor
    plausible[1:] &= headers["base_offset"][1:] > last[:-1]
    is_control = headers["attributes"] & CONTROL_FLAG != 0
    checked = is_control | (sizes <= PAGE) | (headers["magic"] != 2)
    if check_all:
        checked[:] = True
    # A wrong length or offset shows at the batch behind it: distrust both.
    suspects = np.flatnonzero(~plausible)
    checked[suspects[suspects > 0] - 1] = True
    if is_before_damage:
        checked[-1] = True
    refuted = _first_refuted(buffer, positions, sizes, headers, np.flatnonzero(checked & plausible))
    if refuted is not None:
        plausible[refuted] = False
    bad = np.flatnonzero(~plausible)
    if not len(bad):
        return len(positions)
    first = int(bad[0])
    if _is_offset_misplaced(headers, last, first, floor):
        return first - 1
    return first


def _first_refuted(buffer: Buffer, positions: Positions, sizes: Positions, headers: Headers, indexes: Any) -> int | None:
    """The first of the batches at `indexes` whose CRC does not fit; None if all do. The one loop that costs time."""
    starts = positions[indexes].tolist()
    ends = (positions[indexes] + sizes[indexes]).tolist()
    legacy = np.flatnonzero(headers["magic"][indexes] != 2)
    if len(legacy):
        for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
            if not is_crc_valid(buffer, start, end):
                return int(indexes[number])
        return None
    crcs, crc32c = headers["crc"][indexes].tolist(), google_crc32c.value
    content, begin, reach = b"", 0, -1
    for start, end, crc in zip((positions[indexes] + CRC_STARTS_AT).tolist(), ends, crcs, strict=True):
        if end > reach:
            content, begin, reach = _at_hand(buffer, start, min(end - start, PAGE))
            reach = begin + len(content)
        if crc32c(content[start - begin : end - begin] if end <= reach else buffer[start:end]) != crc:
            return int(indexes[ends.index(end)])
    return None


def _is_plausible(headers: Headers) -> np.ndarray[Any, np.dtype[np.bool_]]:
    is_v2 = (
        (headers["magic"] == 2)
        & (headers["batch_length"] >= MIN_V2_LENGTH)
        & (headers["last_offset_delta"] >= 0)
        & (headers["records_count"] >= 0)
        & (headers["records_count"] <= headers["last_offset_delta"].astype(np.int64) + 1)
        & (headers["attributes"] & COMPRESSION_MASK <= max(CompressionType))
        & (headers["producer_id"] >= -1)
    )
    return np.asarray(is_v2 | (headers["magic"] == 0) | (headers["magic"] == 1))


def _is_offset_misplaced(headers: Headers, last: Positions, bad: int, floor: int) -> bool:
    """Whether the batch *before* an apparently late one carries the wrong offset: no CRC covers offsets."""
    if bad == 0:
        return False
    before = floor if bad == 1 else int(last[bad - 2])
    base = int(headers["base_offset"][bad])
    return before < base <= int(last[bad - 1]) and int(headers["base_offset"][bad - 1]) > before + 1


def is_crc_valid(buffer: Buffer, position: int, end: int) -> bool:
    """Whether the CRC of the batch in [position, end) fits, of any magic."""
    magic = buffer[position + MAGIC_POSITION]
    if magic == 2:
        stored = int.from_bytes(buffer[position + 17 : position + 21], "big")
        return bool(google_crc32c.value(buffer[position + CRC_STARTS_AT : end]) == stored)
    stored = int.from_bytes(buffer[position + 12 : position + 16], "big")
    return zlib.crc32(buffer[position + MAGIC_POSITION : end]) == stored


def is_zeros(buffer: Buffer, position: int, size: int) -> bool:
    """Whether nothing but zeros follows: the unused end of a preallocated segment."""
    return all(not any(buffer[at : min(at + _SCAN, size)]) for at in range(position, size, _SCAN))


def _is_torn(buffer: Buffer, position: int, size: int, floor: int) -> bool:
    """Whether the file ends inside a batch that begins believably, as a copy of a busy broker does."""
    if size - position <= MAGIC_POSITION:
        return True
    length = _read_int32(buffer, position + 8)
    offset, magic = _read_int64(buffer, position), buffer[position + MAGIC_POSITION]
    return length >= MIN_LENGTH and position + length + LOG_OVERHEAD > size and offset > floor and magic <= 2


def _next_believable(buffer: Buffer, bad: int, size: int, floor: int) -> int | None:
    """Position of the first batch after `bad` that CRC, length and offset prove; None if there is none."""
    if size - bad > MAGIC_POSITION:
        length = _read_int32(buffer, bad + 8)
        after = bad + length + LOG_OVERHEAD
        if length >= MIN_LENGTH and _is_believable(buffer, after, size, floor):
            return int(after)
    for start in range(bad + 1, size, _SCAN):
        for position in _candidates(buffer, start, min(start + _SCAN, size), size, floor):
            if _is_believable(buffer, position, size, floor):
                return position
    return None


def _candidates(buffer: Buffer, start: int, end: int, size: int, floor: int) -> list[int]:
    """Positions in [start, end) where offset, length and magic could be a batch's; the CRC is for the caller to check."""
    count = min(end, size - MAGIC_POSITION) - start
    if count <= 0:
        return []
    window = np.frombuffer(buffer[start : start + count + MAGIC_POSITION], dtype=np.uint8).astype(np.int64)
    offset = sum(window[i : i + count] << (8 * (7 - i)) for i in range(8))
    length = sum(window[i : i + count] << (8 * (11 - i)) for i in range(8, 12))
    after = np.arange(start, start + count) + length + LOG_OVERHEAD
    found = (window[MAGIC_POSITION:] <= 2) & (length >= MIN_LENGTH) & (after <= size) & (offset > floor)
    return [start + int(index) for index in np.flatnonzero(found)]


def find_boundary(buffer: Buffer, start: int, end: int, size: int, segment_base_offset: int) -> Pause | None:
    """The end of the first batch in [start, end) that CRC, length and offset prove; None if there is none, or none follows."""
    floor = segment_base_offset - 1
    for window in range(start, end, _SCAN):
        for position in _candidates(buffer, window, min(window + _SCAN, end), size, floor):
            if _is_believable(buffer, position, size, floor):
                after = position + _read_int32(buffer, position + 8) + LOG_OVERHEAD
                header = np.frombuffer(buffer[position : position + HEADER.size].ljust(HEADER.size), dtype=HEADER_DTYPE)
                return Pause(after, int(last_offsets(header)[0])) if after < size else None
    return None


def _is_believable(buffer: Buffer, position: int, size: int, floor: int) -> bool:
    if position + LOG_OVERHEAD + MIN_LENGTH > size or buffer[position + MAGIC_POSITION] > 2:
        return False
    length = _read_int32(buffer, position + 8)
    after = position + length + LOG_OVERHEAD
    if length < MIN_LENGTH or after > size or not 0 < _read_int64(buffer, position) - floor < 1 << 40:
        return False
    is_v2 = buffer[position + MAGIC_POSITION] == 2
    if is_v2 and length < MIN_V2_LENGTH:
        return False
    return is_crc_valid(buffer, position, after)


def _read_int32(buffer: Buffer, position: int) -> int:
    return int.from_bytes(buffer[position : position + 4], "big", signed=True)


def _read_int64(buffer: Buffer, position: int) -> int:
    return int.from_bytes(buffer[position : position + 8], "big", signed=True)
