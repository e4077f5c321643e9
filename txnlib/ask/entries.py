"""The entries of a report: open transactions that are handled together, with facts and steps.

Terminal and page show the same ones. Text is printable; commands are as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from txnlib.ask.collect_plan import needed_for
from txnlib.ask.pending_commits import dropped_text, groups_text
from txnlib.ask.queries import Row
from txnlib.ask.report import Report
from txnlib.ask.subject import GROUPS_TOPIC
from txnlib.ask.words import LOOKS_LATE, PREPARED, Fact, ahead, clock, ends_text, named_producer, where, which_ends
from txnlib.core.display import counted, duration, not_before, printable, size, some_of, told, utc_time
from txnlib.core.kafka_commands import MS_PER_MINUTE
from txnlib.core.rows import grouped

if TYPE_CHECKING:
    pass

#: Verdicts (or LOOKS_LATE, or PREPARED) with one entry for all transactions of an owner, who ends them together.
IN_ONE_CARD: Final = ("LATE", PREPARED, LOOKS_LATE, "OPEN")
SHOWN_CAUSES: Final = 2
SHOWN_GROUPS: Final = 3
#: Most places to name in a line.
PLACES: Final = 6
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
    #: The comment before a command that has to wait; and whether the command is not to be run yet.
    wait: str = ""
    is_for_later: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """Open transactions that are handled together."""

    title: str
    who: Sequence[str]
    #: Several facts may have the same label.
    facts: Sequence[Fact]
    steps: Sequence[EntryStep]
    #: Whether a step is an abort by hand, which is checked before and after.
    is_by_hand: bool
    is_new: bool


def cards(verdict: str, rows: Sequence[Row]) -> list[list[Row]]:
    """Transactions that are handled together: those of one owner, if the owner has to act."""
    if verdict not in IN_ONE_CARD:
        return [[row] for row in rows]
    return list(grouped(rows, lambda row: (row["transactional_id"], row["producer_id"])).values())


def entry(verdict: str, rows: Sequence[Row], report: Report) -> Entry:
    """The entry of a card (`cards`)."""
    first = rows[0]
    who = [producer(first)]
    is_of_owner = verdict in IN_ONE_CARD
    if is_of_owner:
        title = owner(first)
        is_two_phase = first["is_two_phase_commit"]
        timeout = "none: two-phase commit" if is_two_phase else duration(first["transaction_timeout_ms"])
        coordinator = f"coordinator __transaction_state-{first['coordinator_partition']}"
        who += [str(first["coordinator_state"]), f"timeout {timeout}", coordinator]
    else:
        title = f"{where(first)} offset {first['start_offset']}"
        who.append(owner(first))
    began = utc_time(first["transaction_start"])
    because = first["do_not_abort_because"]
    causes = (first["causes"] or ())[:SHOWN_CAUSES]
    is_news = is_of_owner and began != utc_time(_oldest(rows)["blocks_since"])
    ends = ends_text(first["ends_by"], report.as_of_ms)
    said = [
        ("why", told(first["explanation"])),
        *_effects_on_consumers(rows, report, is_placed=not is_of_owner),
        *[("waiting", text) for row in rows if (text := waiting(row))],
        *[("groups", text) for row in rows if (text := groups_text(row))],
        *(("cause", f"{each['likelihood'].lower()}: {told(each['cause'])}") for each in causes),
        ("began", f"{began} by its coordinator" if is_news else ""),
        ("ends", ends),
        ("seen", seen(first)),
        *safety(first),
        ("effect", _effect(first)),
        *(("note", told(note)) for note in first["notes"] or () if note != because),
    ]
    facts = [Fact(label, text) for label, text in said if text]
    return Entry(title, who, facts, _steps(first), first["abort_command"] is not None, _is_new(first, report))


def _effect(row: Row) -> str:
    """What the step does to the records, and which offset commits of groups it drops; empty if it ends nothing."""
    if row["effect"] is None:
        return ""
    dropped = dropped_text(row) if "drop" in row["effect"] else ""
    return f"{printable(row['effect'])}{f': {dropped}' if dropped else ''}"


def _is_new(row: Row, report: Report) -> bool:
    """Whether this audit is the first that saw the transaction. In the first audit of a cluster, nothing counts as
    new."""
    return report.earlier_ms is not None and bool(row["runs_seen"] == 1)


def safety(row: Row) -> list[tuple[str, str]]:
    """Whether it may be aborted by hand, and why or why not."""
    because = row["do_not_abort_because"]
    if row["abort_command"] is None:
        return [("do not", f"abort by hand, because {told(because)}"), ("capture", needed_for(row))]
    if row["safe_to_abort"]:
        age = duration(row["broker_clock_age_ms"])
        return [("safe", f"yes: open for {age} by brokers' clocks, and nobody will end it")]
    return [("as", AS_DECIDED)] if because is None else [("not yet", told(because))]


def _steps(row: Row) -> list[EntryStep]:
    """The checks before, the step, and the first check after it; only the step, if it is not to be done yet."""
    command, old = row["abort_command"] or row["command"], row["command_for_old_brokers"]
    if command is None:
        return []
    step = [step_of(row, command)]
    if old is not None and row["abort_command"] is not None:
        step.append(EntryStep("or", old, is_for_later=step[0].is_for_later))
    if step[0].is_for_later:
        return step
    before, after = (
        [EntryStep(label, each["command"], printable(each["must_print"])) for each in row[label] or ()]
        for label in ("before", "after")
    )
    return [*before, *step, *after[:1]]


def step_of(row: Row, command: str) -> EntryStep:
    """The step itself. An abort by hand that is not safe yet is for later."""
    is_due = row["abort_command"] is None or row["safe_to_abort"] or row["do_not_abort_because"] is None
    wait = "" if is_due or row["safe_from"] is None else f"# not before {not_before(row['safe_from'])}"
    return EntryStep("do" if is_due else "then", command, wait=wait, is_for_later=not is_due)


def does(rows: Sequence[Row], as_of_ms: int) -> str:
    """What the transactions of one owner hold and until when, or which one they wait behind."""
    holders = [row for row in rows if row["holds"] is not False]
    if not holders:
        return f"waits behind {ahead(rows[0])}"
    behind = _next(holders[0]) if len(rows) == 1 else ""
    held = _offsets(sum(_extent(row)[0] for row in holders), any(row.get("is_at_least") for row in holders))
    ends = ends_text(holders[0]["ends_by"], as_of_ms)
    said = f"holds {held} since {since(_oldest(holders))}{f', behind it {behind}' if behind else ''}"
    return f"{said}; {ends}" if ends else said


def brief(rows: Sequence[Row], report: Report) -> str:
    """The transactions of one owner in one line: where, whose, what it holds since when."""
    first = rows[0]
    places = some_of([f"{where(row)} offset {row['start_offset']}" for row in rows], PLACES)
    who = [places, producer(first), owner(first), *(["new"] if _is_new(first, report) else [])]
    return "   ".join([*who, f"{does(rows, report.as_of_ms)}: {first['reason']}"])


def since(row: Row) -> str:
    """Since when a transaction is open on its partition, and by which clock."""
    return f"{utc_time(row['blocks_since'])} by {clock(is_brokers=row['broker_clock_age_ms'] is not None)}"


def owner(row: Row) -> str:
    if row["transactional_id"] is None:
        return "no transactional id known"
    own, application = printable(row["transactional_id"]), printable(row["application"])
    return own if own == application else f"{own} of {application}"


def producer(row: Row) -> str:
    return f"producer {row['producer_id']} epoch {row['producer_epoch']}"


def _extent(row: Row) -> tuple[int, int | None]:
    """The offsets and bytes that a transaction blocks: all behind it, if it holds the last stable offset."""
    if row["blocking_producer_id"] is not None and row["holds"] is not False:
        return row["lag_offsets"] or 0, row["lag_bytes"]
    return row["blocked_offsets"] or 0, row["blocked_bytes"]


def _offsets(number: int, is_at_least: object) -> str:
    return f"{'at least ' if is_at_least else ''}{counted(number, 'offset')}"


def _effects_on_consumers(rows: Sequence[Row], report: Report, *, is_placed: bool) -> list[tuple[str, str]]:
    """What each transaction holds or waits for, since when, and what holds the partition next. `is_placed`: whether the
    entry's title names its only partition."""
    holders = [row for row in rows if row["holds"] is not False]
    others = [row for row in rows if row["holds"] is False]
    if len(rows) > 1 or not is_placed:
        known = len(rows[0]["places"] or ())
        held = [("holds", f"{_listed(holders)}; since {since(_oldest(holders))}")] if holders else []
        waits = [("waits", f"{_listed(others)}; behind {ahead(others[0])}")] if others else []
        return [*held, *waits, ("also", counted(known - len(rows), "more partition") if known > len(rows) else "")]
    row, (offsets, bytes_) = rows[0], _extent(rows[0])
    extent = f"{_offsets(offsets, row.get('is_at_least'))}, {size(bytes_)}"
    if others:
        ends = which_ends(row.get("holder_ends_by"), report.as_of_ms).replace(", which", " and which")
        return [("waits", f"{behind_holder(row)}{ends}; behind its own start: {extent}")]
    whom = "the groups that commit here" if row["topic"] == GROUPS_TOPIC else "read_committed consumers"
    stable = row["start_offset"] if row["last_stable_offset"] is None else row["last_stable_offset"]
    at = "" if stable == row["start_offset"] else f" at offset {stable}"
    behind = _next(row)
    return [
        ("holds", f"{whom}{at} since {since(row)}: {extent}; compaction too"),
        ("behind", f"{behind}, which holds the partition once this one is ended" if behind else ""),
    ]


