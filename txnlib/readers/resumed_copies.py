"""Copies of which an earlier run has read a part: what of its rows still counts, and where reading resumes.

A copy is resumed if all segments that the earlier run has read are unchanged up to their last batch (`segment_fingerprint`), except
those below the new log start, which were deleted. All other copies are read in full, and their earlier rows no longer count. These
are the logs of coordinators, groups and the controller, whose records are decoded, all text, and all copies with a segment that is
new at the front, rewritten, lost, compacted or damaged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from txnlib.core.copies import is_harmful
from txnlib.readers.capture import Capture, FileKind, ResumedSegment
from txnlib.readers.reader_state import ReaderState
from txnlib.readers.segment_fingerprint import resume_position
from txnlib.readers.snapshot_start import READ_WHOLE
from txnlib.readers.storage import files
from txnlib.readers.text_files import READ_ERRORS

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

    None if rows before that position may have changed: it has no batches, a hole between them, something unreadable before the last
    one, or another fingerprint. None, too, for a file that cannot be read: the table readers report it.
    """
    landmarks = segment["landmarks"]
    if segment["topic"] in READ_WHOLE or not landmarks or segment["last_gap_offset"] is not None:
        return None
    if any(is_harmful(each["reason"]) and each["position"] < landmarks[-1]["position"] for each in segment["unreadable"]):
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

    `found`: segments with an unchanged fingerprint. `read`: the raw segments of the earlier run, each with whether it has batches.
    `first`: see `first_segments`.
    """
    times = Counter(map(_segment_of, found))
    changed: set[Copy] = set()
    first_before: dict[Copy, int] = {}
    for segment, has_batches in read:
        copy, base_offset = segment[:3], segment[3]
        first_before[copy] = min(first_before.get(copy, base_offset), base_offset)
        # If a segment is listed twice, it is unknown which one the rows belong to.
        if has_batches and base_offset >= first.get(copy, 0) and times[segment] != 1:
            changed.add(copy)
    # A segment that was away comes back: runs before the earlier one may have read it, and their rows would count again.
    changed.update(copy for copy, base_offset in first_before.items() if first.get(copy, base_offset) < base_offset)
    kept = (each for each in found if (each.topic, each.partition, each.source) not in changed)
    return tuple(sorted(kept, key=lambda segment: segment.path))


def _segment_of(segment: ResumedSegment) -> Segment:
    return segment.topic, segment.partition, segment.source, segment.segment_base_offset


def read_before(segment: Mapping[str, Any], path: str, position: int, last_offset: int) -> dict[str, Any]:
    """What the earlier run has read of a segment: the first part of its row (`arrow_schemas.SEGMENT_PARTS`).

    `path`: its file now, read from `position` on; `last_offset`: of the batch before. The size of the file is that of the new part,
    because a broker cuts a preallocated segment when it rolls.
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
