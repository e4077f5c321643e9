"""Lines of a text of any size, in bounded memory.

A line can be very long: in front of a payload of 50 MB, only the beginning of the line matters. So a line longer than
`LONGEST_LINE` is passed on as a `LongLine`. Lines that need not be read one by one are passed on as blocks (`dump_blocks`).
"""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Iterator
from itertools import pairwise
from typing import BinaryIO, Final

from txnlib.core.text.batch_chain import Chain, Line
from txnlib.core.text.coordinator_text import LONGEST_RECORD
from txnlib.core.text.dump_events import DumpedBatches
from txnlib.core.text.dump_lines import NOT_PRINTED, DumpedBatch
from txnlib.core.text.long_line import LongLine, shortened, size_of
from txnlib.core.text.tool_messages import UnreadableReason
from txnlib.readers.dump_blocks import START, PlainBatches, has_records, has_untyped_markers, read_plain_batches
from txnlib.readers.dump_record_blocks import read_plain_records
from txnlib.readers.text_files import problem_of

CHUNK_BYTES: Final = 1 << 20
LONGEST_LINE: Final = 1 << 20
#: Part of every coordinator record. Such a line is kept up to the longest possible record.
_OF_COORDINATOR: Final = b"transactionalId"
#: Number of bytes kept of a long line's end: a genuine line may follow a piece of another one.
_TAIL: Final = 4_096
_LINE_END: Final = 2
#: Number of bytes to read line by line before trying a block again.
_ONE_BY_ONE: Final = 4_096
_MOST_ONE_BY_ONE: Final = 16 << 20
#: Most bytes of held lines to take into a block.
_MOST_HELD: Final = 4 << 20


