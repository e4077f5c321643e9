"""One transaction as text: what is wrong with it, its coordinator's records, and each of its partitions."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from dataclasses import asdict
from typing import Any, Final

from txnlib.ask.command_output import CommandOutput
from txnlib.ask.entries import PLACES
from txnlib.ask.events import COORDINATOR, Event
from txnlib.ask.grid import INDENT, LABEL, WIDTH, beside, command_lines, fold, folded
from txnlib.ask.queries import Row, StoredRun, column_names
from txnlib.ask.report import meaning
from txnlib.ask.story import WHOLE, output_of
from txnlib.ask.story_text import for_programs, further, head_of, owner_of, with_instants
from txnlib.ask.stuck_ids import STUCK_ID
from txnlib.ask.subject import equal, known_subject, open_place, place_in
from txnlib.ask.transaction import OUTCOME, TransactionStory, transaction_at, whole_transaction
from txnlib.ask.words import where
from txnlib.core.display import BOOTSTRAP, at_offset, counted, precise_time, printable, some_of
from txnlib.core.kafka_commands import refusal
from txnlib.core.rows import grouped
from txnlib.errors import UsageError


@output_of.register
def output_of_transaction(whole: TransactionStory) -> CommandOutput:
    """The partitions as a table, the coordinator's records above it, and what is missing below."""
    rows = whole.partitions or whole.unexplained
    return CommandOutput(
        OUTCOME,
        list(map(with_instants, rows)),
        people=[_partition_line(row) for row in rows],
        shown=_SHOWN,
        head=lambda width: _transaction_head(whole, width),
        tail=lambda width: _transaction_tail(whole, width),
        whole=lambda: _for_programs(whole),
    )


_SHOWN: Final = ("partition", "marker", "marker_offset", "outcome", "records", "written by a broker at")
_WIDE_LABEL: Final = 13


def _partition_line(row: Row) -> Row:
    return row | {
        "partition": where(row),
        "written by a broker at": None if row["marked"] is None else precise_time(row["marked"]),
    }


def _transaction_head(whole: TransactionStory, width: int) -> str:
    of, epoch = whole.producer_id, "" if whole.producer_epoch is None else f" epoch {whole.producer_epoch}"
    number = "" if whole.number is None else f"transaction {whole.number}"
    owner = owner_of({"transactional_id": whole.transactional_id})
    titles = head_of(whole, owner, number, "" if of is None else f"producer {of}{epoch}")
    out = []
    if whole.outcome is not None:
        out.append(f"{whole.outcome.value}  {whole.meaning}\n\n")
    if whole.records:
        records = [f"{_record(event)}\n" for event in whole.events if event.clock == COORDINATOR]
        out += [f"AT ITS COORDINATOR, __transaction_state-{whole.coordinator_partition}\n", *records, "\n"]
    if not whole.partitions and whole.number is not None:
        out.append(_LOST)
    out.append("ON ITS PARTITIONS\n" if whole.partitions else "ON PARTITIONS, without a record of its coordinator\n")
    return "".join([fold(titles, width), *_warnings(whole, width), fold("".join(out), width)])


def _warnings(whole: TransactionStory, width: int) -> list[str]:
    """What is wrong, before what became of the transaction: its id is stuck, or something of its producer is open."""
    out = []
    if whole.stuck is not None:
        state = whole.stuck.for_how_long(whole.as_of_ms)
        out += folded(f"{STUCK_ID}  {state}, and it can begin no other transaction", width, INDENT)
        for fact in whole.stuck.facts():
            line = f"  {fact.label:<{LABEL}}{fact.says}"
            out += command_lines(line, width, INDENT) if BOOTSTRAP in fact.says else folded(line, width, INDENT)
    for verdict, rows in grouped(whole.warned, lambda row: row["verdict"]).items():
        places = some_of([f"{where(row)} from offset {row['start_offset']}" for row in rows], PLACES)
        out += folded(f"{verdict}  {meaning(verdict, 1)}: {places}", width, INDENT)
        for why in dict.fromkeys(row["explanation"] for row in rows):
            out += beside("why", why, width, LABEL)
        first = rows[0]
        if refusal(first["topic"]) is None:
            out += further(whole.tables, "explain", first["topic"], str(first["partition"]), str(first["start_offset"]))
    return [*(f"{line}\n" for line in out), "\n"] if out else []


