"""The size of a commit, as recorded in Delta's log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

#: Commits looked at, newest first: audits of other clusters commit to the same tables.
LOOKED_AT: Final = 20
#: More files than these, and smaller ones on average, are worth being put together: each is opened by whoever reads the run.
MANY_FILES: Final = 64
SMALL_FILE_BYTES: Final = 16 << 20


def quoted(text: str) -> str:
    """The text as a literal of Spark's SQL: clusters are named as people please."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


@dataclass(frozen=True, slots=True)
class Commit:
    """The rows of a run in a table, as far as the log tells, in how many files of how many bytes together."""

    rows: int | None
    files: int = 0
    bytes: int = 0

    @property
    def is_scattered(self) -> bool:
        """Whether many small files were written."""
        return self.files > MANY_FILES and self.bytes < self.files * SMALL_FILE_BYTES


def newest_commit(spark: SparkSession, table: str, run_id: str, *, folder: str | None) -> Commit:
    """The newest commit that replaced a run's rows.

    `table`: its name in SQL. `folder`: where it lies, if that is a folder: its log is read without Spark (a hundredth of a second
    a table), that of others by `DESCRIBE HISTORY` (a job of Spark, through Connect, too).
    """
    try:
        return commit_of(run_id, _history(spark, table, folder))
    except (DeltaError, PySparkException, OSError):  # no audit fails for want of a number in a line of progress
        return Commit(None)


def commit_notes(spark: SparkSession, table: str, *, folder: str | None) -> list[str]:
    """What the newest commits bear (Delta's `userMetadata`), newest first; `table` and `folder` as for `newest_commit`."""
    return [note for commit in _history(spark, table, folder) if (note := commit.get("userMetadata"))]


def _history(spark: SparkSession, table: str, folder: str | None) -> list[Mapping[str, Any]]:
    if folder is not None:
        return list(DeltaTable(folder).history(LOOKED_AT))
    return [row.asDict(recursive=True) for row in spark.sql(f"DESCRIBE HISTORY {table} LIMIT {LOOKED_AT}").collect()]


def commit_of(run_id: str, history: Iterable[Mapping[str, Any]]) -> Commit:
    """The first of these commits that replaced the run's rows.

    Where nothing is replaced by nothing, Delta makes no commit, or notes no rows: none of this run beside those of others says 0.
    """
    are_told = False
    for commit in history:
        replaced = str((commit.get("operationParameters") or {}).get("predicate"))
        are_told = are_told or "run_id = '" in replaced
        if f"run_id = {quoted(run_id)}" in replaced:
            written = commit.get("operationMetrics") or {}
            if "numFiles" not in written:
                return Commit(None)
            return Commit(*(int(written.get(name, 0)) for name in ("numOutputRows", "numFiles", "numOutputBytes")))
    return Commit(0 if are_told else None)
