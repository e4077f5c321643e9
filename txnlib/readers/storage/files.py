"""Files of a capture, local or in a store that pyarrow reads.

A place is a plain path or a URI as it was given: `s3://` and `s3a://`, `gs://`, `abfss://`, `hdfs://`. Databricks
mounts its volumes as folders, so `dbfs:` is a plain path. Keys in a URI are literal, without percent escapes.

A file that cannot be opened raises OSError, which the caller handles. A file that fails while it is read raises
UnreadableInputError: an audit of half a file would look like an audit of the whole file.
"""

from __future__ import annotations

import errno
import gzip
import io
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa
from pyarrow import fs

from txnlib.core.text.lines import CHUNK_BYTES
from txnlib.errors import UnreadableInputError, UsageError
from txnlib.readers.storage.block_buffer import BLOCK_BYTES, BlockBuffer
from txnlib.readers.storage.local_files import (
    FOLDER,
    FileShrunk,
    FolderEntry,
    Walk,
    kind_of,
    native,
    open_regular,
    read_at_most,
    shown,
)
from txnlib.readers.storage.object_stores import (
    CREDENTIALS,
    SCHEMES,
    URI,
    as_os_error,
    is_remote,
    remote_file,
    said,
    scheme_of,
)

#: Number of bytes of a local file to read at once: few, so that large batches are skipped and the bytes stay in the
#: CPU's cache.
LOCAL_BLOCK_BYTES: Final = 256 << 10
#: Number of bytes per request of a stream.
STREAM_BYTES: Final = 8 << 20
#: A segment that was compressed before it was copied. Its size is limited as that of a segment is.
_PACKED_SEGMENT: Final = re.compile(r"(^|/)[0-9]{20}\.log\.gz\Z")
_MOST_OF_SEGMENT: Final = (1 << 31) - 1
_SHAPE: Final = {
    "s3": "s3://<bucket>/<path>",
    "gs": "gs://<bucket>/<path>",
    "abfss": "abfss://<container>@<account>.dfs.core.windows.net/<path>",
    "hdfs": "hdfs://<host>:<port>/<path>, or hdfs:///<path>",
}
_AUTHORITY: Final = {
    "s3": re.compile(r".+"),
    "gs": re.compile(r".+"),
    "abfss": re.compile(r"[^@]+@[^@.]+\.dfs\..+"),
    "hdfs": re.compile(r"[^:]*(:\d+)?"),
}


def locate(given: str) -> str:
    """The place that an option names, as an absolute path or a URI. Opens nothing. Raises UsageError for other
    schemes."""
    found = URI.fullmatch(given)
    if found is None or found["scheme"] in ("file", "dbfs"):
        return shown(str(_local_path(given).absolute()))
    scheme, authority, path = found.groups()
    if scheme not in SCHEMES:
        known = ", ".join(f"{scheme}://" for scheme in SCHEMES)
        raise UsageError(
            f"{given}: only local paths, file:, dbfs:, {known} can be read; copy or mount {scheme}:// first"
        )
    if "@" in authority and scheme != "abfss":
        # The message does not repeat the path: messages appear in tables and reports, where keys must not.
        raise UsageError(f"{scheme}://: credentials do not belong in a path: set {CREDENTIALS[scheme_of(given)]}")
    if not _AUTHORITY[scheme_of(given)].fullmatch(authority):
        raise UsageError(f"{given}: expected {_SHAPE[scheme_of(given)]}")
    return f"{scheme}://{authority}{path.rstrip('/')}"


def is_file(place: str) -> bool:
    """Whether a place is a file; False for a folder.

    Raises UnreadableInputError if the place does not exist or may not be seen, or if it is neither a file nor a folder.
    """
    if not is_remote(place):
        if not Path(native(place)).exists():
            raise _missing(place)
        kind = kind_of(Path(native(place)).stat().st_mode)
        if kind not in (None, FOLDER):
            raise UnreadableInputError(place, f"it is a {kind}", "Name a file or a folder")
        return kind is None
    return bool(_info(place).type == fs.FileType.File)


