"""`CHECK` constraints, added to each table when it is created.

Delta refuses a write that violates one, so other readers of a table (SQL, dashboards, abort scripts) can rely on it. A table that
an older version created has none, and can be read without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from txnlib.core.finding_catalogue import Severity
from txnlib.core.verdicts.reason import Verdict


def _is_known(column: str, *values: str) -> str:
    return f"{column} IN ({', '.join(repr(str(value)) for value in values)})"


def _is_there(*columns: str) -> str:
    return " AND ".join(f"{column} IS NOT NULL" for column in columns)


_JUDGED: Final = {
    "transaction_is_named": _is_there("as_of", "topic", "partition", "producer_id", "start_offset"),
    "verdict_is_explained": _is_there("verdict", "reason", "explanation"),
    "abort_is_whole": "NOT coalesce(safe_to_abort, false) OR (verdict = 'HANGING' AND abort_command IS NOT NULL)",
}

#: Table -> name of a constraint -> condition on every row. `*` applies to all tables.
CONSTRAINTS: Final[Mapping[str, Mapping[str, str]]] = {
    "*": {"run_is_named": _is_there("cluster", "run_id")},
    "audit_runs": {"run_has_an_instant": _is_there("as_of", "started_at", "status", "settings", "version")},
    "coverage": {
        "partition_is_named": _is_there("topic", "partition"),
        "status_is_known": _is_known("status", "COMPLETE", "PARTIAL", "DAMAGED", "MISSING"),
    },
    "quarantine": {"stretch_is_located": _is_there("path", "position", "length", "reason")},
    "record_batches": {"offsets_are_in_order": "base_offset <= last_offset"},
    "open_transactions": {**_JUDGED, "verdict_is_known": _is_known("verdict", *Verdict)},
    "hanging_transactions": {**_JUDGED, "verdict_is_known": _is_known("verdict", Verdict.HANGING)},
    "late_transactions": {**_JUDGED, "verdict_is_known": _is_known("verdict", Verdict.LATE)},
    "findings": {
        "severity_is_known": _is_known("severity", *(severity.name for severity in Severity)),
        "name_is_there": _is_there("name"),
    },
}


def options_of(table: str) -> dict[str, str]:
    """The writer options that create a table with its constraints."""
    constraints = {**CONSTRAINTS["*"], **CONSTRAINTS.get(table, {})}
    return {f"delta.constraints.{name}": condition for name, condition in constraints.items()}
