"""Segments of an earlier run that are resumed, by their fingerprints.

A broker only appends to a segment, unless it truncates, compacts or deletes it. So a reader records some batches as
landmarks: the first of every 16 MiB, and the last. If all of them are at the same position with the same size, offset,
CRC and leader epoch, the bytes that were read need not be read again. A batch that disappeared or was added would have
moved all batches after it, and a leader that writes the same batches again, because its producers retry, gives them its
own epoch, which no CRC covers.

A copy is resumed if all segments that the earlier run has read are unchanged up to their last batch, except those below
the new log start, which were deleted. All other copies are read in full, and their earlier rows no longer count. These
are the logs of coordinators, groups and the controller, whose records are decoded, all text, and all copies with a
segment that is new at the front, rewritten, lost, compacted or damaged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from txnlib.core.copies import is_harmful
from txnlib.core.kafka.record_batch import HEADER, LOG_OVERHEAD
from txnlib.readers.capture import READ_WHOLE, Capture, FileKind, ResumedSegment
from txnlib.readers.header_columns import (
    NO_LEADER_EPOCH,
    Headers,
    Positions,
    ReaderState,
    header_at,
    is_crc_valid,
    is_zeros,
    last_offsets,
    leader_epochs,
)
from txnlib.readers.storage import files
from txnlib.readers.storage.block_buffer import Buffer
from txnlib.readers.storage.files import READ_ERRORS

#: Number of bytes of a segment per landmark.
LANDMARK_BYTES: Final = 16 << 20
OFFSET_BYTES: Final = 8


class Landmarks:
    """The landmarks of a segment that is read front to back."""

    def __init__(self) -> None:
        self._interval = -1
        self._found: list[dict[str, int]] = []
        self._last: dict[str, int] | None = None

    def add(self, positions: Positions, headers: Headers) -> None:
        """Adds batches that follow each other without a gap."""
        intervals = positions // LANDMARK_BYTES
        begins = np.flatnonzero(np.diff(intervals, prepend=self._interval))
        self._found += [_landmark(positions[index], headers[index]) for index in begins]
        self._interval = int(intervals[-1])
        self._last = _landmark(positions[-1], headers[-1])

    def rows(self) -> list[dict[str, int]]:
        """The landmarks as in `arrow_schemas.SEGMENTS`."""
        return landmarks_of([*self._found, *(() if self._last is None else (self._last,))])


def _landmark(position: Any, header: Any) -> dict[str, int]:
    return {
        "position": int(position),
        "size": int(header["batch_length"]) + LOG_OVERHEAD,
        "base_offset": int(header["base_offset"]),
        "crc": int(header["crc"]),
        "leader_epoch": int(leader_epochs(header)),
    }


def landmarks_of(ordered: Sequence[Mapping[str, int]]) -> list[Any]:
    """Of landmarks in the order of their positions: the first of every 16 MiB, and the last of all."""
    firsts: dict[int, Mapping[str, int]] = {}
    for landmark in ordered:
        firsts.setdefault(landmark["position"] // LANDMARK_BYTES, landmark)
    kept = {landmark["position"]: landmark for landmark in (*firsts.values(), *ordered[-1:])}
    return [kept[position] for position in sorted(kept)]


def resume_position(buffer: Buffer, size: int, landmarks: Sequence[Mapping[str, int]]) -> ReaderState | None:
    """Where to resume reading a segment with these landmarks, after the last one; None if a landmark has changed.

    None, too, if the next batch contradicts the offset or the leader epoch of the last landmark, which no CRC covers.
    Only the batch before can show which of the two is wrong.
    """
    if not landmarks or any(
        mark["position"] + mark["size"] > size or not _is_unchanged(buffer, mark) for mark in landmarks
    ):
        return None
    position, end = landmarks[-1]["position"], landmarks[-1]["position"] + landmarks[-1]["size"]
    if not is_crc_valid(buffer, position, end):
        return None
    last, follows = header_at(buffer, position), header_at(buffer, end)
    last_offset, leader_epoch = int(last_offsets(last)[0]), int(leader_epochs(last)[0])
    if end + HEADER.size <= size and NO_LEADER_EPOCH < leader_epochs(follows)[0] < leader_epoch:
        return None
    is_higher = end + OFFSET_BYTES > size or follows["base_offset"][0] > last_offset
    return ReaderState(end, last_offset, leader_epoch) if is_higher or is_zeros(buffer, end, size) else None


def _is_unchanged(buffer: Buffer, landmark: Mapping[str, int]) -> bool:
    """Whether the batch at a landmark's position is unchanged."""
    position = landmark["position"]
    return _landmark(position, header_at(buffer, position)[0]) == dict(landmark)


