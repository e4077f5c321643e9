"""The catalogue of columns: every table, once, as plain data.

Arrow schemas (`readers.arrow_schemas`), Spark schemas (`spark.schemas`), CHECK constraints (txnlib/engine/tables.py)
and `docs/tables.md` derive from it. A table, its Delta table and the function that makes it have the same name; in
capitals, that name is a table here. Raw Kafka times are `*_ms` columns; report tables have timestamps.

In reading order:

* `columns`: types, columns and tables as data, and what several tables share
* `rows_of_runs`, `ingested`: the runs and their rows, and what readers fill
* `metadata`, `coverage_tables`, `producers`, `coordinator_tables`: what is reconstructed
* `outcomes`: whole transactions
* `reports`: what is open, what it blocks, and what is odd
* `views`: views over several runs, as SQL
* `schema_number`: what each number of the schema added, and which stored tables are read
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import make_dataclass
from typing import Any, Final

from txnlib.core.schema.columns import (
    Scalar,
    Array,
    Struct,
    Type,
    Column,
    Table,
    TOPIC_PARTITION,
    COPY,
    PRODUCER,
    OPEN_TRANSACTION,
)
from txnlib.core.schema import (
    coordinator_tables,
    coverage_tables,
    ingested,
    metadata,
    outcomes,
    producers,
    reports,
    rows_of_runs,
)

#: In the order of `docs/tables.md`.
TABLES: Final[Mapping[str, Table]] = {
    "audit_runs": rows_of_runs.AUDIT_RUNS,
    "segments": ingested.SEGMENTS,
    "checkpoints": ingested.CHECKPOINTS,
    "metadata_log": ingested.METADATA_LOG,
    "partition_assignments": metadata.PARTITION_ASSIGNMENTS,
    "cluster_settings": metadata.CLUSTER_SETTINGS,
    "broker_sessions": metadata.BROKER_SESSIONS,
    "producer_id_blocks": metadata.PRODUCER_ID_BLOCKS,
    "coverage": coverage_tables.COVERAGE,
    "quarantine": coverage_tables.QUARANTINE,
    "record_batches": ingested.RECORD_BATCHES,
    "transaction_log": ingested.TRANSACTION_LOG,
    "committed_offsets": ingested.COMMITTED_OFFSETS,
    "producer_snapshots": ingested.PRODUCER_SNAPSHOTS,
    "aborted_transactions": ingested.ABORTED_TRANSACTIONS,
    "live_producers": ingested.LIVE_PRODUCERS,
    "live_transactions": ingested.LIVE_TRANSACTIONS,
    "producer_spans": producers.PRODUCER_SPANS,
    "checked_batches": producers.CHECKED_BATCHES,
    "coordinator_states": coordinator_tables.COORDINATOR_STATES,
    "transactional_ids": coordinator_tables.TRANSACTIONAL_IDS,
    "measured_clocks": coordinator_tables.MEASURED_CLOCKS,
    "transactions": coordinator_tables.TRANSACTIONS,
    "producer_states": producers.PRODUCER_STATES,
    "partition_transactions": producers.PARTITION_TRANSACTIONS,
    "producer_id_owners": coordinator_tables.PRODUCER_ID_OWNERS,
    "transaction_outcomes": outcomes.TRANSACTION_OUTCOMES,
    "open_transactions": reports.OPEN_TRANSACTIONS,
    "hanging_transactions": reports.HANGING_TRANSACTIONS,
    "abort_plan": reports.ABORT_PLAN,
    "ended_transactions": reports.ENDED_TRANSACTIONS,
    "late_transactions": reports.LATE_TRANSACTIONS,
    "partitions": reports.PARTITIONS,
    "blocked_groups": reports.BLOCKED_GROUPS,
    "findings": reports.FINDINGS,
}

#: The tables that always exist. Any other is made once it has rows, and reads as one without rows until then.
ALWAYS_THERE: Final = frozenset(
    {
        "audit_runs",
        "coverage",
        "quarantine",
        "record_batches",
        "transaction_log",
        "coordinator_states",
        "transactional_ids",
        "transactions",
        "producer_states",
        "partition_transactions",
        "producer_id_owners",
        "open_transactions",
        "hanging_transactions",
        "late_transactions",
        "partitions",
        "findings",
    }
)

_SHOWN: Final = {view: columns for table in TABLES.values() for view, columns in table.shown.items()}


def shown(view: str, *, is_wide: bool = True) -> tuple[str, ...]:
    """The columns of a view, the most important first; not `is_wide`: only those that people see first."""
    first, _, more = _SHOWN[view].partition("|")
    return (*first.split(), *(more.split() if is_wide else ()))


def row_class(table: str) -> Any:
    """The dataclass of rows that a table of the catalogue has, with a field for each column: `known_until_ms` for an
    instant."""
    names = [f"{each.name}_ms" if each.type is Scalar.TIMESTAMP else each.name for each in TABLES[table].columns]
    return make_dataclass(table, dict.fromkeys(names), frozen=True, slots=True)


__all__ = ["TABLES", "ALWAYS_THERE", "shown", "row_class", "Table", "Column", "Type", "Scalar", "Array", "Struct"]
__all__ += ["TOPIC_PARTITION", "COPY", "PRODUCER", "OPEN_TRANSACTION"]
