"""How is a text file opened, compressed or not? By the end of its name: `.gz`, `.zst`, else as it is."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa

from txnlib.readers import files

#: Endings of compressed text, which say nothing about what is in it.
COMPRESSED: Final = (".gz", ".zst")
#: What reading a file that is damaged, or cut inside its compressed bytes, may raise.
READ_ERRORS: Final = (OSError, EOFError, zlib.error)


@contextmanager
def open_text(path: str, start: int = 0) -> Iterator[Any]:
    """A binary stream of the text of a path or uri, from a byte of it on; zstd frames are decompressed by Arrow, piece by piece.

    Compressed text can be read from its beginning only. Raises OSError if the file cannot be opened. Reading it may raise one
    of `READ_ERRORS`.
    """
    assert not start or not is_compressed(path)
    with files.open_stream(path, start) as stream:
        if path.endswith(".gz"):
            with gzip.open(stream) as text:
                yield text
        elif path.endswith(".zst"):
            with pa.CompressedInputStream(stream, "zstd") as text:
                yield text
        else:
            yield stream


def read_text_head(path: str, count: int) -> bytes:
    """The first bytes of the text, as far as they can be had: of a packed file that is cut, what there is."""
    if path.endswith(".gz"):
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(files.read_head(path, count), count)
    with open_text(path) as stream:
        return bytes(stream.read(count))


def is_compressed(path: str) -> bool:
    """Whether a file is one of compressed text, by its name."""
    return path.endswith(COMPRESSED)


def without_compression(name: str) -> str:
    """The name without the ending of a compressed file."""
    return next((name.removesuffix(ending) for ending in COMPRESSED if name.endswith(ending)), name)
