"""Offset at which reading begins: the first segment, or the newest usable snapshot.

A broker writes a producer snapshot whenever it rolls a segment. So every transaction that is open at a segment's base offset is in
the snapshot of that offset, and older segments are not needed to find what is open now.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Final

from txnlib.core.kafka.constants import CLUSTER_METADATA_TOPIC, GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from txnlib.readers.broker_files import MOST_BYTES, snapshot_problem
from txnlib.readers.capture import Capture, CaptureFile, FileKind
from txnlib.readers.storage import files

BEGINNING: Final = "beginning"
SNAPSHOT: Final = "snapshot"
STARTS: Final = (BEGINNING, SNAPSHOT)

#: Topics whose records no snapshot contains; a waiting group may have committed long ago.
READ_WHOLE: Final = frozenset({TRANSACTION_STATE_TOPIC, GROUP_METADATA_TOPIC, CLUSTER_METADATA_TOPIC})

_Copy = tuple[str, str | None, int | None]


def start_at_snapshots(capture: Capture) -> Capture:
    """The capture, with each segment that a snapshot replaces marked as skipped.

    Only a snapshot at a segment's base offset counts, and only if its CRC matches; else the next older one, else none. The
    topics in READ_WHOLE are always read completely.
    """
    segments: dict[_Copy, list[int]] = defaultdict(list)
    snapshots: dict[_Copy, list[CaptureFile]] = defaultdict(list)
    for file in capture.of_kind(FileKind.SEGMENT):
        segments[_copy(file)].append(file.offset)
    for file in capture.of_kind(FileKind.PRODUCER_SNAPSHOT):
        snapshots[_copy(file)].append(file)
    starts = {copy: _start(bases, snapshots[copy]) for copy, bases in segments.items() if copy[1] not in READ_WHOLE}
    return replace(capture, files=tuple(_marked(file, starts.get(_copy(file))) for file in capture.files))


def _copy(file: CaptureFile) -> _Copy:
    return file.source, file.topic, file.partition


def _start(bases: list[int], snapshots: list[CaptureFile]) -> int | None:
    """The highest base offset with a usable snapshot; None: read everything."""
    for snapshot in sorted(snapshots, key=lambda file: -file.offset):
        if snapshot.offset in bases and _is_usable(snapshot):
            return snapshot.offset
    return None


def _is_usable(snapshot: CaptureFile) -> bool:
    """Whether a snapshot can be read and its CRC matches; the table readers report why not."""
    try:
        return snapshot_problem(files.read_all(snapshot.path, MOST_BYTES)) is None
    except OSError:
        return False


def _marked(file: CaptureFile, start: int | None) -> CaptureFile:
    if start is None or file.kind is not FileKind.SEGMENT or file.offset >= start:
        return file
    return replace(file, kind=FileKind.SKIPPED_SEGMENT)
