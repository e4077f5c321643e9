"""The producer state of a partition after each batch. Kafka: `ProducerAppendInfo`, `ProducerStateEntry`.

The log is replayed as in replication and recovery: every batch is accepted, and a batch that a leader would have refused becomes a
finding. There is one function, `append`, with two branches: data and marker.
Source: docs/rules/transactions.md#effect-of-a-batch-and-of-a-marker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from txnlib.core.finding_catalogue import Finding
from txnlib.core.instants import long_difference
from txnlib.core.kafka.constants import (
    GROUP_METADATA_TOPIC,
    LATE_TRANSACTION_BUFFER_MS,
    PRODUCER_ID_EXPIRATION_MS,
    is_ahead,
)
from txnlib.core.kafka.record_batch import ControlType, EndTxnMarker, RecordBatch, decrement_sequence, increment_sequence


@dataclass(frozen=True, slots=True)
class ProducerState:
    """One producer in one partition: the fields of a `.snapshot` entry. None: none yet, or not known.

    A broker remembers five batches. Only the newest is kept here, because the others only serve to answer retries.
    """

    producer_epoch: int | None = None
    last_sequence: int | None = None
    last_offset: int | None = None
    offset_delta: int = 0
    coordinator_epoch: int | None = None
    current_txn_first_offset: int | None = None
    last_timestamp: int | None = None

    @property
    def is_known(self) -> bool:
        """Whether any batch or marker of the producer was seen. Nothing is checked against an unknown state."""
        return self.producer_epoch is not None

    @property
    def first_sequence(self) -> int | None:
        """First sequence of the newest remembered batch."""
        return None if self.last_sequence is None else decrement_sequence(self.last_sequence, self.offset_delta)

    @property
    def first_data_offset(self) -> int | None:
        return None if self.last_offset is None else self.last_offset - self.offset_delta


class AppendOrigin(Enum):
    """The origin of a batch, which decides what is checked. Kafka: `AppendOrigin`."""

    CLIENT = "CLIENT"
    #: Transactional offset commits, written by the group coordinator: their sequences are not checked (and are
    #: missing, or always 0: Kafka 4.1.1).
    COORDINATOR = "COORDINATOR"


def append_origin(topic: str) -> AppendOrigin:
    """The origin of batches in a topic. Only the topic of the group coordinator differs."""
    return AppendOrigin.COORDINATOR if topic == GROUP_METADATA_TOPIC else AppendOrigin.CLIENT


#: The state of a producer before its first batch.
UNKNOWN_PRODUCER: Final = ProducerState()


@dataclass(frozen=True, slots=True)
class CompletedTxn:
    """Kafka: `CompletedTxn`; `last_offset` is the marker's. `is_aborted` is None if a dump does not show it."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool | None


@dataclass(frozen=True, slots=True)
class Appended:
    """The effect of one batch."""

    after: ProducerState
    findings: tuple[Finding, ...] = ()
    completed: CompletedTxn | None = None


def append(
    before: ProducerState,
    batch: RecordBatch,
    *,
    origin: AppendOrigin = AppendOrigin.CLIENT,
    producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS,
) -> Appended:
    """The state after one batch, the findings about it, and the transaction that it ended, if any.

    Batches without a producer id, and control batches without a marker, have no effect.
    Kafka: `ProducerAppendInfo.append`, `appendDataBatch`, `appendEndTxnMarker`.
    """
    if batch.producer_id is None:
        return Appended(before)
    checks_apply = not has_expired(before, batch.max_timestamp, producer_id_expiration_ms)
    if not batch.is_control:
        return _append_data(before, batch, checks_apply, origin)
    if batch.marker is None:
        return Appended(before)
    return _append_marker(before, batch, batch.marker, checks_apply)


def has_expired(before: ProducerState, now: int | None, producer_id_expiration_ms: int) -> bool:
    """Whether a broker may have forgotten the producer by `now`, and so accepts any batch from it.

    Never while it has an open transaction. Source: docs/rules/transactions.md#forgotten-producers.
    """
    return before.current_txn_first_offset is None and long_difference(now, before.last_timestamp) >= producer_id_expiration_ms


def _append_data(before: ProducerState, batch: RecordBatch, checks_apply: bool, origin: AppendOrigin) -> Appended:
    findings = []
    if before.is_known and checks_apply:
        if is_ahead(before.producer_epoch, of=batch.producer_epoch):
            findings.append(Finding.INVALID_PRODUCER_EPOCH)
        elif origin is AppendOrigin.CLIENT and batch.base_sequence not in (None, _next_sequence(before, batch.producer_epoch)):
            findings.append(Finding.OUT_OF_ORDER_SEQUENCE_NUMBER)
    if before.current_txn_first_offset is not None and not batch.is_transactional:
        findings.append(Finding.INVALID_TXN_STATE)
    first_offset = before.current_txn_first_offset
    if first_offset is None and batch.is_transactional:
        first_offset = batch.base_offset
    after = replace(
        before,
        producer_epoch=batch.producer_epoch,
        last_sequence=batch.last_sequence,
        last_offset=batch.last_offset,
        offset_delta=batch.last_offset - batch.base_offset,
        current_txn_first_offset=first_offset,
        last_timestamp=batch.max_timestamp,
    )
    return Appended(after, tuple(findings))


