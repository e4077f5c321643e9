"""Fingerprints of a segment. They recognise it in a later copy, where reading resumes.

A broker only appends to a segment, unless it truncates, compacts or deletes it. So a reader records some batches as landmarks:
the first of every 16 MiB, and the last. If all of them are at the same position with the same size, offset, CRC and leader epoch,
the bytes that were read need not be read again. A batch that disappeared or was added would have moved all batches after it, and
a leader that writes the same batches again, because its producers retry, gives them its own epoch, which no CRC covers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from txnlib.core.kafka.record_batch import HEADER, LOG_OVERHEAD
from txnlib.readers.header_columns import NO_LEADER_EPOCH, Headers, Positions, header_at, is_crc_valid, last_offsets, leader_epochs
from txnlib.readers.reader_state import ReaderState
from txnlib.readers.resume_after_damage import is_zeros
from txnlib.readers.storage.block_buffer import Buffer

#: Number of bytes of a segment per landmark.
LANDMARK_BYTES: Final = 16 << 20
OFFSET_BYTES: Final = 8


class Landmarks:
    """The landmarks of a segment, or of a part of it, read front to back."""

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
        return _in_order([*self._found, *([] if self._last is None else [self._last])])


def _landmark(position: Any, header: Any) -> dict[str, int]:
    return {
        "position": int(position),
        "size": int(header["batch_length"]) + LOG_OVERHEAD,
        "base_offset": int(header["base_offset"]),
        "crc": int(header["crc"]),
        "leader_epoch": int(leader_epochs(header)),
    }


def landmarks_of(parts: Iterable[Sequence[Mapping[str, int]]]) -> list[Mapping[str, int]]:
    """The landmarks of a segment, combined from those of its parts."""
    return _in_order([landmark for part in parts for landmark in part])


def _in_order(landmarks: Sequence[Mapping[str, int]]) -> list[Any]:
    """The first landmark of every 16 MiB, and the last of all, by position."""
    firsts: dict[int, Mapping[str, int]] = {}
    ordered = sorted(landmarks, key=lambda landmark: landmark["position"])
    for landmark in ordered:
        firsts.setdefault(landmark["position"] // LANDMARK_BYTES, landmark)
    return sorted(
        {mark["position"]: mark for mark in (*firsts.values(), *ordered[-1:])}.values(), key=lambda mark: mark["position"]
    )


def resume_position(buffer: Buffer, size: int, landmarks: Sequence[Mapping[str, int]]) -> ReaderState | None:
    """Where to resume reading a segment with these landmarks, after the last one; None if a landmark has changed.

    None, too, if the next batch contradicts the offset or the leader epoch of the last landmark, which no CRC covers. Only the
    batch before can show which of the two is wrong.
    """
    if not landmarks or any(mark["position"] + mark["size"] > size or not _is_unchanged(buffer, mark) for mark in landmarks):
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