class TextLines:
    """The lines of a stream with their line ends, each with its position. Keeps at most a line and a few chunks in memory."""

    def __init__(self, stream: BinaryIO, chunk_size: int = CHUNK_BYTES, *, longest: int = LONGEST_LINE) -> None:
        self._stream, self._longest = stream, longest
        # At most `longest`, so that only a line that crosses the end of a chunk can be too long.
        self._chunk_size = min(chunk_size, longest)
        #: Position of the next line; the lines that are yielded one by one; and the text read after them: pieces of complete lines
        #: or of a long one, the rest of a chunk, and the beginning of one more line.
        self._position = 0
        self._lines: Iterator[bytes] = iter(())
        self._pieces: deque[bytes] = deque()
        self._unread = b""
        self._beginning = _Beginning(longest)
        #: Where to try a block again, and how many bytes to read line by line if that fails.
        self._next_try, self._one_by_one = 0, _ONE_BY_ONE

    @property
    def problem(self) -> UnreadableReason | None:
        """Why the text is incomplete; None if it is complete."""
        return problem_of(self._stream)

    def __iter__(self) -> Iterator[Line]:
        return self

    def __next__(self) -> Line:
        line = next(self._lines, None)
        while line is None:
            if (piece := self._next_piece()) is None:
                raise StopIteration
            self._pieces.popleft()
            # `splitlines` would also split at a lone carriage return, which a payload may contain.
            self._lines = iter((piece,)) if type(piece) is LongLine else iter(io.BytesIO(piece).readlines())
            line = next(self._lines, None)
        position, self._position = self._position, self._position + size_of(line)
        return position, line

    def take_plain(self, held: deque[Line], chain: Chain) -> DumpedBatches | None:
        """The next lines as a block; None if not all are batch lines that continue the chain.

        In a deep dump, each batch line comes with its record lines. `held`: lines that were yielded but not read yet. They become
        part of the block.
        """
        position = held[0][0] if held else self._position
        if position < self._next_try or not self._is_at_batch(held):
            return None
        block = self._take_block(held)
        taken = None if block is None else _read_plain(block, chain)
        if taken is None:
            self._next_try, self._one_by_one = position + self._one_by_one, min(2 * self._one_by_one, _MOST_ONE_BY_ONE)
            if block is not None:
                self._give_back(block, position)
            return None
        assert block is not None
        self._one_by_one = _ONE_BY_ONE
        self._give_back(block[taken.size :], position + taken.size)
        columns = taken.columns
        last = DumpedBatch._make(map(int, columns[-1]))
        return DumpedBatches(
            columns,
            last._replace(control_type=NOT_PRINTED, coordinator_epoch=NOT_PRINTED),  # the last batch as its batch line shows it
            has_records(columns),
            has_untyped_markers(columns),
            position + taken.size,
            taken.record_offset,
        )

    def _is_at_batch(self, held: deque[Line]) -> bool:
        """Whether a batch line is next. Does not split a piece to find out."""
        if not held and self._lines.__length_hint__():  # type: ignore[attr-defined]
            held.append(next(self))
        if held:
            return held[0][1].startswith(START)
        piece = self._next_piece()
        return piece is not None and piece.startswith(START)

    def _take_block(self, held: deque[Line]) -> bytes | None:
        """Takes all lines that were read but not finally yielded.

        None, without taking anything, if the lines are too many or one of them is too long.
        """
        lines = [line for _position, line in held]
        is_short = all(type(line) is not LongLine for line in [*lines, *list(self._pieces)[:1]])
        if not is_short or sum(map(len, lines)) > _MOST_HELD:
            return None
        held.clear()
        pieces = [*lines, *self._lines]
        if self._pieces:
            pieces.append(self._pieces.popleft())
        return b"".join(pieces)

    def _give_back(self, block: bytes, position: int) -> None:
        """Puts back complete lines that start at a position. In pieces, because all lines of a piece are split at once."""
        self._position = position
        stops = [0]
        while stops[-1] < len(block):
            stops.append(block.find(b"\n", stops[-1] + CHUNK_BYTES) + 1 or len(block))
        self._pieces.extendleft(block[start:stop] for start, stop in reversed(list(pairwise(stops))))

    def _next_piece(self) -> bytes | None:
        """The next piece, which remains in the queue; None at the end of the text."""
        if not self._pieces and (piece := self._read_piece()) is not None:
            self._pieces.append(piece)
        return self._pieces[0] if self._pieces else None

    def _read_piece(self) -> bytes | None:
        """Reads until there is a complete line.

        Returns all complete lines read, or one that is too long; None at the end of the text.
        """
        while True:
            chunk, self._unread = self._unread or self._stream.read(self._chunk_size), b""
            first = chunk.find(b"\n") + 1
            if chunk and not first:
                self._beginning.add(chunk)
                continue
            if self._beginning.size + first > self._longest:
                self._beginning.add(chunk[:first])
                self._unread = chunk[first:]
                return self._beginning.take()
            end = chunk.rfind(b"\n") + 1
            piece = self._beginning.take() + chunk[:end]
            self._beginning.add(chunk[end:])
            if piece or not chunk:
                return piece or None


def _read_plain(block: bytes, chain: Chain) -> PlainBatches | None:
    at = chain.next_position, chain.last_offset
    if not chain.is_deep:
        return read_plain_batches(block, *at)
    # Lines after open text may be part of it, which only the line reader can tell.
    return None if chain.has_open_text else read_plain_records(block, *at)


class _Beginning:
    """The part read so far of a line without its end."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._clear()

    def _clear(self) -> None:
        self.size = 0
        self._limit = self._longest
        self._held, self._tail = bytearray(), b""

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        self._tail = (self._tail + piece[-_TAIL:])[-_TAIL:]
        self._held += piece
        if self.size > self._limit + _LINE_END:
            if self._limit == self._longest and _OF_COORDINATOR in self._held[: self._longest]:
                self._limit = max(LONGEST_RECORD, self._longest)
            del self._held[self._limit + _LINE_END :]

    def take(self) -> bytes:
        """Returns the line, shortened if it is too long, and forgets it."""
        line = bytes(self._held)
        if self.size > len(line):
            line = shortened(line[: self._limit], self.size, self._tail)
        self._clear()
        return line
