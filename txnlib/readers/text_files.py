"""Text files, compressed or not, by the end of their name: `.gz`, `.zst`, else plain.

Compressed text that is truncated or damaged ends where it can no longer be unpacked. The text before counts, for all tables alike,
and `problem_of` returns the reason.
"""

from __future__ import annotations

import io
import zlib
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, BinaryIO, Final

import pyarrow as pa

from txnlib.core.text.batch_chain import Line
from txnlib.core.text.long_line import HEAD_BYTES, LONGEST_LINE, LongLine, size_of
from txnlib.core.text.tool_messages import UnreadableReason
from txnlib.readers.storage import files

#: File name endings of compressed text, which do not depend on its content.
COMPRESSED: Final = (".gz", ".zst")
#: Exceptions that reading a file may raise.
READ_ERRORS: Final = (OSError, EOFError, zlib.error)
_GZIP: Final = zlib.MAX_WBITS | 16
#: Number of compressed bytes to read at once, and of text bytes to unpack at once.
_PACKED_BYTES: Final = 1 << 16
_UNPACKED_BYTES: Final = 1 << 16
#: Small, because Arrow loses everything that it unpacked in a call that fails.
_ZSTD_BYTES: Final = 1 << 10


class _Unpacked:
    """A text that is unpacked piece by piece. `problem`: why it ended before its end, if an error did so."""

    def __init__(self) -> None:
        self.problem: UnreadableReason | None = None
        self._held = bytearray()
        self._pieces = self._unpack()

    def read(self, count: int) -> bytes:
        """The next `count` bytes, fewer at the end of the text."""
        while len(self._held) < count and (piece := next(self._pieces, None)) is not None:
            self._held += piece
        taken = bytes(self._held[:count])
        del self._held[:count]
        return taken

    def _unpack(self) -> Iterator[bytes]:
        raise NotImplementedError


class _Listed:
    """A text whose size was listed. `problem`: whether it ended before that size."""

    def __init__(self, stream: Any, size: int) -> None:
        self._stream, self._position, self._size = stream, 0, size
        self.problem: UnreadableReason | None = None

    def read(self, count: int) -> bytes:
        """The next `count` bytes, fewer at the end of the text."""
        taken = bytes(self._stream.read(count))
        self._position += len(taken)
        if count and not taken:
            self.problem = None if self._position >= self._size else UnreadableReason.FILE_SHRANK
        return taken


class _Gunzipped(_Unpacked):
    def __init__(self, stream: Any) -> None:
        self._stream = stream
        super().__init__()

    def _unpack(self) -> Iterator[bytes]:
        member, packed = zlib.decompressobj(_GZIP), b""
        has_begun = False
        while packed or (packed := self._stream.read(_PACKED_BYTES)):
            if not has_begun:
                # Zero padding may follow a member, but a file does not start with it.
                packed = packed.lstrip(b"\0")
                if not packed:
                    continue
            has_begun = True
            before = member.copy()
            try:
                piece = member.decompress(packed, _UNPACKED_BYTES)
            except zlib.error:
                yield _unpack_until_error(before, packed)
                self.problem = UnreadableReason.CANNOT_UNPACK
                return
            yield piece
            packed = member.unconsumed_tail
            if member.eof:
                packed, member, has_begun = member.unused_data, zlib.decompressobj(_GZIP), False
        self.problem = UnreadableReason.CANNOT_UNPACK if has_begun else None


def _unpack_until_error(member: Any, packed: bytes) -> bytes:
    """The bytes that are unpacked before the error."""
    pieces = []
    try:
        for index in range(len(packed)):
            pieces.append(member.decompress(packed[index : index + 1]))
    except zlib.error:
        pass
    return b"".join(pieces)


class _ZstdUnpacked(_Unpacked):
    def __init__(self, stream: Any) -> None:
        self._stream = _Source(stream)
        super().__init__()

    def _unpack(self) -> Iterator[bytes]:
        try:
            with pa.CompressedInputStream(self._stream, "zstd") as text:
                while piece := text.read(_ZSTD_BYTES):
                    yield piece
        except (OSError, pa.ArrowException):
            if self._stream.error is not None:
                raise self._stream.error from None
            self.problem = UnreadableReason.CANNOT_UNPACK


class _Source:
    """A stream that remembers its own failure, to distinguish it from an error in its content."""

    closed = False

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.error: Exception | None = None

    def read(self, count: int) -> bytes:
        try:
            return bytes(self._stream.read(count))
        except Exception as error:
            self.error = error
            raise

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        """Does nothing: the code that opened the stream closes it."""


@contextmanager
def open_text(path: str, size: int = 0) -> Iterator[Any]:
    """A binary stream of the text at a path or URI. Arrow decompresses zstd frames piece by piece.

    Compressed text ends where it cannot be unpacked; see `problem_of`. `size`: the size of the file in bytes when it was listed.
    Raises OSError if the file cannot be opened or read.
    """
    with files.open_stream(path) as stream:
        if path.endswith(".gz"):
            yield _Gunzipped(stream)
        elif path.endswith(".zst"):
            yield _ZstdUnpacked(stream)
        else:
            yield _Listed(stream, size)


def problem_of(stream: Any) -> UnreadableReason | None:
    """Why a stream of `open_text` ended before the end of the text; None if it is complete. Call it after the last byte."""
    problem: UnreadableReason | None = getattr(stream, "problem", None)
    return problem


def read_text_head(path: str, count: int) -> bytes:
    """The first `count` bytes of the text, or as many as can be unpacked."""
    with open_text(path) as stream:
        return bytes(stream.read(count))


def can_be_unpacked(path: str) -> bool:
    """Whether at least the beginning of a compressed text can be unpacked."""
    with open_text(path) as stream:
        return bool(stream.read(1)) or problem_of(stream) is None


def is_compressed(path: str) -> bool:
    """Whether a file is compressed text, by its name."""
    return path.endswith(COMPRESSED)


def without_compression(name: str) -> str:
    """The name without the ending of a compressed file."""
    return next((name.removesuffix(ending) for ending in COMPRESSED if name.endswith(ending)), name)


# ---- Lines of a text in bounded memory, one by one or in blocks


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
