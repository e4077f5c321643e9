"""The plan of an audit: what to do about each open transaction, and what to check before and after."""

from __future__ import annotations

from typing import Final

from txnlib.queries.rows import Row, StoredRun

COLUMNS: Final = (
    "number",
    "action",
    "topic",
    "partition",
    "start_offset",
    "producer_id",
    "transactional_id",
    "verdict",
    "reason",
    "effect",
    "do_not_abort_because",
    "command",
    "command_for_old_brokers",
)
#: Columns with lists.
CHECKS: Final = ("before", "after", "notes", "places")


def abort_plan(
    run: StoredRun, *, topic: str | None = None, action: str | None = None, verdict: str | None = None, limit: int | None = None
) -> list[Row]:
    """The rows of abort_plan, in order, with this topic, action and verdict. Columns: COLUMNS and CHECKS."""
    where = [(name, "=", value) for name, value in {"topic": topic, "action": action, "verdict": verdict}.items() if value]
    return run.rows("abort_plan", (*COLUMNS, *CHECKS), where, order='"number"', limit=limit)
