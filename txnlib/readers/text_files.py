"""Text files, compressed or not, by the end of their name: `.gz`, `.zst`, else plain.

Compressed text that is truncated or damaged ends where it can no longer be unpacked. The text before counts, for all tables alike,
and `problem_of` returns the reason.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa

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
