"""Rows of tables: how queries ask for them. Imports no library that opens a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol

Row = dict[str, Any]
#: column, comparison, value; rows must meet all of them.
Filter = tuple[str, str, Any]

#: The table with a row for each run.
RUNS: Final = "audit_runs"


class Rows(Protocol):
    """Queries of tables: by `Tables` without a JVM, or by `SparkRows` if only Spark can open them."""

    @property
    def root(self) -> str: ...

    def rows(
        self, name: str, columns: Sequence[str], where: Sequence[Filter] = (), *, order: str = "", limit: int | None = None
    ) -> list[Row]: ...

    def number(self, name: str, expression: str, where: Sequence[Filter] = ()) -> int | None: ...

    def one(self, name: str, expressions: Mapping[str, str], where: Sequence[Filter] = ()) -> Row: ...

    def grouped(
        self, name: str, keys: Sequence[str], expression: str, where: Sequence[Filter] = (), *, most: int | None = None
    ) -> dict[tuple[Any, ...], int]: ...


@dataclass(frozen=True, slots=True)
class StoredRun:
    """The rows of one run in every table, and its settings."""

    tables: Rows
    run_id: str
    cluster: str
    as_of_ms: int
    settings: Mapping[str, Any]
    #: For stderr: that this run has not ended, or that a newer one has not.
    note: str = ""

    def rows(
        self,
        name: str,
        columns: Sequence[str],
        where: Sequence[Filter] = (),
        *,
        order: str = "",
        limit: int | None = None,
    ) -> list[Row]:
        """Rows of this run. Each run has files of its own, so no other run's are read."""
        return self.tables.rows(name, columns, [("run_id", "=", self.run_id), *where], order=order, limit=limit)

    def number(self, name: str, expression: str, where: Sequence[Filter] = ()) -> int | None:
        return self.tables.number(name, expression, [("run_id", "=", self.run_id), *where])

    def one(self, name: str, expressions: Mapping[str, str], where: Sequence[Filter] = ()) -> Row:
        return self.tables.one(name, expressions, [("run_id", "=", self.run_id), *where])

    def grouped(
        self, name: str, keys: Sequence[str], expression: str, where: Sequence[Filter] = (), *, most: int | None = None
    ) -> dict[tuple[Any, ...], int]:
        return self.tables.grouped(name, keys, expression, [("run_id", "=", self.run_id), *where], most=most)


def column_names(names: str) -> tuple[str, ...]:
    """Names of columns, with spaces between them."""
    return tuple(names.split())


def in_transactions(counts: Mapping[str, Any]) -> Mapping[str, int]:
    """Transactions by verdict, of the counts of a run; of a run of an earlier version, rows of open_transactions."""
    found: Mapping[str, int] = counts.get("transactions") or counts.get("verdicts", {})
    return found


def ms(instant: datetime | None) -> int | None:
    """Epoch milliseconds of a timestamp column."""
    return None if instant is None else round(instant.timestamp() * 1000)


def among(rows: Sequence[Row], *names: str) -> list[Filter]:
    """Filters that the rows themselves pass, and few others: one for each column."""
    return [(name, "IN", {row[name] for row in rows}) for name in names]
