"""Tables of the audit in fewer columns: open and late transactions, findings, blocked groups, coverage and runs."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Final

from txnlib.ask.command_output import CommandOutput
from txnlib.ask.delta_rows import Tables, chosen_runs
from txnlib.ask.rows import Row, StoredRun, in_transactions
from txnlib.ask.subject import equal
from txnlib.core.finding_catalogue import Finding, Severity
from txnlib.errors import UsageError, meant

LATE: Final = (
    "topic",
    "partition",
    "start_offset",
    "transactional_id",
    "late_by",
    "coordinator_state",
    "blocked_offsets",
    "transaction_start",
    "transaction_timeout_ms",
    "last_timestamp",
    "duration_minutes",
    "producer_id",
    "producer_epoch",
)
OPEN: Final = (
    "topic",
    "partition",
    "start_offset",
    "verdict",
    "transactional_id",
    "blocked_offsets",
    "blocks_since",
    "safe_to_abort",
    "reason",
    "application",
    "producer_id",
    "producer_epoch",
    "coordinator_state",
    "first_seen",
    "runs_seen",
    "explanation",
    "do_not_abort_because",
)
FINDINGS: Final = (
    "severity",
    "name",
    "topic",
    "partition",
    "offset",
    "transactional_id",
    "producer_id",
    "expected",
    "evidence",
    "message",
)
GROUPS: Final = (
    "group_id",
    "topic",
    "partition",
    "lag_offsets",
    "last_stable_offset",
    "blocking_transactional_id",
    "committed_at",
    "committed_offset",
    "high_watermark",
    "blocking_producer_id",
)
COVERAGE: Final = (
    "topic",
    "partition",
    "broker",
    "status",
    "is_judged",
    "is_leader",
    "detail",
    "end_offset",
    "high_watermark",
    "first_offset",
    "unreadable_bytes",
    "captured_at",
)
RUN: Final = ("run_id", "status", "as_of", "verdicts", "cluster", "started_at", "finished_at", "version", "input")


def late_transactions(run: StoredRun) -> list[Row]:
    """Transactions that their coordinator still expects, but that should have ended by now. Columns: LATE."""
    return run.rows("late_transactions", LATE, order='"transactional_id", "topic", "partition"')


def open_transactions(
    run: StoredRun, *, verdict: str | None = None, topic: str | None = None, limit: int | None = None
) -> list[Row]:
    """The open transactions with a verdict, of a topic; those that block the most offsets first. Columns: OPEN."""
    order = '"blocked_offsets" DESC, "topic", "partition", "start_offset"'
    return run.rows("open_transactions", OPEN, equal(verdict=verdict, topic=topic), order=order, limit=limit)


def findings(
    run: StoredRun, *, severity: str | None = None, name: str | None = None, topic: str | None = None, limit: int | None = None
) -> list[Row]:
    """The findings of at least a severity, of a name or a topic; the most severe first. Columns: FINDINGS."""
    where = equal(name=name, topic=topic)
    if severity is not None:
        where.append(("severity", "IN", [each.name for each in Severity if each.value >= Severity[severity].value]))
    ranks = " ".join(f"WHEN '{each.name}' THEN {each.value}" for each in Severity)
    order = f'CASE "severity" {ranks} END DESC, "name", "topic", "partition", "offset"'
    return run.rows("findings", FINDINGS, where, order=order, limit=limit)


def blocked_groups(run: StoredRun, *, topic: str | None = None) -> list[Row]:
    """The consumer groups that wait for a transaction, those that lag most first. Columns: GROUPS."""
    return run.rows("blocked_groups", GROUPS, equal(topic=topic), order='"lag_offsets" DESC, "group_id", "topic", "partition"')


def coverage(run: StoredRun) -> list[Row]:
    """What was captured of each partition, and which copy is judged. Columns: COVERAGE."""
    return run.rows("coverage", COVERAGE, order='"topic", "partition", "broker"')


def listed_runs(tables: Tables, *, run_id: str | None = None, as_of: str | None = None) -> list[Row]:
    """The runs in the tables, newest first. Columns: RUN. Raises UsageError if none has this id or instant."""
    return [{**row, "verdicts": _verdicts(row)} for row in chosen_runs(tables, run_id=run_id, as_of=as_of)]


def _verdicts(row: Row) -> str:
    counts = in_transactions(json.loads(row["counts"] or "{}"))
    return ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))


# ---- The commands


def answer_open(run: StoredRun, options: Namespace) -> CommandOutput:
    """The open transactions with their verdicts, those that block most first."""
    rows = open_transactions(run, verdict=options.verdict, topic=options.topic, limit=options.limit)
    return CommandOutput(OPEN, rows, shown=OPEN[:9])


_SHOWN_FINDINGS: Final = ("severity", "name", "expected", "topic", "partition", "offset", "evidence")


def answer_findings(run: StoredRun, options: Namespace) -> CommandOutput:
    """What is odd in the logs, the most severe first."""
    rows = findings(run, severity=options.severity, name=options.name, topic=options.topic, limit=options.limit)
    if not rows and options.name is not None and options.name not in Finding.__members__:
        raise UsageError(f"there is no finding {options.name}{meant(options.name, Finding.__members__)}")
    return CommandOutput(FINDINGS, rows, shown=_SHOWN_FINDINGS)


def answer_groups(run: StoredRun, options: Namespace) -> CommandOutput:
    """The consumer groups that wait for a transaction to end."""
    return CommandOutput(GROUPS, blocked_groups(run, topic=options.topic), shown=GROUPS[:7])


def answer_find_late(run: StoredRun, options: Namespace) -> CommandOutput:
    """Late transactions: their coordinator still expects them, but they should have ended by now."""
    return CommandOutput(LATE, late_transactions(run), shown=LATE[:8])


def answer_coverage(run: StoredRun, options: Namespace) -> CommandOutput:
    """What was captured of each partition, and which copy is judged."""
    return CommandOutput(COVERAGE, coverage(run), shown=COVERAGE[:7])


def answer_runs(tables: Tables, options: Namespace) -> CommandOutput:
    """All runs in the tables, newest first; with `--run` or `--as-of`, only those."""
    rows = listed_runs(tables, run_id=options.run, as_of=options.as_of)
    return CommandOutput(RUN, rows, shown=RUN[:4])
