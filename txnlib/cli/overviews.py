"""`txn-audit find-late`, `coverage` and `runs`: tables of the audit in fewer columns."""

from __future__ import annotations

from argparse import Namespace

from txnlib.queries import overviews
from txnlib.queries.delta_rows import Tables
from txnlib.queries.rows import Run
from txnlib.render.command_output import CommandOutput


def find_late(run: Run, options: Namespace) -> CommandOutput:
    """Late transactions: their coordinator still expects them, but they should have ended by now."""
    return CommandOutput(overviews.LATE, overviews.late_transactions(run))


def coverage(run: Run, options: Namespace) -> CommandOutput:
    """What was captured of each partition, and which copy is judged."""
    return CommandOutput(overviews.COVERAGE, overviews.coverage(run))


def list_runs(tables: Tables, options: Namespace) -> CommandOutput:
    """All runs in the tables, newest first; with `--run` or `--as-of`, only those."""
    return CommandOutput(overviews.RUN, overviews.listed_runs(tables, run_id=options.run, as_of=options.as_of))
