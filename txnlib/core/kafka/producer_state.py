"""The producer state of a partition after each batch. Kafka: `ProducerAppendInfo`, `ProducerStateEntry`.

The log is replayed as in replication and recovery: every batch is accepted, and a batch that a leader would have
refused becomes a finding. There is one function, `append`, with two branches: data and marker.
Source: docs/rules/transactions.md#effect-of-a-batch-and-of-a-marker.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from txnlib.core.finding import Finding, Severity, Topic
from txnlib.core.instants import long_difference
from txnlib.core.kafka.constants import (
    GROUP_METADATA_TOPIC,
    LATE_TRANSACTION_BUFFER_MS,
    PRODUCER_ID_EXPIRATION_MS,
    is_ahead,
)
from txnlib.core.kafka.record_batch import ControlType, EndTxnMarker, RecordBatch, increment_sequence

_ACCEPTED_BY_A_LEADER: Final = (
    "a leader accepted a batch that it should have refused. An unclean election or removed records explain this. If"
    " neither happened, keep the segments and report the problem to Apache Kafka with the rows of `findings`."
)
TWO_COORDINATORS: Final = (
    "two brokers acted as the same coordinator. Look for long pauses or a network partition at that time, and compare"
    " what the two decided about each transaction."
)
INVALID_PRODUCER_EPOCH: Final = Finding(
    name="INVALID_PRODUCER_EPOCH",
    severity=Severity.ERROR,
    topic=Topic.BATCHES,
    meaning=(
        "A batch or marker with an older producer epoch follows one with a newer epoch. No correct leader accepts that."
    ),
    advice=_ACCEPTED_BY_A_LEADER,
)
OUT_OF_ORDER_SEQUENCE_NUMBER: Final = Finding(
    name="OUT_OF_ORDER_SEQUENCE_NUMBER",
    severity=Severity.WARNING,
    topic=Topic.BATCHES,
    meaning=(
        "The first sequence of a batch does not follow the last sequence of its producer: records are missing or"
        " repeated."
    ),
    advice=_ACCEPTED_BY_A_LEADER,
)
INVALID_TXN_STATE: Final = Finding(
    name="INVALID_TXN_STATE",
    severity=Severity.ERROR,
    topic=Topic.BATCHES,
    meaning="A non-transactional batch is inside an open transaction of the same producer.",
    advice=_ACCEPTED_BY_A_LEADER,
)
TRANSACTION_COORDINATOR_FENCED: Final = Finding(
    name="TRANSACTION_COORDINATOR_FENCED",
    severity=Severity.ERROR,
    topic=Topic.OUTCOME,
    meaning=(
        "A marker with an older coordinator epoch follows one with a newer epoch: a deposed coordinator was still"
        " writing."
    ),
    advice=TWO_COORDINATORS,
)


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
    if batch.producer_id is None or (batch.is_control and batch.marker is None):
        return Appended(before)
    if has_expired(before, batch.max_timestamp, producer_id_expiration_ms):
        before = UNKNOWN_PRODUCER
    return _append_data(before, batch, origin) if batch.marker is None else _append_marker(before, batch, batch.marker)


def has_expired(before: ProducerState, now: int | None, producer_id_expiration_ms: int) -> bool:
    """Whether a broker may have forgotten the producer by `now`, and so accepts any batch from it.

    Never while it has an open transaction. Source: docs/rules/transactions.md#forgotten-producers.
    """
    return (
        before.current_txn_first_offset is None
        and long_difference(now, before.last_timestamp) >= producer_id_expiration_ms
    )


def _append_data(before: ProducerState, batch: RecordBatch, origin: AppendOrigin) -> Appended:
    findings = []
    if before.is_known:
        if is_ahead(before.producer_epoch, of=batch.producer_epoch):
            findings.append(INVALID_PRODUCER_EPOCH)
        elif origin is AppendOrigin.CLIENT and batch.base_sequence not in (
            None,
            _next_sequence(before, batch.producer_epoch),
        ):
            findings.append(OUT_OF_ORDER_SEQUENCE_NUMBER)
    if before.current_txn_first_offset is not None and not batch.is_transactional:
        findings.append(INVALID_TXN_STATE)
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


def _append_marker(before: ProducerState, batch: RecordBatch, marker: EndTxnMarker) -> Appended:
    findings = []
    if before.is_known:
        if is_ahead(before.producer_epoch, of=batch.producer_epoch):
            findings.append(INVALID_PRODUCER_EPOCH)
        if is_ahead(before.coordinator_epoch, of=marker.coordinator_epoch):
            findings.append(TRANSACTION_COORDINATOR_FENCED)
    completed = None
    if batch.producer_id is not None and before.current_txn_first_offset is not None:
        is_aborted = None if marker.control_type is None else marker.control_type is ControlType.ABORT
        completed = CompletedTxn(batch.producer_id, before.current_txn_first_offset, batch.last_offset, is_aborted)
    forgets_batches = batch.producer_epoch != before.producer_epoch
    coordinator_epoch = before.coordinator_epoch if marker.coordinator_epoch is None else marker.coordinator_epoch
    after = replace(
        UNKNOWN_PRODUCER if forgets_batches else before,
        producer_epoch=batch.producer_epoch,
        coordinator_epoch=coordinator_epoch,
        current_txn_first_offset=None,
        last_timestamp=batch.max_timestamp,
    )
    return Appended(after, tuple(findings), completed)


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
