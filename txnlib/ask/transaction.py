"""One transaction on all of its partitions, with its coordinator's records; and those that are split or half-marked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from txnlib.ask.events import RECORD, Event, courses, in_order, record_events
from txnlib.ask.partition_events import span_events
from txnlib.ask.queries import KEY, Filter, Row, StoredRun, among, ms
from txnlib.ask.story import WHOLE, Story
from txnlib.ask.stuck_ids import StuckId, stuck_ids
from txnlib.ask.subject import check_captured, equal, known_subject, readings
from txnlib.ask.words import URGENCY, named
from txnlib.core.rows import grouped
from txnlib.core.schema import shown
from txnlib.core.verdicts.marker_states import WHOLE_MEANINGS, WHOLE_OUTCOMES, MarkerState, WholeOutcome, whole_outcome
from txnlib.errors import UsageError

#: The rows of a whole transaction: one per partition.
OUTCOME: Final = shown("transaction")
#: Most transactions of a producer, one row per partition, that no coordinator's record explains.
UNEXPLAINED: Final = 20
#: Most records and partitions to read for transactions that are shown together.
MOST_ROWS: Final = 5_000
_BROKEN: Final = [
    state.value for whole in (WholeOutcome.SPLIT, WholeOutcome.HALF_MARKED) for state in sorted(WHOLE_OUTCOMES[whole])
]
#: Columns of a transaction besides those that identify it.
_OWN: Final = ("producer_id", "producer_epoch")
_WARNED: Final = (*KEY, "verdict", "reason", "explanation", "blocks_since", "broker_clock_age_ms", "holds")
_RECORD: Final = (*RECORD, "coordinator_epoch", "transition")


@dataclass(frozen=True, slots=True, repr=False)
class TransactionStory(Story):
    """One transaction on all of its partitions, and what else is known of its producer. Instants in epoch ms."""

    transactional_id: str | None
    coordinator_partition: int | None
    #: Its number; None if no record of its coordinator survives.
    number: int | None
    producer_id: int | None
    producer_epoch: int | None
    decided_outcome: str | None
    #: Records of its coordinator by offset, and its partitions, with the columns RECORD and OUTCOME.
    records: Sequence[Row] = ()
    partitions: Sequence[Row] = ()
    #: Numbers of all transactions of the id that are known, the newest first.
    numbers: Sequence[int] = ()
    #: Transactions of the producer on partitions that no coordinator's record explains, the newest first, with the
    #: columns OUTCOME.
    unexplained: Sequence[Row] = ()
    #: Rows of open_transactions about these partitions, but not OPEN ones, the most urgent first. Their verdict may be
    #: LOOKS_LATE.
    warned: Sequence[Row] = ()
    #: The id, if it is stuck without holding a partition.
    stuck: StuckId | None = None
    #: The folder of the tables, or the URI of one.
    tables: str = ""

    @property
    def outcome(self) -> WholeOutcome | None:
        """The outcome that its markers show; None without partitions."""
        return whole_outcome(MarkerState(row["marker"]) for row in self.partitions)

    @property
    def meaning(self) -> str:
        """What the outcome means, and the decision; empty without an outcome."""
        if self.outcome is None:
            return ""
        decided = "not decided" if self.decided_outcome == "OPEN" else f"decided: {self.decided_outcome}"
        return decided if self.outcome is WholeOutcome.OPEN else f"{WHOLE_MEANINGS[self.outcome]}; {decided}"

    @property
    def is_only_pending(self) -> bool:
        """Whether the transaction only waits for its markers. If that lasts, the verdict is STUCK."""
        return all(
            row["marker"] in (MarkerState.FOUND, MarkerState.PENDING, MarkerState.UNKNOWN) for row in self.partitions
        )


def whole_transaction(run: StoredRun, name: str, number: int | None = None) -> TransactionStory:
    """The newest transaction, or the one with a number, of a transactional id or a producer id.

    Raises UsageError if nothing is known of it.
    """
    newest = '"coordinator_partition", "transaction_number" DESC'
    by_mark = '"marked" DESC NULLS FIRST, "topic", "partition"'
    for reading in (each for each in readings([name]) if "topic" not in each):
        own = run.rows("transactions", (*WHOLE, *_OWN, "outcome"), equal(**reading), order=newest)
        is_alone = [*equal(**reading), ("known_from", "=", "PARTITION")]
        unexplained = _outcomes(run, is_alone, by_mark, UNEXPLAINED)
        if own or unexplained:
            break
    else:
        known_subject(run, [name])
        raise UsageError(f"no captured log has a transaction of {name!r}")
    if number is not None and number not in {row["transaction_number"] for row in own}:
        raise UsageError(f"{name!r} has no transaction {number} in this run")
    if not own:
        none = dict.fromkeys((*WHOLE, *_OWN, "decided_outcome"))
        return _judged(run, _of_row(run, none | reading, unexplained=unexplained))
    chosen = next(row for row in own if number in (None, row["transaction_number"]))
    numbers = [row["transaction_number"] for row in own]
    (whole,) = _of_keys(run, [chosen])
    told = replace(whole, decided_outcome=chosen["outcome"], numbers=numbers, unexplained=unexplained)
    return _judged(run, told)


def transaction_at(run: StoredRun, topic: str, partition: int, start_offset: int) -> TransactionStory:
    """The transaction that begins at an offset of a partition, on all of its partitions. Raises UsageError if none
    does."""
    here: list[Filter] = [*equal(topic=topic, partition=partition), ("first_offset", "=", start_offset)]
    found = _outcomes(run, here, "", 1)
    if not found:
        check_captured(run, topic, partition)
        raise UsageError(
            f"no transaction begins at offset {start_offset} of {topic}-{partition}; timeline shows those that do"
        )
    (row,) = found
    if row["transaction_number"] is None:
        return _judged(run, _of_row(run, row, unexplained=[row]))
    return whole_transaction(run, row["transactional_id"], row["transaction_number"])


def _judged(run: StoredRun, whole: TransactionStory) -> TransactionStory:
    """The story, with the verdicts on its open transactions, and with its id if the id is stuck."""
    spans = {(row["topic"], row["partition"], row["first_offset"]) for row in (*whole.partitions, *whole.unexplained)}
    rows: list[Row] = []
    if whole.producer_id is not None and spans:
        own: list[Filter] = [("producer_id", "=", whole.producer_id), ("verdict", "<>", "OPEN")]
        order = '"topic", "partition", "start_offset"'
        opened = run.rows("open_transactions", _WARNED, own, order=order, limit=MOST_ROWS, is_optional=True)
        here = (row for row in map(named, opened) if (row["topic"], row["partition"], row["start_offset"]) in spans)
        rows = [row | {"blocks_since": ms(row["blocks_since"])} for row in here]
    is_newest = whole.transactional_id is not None and whole.number in (None, *whole.numbers[:1])
    stuck = stuck_ids(run, name=whole.transactional_id) if is_newest else []
    in_order = sorted(rows, key=lambda row: URGENCY.index(row["verdict"]))
    return replace(whole, warned=in_order, stuck=next(iter(stuck), None), tables=run.tables.root)


def broken_transactions(run: StoredRun, most: int) -> list[TransactionStory]:
    """The first split or half-marked transactions, split ones first."""
    order = '"marker", "transactional_id", "transaction_number"'
    is_broken = [*equal(topic=run.topic), ("marker", "IN", _BROKEN), ("transaction_number", "IS NOT", None)]
    odd = run.rows("transaction_outcomes", (*WHOLE, *_OWN), is_broken, order=order, limit=MOST_ROWS)
    return _of_keys(run, list({_whole_key(row): row for row in odd}.values())[:most])


def _whole_key(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in WHOLE)


def _outcomes(run: StoredRun, where: Sequence[Filter], order: str, limit: int) -> list[Row]:
    """Rows of transaction_outcomes; instants as epoch ms."""
    columns = list(dict.fromkeys((*WHOLE, *OUTCOME)))
    rows = run.rows("transaction_outcomes", columns, where, order=order, limit=limit)
    return [row | {name: ms(row[name]) for name in ("marked", "decided")} for row in rows]


def _of_keys(run: StoredRun, keys: Sequence[Row]) -> list[TransactionStory]:
    """The transactions with these ids and numbers."""
    if not keys:
        return []
    those = among(keys, *WHOLE)
    on = grouped(_outcomes(run, those, '"topic", "partition", "first_offset"', MOST_ROWS), _whole_key)
    kept = run.rows("coordinator_states", _RECORD, those, order='"offset"', limit=MOST_ROWS)
    records = grouped(kept, _whole_key)
    found = []
    for row in keys:
        partitions, own = on.get(_whole_key(row), []), records.get(_whole_key(row), [])
        first = {"decided_outcome": None, **row, **(partitions[0] if partitions else {})}
        found.append(_of_row(run, first, records=own, partitions=partitions))
    return found


def _of_row(run: StoredRun, row: Row, **fields: Any) -> TransactionStory:
    events = _events(fields.get("records", ()), fields.get("partitions", ()))
    of = (row[name] for name in (*WHOLE, *_OWN, "decided_outcome"))
    return TransactionStory(run.cluster, run.run_id, run.as_of_ms, events, *of, **fields)


def _events(records: Sequence[Row], partitions: Sequence[Row]) -> list[Event]:
    """The records of its coordinator, where it begins on each partition, and its markers."""
    logs: list[Iterable[Event]] = [record_events(records)]
    for row in partitions:
        times = {"marker_ms": row["marked"], "first_timestamp_ms": None, "is_broker_clock": False}
        span = {**row, **times, "marker_type": row["outcome"], "last_offset": row["first_offset"], "records": None}
        logs.append(span_events(f"{row['topic']}-{row['partition']}", [span], courses(records, row)))
    return in_order(*logs)
