"""The report as the output of a command: text for people, its summary for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from txnlib.queries.rows import StoredRun
from txnlib.queries.summary import Summary
from txnlib.render.command_output import CommandOutput
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


def report_output(run: StoredRun, summary: Summary, notes: Sequence[str] = ()) -> CommandOutput:
    """The report as text, its results as JSON (`summary_json.Findings`), and as a table the transactions that need action."""
    rows = [{"section": section, **row} for section, shown in summary.transactions.items() for row in shown]
    return CommandOutput(
        _COLUMNS,
        rows,
        page=lambda is_terminal: terminal_report(summary, is_terminal=is_terminal),
        whole=lambda: _results(run, summary),
        notes=notes,
    )


def _results(run: StoredRun, summary: Summary) -> dict[str, Any]:
    from txnlib.queries.run_result import results_of
    from txnlib.render.summary_json import found  # imported here, because text needs no pydantic

    return found(results_of(run, summary)).model_dump(mode="json")
