"""Columns and views for the page about tables. Those to query first have columns there, all others only a name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from markdown_table import table

from txnlib.core.schema import TABLES as CATALOGUE
from txnlib.core.schema import Scalar
from txnlib.core.schema.columns import Column
from txnlib.core.schema.rows_of_runs import OF_PARTS, RUN_COLUMNS
from txnlib.core.schema.views import VIEWS
from txnlib.spark.schemas import TABLES, spark_type

#: The tables that people query first, in the order of their questions.
QUERIED_FIRST = (
    "open_transactions",
    "hanging_transactions",
    "late_transactions",
    "abort_plan",
    "partitions",
    "blocked_groups",
    "findings",
    "coverage",
    "audit_runs",
)
#: All others, in the order in which an audit makes them.
BEHIND = tuple(name for name in TABLES if name not in QUERIED_FIRST)


def _tables() -> list[str]:
    return [line for name in QUERIED_FIRST for line in _table(name)]


def _behind() -> list[str]:
    return table(("table", "rows"), [(f"`{name}`", CATALOGUE[name].comment) for name in BEHIND])


#: How many tables share a column that is described once.
SHARED_BY = 3


def _common() -> dict[str, Column]:
    """Name -> the column that several tables have, with the same meaning."""
    own = {column.name for column in RUN_COLUMNS}
    same_as = {id(CATALOGUE[name].columns): name for name in reversed(CATALOGUE)}
    shown = [name for name in same_as.values() if name in QUERIED_FIRST]
    counts = Counter(column for name in shown for column in CATALOGUE[name].columns if column.name not in own)
    # Of a name with several meanings, the most frequent is described.
    by_count = [column for column, count in counts.most_common() if count >= SHARED_BY]
    return {column.name: column for column in (*by_count, *reversed(by_count))}


def _columns(columns: Iterable[Column]) -> list[str]:
    """Only lists and structs have their type."""
    rows = []
    for column in columns:
        kind = "" if isinstance(column.type, Scalar) else f" `{spark_type(column.type).simpleString()}`"
        rows.append((f"`{column.name}`", f"{column.comment}{kind}"))
    return table(("column", "meaning"), rows)


def _names(columns: Iterable[Column]) -> str:
    return ", ".join(f"`{column.name}`" for column in columns)


def _table(name: str) -> list[str]:
    """A heading, what the table is about, the columns that it shares, and its own."""
    columns, common = CATALOGUE[name].columns, _common()
    lines = [f"## {name}\n", f"{CATALOGUE[name].comment}\n"]
    if columns == CATALOGUE[QUERIED_FIRST[0]].columns and name != QUERIED_FIRST[0]:
        return [*lines, f"Columns: those of [{QUERIED_FIRST[0]}](#{QUERIED_FIRST[0]}).\n"]
    if shared := [column for column in columns if common.get(column.name) == column]:
        lines.append(f"[Shared](#columns-of-several-tables): {_names(shared)}.\n")
    return [*lines, *_columns(column for column in columns if common.get(column.name) != column)]


def _views() -> list[str]:
    """Views of the newest rows of a table are one row."""
    latest = [f"`{name}`" for name in VIEWS if name.startswith("latest_") and name != "latest_runs"]
    others = [
        (f"`{name}`", view.about)
        for name, view in VIEWS.items()
        if f"`{name}`" not in latest and name not in ALL_OF_RUNS
    ]
    of_runs = (
        ", ".join(f"`{name}`" for name in ALL_OF_RUNS),
        "The rows that each run has, whichever audit read them.",
    )
    newest = (", ".join(latest), "Those of the newest finished run of each cluster.")
    return table(("view", "rows"), [*others, of_runs, newest])


ALL_OF_RUNS = tuple(f"{name}_of_runs" for name in OF_PARTS)

BLOCKS = {
    "tables": _tables,
    "shared-columns": lambda: _columns([*RUN_COLUMNS, *_common().values()]),
    "views": _views,
    "behind": _behind,
}
