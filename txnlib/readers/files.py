"""Where can a file of a capture lie, and how is it opened? Local paths as ever, everything else through pyarrow.

A place is a plain path or a uri as it was given: `s3://` and `s3a://`, `gs://`, `abfss://`, `hdfs://`. Databricks shows its
volumes as folders, so `dbfs:` is a plain path. Keys stand in a uri as they are, without percent escapes.

A file that cannot be opened is an OSError, for the caller to judge. One that breaks off while it is read is an
UnreadableInputError: an audit over half a file would look like an audit over all of it.
"""

from __future__ import annotations

import io
import mmap
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa
from pyarrow import fs

from txnlib.errors import UnreadableInputError, UsageError
from txnlib.readers.block_buffer import BLOCK_BYTES, HELD_BYTES, BlockBuffer
from txnlib.readers.headers import Buffer
from txnlib.readers.stores import CREDENTIALS, SCHEMES, URI, as_os_error, is_remote, remote_file, said, scheme_of

#: What one request of a stream fetches.
STREAM_BYTES: Final = 8 << 20
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


@dataclass(frozen=True, slots=True)
class OpenFile:
    """The bytes of an open file. `forget` lets go of those before a position."""

    buffer: Buffer
    size: int
    forget: Callable[[int], None]


def locate(given: str) -> str:
    """The place that an option names, as an absolute path or a uri; nothing is opened. Raises UsageError for other schemes."""
    found = URI.fullmatch(given)
    if found is None or found["scheme"] in ("file", "dbfs"):
        return str(_local_path(given).absolute())
    scheme, authority, path = found.groups()
    if scheme not in SCHEMES:
        known = ", ".join(f"{scheme}://" for scheme in SCHEMES)
        raise UsageError(f"{given}: only local paths, file:, dbfs:, {known} can be read; copy or mount {scheme}:// first")
    if "@" in authority and scheme != "abfss":
        # Not repeated here: paths end up in tables and reports, keys must not.
        raise UsageError(f"{scheme}://: credentials do not belong in a path: set {CREDENTIALS[scheme_of(given)]}")
    if not _AUTHORITY[scheme_of(given)].fullmatch(authority):
        raise UsageError(f"{given}: expected {_SHAPE[scheme_of(given)]}")
    return f"{scheme}://{authority}{path.rstrip('/')}"


def is_file(place: str) -> bool:
    """Whether a place is one file; False for a folder. Raises UnreadableInputError if nothing is there or may be seen."""
    if not is_remote(place):
        if not Path(place).exists():
            raise _missing(place)
        return Path(place).is_file()
    with _as_an_input(place):
        remote = remote_file(place)
        kind = remote.filesystem.get_file_info(remote.name).type
    if kind == fs.FileType.NotFound:
        raise _missing(place)
    return bool(kind == fs.FileType.File)


def list_files(place: str) -> Iterator[tuple[str, int]]:
    """Path or uri and size in bytes of every file at a place, sorted by path.

    A local folder is walked as one goes along. Other listings come whole, since stores list thousands of files per request,
    but folder by folder a request each. Raises UnreadableInputError if nothing is there, or if it may not be listed.
    """
    if is_file(place):
        yield place, _size(place)
    elif is_remote(place):
        yield from _list_remote(place)
    else:
        yield from _walk_local(place)


def read_all(path: str) -> bytes:
    """The bytes of a small file. Raises OSError if it cannot be opened."""
    if not is_remote(path):
        return Path(path).read_bytes()
    with _open_ranges(path) as (read_at, size):
        return read_at(0, size)


def read_head(path: str, count: int) -> bytes:
    """The first bytes of a file, at most `count`. Raises OSError if it cannot be opened."""
    if not is_remote(path):
        with Path(path).open("rb") as stream:
            return stream.read(count)
    with _open_ranges(path) as (read_at, size):
        return read_at(0, min(count, size))


def read_range(path: str, position: int, count: int) -> bytes:
    """Bytes of a file from a position on, at most `count`. Raises OSError if it cannot be opened."""
    if not is_remote(path):
        with Path(path).open("rb") as stream:
            stream.seek(position)
            return stream.read(count)
    with _open_ranges(path) as (read_at, size):
        return read_at(position, max(min(count, size - position), 0))


@contextmanager
def open_stream(path: str, start: int = 0) -> Iterator[BinaryIO]:
    """A file to be read once, front to back, from a byte of it on, without buffering of its own, or little.

    Raises OSError if it cannot be opened.
    """
    if not is_remote(path):
        with Path(path).open("rb", buffering=0) as stream:
            stream.seek(start)
            yield stream
        return
    with as_os_error():
        remote = remote_file(path)
        if start:
            opened = remote.filesystem.open_input_file(remote.name)
            if start >= opened.size():  # Google's store refuses what begins there
                yield io.BytesIO()
                return
            opened.seek(start)
        else:
            opened = remote.filesystem.open_input_stream(remote.name, compression=None, buffer_size=STREAM_BYTES)
    with opened:
        remote_stream = _RemoteStream(path, opened)
        yield io.BufferedReader(remote_stream, STREAM_BYTES) if start else remote_stream  # type: ignore[misc]


