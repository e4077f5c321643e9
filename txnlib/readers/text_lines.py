"""Lines of a text in bounded memory, one by one or in blocks."""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Iterator
from itertools import pairwise
from typing import BinaryIO, Final

from txnlib.core.text.batch_chain import Line
from txnlib.core.text.long_line import HEAD_BYTES, LONGEST_LINE, LongLine, size_of
from txnlib.core.text.tool_messages import UnreadableReason
from txnlib.readers.text_files import problem_of

CHUNK_BYTES: Final = 1 << 20
#: Most bytes of held lines to take into a block.
_MOST_HELD: Final = 4 << 20


class TextLines:
    """The lines of a stream with their line ends, each with its position. Keeps at most a line and a few chunks in memory.

    A line of more than `longest` bytes is passed on as a `LongLine`.
    """

    def __init__(self, stream: BinaryIO, chunk_size: int = CHUNK_BYTES, *, longest: int = LONGEST_LINE) -> None:
        self._stream, self._longest = stream, longest
        # At most `longest`, so that only a line that crosses the end of a chunk can be too long.
        self._chunk_size = min(chunk_size, longest)
        #: Position of the next line; the lines that are yielded one by one; and the text read after them: pieces of complete lines
        #: or a long one, the rest of a chunk, and the beginning of one more line.
        self._position = 0
        self._lines: Iterator[bytes] = iter(())
        self._pieces: deque[bytes] = deque()
        self._unread = b""
        self._beginning, self._beginning_size = bytearray(), 0

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

    def position_of(self, held: deque[Line]) -> int:
        """The position of the next line. `held`: lines that were yielded but not read yet, here and below."""
        return held[0][0] if held else self._position

    def begins_with(self, word: bytes, held: deque[Line]) -> bool:
        """Whether the next line begins with a word. Does not split a piece to find out."""
        if not held and self._lines.__length_hint__():  # type: ignore[attr-defined]
            held.append(next(self))
        if held:
            return held[0][1].startswith(word)
        piece = self._next_piece()
        return piece is not None and piece.startswith(word)

    def skip_empty(self) -> int:
        """Skips empty lines that were read from the stream but not split yet, and returns their number. There may be millions."""
        piece = None if self._lines.__length_hint__() else self._next_piece()  # type: ignore[attr-defined]
        if piece is None or not piece.startswith(b"\n\n"):
            return 0
        rest = piece.lstrip(b"\n")
        count = len(piece) - len(rest)
        self._pieces.popleft()
        if rest:
            self._pieces.appendleft(rest)
        self._position += count
        return count

    def take_block(self, held: deque[Line]) -> bytes | None:
        """Takes all lines that were read from the stream but not finally yielded, `held` first.

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

    def give_back(self, block: bytes, position: int) -> None:
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
                self._begin(chunk)
                continue
            if self._beginning_size + first > self._longest:
                self._begin(chunk[:first])
                self._unread = chunk[first:]
                return self._take_beginning()
            end = chunk.rfind(b"\n") + 1
            piece = self._take_beginning() + chunk[:end]
            self._begin(chunk[end:])
            if piece or not chunk:
                return piece or None

    def _begin(self, text: bytes) -> None:
        """Adds text without a line end to the beginning of a line. Of a line that is too long, only the head is kept."""
        self._beginning += text
        self._beginning_size += len(text)
        if self._beginning_size > self._longest:
            del self._beginning[HEAD_BYTES:]

    def _take_beginning(self) -> bytes:
        """Returns the line, and forgets it."""
        line, size = bytes(self._beginning), self._beginning_size
        self._beginning, self._beginning_size = bytearray(), 0
        return LongLine.of(line, size) if size > self._longest else line
