"""`txn-audit diff`: what changed between two runs of a cluster."""

from __future__ import annotations

from argparse import Namespace

from txnlib.queries.delta_rows import Tables, two_runs
from txnlib.queries.differences import differences_of_runs
from txnlib.render.command_output import CommandOutput
from txnlib.render.differences_text import differences_output


def diff(tables: Tables, options: Namespace) -> CommandOutput:
    """Transactions that are new, ended or judged differently. Raises UsageError unless there are two runs of one cluster."""
    then, now = two_runs(tables, options.runs, run_id=options.run, as_of=options.as_of)
    return differences_output(differences_of_runs(then, now))
