"""Access to object stores and HDFS: filesystems configured from the environment, and error messages.

Environment variables have the names that each store's own tools use. An error from a store is raised as OSError with a
one-line message without keys, because such messages appear in tables and reports.

HDFS is read through hdfs-native, which needs neither a Hadoop installation nor a JVM per task. Not through fsspec: its
listing leaves out folders that it cannot list, and its paths end at a question mark. hdfs-native reads core-site.xml
and hdfs-site.xml from HADOOP_CONF_DIR or HADOOP_HOME, the user from HADOOP_USER_NAME, and Kerberos tickets from the
cache of `kinit`, as Hadoop's own tools do.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
from pyarrow import fs

SCHEMES: Final = ("s3", "s3a", "gs", "abfss", "hdfs")
CONNECT_SECONDS: Final = 10
REQUEST_SECONDS: Final = 60

URI: Final = re.compile(r"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.-]*)://(?P<authority>[^/]*)(?P<path>.*)", re.DOTALL)
#: What to check if a store cannot be reached or refuses access, by scheme.
CREDENTIALS: Final = {
    "s3": "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "abfss": "AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, and AZURE_STORAGE_SERVICE_ENDPOINT",
    "hdfs": "HADOOP_CONF_DIR, HADOOP_USER_NAME or a ticket of `kinit`",
}
#: Errors that do not depend on the file: the network, the load, credentials that expired during the audit.
_PASSING: Final = re.compile(
    r"network|curl|connect|lookup|time.?out|timed.?out|deadline|slow.?down|throttl|busy|unavailable|internal|expired|authenticat|"
    r"safe.?mode|standby",
    re.IGNORECASE,
)
#: File names in messages: `connect-…`, a topic of Kafka Connect, is no failed connection.
_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"]*\"")
#: Azure's client puts the token into the query of every address in its messages.
_SIGNED_QUERY: Final = re.compile(r"\?\S*?\bsig=[^\s']*")


def is_remote(place: str) -> bool:
    """Whether a located place is a URI, not a local path."""
    found = URI.match(place)
    return found is not None and found["scheme"] in SCHEMES


def scheme_of(place: str) -> str:
    """The scheme of a URI; `s3` for Hadoop's `s3a`."""
    scheme = place.partition("://")[0]
    return "s3" if scheme == "s3a" else scheme


def remote_file(place: str) -> tuple[Any, str]:
    """The filesystem and the name of a located URI. Raises what pyarrow raises if the store is not supported or
    configured here."""
    found = URI.fullmatch(place)
    assert found is not None
    scheme, authority, path = scheme_of(place), found["authority"], found["path"]
    given = [next(filter(None, map(os.environ.get, names)), None) for names in _SETTINGS[scheme]]
    if scheme == "s3":
        return _s3(authority, *given), authority + path
    if scheme == "gs":
        return _gs(*given, REQUEST_SECONDS), authority + path
    if scheme == "abfss":
        container, _, host = authority.partition("@")
        return _abfss(host, *given), container + path
    return _hdfs(authority, *given), path or "/"


def may_pass(path: str, error: OSError) -> bool:
    """Whether a store that refused a file may accept the same request later."""
    is_gone = isinstance(error, FileNotFoundError)  # HDFS says so without quotes
    return is_remote(path) and not is_gone and _PASSING.search(_QUOTED.sub("", str(error))) is not None


