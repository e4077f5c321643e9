"""What every engine knows of the stored tables: columns, constraints, and how it keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from txnlib.core.schema import TABLES
from txnlib.core.schema.columns import Column
from txnlib.core.schema.rows_of_runs import RUN_CHECKS, RUN_COLUMNS
from txnlib.core.schema.schema_number import Shape
from txnlib.core.sql_text import quoted

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
    """The first of these commits that replaced the run's rows, or added rows and names the run.

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


#: Delta's setting for the columns whose minimum and maximum are stored per file, so that queries skip files. For all
#: columns, Delta's default, they would take a third of a large write.
STATISTICS: Final = "delta.dataSkippingStatsColumns"
#: Delta's setting for a constraint, without the name of it.
CONSTRAINT: Final = "delta.constraints."
#: The table that has the number of the schema.
AUDIT_RUNS: Final = "audit_runs"
#: The rows of a write, to be read once.
Rows: TypeAlias = DataFrame | pa.Table | Iterator[pa.RecordBatch]
_NOTED: Final = (*("topic", "partition", "base_offset", "producer_id", "transactional_id", "marker_offset", "part"),)


class TableKeeper(Protocol):
    """The Delta tables of an output, as an engine keeps them."""

    def exists(self, name: str) -> bool:
        """Whether there is such a table."""

    def read(self, name: str) -> DataFrame:
        """The rows of all runs, with the columns of `stored_columns`."""

    def if_any(self, made: DataFrame) -> Rows | None:
        """The rows of a frame, to be written once; None if there are none. The frame is computed only once."""

    def write(self, name: str, made: Rows, stamps: Mapping[str, Any], *, replaced: str | None) -> Commit:
        """Adds the rows of a run in one commit, in place of those that fulfil `replaced`; creates the table if need be.

        `stamps`: the values of the columns that name the run.
        """

    def noted_number(self) -> str | None:
        """The schema number that is noted at `audit_runs`; None if none is. Then the next `write` of that table notes
        today's."""

    def shape(self, name: str) -> Shape:
        """The columns of a table as it is stored."""

    def extend(self, name: str, *, is_constrained_anew: bool) -> None:
        """Adds the columns that a table lacks; `is_constrained_anew`: and replaces its constraints."""

    def note_number(self) -> None:
        """Gives `audit_runs` the number of today's schema."""

    def delete(self, name: str, condition: str) -> None:
        """Deletes the rows that fulfil a condition."""

    def compact(self, name: str, run_id: str) -> None:
        """Compacts the files of a run, if they are many and small."""

    def vacuum(self, name: str) -> None:
        """Removes files that no table has needed for a week."""


def stored_columns(name: str) -> tuple[Column, ...]:
    """The columns of a table as stored: first those that name the run, then those of the table."""
    return (*RUN_COLUMNS, *TABLES[name].columns)


def statistics_of(name: str) -> list[str]:
    """The columns of a table with minimum and maximum per file."""
    return [column.name for column in stored_columns(name) if column.name in _NOTED] or ["cluster"]


def constraints_of(name: str) -> dict[str, str]:
    """The constraints of a table: name -> condition on every row."""
    return {**RUN_CHECKS, **TABLES[name].checks}