@contextmanager
def open_buffer(path: str, block_bytes: int = BLOCK_BYTES, held_bytes: int = HELD_BYTES) -> Iterator[OpenFile]:
    """The bytes of a file, of which only those that are looked at are read. Raises OSError if it cannot be opened.

    Local files are mapped. Of others no more than `held_bytes` are held, fetched `block_bytes` at a time.
    """
    if is_remote(path):
        with _open_ranges(path) as (read_at, size):
            ranges = BlockBuffer(read_at, size, block_bytes, held_bytes)
            yield OpenFile(ranges, size, ranges.forget)
        return
    with Path(path).open("rb") as stream:
        size = stream.seek(0, io.SEEK_END)
        if size == 0:
            yield OpenFile(b"", 0, lambda position: None)
            return
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            yield OpenFile(mapped, size, partial(_forget, mapped))


def _forget(mapped: mmap.mmap, position: int) -> None:
    whole_pages = position - position % mmap.ALLOCATIONGRANULARITY
    if whole_pages and hasattr(mapped, "madvise"):
        mapped.madvise(mmap.MADV_DONTNEED, 0, whole_pages)


def _local_path(given: str) -> Path:
    """The path in `file:` and `file://`; in `dbfs:`, the folder under which Databricks shows it."""
    if not given.startswith("dbfs:"):
        return Path(given.removeprefix("file:").removeprefix("//") if given.startswith("file:") else given)
    path = "/" + given.removeprefix("dbfs:").lstrip("/")
    return Path(path if path.startswith("/Volumes/") else f"/dbfs{path}")


def _walk_local(folder: str) -> Iterator[tuple[str, int]]:
    try:
        with os.scandir(folder) as entries:
            listed = [(entry.path, _is_folder(entry)) for entry in entries]
    except OSError:  # lost+found, and others that are not Kafka's
        return
    # A folder sorts as its files do: by its name and the slash behind it.
    for path, is_folder in sorted(listed, key=lambda item: item[0] + "/" * item[1]):
        if is_folder:
            yield from _walk_local(path)
        else:
            yield path, _size(path)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link in a circle
        return False


def _size(path: str) -> int:
    """Bytes of a file; 0 for one that is gone, which whoever opens it will say."""
    if is_remote(path):
        with _as_an_input(path):
            remote = remote_file(path)
            return int(remote.filesystem.get_file_info(remote.name).size or 0)
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def _list_remote(folder: str) -> Iterator[tuple[str, int]]:
    with _as_an_input(folder):
        remote = remote_file(folder)
        listed = remote.filesystem.get_file_info(fs.FileSelector(remote.name, recursive=True))
    start = len(remote.name.rstrip("/"))
    files = [(folder + found.path[start:], int(found.size or 0)) for found in listed if found.type == fs.FileType.File]
    yield from sorted(files)


@contextmanager
def _open_ranges(path: str) -> Iterator[tuple[Callable[[int, int], bytes], int]]:
    with as_os_error():
        remote = remote_file(path)
        opened = remote.filesystem.open_input_file(remote.name)
        size = int(opened.size())
    with opened:
        yield partial(_read_at, path, opened), size


def _read_at(path: str, opened: Any, position: int, count: int) -> bytes:
    """Exactly `count` bytes. Raises UnreadableInputError if they cannot be had, OSError if not even the first can."""
    if count <= 0:
        return b""
    try:
        content: bytes = opened.read_at(count, position)
    except (OSError, pa.ArrowException) as error:
        raise _failed(path, position, error) from None
    if len(content) < count:
        raise _failed(path, position, f"{len(content)} bytes came, {count} were asked for")
    return content


class _RemoteStream(io.RawIOBase):
    """A stream whose failures name the file."""

    def __init__(self, path: str, opened: Any) -> None:
        self._path, self._opened = path, opened

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        try:
            content = self._opened.read(len(target))
        except (OSError, pa.ArrowException) as error:
            raise _failed(self._path, self._opened.tell(), error) from None
        target[: len(content)] = content
        return len(content)


# ---- Saying what went wrong.


@contextmanager
def _as_an_input(place: str) -> Iterator[None]:
    """What keeps an input as a whole from being read, with what to do about it."""
    try:
        with as_os_error():
            yield
    except FileNotFoundError as error:
        raise _missing(place) from error
    except OSError as error:
        raise UnreadableInputError(place, f"cannot be listed: {said(error)}", f"Check {CREDENTIALS[scheme_of(place)]}") from error


def _missing(place: str) -> UnreadableInputError:
    if is_remote(place):
        return UnreadableInputError(place, "no such file or folder", f"Check --input, and {CREDENTIALS[scheme_of(place)]}")
    return UnreadableInputError(place, "no such file or folder", "Check --input; it is relative to the current folder")


def _failed(path: str, position: int, problem: object) -> OSError | UnreadableInputError:
    # Some objects can be seen but not read (archived ones): that shows at the first byte.
    if position == 0:
        return OSError(said(problem))
    return UnreadableInputError(path, f"reading stopped at byte {position}: {said(problem)}", "Run the audit again")
