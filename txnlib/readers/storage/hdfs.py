"""HDFS through hdfs-native. Needs neither a Hadoop installation nor a JVM per task.

Not through fsspec: its listing leaves out folders that it cannot list, and its paths end at a question mark.
hdfs-native reads core-site.xml and hdfs-site.xml from HADOOP_CONF_DIR or HADOOP_HOME, the user from HADOOP_USER_NAME, and Kerberos
tickets from the cache of `kinit`, as Hadoop's own tools do.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

from pyarrow import fs

#: Number of attempts at a namenode that does not answer. Delays grow, half a minute in all. The library's default is 15.
ATTEMPTS: Final = 6
#: Its exceptions contain Rust's text of an error, followed by the server's stack trace.
_SAID_BY_SERVER: Final = re.compile(r'RPCError\("(?:\w+\.)*(?P<exception>\w+)", "(?P<message>.*?)(?:\\n.*)?"\)', re.DOTALL)
#: Maximum length of a message; longer ones list every datanode with all its numbers.
_LONGEST: Final = 200


def settings() -> tuple[str | None, ...]:
    """The environment variables that decide which cluster is accessed, and as which user."""
    return tuple(os.environ.get(name) for name in ("HADOOP_CONF_DIR", "HADOOP_HOME", "HADOOP_USER_NAME"))


class Hdfs:
    """A cluster, with what an audit needs of a pyarrow filesystem: listing and reading. Errors are OSErrors.

    `authority`: without a host, `fs.defaultFS` of core-site.xml; without a port, a name service. Raises OSError if that setting is
    missing, ImportError without hdfs-native.
    """

    def __init__(self, authority: str) -> None:
        from hdfs_native import Client  # 11 MB that few need; every Python worker imports this file

        with _as_os_error():
            self._client = Client(f"hdfs://{authority}" if authority else None, {"dfs.client.failover.max.attempts": str(ATTEMPTS)})

    def get_file_info(self, asked: str | fs.FileSelector) -> fs.FileInfo | list[fs.FileInfo]:
        with _as_os_error():
            if isinstance(asked, fs.FileSelector):
                return [_as_info(status) for status in self._client.list_status(asked.base_dir, asked.recursive)]
            try:
                return _as_info(self._client.get_file_info(asked))
            except FileNotFoundError:
                return fs.FileInfo(asked, fs.FileType.NotFound)

    def open_input_file(self, path: str) -> AbstractContextManager[Any]:
        with _as_os_error():
            return _HdfsFile(self._client.read(path))


def _as_info(status: Any) -> fs.FileInfo:
    if status.isdir:
        return fs.FileInfo(status.path, fs.FileType.Directory)
    return fs.FileInfo(status.path, fs.FileType.File, size=status.length)


class _HdfsFile(AbstractContextManager["_HdfsFile"]):
    def __init__(self, opened: Any) -> None:
        self._opened = opened

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def size(self) -> int:
        return len(self._opened)

    def read_at(self, count: int, position: int) -> bytes:
        with _as_os_error():
            return bytes(self._opened.read_range(position, count))


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
