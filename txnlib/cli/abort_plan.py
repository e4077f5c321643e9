"""`txn-audit abort-plan`: what to do, and what to check before and after."""

from __future__ import annotations

from argparse import Namespace
from typing import Final

from txnlib.cli.output import Answer
from txnlib.queries.tables import Row, Run
from txnlib.render.report_text import printable

_COLUMNS: Final = (
    "number",
    "action",
    "topic",
    "partition",
    "start_offset",
    "producer_id",
    "transactional_id",
    "verdict",
    "reason",
    "do_not_abort_because",
    "command",
    "command_for_old_brokers",
)
_STEPS: Final = ("before", "after", "notes", "places")
_SHOWN: Final = ("number", "action", "topic", "partition", "start_offset", "producer_id", "transactional_id", "verdict")


def abort_plan(run: Run, options: Namespace) -> Answer:
    """The action for each open transaction: commands in order, their expected output, and reasons against running them."""
    rows = run.rows("abort_plan", (*_COLUMNS, *_STEPS), order='"number"')
    flat = [{name: value for name, value in row.items() if name not in _STEPS} for row in rows]
    return Answer(_COLUMNS, flat, shown=_SHOWN, tail="".join(map(_steps, rows)), whole=rows)


def _steps(row: Row) -> str:
    """The steps of one row, for people."""
    where = ", ".join(row["places"] or [f"{row['topic']}-{row['partition']} offset {row['start_offset']}"])
    lines = ["", f"{row['number']}. {row['action']}  {where}, producer {row['producer_id']}"]
    if row["do_not_abort_because"] is not None:
        lines.append(f"   why no abort now: {row['do_not_abort_because']}")
    lines += [line for step in row["before"] for line in _checked("before", step)]
    if row["command"] is not None:
        lines.append(f"   do      {row['command']}")
    if row["command_for_old_brokers"] is not None:
        lines.append(f"   or      {row['command_for_old_brokers']}   (brokers before 3.0)")
    lines += [line for step in row["after"] for line in _checked("after", step)]
    lines += [f"   note    {note}" for note in row["notes"] or () if note != row["do_not_abort_because"]]
    return "".join(f"{printable(line)}\n" for line in lines)


def _checked(when: str, step: Row) -> list[str]:
    return [f"   {when:<7} {step['command']}", f"           must show: {step['must_print']}"]
