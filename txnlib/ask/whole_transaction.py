"""One transaction over all of its partitions, with its coordinator's records."""

from __future__ import annotations

import textwrap
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from txnlib.ask.broken_transactions import RECORD
from txnlib.ask.command_output import CommandOutput
from txnlib.ask.grid import WIDTH, instant_json
from txnlib.ask.rows import Filter, Row, StoredRun, ms
from txnlib.ask.story_text import clock
from txnlib.core.display import printable, utc_time
from txnlib.core.verdicts.transaction_outcome import WHOLE_MEANINGS, MarkerState, WholeOutcome, whole_outcome
from txnlib.errors import UsageError

#: The rows of a whole transaction: one per partition.
OUTCOME: Final = (
    "topic",
    "partition",
    "marker",
    "marker_offset",
    "outcome",
    "records",
    "first_offset",
    "bytes",
    "marked",
    "known_from",
    "transaction_number",
    "producer_id",
    "producer_epoch",
    "marker_epoch",
    "marker_coordinator_epoch",
    "decided_outcome",
    "decided",
    "is_two_phase_commit",
    "says",
)
REPAIR: Final = ("topic", "partition", "marker", "copies", "request", "is_accepted", "tool", "fate", "consumers_saw")
#: Most records of a coordinator, partitions, and partitions that no coordinator's record explains.
RECORDS, PARTITIONS, UNEXPLAINED = 100, 1_000, 20
_BY_PLACE: Final = '"topic", "partition", "first_offset"'


@dataclass(frozen=True, slots=True)
class ExplainedTransaction:
    """One transaction, and what else is known of its producer. Instants in epoch ms."""

    cluster: str
    run_id: str
    as_of_ms: int
    transactional_id: str | None
    coordinator_partition: int | None
    #: Numbers of all transactions of the id, newest first; empty if no record of its coordinator survives.
    numbers: Sequence[int]
    #: The one shown; None if `numbers` is empty.
    number: int | None
    producer_id: int | None
    producer_epoch: int | None
    outcome: WholeOutcome | None
    decided_outcome: str | None
    #: Rows with the columns RECORD, OUTCOME and REPAIR.
    records: Sequence[Row]
    partitions: Sequence[Row]
    repairs: Sequence[Row]
    #: What partitions show of the producer that no record of a coordinator explains, the newest first, with the columns OUTCOME.
    unexplained: Sequence[Row]


def whole_transaction(run: StoredRun, name: str, number: int | None = None) -> ExplainedTransaction:
    """The newest transaction, or the one with a number, of a transactional id or a producer id.

    Raises UsageError if nothing is known of it.
    """
    own = _transactions(run, [("transactional_id", "=", name)])
    transactional_id: str | None = name
    producers: set[int] = set()
    if not own and name.isdecimal():
        producers = {int(name)}
        own = _transactions(run, [("producer_id", "=", int(name))])
        transactional_id = own[0]["transactional_id"] if own else None
    if number is not None and number not in {row["transaction_number"] for row in own}:
        raise UsageError(f"{name!r} has no transaction {number} in this run")
    chosen = next((row for row in own if number in (None, row["transaction_number"])), None)
    unexplained = _unexplained(run, name, producers)
    if chosen is None and not unexplained:
        raise UsageError(f"no captured log has a transaction of {name!r}")
    partitions: list[Row] = []
    if chosen is not None:
        partitions = run.rows("transaction_outcomes", OUTCOME, _of(chosen), order=_BY_PLACE, limit=PARTITIONS)
    return ExplainedTransaction(
        cluster=run.cluster,
        run_id=run.run_id,
        as_of_ms=run.as_of_ms,
        transactional_id=transactional_id,
        coordinator_partition=None if chosen is None else chosen["coordinator_partition"],
        numbers=[row["transaction_number"] for row in own],
        number=None if chosen is None else chosen["transaction_number"],
        producer_id=next(iter(producers), None) if chosen is None else chosen["producer_id"],
        producer_epoch=None if chosen is None else chosen["producer_epoch"],
        outcome=whole_outcome(MarkerState(row["marker"]) for row in partitions),
        decided_outcome=None if chosen is None else chosen["outcome"],
        records=[] if chosen is None else run.rows("coordinator_states", RECORD, _of(chosen), order='"offset"', limit=RECORDS),
        partitions=[_timed(row) for row in partitions],
        repairs=[] if chosen is None else run.rows("marker_repairs", REPAIR, _of(chosen), order='"topic", "partition"'),
        unexplained=unexplained,
    )


