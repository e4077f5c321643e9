"""The plan of an audit: what to do about each open transaction, and what to check before and after."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from typing import Final

from txnlib.ask.abort_script import abort_plan_script, places_of, waits_until, when
from txnlib.ask.command_output import SCRIPT, CommandOutput
from txnlib.ask.grid import command_lines, folded, plain
from txnlib.ask.queries import Row, StoredRun
from txnlib.ask.subject import equal
from txnlib.ask.words import counted_as, named
from txnlib.core import kafka_commands
from txnlib.core.display import BOOTSTRAP, instant, printable, told
from txnlib.core.rows import grouped
from txnlib.core.schema import shown

#: Columns with lists.
CHECKS: Final = ("before", "after", "notes", "places")


def abort_plan(
    run: StoredRun,
    *,
    topic: str | None = None,
    action: str | None = None,
    verdict: str | None = None,
    limit: int | None = None,
) -> list[Row]:
    """The rows of abort_plan, in order, with this topic, action and verdict. Columns: the view `abort-plan`, and
    CHECKS."""
    where = [*counted_as(verdict), *equal(topic=topic, action=action)]
    columns = (*shown("abort-plan"), *CHECKS)
    return [named(row) for row in run.rows("abort_plan", columns, where, order='"number"', limit=limit)]


# ---- The plan of an audit as text: a table of the actions, then the steps of each


def abort_plan_output(rows: Sequence[Row], run_id: str, as_of: str) -> CommandOutput:
    """One row per action. CSV has no lists, so only people, scripts and JSON get the checks."""
    flat = [{name: value for name, value in row.items() if name not in CHECKS} for row in rows]
    script = partial(abort_plan_script, rows, run_id, as_of)
    return CommandOutput(
        shown("abort-plan"),
        flat,
        shown=shown("abort-plan", is_wide=False),
        kept=shown("abort-plan", is_wide=False),
        tail=partial(_text, rows),
        whole=lambda: plain(rows),
        others={SCRIPT: script},
    )


def _text(rows: Sequence[Row], width: int) -> str:
    """The steps of all rows, in order. Rows without a command that have the same action and reason stand together,
    where the first of them is. Last come the permissions that all steps need."""
    groups = grouped(rows, lambda row: (row["action"], row["reason"]) if row["command"] is None else row["number"])
    lines = [line for each in groups.values() for line in _group(each, width)]
    needed = permissions_of(rows)
    if needed:
        lines += ["", "PERMISSIONS", *(line for each in needed for line in folded(f"   {each}", width))]
    return "".join(f"{line}\n" for line in lines)


def permissions_of(rows: Sequence[Row]) -> list[str]:
    """What the commands of a plan need, each said once."""
    checks = (step["command"] for row in rows for step in (*(row["before"] or ()), *(row["after"] or ())))
    return kafka_commands.permissions([*filter(None, (row["command"] for row in rows)), *checks])


def _group(rows: Sequence[Row], width: int) -> list[str]:
    """The lines of rows that stand together. A note that several rows share is printed once."""
    if len(rows) == 1:
        return _steps(rows[0], width)
    lines = ["", f"{rows[0]['action']}  {len(rows)} steps: {rows[0]['reason']}"]
    said: dict[str, list[int]] = {}
    for row in rows:
        effect = "" if row["effect"] is None else f": {row['effect']}"
        title = f"   {row['number']}. {places_of(row)}, producer {row['producer_id']}{effect}"
        lines += folded(printable(title), width)
        for note in dict.fromkeys((row["do_not_abort_because"], *(row["notes"] or ()))):
            if note is not None:
                said.setdefault(note, []).append(row["number"])
    of = {
        note: "" if len(numbers) == len(rows) else f"{', '.join(map(str, numbers))}: " for note, numbers in said.items()
    }
    return lines + [line for note in said for line in _said("note", f"{of[note]}{note}", width)]


def _steps(row: Row, width: int) -> list[str]:
    title = f"{row['number']}. {row['action']}  {places_of(row)}, producer {row['producer_id']}"
    because, old = row["do_not_abort_because"], row["command_for_old_brokers"]
    said = [
        ("no abort now, because", because),
        *(each for step in row["before"] or () for each in _checked("before", step)),
        *_command(row),
        ("or", None if old is None else f"{old}   (brokers before 3.0)"),
        ("effect", row["effect"]),
        *(each for step in row["after"] or () for each in _checked("after", step)),
        *(("note", note) for note in row["notes"] or () if note != because),
    ]
    of_labels = [line for label, text in said if text is not None for line in _said(label, text, width)]
    return ["", *folded(printable(title), width), *of_labels]


def _command(row: Row) -> list[tuple[str, str]]:
    """The command, after the comment that says until when it has to wait; empty if there is no command."""
    lines = [] if row["command"] is None else [*waits_until(row), row["command"]]
    return list(zip([when(row), *[""] * len(lines)], lines, strict=False))


def _checked(when: str, step: Row) -> list[tuple[str, str]]:
    return [(when, step["command"]), ("", f"must show: {step['must_print']}")]


def _said(label: str, text: str, width: int) -> list[str]:
    """The lines of a label and its text: a command stays whole, a sentence is wrapped between words."""
    if BOOTSTRAP in text:
        return command_lines(printable(f"   {label:<7} {text}"), width, 11)
    return folded(told(f"   {label:<7} {text}"), width, 11)


def answer(run: StoredRun, options: Namespace) -> CommandOutput:
    """The action for each open transaction: commands in order, their expected output, and reasons against running
    them."""
    rows = abort_plan(run, topic=options.topic, action=options.action, verdict=options.verdict, limit=options.limit)
    return abort_plan_output(rows, run.run_id, instant(run.as_of_ms))
