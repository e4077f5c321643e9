"""Transactions on all of their partitions: those that are split or half-marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from txnlib.ask.rows import Filter, Row, StoredRun, among, column_names, ms
from txnlib.core.schema import shown
from txnlib.core.verdicts.transaction_outcome import (
    WHOLE_MEANINGS,
    WHOLE_OUTCOMES,
    MarkerState,
    WholeOutcome,
    whole_outcome,
)

#: What identifies a transaction.
KEY: Final = ("transactional_id", "coordinator_partition", "transaction_number")
#: The rows of a whole transaction: one per partition.
OUTCOME: Final = shown("transaction")
#: Columns of a coordinator record that show what it changed.
RECORD: Final = column_names(
    "offset timestamp_ms state is_tombstone producer_id producer_epoch coordinator_epoch partitions transition"
)
#: Most records and partitions to read for all transactions that are split or half-marked.
BROKEN_ROWS: Final = 5_000
_BROKEN: Final = [
    state.value for whole in (WholeOutcome.SPLIT, WholeOutcome.HALF_MARKED) for state in sorted(WHOLE_OUTCOMES[whole])
]


@dataclass(frozen=True, slots=True)
class TransactionOnPartitions:
    """One transaction on all of its partitions, and what else is known of its producer. Instants in epoch ms."""

    transactional_id: str | None
    coordinator_partition: int | None
    #: Its number; None if no record of its coordinator survives.
    number: int | None
    producer_id: int | None
    producer_epoch: int | None
    outcome: WholeOutcome | None
    decided_outcome: str | None
    #: Rows with the columns RECORD, and OUTCOME.
    records: Sequence[Row]
    partitions: Sequence[Row]
    #: Numbers of all transactions of the id, newest first; empty if no record of its coordinator survives.
    numbers: Sequence[int] = ()
    #: What partitions show of the producer that no record of a coordinator explains, the newest first, with the columns
    #: OUTCOME.
    unexplained: Sequence[Row] = ()

    @property
    def meaning(self) -> str:
        """What the outcome means, and the decision; empty without an outcome."""
        if self.outcome is None:
            return ""
        decided = "not decided" if self.decided_outcome == "OPEN" else f"decided: {self.decided_outcome}"
        return decided if self.outcome is WholeOutcome.OPEN else f"{WHOLE_MEANINGS[self.outcome]}; {decided}"

    @property
    def is_only_pending(self) -> bool:
        """Whether the transaction only waits for its markers, which the verdict STUCK tells if it lasts."""
        return all(
            row["marker"] in (MarkerState.FOUND, MarkerState.PENDING, MarkerState.UNKNOWN) for row in self.partitions
        )


def outcomes(run: StoredRun, where: Sequence[Filter], order: str, limit: int, more: Sequence[str] = ()) -> list[Row]:
    """Rows of transaction_outcomes; instants as epoch ms."""
    rows = run.rows("transaction_outcomes", (*more, *OUTCOME), where, order=order, limit=limit)
    return [row | {name: ms(row[name]) for name in ("marked", "decided")} for row in rows]


def broken_transactions(run: StoredRun, most: int) -> list[TransactionOnPartitions]:
    """The first split or half-marked transactions, split ones first."""
    order = '"marker", "transactional_id", "transaction_number"'
    is_broken: list[Filter] = [("marker", "IN", _BROKEN), ("transaction_number", "IS NOT", None)]
    if run.topic is not None:
        is_broken.append(("topic", "=", run.topic))
    odd = run.rows("transaction_outcomes", KEY, is_broken, order=order, limit=BROKEN_ROWS)
    keys = list(dict.fromkeys(tuple(row[name] for name in KEY) for row in odd))[:most]
    if not keys:
        return []
    those = among([dict(zip(KEY, key, strict=True)) for key in keys], *KEY)
    by_key: dict[tuple[object, ...], tuple[list[Row], list[Row]]] = {key: ([], []) for key in keys}
    read = (
        outcomes(run, those, '"topic", "partition"', BROKEN_ROWS, KEY[:2]),
        run.rows("coordinator_states", (*KEY, *RECORD), those, order='"offset"', limit=BROKEN_ROWS),
    )
    for at, rows in enumerate(read):
        for row in rows:
            by_key.get(tuple(row[name] for name in KEY), ([], []))[at].append(row)
    return [_broken(partitions, records) for partitions, records in by_key.values()]


def _broken(partitions: Sequence[Row], records: Sequence[Row]) -> TransactionOnPartitions:
    first = partitions[0]
    return TransactionOnPartitions(
        first["transactional_id"],
        first["coordinator_partition"],
        first["transaction_number"],
        first["producer_id"],
        first["producer_epoch"],
        whole_outcome(MarkerState(row["marker"]) for row in partitions),
        first["decided_outcome"],
        records,
        partitions,
    )
