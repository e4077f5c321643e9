"""Transactions that are split, or decided without all of their markers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from txnlib.ask.rows import Filter, Row, StoredRun, ms
from txnlib.core.verdicts.transaction_outcome import WHOLE_OUTCOMES, MarkerState, WholeOutcome, whole_outcome
from txnlib.errors import MissingTableError

_KEY: Final = ("transactional_id", "coordinator_partition", "transaction_number")
_ROW: Final = (
    *_KEY,
    "producer_id",
    "producer_epoch",
    "decided_outcome",
    "topic",
    "partition",
    "marker",
    "marker_offset",
    "outcome",
    "records",
    "marked",
    "says",
)
#: Columns of a coordinator record that show what it changed.
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
_BROKEN: Final = tuple(
    state.value for whole in (WholeOutcome.SPLIT, WholeOutcome.HALF_MARKED) for state in sorted(WHOLE_OUTCOMES[whole])
)
#: Most records and partitions to read for all transactions shown.
ROWS: Final = 5_000


@dataclass(frozen=True, slots=True)
class BrokenTransaction:
    """A transaction that is not the same on all of its partitions. Instants in epoch ms."""

    transactional_id: str
    coordinator_partition: int
    number: int
    producer_id: int
    producer_epoch: int
    outcome: WholeOutcome
    decided_outcome: str
    #: All partitions: topic, partition, marker, marker_offset, outcome, records, marked, says.
    partitions: Sequence[Row]
    #: The coordinator's records of the transaction, with the columns of `whole_transaction.RECORD`.
    records: Sequence[Row]

    @property
    def is_only_pending(self) -> bool:
        """Whether the transaction only waits for its markers, which the verdict STUCK tells if it lasts."""
        return all(row["marker"] in (MarkerState.FOUND, MarkerState.PENDING, MarkerState.UNKNOWN) for row in self.partitions)


def broken_transactions(run: StoredRun, most: int) -> list[BrokenTransaction]:
    """The first split or half-marked transactions, split ones first. None for a run of a version that did not store them."""
    try:
        odd = run.rows(
            "transaction_outcomes", _KEY, _IS_BROKEN, order='"marker", "transactional_id", "transaction_number"', limit=ROWS
        )
    except MissingTableError:
        return []
    keys = list(dict.fromkeys(tuple(row[name] for name in _KEY) for row in odd))[:most]
    if not keys:
        return []
    among: list[Filter] = [(name, "IN", {key[at] for key in keys}) for at, name in enumerate(_KEY)]
    by_key: dict[tuple[object, ...], list[Row]] = {key: [] for key in keys}
    for row in run.rows("transaction_outcomes", _ROW, among, order='"topic", "partition"', limit=ROWS):
        by_key.get(tuple(row[name] for name in _KEY), []).append(row | {"marked": ms(row["marked"])})
    records: dict[tuple[object, ...], list[Row]] = {key: [] for key in keys}
    for row in run.rows("coordinator_states", (*_KEY, *RECORD), among, order='"offset"', limit=ROWS):
        records.get(tuple(row[name] for name in _KEY), []).append(row)
    return [_broken(rows, records[key]) for key, rows in by_key.items()]


_IS_BROKEN: Final[tuple[Filter, ...]] = (("marker", "IN", _BROKEN), ("transaction_number", "IS NOT", None))


def _broken(rows: Sequence[Row], records: Sequence[Row]) -> BrokenTransaction:
    first = rows[0]
    outcome = whole_outcome(MarkerState(row["marker"]) for row in rows)
    assert outcome is not None
    return BrokenTransaction(
        first["transactional_id"],
        first["coordinator_partition"],
        first["transaction_number"],
        first["producer_id"],
        first["producer_epoch"],
        outcome,
        first["decided_outcome"],
        rows,
        records,
    )
