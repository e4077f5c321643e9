"""Rows of tables: how questions ask for them, in SQL. Imports no library that opens a table."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from txnlib.errors import MissingTableError

Row = dict[str, Any]
#: column, comparison, value; rows must meet all of them.
Filter = tuple[str, str, Any]

#: Key of an open transaction.
Key = tuple[str, int, int, int]
KEY: Final = ("topic", "partition", "producer_id", "start_offset")
#: The table with a row for each run.
AUDIT_RUNS: Final = "audit_runs"
#: The tables of which a report about a topic has only its rows.
_OF_TOPIC: Final = ("open_transactions", "partitions", "blocked_groups", "findings", "ended_transactions", "coverage")
#: A text that means the same between quotes in every dialect of SQL.
_PLAIN: Final = re.compile(r"[\w.:/ -]*")


def select(source: str, chosen: str, where: Sequence[Filter], after: str) -> str:
    """A query in the SQL of deltalake. Spark reads it, too, once the double quotes around names are replaced; no value
    contains a double quote."""
    conditions = " AND ".join(_condition(*each) for each in where)
    return f"SELECT {chosen} FROM {source}{' WHERE ' if where else ''}{conditions}{after}"


def _condition(column: str, comparison: str, wanted: Any) -> str:
    if comparison == "IN":
        return f"{_names([column])} IN ({', '.join(map(_literal, wanted))})" if wanted else "FALSE"
    return f"{_names([column])} {comparison} {_literal(wanted)}"


def _literal(value: object) -> str:
    """A value in SQL. Ids come from logs and may hold anything: where a text is not plain, its bytes stand for it."""
    if value is None:
        return "NULL"
    text = str(value)
    if isinstance(value, int):  # and True and False
        return text
    return f"'{text}'" if _PLAIN.fullmatch(text) else f"CAST(X'{text.encode().hex()}' AS STRING)"


def _names(columns: Iterable[str]) -> str:
    return ", ".join(f'"{column}"' for column in columns)


class Rows(ABC):
    """Tables that answer queries: `Tables` without a JVM, or `SparkRows` if only Spark can open them."""

    #: The folder of the tables, the URI of one, or a catalog schema.
    root: str

    @property
    def opened(self) -> Sequence[str]:
        """The tables that were read, if that is known."""
        return ()

    @abstractmethod
    def ask(self, name: str, chosen: str, where: Sequence[Filter], after: str = "") -> list[Row]:
        """What `select` asks of a table. Raises MissingTableError."""

    def rows(
        self,
        name: str,
        columns: Sequence[str],
        where: Sequence[Filter] = (),
        *,
        order: str = "",
        limit: int | None = None,
        is_optional: bool = False,
    ) -> list[Row]:
        """Rows of a table. `is_optional`: none if there is no such table, as of a killed audit."""
        after = f" ORDER BY {order}" if order else ""
        try:
            return self.ask(name, _names(columns), where, after if limit is None else f"{after} LIMIT {limit}")
        except MissingTableError:
            if is_optional:
                return []
            raise

    def one(self, name: str, expressions: Mapping[str, str], where: Sequence[Filter] = ()) -> Row:
        """Several aggregates of a table, each under its name."""
        return self.ask(
            name, ", ".join(f'{expression} AS "{alias}"' for alias, expression in expressions.items()), where
        )[0]

    def number(self, name: str, expression: str, where: Sequence[Filter] = ()) -> int | None:
        """One aggregate of a table, such as `count(*)`."""
        number = self.one(name, {"number": expression}, where)["number"]
        return None if number is None else int(number)

    def grouped(
        self, name: str, keys: Sequence[str], expression: str, where: Sequence[Filter] = ()
    ) -> dict[tuple[Any, ...], int]:
        """One aggregate for each combination of keys."""
        by = _names(keys)
        rows = self.ask(name, f'{by}, {expression} AS "number"', where, f" GROUP BY {by}")
        return {tuple(row[key] for key in keys): row["number"] for row in rows}


@dataclass(frozen=True, slots=True)
class StoredRun(Rows):
    """The rows of one run in every table, and its settings."""

    tables: Rows
    run_id: str
    cluster: str
    as_of_ms: int
    settings: Mapping[str, Any]
    #: For stderr: that this run has not ended, or that a newer one has not.
    note: str = ""
    #: The topic that questions are about; None: all.
    topic: str | None = None

    def ask(self, name: str, chosen: str, where: Sequence[Filter], after: str = "") -> list[Row]:
        # Each run has files of its own, so no other run's are read.
        return self.tables.ask(name, chosen, [("run_id", "=", self.run_id), *self.only(name), *where], after)

    def only(self, name: str) -> list[Filter]:
        """The filter on the topic, for the tables that a report is made of. Coordinators belong to every topic."""
        if self.topic is None or name not in _OF_TOPIC:
            return []
        from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC  # takes longer to load than some answers

        return [("topic", "IN", (self.topic, TRANSACTION_STATE_TOPIC) if name == "coverage" else (self.topic,))]


def key_of(row: Row) -> Key:
    return row["topic"], row["partition"], row["producer_id"], row["start_offset"]


def column_names(names: str) -> tuple[str, ...]:
    """Names of columns, with spaces between them."""
    return tuple(names.split())


def transactions_of(counts: Mapping[str, Any]) -> Mapping[str, int]:
    """Transactions by verdict, of the counts of a run; none while it runs."""
    found: Mapping[str, int] = counts.get("transactions", {})
    return found


def ms(instant: datetime | None) -> int | None:
    """Epoch milliseconds of a timestamp column."""
    return None if instant is None else round(instant.timestamp() * 1000)


def among(rows: Sequence[Row], *names: str) -> list[Filter]:
    """Filters that these rows pass, and few other rows: for each column, its values in these rows."""
    return [(name, "IN", {row[name] for row in rows}) for name in names]
