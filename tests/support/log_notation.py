"""Batches and coordinator records in a short notation.

`D` idempotent data, `T` transactional data, `N` data without a producer, `C` and `A` commit and abort markers, `rec` a
record of a coordinator. One sequence number means one record; `to=` sets a last offset that the sequences do not tell.

    T(1, 0, 0, 4, at=16)     # producer 1, epoch 0, sequences 0..4 at offsets 16..20
    C(1, 0, 15, at=21)       # its commit marker, of coordinator epoch 15
    rec("O", 132, 5, {"foo-10"})

log_bytes.py turns them into what a broker writes.
"""

from collections.abc import Iterable
from typing import Any

from txnlib.core.kafka.odd_coordinator_records import CoordinatorRecord
from txnlib.core.kafka.record_batch import ControlType, EndTxnMarker, RecordBatch
from txnlib.core.kafka.transaction_log import TransactionLogEntry
from txnlib.core.kafka.transaction_state import TransactionState
from txnlib.core.rows import TopicPartition

#: The time of everything that is not given one: 2024-03-09 16:00 UTC, in ms.
TS = 1_710_000_000_000


def D(
    pid: int | None,
    epoch: int | None,
    first_seq: int | None,
    last_seq: int | None = None,
    *,
    at: int,
    to: int | None = None,
    ts: int = TS,
    **fields: Any,
) -> RecordBatch:
    """A batch of an idempotent producer; a group coordinator writes none of the sequences."""
    span = 0 if first_seq is None or last_seq is None else (last_seq - first_seq) % 2**31
    last_offset = at + span if to is None else to
    given = {"records_count": last_offset - at + 1, "max_timestamp": ts} | fields
    return RecordBatch(
        base_offset=at, last_offset=last_offset, producer_id=pid, producer_epoch=epoch, base_sequence=first_seq, **given
    )


def T(
    pid: int, epoch: int, first_seq: int | None, last_seq: int | None = None, *, at: int, **fields: Any
) -> RecordBatch:
    """A transactional batch."""
    return D(pid, epoch, first_seq, last_seq, at=at, is_transactional=True, **fields)


def N(*, at: int, **fields: Any) -> RecordBatch:
    """A batch of a producer without an id."""
    return D(None, None, None, at=at, **fields)


def C(pid: int, epoch: int, coordinator_epoch: int | None = 0, *, at: int, **fields: Any) -> RecordBatch:
    """A commit marker."""
    control: dict[str, Any] = {"is_control": True, "marker": EndTxnMarker(ControlType.COMMIT, coordinator_epoch)}
    return T(pid, epoch, None, at=at, **control | fields)


def A(pid: int, epoch: int, coordinator_epoch: int | None = 0, *, at: int, **fields: Any) -> RecordBatch:
    """An abort marker."""
    control: dict[str, Any] = {"marker": EndTxnMarker(ControlType.ABORT, coordinator_epoch)}
    return C(pid, epoch, at=at, **control | fields)


STATES = {
    "E": TransactionState.EMPTY, "O": TransactionState.ONGOING, "PC": TransactionState.PREPARE_COMMIT,
    "PA": TransactionState.PREPARE_ABORT, "CC": TransactionState.COMPLETE_COMMIT, "CA": TransactionState.COMPLETE_ABORT,
    "DEAD": TransactionState.DEAD, "FENCE": TransactionState.PREPARE_EPOCH_FENCE,
}  # fmt: skip


def rec(
    state: str,
    pid: int,
    epoch: int,
    partitions: Iterable[str] = (),
    *,
    id: str = "bar",
    update: int = TS,
    **fields: Any,
) -> TransactionLogEntry:
    """A coordinator's record, with the fields that a broker would give to one in this state; lists keep their order."""
    is_empty = state == "E"
    listed = tuple(map(topic_partition, partitions if isinstance(partitions, list) else sorted(partitions)))
    given = {
        "transaction_timeout_ms": 60_000,
        "transaction_partitions": None if is_empty and not listed else listed,
        "start_timestamp_ms": None if is_empty else TS,
        "version": 1,
    } | fields
    return TransactionLogEntry(
        transactional_id=id, producer_id=pid, producer_epoch=epoch, transaction_state=STATES[state],
        last_update_timestamp_ms=update, **given,
    )  # fmt: skip


def topic_partition(name: str) -> TopicPartition:
    topic, _, partition = name.rpartition("-")
    return TopicPartition(topic, int(partition))


def judged(entry: TransactionLogEntry | None, coordinator_epoch: int | None = 3) -> CoordinatorRecord:
    """What a step depends on, of a coordinator's record; None is a tombstone."""
    return CoordinatorRecord(
        state_name=None if entry is None else entry.transaction_state.kafka_name,
        producer_id=None if entry is None else entry.producer_id,
        producer_epoch=None if entry is None else entry.producer_epoch,
        next_producer_id=None if entry is None else entry.next_producer_id,
        start_ms=None if entry is None else entry.start_timestamp_ms,
        lists_partitions=entry is not None and bool(entry.transaction_partitions),
        coordinator_epoch=coordinator_epoch,
    )
