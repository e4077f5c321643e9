"""Columns and views, for the pages about tables: those to query first, and all others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from markdown_table import table

from txnlib.core.schema import TABLES as CATALOGUE
from txnlib.core.schema import Scalar
from txnlib.core.schema.columns import Column
from txnlib.core.schema.rows_of_runs import OF_LOG, WITH_CHAIN
from txnlib.core.schema.runs import CHAIN_COLUMNS, RUN_COLUMNS
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
#: What readers and windows hand on to other tables; no question in docs/sql.md asks these.
HANDED_ON = (
    "segments",
    "checkpoints",
    "metadata_log",
    "partition_assignments",
    "cluster_settings",
    "broker_sessions",
    "producer_id_blocks",
    "record_batches",
    "transaction_log",
    "committed_offsets",
    "producer_snapshots",
    "aborted_transactions",
    "live_producers",
    "live_transactions",
    "producer_spans",
    "checked_batches",
    "producer_states",
    "producer_id_owners",
)


def _tables(names: Iterable[str], page: str) -> list[str]:
    return [line for name in names for line in _table(name, page)]


def _handed_on() -> list[str]:
    return table(("table", "rows"), [(f"`{name}`", f"{CATALOGUE[name].comment}{_of_log(name)}") for name in HANDED_ON])


#: How many tables share a column that is described once.
SHARED_BY = 3


def _common() -> dict[str, Column]:
    """Name -> the column that several tables have, with the same meaning."""
    own = {column.name for column in RUN_COLUMNS}
    same_as = {id(CATALOGUE[name].columns): name for name in reversed(CATALOGUE)}
    shown = [name for name in same_as.values() if name not in HANDED_ON]
    counts = Counter(column for name in shown for column in CATALOGUE[name].columns if column.name not in own)
    counts.update({column: len(WITH_CHAIN) for column in CHAIN_COLUMNS})
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


def _table(name: str, page: str) -> list[str]:
    """A heading, what the table is about, the columns that it shares, and its own."""
    columns, common = CATALOGUE[name].columns, _common()
    lines = [f"## {name}\n", f"{CATALOGUE[name].comment}{_of_log(name)}\n"]
    if columns == CATALOGUE[QUERIED_FIRST[0]].columns and name != QUERIED_FIRST[0]:
        return [*lines, f"Its columns are those of [{QUERIED_FIRST[0]}](#{QUERIED_FIRST[0]}).\n"]
    chained = CHAIN_COLUMNS if name in WITH_CHAIN else ()
    if shared := [*chained, *(column for column in columns if common.get(column.name) == column)]:
        lines.append(f"[Shared]({page}#columns-of-several-tables): {_names(shared)}.\n")
    return [*lines, *_columns(column for column in columns if common.get(column.name) != column)]


def _of_log(name: str) -> str:
    of_log = CATALOGUE[name].of_log
    if of_log is None:
        return ""
    which = "Its rows" if of_log.rows == "TRUE" else f"Rows with `{of_log.rows.replace('stored.', '')}`"
    return f" {which} belong to the log: ask [`{name}_of_runs`](tables.md#views) for those of a run."


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
        "What each run has: its own rows, and those of earlier runs that still count.",
    )
    newest = (", ".join(latest), "The same rows, of the newest finished run of each cluster.")
    return table(("view", "rows"), [*others, of_runs, newest])


ALL_OF_RUNS = tuple(f"{name}_of_runs" for name in OF_LOG)

BLOCKS = {
    "tables": lambda: _tables(QUERIED_FIRST, ""),
    "shared-columns": lambda: _columns([*RUN_COLUMNS, *_common().values()]),
    "views": _views,
    "workings": lambda: _tables((name for name in TABLES if name not in (*QUERIED_FIRST, *HANDED_ON)), "tables.md"),
    "handed-on": _handed_on,
}