_LOST: Final = (
    "Its coordinator's list of partitions is lost, and no marker was written between its start and its completion.\n\n"
)


def _record(event: Event) -> str:
    at = "not known" if event.at_ms is None else precise_time(event.at_ms)
    who = "" if event.producer_id is None else f"producer {event.producer_id} epoch {event.producer_epoch}"
    place = "" if event.offset is None else at_offset(event.offset)
    return f"  {place:<9} {at:<25} {event.event:<15} {who}  {printable(event.detail)}".rstrip()


def _transaction_tail(whole: TransactionStory, width: int = WIDTH) -> str:
    out = []
    for row in whole.partitions:
        if row["says"] is not None:
            out += beside(f"{row['topic']}-{row['partition']}", row["says"], width, _WIDE_LABEL)
    out += _effects(whole, width)
    out = ["", *out] if out else []
    if whole.unexplained and whole.partitions:
        out += ["", f"NOT EXPLAINED by any record of its coordinator, newest first: {len(whole.unexplained)}"]
        for row in whole.unexplained:
            place = f"{where(row)} from offset {row['first_offset']}"
            offset = row["marker_offset"]
            marker = "no marker" if offset is None else f"{row['outcome']} marker at offset {offset}"
            at = "" if row["marked"] is None else f"   {precise_time(row['marked'])}"
            out += folded(f"  {place}: {marker}{at}", width)
    # Several ids that claim one producer id may each have a transaction of the same number.
    others = sorted({*whole.numbers} - {whole.number})
    if others:
        span = str(others[0]) if len(others) == 1 else f"{others[0]} to {others[-1]}"
        out += ["", f"other transactions of the id: {span} (--number N shows one)"]
    return "".join(f"{line}\n" for line in out)


def _effects(whole: TransactionStory, width: int) -> list[str]:
    """What of the transaction is still open, and what its end changes."""
    held = [row for row in whole.partitions if row["outcome"] == "OPEN"]
    ended = Counter(row["outcome"] for row in whole.partitions)
    if not held:
        return []
    records = sum(row["records"] or 0 for row in held)
    says = f"{counted(records, 'record') if records else 'no captured record'} on {counted(len(held), 'partition')}"
    for outcome in ("COMMIT", "ABORT"):
        says += f"; {counted(ended[outcome], 'partition')} already ended with {outcome}" if ended[outcome] else ""
    return beside("still open", says, width, _WIDE_LABEL)


def _for_programs(whole: TransactionStory) -> dict[str, Any]:
    """The whole transaction for programs. Instants are ISO-8601, and epoch ms in fields whose names end with `_ms`."""
    numbered = {name: getattr(whole, name) for name in (*WHOLE[:2], *_NUMBERED)}
    rows = {name: list(map(with_instants, getattr(whole, name))) for name in ("partitions", "unexplained", "warned")}
    stuck = None if whole.stuck is None else asdict(whole.stuck)
    return for_programs(whole, **numbered, records=list(whole.records), **rows, stuck=stuck)


_NUMBERED: Final = column_names("numbers number producer_id producer_epoch outcome decided_outcome")


def answer(run: StoredRun, options: Namespace) -> CommandOutput:
    """One transaction with all its partitions. Raises UsageError if no captured log has it."""
    name = " ".join(options.where)
    is_id = place_in(options.where) is None or run.number("transactions", "count(*)", equal(transactional_id=name))
    place = {} if is_id else known_subject(run, options.where)
    if "topic" not in place:
        return output_of_transaction(whole_transaction(run, name, options.number))
    if options.number is not None:
        raise UsageError("--number is for an id; a partition and an offset name one transaction")
    start_offset = place.get("start_offset")
    at = open_place(run, options.where) if start_offset is None else (place["topic"], place["partition"], start_offset)
    return output_of_transaction(transaction_at(run, *at))
