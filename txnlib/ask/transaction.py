"""One transaction over all of its partitions, with its coordinator's records."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Final

from txnlib.ask import episode
from txnlib.ask.broken_transactions import KEY, OUTCOME, RECORD, TransactionOnPartitions, outcomes
from txnlib.ask.command_output import CommandOutput
from txnlib.ask.episode import COORDINATOR, DATA, Episode, Event, in_order
from txnlib.ask.events import coordinator_events, span_events
from txnlib.ask.grid import WIDTH, folded, instant_json
from txnlib.ask.rows import Filter, Row, StoredRun
from txnlib.ask.subject import check_captured, equal, known_subject, open_place, place_in, readings
from txnlib.core.display import counted, precise_time, printable, utc_time
from txnlib.core.verdicts.transaction_outcome import MarkerState, whole_outcome
from txnlib.errors import UsageError

#: Most records of a coordinator, partitions, and partitions that no coordinator's record explains.
RECORDS, PARTITIONS, UNEXPLAINED = 100, 1_000, 20
_BY_PLACE: Final = '"topic", "partition", "first_offset"'


@dataclass(frozen=True, slots=True)
class ExplainedTransaction(TransactionOnPartitions):
    """One transaction that prints as `txn-audit transaction` does."""

    def output(self, told: Episode[ExplainedTransaction], /) -> CommandOutput:
        """The partitions as a table, the coordinator's records above it, and what is missing below."""
        rows = self.partitions or self.unexplained
        return CommandOutput(
            OUTCOME,
            [_plain(row) for row in rows],
            people=[_line(row) for row in rows],
            shown=_SHOWN,
            head=_head(told),
            tail=lambda width: _tail(self, width),
            whole=lambda: _for_programs(told),
        )


def whole_transaction(run: StoredRun, name: str, number: int | None = None) -> Episode[ExplainedTransaction]:
    """The newest transaction, or the one with a number, of a transactional id or a producer id.

    Raises UsageError if nothing is known of it.
    """
    columns = (*KEY, "producer_id", "producer_epoch", "outcome")
    newest = '"coordinator_partition", "transaction_number" DESC'
    by_mark = '"marked" DESC NULLS FIRST, "topic", "partition"'
    for named in (reading for reading in readings([name]) if "topic" not in reading):
        own = run.rows("transactions", columns, equal(**named), order=newest)
        unexplained = outcomes(run, [*equal(**named), ("known_from", "=", "PARTITION")], by_mark, UNEXPLAINED)
        if own or unexplained:
            break
    else:
        known_subject(run, [name])
        raise UsageError(f"no captured log has a transaction of {name!r}")
    if number is not None and number not in {row["transaction_number"] for row in own}:
        raise UsageError(f"{name!r} has no transaction {number} in this run")
    none = dict.fromkeys(columns) | named
    chosen = next((row for row in own if number in (None, row["transaction_number"])), none)
    of: list[Filter] = [(column, "=", chosen[column]) for column in KEY]
    partitions = outcomes(run, of, _BY_PLACE, PARTITIONS) if own else []
    records = run.rows("coordinator_states", RECORD, of, order='"offset"', limit=RECORDS) if own else []
    whole = ExplainedTransaction(
        chosen["transactional_id"],
        chosen["coordinator_partition"],
        chosen["transaction_number"],
        chosen["producer_id"],
        chosen["producer_epoch"],
        whole_outcome(MarkerState(row["marker"]) for row in partitions),
        chosen["outcome"],
        records,
        partitions,
        [row["transaction_number"] for row in own],
        unexplained,
    )
    return Episode(run.cluster, run.run_id, run.as_of_ms, _events(whole), whole)


def transaction_at(run: StoredRun, topic: str, partition: int, start_offset: int) -> Episode[ExplainedTransaction]:
    """The transaction that begins at an offset of a partition, on all of its partitions. Raises UsageError if none
    does."""
    here: list[Filter] = [*equal(topic=topic, partition=partition), ("first_offset", "=", start_offset)]
    found = outcomes(run, here, _BY_PLACE, 1, more=("transactional_id",))
    if not found:
        check_captured(run, topic, partition)
        raise UsageError(
            f"no transaction begins at offset {start_offset} of {topic}-{partition}; timeline shows those that do"
        )
    (row,) = found
    if row["transaction_number"] is not None:
        return whole_transaction(run, row["transactional_id"], row["transaction_number"])
    owner, producer = row["transactional_id"], row["producer_id"]
    alone = ExplainedTransaction(
        owner, None, None, producer, row["producer_epoch"], None, None, [], [], unexplained=[row]
    )
    return Episode(run.cluster, run.run_id, run.as_of_ms, [], alone)


def _events(whole: TransactionOnPartitions) -> list[Event]:
    """The records of its coordinator, where it begins on each partition, and its markers."""

    def places(record: Row) -> str:
        return ", ".join(f"{place['topic']}-{place['partition']}" for place in record["partitions"] or ())

    key = {name: getattr(whole, name) for name in KEY[:2]}
    records = [*coordinator_events([row | key for row in whole.records], places)]
    began = min((event.key[0] for event in records if event.event == "Ongoing"), default=0)
    logs: list[Iterable[Event]] = [records]
    for row in whole.partitions:
        times = {"marker_ms": row["marked"], "first_timestamp_ms": None, "is_broker_clock": False}
        span = {**row, **times, "marker_type": row["outcome"], "records": None}
        owner = {row["producer_id"]: whole.transactional_id}
        started = {row["first_offset"]: (began, DATA, row["first_offset"])}
        logs.append(span_events(f"{row['topic']}-{row['partition']}", [span], owner, started, None, {}))
    return in_order(*logs)


