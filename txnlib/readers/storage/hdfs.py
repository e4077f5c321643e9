"""HDFS through hdfs-native, as a pyarrow filesystem. Needs neither a Hadoop installation nor a JVM per task.

It reads core-site.xml and hdfs-site.xml from HADOOP_CONF_DIR or HADOOP_HOME, the user from HADOOP_USER_NAME, and Kerberos tickets
from the cache of `kinit`, as Hadoop's own tools do.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa
from pyarrow import fs

#: Number of attempts at a namenode that does not answer. Delays grow, half a minute in all. The library's default is 15.
ATTEMPTS: Final = 6
#: Its exceptions contain Rust's text of an error, followed by the server's stack trace.
_SAID_BY_SERVER: Final = re.compile(r'RPCError\("(?:\w+\.)*(?P<exception>\w+)", "(?P<message>.*?)(?:\\n.*)?"\)', re.DOTALL)
#: Maximum length of a message; longer ones list every datanode with all its numbers.
_LONGEST: Final = 200


def hdfs(authority: str) -> Any:
    """The filesystem of a cluster, for pyarrow. Without a host: `fs.defaultFS` of core-site.xml. Without a port: a name service.

    Raises OSError if that setting is missing, ImportError without hdfs-native.
    """
    from hdfs_native import Client  # 11 MB that few need; every Python worker imports this file

    with _as_os_error():
        client = Client(f"hdfs://{authority}" if authority else None, {"dfs.client.failover.max.attempts": str(ATTEMPTS)})
    return fs.PyFileSystem(_Handler(client))


def settings() -> tuple[str | None, ...]:
    """The environment variables that decide which cluster is accessed, and as which user."""
    return tuple(os.environ.get(name) for name in ("HADOOP_CONF_DIR", "HADOOP_HOME", "HADOOP_USER_NAME"))


class _Handler(fs.FileSystemHandler):  # type: ignore[misc]
    """The part of a filesystem that an audit needs: listing and reading."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def get_type_name(self) -> str:
        return "hdfs"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        return [self._info(path) for path in paths]

    def _info(self, path: str) -> fs.FileInfo:
        try:
            with _as_os_error():
                return _as_info(self._client.get_file_info(path))
        except FileNotFoundError:
            return fs.FileInfo(path, fs.FileType.NotFound)

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        with _as_os_error():
            return [_as_info(status) for status in self._client.list_status(selector.base_dir, selector.recursive)]

    def open_input_stream(self, path: str) -> pa.PythonFile:
        return self.open_input_file(path)

    def open_input_file(self, path: str) -> pa.PythonFile:
        with _as_os_error():
            return pa.PythonFile(_HdfsReader(self._client.read(path)), mode="r")

    def _refuse(self, *_: Any) -> None:
        raise io.UnsupportedOperation("captures are only read")

    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = delete_file = move = copy_file = _refuse
    open_output_stream = open_append_stream = _refuse


def _as_info(status: Any) -> fs.FileInfo:
    if status.isdir:
        return fs.FileInfo(status.path, fs.FileType.Directory)
    return fs.FileInfo(status.path, fs.FileType.File, size=status.length)


class _HdfsReader(io.RawIOBase):
    """A file whose errors are OSErrors."""

    def __init__(self, opened: Any) -> None:
        self._opened = opened

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return int(self._opened.tell())

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._opened.seek(offset, whence)
        return self.tell()

    def read(self, size: int | None = -1) -> bytes:
        with _as_os_error():
            content: bytes = self._opened.read(-1 if size is None else size)
        return content


@contextmanager
def _as_os_error() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise OSError(_words(str(error))) from None


def _words(problem: str) -> str:
    by_server = _SAID_BY_SERVER.fullmatch(problem)
    words = f"{by_server['exception']}: {by_server['message']}" if by_server else problem
    words = words.replace('\\"', '"')
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}…"
