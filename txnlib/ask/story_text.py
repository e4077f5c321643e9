"""The story of an open transaction as text: its steps in a table, the conclusions below.

Repeats what the audit decided and decides nothing.
"""

from __future__ import annotations

import textwrap
from argparse import Namespace
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from txnlib.ask import story
from txnlib.ask.command_output import CommandOutput
from txnlib.ask.grid import WIDTH, instant_json
from txnlib.ask.report_entries import AS_DECIDED, last_write
from txnlib.ask.rows import Row, StoredRun
from txnlib.ask.story import Explained
from txnlib.ask.story_steps import StoryStep
from txnlib.core.display import counted, duration, printable, size, utc_time

_LABEL: Final = 9


def story_output(explained: Explained) -> CommandOutput:
    """The story as a table, with the verdict below it."""
    return CommandOutput(
        columns(explained.steps),
        lines(explained),
        head=head(explained),
        tail=lambda width: tail(explained, width),
        whole=lambda: whole(explained),
    )


def columns(steps: Sequence[StoryStep]) -> tuple[str, ...]:
    """The headings of the table. If everything happened on one day, the heading contains it."""
    return ("offset", "written by", _when_head(steps), "record", "state after", "")


def lines(explained: Explained) -> list[Row]:
    """The lines of the table."""
    day, when = _day(explained.steps), _when_head(explained.steps)
    place = f"{explained.verdict['topic']}-{explained.verdict['partition']}"
    return [
        {
            "offset": _offsets(step) if step.log == place else "",
            "written by": step.written_by if step.log in ("", place) else f"{step.log} @{step.first_offset}",
            when: _when(step, day),
            "record": step.record,
            "state after": step.state_after,
            "": f"<-- {explained.verdict['verdict']}" if step.is_open else "",
        }
        for step in explained.steps
    ]


def head(explained: Explained) -> str:
    row = explained.verdict
    where = f"{printable(row['topic'])}-{row['partition']}"
    owner = "no transactional id known" if row["transactional_id"] is None else printable(row["transactional_id"])
    who = f"{where} from offset {row['start_offset']}   producer {row['producer_id']} epoch {row['producer_epoch']}   {owner}"
    run = f"as of {utc_time(explained.as_of_ms)}, run {printable(explained.run_id)}"
    return f"{who}\ncluster {printable(explained.cluster)}, {run}\n\n"


def tail(explained: Explained, width: int = WIDTH) -> str:
    """The conclusions and the records that support them. Sentences are wrapped, commands and records are not."""
    row = explained.verdict
    labelled = partial(_wrapped, width)
    out = [f"  left out: {printable('; '.join(explained.left_out))}"] if explained.left_out else []
    out += ["", f"{row['verdict']}  {row['reason']}"]
    out += labelled("why", row["explanation"])
    out += labelled("live", _LIVE[row["kafka_find_hanging"]])
    out += labelled("age", _age(row))
    blocked = f"{counted(row['blocked_offsets'] or 0, 'offset')}, {size(row['blocked_bytes'])} behind its start"
    out += labelled("holds", f"{blocked}, since {utc_time(row['blocks_since'])}")
    for cause in row["causes"] or ():
        out += labelled("cause", f"{cause['likelihood'].lower()}: {cause['cause']} ({cause['evidence']})")
    out += _remedy(row, width)
    out += _copies(explained)
    out += _safety(row)
    out += _searches(explained, width)
    out += ["", "RECORDS, as kafka-dump-log.sh prints them"] if explained.evidence else []
    for each in explained.evidence:
        out.append(f"  {printable(each['topic'])}-{each['partition']} offset {each['offset']}: {printable(each['says'])}")
        out += [f"    {printable(line)}" for line in each["printed"]]
    return "".join(f"{line}\n" for line in out)


def whole(explained: Explained) -> dict[str, Any]:
    """The whole story for programs. Instants are ISO-8601, and epoch ms in fields whose names end with `_ms`."""
    return {
        "cluster": explained.cluster,
        "run_id": explained.run_id,
        "as_of_ms": explained.as_of_ms,
        "verdict": _with_instants({name: value for name, value in explained.verdict.items() if name != "evidence"}),
        "steps": [
            {
                "log": step.log,
                "first_offset": step.first_offset,
                "last_offset": step.last_offset,
                "written_by": step.written_by,
                "after_ms": step.after_ms,
                "before_ms": step.before_ms,
                "record": step.record,
                "state_after": step.state_after,
                "is_open": step.is_open,
            }
            for step in explained.steps
        ],
        "left_out": list(explained.left_out),
        "evidence": [dict(each) for each in explained.evidence],
        "copies": [_with_instants(each) for each in explained.copies],
        "broker_logs": [
            {"log_of": each.line.writer.value, "file": each.line.file.value, "shows": each.line.shows, "command": each.command}
            for each in explained.searches
        ],
        "not_logged": explained.not_logged,
    }


#: Fields of the story that are epoch ms here, and ISO-8601 for programs.
_INSTANTS: Final = ("last_timestamp", "blocks_since", "first_seen", "known_until")