def _listed(rows: Sequence[Row]) -> str:
    named = [f"{where(row)}@{row['start_offset']} ({counted(_extent(row)[0], 'offset')})" for row in rows]
    return some_of(named, PLACES)


def _oldest(rows: Sequence[Row]) -> Row:
    timed = [row for row in rows if row["blocks_since"] is not None]
    return min(timed, key=lambda row: row["blocks_since"]) if timed else rows[0]


def _next(row: Row) -> str:
    """The transaction that holds the partition once this one has ended; empty if there is none, or if another one holds
    the partition now."""
    if row["next_blocking_offset"] is None or row["holds"] is False:
        return ""
    following = named_producer(row["next_blocking_producer_id"], row["next_blocking_transactional_id"])
    return f"{following} from offset {row['next_blocking_offset']} on"


def behind_holder(row: Row) -> str:
    """The transaction that others wait behind, in words. `row`: has the columns of `partitions`."""
    return f"behind {ahead(row)}, which holds {where(row)} from offset {row['last_stable_offset']} on"


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
    named = some_of([*map(printable, groups)], SHOWN_GROUPS)
    return f"groups {named} on {where(row)}" if groups else ""


def only_step(report: Report) -> Entry | None:
    """The entry of the only hanging transaction, if it is safe to abort: its steps are few enough to stand in the
    answer. Else None."""
    hanging = report.transactions.get("HANGING", ())
    is_one = len(hanging) == 1 and report.number_of_rows("HANGING") == 1
    return entry("HANGING", hanging, report) if is_one and hanging[0]["safe_to_abort"] else None