# ---- One transaction over all of its partitions, as text


_SHOWN: Final = ("partition", "marker", "marker_offset", "outcome", "records", "written by a broker at")
_LABEL: Final = 13
_wrapped = partial(episode.wrapped, room=_LABEL)


def _line(row: Row) -> Row:
    return row | {
        "partition": f"{printable(row['topic'])}-{row['partition']}",
        "written by a broker at": None if row["marked"] is None else precise_time(row["marked"]),
    }


def _head(told: Episode[ExplainedTransaction]) -> str:
    whole = told.outcome
    owner = "no transactional id known" if whole.transactional_id is None else printable(whole.transactional_id)
    numbered = "" if whole.number is None else f"   transaction {whole.number}"
    producer = "" if whole.producer_id is None else f"   producer {whole.producer_id}"
    epoch = "" if whole.producer_epoch is None else f" epoch {whole.producer_epoch}"
    out = [
        f"{owner}{numbered}{producer}{epoch}",
        f"cluster {printable(told.cluster)}, as of {utc_time(told.as_of_ms)}, run {printable(told.run_id)}",
        "",
    ]
    if whole.outcome is not None:
        out += [f"{whole.outcome.value}  {whole.meaning}", ""]
    if whole.records:
        out.append(f"AT ITS COORDINATOR, __transaction_state-{whole.coordinator_partition}")
        out += [_record(event) for event in told.events if event.clock == COORDINATOR]
        out.append("")
    out.append("ON ITS PARTITIONS" if whole.partitions else "ON PARTITIONS, without a record of its coordinator")
    if not whole.partitions and whole.number is not None:
        out.insert(
            -1,
            "Its coordinator's list of partitions is lost, and no marker was written between its start and its"
            " completion.\n",
        )
    return "\n".join(out) + "\n"


def _record(event: Event) -> str:
    at = "not known" if event.at_ms is None else precise_time(event.at_ms)
    who = "" if event.producer_id is None else f"producer {event.producer_id} epoch {event.producer_epoch}"
    return f"  @{event.offset:<8} {at:<25} {event.event:<15} {who}  {printable(event.detail)}".rstrip()


def _tail(whole: TransactionOnPartitions, width: int = WIDTH) -> str:
    out = []
    for row in whole.partitions:
        if row["says"] is not None:
            out += _wrapped(width, f"{row['topic']}-{row['partition']}", row["says"])
    out += _effects(whole, width)
    out = ["", *out] if out else []
    if whole.unexplained and whole.partitions:
        out += ["", f"NOT EXPLAINED by any record of its coordinator, newest first: {len(whole.unexplained)}"]
        for row in whole.unexplained:
            place = f"{printable(row['topic'])}-{row['partition']} from offset {row['first_offset']}"
            marker = (
                "no marker"
                if row["marker_offset"] is None
                else f"{row['outcome']} marker at offset {row['marker_offset']}"
            )
            at = "" if row["marked"] is None else f"   {precise_time(row['marked'])}"
            out += folded(f"  {place}: {marker}{at}", width)
    others = [number for number in whole.numbers if number != whole.number]
    if others:
        span = str(others[0]) if len(others) == 1 else f"{min(others)} to {max(others)}"
        out += ["", f"other transactions of the id: {span} (--number N shows one)"]
    return "".join(f"{line}\n" for line in out)


def _effects(whole: TransactionOnPartitions, width: int) -> list[str]:
    """What of the transaction is still open, and what its end changes."""
    held = [row for row in whole.partitions if row["outcome"] == "OPEN"]
    ended = [row for row in whole.partitions if row["outcome"] in ("COMMIT", "ABORT")]
    if not held:
        return []
    records = sum(row["records"] or 0 for row in held)
    says = f"{counted(records, 'record') if records else 'no captured record'} on {counted(len(held), 'partition')}"
    for outcome in ("COMMIT", "ABORT"):
        number = sum(row["outcome"] == outcome for row in ended)
        if number:
            says += f"; {counted(number, 'partition')} already ended with {outcome}"
    return _wrapped(width, "still open", says)


def _plain(row: Row) -> Row:
    return row | {name: None if row[name] is None else instant_json(row[name]) for name in ("marked", "decided")}


def _for_programs(told: Episode[ExplainedTransaction]) -> dict[str, Any]:
    """The whole transaction for programs. Instants are ISO-8601, and epoch ms in fields whose names end with `_ms`."""
    whole = asdict(told.outcome)
    whole |= {name: [_plain(row) for row in whole[name]] for name in ("partitions", "unexplained")}
    first = {"cluster": told.cluster, "run_id": told.run_id, "as_of_ms": told.as_of_ms}
    return {**first, **{name: whole[name] for name in (*KEY[:2], "numbers")}, **whole}


def answer(run: StoredRun, options: Namespace) -> CommandOutput:
    """One transaction with all its partitions. Raises UsageError if no captured log has it."""
    name = " ".join(options.where)
    is_id = place_in(options.where) is None or run.number("transactions", "count(*)", equal(transactional_id=name))
    place = {} if is_id else known_subject(run, options.where)
    if "topic" not in place:
        return whole_transaction(run, name, options.number).output()
    if options.number is not None:
        raise UsageError("--number is for an id; a partition and an offset name one transaction")
    start_offset = place.get("start_offset")
    at = open_place(run, options.where) if start_offset is None else (place["topic"], place["partition"], start_offset)
    return transaction_at(run, *at).output()
