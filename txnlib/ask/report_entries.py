"""The entries of a report: one transaction, or those of one owner, in full or in a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from txnlib.ask.broken_transactions import TransactionOnPartitions
from txnlib.ask.collect_plan import needed_for
from txnlib.ask.rows import Row
from txnlib.ask.summary import Summary
from txnlib.core.display import counted, duration, printable, size, utc_time
from txnlib.core.verdicts.abort_plan import PERMISSIONS
from txnlib.core.verdicts.find_hanging import MS_PER_MINUTE

if TYPE_CHECKING:
    from txnlib.ask.acknowledgements import Acknowledged, Acknowledgement

_LABEL: Final = 9
#: Columns before the text of a label: the indentation of lines that continue it.
INDENT: Final = 2 + _LABEL
SHOWN_CAUSES: Final = 2
SHOWN_GROUPS: Final = 3
#: A line; or a line to wrap, with the indentation of its continuation.
Line = str | tuple[str, int]

#: Why a marker by hand is right although a coordinator decided.
AS_DECIDED: Final = "decided: its coordinator decided ABORT, the partition refuses its marker, and a marker by hand writes the same"


def is_new(row: Row) -> bool:
    """Whether no earlier audit has seen the transaction."""
    return bool(row["runs_seen"] == 1)


def brief(rows: Sequence[Row], summary: Summary) -> list[Line]:
    """The transactions of one owner in one line: where, whose, since when."""
    first = rows[0]
    places = ", ".join(f"{where(row)} offset {row['start_offset']}" for row in rows)
    held = sum(row["blocked_offsets"] or 0 for row in rows if is_holder(row))
    does = f"holds {counted(held, 'offset')} since {since(first)}" if any(map(is_holder, rows)) else f"waits behind {_ahead(first)}"
    head = f"{places}   {producer(first)}   {owner(first)}{mark(first, summary)}"
    return [(f"  {head}   {does}: {first['reason']}", INDENT)]


def since(row: Row) -> str:
    """Since when a transaction blocks, and by which clock."""
    return f"{utc_time(row['blocks_since'])} by {clock(is_brokers=row['broker_clock_age_ms'] is not None)}"


def clock(*, is_brokers: bool) -> str:
    return "brokers' clocks" if is_brokers else "its client's clock"


def mark(row: Row, summary: Summary) -> str:
    """Says that a transaction is new, where not all are."""
    return "   new" if summary.earlier_ms is not None and is_new(row) else ""


def owner(row: Row) -> str:
    if row["transactional_id"] is None:
        return "no transactional id known"
    own, application = printable(row["transactional_id"]), printable(row["application"])
    return own if own == application else f"{own} of {application}"


def producer(row: Row) -> str:
    return f"producer {row['producer_id']} epoch {row['producer_epoch']}"


def where(row: Row) -> str:
    return f"{printable(row['topic'])}-{row['partition']}"


def transaction(row: Row, summary: Summary) -> list[Line]:
    lines: list[Line] = [
        (f"  {where(row)}   offset {row['start_offset']}   {producer(row)}   {owner(row)}{mark(row, summary)}", INDENT)
    ]
    lines += labelled("why", printable(row["explanation"]))
    lines += labelled("blocks", blocks(row))
    lines += labelled("behind", behind(row))
    lines += labelled("waiting", waiting(row))
    for cause in row["causes"][:SHOWN_CAUSES]:
        lines += labelled("cause", f"{cause['likelihood'].lower()}: {printable(cause['cause'])}")
    lines += labelled("seen", seen(row))
    if row["abort_command"] is None:
        lines += labelled("do not", f"write a marker by hand: {printable(row['do_not_abort_because'])}")
        lines += labelled("capture", needed_for(row))
        lines += labelled("do", "" if row["command"] is None else printable(row["command"]), wrap=False)
        return lines + _known_before(row)
    if row["safe_to_abort"]:
        age = duration(row["broker_clock_age_ms"])
        lines += labelled("safe", f"yes: open for {age} by the brokers' clocks, and nobody will end it")
        for label, steps in (("before", row["before"]), ("do", None), ("after", row["after"][:1])):
            for step in steps or ():
                lines += labelled(label, f"{_short(step['command'])}   must show: {printable(step['must_print'])}", wrap=False)
            if steps is None:
                lines += labelled(label, printable(row["abort_command"]), wrap=False)
                lines += labelled("or", on_old_brokers(row), wrap=False)
        return lines + _known_before(row)
    if row["do_not_abort_because"] is None:
        lines += labelled("do", printable(row["abort_command"]), wrap=False)
        return lines + labelled("as", AS_DECIDED) + _known_before(row)
    lines += labelled("not yet", printable(row["do_not_abort_because"]))
    lines += labelled("then", printable(row["abort_command"]), wrap=False)
    return lines + labelled("or", on_old_brokers(row), wrap=False)


def _known_before(row: Row) -> list[Line]:
    """What to know before a step, without what is already said and without permissions, which are in the plan."""
    lines = labelled("effect", "" if row["effect"] is None else printable(row["effect"]))
    for note in row["notes"] or ():
        if note != row["do_not_abort_because"] and not note.startswith(PERMISSIONS):
            lines += labelled("note", printable(note))
    return lines


def on_old_brokers(row: Row) -> str:
    """The other form of an abort, if the version of the brokers is unknown."""
    other = row["command_for_old_brokers"]
    return "" if other is None else f"{printable(other)}   (brokers before 3.0)"


def is_holder(row: Row) -> bool:
    """Whether the transaction blocks the last stable offset of its partition; if not, another one blocks first."""
    return row["blocking_producer_id"] in (None, row["producer_id"])


def blocks(row: Row) -> str:
    """Where consumers stop, and which transaction blocks them."""
    extent = f"{counted(row['blocked_offsets'] or 0, 'offset')}, {size(row['blocked_bytes'])}; compaction too"
    if is_holder(row):
        stable = row["start_offset"] if row["last_stable_offset"] is None else row["last_stable_offset"]
        return f"read_committed consumers at offset {stable} since {since(row)}: {extent}"
    return f"nothing yet: it waits behind {_ahead(row)}, which holds consumers at offset {row['last_stable_offset']}; then {extent}"


def _ahead(row: Row) -> str:
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
    if row["duration_minutes"] == 0:
        return f"less than a minute ago {by}"
    return f"{duration(row['duration_minutes'] * MS_PER_MINUTE)} ago {by}"


def seen(row: Row) -> str:
    """When the transaction last wrote, and which audits have seen it."""
    runs = row["runs_seen"]
    audits = "first seen by this audit" if runs <= 1 else f"seen by {runs} audits, first as of {utc_time(row['first_seen'])}"
    return f"last write {last_write(row)}; {audits}"


def whole_transaction(rows: list[Row], summary: Summary) -> list[Line]:
    first = rows[0]
    timeout = duration(first["transaction_timeout_ms"])
    head = f"{owner(first)}   {producer(first)}   {first['coordinator_state']}   timeout {timeout}{mark(first, summary)}"
    lines: list[Line] = [(f"  {head}", INDENT)]
    blocked = [counted(row["blocked_offsets"] or 0, "offset") for row in rows]
    places = ", ".join(f"{where(row)} from offset {row['start_offset']} ({each})" for row, each in zip(rows, blocked, strict=True))
    lines += labelled("blocks", places)
    lines += labelled(
        "why", f"{printable(first['explanation'])} (coordinator __transaction_state-{first['coordinator_partition']})"
    )
    lines += labelled("since", f"began {utc_time(first['transaction_start'])} by its coordinator; {seen(first)}")
    lines += labelled("waiting", ", ".join(filter(None, map(waiting, rows))))
    if first["do_not_abort_because"] is not None:
        lines += labelled("do not", f"write a marker by hand: {printable(first['do_not_abort_because'])}")
    lines += labelled("do", "" if first["command"] is None else printable(first["command"]), wrap=False)
    return lines + _known_before(first)


def _short(command: str) -> str:
    """A command of kafka-transactions.sh without its common prefix."""
    return printable(command.replace("kafka-transactions.sh --bootstrap-server $BOOTSTRAP ", ""))


def behind(row: Row) -> str:
    """The transaction that blocks the partition once this one has ended; empty unless this one blocks now."""
    if row["next_blocking_offset"] is None or row["blocking_producer_id"] != row["producer_id"]:
        return ""
    named = named_producer(row["next_blocking_producer_id"], row["next_blocking_transactional_id"])
    return f"once it is ended, {named} blocks from offset {row['next_blocking_offset']}"


def waiting(row: Row) -> str:
    groups = row["groups"] or []
    more = f" and {len(groups) - SHOWN_GROUPS} more" if len(groups) > SHOWN_GROUPS else ""
    return f"groups {', '.join(map(printable, groups[:SHOWN_GROUPS]))}{more} on {where(row)}" if groups else ""


def labelled(label: str, text: str, *, wrap: bool = True) -> list[Line]:
    if not text:
        return []
    line = f"  {label:<{_LABEL}}{text}"
    return [(line, INDENT)] if wrap else [line]


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
    parts = [line for part in (lines, ended, idle) for line in _first(part)]
    return ["", "ACKNOWLEDGED", *((line, INDENT) for line in parts)] if parts else []


def _first(lines: Sequence[str]) -> list[str]:
    hidden = len(lines) - SHOWN_ENTRIES
    return [*lines[:SHOWN_ENTRIES], *([f"  and {hidden} more entries"] if hidden > 0 else [])]


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
        head = f"  {printable(each.transactional_id)}   transaction {each.number}   producer {each.producer_id}   {decided}: "
        more = f" and {len(each.partitions) - PLACES} more" if len(each.partitions) > PLACES else ""
        lines.append((f"{head}{', '.join(map(_place, each.partitions[:PLACES]))}{more}", INDENT))
    hidden = len(broken) - SHOWN
    return [*lines, f"  and {hidden} more: the view latest_whole_transactions"] if hidden > 0 else lines


def _place(row: Row) -> str:
    marked = f"{row['outcome']} at offset {row['marker_offset']}" if row["marker_offset"] is not None else "no marker"
    return f"{where(row)} {marked} ({row['marker']})"