def list_files(
    places: Sequence[str], *, follow_links: bool = False, enters_link: Callable[[str], bool] = lambda name: False
) -> Iterator[FolderEntry]:
    """Every file at the given places, and every other entry to report: place by place, sorted by path, then the targets
    of links.

    `follow_links`, `enters_link`: see `local_files.Walk`. A local folder is walked lazily. The listing of a store is
    read completely, because stores return thousands of files per request, while listing folder by folder costs a
    request per folder. Raises UnreadableInputError if a place does not exist, or if a store may not be listed.
    """
    local = []
    for place in places:
        if not is_remote(place):
            is_file(place)
            local.append(place)
        elif is_file(place):
            yield FolderEntry(place, place, int(_info(place).size or 0))
        else:
            yield from _list_remote(place)
    yield from Walk(local, follow_links=follow_links, enters_link=enters_link).entries()


def read_all(path: str, most: int) -> bytes:
    """The bytes of a small file. Raises OSError if it cannot be opened or has more than `most` bytes."""
    with _open_ranges(path) as (read_at, size):
        if size > most:
            raise OSError(errno.EFBIG, f"it has more than {most} bytes")
        return read_at(0, size)


def read_range(path: str, position: int, count: int) -> bytes:
    """The bytes of a file from `position` on, at most `count`. Raises OSError if it cannot be opened."""
    if not is_remote(path) and not _PACKED_SEGMENT.search(path):
        with open_regular(path) as stream:
            return read_at_most(stream, position, count)
    with _open_ranges(path) as (read_at, size):
        return read_at(position, max(min(count, size - position), 0))


@contextmanager
def open_stream(path: str) -> Iterator[BinaryIO]:
    """A file to read once from front to back. Raises OSError if it cannot be opened."""
    if not is_remote(path):
        with open_regular(path) as stream:
            yield stream
        return
    with _open_stored_ranges(path) as (read_at, size):
        yield io.BufferedReader(_Stream(read_at, size), STREAM_BYTES)


@contextmanager
def open_buffer(path: str, block_bytes: int = BLOCK_BYTES) -> Iterator[BlockBuffer]:
    """The bytes of a file, read on access. Raises OSError if it cannot be opened.

    Fetched `block_bytes` at a time, or LOCAL_BLOCK_BYTES for a local file. Files are not mapped into memory, because a
    file that shrinks meanwhile would end the process (SIGBUS). Reading such a file raises FileShrunk.
    """
    with _open_ranges(path) as (read_at, size):
        if is_remote(path):
            yield BlockBuffer(read_at, size, block_bytes)
        else:  # the system reads ahead
            yield BlockBuffer(read_at, size, min(block_bytes, LOCAL_BLOCK_BYTES), ahead=0)


def _local_path(given: str) -> Path:
    """The path of a `file:` or `file://` URI. For `dbfs:`, the folder where Databricks mounts it."""
    if not given.startswith("dbfs:"):
        return Path(given.removeprefix("file:").removeprefix("//") if given.startswith("file:") else given)
    path = "/" + given.removeprefix("dbfs:").lstrip("/")
    return Path(path if path.startswith("/Volumes/") else f"/dbfs{path}")


def _info(place: str) -> Any:
    """What a store says of a place. Raises UnreadableInputError if nothing is there."""
    with _as_an_input(place):
        filesystem, name = remote_file(place)
        found = filesystem.get_file_info(name)
    if found.type == fs.FileType.NotFound:
        raise _missing(place)
    return found


def _list_remote(folder: str) -> Iterator[FolderEntry]:
    with _as_an_input(folder):
        filesystem, name = remote_file(folder)
        listed = filesystem.get_file_info(fs.FileSelector(name, recursive=True))
    start = len(name.rstrip("/"))
    files = [(folder + found.path[start:], int(found.size or 0)) for found in listed if found.type == fs.FileType.File]
    yield from (FolderEntry(folder, path, size) for path, size in sorted(files))


