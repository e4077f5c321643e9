"""`txn-audit collect-plan`: what else to copy, from which broker, and why."""

from __future__ import annotations

from argparse import Namespace

from txnlib.queries import collect_plan as plan
from txnlib.queries.rows import StoredRun
from txnlib.render.collect_plan_text import collect_plan_output
from txnlib.render.command_output import CommandOutput


def collect_plan(run: StoredRun, options: Namespace) -> CommandOutput:
    """What to copy, most useful first, and the command for each broker."""
    return collect_plan_output(plan.collect_plan(run))
