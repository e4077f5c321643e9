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
from txnlib.errors import MissingExtraError, UsageError

if TYPE_CHECKING:
    import duckdb


#: A query about what tables there are.
_OF_ALL: Final = re.compile(r"\bshow\b|\binformation_schema\b|\bduckdb_", re.IGNORECASE)


def answer(tables: Tables, options: Namespace) -> CommandOutput:
    """The rows that answer a query."""
    return ask(tables, options.query)


def ask(tables: Tables, query: str) -> CommandOutput:
    """The answer to a query over the tables and views that it names (docs/tables.md), of all runs.

    Raises UsageError for a query that DuckDB refuses, and MissingExtraError without the extra `sql`.
    """
    with open_database(tables, query) as database:
        import duckdb

        try:
            answer = database.execute(query)
            columns = [column[0] for column in answer.description or ()]
            values = answer.fetchall()
        except duckdb.Error as error:
            known = ", ".join([*sorted(TABLES), *VIEWS])
            hint = f". Tables and views: {known}" if isinstance(error, duckdb.CatalogException) else ""
            raise UsageError(f"{str(error).splitlines()[0]}{hint}") from error
    seen: Counter[str] = Counter()
    names = []
    for column in columns:  # a number follows each name that is there already
        seen[column] += 1
        names.append(column if seen[column] == 1 else f"{column}_{seen[column]}")
    return CommandOutput(names, [dict(zip(names, row, strict=True)) for row in values])


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
    database = duckdb.connect(config={"enable_external_access": "false"})
    for name in TABLES.keys() & {*words}:
        database.register(name, tables.dataset(name))
    for name in views:
        database.execute(f"CREATE VIEW {name} AS {VIEWS[name].named(str)}")
    return database
