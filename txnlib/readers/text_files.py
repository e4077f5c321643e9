"""How is a text file opened, compressed or not? By the end of its name: `.gz`, `.zst`, else as it is."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

#: Endings of compressed text, which say nothing about what is in it.
COMPRESSED: Final = (".gz", ".zst")
#: What reading a file that is damaged, or cut inside its compressed bytes, may raise.
READ_ERRORS: Final = (OSError, EOFError, zlib.error)


def open_text(path: str | Path) -> Any:
    """A binary stream of the text, to be closed; zstd frames are decompressed by Arrow, piece by piece.

    Raises OSError if the file cannot be opened. Reading it may raise one of `READ_ERRORS`.
    """
    name = str(path)
    if name.endswith(".gz"):
        return gzip.open(name)
    if name.endswith(".zst"):
        return pa.input_stream(name, compression="zstd")
    return Path(name).open("rb", buffering=0)


def without_compression(name: str) -> str:
    """The name without the ending of a compressed file."""
    return next((name.removesuffix(ending) for ending in COMPRESSED if name.endswith(ending)), name)
