"""Batches of a segment, and whether each is valid. Decodes headers into numpy arrays and interprets nothing beyond
them.

The batch lengths form a linked list, so one plain loop walks them. Everything else works on a block of headers at once.
A batch's CRC covers the bytes from its attributes to its end. It does not cover offset, length, leader epoch and magic,
so those are checked against the neighbouring batches.

CRC-32C is checked where the bytes are in memory anyway: on every control batch, on every coordinator batch, on every
batch of at most one page (reading its header has read all of it), and on every suspicious batch. Larger data batches
are trusted by their header.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import google_crc32c
import numpy as np

from txnlib.core.kafka.record_batch import CONTROL_FLAG, CRC_STARTS_AT, HEADER, LOG_OVERHEAD, MAGIC_POSITION
from txnlib.readers.batch_checks import SCAN, BatchChecks, is_denied, is_torn, is_zeros
from txnlib.readers.header_columns import (
    AT_START,
    HEADER_DTYPE,
    MIN_LENGTH,
    NO_LEADER_EPOCH,
    PAGE,
    Headers,
    Positions,
    ReaderState,
    at_hand,
    gather,
    header_at,
    is_plausible,
    last_offsets,
    leader_epochs,
    read_int64,
)
from txnlib.readers.storage.block_buffer import BlockBuffer, Buffer

BLOCK: Final = 65_536
#: The same directly after damage. If every second batch is damaged, this keeps each walk from going through the whole
#: rest of the file.
BLOCK_AFTER_DAMAGE: Final = 64
#: Reads the length of the batch at a position: the length field follows the 8-byte offset.
_LENGTH: Final = struct.Struct(">8xi")


@dataclass(frozen=True, slots=True)
class Block:
    """Up to 65 536 valid batches that follow each other without a gap in position."""

    positions: Positions
    headers: Headers
    #: Last offset of the batch before the first one; None at the start of the file.
    previous_last_offset: int | None

    @property
    def last_offsets(self) -> Positions:
        """Offset of the last record of each batch."""
        return last_offsets(self.headers)


@dataclass(frozen=True, slots=True)
class UnreadableRange:
    """A range of unreadable bytes. `next_offset` is the base offset of the batch after it; None if no batch follows."""

    position: int
    length: int
    reason: str
    next_offset: int | None


@dataclass(frozen=True, slots=True)
class SegmentTail:
    """How the file ends. `how`: CLEAN, ZEROS (preallocated), TORN (inside a batch) or CORRUPT."""

    how: str
    position: int


def read_blocks(
    buffer: Buffer,
    size: int,
    segment_base_offset: int,
    *,
    check_all: bool,
    start: ReaderState = AT_START,
) -> Iterator[Block | UnreadableRange | SegmentTail]:
    """Yields the batches of a segment in order, the unreadable ranges between them, and last how the file ends.

    `check_all` checks the CRC of every batch, whatever its size. After damage, reading resumes at the next batch that
    its CRC, offset and length prove. Time is linear in `size`, whatever the file contains.
    """
    position, last_offset, leader_epoch = start.position, start.last_offset, start.leader_epoch
    epoch_before: int | None = None
    checks = BatchChecks(buffer, size, segment_base_offset)
    if last_offset is not None:
        checks.floor = last_offset
    most, resumed = BLOCK, None
    while True:
        positions, stop, is_full = _walk(buffer, position, size, most)
        most = min(2 * most, BLOCK)
        good, reason = 0, ""
        if len(positions):
            headers = gather(buffer, positions, HEADER.size, size).view(HEADER_DTYPE).reshape(-1)
            chain = _Chain(positions, headers, leader_epoch, epoch_before, is_first=position == 0, is_full=is_full)
            good, reason = _count_believable(checks, chain, check_all, is_before_damage=stop < size and not is_full)
            if good == 1 and position == resumed:
                good = 0 if is_denied(checks, headers, stop if len(positions) == 1 else int(positions[1])) else 1
            # The next batch shows whether the last one is valid, so the last one is read again together with it.
            kept = good - 1 if is_full and good == len(positions) else good
            if kept:
                yield Block(positions[:kept], headers[:kept], last_offset)
                checks.floor = last_offset = int(last_offsets(headers[:kept])[-1])
                epochs = leader_epochs(headers[:kept]).tolist()
                epoch_before = epochs[-2] if kept > 1 else NO_LEADER_EPOCH if leader_epoch is None else leader_epoch
                leader_epoch = epochs[-1]
        is_whole_block = good == len(positions)
        if is_whole_block and is_full:
            position = int(positions[-1])
            continue
        bad = stop if is_whole_block else int(positions[good])
        if bad >= size:
            yield SegmentTail("CLEAN", bad)
            return
        if is_zeros(buffer, bad, size):
            yield SegmentTail("ZEROS", bad)
            return
        resumed = checks.next_believable(bad)
        reason = "CORRUPT_LENGTH" if is_whole_block else reason
        if resumed is None:
            how = "TORN" if is_whole_block and is_torn(checks, bad) else "CORRUPT"
            reason = LOOKALIKES if checks.is_spent else reason
            yield UnreadableRange(bad, size - bad, "INCOMPLETE_BATCH" if how == "TORN" else reason, None)
            yield SegmentTail(how, bad)
            return
        yield UnreadableRange(bad, resumed - bad, reason, read_int64(buffer, resumed))
        position, most = resumed, min(BLOCK_AFTER_DAMAGE, BLOCK)


@dataclass(frozen=True, slots=True)
class _Chain:
    """Consecutive batches, as chained by their length fields, and the state before the first one."""

    positions: Positions
    headers: Headers
    #: Leader epoch of the batch before the first one.
    leader_epoch: int | None
    #: That of the batch before that one; None if it is not known, as where reading begins.
    epoch_before: int | None
    #: Whether the first batch is the first of the file, and whether more batches follow the last.
    is_first: bool
    is_full: bool


def _walk(buffer: Buffer, position: int, size: int, most: int, span: int | None = None) -> tuple[Positions, int, bool]:
    """The positions of batches that the length fields chain, where the walk stopped, and whether it could have
    continued.

    It could have continued if it has `most` batches, or if it has covered as many bytes as a buffer of ranges keeps. In
    the latter case it has at least two batches.
    """
    positions: list[int] = []
    note, start = positions.append, position
    unpack = _LENGTH.unpack_from
    last = stop_after = size - MAGIC_POSITION - 1
    # The part of the buffer that is in memory. For a buffer of ranges this is one block, which may end inside the last
    # batch.
    content: Any = buffer
    begin, reach = 0, size
    if isinstance(buffer, BlockBuffer):
        span = span or buffer.span
        stop_after, reach = min(last, start + span), -1
    for _ in range(most):
        if position > stop_after:
            break
        if position > reach:
            content, begin, reach = at_hand(buffer, position, _LENGTH.size)
        (length,) = unpack(content, position - begin)
        after = position + length + LOG_OVERHEAD
        if length < MIN_LENGTH or after > size:
            return np.array(positions, dtype=np.int64), position, False
        note(position)
        position = after
    else:
        return np.array(positions, dtype=np.int64), position, True
    is_full = position <= last
    if is_full and span and len(positions) == 1:
        return _walk(buffer, start, size, most, 2 * span)
    return np.array(positions, dtype=np.int64), position, is_full


def _count_believable(
    checks: BatchChecks, chain: _Chain, check_all: bool, *, is_before_damage: bool
) -> tuple[int, str]:
    """How many batches, counted from the first, are valid, and why the next one is not."""
    positions, headers = chain.positions, chain.headers
    sizes = headers["batch_length"].astype(np.int64) + LOG_OVERHEAD
    last = last_offsets(headers)
    plausible = is_plausible(headers) & (headers["base_offset"] <= checks.ceiling) & (last <= checks.ceiling)
    plausible[0] &= headers["base_offset"][0] > checks.floor
    plausible[1:] &= headers["base_offset"][1:] > last[:-1]
    is_control = headers["attributes"] & CONTROL_FLAG != 0
    checked = is_control | (sizes <= PAGE) | (headers["magic"] != 2)
    if check_all:
        checked[:] = True
    # A wrong length or offset shows at the next batch, a wrong leader epoch on either side: check the CRC of both.
    falls = _falls(chain)
    suspects = np.concatenate([np.flatnonzero(~plausible), falls])
    checked[suspects] = True
    checked[suspects[suspects > 0] - 1] = True
    if is_before_damage:
        checked[-1] = True
    bad = np.flatnonzero(~plausible)
    first = int(bad[0]) if len(bad) else len(positions)
    refuted = _first_refuted(checks, positions, sizes, headers, np.flatnonzero(checked[:first]))
    first = first if refuted is None else refuted
    if first < len(positions) and _is_offset_misplaced(headers, last, first, checks.floor):
        first -= 1
    contradicted = (_contradicted(checks, chain, fall, first) for fall in falls.tolist())
    index = next((index for index in contradicted if index is not None), None)
    return (first, CORRUPT_BATCH) if index is None else (index, CONTRADICTED_EPOCH)


CORRUPT_BATCH: Final = "CORRUPT_BATCH"
LOOKALIKES: Final = "CORRUPT_BATCH: more of the file looks like batches than is checked"
CONTRADICTED_EPOCH: Final = "CORRUPT_BATCH: its leader epoch contradicts those of its neighbours"


def _falls(chain: _Chain) -> Positions:
    """Indexes of the batches whose leader epoch is lower than that of the previous batch. Epochs never fall in a valid
    log."""
    epochs = leader_epochs(chain.headers)
    before = np.concatenate([[NO_LEADER_EPOCH if chain.leader_epoch is None else chain.leader_epoch], epochs[:-1]])
    return np.flatnonzero((epochs > NO_LEADER_EPOCH) & (epochs < before))


def _contradicted(checks: BatchChecks, chain: _Chain, fall: int, end: int) -> int | None:
    """Index of the one batch, before index `end`, whose leader epoch is wrong where epochs fall; None if no single
    batch is wrong.

    No CRC covers leader epochs. If a single batch disagrees with neighbours that agree with each other, its epoch is
    wrong. If the epochs fall and stay low, a leader with an older epoch continued the log: that is no damage, and
    `core.coverage.coverage` reports it. If either of two batches may be the wrong one, both are kept:
    `core.coverage.truncated_tails` also compares them with the next segment and with the leader epoch checkpoint.
    """
    epochs = leader_epochs(chain.headers)
    if fall >= end:
        return None
    if fall > 0 and _is_raised(checks, chain, epochs, fall):
        return fall - 1
    if fall == len(epochs) - 1 and chain.is_full:
        return None  # read again, together with the next batches
    before = int(epochs[fall - 1]) if fall else NO_LEADER_EPOCH if chain.leader_epoch is None else chain.leader_epoch
    after = int(epochs[fall + 1]) if fall + 1 < end else None
    is_isolated = after is None or after >= before
    return fall if is_isolated and (after == before or not _may_be_raised(chain, epochs, fall)) else None


def _may_be_raised(chain: _Chain, epochs: Positions, fall: int) -> bool:
    """Whether the epochs would not fall without the batch before a fall, so that its epoch may be the wrong one."""
    if fall > 1:
        earlier: int | None = int(epochs[fall - 2])
    elif fall == 1:
        earlier = NO_LEADER_EPOCH if chain.is_first else chain.leader_epoch
    else:
        earlier = chain.epoch_before
    return earlier is not None and earlier <= int(epochs[fall])


def _is_raised(checks: BatchChecks, chain: _Chain, epochs: Positions, fall: int) -> bool:
    """Whether the batch before a fall has a higher epoch than its two neighbours, which are equal.

    For the first batch of a file, these are the two batches after it.
    """
    if fall > 1 or chain.leader_epoch is not None:
        return bool(epochs[fall] == (epochs[fall - 2] if fall > 1 else chain.leader_epoch))
    second = int(chain.positions[1]) + int(chain.headers["batch_length"][1]) + LOG_OVERHEAD
    if not chain.is_first or second + HEADER.size > checks.size:
        return False
    return bool(leader_epochs(header_at(checks.buffer, second))[0] == epochs[fall])


def _first_refuted(
    checks: BatchChecks, positions: Positions, sizes: Positions, headers: Headers, indexes: Any
) -> int | None:
    """Index of the first batch among `indexes` whose CRC does not match; None if all match. The only loop that costs
    time."""
    starts = positions[indexes]
    ends = (starts + sizes[indexes]).tolist()
    is_plain = (headers["magic"][indexes] == 2).all() and not checks.is_damaged and (sizes[indexes] <= SCAN).all()
    if not is_plain:
        for number, (start, end) in enumerate(zip(starts.tolist(), ends, strict=True)):
            if not checks.is_crc_valid(start, end):
                return int(indexes[number])
        return None
    buffer, crcs, value = checks.buffer, headers["crc"][indexes].tolist(), google_crc32c.value
    content: Any = b""
    begin, reach = 0, -1
    for start, end, crc in zip((starts + CRC_STARTS_AT).tolist(), ends, crcs, strict=True):
        if end > reach:
            content, begin, reach = at_hand(buffer, start, min(end - start, PAGE))
            reach = begin + len(content)
        if value(content[start - begin : end - begin] if end <= reach else buffer[start:end]) != crc:
            return int(indexes[ends.index(end)])
    return None


def _is_offset_misplaced(headers: Headers, last: Positions, bad: int, floor: int) -> bool:
    """Whether the wrong offset is that of the batch *before* the one whose offset seems too low. No CRC covers
    offsets."""
    if bad == 0:
        return False
    before = floor if bad == 1 else int(last[bad - 2])
    base = int(headers["base_offset"][bad])
    return before < base <= int(last[bad - 1]) and int(headers["base_offset"][bad - 1]) > before + 1
