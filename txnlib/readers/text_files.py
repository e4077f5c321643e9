"""Text files, compressed or not, by the end of their name: `.gz`, `.zst`, else plain.

Compressed text that is truncated or damaged ends where it can no longer be unpacked. The text before counts, for all tables alike,
and `Text.problem` is the reason.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any, Final

import pyarrow as pa

from txnlib.core.text.events import UnreadableReason
from txnlib.core.text.lines import CHUNK_BYTES
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


class Text:
    """The chunks of a text. `problem`: why it ended before its end, if it did; ask after the last chunk."""

    def __init__(self, path: str, stream: Any, size: int, chunk: int) -> None:
        self.problem: UnreadableReason | None = None
        self._stream, self._size, self._chunk = stream, size, chunk
        unpack = {".gz": self._gunzip, ".zst": self._unpack_zstd}.get(PurePath(path).suffix)
        self._chunks = self._read() if unpack is None else self._joined(unpack())

    def __iter__(self) -> Iterator[bytes]:
        return self._chunks

    def _joined(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        held = bytearray()
        for piece in pieces:
            held += piece
            if len(held) >= self._chunk:
                yield bytes(held)
                held.clear()
        if held:
            yield bytes(held)

    def _read(self) -> Iterator[bytes]:
        position = 0
        while chunk := bytes(self._stream.read(self._chunk)):
            position += len(chunk)
            yield chunk
        self.problem = None if position >= self._size else UnreadableReason.FILE_SHRANK

    def _gunzip(self) -> Iterator[bytes]:
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

    def _unpack_zstd(self) -> Iterator[bytes]:
        source = _Source(self._stream)
        try:
            with pa.CompressedInputStream(source, "zstd") as text:
                while piece := text.read(_ZSTD_BYTES):
                    yield piece
        except (OSError, pa.ArrowException):
            if source.error is not None:
                raise source.error from None
            self.problem = UnreadableReason.CANNOT_UNPACK


def _unpack_until_error(member: Any, packed: bytes) -> bytes:
    """The bytes that are unpacked before the error."""
    pieces = []
    try:
        for index in range(len(packed)):
            pieces.append(member.decompress(packed[index : index + 1]))
    except zlib.error:
        pass
    return b"".join(pieces)


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
def open_text(path: str, size: int = 0, *, chunk: int = CHUNK_BYTES) -> Iterator[Text]:
    """The text at a path or URI in chunks of so many bytes or more. Arrow decompresses zstd frames piece by piece.

    Compressed text ends where it cannot be unpacked. `size`: the size of the file in bytes when it was listed.
    Raises OSError if the file cannot be opened or read.
    """
    with files.open_stream(path) as stream:
        yield Text(path, stream, size, chunk)


def read_text_head(path: str, count: int) -> bytes:
    """The first `count` bytes of the text, or as many as can be unpacked."""
    with open_text(path, chunk=count) as text:
        return next(iter(text), b"")[:count]


def can_be_unpacked(path: str) -> bool:
    """Whether at least the beginning of a compressed text can be unpacked."""
    with open_text(path, chunk=1) as text:
        return bool(next(iter(text), b"")) or text.problem is None


def is_compressed(path: str) -> bool:
    """Whether a file is compressed text, by its name."""
    return path.endswith(COMPRESSED)


def without_compression(name: str) -> str:
    """The name without the ending of a compressed file."""
    return next((name.removesuffix(ending) for ending in COMPRESSED if name.endswith(ending)), name)
