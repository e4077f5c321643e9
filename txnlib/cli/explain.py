"""`txn-audit explain`: the story of one open transaction, and the verdict on it."""

from __future__ import annotations

from argparse import Namespace

from txnlib.queries import story
from txnlib.queries.rows import StoredRun
from txnlib.render.command_output import CommandOutput
from txnlib.render.story_text import story_output


def explain(run: StoredRun, options: Namespace) -> CommandOutput:
    """The story of one open transaction from both logs. Raises UsageError if no transaction is open there."""
    return story_output(story.explain(run, options.topic, options.partition, options.start_offset))