@contextmanager
def as_os_error() -> Iterator[None]:
    """Raises errors of a store, and of a pyarrow built without it, as OSError with the text of `said`.

    The original error is not chained, because a printed cause would show the token.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(error.errno, said(error.strerror or error)) from None
    except (OSError, pa.ArrowException, ImportError) as error:
        raise OSError(said(error)) from None


def said(problem: object) -> str:
    """The first line of an error from a store, without the token that was sent to it."""
    return _SIGNED_QUERY.sub("", next(iter(str(problem).splitlines()), type(problem).__name__))


# ---- The stores.


#: Scheme -> the variables of each setting, the first that is set counts: those of all AWS tools (endpoint, region), of
#: Google's C++ library or of all its others (emulator), of `az storage` (endpoint, key, token), and of Hadoop (which
#: cluster, as which user).
_SETTINGS: Final = {
    "s3": (("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"), ("AWS_REGION", "AWS_DEFAULT_REGION")),
    "gs": (("CLOUD_STORAGE_EMULATOR_ENDPOINT", "STORAGE_EMULATOR_HOST"),),
    "abfss": (("AZURE_STORAGE_SERVICE_ENDPOINT",), ("AZURE_STORAGE_KEY",), ("AZURE_STORAGE_SAS_TOKEN",)),
    "hdfs": (("HADOOP_CONF_DIR",), ("HADOOP_HOME",), ("HADOOP_USER_NAME",)),
}


@lru_cache(maxsize=16)
def _s3(bucket: str, endpoint: str | None, region: str | None) -> Any:
    """AWS's own chain finds the keys: environment, profile, role of the machine."""
    options: dict[str, Any] = {"connect_timeout": CONNECT_SECONDS, "request_timeout": REQUEST_SECONDS}
    if endpoint:
        scheme, host = _scheme_and_host(endpoint, "https")
        options |= {"endpoint_override": host, "scheme": scheme}
        region = region or "us-east-1"  # stores other than AWS have none, but signatures need one
    return fs.S3FileSystem(region=region or fs.resolve_s3_region(bucket), **options)


@lru_cache(maxsize=16)
def _gs(emulator: str | None, seconds: int) -> Any:
    # Its default limit is a quarter of an hour per request.
    options: dict[str, Any] = {"retry_time_limit": timedelta(seconds=seconds)}
    if emulator:
        scheme, host = _scheme_and_host(emulator, "http")
        options |= {"endpoint_override": host, "scheme": scheme, "anonymous": True}
    return fs.GcsFileSystem(**options)


@lru_cache(maxsize=16)
def _abfss(host: str, endpoint: str | None, key: str | None, token: str | None) -> Any:
    """Without key and token: Azure's own chain (environment, managed identity, `az login`)."""
    account, _, domain = host.partition(".dfs.")
    blob, scheme = f".blob.{domain}", "https"
    if endpoint:
        scheme, server = _scheme_and_host(endpoint, "https")
        server = server.partition("/")[0]
        # An endpoint without the account in its name has a folder per account, as emulators and gateways do. pyarrow
        # adds it.
        blob = server.removeprefix(account) if server.startswith(f"{account}.") else server
    options = {"blob_storage_authority": blob, "dfs_storage_authority": blob.replace(".blob.", ".dfs.", 1)}
    options |= {"blob_storage_scheme": scheme, "dfs_storage_scheme": scheme}
    if key or not token:
        return fs.AzureFileSystem(account, account_key=key or None, **options)
    # Azure prints tokens without the question mark, but pyarrow appends them to its addresses unchanged.
    return fs.AzureFileSystem(account, sas_token=f"?{token.removeprefix('?')}", **options)


@lru_cache(maxsize=16)
def _hdfs(authority: str, *_: str | None) -> Any:
    return Hdfs(authority)


def _scheme_and_host(endpoint: str, default: str) -> tuple[str, str]:
    scheme, separator, host = endpoint.rpartition("://")
    return scheme if separator else default, host.rstrip("/")


# ---- HDFS


#: Number of attempts at a namenode that does not answer. Delays grow, half a minute in all. The library's default is
#: 15.
ATTEMPTS: Final = 6
#: Its exceptions contain Rust's text of an error, followed by the server's stack trace.
_SAID_BY_SERVER: Final = re.compile(
    r'RPCError\("(?:\w+\.)*(?P<exception>\w+)", "(?P<message>.*?)(?:\\n.*)?"\)', re.DOTALL
)
#: Maximum length of a message; longer ones list every datanode with all its numbers.
_LONGEST: Final = 200


class Hdfs:
    """A cluster, with what an audit needs of a pyarrow filesystem: listing and reading. Errors are OSErrors.

    `authority`: without a host, `fs.defaultFS` of core-site.xml; without a port, a name service. Raises OSError if that
    setting is missing, ImportError without hdfs-native.
    """

    def __init__(self, authority: str) -> None:
        from hdfs_native import Client  # 11 MB that few need; every Python worker imports this file

        with _as_os_error():
            self._client = Client(
                f"hdfs://{authority}" if authority else None, {"dfs.client.failover.max.attempts": str(ATTEMPTS)}
            )

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