def _next_sequence(before: ProducerState, epoch: int | None) -> int:
    """The sequence that a leader requires: 0 in a new epoch, or if a marker cleared the batches of the epoch."""
    if epoch != before.producer_epoch or before.last_sequence is None:
        return 0
    return increment_sequence(before.last_sequence, 1)


def _append_marker(before: ProducerState, batch: RecordBatch, marker: EndTxnMarker, checks_apply: bool) -> Appended:
    findings = []
    if before.is_known and checks_apply:
        if is_ahead(before.producer_epoch, of=batch.producer_epoch):
            findings.append(Finding.INVALID_PRODUCER_EPOCH)
        if is_ahead(before.coordinator_epoch, of=marker.coordinator_epoch):
            findings.append(Finding.TRANSACTION_COORDINATOR_FENCED)
    completed = None
    if batch.producer_id is not None and before.current_txn_first_offset is not None:
        is_aborted = None if marker.control_type is None else marker.control_type is ControlType.ABORT
        completed = CompletedTxn(batch.producer_id, before.current_txn_first_offset, batch.last_offset, is_aborted)
    forgets_batches = batch.producer_epoch != before.producer_epoch
    coordinator_epoch = before.coordinator_epoch if marker.coordinator_epoch is None else marker.coordinator_epoch
    after = ProducerState(
        producer_epoch=batch.producer_epoch,
        last_sequence=None if forgets_batches else before.last_sequence,
        last_offset=None if forgets_batches else before.last_offset,
        offset_delta=0 if forgets_batches else before.offset_delta,
        coordinator_epoch=coordinator_epoch,
        current_txn_first_offset=None,
        last_timestamp=batch.max_timestamp,
    )
    return Appended(after, tuple(findings), completed)


# ---- The producer state of a whole partition: a fold of `producer_state.append` over its log


@dataclass(slots=True)
class PartitionState:
    """Producers by id, completed transactions in order, and findings by base offset."""

    producers: dict[int, ProducerState] = field(default_factory=dict)
    completed: list[CompletedTxn] = field(default_factory=list)
    #: For each completed transaction, the lowest offset that was still open, as the aborted-transaction index records it.
    completed_last_stable_offsets: list[int] = field(default_factory=list)
    findings: list[tuple[int, Finding]] = field(default_factory=list)
    end_offset: int = 0
    producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS
    #: `append_origin` of the topic: sequences in `__consumer_offsets` are not checked.
    origin: AppendOrigin = AppendOrigin.CLIENT

    def append(self, batch: RecordBatch) -> None:
        """Applies one batch."""
        self.end_offset = batch.last_offset + 1
        if batch.producer_id is None:
            return
        before = self.producers.get(batch.producer_id, UNKNOWN_PRODUCER)
        appended = append(before, batch, origin=self.origin, producer_id_expiration_ms=self.producer_id_expiration_ms)
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
        opened = {s.current_txn_first_offset: p for p, s in self.producers.items() if s.current_txn_first_offset is not None}
        return dict(sorted(opened.items()))

    @property
    def first_undecided_offset(self) -> int | None:
        return next(iter(self.open_transactions), None)

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """Lowest first offset of transactions that are open, or whose marker is not below the high watermark yet."""
        unreplicated = [txn.first_offset for txn in self.completed if txn.last_offset >= high_watermark]
        return min([*self.open_transactions, *unreplicated], default=None)

    def last_stable_offset(self, high_watermark: int, log_start_offset: int = 0) -> int:
        """Kafka: LSO = the first unstable offset (raised to the log start) if it is below the high watermark."""
        return last_stable_offset(self.first_unstable_offset(high_watermark), high_watermark, log_start_offset)

    def expire(self, now: int) -> None:
        """Removes producers without an open transaction that were idle for too long. `now` is in epoch ms."""
        self.producers = unexpired(self.producers, now, self.producer_id_expiration_ms)


def unexpired(producers: Mapping[int, ProducerState], now: int, producer_id_expiration_ms: int) -> dict[int, ProducerState]:
    """The producers that a broker still lists. Kafka: `ProducerStateManager.removeExpiredProducers`."""
    return {
        producer_id: state
        for producer_id, state in producers.items()
        if state.current_txn_first_offset is not None or long_difference(now, state.last_timestamp) < producer_id_expiration_ms
    }


def last_stable_offset(first_unstable_offset: int | None, high_watermark: int, log_start_offset: int) -> int:
    """The last stable offset: never above the high watermark, never below the log start."""
    if first_unstable_offset is None:
        return high_watermark
    return min(max(first_unstable_offset, log_start_offset), high_watermark)


def has_late_transaction(last_timestamp: int | None, as_of_ms: int, transaction_max_timeout_ms: int) -> bool:
    """The brokers' rule for `PartitionsWithLateTransactionsCount`, with strict comparisons.

    `last_timestamp` is that of the newest batch of the producer whose open transaction has the lowest first offset.
    Source: docs/rules/transactions.md#late-transactions.
    """
    if last_timestamp is None or last_timestamp <= 0:
        return False
    return as_of_ms - last_timestamp > transaction_max_timeout_ms + LATE_TRANSACTION_BUFFER_MS