@contextmanager
def _open_ranges(path: str) -> Iterator[tuple[Callable[[int, int], bytes], int]]:
    """A function that reads exactly so many bytes at a position, and the size of the file, unpacked if it is a segment.

    A segment is read here and there, so that it is unpacked as a whole.
    """
    if not _PACKED_SEGMENT.search(path):
        with _open_stored_ranges(path) as ranges:
            yield ranges
        return
    with tempfile.TemporaryFile() as unpacked, open_stream(path) as packed, gzip.open(packed) as content:
        size = 0
        while chunk := content.read(CHUNK_BYTES):
            size += len(chunk)
            if size > _MOST_OF_SEGMENT:
                raise OSError(errno.EFBIG, f"it unpacks to more than {_MOST_OF_SEGMENT} bytes")
            unpacked.write(chunk)
        yield partial(_read_unpacked, unpacked), size


def _read_unpacked(stream: Any, position: int, count: int) -> bytes:
    stream.seek(position)
    return bytes(stream.read(count))


@contextmanager
def _open_stored_ranges(path: str) -> Iterator[tuple[Callable[[int, int], bytes], int]]:
    if not is_remote(path):
        with open_regular(path) as stream:
            yield partial(_read_local, stream), os.fstat(stream.fileno()).st_size
        return
    with as_os_error():
        filesystem, name = remote_file(path)
        opened = filesystem.open_input_file(name)
        size = int(opened.size())
    with opened:
        yield partial(_read_at, path, opened), size


def _read_local(stream: io.FileIO, position: int, count: int) -> bytes:
    """Exactly `count` bytes. Raises FileShrunk if the file no longer has them."""
    content = read_at_most(stream, position, count)
    if len(content) < count:
        raise FileShrunk(min(position + len(content), os.fstat(stream.fileno()).st_size))
    return content


def _read_at(path: str, opened: Any, position: int, count: int) -> bytes:
    """Exactly `count` bytes. Raises OSError if not even the first byte can be read, UnreadableInputError if reading
    fails later."""
    if count <= 0:
        return b""
    try:
        content: bytes = opened.read_at(count, position)
    except (OSError, pa.ArrowException) as error:
        raise _failed(path, position, error) from None
    if len(content) < count:
        raise _failed(path, position, f"{len(content)} bytes came, {count} were asked for")
    return content


class _Stream(io.RawIOBase):
    """The bytes of a file from front to back, by its ranges."""

    def __init__(self, read_at: Callable[[int, int], bytes], size: int) -> None:
        self._read_at, self._size, self._position = read_at, size, 0

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        content = self._read_at(self._position, min(len(target), self._size - self._position))
        target[: len(content)] = content
        self._position += len(content)
        return len(content)


# ---- Errors.


@contextmanager
def _as_an_input(place: str) -> Iterator[None]:
    """Raises UnreadableInputError, with a remedy, for a problem of an input as a whole."""
    try:
        with as_os_error():
            yield
    except FileNotFoundError as error:
        raise _missing(place) from error
    except OSError as error:
        raise UnreadableInputError(
            place, f"cannot be listed: {said(error)}", f"Check {CREDENTIALS[scheme_of(place)]}"
        ) from error


def _missing(place: str) -> UnreadableInputError:
    if is_remote(place):
        return UnreadableInputError(
            place, "no such file or folder", f"Check --input, and {CREDENTIALS[scheme_of(place)]}"
        )
    return UnreadableInputError(place, "no such file or folder", "Check --input; it is relative to the current folder")


def _failed(path: str, position: int, problem: object) -> OSError | UnreadableInputError:
    # Some objects can be listed but not read (archived ones): this shows at the first byte.
    if position == 0:
        return OSError(said(problem))
    return UnreadableInputError(path, f"reading stopped at byte {position}: {said(problem)}", "Run the audit again")
