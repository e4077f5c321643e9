"""One transaction over all of its partitions, with its coordinator's records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from txnlib.core.verdicts.transaction_outcome import MarkerState, WholeOutcome, whole_outcome
from txnlib.errors import UsageError
from txnlib.queries.rows import Filter, Row, StoredRun, ms

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
RECORD: Final = (
    "offset",
    "timestamp_ms",
    "state",
    "is_tombstone",
    "producer_id",
    "producer_epoch",
    "coordinator_epoch",
    "partitions",
    "transition",
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
