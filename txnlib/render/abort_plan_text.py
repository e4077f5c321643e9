"""The plan of an audit as text: a table of the actions, then the steps of each."""

from __future__ import annotations

import textwrap
from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from typing import Final

from txnlib.core.display import instant, printable
from txnlib.queries import abort_plan as plan
from txnlib.queries.abort_plan import CHECKS, COLUMNS
from txnlib.queries.rows import Row, StoredRun
from txnlib.render.abort_plan_script import abort_plan_script
from txnlib.render.command_output import CommandOutput

_SHOWN: Final = ("number", "action", "topic", "partition", "start_offset", "producer_id", "transactional_id", "verdict")


def abort_plan_output(rows: Sequence[Row], run_id: str, as_of: str) -> CommandOutput:
    """One row per action. CSV has no lists, so only people, scripts and JSON get the checks."""
    flat = [{name: value for name, value in row.items() if name not in CHECKS} for row in rows]
    script = partial(abort_plan_script, rows, run_id, as_of)
    return CommandOutput(COLUMNS, flat, shown=_SHOWN, tail=partial(_groups, rows), whole=lambda: rows, script=script)


def _groups(rows: Sequence[Row], width: int) -> str:
    """The steps of all rows; rows that need no command are grouped by their action and reason."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row["command"] is None:
            groups.setdefault((row["action"], row["reason"]), []).append(row)
    lines = [line for row in rows if row["command"] is not None for line in _steps(row, width)]
    lines += [line for names, each in groups.items() for line in _group(*names, each, width)]
    return "".join(f"{line}\n" for line in lines)


def _group(action: str, reason: str, rows: Sequence[Row], width: int) -> list[str]:
    """Rows that need no command, and for the same reason: what they say is said once."""
    if len(rows) == 1:
        return _steps(rows[0], width)
    lines = ["", f"{action}  {len(rows)} transactions: {reason}"]
    lines += [printable(f"   {row['number']}. {_where(row)}, producer {row['producer_id']}{_effect(row)}") for row in rows]
    said = dict.fromkeys(said for row in rows for said in (row["do_not_abort_because"], *(row["notes"] or ())) if said is not None)
    return lines + [line for note in said for line in _said("note", note, width)]


def _effect(row: Row) -> str:
    return "" if row["effect"] is None else f": {row['effect']}"


def _where(row: Row) -> str:
    return ", ".join(row["places"] or [f"{row['topic']}-{row['partition']} offset {row['start_offset']}"])


def _steps(row: Row, width: int) -> list[str]:
    """The steps of one row. Sentences are wrapped, and commands are not, so that they can be copied."""
    lines = ["", printable(f"{row['number']}. {row['action']}  {_where(row)}, producer {row['producer_id']}")]
    because = row["do_not_abort_because"]
    if because is not None:
        lines += _said("why no abort now:", because, width)
    lines += [line for step in row["before"] or () for line in _checked("before", step, width)]
    if row["command"] is not None:
        lines.append(printable(f"   do      {row['command']}"))
    if row["command_for_old_brokers"] is not None:
        lines.append(printable(f"   or      {row['command_for_old_brokers']}   (brokers before 3.0)"))
    if row["effect"] is not None:
        lines += _said("effect", row["effect"], width)
    lines += [line for step in row["after"] or () for line in _checked("after", step, width)]
    return lines + [line for note in row["notes"] or () if note != because for line in _said("note", note, width)]


def _checked(when: str, step: Row, width: int) -> list[str]:
    return [printable(f"   {when:<7} {step['command']}"), *_said("", f"must show: {step['must_print']}", width)]


def _said(label: str, sentence: str, width: int) -> list[str]:
    """A sentence behind its label, wrapped between words."""
    line = printable(f"   {label:<7} {sentence}")
    return textwrap.wrap(line, width, subsequent_indent=" " * 11, break_on_hyphens=False, break_long_words=False)


def abort_plan(run: StoredRun, options: Namespace) -> CommandOutput:
    """The action for each open transaction: commands in order, their expected output, and reasons against running them."""
    rows = plan.abort_plan(run, topic=options.topic, action=options.action, verdict=options.verdict, limit=options.limit)
    return abort_plan_output(rows, run.run_id, instant(run.as_of_ms))
