"""Parts of a file: what a task needs to read one, and how the rows of all parts are combined."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from txnlib.readers.offset_commits import UNDECODABLE_COMMIT
from txnlib.readers.reader_state import ReaderState
from txnlib.readers.segment_fingerprint import landmarks_of


@dataclass(frozen=True, slots=True)
class Part:
    """The bytes from `start` to before `stop` (None: to the end of the file).

    `state` is the reader's state at `start`; None at the beginning of the file.
    """

    start: int
    stop: int | None
    state: ReaderState | None


def put_together(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The row of `arrow_schemas.SEGMENTS` of one file, combined from its rows of `arrow_schemas.SEGMENT_PARTS`."""
    rows = sorted(parts, key=lambda row: row["part_position"])
    newest = [row["newest_broker_ms"] for row in rows if row["newest_broker_ms"] is not None]
    return {
        **rows[0],
        "first_offset": _first(row["first_offset"] for row in rows),
        "end_offset": _first(row["end_offset"] for row in reversed(rows)),
        "last_gap_offset": _first(row["last_gap_offset"] for row in reversed(rows)),
        "bytes": max(row["bytes"] for row in rows),
        "batches": sum(row["batches"] for row in rows),
        "tail": rows[-1]["tail"],
        "is_decoded": rows[-1]["is_decoded"],
        "newest_broker_ms": max(newest, default=None),
        "unreadable": _unreadable(rows),
        "landmarks": landmarks_of(row["landmarks"] or () for row in rows),
    }


def _unreadable(rows: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The unreadable ranges of all parts, with only the first undecodable commit of the segment (as in `segment.read_segments`).

    The row of a part that was lost as a whole does not contain the offset of the batch after it; the row of the next part does.
    """
    kept: list[dict[str, Any]] = []
    has_commit = False
    for number, row in enumerate(rows):
        following = _first(later["first_offset"] for later in rows[number + 1 :])
        for unreadable in row["unreadable"]:
            is_commit = unreadable["reason"].startswith(UNDECODABLE_COMMIT)
            if not (is_commit and has_commit):
                next_offset = unreadable["next_offset"]
                kept.append({**unreadable, "next_offset": following if next_offset is None else next_offset})
            has_commit |= is_commit
    return kept


def _first(values: Iterable[Any]) -> Any:
    return next((value for value in values if value is not None), None)
