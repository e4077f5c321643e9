"""The size of a commit, as recorded in Delta's log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from txnlib.core.schema.rows_of_runs import quoted

#: Number of commits to search, newest first. Audits of other clusters commit to the same tables.
LOOKED_AT: Final = 20
#: More files than this, if smaller on average than that, are compacted, because every reader of the run opens each
#: file.
MANY_FILES: Final = 64
SMALL_FILE_BYTES: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class Commit:
    """The size of a run in a table, from the log: rows (None if unknown), files, and bytes in total."""

    rows: int | None
    files: int = 0
    bytes: int = 0

    @property
    def is_scattered(self) -> bool:
        """Whether the commit wrote many small files."""
        return self.files > MANY_FILES and self.bytes < self.files * SMALL_FILE_BYTES


def newest_commit(spark: SparkSession, table: str, run_id: str) -> Commit:
    """The newest commit of Spark that replaced a run's rows, or added to them. `table`: its name in SQL."""
    try:
        history = spark.sql(f"DESCRIBE HISTORY {table} LIMIT {LOOKED_AT}").collect()
    except PySparkException:  # a missing number in a line of progress must not fail the audit
        return Commit(None)
    return commit_of(run_id, (row.asDict(recursive=True) for row in history))


def commit_of(run_id: str, history: Iterable[Mapping[str, Any]]) -> Commit:
    """The first of these commits that replaced the run's rows, or names the run because it only added rows.

    Delta makes no commit when an empty frame replaces no rows, so a missing commit means 0 rows.
    """
    has_replacements = False
    for commit in history:
        replaced = str((commit.get("operationParameters") or {}).get("predicate"))
        has_replacements = has_replacements or "run_id = '" in replaced
        if f"run_id = {quoted(run_id)}" in replaced or commit.get("userMetadata") == run_id:
            written = commit.get("operationMetrics") or {}
            if "numFiles" not in written:
                return Commit(None)
            return Commit(*(int(written.get(name, 0)) for name in ("numOutputRows", "numFiles", "numOutputBytes")))
    return Commit(0 if has_replacements else None)
