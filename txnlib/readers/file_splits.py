"""What of each file is read: from which snapshot on, in which parts, and in which task.

A broker writes a producer snapshot whenever it rolls a segment. So every transaction that is open at a segment's base
offset is in the snapshot of that offset, and older segments are not needed to find what is open now.

Many tasks read a large segment; together they yield the rows of a single reader. Each chunk of it guesses its reader
state at the first safe boundary. A boundary is accepted only if the reader of an earlier accepted boundary arrives
there in the same state. So accepted boundaries follow one from another, starting at the beginning of the file, and a
guess inside damage or in a payload that imitates batches is dropped. A reader that confirms no guess within a few
chunks reads to the end.

Text is never split: one task reads it (docs/decisions/0013). Small files are bundled, many to a task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from txnlib.core.rows import grouped
from txnlib.readers.broker_files import MOST_BYTES, snapshot_problem
from txnlib.readers.capture import READ_WHOLE, Capture, CaptureFile, FileKind, Part
from txnlib.readers.header_columns import AT_START, ReaderState, find_boundary
from txnlib.readers.segment import Segment
from txnlib.readers.storage import files
from txnlib.readers.storage.files import READ_ERRORS
from txnlib.readers.table_readers import ONLY_IN, open_segment

# ---- Where reading begins


BEGINNING: Final = "beginning"
SNAPSHOT: Final = "snapshot"
STARTS: Final = (BEGINNING, SNAPSHOT)

_Copy = tuple[str, str | None, int | None]


def start_at_snapshots(capture: Capture) -> Capture:
    """The capture, with each segment that a snapshot replaces marked as skipped.

    Only a snapshot at a segment's base offset counts, and only if its CRC matches; else the next older one, else none.
    The topics in READ_WHOLE are always read completely.
    """
    segments = grouped(capture.of_kind(FileKind.SEGMENT), _copy)
    snapshots = grouped(capture.of_kind(FileKind.PRODUCER_SNAPSHOT), _copy)
    skipped: set[CaptureFile] = set()
    for copy, files_of_copy in segments.items():
        bases = {file.offset for file in files_of_copy}
        newest_first = sorted(snapshots[copy], key=lambda file: -file.offset) if copy[1] not in READ_WHOLE else ()
        start = next((file.offset for file in newest_first if file.offset in bases and _is_usable(file)), 0)
        skipped.update(file for file in files_of_copy if file.offset < start)
    marked = (replace(file, kind=FileKind.SKIPPED_SEGMENT) if file in skipped else file for file in capture.files)
    return replace(capture, files=tuple(marked))


def _copy(file: CaptureFile) -> _Copy:
    return file.source, file.topic, file.partition


def _is_usable(snapshot: CaptureFile) -> bool:
    """Whether a snapshot can be read and its CRC matches; the table readers report why not."""
    try:
        return snapshot_problem(files.read_all(snapshot.path, MOST_BYTES)) is None
    except OSError:
        return False


# ---- Splits of a large segment


#: Approximate size of a part, in bytes. This much is worth a task of its own, since mostly headers are read.
SEGMENT_BYTES: Final = 256 << 20
#: A file below this fraction of the capture (1/256) does not delay the end of the job, so it is not split.
_SHARE: Final = 256
#: Number of consecutive chunks whose guess may prove wrong.
_PATIENCE: Final = 4


@dataclass(frozen=True, slots=True)
class Chunk:
    """Chunk `number` of a file: `size` bytes from `number * size` on."""

    file: CaptureFile
    number: int
    size: int

    @property
    def start(self) -> int:
        return self.number * self.size

    @property
    def end(self) -> int:
        return min(self.start + self.size, self.file.size)

    def later(self) -> Iterator[Chunk]:
        """The chunks after this one whose boundaries are tried."""
        last = (self.file.size - 1) // self.size
        for number in range(self.number + 1, min(last, self.number + _PATIENCE) + 1):
            yield replace(self, number=number)


@dataclass(frozen=True, slots=True)
class Reached:
    """The chunk whose boundary was confirmed by the reader of an earlier chunk, and the reader's state there."""

    number: int
    state: ReaderState


