"""Access to object stores: settings for pyarrow and the environment, and what a refusal means.

Settings have the names that each store's own tools know. What a store says is passed on as OSError, in one line and without
keys: such lines end up in tables and reports.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
from pyarrow import fs

from txnlib.readers.storage import hdfs

SCHEMES: Final = ("s3", "s3a", "gs", "abfss", "hdfs")
CONNECT_SECONDS: Final = 10
REQUEST_SECONDS: Final = 60

URI: Final = re.compile(r"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.-]*)://(?P<authority>[^/]*)(?P<path>.*)", re.DOTALL)
#: What to check when a store is not reached or refuses, by scheme.
CREDENTIALS: Final = {
    "s3": "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "abfss": "AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, and AZURE_STORAGE_SERVICE_ENDPOINT",
    "hdfs": "HADOOP_CONF_DIR, HADOOP_USER_NAME or a ticket of `kinit`",
}
#: What stores say when it is not the file's fault: the network, the load, credentials that ran out during the audit.
_PASSING: Final = re.compile(
    r"network|curl|connect|lookup|time.?out|timed.?out|deadline|slow.?down|throttl|busy|unavailable|internal|expired|authenticat|"
    r"safe.?mode|standby",
    re.IGNORECASE,
)
#: Names of files: one of Kafka Connect's topics is no failed connection.
_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"]*\"")
#: A token is the query of every address that Azure's client speaks of.
_SIGNED_QUERY: Final = re.compile(r"\?\S*?\bsig=[^\s']*")


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A place that is no local path: who opens it, and what it is called there."""

    filesystem: Any
    name: str


def is_remote(place: str) -> bool:
    """Whether a located place is a uri, not a local path."""
    found = URI.match(place)
    return found is not None and found["scheme"] in SCHEMES


def scheme_of(place: str) -> str:
    """The scheme of a uri; `s3` for `s3a`, as Hadoop calls it."""
    scheme = place.partition("://")[0]
    return "s3" if scheme == "s3a" else scheme


def remote_file(place: str) -> RemoteFile:
    """Who opens a located uri. Raises what pyarrow does if nothing can talk to that store from here."""
    found = URI.fullmatch(place)
    assert found is not None
    scheme, authority, path = scheme_of(place), found["authority"], found["path"]
    if scheme == "s3":
        return RemoteFile(_s3(authority, *_s3_settings()), authority + path)
    if scheme == "gs":
        return RemoteFile(_gs(_gs_emulator(), REQUEST_SECONDS), authority + path)
    if scheme == "abfss":
        container, _, host = authority.partition("@")
        return RemoteFile(_abfss(host, *_azure_settings()), container + path)
    return RemoteFile(_hdfs(authority, hdfs.settings()), path or "/")


def may_pass(path: str, error: OSError) -> bool:
    """Whether a store that refused a file now may give it out the next time it is asked."""
    is_gone = isinstance(error, FileNotFoundError)  # HDFS says so without quotes
    return is_remote(path) and not is_gone and _PASSING.search(_QUOTED.sub("", str(error))) is not None


@contextmanager
def as_os_error() -> Iterator[None]:
    """What a store refuses, and what pyarrow was built without, as OSError that says it as `said` does.

    The original is not kept as its cause: a printed cause would show the token.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(error.errno, said(error.strerror or error)) from None
    except (OSError, pa.ArrowException, ImportError) as error:
        raise OSError(said(error)) from None


def said(problem: object) -> str:
    """The first line of what a store said, without the token that was sent to it."""
    return _SIGNED_QUERY.sub("", next(iter(str(problem).splitlines()), type(problem).__name__))


# ---- The stores.


def _s3_settings() -> tuple[str | None, str | None]:
    """Endpoint and region, by the names that all of AWS's own tools know."""
    environment = os.environ
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    return endpoint, environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")


@lru_cache(maxsize=16)
def _s3(bucket: str, endpoint: str | None, region: str | None) -> Any:
    """Keys are found by AWS's own chain: environment, profile, the machine's role."""
    options: dict[str, Any] = {"connect_timeout": CONNECT_SECONDS, "request_timeout": REQUEST_SECONDS}
    if endpoint:
        scheme, host = _scheme_and_host(endpoint, "https")
        options |= {"endpoint_override": host, "scheme": scheme}
        region = region or "us-east-1"  # stores other than AWS have none, but signatures want one
    return fs.S3FileSystem(region=region or fs.resolve_s3_region(bucket), **options)


def _gs_emulator() -> str | None:
    """By the name in Google's C++ library, which lets nothing else win, or by that in all of its others."""
    return os.environ.get("CLOUD_STORAGE_EMULATOR_ENDPOINT") or os.environ.get("STORAGE_EMULATOR_HOST")


@lru_cache(maxsize=16)
def _gs(emulator: str | None, seconds: int) -> Any:
    # Its own limit is a quarter of an hour, for each request.
    options: dict[str, Any] = {"retry_time_limit": timedelta(seconds=seconds)}
    if emulator:
        scheme, host = _scheme_and_host(emulator, "http")
        options |= {"endpoint_override": host, "scheme": scheme, "anonymous": True}
    return fs.GcsFileSystem(**options)


def _azure_settings() -> tuple[str | None, str | None, str | None]:
    """Endpoint, key and token, by the names that `az storage` knows."""
    environment = os.environ
    endpoint = environment.get("AZURE_STORAGE_SERVICE_ENDPOINT")
    return endpoint, environment.get("AZURE_STORAGE_KEY"), environment.get("AZURE_STORAGE_SAS_TOKEN")


@lru_cache(maxsize=16)
def _abfss(host: str, endpoint: str | None, key: str | None, token: str | None) -> Any:
    """Without key and token: Azure's own chain (environment, managed identity, `az login`)."""
    account, _, domain = host.partition(".dfs.")
    blob, scheme = f".blob.{domain}", "https"
    if endpoint:
        scheme, server = _scheme_and_host(endpoint, "https")
        server = server.partition("/")[0]
        # One that is not named for the account has a folder for each, which pyarrow adds, as emulators and gateways do.
        blob = server.removeprefix(account) if server.startswith(f"{account}.") else server
    options = {"blob_storage_authority": blob, "dfs_storage_authority": blob.replace(".blob.", ".dfs.", 1)}
    options |= {"blob_storage_scheme": scheme, "dfs_storage_scheme": scheme}
    if key or not token:
        return fs.AzureFileSystem(account, account_key=key or None, **options)
    # Azure prints tokens without the question mark, and pyarrow puts them behind its addresses as they are.
    return fs.AzureFileSystem(account, sas_token=f"?{token.removeprefix('?')}", **options)


@lru_cache(maxsize=16)
def _hdfs(authority: str, _: tuple[str | None, ...]) -> Any:
    return hdfs.hdfs(authority)


def _scheme_and_host(endpoint: str, unsaid: str) -> tuple[str, str]:
    scheme, separator, host = endpoint.rpartition("://")
    return scheme if separator else unsaid, host.rstrip("/")
