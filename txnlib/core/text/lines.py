"""Lines of a text in bounded memory, and why it is unreadable."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Final, Self

from txnlib.core.text.line_forms import LineForm, find_form
from txnlib.core.text.wrappings import unwrapped

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
#: Number of bytes in which to look for what stands around each line.
_FORM_BYTES: Final = 65_536
#: Longest run of zero bytes in a text. A preallocated or sparse file may have gigabytes of them.
_MOST_ZEROS: Final = 1 << 20


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


class UnreadableReason(StrEnum):
    """Why a range of a text could not be read."""

    #: Text that no tool prints; nothing is missing around it.
    NOT_DUMP_TEXT = "NOT_DUMP_TEXT"
    #: What each line carries besides the tool's own text, and what was taken off; length 0.
    LINE_FORM = "LINE_FORM: this was taken off each line"
    #: A file that the text has printed before, and equal batches, records or producers of it; length 0.
    PRINTED_AGAIN = "PRINTED_AGAIN: the text prints this file more than once; what is equal counts once"
    #: A part of a line.
    BROKEN_LINE = "BROKEN_LINE"
    #: A line in a form that only tools before 2.8 print.
    OLD_TOOL = "OLD_TOOL: printed by a tool before Kafka 2.8"
    #: A line above the limit, or what is left of a console record above it. No part of it is read.
    LINE_TOO_LONG = "LINE_TOO_LONG: more than 16 MiB"
    #: The last line of the text, without its end.
    CUT_LINE = "CUT_LINE"
    #: A batch that the tool calls invalid, with its records.
    CRC_MISMATCH = "CRC_MISMATCH"
    #: A line that does not follow from the lines before it; with length 0, the position of missing lines.
    OUT_OF_CHAIN = "OUT_OF_CHAIN"
    #: The only record of a coordinator's batch has another time than the batch: one of the lines is wrong; length 0.
    TIMES_DIFFER = "TIMES_DIFFER: of a coordinator's batch and of its record"
    #: A coordinator record with a key of a version that Kafka skips, too.
    UNKNOWN_KEY_VERSION = "UNKNOWN_KEY_VERSION"
    #: A coordinator record with a value of a version that the tool does not know.
    UNKNOWN_VALUE_VERSION = "UNKNOWN_VALUE_VERSION"
    #: A coordinator record that the tool or this reader could not decode.
    UNDECODABLE_RECORD = "UNDECODABLE_RECORD"
    #: Lines of a console consumer near a piece of a record. They may be of an id with line feeds that imitates records.
    AMBIGUOUS_RECORD = "AMBIGUOUS_RECORD: near a piece of a record; print it again as JSON, by Kafka 3.9 or later"
    #: Contents whose end the printed sizes do not show. Any line behind may be a part of them, so none is read.
    SIZE_MISMATCH = "SIZE_MISMATCH: contents without a known end; print it again without --print-data-log"
    #: The same behind header keys, of which no size is printed: a line continues the dump before them, or another
    #: partition follows.
    HEADER_KEYS = "HEADER_KEYS: no size shows where they end, so that nothing behind them is read"
    #: A `Dumping` line behind such contents; length 0.
    FILE_NOT_READ = "FILE_NOT_READ: it may be a part of contents; print it into a text of its own"
    #: More zero bytes than a text can have. What follows is not read.
    ZERO_BYTES = "ZERO_BYTES: more than 1 MiB of them; nothing behind is read"
    #: Compressed text that is truncated or damaged. An unknown number of bytes after it is lost.
    CANNOT_UNPACK = "CANNOT_UNPACK: cut or damaged from this position in the unpacked text on"
    #: The text is shorter than when the capture was listed; length 0, because the lost content is unknown.
    FILE_SHRANK = "FILE_SHRANK: the text ends here, before the size that it had"
    #: A whole file whose path does not contain its partition.
    TOPIC_PARTITION_UNKNOWN = (
        "TOPIC_PARTITION_UNKNOWN: nothing in it names its partition: call the file <topic>-<partition>.txt"
    )


#: Reasons that, at the end of a file, do not mean that the file is incomplete.
HARMLESS_AT_THE_END: Final = frozenset(
    {
        UnreadableReason.NOT_DUMP_TEXT,
        UnreadableReason.CUT_LINE,
        UnreadableReason.TIMES_DIFFER,
        UnreadableReason.UNKNOWN_KEY_VERSION,
        UnreadableReason.UNKNOWN_VALUE_VERSION,
        UnreadableReason.UNDECODABLE_RECORD,
    }
)


class TextLines:
    """The lines of a text that comes in chunks.

    Keeps at most a line and a few chunks in memory, besides lines that were given back.
    A line of more than `longest` bytes becomes a `LongLine`. `form`: what was taken off each line.
    """

    def __init__(self, chunks: Iterable[bytes], *, longest: int = LONGEST_LINE) -> None:
        self._source, self._longest = chunks, longest
        #: The text ends before a run of so many zero bytes.
        self._zeros = 0
        inside, wrapping = unwrapped(self._without_zeros(iter(chunks)))
        self._chunks = inside
        self._unread = b""
        while len(self._unread) < _FORM_BYTES and (chunk := next(self._chunks, b"")):
            self._unread += chunk
        #: Position of the next line.
        self._position = len(BYTE_ORDER_MARK) if self._unread.startswith(BYTE_ORDER_MARK) else 0
        self._unread = self._unread[self._position :]
        form = find_form(self._unread[:_FORM_BYTES])
        says, steps = ("", ()) if form is None else (form.says, form.steps)
        if wrapping:
            form = LineForm("; ".join(filter(None, (wrapping, says))), steps)
        self.form: LineForm | None = form
        #: Lines that were given back; and the text after them: pieces of complete lines or a long one, the rest of a
        #: chunk, and the beginning of one more line.
        self._held: deque[Line] = deque()
        self._of_piece: deque[bytes] = deque()
        self._pieces: deque[bytes] = deque()
        self._beginning, self._beginning_size = bytearray(), 0

    @property
    def problem(self) -> UnreadableReason | None:
        """Why the text is incomplete; None if it is complete. Ask after the last line."""
        problem: UnreadableReason | None = getattr(self._source, "problem", None)
        return UnreadableReason.ZERO_BYTES if self._zeros > _MOST_ZEROS else problem

    @property
    def position(self) -> int:
        """The position of the next line."""
        return self._held[0][0] if self._held else self._position

    def head(self, count: int) -> bytes:
        """The first `count` bytes, before the first line is read."""
        while len(self._unread) < count and (chunk := next(self._chunks, b"")):
            self._unread += chunk
        return self._unread[:count]

    def __iter__(self) -> Iterator[Line]:
        return iter(self.next, None)

    def next(self) -> Line | None:
        """The next line; None at the end of the text."""
        if self._held:
            return self._held.popleft()
        if not self._of_piece and not self._split_piece():
            return None
        line, position = self._of_piece.popleft(), self._position
        if type(line) is LongLine:
            self._position += line.size
            return position, line
        self._position += len(line)
        return position, line if self.form is None else self.form.taken_off(line)

    def give_back(self, lines: list[Line]) -> None:
        """Puts lines back in front, in order."""
        self._held.extendleft(reversed(lines))

    def skip_empty(self) -> None:
        """Skips empty lines that were not split yet. There may be millions."""
        while not self._held and not self._of_piece and (self._next_piece() or b"").startswith(b"\n\n"):
            piece = self._pieces.popleft()
            rest = piece.lstrip(b"\n")
            self._position += len(piece) - len(rest)
            if rest:
                self._pieces.appendleft(rest)

    def chunks(self) -> Iterator[bytes]:
        """The rest of the text in chunks instead of lines, before any line is looked at or after the last one read."""
        yield from (line for _position, line in self._held)
        yield b"".join(self._of_piece)
        yield from self._pieces
        yield bytes(self._beginning) + self._unread
        yield from self._chunks

    def _without_zeros(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """The chunks up to a run of too many zero bytes."""
        for chunk in chunks:
            behind = chunk.lstrip(b"\0")
            self._zeros += len(chunk) - len(behind)
            if self._zeros > _MOST_ZEROS:
                return
            yield chunk
            if behind:
                self._zeros = len(behind) - len(behind.rstrip(b"\0"))

    def _split_piece(self) -> bool:
        """Splits the next piece into its lines; False at the end of the text."""
        if self._next_piece() is None:
            return False
        piece = self._pieces.popleft()
        if type(piece) is LongLine:
            self._of_piece.append(piece)
            return True
        # `splitlines` would also split at a lone carriage return, which a payload may contain.
        lines = piece.split(b"\n")
        last = lines.pop()
        self._of_piece.extend(line + b"\n" for line in lines)
        if last:
            self._of_piece.append(last)
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
