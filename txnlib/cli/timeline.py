"""`txn-audit timeline`: the events of a partition or transactional id."""

from __future__ import annotations

from argparse import Namespace

from txnlib.queries.rows import StoredRun
from txnlib.queries.timeline import timeline_of
from txnlib.render.command_output import CommandOutput
from txnlib.render.timeline_text import timeline_output


def timeline(run: StoredRun, options: Namespace) -> CommandOutput:
    """The events of a partition or of a transactional id. Raises UsageError if the run contains neither."""
    return timeline_output(timeline_of(run, options.where, options.last))
