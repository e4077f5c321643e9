"""`txn-audit find-late`, `coverage` and `runs`: tables of the audit in fewer columns."""

from __future__ import annotations

import json
from argparse import Namespace

from txnlib.cli.output import Answer
from txnlib.queries.tables import Run, Tables, chosen_runs


def find_late(run: Run, options: Namespace) -> Answer:
    """Late transactions: their coordinator still expects them, but they should have ended by now."""
    columns = (
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
    return Answer(columns, run.rows("late_transactions", columns, order='"transactional_id", "topic", "partition"'))


def coverage(run: Run, options: Namespace) -> Answer:
    """What was captured of each partition, and which copy is judged."""
    columns = (
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
    return Answer(columns, run.rows("coverage", columns, order='"topic", "partition", "broker"'))


def list_runs(tables: Tables, options: Namespace) -> Answer:
    """All runs in the tables, newest first; with `--run` or `--as-of`, only those."""
    rows = chosen_runs(tables, run_id=options.run, as_of=options.as_of)
    for row in rows:
        verdicts = json.loads(row["counts"] or "{}").get("verdicts", {})
        row["verdicts"] = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
    return Answer(("run_id", "cluster", "as_of", "status", "started_at", "finished_at", "verdicts", "version", "input"), rows)
