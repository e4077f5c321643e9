"""The stories as text: events in a table, and what the audit concluded below. It decides nothing."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

from txnlib.ask.command_output import CommandOutput
from txnlib.ask.entries import PLACES, behind_holder, last_write, producer, safety, since, step_of
from txnlib.ask.events import CLIENT, Event
from txnlib.ask.explain import Explained
from txnlib.ask.grid import INDENT, WIDTH, beside, command_lines, fold, folded, instant_json
from txnlib.ask.own_command import own_command
from txnlib.ask.pending_commits import groups_text
from txnlib.ask.queries import Row, StoredRun, column_names
from txnlib.ask.story import Story, Timeline, output_of, timeline_of
from txnlib.ask.words import ahead, ends_text, where
from txnlib.core.copies import End, Role
from txnlib.core.display import (
    at_offset,
    counted,
    duration,
    elapsed,
    offset_text,
    precise_time,
    printable,
    size,
    some_of,
    told,
    utc_time,
)

# ---- What the texts share


def the_day(times: Iterable[int | None]) -> str | None:
    """The day of instants, if it is the same one."""
    days = {precise_time(at)[:10] for at in times if at is not None}
    return days.pop() if len(days) == 1 else None


def head_of(story: Story, *who: str, more: str = "") -> str:
    """Whose story it is, and of which run."""
    run = f"cluster {printable(story.cluster)}, as of {utc_time(story.as_of_ms)}, run {printable(story.run_id)}{more}"
    return f"{'   '.join(filter(None, who))}\n{run}\n\n"


def owner_of(row: Row) -> str:
    return "no transactional id known" if row["transactional_id"] is None else printable(row["transactional_id"])


def for_programs(story: Story, **fields: Any) -> dict[str, Any]:
    return {"cluster": story.cluster, "run_id": story.run_id, "as_of_ms": story.as_of_ms, **fields}


# ---- The story of one open transaction


_LABEL: Final = 9


@output_of.register
def output_of_explained(story: Explained) -> CommandOutput:
    """The story as a table, with the verdict below it."""
    heads, row = columns(story), story.verdict
    return CommandOutput(
        heads,
        lines(story),
        people=lines(story, is_short=True),
        kept=heads,
        head=head_of(story, f"{where(row)} from offset {row['start_offset']}", producer(row), owner_of(row)),
        tail=lambda width: _explained_tail(story, width),
        whole=lambda: _explained_for_programs(story),
    )


def columns(story: Explained) -> tuple[str, ...]:
    """The headings of the table. If everything happened on one day, the heading contains it."""
    day = _day(story)
    when = "when (broker clock)" if day is None else f"when (broker clock, {day})"
    return "offset", "written by", when, "record", "state after", ""


def lines(story: Explained, *, is_short: bool = False) -> list[Row]:
    """The lines of the table. `is_short`: the two times between which something was written are one cell without
    words."""
    day, heads = _day(story), columns(story)
    place = f"{story.verdict['topic']}-{story.verdict['partition']}"
    rows = []
    for event in story.events:
        offsets, by = "", event.written_by
        if event.log == place:
            offsets = str(event.offset) if event.offset == event.last_offset else f"{event.offset}–{event.last_offset}"
        elif event.offset is not None:
            by = f"{event.log} {at_offset(event.offset)}"
        mark = f"<-- {event.mark}" if event.mark else ""
        cells = (offsets, by, _when(event, day, is_short=is_short), event.record, event.state_after, mark)
        rows.append(dict(zip(heads, cells, strict=True)))
    return rows


def _day(story: Explained) -> str | None:
    return the_day(at for event in story.events for at in (event.after_ms, event.before_ms))


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


def _explained_tail(explained: Explained, width: int = WIDTH) -> str:
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
        *([("groups", text)] if (text := groups_text(row)) else []),
        *([("ends", ends)] if (ends := ends_text(row["ends_by"], explained.as_of_ms)) else []),
        *(
            ("cause", f"{each['likelihood'].lower()}: {each['cause']}; {each['evidence']}")
            for each in row["causes"] or ()
        ),
    ]
    for label, text in says:
        out += beside(label, text, width, _LABEL)
    out += _others(explained, width)
    out += _remedy(explained, width)
    out += [line for text in (*_copies(explained), *_safety(row)) for line in folded(text, width)]
    out += ["", "RECORDS, as kafka-dump-log.sh prints them"] if explained.evidence else []
    for each in explained.evidence:
        out += folded(f"  {where(each)} {offset_text(each['offset'])}: {printable(each['says'])}", width)
        out += [f"    {printable(line)}" for line in each["printed"]]
    return "".join(f"{line}\n" for line in out)


def _others(explained: Explained, width: int) -> list[str]:
    """Where else the transaction is open, and the command that shows it whole."""
    places = [f"{where(row)}@{row['start_offset']}" for row in explained.others]
    if not places:
        return []
    named = beside("also", f"open on {some_of(places, PLACES)}", width, _LABEL)
    return [*named, *further(explained.tables, "transaction", str(explained.verdict["producer_id"]))]


def further(tables: str, command: str, *places: str) -> list[str]:
    """A command of txn-audit, in one piece; none for the tables of a catalog, which it cannot read."""
    return [f"{'':{INDENT}}{own_command(tables, command, places)}"] if "/" in tables else []


def _explained_for_programs(story: Explained) -> dict[str, Any]:
    """The whole story for programs. Instants are ISO-8601, and epoch ms in fields whose names end with `_ms`."""
    return for_programs(
        story,
        verdict=with_instants({name: value for name, value in story.verdict.items() if name != "evidence"}),
        steps=[
            {
                "log": "" if event.offset is None else event.log,
                "first_offset": event.offset,
                **{name: getattr(event, name) for name in _STEP},
                "is_open": bool(event.mark),
            }
            for event in story.events
        ],
        left_out=list(story.left_out),
        also_open=list(story.others),
        evidence=[dict(each) for each in story.evidence],
        copies=[with_instants(each) for each in story.copies],
    )


_STEP: Final = ("last_offset", "written_by", "after_ms", "before_ms", "record", "state_after")

#: Fields of the story that are epoch ms here, and ISO-8601 for programs.
_INSTANTS: Final = (
    "last_timestamp",
    "blocks_since",
    "ends_by",
    "first_seen",
    "known_until",
    "safe_from",
    "marked",
    "decided",
)


def with_instants(row: Mapping[str, Any]) -> Row:
    instants = {name: instant_json(row[name]) for name in _INSTANTS if row.get(name) is not None}
    return {**row, **instants}


def _copies(explained: Explained) -> list[str]:
    """The copies that the verdict depends on, and the instant up to which each is known."""
    out = ["", "COPIES on which this verdict depends"] if explained.copies else []
    for copy in explained.copies:
        if copy["role"] is None:
            out.append(f"  {where(copy)}   not captured")
            continue
        judged = "judged: " if copy["is_judged"] else ""
        until = copy["known_until"]
        current = "not known how current" if until is None else f"up to date as of {utc_time(until)}"
        which = f"{_ROLES[Role(copy['role'])]}{_ENDS[End(copy['ends'])]}"
        out.append(f"  {where(copy)}   {printable(copy['source'])}   {judged}{which}, {current}")
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
    out: list[str] = []
    for label, text in safety(row):
        needed, listed, _ = text.partition(" (collect-plan)")
        out += beside(label, needed, width, _LABEL) if needed else []
        out += further(explained.tables, "collect-plan") if listed else []
    if row["abort_command"] is not None:
        step = step_of(row, row["abort_command"])
        out += beside(step.label, step.wait, width, _LABEL) if step.wait else []
        label = "" if step.wait else step.label
        out += command_lines(f"  {label:<{_LABEL}}{printable(step.command)}", width, INDENT)
    return out


# ---- The history of a partition or of an id


@output_of.register
def output_of_timeline(history: Timeline) -> CommandOutput:
    """One row per event. For people, the event, its place and its time are a cell each."""
    day = the_day(event.at_ms for event in history.events)
    when = "when" if day is None else f"when ({day})"
    rows = [row | _cells(event, when, day) for event, row in zip(history.events, history.rows, strict=True)]
    has_stable_offset = any(event.last_stable_offset is not None for event in history.events)
    who = "transactional_id" if has_stable_offset else "producer"
    stable = ("lso", "transactional_id") if has_stable_offset else ()
    has_client_times = any(event.clock == CLIENT for event in history.events)
    clocks = "; times are brokers', with ? a client's" if has_client_times else "; times are brokers'"
    return CommandOutput(
        COLUMNS,
        rows,
        shown=(when, "where", "what", *stable, "producer", "detail"),
        kept=(when, "where", "what", who, "detail"),
        head=head_of(history, printable(history.subject), more=clocks),
        tail=partial(fold, _timeline_tail(history)),
    )


def answer_timeline(run: StoredRun, options: Namespace) -> CommandOutput:
    """The events of a partition or of a transactional id. Raises UsageError if the run contains neither."""
    return output_of_timeline(timeline_of(run, options.where, options.last))


#: The columns for programs.
COLUMNS: Final = column_names(
    "at_ms clock log offset event transactional_id producer_id producer_epoch last_stable_offset detail"
)


def _cells(event: Event, when: str, day: str | None) -> Row:
    time = "not known" if event.at_ms is None else precise_time(event.at_ms).removeprefix(f"{day} ")
    return {
        when: f"{time} ?" if event.clock == CLIENT else time,
        "where": event.log if event.offset is None else f"{event.log} {at_offset(event.offset)}",
        "lso": event.last_stable_offset,
        "producer": None if event.producer_id is None else f"{event.producer_id} epoch {event.producer_epoch}",
        "what": f"{event.event}  <-- {event.mark}" if event.mark else event.event,
    }


def _timeline_tail(timeline: Timeline) -> str:
    if not timeline.is_of_partition:
        earlier = timeline.earlier
        return f"\nleft out: {counted(earlier, 'earlier transaction')} (--last N shows more)\n" if earlier else ""
    left_out = []
    if timeline.earlier:
        left_out.append(f"{counted(timeline.earlier, 'transaction')} that ended before (--last N shows more)")
    if timeline.later_open:
        left_out.append(f"{counted(timeline.later_open, 'open transaction')} beginning behind those shown")
    return (f"\nleft out: {'; '.join(left_out)}\n" if left_out else "\n") + _offsets(
        timeline.partition, timeline.as_of_ms
    )


def _offsets(row: Row | None, as_of_ms: int) -> str:
    """The offsets of the partition at the instant of the run."""
    if row is None:
        return ""
    line = f"at {utc_time(as_of_ms)}: last stable offset {row['last_stable_offset']}"
    end = f"the high watermark {row['high_watermark']}"
    if row["blocking_producer_id"] is None:
        return f"{line}, {end}; {'what holds it is not known' if row['lag_offsets'] else 'nothing holds it'}\n"
    age = "" if row["lag_ms"] is None else f"; its record is {elapsed(row['lag_ms'])} old by its own time"
    return (
        f"{line}, {counted(row['lag_offsets'], 'offset')} behind {end}{age}; held by {ahead(row)},"
        f" {row['blocking_verdict']}\n"
    )
