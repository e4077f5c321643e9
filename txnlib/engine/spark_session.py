"""The session of an audit on Spark: a copy of the one that is there, which stays as it is."""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from zipfile import ZipFile

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from txnlib.errors import UsageError

#: What SQL means and what is written depends on these, so the audit's own session has them.
MEANING: Final = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.sources.partitionOverwriteMode": "STATIC",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
}
#: Settings that must not be set: with them, Delta takes each of our commits for one that it has already, and writes
#: nothing.
NEVER: Final = ("spark.databricks.delta.write.txnAppId", "spark.databricks.delta.write.txnVersion")
#: Settings that apply unless the session has its own: by default, Delta reads the log of a table in 50 tasks, as for
#: large tables.
UNLESS_SET: Final = {"spark.databricks.delta.snapshotPartitions": "2"}

_SHUFFLES: Final = "spark.sql.shuffle.partitions"
#: Bytes of a capture for each partition of a shuffle, and the least and the greatest number of partitions. The greatest
#: is Spark's default, which is for clusters: on two cores, it makes eight times as many tasks of a few rows.
_BYTES_EACH: Final = 32 << 20
_FEWEST: Final = 8
_MOST: Final = 200
_SPARK_CATALOG: Final = "spark_catalog"


def running_session() -> SparkSession | None:
    """The session of this thread, else that of the process; None if there is none."""
    try:
        return SparkSession.active()
    except PySparkException:
        return None


def copy_of(session: SparkSession) -> SparkSession:
    """A session for an audit, with the settings of `session`. Settings that change in one are not seen in the other.

    Where a server makes no copies (Spark Connect before 4.1, serverless compute of Databricks), it is `session` itself.
    Then raises UsageError if results would depend on one of its settings.
    """
    own = _copy(session)
    if own is not None:
        prepare(own)
        return own
    for key, needed in MEANING.items():
        if (value := setting(session, key)) not in (None, needed):
            raise UsageError(f"this session has {key}={value}: first spark.conf.set('{key}', '{needed}')")
    for key in NEVER:
        if setting(session, key) is not None:
            raise UsageError(f"this session has {key}: first spark.conf.unset('{key}')")
    return session


def _copy(session: SparkSession) -> SparkSession | None:
    if is_remote():
        try:
            return session.cloneSession()  # type: ignore[attr-defined, no-any-return]
        except Exception:  # of gRPC, of Spark, or of Python: an old client has no such function
            return None
    own = session.newSession()
    known = all_settings(own)
    for key, value in all_settings(session).items():
        if known.get(key) != value:
            with suppress(PySparkException):  # static: both have it
                own.conf.set(key, value)
    return own


def prepare(own: SparkSession) -> None:
    """Sets what an audit needs in a session that is its own."""
    known = all_settings(own)
    # Spark warns at each use of a setting that is old and set, even to its default.
    needed = {key: value for key, value in MEANING.items() if setting(own, key) != value}
    change(own, needed | dict.fromkeys(NEVER) | {key: value for key, value in UNLESS_SET.items() if key not in known})
    if is_remote():
        _upload_code(own)


def size_for(own: SparkSession, size: int) -> None:
    """Sets how many partitions a shuffle has, for a capture of so many bytes; unless the session says it."""
    if _SHUFFLES not in all_settings(own):
        change(own, {_SHUFFLES: str(min(max(size // _BYTES_EACH, _FEWEST), _MOST))})


def choose_catalog(own: SparkSession, session: SparkSession, schema: str | None) -> None:
    """Makes the catalog current in which names are looked up: for a schema, that of `session`; for paths, Spark's own,
    which has Delta."""
    with suppress(PySparkException):
        wanted = _SPARK_CATALOG if schema is None else session.catalog.currentCatalog()
        if own.catalog.currentCatalog() != wanted:
            own.catalog.setCurrentCatalog(wanted)


@contextmanager
def active_session_kept() -> Iterator[None]:
    """Leaves the active session as it was. Classic Spark makes the session active that made the last frame."""
    session = running_session()
    try:
        yield
    finally:
        if session is not None and not is_remote():
            session.createDataFrame([], "nothing INT")


# ---- Settings


def all_settings(session: SparkSession) -> Mapping[str, str]:
    """The settings that a session has, but no defaults; none if the server does not tell them."""
    try:
        return session.conf.getAll
    except PySparkException:
        return {}


def setting(session: SparkSession, key: str) -> str | None:
    """The value of a setting, or its default; None if it has none, or if the server does not tell it."""
    try:
        value = session.conf.get(key)
    except PySparkException:
        return None
    return None if value is None else str(value)


def change(session: SparkSession, settings: Mapping[str, str | None]) -> None:
    """Sets settings, or unsets those that are None."""
    for key, value in settings.items():
        # A shared server may refuse settings that are not per session. The audit is then slower, with the same result.
        with suppress(PySparkException):
            if value is None:
                session.conf.unset(key)
            else:
                session.conf.set(key, value)


# ---- The code, for a server of Spark Connect


def _upload_code(own: SparkSession) -> None:
    """The tasks of the session get this package, which the server's Python need not have."""
    named = os.environ.get("TXNLIB_PY_FILES") or _archive()
    if named is not None:
        uploading: Any = own
        uploading.addArtifacts(*filter(None, named.split(",")), pyfile=True)


@lru_cache
def _archive() -> str | None:
    """This package as a file, while the process lives; None if it is in one already."""
    package = Path(__file__).parents[1]
    if not package.is_dir():
        return None
    folder = TemporaryDirectory(prefix="txnlib-code-")
    atexit.register(folder.cleanup)
    archive = Path(folder.name, "txnlib.zip")
    with ZipFile(archive, "w") as packed:
        for path in sorted(package.rglob("*")):
            if "__pycache__" not in path.parts:
                packed.write(path, path.relative_to(package.parent))
    return str(archive)