def _transactions(run: StoredRun, where: Sequence[Filter]) -> list[Row]:
    columns = ("transactional_id", "coordinator_partition", "transaction_number", "producer_id", "producer_epoch", "outcome")
    return run.rows("transactions", columns, where, order='"coordinator_partition", "transaction_number" DESC')


def _of(transaction: Row) -> list[Filter]:
    return [(name, "=", transaction[name]) for name in ("transactional_id", "coordinator_partition", "transaction_number")]


def _unexplained(run: StoredRun, name: str, producers: set[int]) -> list[Row]:
    own: Filter = ("producer_id", "IN", producers) if producers else ("transactional_id", "=", name)
    where: list[Filter] = [own, ("known_from", "=", "PARTITION")]
    rows = run.rows(
        "transaction_outcomes", OUTCOME, where, order='"marked" DESC NULLS FIRST, "topic", "partition"', limit=UNEXPLAINED
    )
    return [_timed(row) for row in rows]


def _timed(row: Row) -> Row:
    return row | {name: ms(row[name]) for name in ("marked", "decided")}


# ---- One transaction over all of its partitions, as text


_SHOWN: Final = ("partition", "marker", "marker_offset", "outcome", "records", "written by a broker at")
_LABEL: Final = 13


def whole_transaction_output(whole: ExplainedTransaction) -> CommandOutput:
    """The partitions as a table, the coordinator's records above it, and what is missing below."""
    rows = whole.partitions or whole.unexplained
    return CommandOutput(
        OUTCOME,
        [_plain(row) for row in rows],
        people=[_line(row) for row in rows],
        shown=_SHOWN,
        head=_head(whole),
        tail=lambda width: _tail(whole, width),
        whole=lambda: _for_programs(whole),
    )


def _line(row: Row) -> Row:
    return row | {
        "partition": f"{printable(row['topic'])}-{row['partition']}",
        "written by a broker at": None if row["marked"] is None else clock(row["marked"]),
    }


def _head(whole: ExplainedTransaction) -> str:
    owner = "no transactional id known" if whole.transactional_id is None else printable(whole.transactional_id)
    numbered = "" if whole.number is None else f"   transaction {whole.number}"
    producer = "" if whole.producer_id is None else f"   producer {whole.producer_id}"
    epoch = "" if whole.producer_epoch is None else f" epoch {whole.producer_epoch}"
    out = [
        f"{owner}{numbered}{producer}{epoch}",
        f"cluster {printable(whole.cluster)}, as of {utc_time(whole.as_of_ms)}, run {printable(whole.run_id)}",
        "",
    ]
    if whole.outcome is not None:
        decided = "not decided" if whole.decided_outcome == "OPEN" else f"decided: {whole.decided_outcome}"
        out += [f"{whole.outcome.value}  {WHOLE_MEANINGS[whole.outcome]}; {decided}", ""]
    if whole.records:
        out.append(f"AT ITS COORDINATOR, __transaction_state-{whole.coordinator_partition}")
        out += [_record(record) for record in whole.records]
        out.append("")
    out.append("ON ITS PARTITIONS" if whole.partitions else "ON PARTITIONS, without a record of its coordinator")
    if not whole.partitions and whole.number is not None:
        out.insert(
            -1, "Its coordinator's list of partitions is lost, and no marker was written between its start and its completion.\n"
        )
    return "\n".join(out) + "\n"