# ---- Rows of resumed segments


def put_together(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The row of `arrow_schemas.SEGMENTS` of a resumed segment, from its two rows of `arrow_schemas.SEGMENT_PARTS`."""
    before, now = sorted(parts, key=lambda row: row["part_position"])
    newest = [row["newest_broker_ms"] for row in (before, now) if row["newest_broker_ms"] is not None]
    return {
        **now,
        "first_offset": before["first_offset"],
        "end_offset": before["end_offset"] if now["end_offset"] is None else now["end_offset"],
        "batches": before["batches"] + now["batches"],
        "newest_broker_ms": max(newest, default=None),
        "unreadable": [*before["unreadable"], *now["unreadable"]],
        "landmarks": landmarks_of([*before["landmarks"], *(now["landmarks"] or ())]),
    }


# ---- Copies that an earlier run has read


#: Topic, partition and source; and the same with the base offset of a segment.
Copy = tuple[str | None, int | None, str]
Segment = tuple[str | None, int | None, str, int]


def first_segments(capture: Capture) -> dict[Copy, int]:
    """The copies of a capture with segments, each with the base offset of its first one."""
    first: dict[Copy, int] = {}
    for file in capture.of_kind(FileKind.SEGMENT):
        copy = (file.topic, file.partition, file.source)
        first[copy] = min(first.get(copy, file.offset), file.offset)
    return first


def unchanged_until(segment: Mapping[str, Any], path: str) -> ReaderState | None:
    """Where to resume reading the file of a segment, from its row in `segments` of the earlier run.

    None if rows before that position may have changed: it has no batches, a hole between them, something unreadable
    before the last one, or another fingerprint. None, too, for a file that cannot be read: the table readers report it.
    """
    landmarks = segment["landmarks"]
    if segment["topic"] in READ_WHOLE or not landmarks or segment["last_gap_offset"] is not None:
        return None
    if any(
        is_harmful(each["reason"]) and each["position"] < landmarks[-1]["position"] for each in segment["unreadable"]
    ):
        return None
    try:
        with files.open_buffer(path) as buffer:
            return resume_position(buffer, buffer.size, landmarks)
    except READ_ERRORS:
        return None


def resumed_copies(
    found: Sequence[ResumedSegment], read: Iterable[tuple[Segment, bool]], first: Mapping[Copy, int]
) -> tuple[ResumedSegment, ...]:
    """The segments of the copies that can be resumed, in the order of their paths.

    `found`: segments with an unchanged fingerprint. `read`: the raw segments of the earlier run, each with whether it
    has batches. `first`: see `first_segments`.
    """
    times: Counter[Segment] = Counter(
        (each.topic, each.partition, each.source, each.segment_base_offset) for each in found
    )
    changed: set[Copy] = set()
    first_before: dict[Copy, int] = {}
    for segment, has_batches in read:
        copy, base_offset = segment[:3], segment[3]
        first_before[copy] = min(first_before.get(copy, base_offset), base_offset)
        # If a segment is listed twice, it is unknown which one the rows belong to.
        if has_batches and base_offset >= first.get(copy, 0) and times[segment] != 1:
            changed.add(copy)
    # A segment that was away comes back: runs before the earlier one may have read it, and their rows would count
    # again.
    changed.update(copy for copy, base_offset in first_before.items() if first.get(copy, base_offset) < base_offset)
    kept = (each for each in found if (each.topic, each.partition, each.source) not in changed)
    return tuple(sorted(kept, key=lambda segment: segment.path))


def read_before(segment: Mapping[str, Any], path: str, position: int, last_offset: int) -> dict[str, Any]:
    """What the earlier run has read of a segment: the first part of its row (`arrow_schemas.SEGMENT_PARTS`).

    `path`: its file now, read from `position` on; `last_offset`: of the batch before. The size of the file is that of
    the new part, because a broker cuts a preallocated segment when it rolls.
    """
    return {
        **segment,
        "path": path,
        "bytes": 0,
        "end_offset": last_offset + 1,
        "tail": None,
        "is_decoded": None,
        "unreadable": [each for each in segment["unreadable"] if each["position"] < position],
        "part_position": 0,
    }
