"""Any question in SQL, answered by DuckDB over the tables of an audit."""

from __future__ import annotations

import re
from argparse import Namespace
from collections import Counter
from typing import TYPE_CHECKING, Final

from txnlib.ask.command_output import CommandOutput
from txnlib.ask.delta_rows import Tables
from txnlib.core.schema import TABLES
from txnlib.core.schema.views import VIEWS, named_by
from txnlib.errors import MissingExtraError, UsageError, meant

if TYPE_CHECKING:
    import duckdb


#: A query about what tables there are.
_OF_ALL: Final = re.compile(r"\bshow\b|\binformation_schema\b|\bduckdb_", re.IGNORECASE)


#: Most rows of an answer, unless another number is given; and most memory that a query takes, as DuckDB writes it.
MOST_ROWS: Final = 10_000
MOST_MEMORY: Final = "1GiB"
#: The table that DuckDB does not know.
_UNKNOWN: Final = re.compile(r"Table with name (\S+) does not exist", re.IGNORECASE)


def answer(tables: Tables, options: Namespace) -> CommandOutput:
    """The rows that answer a query."""
    return ask(tables, options.query, options.limit or MOST_ROWS)


def ask(tables: Tables, query: str, most: int = MOST_ROWS) -> CommandOutput:
    """The answer to a query over the tables and views that it names (docs/tables.md), of all runs: its first rows.

    Raises UsageError for a query that DuckDB refuses or that takes too much memory, and MissingExtraError without the
    extra `sql`.
    """
    with open_database(tables, query) as database:
        import duckdb

        try:
            answer = database.execute(query)
            columns = [column[0] for column in answer.description or ()]
            values = answer.fetchmany(most + 1)
        except duckdb.Error as error:
            raise UsageError(f"{str(error).splitlines()[0]}{_hint(error)}") from error
    seen: Counter[str] = Counter()
    names = []
    for column in columns:  # a number follows each name that is there already
        seen[column] += 1
        names.append(column if seen[column] == 1 else f"{column}_{seen[column]}")
    rows = [dict(zip(names, row, strict=True)) for row in values[:most]]
    notes = [f"only the first {most:,} rows: --limit N shows others"] if len(values) > most else []
    return CommandOutput(names, rows, notes=notes)


def _hint(error: Exception) -> str:
    """The table that was meant by one that is not known; all of them if none is like it."""
    import duckdb

    if isinstance(error, duckdb.OutOfMemoryException):
        return f" (a query gets {MOST_MEMORY} of memory: let it choose fewer rows)"
    if not isinstance(error, duckdb.CatalogException):
        return ""
    unknown = _UNKNOWN.search(str(error))
    near = meant(unknown[1], [*TABLES, *VIEWS]) if unknown else ""
    return near or f". Tables and views: {', '.join([*sorted(TABLES), *VIEWS])}"


def open_database(tables: Tables, query: str | None = None) -> duckdb.DuckDBPyConnection:
    """DuckDB with the tables and views that a query names, or with all of them, and with the rows of all runs.

    Raises MissingExtraError without the extra `sql`.
    """
    try:
        import duckdb
        import pyarrow.dataset  # noqa: F401  what DuckDB reads the tables through
    except ImportError as error:
        raise MissingExtraError("sql", "DuckDB", "sql") from error
    words, views = (TABLES, VIEWS) if query is None or _OF_ALL.search(query) else named_by(query)
    database = duckdb.connect(config={"enable_external_access": "false", "memory_limit": MOST_MEMORY})
    for name in TABLES.keys() & {*words}:
        database.register(name, tables.dataset(name))
    for name in views:
        database.execute(f"CREATE VIEW {name} AS {VIEWS[name].named(str)}")
    # A statement must not lift these limits, or the one on nesting, beyond which DuckDB overflows its stack.
    database.execute("SET lock_configuration = true")
    return database
