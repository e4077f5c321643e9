"""Segments that an earlier audit has read, known by their fingerprints.

A broker only appends to a segment, unless it truncates, compacts or deletes it. So the first batch and the last one are
the fingerprint of what was read: if both are where they were, with the same size, offset, CRC and leader epoch, the
bytes up to the end of the last one need not be read again. A batch that disappeared or was added would have moved the
last one, and a leader that writes the same batches again, because its producers retry, gives them its own epoch, which
no CRC covers.

What an audit reads of a file is a *part*, and has a number of its own. So a segment that was appended to consists of
several parts, and one that was written again of a new one. Not known by a fingerprint are all text, and what the
cleaner may have changed: cleaning may change a batch in the middle and move none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from txnlib.core.copies import is_harmful
from txnlib.core.kafka.record_batch import HEADER, LOG_OVERHEAD
from txnlib.readers.batch_checks import is_crc_valid, is_zeros
from txnlib.readers.header_columns import (
    NO_LEADER_EPOCH,
    Headers,
    Positions,
    ReaderState,
    header_at,
    last_offsets,
    leader_epochs,
)
from txnlib.readers.storage import files
from txnlib.readers.storage.block_buffer import BLOCK_BYTES, Buffer
from txnlib.readers.storage.packed_text import READ_ERRORS

OFFSET_BYTES: Final = 8
#: Bytes per request while fingerprints are compared: few, because a store may be asked for millions of segments.
LOOK_BYTES: Final = 64 << 10


class Fingerprint:
    """The fingerprint of a segment that is read front to back."""

    def __init__(self) -> None:
        self._first: dict[str, int] | None = None
        self._last: dict[str, int] | None = None

    def add(self, positions: Positions, headers: Headers) -> None:
        """Adds batches."""
        self._first = self._first or _landmark(positions[0], headers[0])
        self._last = _landmark(positions[-1], headers[-1])

    def landmarks(self) -> list[dict[str, int]]:
        """The first and the last batch, as in `arrow_schemas.SEGMENTS`; one, if they are the same."""
        return [mark for mark in (self._first, self._last if self._last != self._first else None) if mark is not None]


def _landmark(position: Any, header: Any) -> dict[str, int]:
    return {
        "position": int(position),
        "size": int(header["batch_length"]) + LOG_OVERHEAD,
        "base_offset": int(header["base_offset"]),
        "crc": int(header["crc"]),
        "leader_epoch": int(leader_epochs(header)),
    }


@dataclass(frozen=True, slots=True)
class ReadSegment:
    """What earlier audits have read of a segment: the columns of its row in `segments` that are needed again."""

    #: A run that lists its parts, and these.
    run_id: str
    parts: Sequence[int]
    landmarks: Sequence[Mapping[str, int]]
    first_offset: int
    batches: int
    newest_broker_ms: int | None
    unreadable: Sequence[Mapping[str, Any]]

    @property
    def position(self) -> int:
        """The position behind the last batch."""
        return self.landmarks[-1]["position"] + self.landmarks[-1]["size"]

    @property
    def is_whole(self) -> bool:
        """Whether nothing before its last batch was unreadable, which a better copy may now show."""
        return not any(
            is_harmful(each["reason"]) and each["position"] < self.landmarks[-1]["position"] for each in self.unreadable
        )

    def with_rest(self, rest: Mapping[str, Any], state: ReaderState) -> dict[str, Any]:
        """The row of `segments` for the whole segment. `rest`: for what was read from `state` on."""
        newest = [ms for ms in (self.newest_broker_ms, rest["newest_broker_ms"]) if ms is not None]
        before = [each for each in self.unreadable if each["position"] < state.position]
        first, last = self.landmarks[0], (rest["landmarks"] or self.landmarks)[-1]
        return {
            **rest,
            "first_offset": self.first_offset,
            "end_offset": rest.get("end_offset", (state.last_offset or 0) + 1),
            "batches": self.batches + rest["batches"],
            "newest_broker_ms": max(newest, default=None),
            "unreadable": [*before, *rest["unreadable"]],
            "landmarks": [first] if last == first else [first, last],
            "parts": [*self.parts, *(rest["parts"] if rest["batches"] else ())],
        }


def known_begin(path: str, size: int, earlier: Iterable[ReadSegment]) -> tuple[ReadSegment, ReaderState] | None:
    """The first of these that the file still begins with, and where to go on reading; None if there is none.

    Also None for a file that cannot be read: the table readers report it.
    """
    try:
        with files.open_buffer(path, LOOK_BYTES) as buffer:
            for each in earlier:
                if (state := resume_position(buffer, min(size, buffer.size), each.landmarks)) is not None:
                    return each, state
    except READ_ERRORS:
        pass
    return None


def bytes_per_request(rest: int) -> int:
    """How much of a segment to ask a store for at once, if so many bytes of it are to be read."""
    return min(max(rest, LOOK_BYTES), BLOCK_BYTES)


def resume_position(buffer: Buffer, size: int, landmarks: Iterable[Mapping[str, int]]) -> ReaderState | None:
    """Where to resume reading a segment with these landmarks, after the last one; None if a landmark has changed.

    None, too, if the next batch contradicts the offset or the leader epoch of the last landmark, which no CRC covers.
    Only the batch before can show which of the two is wrong.
    """
    marks = [*landmarks][::-1]  # the last one first: it is most often the one that changed
    if not marks or any(mark["position"] + mark["size"] > size or not _is_unchanged(buffer, mark) for mark in marks):
        return None
    position, end = marks[0]["position"], marks[0]["position"] + marks[0]["size"]
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
