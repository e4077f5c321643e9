"""Tables of the audit in fewer columns: late transactions, coverage and runs."""

from __future__ import annotations

import json
from typing import Final

from txnlib.queries.delta_rows import Tables, chosen_runs
from txnlib.queries.rows import Row, Run

LATE: Final = (
    "topic",
    "partition",
    "start_offset",
    "producer_id",
    "producer_epoch",
    "transactional_id",
    "coordinator_state",
    "transaction_start",
    "transaction_timeout_ms",
    "last_timestamp",
    "duration_minutes",
    "late_by",
    "blocked_offsets",
)
COVERAGE: Final = (
    "topic",
    "partition",
    "broker",
    "status",
    "is_judged",
    "is_leader",
    "first_offset",
    "end_offset",
    "high_watermark",
    "unreadable_bytes",
    "captured_at",
    "detail",
)
RUN: Final = ("run_id", "cluster", "as_of", "status", "started_at", "finished_at", "verdicts", "version", "input")


def late_transactions(run: Run) -> list[Row]:
    """Transactions that their coordinator still expects, but that should have ended by now. Columns: LATE."""
    return run.rows("late_transactions", LATE, order='"transactional_id", "topic", "partition"')


def coverage(run: Run) -> list[Row]:
    """What was captured of each partition, and which copy is judged. Columns: COVERAGE."""
    return run.rows("coverage", COVERAGE, order='"topic", "partition", "broker"')


def listed_runs(tables: Tables, *, run_id: str | None = None, as_of: str | None = None) -> list[Row]:
    """The runs in the tables, newest first. Columns: RUN. Raises UsageError if none has this id or instant."""
    return [{**row, "verdicts": _verdicts(row)} for row in chosen_runs(tables, run_id=run_id, as_of=as_of)]


def _verdicts(row: Row) -> str:
    counts = json.loads(row["counts"] or "{}").get("verdicts", {})
    return ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
