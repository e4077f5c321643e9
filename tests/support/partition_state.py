"""The producer state of a whole partition: a fold of `producer_state.append` over its log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from txnlib.core.finding import Finding
from txnlib.core.kafka.producer_state import (
    UNKNOWN_PRODUCER,
    CompletedTxn,
    ProducerState,
    append,
)
from txnlib.core.kafka.record_batch import RecordBatch


@dataclass(slots=True)
class PartitionState:
    """Producers by id, completed transactions in order, and findings by base offset."""

    producers: dict[int, ProducerState] = field(default_factory=dict)
    completed: list[CompletedTxn] = field(default_factory=list)
    #: For each completed transaction, the lowest offset that was still open, as the aborted-transaction index records
    #: it.
    completed_last_stable_offsets: list[int] = field(default_factory=list)
    findings: list[tuple[int, Finding]] = field(default_factory=list)
    end_offset: int = 0

    def append(self, batch: RecordBatch) -> None:
        """Applies one batch."""
        self.end_offset = batch.last_offset + 1
        if batch.producer_id is None:
            return
        before = self.producers.get(batch.producer_id, UNKNOWN_PRODUCER)
        appended = append(before, batch)
        if appended.after is not before:
            self.producers[batch.producer_id] = appended.after
        self.findings += [(batch.base_offset, finding) for finding in appended.findings]
        if appended.completed is not None:
            self.completed.append(appended.completed)
            undecided = self.first_undecided_offset
            self.completed_last_stable_offsets.append(self.end_offset if undecided is None else undecided)

    def append_all(self, batches: Iterable[RecordBatch]) -> PartitionState:
        for batch in batches:
            self.append(batch)
        return self

    @property
    def open_transactions(self) -> dict[int, int]:
        """First offset -> producer id of the open transactions, lowest first (Kafka: `ongoingTxns`)."""
        opened = {
            s.current_txn_first_offset: p for p, s in self.producers.items() if s.current_txn_first_offset is not None
        }
        return dict(sorted(opened.items()))

    @property
    def first_undecided_offset(self) -> int | None:
        return next(iter(self.open_transactions), None)
