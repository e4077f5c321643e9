"""The story of an open transaction as text: its steps in a table, the conclusions below.

Repeats what the audit decided and decides nothing.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from txnlib.core.durations import duration
from txnlib.queries.story_steps import Step
from txnlib.queries.summary import Row
from txnlib.render.report_text import WIDTH, instant, printable, size

_LABEL: Final = 9


@dataclass(frozen=True, slots=True)
class Explained:
    """A transaction, its story, and the records that support the verdict."""

    cluster: str
    run_id: str
    as_of_ms: int
    #: The row of open_transactions; instants as epoch ms.
    verdict: Row
    steps: Sequence[Step]
    left_out: Sequence[str]
    #: The evidence, with the lines that Kafka's dump tool prints for it.
    evidence: Sequence[Mapping[str, Any]]
    #: Rows of coverage that the verdict depends on; instants as epoch ms.
    copies: Sequence[Row] = ()


def columns(steps: Sequence[Step]) -> tuple[str, ...]:
    """The headings of the table. If everything happened on one day, the heading contains it."""
    return ("offset", "written by", _when_head(steps), "record", "state after", "")


def lines(told: Explained) -> list[Row]:
    """The lines of the table."""
    day, when = _day(told.steps), _when_head(told.steps)
    place = f"{told.verdict['topic']}-{told.verdict['partition']}"
    return [
        {
            "offset": _offsets(step) if step.log == place else "",
            "written by": step.written_by if step.log in ("", place) else f"{step.log} @{step.first_offset}",
            when: _when(step, day),
            "record": step.record,
            "state after": step.state_after,
            "": f"<-- {told.verdict['verdict']}" if step.is_open else "",
        }
        for step in told.steps
    ]


def head(told: Explained) -> str:
    row = told.verdict
    where = f"{printable(row['topic'])}-{row['partition']}"
    owner = "no transactional id known" if row["transactional_id"] is None else printable(row["transactional_id"])
    who = f"{where} from offset {row['start_offset']}   producer {row['producer_id']} epoch {row['producer_epoch']}   {owner}"
    return f"{who}\ncluster {printable(told.cluster)}, as of {instant(told.as_of_ms)}, run {printable(told.run_id)}\n\n"


def tail(told: Explained, width: int = WIDTH) -> str:
    """The conclusions and the records that support them. Sentences are wrapped, commands and records are not."""
    row = told.verdict
    labelled = partial(_wrapped, width)
    out = [f"  left out: {printable('; '.join(told.left_out))}"] if told.left_out else []
    out += ["", f"{row['verdict']}  {row['reason']}"]
    out += labelled("why", row["explanation"])
    out += labelled("live", _LIVE[row["kafka_find_hanging"]])
    out += labelled("age", _age(row))
    blocked = f"{row['blocked_offsets']} offsets, {size(row['blocked_bytes'])} behind its start"
    out += labelled("holds", f"{blocked}, since {instant(row['blocks_since'])}")
    for cause in row["causes"] or ():
        out += labelled("cause", f"{cause['likelihood'].lower()}: {cause['cause']} ({cause['evidence']})")
    out += _remedy(row, width)
    out += _copies(told)
    out += _safety(row)
    out += ["", "RECORDS, as kafka-dump-log.sh prints them"] if told.evidence else []
    for each in told.evidence:
        out.append(f"  {printable(each['topic'])}-{each['partition']} offset {each['offset']}: {printable(each['says'])}")
        out += [f"    {printable(line)}" for line in each["printed"]]
    return "".join(f"{line}\n" for line in out)


def whole(told: Explained) -> dict[str, Any]:
    """The whole story for programs; instants as epoch ms, as in Kafka's tools."""
    return {
        "cluster": told.cluster,
        "run_id": told.run_id,
        "as_of_ms": told.as_of_ms,
        "verdict": {name: value for name, value in told.verdict.items() if name != "evidence"},
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
            for step in told.steps
        ],
        "left_out": list(told.left_out),
        "evidence": [dict(each) for each in told.evidence],
        "copies": [dict(each) for each in told.copies],
    }


def _copies(told: Explained) -> list[str]:
    """The copies that the verdict depends on, and the instant up to which each is known."""
    out = ["", "COPIES that this leans on"] if told.copies else []
    for copy in told.copies:
        place = f"{printable(copy['topic'])}-{copy['partition']}"
        if copy["role"] is None:
            out.append(f"  {place}   not captured")
            continue
        known = "known until no instant" if copy["known_until"] is None else f"known until {instant(copy['known_until'])}"
        judged = ", judged" if copy["is_judged"] else ""
        out.append(f"  {place}   {printable(copy['source'])}   {copy['role']}, ends {copy['ends']}: {known}{judged}")
    return out


def _safety(row: Row) -> list[str]:
    """The conditions of a safe abort, each with a tick or with what violates it."""
    if not row["safety"]:
        return []
    return ["", "SAFE TO ABORT only if all hold"] + [
        f"  [{'x' if check['holds'] else ' '}] {printable(check['says'])}" for check in row["safety"]
    ]


#: kafka_find_hanging -> in words.
_LIVE: Final[Mapping[bool | None, str]] = {
    True: "find-hanging would print it, too",
    False: "find-hanging would not print it",
    None: "cannot be said whether find-hanging would print it: coordinator partitions are missing",
}


def _age(row: Row) -> str:
    clock = "the broker's" if row["age_basis"] == "BROKER_CLOCK" else "its client's"
    last = "not known" if row["duration_minutes"] is None else f"{row['duration_minutes']} min ago by {clock} clock"
    proof = row["broker_clock_age_ms"]
    proven = "no broker's clock proves an age" if proof is None else f"open for {duration(proof)} by the brokers' clocks"
    return f"last write {last}; {proven}"


def _remedy(row: Row, width: int) -> list[str]:
    labelled = partial(_wrapped, width)
    if row["abort_command"] is None:
        return labelled("do not", f"write a marker by hand: {row['do_not_abort_because']}")
    if not row["safe_to_abort"]:
        return [*labelled("not yet", row["do_not_abort_because"]), f"  {'then':<{_LABEL}}{printable(row['abort_command'])}"]
    return [f"  {'do':<{_LABEL}}{printable(row['abort_command'])}"]


def _wrapped(width: int, label: str, text: object) -> list[str]:
    line = f"  {label:<{_LABEL}}{printable(text)}"
    return textwrap.wrap(line, width, subsequent_indent=" " * (2 + _LABEL), break_on_hyphens=False, break_long_words=False)


def _offsets(step: Step) -> str:
    is_one = step.first_offset == step.last_offset
    return str(step.first_offset) if is_one else f"{step.first_offset}–{step.last_offset}"


def _times(steps: Sequence[Step]) -> list[int]:
    return [at for step in steps for at in (step.after_ms, step.before_ms) if at is not None]


def _day(steps: Sequence[Step]) -> str | None:
    """The day, if all times shown are on the same one."""
    days = {clock(at)[:10] for at in _times(steps)}
    return days.pop() if len(days) == 1 else None


def _when_head(steps: Sequence[Step]) -> str:
    day = _day(steps)
    return "when (broker clock)" if day is None else f"when (broker clock, {day})"


def clock(ms: int) -> str:
    """2026-11-21 07:46:12.345Z; the number if it is outside of the calendar."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat(sep=" ", timespec="milliseconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"


def _when(step: Step, day: str | None) -> str:
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
