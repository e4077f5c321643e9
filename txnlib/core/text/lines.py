"""Lines of a text in bounded memory: one by one, ahead, or in blocks."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from itertools import pairwise
from typing import Final, Self

from txnlib.core.text.events import UnreadableReason

#: The position of a line in the text, and the line with its line end.
Line = tuple[int, bytes]

#: Editors and shells of Windows begin a text in UTF-8 with it.
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
#: Maximum size of a line in bytes, including its line end. Far above a coordinator record: on disk it may have a
#: megabyte, and its text repeats each topic for every partition.
LONGEST_LINE: Final = 1 << 24
#: Number of bytes kept of a longer line.
HEAD_BYTES: Final = 4_096
#: Number of bytes of text to take at once.
CHUNK_BYTES: Final = 1 << 20
#: Limits of the look-ahead: number of lines, and their total size in bytes.
_LINES_AHEAD: Final = 200_000
_BYTES_AHEAD: Final = 1 << 26
#: Most bytes of lines to take back into a block.
_MOST_TAKEN_BACK: Final = 4 << 20


class LongLine(bytes):
    """Empty, so that no code takes it for a line of a tool. `size` and `head`: its size in bytes, and its beginning."""

    size: int
    head: bytes

    @classmethod
    def of(cls, beginning: bytes, size: int) -> Self:
        """A line of `size` bytes with this beginning."""
        line = cls()
        line.size, line.head = size, beginning[:HEAD_BYTES]
        return line


def size_of(line: bytes) -> int:
    """The size of a line in bytes."""
    return line.size if type(line) is LongLine else len(line)


class Lines:
    """Lines with look-ahead. `text`: what they are from; it may say by an attribute `problem` why it is incomplete."""

    def __init__(self, lines: Iterable[Line], text: object = None) -> None:
        self._lines, self._text = iter(lines), text
        #: Lines that were looked at but not read yet.
        self.held: deque[Line] = deque()
        #: Number of bytes of lines searched for the end of contents without success.
        self.in_vain = 0

    @property
    def problem(self) -> UnreadableReason | None:
        """Why the text is incomplete; None if it is complete. Ask after the last line."""
        problem: UnreadableReason | None = getattr(self._text, "problem", None)
        return problem

    def __iter__(self) -> Iterator[Line]:
        return iter(self.next, None)

    def next(self) -> Line | None:
        """The next line; None at the end of the text."""
        return self.held.popleft() if self.held else next(self._lines, None)

    def give_back(self, lines: list[Line]) -> None:
        """Puts lines back in front, in order."""
        self.held.extendleft(reversed(lines))

    def ahead(self) -> Generator[Line, None, None]:
        """Iterates over the next lines without reading them. Close it when done."""
        seen: list[Line] = []
        size = 0
        try:
            while len(seen) < _LINES_AHEAD and size < _BYTES_AHEAD and (line := self.next()) is not None:
                seen.append(line)
                size += len(line[1])
                yield line
        finally:
            self.give_back(seen)


class TextLines(Lines):
    """The lines of a text that comes in chunks. Keeps at most a line and a few chunks in memory, besides lines that are
    held.

    A line of more than `longest` bytes becomes a `LongLine`.
    """

    def __init__(self, chunks: Iterable[bytes], *, longest: int = LONGEST_LINE) -> None:
        super().__init__(self._split(), chunks)
        self._chunks, self._longest = iter(chunks), longest
        #: Position of the next line; the lines of a piece; and the text after them: pieces of complete lines or a long
        #: one, the rest of a chunk, and the beginning of one more line.
        self._position = 0
        self.of_piece: deque[bytes] = deque()
        self._pieces: deque[bytes] = deque()
        self._unread = b""
        self._beginning, self._beginning_size = bytearray(), 0

    def head(self, count: int) -> bytes:
        """The first `count` bytes, before the first line is read."""
        while len(self._unread) < count and (chunk := next(self._chunks, b"")):
            self._unread += chunk
        return self._unread[:count]

    def skip(self, count: int) -> None:
        """Skips the first `count` bytes of the head."""
        self._unread = self._unread[count:]
        self._position += count

    def skip_byte_order_mark(self) -> int:
        """Skips a byte order mark before the first line, and returns its size in bytes: 0 if there is none."""
        size = len(BYTE_ORDER_MARK) if self.head(len(BYTE_ORDER_MARK)) == BYTE_ORDER_MARK else 0
        self.skip(size)
        return size

    def chunks(self) -> Iterator[bytes]:
        """The text in chunks instead of lines."""
        yield self._unread
        yield from self._chunks

    @property
    def position(self) -> int:
        """The position of the next line."""
        return self.held[0][0] if self.held else self._position

    def begins_with(self, word: bytes) -> bool:
        """Whether the next line begins with a word. Does not split a piece to find out."""
        if self.held:
            return self.held[0][1].startswith(word)
        following = self.of_piece[0] if self.of_piece else self._next_piece()
        return following is not None and following.startswith(word)

    def skip_empty(self) -> int:
        """Skips empty lines that were not split yet, and returns their number. There may be millions."""
        piece = None if self.held or self.of_piece else self._next_piece()
        if piece is None or not piece.startswith(b"\n\n"):
            return 0
        rest = piece.lstrip(b"\n")
        self._pieces.popleft()
        if rest:
            self._pieces.appendleft(rest)
        self._position += len(piece) - len(rest)
        return len(piece) - len(rest)

    def take_block(self) -> bytes | None:
        """Takes all text that is in memory up to the end of a line, until `end_block`.

        None, without taking anything, if a line is too long, or if too much was split into lines.
        """
        lines = [*(line for _position, line in self.held), *self.of_piece]
        if any(type(line) is LongLine for line in (*lines, *self._pieces)) or sum(map(len, lines)) > _MOST_TAKEN_BACK:
            return None
        self.held.clear()
        self.of_piece.clear()
        if self._pieces:
            lines.append(self._pieces.popleft())
        return b"".join(lines)

    def end_block(self, rest: bytes, position: int) -> None:
        """Goes on with the rest of a block, at a position. In pieces, because all lines of a piece are split at
        once."""
        self._position = position
        stops = [0]
        while stops[-1] < len(rest):
            stops.append(rest.find(b"\n", stops[-1] + CHUNK_BYTES) + 1 or len(rest))
        self._pieces.extendleft(rest[start:stop] for start, stop in reversed(list(pairwise(stops))))
        # The last look ahead may have ended the text.
        self._lines = self._split()

    def _split(self) -> Iterator[Line]:
        while self.of_piece or self._split_piece():
            line = self.of_piece.popleft()
            position = self._position
            self._position = position + (len(line) or size_of(line))
            yield position, line

    def _split_piece(self) -> bool:
        """Splits the next piece into its lines; False at the end of the text."""
        if self._next_piece() is None:
            return False
        piece = self._pieces.popleft()
        if type(piece) is LongLine:
            self.of_piece.append(piece)
            return True
        # `splitlines` would also split at a lone carriage return, which a payload may contain.
        lines = piece.split(b"\n")
        last = lines.pop()
        self.of_piece.extend(line + b"\n" for line in lines)
        if last:
            self.of_piece.append(last)
        return True

    def _next_piece(self) -> bytes | None:
        """The next piece, which remains in the queue; None at the end of the text."""
        if not self._pieces and (piece := self._read_piece()) is not None:
            self._pieces.append(piece)
        return self._pieces[0] if self._pieces else None

    def _read_piece(self) -> bytes | None:
        """Takes chunks until there is a complete line.

        Returns all complete lines of the chunk, or one that is too long; None at the end of the text.
        """
        while True:
            text = self._unread or next(self._chunks, b"")
            # Of that size, only a line that crosses the end of a chunk can be too long.
            chunk, self._unread = text[: self._longest], text[self._longest :]
            first = chunk.find(b"\n") + 1
            if chunk and not first:
                self._begin(chunk)
                continue
            if self._beginning_size + first > self._longest:
                self._begin(chunk[:first])
                self._unread = chunk[first:] + self._unread
                return self._take_beginning()
            end = chunk.rfind(b"\n") + 1
            piece = self._take_beginning() + chunk[:end]
            self._begin(chunk[end:])
            if piece or not chunk:
                return piece or None

    def _begin(self, text: bytes) -> None:
        """Adds text without a line end to the beginning of a line. Of a line that is too long, only the head is
        kept."""
        self._beginning += text
        self._beginning_size += len(text)
        if self._beginning_size > self._longest:
            del self._beginning[HEAD_BYTES:]

    def _take_beginning(self) -> bytes:
        """Returns the line, and forgets it."""
        line, size = bytes(self._beginning), self._beginning_size
        self._beginning, self._beginning_size = bytearray(), 0
        return LongLine.of(line, size) if size > self._longest else line
