"""The entries of a report: one transaction, or those of one owner, in full or in a line; on the page, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from txnlib.ask.broken_transactions import TransactionOnPartitions
from txnlib.ask.collect_plan import needed_for
from txnlib.ask.rows import Row
from txnlib.ask.summary import IN_ONE_CARD, Summary
from txnlib.core.display import BOOTSTRAP, counted, duration, printable, size, told, utc_time
from txnlib.core.kafka_commands import MS_PER_MINUTE
from txnlib.core.verdicts.abort_plan import PERMISSIONS

if TYPE_CHECKING:
    from txnlib.ask.acknowledgements import Acknowledged, Acknowledgement

_LABEL: Final = 9
#: Columns before the text of a label: the indentation of lines that continue it.
INDENT: Final = 2 + _LABEL
SHOWN_CAUSES: Final = 2
SHOWN_GROUPS: Final = 3
#: A line; or a line to wrap, with the indentation of its continuation.
Line = str | tuple[str, int]

#: Why an abort by hand is right although a coordinator decided.
AS_DECIDED: Final = (
    "decided: its coordinator decided ABORT, the partition refuses its marker, and an abort by hand writes the same"
)


@dataclass(frozen=True, slots=True)
class EntryStep:
    """A command. `must_print` is what a check must show; empty for the step itself."""

    #: before, do, or (on brokers before 3.0), then (not yet), after.
    label: str
    command: str
    must_print: str = ""
    #: Whether it is not to be run yet.
    is_for_later: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """Open transactions that are handled together. Text is printable; commands are as they are."""

    title: str
    who: Sequence[str]
    #: Label -> sentence; a label may come again.
    facts: Sequence[tuple[str, str]]
    steps: Sequence[EntryStep]
    #: Whether a step is an abort by hand, which is checked before and after.
    is_by_hand: bool
    is_new: bool


def entry(section: str, rows: Sequence[Row], summary: Summary) -> Entry:
    """The entry of a card (`summary.cards`)."""
    first = rows[0]
    who = [producer(first)]
    if section in IN_ONE_CARD:
        title = owner(first)
        timeout = (
            "none: two-phase commit" if first["is_two_phase_commit"] else duration(first["transaction_timeout_ms"])
        )
        who += [
            str(first["coordinator_state"]),
            f"timeout {timeout}",
            f"coordinator __transaction_state-{first['coordinator_partition']}",
        ]
    else:
        title = f"{where(first)} offset {first['start_offset']}"
        who.append(owner(first))
    began = utc_time(first["transaction_start"])
    because = first["do_not_abort_because"]
    is_news = section in IN_ONE_CARD and began != utc_time(_oldest(rows)["blocks_since"])
    facts = [
        ("why", told(first["explanation"])),
        *_effects_on_consumers(rows, is_placed=section not in IN_ONE_CARD),
        *[("waiting", text) for row in rows if (text := waiting(row))],
        *[
            ("cause", f"{each['likelihood'].lower()}: {told(each['cause'])}")
            for each in (first["causes"] or ())[:SHOWN_CAUSES]
        ],
        *([("began", f"{began} by its coordinator")] if is_news else []),
        ("seen", seen(first)),
        *_safety(first),
        *([] if first["effect"] is None else [("effect", printable(first["effect"]))]),
        # Without what is already said, and without permissions, which are in the plan.
        *(
            ("note", told(note))
            for note in first["notes"] or ()
            if note != because and not note.startswith(PERMISSIONS)
        ),
    ]
    is_by_hand = first["abort_command"] is not None
    return Entry(title, who, facts, _steps(first), is_by_hand, _is_new(first, summary))


def _is_new(row: Row, summary: Summary) -> bool:
    """Whether this audit is the first that saw the transaction, and not the first of its cluster, to which all are
    new."""
    return summary.earlier_ms is not None and bool(row["runs_seen"] == 1)


def by_hand(because: object) -> str:
    """Why there is no abort by hand, as the end of a sentence that begins with its label, "do not"."""
    return f"abort by hand, because {told(because)}"


def _safety(row: Row) -> list[tuple[str, str]]:
    """Whether it may be aborted by hand, and why or why not."""
    because = row["do_not_abort_because"]
    if row["abort_command"] is None:
        needed = needed_for(row)
        return [("do not", by_hand(because)), *([("capture", needed)] if needed else [])]
    if row["safe_to_abort"]:
        return [
            ("safe", f"yes: open for {duration(row['broker_clock_age_ms'])} by brokers' clocks, and nobody will end it")
        ]
    return [("as", AS_DECIDED)] if because is None else [("not yet", told(because))]


def _steps(row: Row) -> list[EntryStep]:
    """The checks, and the step between them; or the step alone, if it is not to be done yet."""
    command, old = row["abort_command"] or row["command"], row["command_for_old_brokers"]
    if command is None:
        return []
    is_due = row["abort_command"] is None or row["safe_to_abort"] or row["do_not_abort_because"] is None
    step = [EntryStep("do" if is_due else "then", command, is_for_later=not is_due)]
    if old is not None and row["abort_command"] is not None:
        step.append(EntryStep("or", old, is_for_later=not is_due))
    if not is_due:
        return step
    before, after = (
        [EntryStep(label, each["command"], printable(each["must_print"])) for each in row[label] or ()]
        for label in ("before", "after")
    )
    return [*before, *step, *after[:1]]


def entry_lines(section: str, rows: Sequence[Row], summary: Summary) -> list[Line]:
    """An entry on about a dozen lines: with its first cause, and without the checks of what is not an abort by hand.

    Commands stay in one piece. The page, and `txn-audit abort-plan`, have the rest.
    """
    shown = entry(section, rows, summary)
    lines: list[Line] = [(f"  {'   '.join([shown.title, *shown.who])}{'   new' if shown.is_new else ''}", INDENT)]
    facts = [fact for fact in shown.facts if fact[0] != "seen" or rows[0]["runs_seen"] > 1]
    causes = [fact for fact in facts if fact[0] == "cause"]
    for fact in facts:
        if fact not in (causes if section in IN_ONE_CARD else causes[1:]):
            lines += labelled(*fact)
    for step in shown.steps:
        if not step.must_print:
            old = "   (brokers before 3.0)" if step.label == "or" else ""
            lines += labelled(step.label, f"{printable(step.command)}{old}")
        elif shown.is_by_hand:
            lines += labelled(step.label, printable(step.command))
            lines += labelled("", f"must show: {step.must_print}")
    return lines


def brief(rows: Sequence[Row], summary: Summary) -> list[Line]:
    """The transactions of one owner in one line: where, whose, what it holds since when."""
    first = rows[0]
    places = ", ".join(f"{where(row)} offset {row['start_offset']}" for row in rows[:PLACES])
    places += f" and {len(rows) - PLACES} more" if len(rows) > PLACES else ""
    new = "   new" if _is_new(first, summary) else ""
    return [(f"  {places}   {producer(first)}   {owner(first)}{new}   {does(rows)}: {first['reason']}", INDENT)]


def does(rows: Sequence[Row]) -> str:
    """What the transactions of one owner hold, or which one they wait behind."""
    holders = [row for row in rows if is_holder(row)]
    if not holders:
        return f"waits behind {ahead(rows[0])}"
    behind = _next(holders[0]) if len(rows) == 1 else ""
    held = sum(_extent(row)[0] for row in holders)
    return f"holds {counted(held, 'offset')} since {since(_oldest(holders))}{f', behind it {behind}' if behind else ''}"


def since(row: Row) -> str:
    """Since when a transaction is open on its partition, and by which clock."""
    return f"{utc_time(row['blocks_since'])} by {clock(is_brokers=row['broker_clock_age_ms'] is not None)}"


def clock(*, is_brokers: bool) -> str:
    return "brokers' clocks" if is_brokers else "its client's clock"


def owner(row: Row) -> str:
    if row["transactional_id"] is None:
        return "no transactional id known"
    own, application = printable(row["transactional_id"]), printable(row["application"])
    return own if own == application else f"{own} of {application}"


def producer(row: Row) -> str:
    return f"producer {row['producer_id']} epoch {row['producer_epoch']}"


def where(row: Row) -> str:
    return f"{printable(row['topic'])}-{row['partition']}"


def is_holder(row: Row) -> bool:
    """Whether the transaction holds the last stable offset of its partition; if not, another one holds it."""
    return row["blocking_producer_id"] in (None, row["producer_id"])


def _extent(row: Row) -> tuple[int, int | None]:
    """The offsets and bytes that a transaction blocks: all behind it, if it holds the last stable offset."""
    if row["blocking_producer_id"] is not None and is_holder(row):
        return row["lag_offsets"] or 0, row["lag_bytes"]
    return row["blocked_offsets"] or 0, row["blocked_bytes"]


def _effects_on_consumers(rows: Sequence[Row], *, is_placed: bool) -> list[tuple[str, str]]:
    """What consumers do not get, since when; and what comes next there. `is_placed`: whether the title names the only
    partition."""
    holders, others = [row for row in rows if is_holder(row)], [row for row in rows if not is_holder(row)]
    if len(rows) > 1 or not is_placed:
        known = len(rows[0]["places"] or ())
        held = [("holds", f"{_listed(holders)}; since {since(_oldest(holders))}")] if holders else []
        waits = [("waits", f"{_listed(others)}; behind {ahead(others[0])}")] if others else []
        return [*held, *waits, *([("also", counted(known - len(rows), "more partition"))] if known > len(rows) else [])]
    row, (offsets, bytes_) = rows[0], _extent(rows[0])
    extent = f"{counted(offsets, 'offset')}, {size(bytes_)}"
    if others:
        return [("waits", f"{behind_holder(row)}; behind its own start: {extent}")]
    stable = row["start_offset"] if row["last_stable_offset"] is None else row["last_stable_offset"]
    at = "" if stable == row["start_offset"] else f" at offset {stable}"
    holds = f"read_committed consumers{at} since {since(row)}: {extent}; compaction too"
    behind = _next(row)
    return [
        ("holds", holds),
        *([("behind", f"{behind}, which holds the partition once this one is ended")] if behind else []),
    ]


def _listed(rows: Sequence[Row]) -> str:
    named = [f"{where(row)}@{row['start_offset']} ({counted(_extent(row)[0], 'offset')})" for row in rows[:PLACES]]
    return ", ".join(named) + (f" and {len(rows) - PLACES} more" if len(rows) > PLACES else "")


def _oldest(rows: Sequence[Row]) -> Row:
    timed = [row for row in rows if row["blocks_since"] is not None]
    return min(timed, key=lambda row: row["blocks_since"]) if timed else rows[0]


def _next(row: Row) -> str:
    """What holds the partition once this one has ended; empty if nothing does, or if another one holds it now."""
    if row["next_blocking_offset"] is None or not is_holder(row):
        return ""
    named = named_producer(row["next_blocking_producer_id"], row["next_blocking_transactional_id"])
    return f"{named} from offset {row['next_blocking_offset']} on"


def behind_holder(row: Row) -> str:
    """Behind which transaction others wait. `row`: has the columns of `partitions`."""
    return f"behind {ahead(row)}, which holds {where(row)} from offset {row['last_stable_offset']} on"


def ahead(row: Row) -> str:
    """The transaction that holds the partition."""
    return named_producer(row["blocking_producer_id"], row["blocking_transactional_id"])


def named_producer(producer_id: int, transactional_id: str | None) -> str:
    """A producer, with its transactional id if that is known."""
    return f"producer {producer_id}" + ("" if transactional_id is None else f" ({printable(transactional_id)})")


def last_write(row: Row) -> str:
    """The age of the last write, and the clock that tells it."""
    by = f"by {'the broker' if row['age_basis'] == 'BROKER_CLOCK' else 'its client'}'s clock"
    if row["duration_minutes"] is None:
        return f"{'without a time' if row['last_timestamp_ms'] is None else 'at a time that no clock shows,'} {by}"
    if row["duration_minutes"] < 0:
        return f"at a time that is still to come {by}"
    if row["duration_minutes"] == 0:
        return f"less than a minute ago {by}"
    return f"{duration(row['duration_minutes'] * MS_PER_MINUTE)} ago {by}"


def seen(row: Row) -> str:
    """When the transaction last wrote, and which audits have seen it."""
    runs = row["runs_seen"]
    audits = (
        "first seen by this audit" if runs <= 1 else f"seen by {runs} audits, first as of {utc_time(row['first_seen'])}"
    )
    return f"last write {last_write(row)}; {audits}"


def waiting(row: Row) -> str:
    groups = row["groups"] or []
    more = f" and {len(groups) - SHOWN_GROUPS} more" if len(groups) > SHOWN_GROUPS else ""
    return f"groups {', '.join(map(printable, groups[:SHOWN_GROUPS]))}{more} on {where(row)}" if groups else ""


def labelled(label: str, text: str) -> list[Line]:
    if not text:
        return []
    line = f"  {label:<{_LABEL}}{text}"
    return [line] if BOOTSTRAP in line else [(line, INDENT)]


# ---- The acknowledged part of a report: each entry with what it matches


#: Transactions to name for one entry, and entries to show of each kind.
SHOWN_MATCHES: Final = 3
SHOWN_ENTRIES: Final = 10


def acknowledged_lines(known: Acknowledged | None) -> list[Line]:
    """A section of the report; no line if no file was given."""
    if known is None:
        return []
    of_entry: dict[int, tuple[Acknowledgement, list[Row]]] = {}
    for row, entry in known.transactions.values():
        of_entry.setdefault(id(entry), (entry, []))[1].append(row)
    lines = [
        *(f"  {_transactions(rows)}: {_says(entry)}" for entry, rows in of_entry.values()),
        *(f"  {number} {entry}: {_says(entry)}" for entry, number in known.findings),
    ]
    ended = [f"  ended on {utc_time(each.until_ms)}, so this counts again: {_entry(each)}" for each in known.ended]
    idle = [f"  matches nothing, and can be removed: {_entry(each)}" for each in known.idle]
    parts: list[Line] = []
    for part in (lines, ended, idle):
        more = [f"  and {len(part) - SHOWN_ENTRIES} more"] if len(part) > SHOWN_ENTRIES else []
        parts += [(line, INDENT) for line in (*part[:SHOWN_ENTRIES], *more)]
    return ["", "ACKNOWLEDGED", *parts] if parts else []


def _transactions(rows: Sequence[Row]) -> str:
    shown = ", ".join(f"{row['verdict']} {where(row)} offset {row['start_offset']}" for row in rows[:SHOWN_MATCHES])
    return shown if len(rows) <= SHOWN_MATCHES else f"{shown} and {counted(len(rows) - SHOWN_MATCHES, 'other')}"


def _says(entry: Acknowledgement) -> str:
    return f"until {utc_time(entry.until_ms)} by {printable(entry.by)}: {printable(entry.why)}"


def _entry(entry: Acknowledgement) -> str:
    return f"{printable(entry)} ({_says(entry)})"


# ---- Transactions that are split or half-marked, as lines of the report


#: Most transactions, and most partitions of each.
SHOWN, PLACES = 5, 6


def broken_lines(broken: Sequence[TransactionOnPartitions]) -> list[Line]:
    """A line for each transaction, with its partitions."""
    if not broken:
        return []
    lines: list[Line] = ["", "SPLIT OR HALF-MARKED"]
    for each in broken[:SHOWN]:
        decided = "not decided" if each.decided_outcome == "OPEN" else f"decided {each.decided_outcome}"
        head = (
            f"  {printable(each.transactional_id)}   transaction {each.number}   producer {each.producer_id}  "
            f" {decided}: "
        )
        more = f" and {len(each.partitions) - PLACES} more" if len(each.partitions) > PLACES else ""
        lines.append((f"{head}{', '.join(map(_place, each.partitions[:PLACES]))}{more}", INDENT))
    hidden = len(broken) - SHOWN
    return [*lines, f"  and {hidden} more: the view latest_whole_transactions"] if hidden > 0 else lines


def _place(row: Row) -> str:
    marked = f"{row['outcome']} at offset {row['marker_offset']}" if row["marker_offset"] is not None else "no marker"
    return f"{where(row)} {marked} ({row['marker']})"
