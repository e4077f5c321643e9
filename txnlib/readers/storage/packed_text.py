"""Text, compressed or not, by the end of its name: `.gz`, `.zst`, `.bz2`, `.xz`, else plain.

Compressed text that is truncated or damaged ends where it can no longer be unpacked. The text before counts, for all
tables alike, and `Text.problem` is the reason.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import PurePath
from typing import Any, Final

import pyarrow as pa

from txnlib.core.text.lines import CHUNK_BYTES, UnreadableReason
from txnlib.readers.storage.files import open_stream

#: File name endings of compressed text, which do not depend on its content.
COMPRESSED: Final = (".gz", ".zst", ".bz2", ".xz")
#: Exceptions that reading a file may raise.
READ_ERRORS: Final = (OSError, EOFError, zlib.error, lzma.LZMAError)
_GZIP: Final = zlib.MAX_WBITS | 16
#: Number of compressed bytes to read at once, and of text bytes to unpack at once.
_PACKED_BYTES: Final = 1 << 16
_UNPACKED_BYTES: Final = 1 << 16
#: Small, because Arrow loses everything that it unpacked in a call that fails.
_ZSTD_BYTES: Final = 1 << 10


#: Memory that unpacking `.xz` may take: `xz -9` needs 65 MiB.
_MOST_OF_XZ: Final = 256 << 20


class Text:
    """The chunks of a text. `problem`: why it ended before its end, if it did; ask after the last chunk."""

    def __init__(self, path: str, stream: Any, size: int, chunk: int) -> None:
        self.problem: UnreadableReason | None = None
        self._stream, self._size, self._chunk = stream, size, chunk
        unpackers: dict[str, Callable[[], Iterator[bytes]]] = {
            ".gz": self._gunzip,
            ".zst": self._unpack_zstd,
            ".bz2": partial(self._unpack, bz2.BZ2Decompressor),
            ".xz": partial(self._unpack, partial(lzma.LZMADecompressor, memlimit=_MOST_OF_XZ)),
        }
        unpack = unpackers.get(PurePath(path).suffix)
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

    def _unpack(self, decompressor: Callable[[], Any]) -> Iterator[bytes]:
        """The text of `.bz2` or `.xz`, which may be several such streams in a row, with padding between them."""
        member, packed, has_begun = decompressor(), b"", False
        while packed or not member.needs_input or (packed := self._stream.read(_PACKED_BYTES)):
            packed = packed if has_begun else packed.lstrip(b"\0")
            has_begun = has_begun or bool(packed)
            try:
                yield member.decompress(packed, _UNPACKED_BYTES)
            except (OSError, ValueError, EOFError, lzma.LZMAError):
                self.problem = UnreadableReason.CANNOT_UNPACK
                return
            packed = b""
            if member.eof:
                packed, member, has_begun = member.unused_data, decompressor(), False
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
    with open_stream(path) as stream:
        yield Text(path, stream, size, chunk)


def can_be_unpacked(path: str) -> bool:
    """Whether at least the beginning of a compressed text can be unpacked."""
    with open_text(path, chunk=1) as text:
        return bool(next(iter(text), b"")) or text.problem is None


def without_compression(name: str) -> str:
    """The name without the ending of a compressed file."""
    return next((name.removesuffix(ending) for ending in COMPRESSED if name.endswith(ending)), name)