def _record(record: Row) -> str:
    state = "expires" if record["is_tombstone"] else record["state"]
    at = "not known" if record["timestamp_ms"] is None else clock(record["timestamp_ms"])
    places = ", ".join(f"{printable(place['topic'])}-{place['partition']}" for place in record["partitions"] or ())
    who = "" if record["producer_id"] is None else f"producer {record['producer_id']} epoch {record['producer_epoch']}"
    return f"  @{record['offset']:<8} {at:<25} {state:<15} {who}  {places}".rstrip()


def _tail(whole: ExplainedTransaction, width: int = WIDTH) -> str:
    out = [""]
    for row in whole.partitions:
        if row["says"] is not None:
            out += _wrapped(width, f"{row['topic']}-{row['partition']}", row["says"])
    out += _effects(whole, width)
    if whole.repairs:
        out += ["", "TO REPAIR  what would write the missing markers; txn-audit itself never writes to a cluster"]
        for repair in whole.repairs:
            out += _repair(repair, width)
    if whole.unexplained and whole.partitions:
        out += ["", f"NOT EXPLAINED by any record of its coordinator, newest first: {len(whole.unexplained)}"]
        out += [_unexplained_line(row) for row in whole.unexplained]
    others = [number for number in whole.numbers if number != whole.number]
    if others:
        span = str(others[0]) if len(others) == 1 else f"{min(others)} to {max(others)}"
        out += ["", f"other transactions of the id: {span} (--number N shows one)"]
    return "".join(f"{line}\n" for line in out)


def _effects(whole: ExplainedTransaction, width: int) -> list[str]:
    """What the transaction holds, and what its end changes."""
    held = [row for row in whole.partitions if row["outcome"] == "OPEN"]
    ended = [row for row in whole.partitions if row["outcome"] in ("COMMIT", "ABORT")]
    if not held:
        return []
    records = sum(row["records"] or 0 for row in held)
    says = f"it holds {_number(records, 'record')} on {_number(len(held), 'partition')}"
    for outcome in ("COMMIT", "ABORT"):
        number = sum(row["outcome"] == outcome for row in ended)
        if number:
            says += f"; {_number(number, 'partition')} already ended with {outcome}"
    return _wrapped(width, "holds", says)


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _repair(repair: Row, width: int) -> list[str]:
    copies = ", ".join(f"broker {copy['broker']} at offset {copy['offset']}" for copy in repair["copies"] or ())
    lines = [
        f"  {printable(repair['topic'])}-{repair['partition']}   {repair['marker']}",
        *_wrapped(width, "  consumers", repair["consumers_saw"]),
        *_wrapped(width, "  marker in", copies or "no captured copy"),
        *_wrapped(width, "  sent by", repair["tool"]),
    ]
    return lines if repair["request"] is None else [*lines, f"    {'request':<{_LABEL - 2}}{printable(repair['request'])}"]


def _unexplained_line(row: Row) -> str:
    marker = "no marker" if row["marker_offset"] is None else f"{row['outcome']} marker at offset {row['marker_offset']}"
    at = "" if row["marked"] is None else f"   {clock(row['marked'])}"
    return f"  {printable(row['topic'])}-{row['partition']} from offset {row['first_offset']}: {marker}{at}"


def _wrapped(width: int, label: str, text: object) -> list[str]:
    line = f"  {printable(label):<{_LABEL}}{printable(text)}"
    return textwrap.wrap(line, width, subsequent_indent=" " * (2 + _LABEL), break_on_hyphens=False, break_long_words=False)


def _plain(row: Row) -> Row:
    return row | {name: None if row[name] is None else instant_json(row[name]) for name in ("marked", "decided")}


def _for_programs(whole: ExplainedTransaction) -> dict[str, Any]:
    """The whole transaction for programs. Instants are ISO-8601, and epoch ms in fields whose names end with `_ms`."""
    lists: dict[str, Sequence[Row]] = {"partitions": whole.partitions, "unexplained": whole.unexplained}
    return {**asdict(whole), **{name: [_plain(row) for row in rows] for name, rows in lists.items()}}


def answer(run: StoredRun, options: Namespace) -> CommandOutput:
    """One transaction with all its partitions. Raises UsageError if no captured log has it."""
    return whole_transaction_output(whole_transaction(run, options.id, options.number))
