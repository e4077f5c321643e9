"""The plan of an audit as text: a table of the actions, then the steps of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from txnlib.core.display import printable
from txnlib.queries.abort_plan import CHECKS, COLUMNS
from txnlib.queries.rows import Row
from txnlib.render.command_output import CommandOutput

_SHOWN: Final = ("number", "action", "topic", "partition", "start_offset", "producer_id", "transactional_id", "verdict")


def abort_plan_output(rows: Sequence[Row]) -> CommandOutput:
    """One row per action. CSV has no lists, so only people and JSON get the checks."""
    flat = [{name: value for name, value in row.items() if name not in CHECKS} for row in rows]
    return CommandOutput(COLUMNS, flat, shown=_SHOWN, tail="".join(map(_steps, rows)), whole=rows)


def _steps(row: Row) -> str:
    """The steps of one row."""
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
