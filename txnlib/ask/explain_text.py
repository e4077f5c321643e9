"""The story of an open transaction as text: its events in a table, the conclusions below.

Repeats what the audit decided and decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from txnlib.ask import episode
from txnlib.ask.collect_plan import needed_for
from txnlib.ask.command_output import CommandOutput
from txnlib.ask.entries import AS_DECIDED, PLACES, behind_holder, by_hand, last_write, since
from txnlib.ask.episode import Episode, Event, the_day
from txnlib.ask.grid import WIDTH, command_lines, folded, instant_json
from txnlib.ask.own_command import own_command
from txnlib.ask.report import ends_text
from txnlib.ask.report_text import INDENT
from txnlib.ask.rows import Row
from txnlib.core.copies import End, Role
from txnlib.core.display import counted, duration, precise_time, printable, size, told, utc_time

_LABEL: Final = 9
_wrapped = partial(episode.wrapped, room=_LABEL)


@dataclass(frozen=True, slots=True)
class Explained:
    """The verdict on an open transaction, and the records that support it."""

    #: The row of open_transactions; instants as epoch ms.
    verdict: Row
    #: What is left out, in words.
    left_out: Sequence[str] = ()
    #: The evidence, with the lines that Kafka's dump tool prints for it.
    evidence: Sequence[Row] = ()
    #: Rows of coverage that the verdict depends on; instants as epoch ms.
    copies: Sequence[Row] = ()
    #: Where else the transaction is open: topic, partition and start_offset.
    others: Sequence[Row] = ()
    #: The folder of the tables, or the URI of one.
    tables: str = ""
    #: The row of `partitions`, if another transaction holds the partition.
    holder: Row | None = None

    def output(self, story: Episode[Explained], /) -> CommandOutput:
        """The story as a table, with the verdict below it."""
        heads = columns(story)
        return CommandOutput(
            heads,
            lines(story),
            people=lines(story, is_short=True),
            kept=(heads[0], heads[4], heads[1], heads[3], heads[5]),
            head=_head(story),
            tail=lambda width: _tail(self, story.as_of_ms, width),
            whole=lambda: _for_programs(story),
        )


def columns(story: Episode[Explained]) -> tuple[str, ...]:
    """The headings of the table. If everything happened on one day, the heading contains it."""
    day = _day(story)
    when = "when (broker clock)" if day is None else f"when (broker clock, {day})"
    return "offset", "written by", when, "record", "state after", ""


def lines(story: Episode[Explained], *, is_short: bool = False) -> list[Row]:
    """The lines of the table. `is_short`: the two times between which something was written are one cell without
    words."""
    day, heads = _day(story), columns(story)
    place = f"{story.outcome.verdict['topic']}-{story.outcome.verdict['partition']}"
    rows = []
    for event in story.events:
        offsets, by = "", event.written_by
        if event.log == place:
            offsets = str(event.offset) if event.offset == event.last_offset else f"{event.offset}–{event.last_offset}"
        elif event.offset is not None:
            by = f"{event.log} @{event.offset}"
        mark = f"<-- {event.mark}" if event.mark else ""
        cells = (offsets, by, _when(event, day, is_short=is_short), event.record, event.state_after, mark)
        rows.append(dict(zip(heads, cells, strict=True)))
    return rows


def _day(story: Episode[Explained]) -> str | None:
    times = (at for event in story.events for at in (event.after_ms, event.before_ms))
    return the_day(precise_time(at) for at in times if at is not None)


def _when(event: Event, day: str | None, *, is_short: bool) -> str:
    after, before = (
        "" if ms is None else precise_time(ms).removeprefix(f"{day} ") for ms in (event.after_ms, event.before_ms)
    )
    if event.offset is None:
        return ""
    if after and before and event.after_ms == event.before_ms:
        return after
    if after and before:
        return short_span(after, before) if is_short else f"between {after} and {before}"
    return f"before {before}" if before else f"after {after}" if after else "not known"


def short_span(after: str, before: str) -> str:
    """Two times as one: 07:19:36–37, 07:19:36–07:21:05, or in milliseconds of one second."""
    if after[:-5] == before[:-5]:
        return f"{after.removesuffix('Z')}–{before[-5:-1]}"
    low, high = after[:-5], before[:-5]
    is_of_one_minute = len(low) == len(high) == len("07:19:36") and low[:6] == high[:6]
    return f"{low}–{high[6:] if is_of_one_minute else high}"


def _head(story: Episode[Explained]) -> str:
    row = story.outcome.verdict
    where = f"{printable(row['topic'])}-{row['partition']}"
    owner = "no transactional id known" if row["transactional_id"] is None else printable(row["transactional_id"])
    who = (
        f"{where} from offset {row['start_offset']}   producer {row['producer_id']} epoch {row['producer_epoch']}  "
        f" {owner}"
    )
    run = f"as of {utc_time(story.as_of_ms)}, run {printable(story.run_id)}"
    return f"{who}\ncluster {printable(story.cluster)}, {run}\n\n"


def _tail(explained: Explained, as_of_ms: int, width: int = WIDTH) -> str:
    """The conclusions and the records that support them. Sentences are wrapped, commands and records are not."""
    row = explained.verdict
    out = folded(f"  left out: {printable('; '.join(explained.left_out))}", width) if explained.left_out else []
    out += ["", f"{row['verdict']}  {row['reason']}"]
    proof = row["broker_clock_age_ms"]
    proven = "no broker's clock proves an age" if proof is None else f"open for {duration(proof)} by brokers' clocks"
    blocked = (
        f"{counted(row['blocked_offsets'] or 0, 'offset')}, {size(row['blocked_bytes'])} behind its start, since"
        f" {since(row)}"
    )
    held = (
        ("holds", blocked) if explained.holder is None else ("waits", f"{behind_holder(explained.holder)}; {blocked}")
    )
    says = [
        ("why", row["explanation"]),
        ("live", _LIVE[row["kafka_find_hanging"]]),
        ("age", f"last write {last_write(row)}; {proven}"),
        held,
        *([("ends", ends)] if (ends := ends_text(row["ends_by"], as_of_ms)) else []),
        *(
            ("cause", f"{each['likelihood'].lower()}: {each['cause']}; {each['evidence']}")
            for each in row["causes"] or ()
        ),
    ]
    for label, text in says:
        out += _wrapped(width, label, text)
    out += _others(explained, width)
    out += _remedy(explained, width)
    out += [line for text in (*_copies(explained), *_safety(row)) for line in folded(text, width)]
    out += ["", "RECORDS, as kafka-dump-log.sh prints them"] if explained.evidence else []
    for each in explained.evidence:
        place = f"{printable(each['topic'])}-{each['partition']}"
        out += folded(f"  {place} offset {each['offset']}: {printable(each['says'])}", width)
        out += [f"    {printable(line)}" for line in each["printed"]]
    return "".join(f"{line}\n" for line in out)


def _others(explained: Explained, width: int) -> list[str]:
    """Where else the transaction is open, and the command that shows it whole."""
    places = [f"{printable(row['topic'])}-{row['partition']}@{row['start_offset']}" for row in explained.others]
    if not places:
        return []
    more = f" and {len(places) - PLACES} more" if len(places) > PLACES else ""
    named = _wrapped(width, "also", f"open on {', '.join(places[:PLACES])}{more}")
    return [*named, *_further(explained, "transaction", str(explained.verdict["producer_id"]))]


def _further(explained: Explained, command: str, *places: str) -> list[str]:
    """A command of txn-audit, in one piece; none for the tables of a catalog, which it cannot read."""
    return [f"{'':{INDENT}}{own_command(explained.tables, command, places)}"] if "/" in explained.tables else []


def _for_programs(story: Episode[Explained]) -> dict[str, Any]:
    """The whole story for programs. Instants are ISO-8601, and epoch ms in fields whose names end with `_ms`."""
    explained = story.outcome
    return {
        "cluster": story.cluster,
        "run_id": story.run_id,
        "as_of_ms": story.as_of_ms,
        "verdict": _with_instants({name: value for name, value in explained.verdict.items() if name != "evidence"}),
        "steps": [
            {
                "log": "" if event.offset is None else event.log,
                "first_offset": event.offset,
                **{name: getattr(event, name) for name in _STEP},
                "is_open": bool(event.mark),
            }
            for event in story.events
        ],
        "left_out": list(explained.left_out),
        "also_open": list(explained.others),
        "evidence": [dict(each) for each in explained.evidence],
        "copies": [_with_instants(each) for each in explained.copies],
    }


_STEP: Final = ("last_offset", "written_by", "after_ms", "before_ms", "record", "state_after")

#: Fields of the story that are epoch ms here, and ISO-8601 for programs.
_INSTANTS: Final = ("last_timestamp", "blocks_since", "ends_by", "first_seen", "known_until")


def _with_instants(row: Mapping[str, Any]) -> Row:
    instants = {name: instant_json(row[name]) for name in _INSTANTS if row.get(name) is not None}
    return {**row, **instants}


def _copies(explained: Explained) -> list[str]:
    """The copies that the verdict depends on, and the instant up to which each is known."""
    out = ["", "COPIES on which this verdict depends"] if explained.copies else []
    for copy in explained.copies:
        place = f"{printable(copy['topic'])}-{copy['partition']}"
        if copy["role"] is None:
            out.append(f"  {place}   not captured")
            continue
        judged = "judged: " if copy["is_judged"] else ""
        until = copy["known_until"]
        current = "not known how current" if until is None else f"up to date as of {utc_time(until)}"
        which = f"{_ROLES[Role(copy['role'])]}{_ENDS[End(copy['ends'])]}"
        out.append(f"  {place}   {printable(copy['source'])}   {judged}{which}, {current}")
    return out


#: Role and end of a copy -> in words.
_ROLES: Final[Mapping[Role, str]] = {
    Role.LEADER: "the leader's copy",
    Role.LAST_LEADER: "the last leader's copy",
    Role.FURTHEST: "the copy that reaches furthest",
    Role.OTHER: "another copy",
}
_ENDS: Final[Mapping[End, str]] = {
    End.WHOLE: "",
    End.TORN: " that ends inside a batch",
    End.SHORT: " without its newest records",
}


def _safety(row: Row) -> list[str]:
    """The proof that an abort is safe: each statement with a tick and its witnesses, or with "!" and what is
    missing."""
    if not row["safety"]:
        return []
    out = ["", "SAFE TO ABORT only if all is proven"]
    for proof in row["safety"]:
        out.append(f"  [{'x' if proof['holds'] else '!'}] {told(proof['says'])}")
        out += [f"        {told(witness)}" for witness in proof["witnesses"] or ()]
    return out


#: kafka_find_hanging -> in words.
_LIVE: Final[Mapping[bool | None, str]] = {
    True: "find-hanging would print it, too",
    False: "find-hanging would not print it",
    None: "nobody can say whether find-hanging would print it: coordinator partitions are missing",
}


def _remedy(explained: Explained, width: int) -> list[str]:
    row = explained.verdict
    if row["abort_command"] is None:
        needed, listed, _ = needed_for(row).partition(" (collect-plan)")
        settles = [
            *(_wrapped(width, "capture", needed) if needed else []),
            *(_further(explained, "collect-plan") if listed else []),
        ]
        return [*_wrapped(width, "do not", by_hand(row["do_not_abort_because"])), *settles]
    if row["do_not_abort_because"] is not None:
        return [*_wrapped(width, "not yet", told(row["do_not_abort_because"])), *_command("then", row, width)]
    decided = [] if row["safe_to_abort"] else _wrapped(width, "as", AS_DECIDED)
    return [*decided, *_command("do", row, width)]


def _command(label: str, row: Row, width: int) -> list[str]:
    return command_lines(f"  {label:<{_LABEL}}{printable(row['abort_command'])}", width, INDENT)
