"""SQL for the rows that a run has.

Spark, DuckDB and DataFusion read it. A run that continues another one writes only what is new. It has its own rows and,
of the earlier runs of its chain, the rows that belong to the log (`Table.of_log`), as far as its `coverage` says that
they still count.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from txnlib.core.chains import Chain
from txnlib.core.schema.columns import OfLog, Table
from txnlib.core.schema.coverage import COVERAGE
from txnlib.core.schema.ingested import RECORD_BATCHES
from txnlib.core.schema.producers import PARTITION_TRANSACTIONS, PRODUCER_SPANS

#: The tables with rows that belong to the log.
OF_LOG: Final = {
    "record_batches": RECORD_BATCHES,
    "producer_spans": PRODUCER_SPANS,
    "partition_transactions": PARTITION_TRANSACTIONS,
}
#: The tables that name chain and night in each row.
WITH_CHAIN: Final = {**OF_LOG, "coverage": COVERAGE}


def rows_of_runs(name: str) -> str:
    """A query for the rows that each run has in a table, with the `run_id` of the run that has them.

    Columns: `cluster`, `run_id`, and those of the table. Tables are in braces.
    """
    table = OF_LOG[name]
    columns, of_log = _columns(table), _of_log(table)
    return f"""
SELECT run.cluster, run.run_id, {columns}
FROM {{{name}}} AS stored
JOIN {{audit_runs}} AS run ON stored.run_id = run.run_id AND stored.chain IS NOT DISTINCT FROM run.chain
UNION ALL
SELECT copy.cluster, copy.run_id, {columns}
FROM {{{name}}} AS stored
JOIN {{coverage}} AS copy
  ON stored.chain = copy.chain AND stored.topic = copy.topic AND stored.partition = copy.partition
  AND stored.night < copy.night AND {of_log.counts}
WHERE {of_log.rows}
"""


def earlier_rows(name: str) -> str:
    """A query for the rows of earlier runs that a run has in a table: `{stored}`, of its chain, with `{copies}`, its
    `coverage`."""
    table = OF_LOG[name]
    of_log = _of_log(table)
    return f"""
SELECT {_columns(table)}
FROM {{stored}} AS stored
JOIN {{copies}} AS copy ON stored.topic = copy.topic AND stored.partition = copy.partition AND {of_log.counts}
WHERE {of_log.rows}
"""


def replaced_rows(chain: Chain, run_id: str) -> str:
    """The condition on rows of the log that a write of a run replaces.

    These are its own from earlier attempts, and those of runs that died after the one that this run continues.
    """
    kept = ", ".join(map(quoted, chain.kept))
    own = f"run_id = {quoted(run_id)}" + (f" AND chain NOT IN ({kept})" if kept else "")
    return f"({own}) OR (chain = {quoted(chain.name)} AND night >= {chain.night})"


def quoted(text: str) -> str:
    """The text as a Spark SQL literal. Names of clusters may contain any character."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def quoted_list(texts: Iterable[str]) -> str:
    """The texts as a list of Spark SQL literals, for IN."""
    return f"({', '.join(map(quoted, sorted(texts)))})"


def _columns(table: Table) -> str:
    return ", ".join(f"stored.{name}" for name in table.names)


def _of_log(table: Table) -> OfLog:
    assert table.of_log is not None
    return table.of_log
