"""Splits of a large file for many tasks. Together they yield the rows of a single reader.

Every chunk of a file is asked the same: what does a reader know at the first place of yours where the file can be cut, and
at which such place of a later chunk does it come by with just what that chunk says? The first answer is a guess for all
chunks but the first, since nothing stands before it. The second is not: whoever starts right comes by right. So the cuts are
those that are reached from the beginning of the file, from one to the next, and a guess that nobody confirms is no cut: of a
damaged stretch, of payload that imitates lines, of text that tells too little. A reader that no cut confirms for so many
chunks reads on to the end.

Segments and text as it is can be split. Compressed text cannot, nor can text of a console consumer, where only counting from
the beginning tells the position of a record.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from txnlib.core.dump_cuts import DumpStart, DumpWalk, Undecided, walk_from_guess
from txnlib.core.dump_lines import DumpedFile
from txnlib.core.dump_output import FileStart
from txnlib.readers import dump, files
from txnlib.readers.capture import Capture, CaptureFile, FileKind
from txnlib.readers.headers import BEGINNING, Block, Pause, find_boundary
from txnlib.readers.parts import Part
from txnlib.readers.segment import Segment
from txnlib.readers.tables import open_segment
from txnlib.readers.text_files import READ_ERRORS, is_compressed, open_text, read_text_head

#: Bytes of a part, about: each is worth a task of its own. Of a segment mostly headers are read.
SEGMENT_BYTES: Final = 256 << 20
DUMP_BYTES: Final = 128 << 20
#: A file with a smaller share of the capture keeps nobody waiting at the end.
_SHARE: Final = 256
#: Chunks in a row whose guess may prove wrong.
_PATIENCE: Final = 4
_HEAD_BYTES: Final = 65_536


@dataclass(frozen=True, slots=True)
class Chunk:
    """The bytes of a file from `number * size` on, of which there are so many."""

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
        """The chunks behind this one that are tried."""
        last = (self.file.size - 1) // self.size
        for number in range(self.number + 1, min(last, self.number + _PATIENCE) + 1):
            yield replace(self, number=number)


@dataclass(frozen=True, slots=True)
class Reached:
    """The chunk at whose cut the reader of an earlier one comes by, and what it knows there."""

    number: int
    known: Pause | DumpStart


def chunks_of(capture: Capture, split_bytes: int | None = None) -> list[Chunk]:
    """The chunks of all files that are worth splitting: those larger than `split_bytes`, or than the defaults.

    Of a segment that an earlier run has read, what is new is not split.
    """
    share = capture.size // _SHARE
    found = []
    for file in capture.of_kind(FileKind.SEGMENT, FileKind.DUMP):
        is_dump = file.kind is FileKind.DUMP
        size = split_bytes or max(DUMP_BYTES if is_dump else SEGMENT_BYTES, share)
        if file.size > size and file.path not in capture.parts and not (is_dump and is_compressed(file.path)):
            found += [Chunk(file, number, size) for number in range(-(-file.size // size))]
    return found


def reach(chunk: Chunk) -> Reached | None:
    """Where a reader that starts at a chunk's cut comes by; None: nowhere, or there is no such cut.

    A file that cannot be read is not split, which whoever reads it whole will say.
    """
    try:
        return _reach_in_dump(chunk) if chunk.file.kind is FileKind.DUMP else _reach_in_segment(chunk)
    except READ_ERRORS:
        return None


def parts_of(reached: Mapping[int, Reached]) -> tuple[Part, ...]:
    """The parts of a file, in order, by what was reached from each of its chunks."""
    parts: list[Part] = []
    number, start, known = 0, 0, None
    while (step := reached.get(number)) is not None:
        found = step.known
        if isinstance(found, DumpStart):
            found = found.behind(known if isinstance(known, DumpStart) else None)
        parts.append(Part(start, found.position, known))
        number, start, known = step.number, found.position, found
    return (*parts, Part(start, None, known))


# ---- Segments


def _reach_in_segment(chunk: Chunk) -> Reached | None:
    with files.open_buffer(chunk.file.path) as opened:
        segment = open_segment(chunk.file, opened)
        at = _boundary(segment, chunk) if chunk.number else BEGINNING
        for goal in chunk.later():
            found = _boundary(segment, goal)
            if at is None:
                return None
            if found is None:
                continue
            at = _pause(replace(segment, start=at, until=found.position))
            if at == found:
                return Reached(goal.number, found)
    return None


def _boundary(segment: Segment, chunk: Chunk) -> Pause | None:
    return find_boundary(segment.buffer, chunk.start, chunk.end, segment.size, segment.base_offset)


def _pause(segment: Segment) -> Pause | None:
    """Where reading pauses; None: at the end."""
    for block in segment.blocks():
        if isinstance(block, Pause):
            return block
        if isinstance(block, Block):
            segment.forget(int(block.positions[-1]))
    return None


# ---- Dumps


def _reach_in_dump(chunk: Chunk) -> Reached | None:
    usual = _usual(chunk.file)
    with _walk(chunk, *usual) as walk:
        if walk is None:
            return None
        for goal in chunk.later():
            with _walk(goal, *usual) as guess:
                cut = None if guess is None else guess.key
            if cut is None:
                continue
            if not _can_go(walk, cut[0]):
                return None
            start = walk.start
            if start is not None and walk.key == cut:
                return Reached(goal.number, start)
    return None


def _can_go(walk: DumpWalk, stop: int) -> bool:
    try:
        return walk.go_to(stop)
    except Undecided:
        return False


@contextmanager
def _walk(chunk: Chunk, file: DumpedFile, has_text: bool) -> Iterator[DumpWalk | None]:
    """A reader at the cut of a chunk; None if there is none."""
    with open_text(chunk.file.path, chunk.start) as stream:
        lines = dump.iter_lines(stream, position=chunk.start)
        if chunk.number:
            next(lines, None)  # the rest of a line of the chunk before
        reader = dump.open_dump(lines, chunk.file.topic)
        yield walk_from_guess(reader, file, chunk.end, has_text=has_text) if chunk.number else DumpWalk(reader)


def _usual(file: CaptureFile) -> tuple[DumpedFile, bool]:
    """The first file that a text is a dump of, and whether free text is printed in it: most likely, in others as well."""
    reader = dump.open_dump(dump.iter_lines(io.BytesIO(read_text_head(file.path, _HEAD_BYTES))), file.topic)
    first, has_text = DumpedFile(), False
    for value in reader.read_to(None):
        if type(value) is FileStart and first.path is None:
            first = value.file
        has_text |= reader.chain is not None and reader.chain.has_text
    return first, has_text