def chunks_of(capture: Capture, split_bytes: int | None = None) -> list[Chunk]:
    """The chunks of all segments larger than `split_bytes`, or larger than the default size.

    Segments of which an earlier run has read a part are not split.
    """
    share = capture.size // _SHARE
    chunks = []
    size = split_bytes or max(SEGMENT_BYTES, share)
    for file in capture.of_kind(FileKind.SEGMENT):
        if file.size > size and file.path not in capture.parts:
            chunks += [Chunk(file, number, size) for number in range(-(-file.size // size))]
    return chunks


def reach(chunk: Chunk) -> Reached | None:
    """The first boundary that a reader from this chunk's boundary confirms; None if there is none, or this chunk has no
    boundary.

    None, too, for a file that cannot be read: it is not split, and the table readers report it.
    """
    try:
        with files.open_buffer(chunk.file.path) as buffer:
            segment = open_segment(chunk.file, buffer)
            at = _boundary(segment, chunk) if chunk.number else AT_START
            for goal in chunk.later():
                boundary = _boundary(segment, goal)
                if at is None:
                    return None
                if boundary is None:
                    continue
                events = replace(segment, start=at, until=boundary.position).blocks()
                # The state in which reading ends; None if it reaches the end of the file.
                at = next((event for event in events if isinstance(event, ReaderState)), None)
                if at == boundary:
                    return Reached(goal.number, boundary)
    except READ_ERRORS:
        pass
    return None


def parts_of(reached: Mapping[int, Reached]) -> tuple[Part, ...]:
    """The parts of a file, in order. `reached`: the number of a chunk -> the boundary reached from it."""
    parts: list[Part] = []
    number, start = 0, 0
    state: ReaderState | None = None
    while (step := reached.get(number)) is not None:
        parts.append(Part(start, step.state.position, state))
        number, start, state = step.number, step.state.position, step.state
    return (*parts, Part(start, None, state))


def _boundary(segment: Segment, chunk: Chunk) -> ReaderState | None:
    return find_boundary(segment.buffer, chunk.start, chunk.end, segment.size, segment.base_offset)


# ---- Files of one task

#: Number of bytes of small files per task: enough to be worth a task, and few enough to spread.
TASK_BYTES: Final = 32 << 20
#: In a large capture, a task reads more, because every Python task has a startup cost.
MOST_TASK_BYTES: Final = 256 << 20
#: A segment whose records are not decoded costs at most 1/4 of the time per byte of any other file.
HEADERS_ONLY: Final = 4
#: Number of small files per task, because opening each file takes time. In a large capture, a task reads more of them,
#: too.
TASK_FILES: Final = 256
MOST_TASK_FILES: Final = 2_048


def bundle(files: Sequence[CaptureFile], tasks: int) -> list[list[CaptureFile]]:
    """The files in lists of about equal work, in order: `tasks` lists, or fewer if these would be too small.

    If there are several lists, no list mixes topics that every audit reads in full with others: each task writes its
    own file, and an incremental audit carries over files in which all rows are unchanged.
    """
    works = [
        file.extent
        if file.kind is not FileKind.SEGMENT or file.topic in ONLY_IN.values()
        else file.extent // HEADERS_ONLY
        for file in files
    ]
    whole = max(sum(works), 1)
    count = -(-whole // min(max(TASK_BYTES, whole // tasks), MOST_TASK_BYTES))
    most_files = min(max(TASK_FILES, len(files) // tasks), MOST_TASK_FILES)
    bundles: list[list[CaptureFile]] = []
    done, last = 0, (-1, False)
    for file, work in zip(files, works, strict=True):
        kind = ((2 * done + work) * count // (2 * whole), count > 1 and file.topic in READ_WHOLE)
        if kind != last or len(bundles[-1]) == most_files:
            bundles.append([])
        bundles[-1].append(file)
        done, last = done + work, kind
    return bundles