def _with_instants(row: Mapping[str, Any]) -> Row:
    instants = {name: instant_json(row[name]) for name in _INSTANTS if row.get(name) is not None}
    return {**row, **instants}


def _copies(explained: Explained) -> list[str]:
    """The copies that the verdict depends on, and the instant up to which each is known."""
    out = ["", "COPIES that this leans on"] if explained.copies else []
    for copy in explained.copies:
        place = f"{printable(copy['topic'])}-{copy['partition']}"
        if copy["role"] is None:
            out.append(f"  {place}   not captured")
            continue
        until = "no instant" if copy["known_until"] is None else utc_time(copy["known_until"])
        judged = ", judged" if copy["is_judged"] else ""
        out.append(f"  {place}   {printable(copy['source'])}   {copy['role']}, ends {copy['ends']}: known until {until}{judged}")
    return out


def _safety(row: Row) -> list[str]:
    """The proof that an abort is safe: each statement with a tick and its witnesses, or with what is missing."""
    if not row["safety"]:
        return []
    out = ["", "SAFE TO ABORT only if all is proven"]
    for proof in row["safety"]:
        out.append(f"  [{'x' if proof['holds'] else ' '}] {printable(proof['says'])}")
        out += [f"        {printable(witness)}" for witness in proof["witnesses"] or ()]
    return out


def _searches(explained: Explained, width: int) -> list[str]:
    """What to search in the logs for the most likely cause. Commands are in one piece."""
    if not explained.searches and explained.not_logged is None:
        return []
    out = ["", "IN THE BROKERS' LOGS, about the likeliest cause (LOGS: their folder)"]
    if explained.not_logged is not None:
        out += _wrapped(width, "silent", explained.not_logged)
    for each in explained.searches:
        where = f"  {each.line.writer}, {each.line.file}: {each.line.shows}"
        out += textwrap.wrap(where, width, subsequent_indent=" " * 4, break_on_hyphens=False, break_long_words=False)
        out.append(f"    {each.command}")
    return out


#: kafka_find_hanging -> in words.
_LIVE: Final[Mapping[bool | None, str]] = {
    True: "find-hanging would print it, too",
    False: "find-hanging would not print it",
    None: "cannot be said whether find-hanging would print it: coordinator partitions are missing",
}


def _age(row: Row) -> str:
    proof = row["broker_clock_age_ms"]
    proven = "no broker's clock proves an age" if proof is None else f"open for {duration(proof)} by the brokers' clocks"
    return f"last write {last_write(row)}; {proven}"


def _remedy(row: Row, width: int) -> list[str]:
    labelled = partial(_wrapped, width)
    if row["abort_command"] is None:
        return labelled("do not", f"write a marker by hand: {row['do_not_abort_because']}")
    if row["do_not_abort_because"] is not None:
        return [*labelled("not yet", row["do_not_abort_because"]), f"  {'then':<{_LABEL}}{printable(row['abort_command'])}"]
    decided = [] if row["safe_to_abort"] else labelled("as", AS_DECIDED)
    return [*decided, f"  {'do':<{_LABEL}}{printable(row['abort_command'])}"]


def _wrapped(width: int, label: str, text: object) -> list[str]:
    line = f"  {label:<{_LABEL}}{printable(text)}"
    return textwrap.wrap(line, width, subsequent_indent=" " * (2 + _LABEL), break_on_hyphens=False, break_long_words=False)


def _offsets(step: StoryStep) -> str:
    is_one = step.first_offset == step.last_offset
    return str(step.first_offset) if is_one else f"{step.first_offset}–{step.last_offset}"


def _times(steps: Sequence[StoryStep]) -> list[int]:
    return [at for step in steps for at in (step.after_ms, step.before_ms) if at is not None]


def _day(steps: Sequence[StoryStep]) -> str | None:
    """The day, if all times shown are on the same one."""
    days = {clock(at)[:10] for at in _times(steps)}
    return days.pop() if len(days) == 1 else None


def _when_head(steps: Sequence[StoryStep]) -> str:
    day = _day(steps)
    return "when (broker clock)" if day is None else f"when (broker clock, {day})"


def clock(ms: int) -> str:
    """2026-11-21 07:46:12.345Z; the number if it is outside of the calendar."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat(sep=" ", timespec="milliseconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"


def _when(step: StoryStep, day: str | None) -> str:
    def shown(ms: int) -> str:
        return clock(ms).removeprefix(f"{day} ")

    if step.first_offset is None:
        return ""
    if step.after_ms is None and step.before_ms is None:
        return "not known"
    if step.after_ms is None or step.before_ms is None:
        return f"before {shown(step.before_ms)}" if step.before_ms is not None else f"after {shown(step.after_ms or 0)}"
    if step.after_ms == step.before_ms:
        return shown(step.after_ms)
    return f"between {shown(step.after_ms)} and {shown(step.before_ms)}"


def answer(run: StoredRun, options: Namespace) -> CommandOutput:
    """The story of one open transaction from both logs. Raises UsageError if no transaction is open there."""
    return story_output(story.explain(run, *story.place_of(run, options.where)))
