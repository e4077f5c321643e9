"""`in_doubt_transactions`: undecided two-phase commits.

A client that comes back may keep its prepared transaction, under an identity that its last record determines.
Source: KIP-939, examples A and B; `TransactionMetadata.isEpochExhausted`. Brokers up to 4.3 refuse `keepPreparedTxn`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from txnlib.core.application import application_of, compiled
from txnlib.core.copies import highest
from txnlib.core.kafka.constants import EXHAUSTED_EPOCH
from txnlib.core.kafka.transaction_log import TopicPartition
from txnlib.core.rows import IdKey, TransactionKey, grouped, row_of
from txnlib.core.schema import row_class


@dataclass(frozen=True, slots=True)
class UndecidedTransaction(TransactionKey):
    """A row of `transactions` of a two-phase commit that is not decided."""

    producer_id: int
    producer_epoch: int
    state: str
    start_ms: int | None
    partitions: tuple[TopicPartition, ...] | None
    last_record_offset: int


@dataclass(frozen=True, slots=True)
class RecordKey:
    """Asked of `transaction_log`: the last record of a transaction."""

    transactional_id: str
    coordinator_partition: int
    last_record_offset: int


@dataclass(frozen=True, slots=True)
class LastRecordCopy:
    """Answered: a copy of that record. Text of some tools omits tagged fields."""

    transactional_id: str
    coordinator_partition: int
    next_producer_id: int | None
    next_producer_epoch: int | None
    last_update_ms: int | None


@dataclass(frozen=True, slots=True)
class HeldData(TransactionKey):
    """Answered by `transaction_outcomes`: what a transaction wrote, as far as it was counted."""

    records: int | None
    bytes: int | None


_NOT_COUNTED = HeldData("", -1, -1, records=None, bytes=None)


TransactionInDoubt: Final = row_class("in_doubt_transactions")


@dataclass(frozen=True, slots=True)
class SeenInDoubt:
    """A row of `in_doubt_transactions` of an earlier run."""

    run_id: str
    as_of_ms: int
    transactional_id: str
    producer_id: int
    producer_epoch: int
    open_since_ms: int | None


def in_doubt_transactions(
    transactions: Sequence[UndecidedTransaction],
    last_records: Callable[[Sequence[RecordKey]], Sequence[LastRecordCopy]],
    held_data: Callable[[Sequence[TransactionKey]], Sequence[HeldData]],
    seen_earlier: Callable[[Sequence[IdKey]], Sequence[SeenInDoubt]],
    *,
    as_of_ms: int,
    in_doubt_after_ms: int,
    application_patterns: tuple[str, ...] = (),
) -> Iterator[Any]:
    """A row for each undecided two-phase commit."""
    patterns = compiled(application_patterns)
    keys = [
        RecordKey(each.transactional_id, each.coordinator_partition, each.last_record_offset) for each in transactions
    ]
    records = grouped(last_records(keys), lambda each: (each.transactional_id, each.coordinator_partition))
    held = {each.key: each for each in held_data([each.key for each in transactions])}
    seen = grouped(
        seen_earlier([IdKey(each.transactional_id) for each in transactions]),
        lambda earlier: (earlier.transactional_id, earlier.producer_id, earlier.producer_epoch, earlier.open_since_ms),
    )
    for each in transactions:
        copies = records[each.transactional_id, each.coordinator_partition]
        next_epoch = highest(copy.next_producer_epoch for copy in copies)
        kept_id, kept_epoch = kept_identity(
            each.producer_id, each.producer_epoch, highest(copy.next_producer_id for copy in copies), next_epoch
        )
        before = (
            seen[each.transactional_id, each.producer_id, each.producer_epoch, each.start_ms] if each.start_ms else []
        )
        open_ms = None if each.start_ms is None else max(as_of_ms - each.start_ms, 0)
        yield row_of(
            TransactionInDoubt,
            each,
            held.get(each.key, _NOT_COUNTED),
            as_of_ms=as_of_ms,
            application=application_of(each.transactional_id, patterns),
            open_since_ms=each.start_ms,
            last_update_ms=highest(copy.last_update_ms for copy in copies),
            open_ms=open_ms,
            is_overdue=open_ms is None or open_ms > in_doubt_after_ms,
            is_kept=None if next_epoch is None else next_epoch >= 0,
            kept_producer_id=kept_id,
            kept_producer_epoch=kept_epoch,
            first_seen_ms=min((earlier.as_of_ms for earlier in before), default=as_of_ms),
            runs_seen=1 + len({earlier.run_id for earlier in before}),
        )


def kept_identity(
    producer_id: int, producer_epoch: int, next_producer_id: int | None, next_producer_epoch: int | None
) -> tuple[int | None, int]:
    """The producer id and epoch that InitProducerId with keepPreparedTxn=true would return next, beside the ongoing
    identity.

    The next pair is what the last such call returned. Without one, the client still has the ongoing identity. None: a
    new producer id, which no log shows yet.
    """
    if next_producer_id is not None and next_producer_epoch is not None and next_producer_epoch >= 0:
        producer_id, producer_epoch = next_producer_id, next_producer_epoch
    return (None, 0) if producer_epoch >= EXHAUSTED_EPOCH else (producer_id, producer_epoch + 1)
