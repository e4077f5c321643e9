"""How many rows did a commit write? As Delta noted it then: nothing is counted again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

#: Commits looked at, newest first: audits of other clusters commit to the same tables.
LOOKED_AT: Final = 20


def rows_written(spark: SparkSession, table: str, run_id: str, *, folder: str | None) -> int | None:
    """Rows of the newest commit that replaced a run's rows; None where the table's log does not tell.

    `table`: its name in SQL. `folder`: where it lies, if that is a folder: its log is read without Spark (a hundredth of a second
    a table), that of others by `DESCRIBE HISTORY` (a job of Spark, through Connect, too).
    """
    try:
        if folder is not None:
            return rows_of(run_id, DeltaTable(folder).history(LOOKED_AT))
        history = spark.sql(f"DESCRIBE HISTORY {table} LIMIT {LOOKED_AT}")
        return rows_of(run_id, [row.asDict(recursive=True) for row in history.collect()])
    except (DeltaError, PySparkException, OSError):  # no audit fails for want of a number in a line of progress
        return None


def rows_of(run_id: str, history: Iterable[Mapping[str, Any]]) -> int | None:
    """Rows written by the first of these commits that replaced the run's.

    Where nothing is replaced by nothing, Delta makes no commit, or notes no rows: none of this run beside those of others says 0.
    """
    are_told = False
    for commit in history:
        replaced = str((commit.get("operationParameters") or {}).get("predicate"))
        are_told = are_told or "run_id = '" in replaced
        if f"run_id = '{run_id}'" in replaced:
            written = commit.get("operationMetrics") or {}
            return int(written.get("numOutputRows", 0)) if "numFiles" in written else None
    return 0 if are_told else None
