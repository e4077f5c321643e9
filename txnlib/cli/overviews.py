"""Commands that print a table of the audit in fewer columns: `open`, `findings`, `groups`, `find-late`, `coverage`, `runs`."""

from __future__ import annotations

from argparse import Namespace
from typing import Final

from txnlib.queries import overviews
from txnlib.queries.delta_rows import Tables
from txnlib.queries.rows import StoredRun
from txnlib.render.command_output import CommandOutput


def open_transactions(run: StoredRun, options: Namespace) -> CommandOutput:
    """The open transactions with their verdicts, those that block most first."""
    rows = overviews.open_transactions(run, verdict=options.verdict, topic=options.topic, limit=options.limit)
    return CommandOutput(overviews.OPEN, rows, shown=overviews.OPEN[:9])


_FINDINGS: Final = ("severity", "name", "expected", "topic", "partition", "offset", "evidence")


def findings(run: StoredRun, options: Namespace) -> CommandOutput:
    """What is odd in the logs, the most severe first."""
    rows = overviews.findings(run, severity=options.severity, name=options.name, topic=options.topic, limit=options.limit)
    return CommandOutput(overviews.FINDINGS, rows, shown=_FINDINGS)


def groups(run: StoredRun, options: Namespace) -> CommandOutput:
    """The consumer groups that wait for a transaction to end."""
    return CommandOutput(overviews.GROUPS, overviews.blocked_groups(run, topic=options.topic), shown=overviews.GROUPS[:7])


def find_late(run: StoredRun, options: Namespace) -> CommandOutput:
    """Late transactions: their coordinator still expects them, but they should have ended by now."""
    return CommandOutput(overviews.LATE, overviews.late_transactions(run), shown=overviews.LATE[:8])


def coverage(run: StoredRun, options: Namespace) -> CommandOutput:
    """What was captured of each partition, and which copy is judged."""
    return CommandOutput(overviews.COVERAGE, overviews.coverage(run), shown=overviews.COVERAGE[:7])


def list_runs(tables: Tables, options: Namespace) -> CommandOutput:
    """All runs in the tables, newest first; with `--run` or `--as-of`, only those."""
    rows = overviews.listed_runs(tables, run_id=options.run, as_of=options.as_of)
    return CommandOutput(overviews.RUN, rows, shown=overviews.RUN[:4])
