"""The report as the output of a command: text for people, its summary for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Final

from txnlib.queries.summary import Summary
from txnlib.render.command_output import CommandOutput
from txnlib.render.grid import plain
from txnlib.render.terminal_text import terminal_report

_COLUMNS: Final = (
    "section",
    "topic",
    "partition",
    "start_offset",
    "producer_id",
    "transactional_id",
    "reason",
    "explanation",
    "blocked_offsets",
    "safe_to_abort",
    "command",
)


def report_output(summary: Summary, notes: Sequence[str] = ()) -> CommandOutput:
    """The report as text, its summary as JSON, and as a table the transactions that need action."""
    rows = [{"section": section, **row} for section, shown in summary.transactions.items() for row in shown]
    whole = {field.name: plain(getattr(summary, field.name)) for field in fields(summary)}
    return CommandOutput(
        _COLUMNS, rows, page=lambda is_terminal: terminal_report(summary, is_terminal=is_terminal), whole=whole, notes=notes
    )
