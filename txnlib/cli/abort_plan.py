"""`txn-audit abort-plan`: what to do, and what to check before and after."""

from __future__ import annotations

from argparse import Namespace

from txnlib.core.display import instant
from txnlib.queries import abort_plan as plan
from txnlib.queries.rows import StoredRun
from txnlib.render.abort_plan_text import abort_plan_output
from txnlib.render.command_output import CommandOutput


def abort_plan(run: StoredRun, options: Namespace) -> CommandOutput:
    """The action for each open transaction: commands in order, their expected output, and reasons against running them."""
    rows = plan.abort_plan(run, topic=options.topic, action=options.action, verdict=options.verdict, limit=options.limit)
    return abort_plan_output(rows, run.run_id, instant(run.as_of_ms))
