"""The pages about tables: those to query first, with the views, and all others."""

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


def tables() -> str:
    return "\n".join(
        [
            "# Tables\n",
            TABLES_HEAD,
            *[line for name in QUERIED_FIRST for line in _table(name, "")],
            "## Columns of several tables\n",
            *_columns([*RUN_COLUMNS, *_common().values()]),
            "## Views\n",
            VIEWS_HEAD,
            *table(("view", "rows"), _views()),
        ]
    )


def workings() -> str:
    names = [name for name in TABLES if name not in (*QUERIED_FIRST, *HANDED_ON)]
    handed_on = [(f"`{name}`", f"{CATALOGUE[name].comment}{_of_log(name)}") for name in HANDED_ON]
    return "\n".join(
        [
            "# Workings\n",
            WORKINGS_HEAD,
            *[line for name in names for line in _table(name, "tables.md")],
            "## Tables that only others are made from\n",
            "`DESCRIBE TABLE` shows their columns with comments; they are in `txnlib/core/schema`, too.\n",
            *table(("table", "rows"), handed_on),
        ]
    )


TABLES_HEAD = """\
The nine tables that people query first: what is open, what it blocks, what to do, what is odd, and what was captured.
[Workings](workings.md) has the tables that they are made from, [Questions in SQL](sql.md) examples.

Every table is a Delta table under `--output`, with the rows of all runs, partitioned by `run_id`. `cluster` and `run_id` are in
every table. `is_*` is boolean, epochs and partitions are int, ids, offsets and numbers bigint; `*_ms` has epoch milliseconds or a
duration. Lists have their types here. NULL is what is not known, or does not apply.
"""
WORKINGS_HEAD = """\
The tables that the [nine to query first](tables.md) are made from, in the order in which an audit makes them. Ask them for
the history of a transaction, or for why a verdict is what it is.
"""
VIEWS_HEAD = """\
`--schema` creates the views beside the tables; for a folder, see [Questions in SQL](sql.md#where-to-ask). Their SQL is in
`txnlib/core/schema/views.py`.

Rows belong to the run that wrote them. Only rows of the log are not written again by an incremental run: it has those that earlier
runs of its chain wrote, as far as `coverage` says (`batches_since`, `batches_from`, `spans_since`). The views `*_of_runs` show what
each run has.
"""
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


def _views() -> list[tuple[str, str]]:
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
    return [*others, of_runs, (", ".join(latest), "The same rows, of the newest finished run of each cluster.")]


ALL_OF_RUNS = tuple(f"{name}_of_runs" for name in OF_LOG)
