"""Fingerprints of a segment. They recognise it in a later copy, where reading resumes.

A broker only appends to a segment, unless it truncates, compacts or deletes it. So whoever has read one notes some batches:
the first of every 16 MiB, and the last. Where all of them stand as they stood, with the same size, offset and CRC, what was
read need not be read again. A batch that is gone or came to be moves all those behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from txnlib.core.kafka.record_batch import HEADER, LOG_OVERHEAD
from txnlib.readers.header_columns import NO_LEADER_EPOCH, Headers, Positions, header_at, is_crc_valid, last_offsets, leader_epochs
from txnlib.readers.resume_after_damage import Pause, is_zeros
from txnlib.readers.storage.block_buffer import Buffer

#: Bytes of a segment that have one landmark.
LANDMARK_BYTES: Final = 16 << 20
OFFSET_BYTES: Final = 8


class Landmarks:
    """The landmarks of a segment, or of a part of it, that is read front to back."""

    def __init__(self) -> None:
        self._stretch = -1
        self._found: list[dict[str, int]] = []
        self._last: dict[str, int] | None = None
        #: Last offset before the last batch; None if there is no such batch.
        self.last_offset_before: int | None = None

    def add(self, positions: Positions, headers: Headers, last_offsets: Positions, previous_last_offset: int | None) -> None:
        """Batches that stand back to back, and the last offset before them."""
        stretches = positions // LANDMARK_BYTES
        begins = np.flatnonzero(np.diff(stretches, prepend=self._stretch))
        self._found += [_landmark(positions[index], headers[index]) for index in begins]
        self._stretch = int(stretches[-1])
        self._last = _landmark(positions[-1], headers[-1])
        self.last_offset_before = previous_last_offset if len(positions) == 1 else int(last_offsets[-2])

    def rows(self) -> list[dict[str, int]]:
        """As in `columns.SEGMENTS`."""
        return _in_order([*self._found, *([] if self._last is None else [self._last])])


def _landmark(position: Any, header: Any) -> dict[str, int]:
    return {
        "position": int(position),
        "size": int(header["batch_length"]) + LOG_OVERHEAD,
        "base_offset": int(header["base_offset"]),
        "crc": int(header["crc"]),
    }


def landmarks_of(parts: Iterable[Sequence[Mapping[str, int]]]) -> list[Mapping[str, int]]:
    """The landmarks of a segment, of those of its parts."""
    return _in_order([landmark for part in parts for landmark in part])


def _in_order(found: Sequence[Mapping[str, int]]) -> list[Any]:
    """The first of every stretch, and the last of all."""
    firsts: dict[int, Mapping[str, int]] = {}
    ordered = sorted(found, key=lambda landmark: landmark["position"])
    for landmark in ordered:
        firsts.setdefault(landmark["position"] // LANDMARK_BYTES, landmark)
    return sorted(
        {mark["position"]: mark for mark in (*firsts.values(), *ordered[-1:])}.values(), key=lambda mark: mark["position"]
    )


def go_on(buffer: Buffer, size: int, landmarks: Sequence[Mapping[str, int]], last_offset_before: int | None) -> Pause | None:
    """Where to go on reading a segment with these landmarks; None if one does not stand as it stood.

    Behind the last of them, or at it where what follows may tell that it is not what it seemed: no CRC covers an offset.
    None, too, where its leader epoch is denied: to tell which of the two is wrong takes the batch before.
    """
    if not landmarks or any(mark["position"] + mark["size"] > size or not _stands(buffer, mark) for mark in landmarks):
        return None
    position, end = landmarks[-1]["position"], landmarks[-1]["position"] + landmarks[-1]["size"]
    if not is_crc_valid(buffer, position, end):
        return None
    last, follows = header_at(buffer, position), header_at(buffer, end)
    last_offset, leader_epoch = int(last_offsets(last)[0]), int(leader_epochs(last)[0])
    if end + HEADER.size <= size and NO_LEADER_EPOCH < leader_epochs(follows)[0] < leader_epoch:
        return None
    is_higher = end + OFFSET_BYTES > size or follows["base_offset"][0] > last_offset
    if is_higher or is_zeros(buffer, end, size):
        return Pause(end, last_offset, leader_epoch)
    return None if last_offset_before is None else Pause(position, last_offset_before)


def _stands(buffer: Buffer, landmark: Mapping[str, int]) -> bool:
    position = landmark["position"]
    return _landmark(position, header_at(buffer, position)[0]) == dict(landmark)
