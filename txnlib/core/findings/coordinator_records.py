"""Findings in the coordinators' logs: records, transactional ids, producer ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from txnlib.core.finding_catalogue import Finding
from txnlib.core.findings.deleted_topics import listed_deleted
from txnlib.core.findings.found import FindingRow, found, unshown
from txnlib.core.findings.metadata import never_allocated
from txnlib.core.kafka.coordinator_partition import partition_for
from txnlib.core.kafka.transaction_log import TopicPartition
from txnlib.core.kafka.transaction_state import ACTIVE_STATES, TransactionState

_ACTIVE: Final = frozenset(state.kafka_name for state in ACTIVE_STATES)
_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class OddRecord:
    """A row of `coordinator_states` with findings."""

    transactional_id: str
    coordinator_partition: int
    offset: int
    transition: str | None
    producer_id: int | None
    producer_epoch: int | None
    findings: tuple[str, ...]


def of_records(records: Iterable[OddRecord]) -> Iterator[FindingRow]:
    """A finding for each name that `core.kafka.coordinator.transition` gave a record."""
    for each in records:
        epoch = None if each.producer_epoch is None else f"producer epoch {each.producer_epoch}"
        shown = " ".join(filter(None, (each.transition, epoch)))
        yield from (found(Finding[name], shown, each) for name in each.findings)


@dataclass(frozen=True, slots=True)
class RefusedTimeout:
    """The last record of a transactional id with a timeout that no broker accepts."""

    offset: int
    producer_id: int | None
    transaction_timeout_ms: int


@dataclass(frozen=True, slots=True)
class LoggedId:
    """A transactional id: its last record, and what is odd in earlier ones."""

    transactional_id: str
    coordinator_partition: int
    producer_id: int | None
    state: str | None
    partitions: tuple[TopicPartition, ...] | None
    #: Offset of the last record.
    offset: int
    #: Its append time, and the times in it, which may be any numbers.
    record_ms: int | None
    last_update_ms: int | None
    start_ms: int | None
    refused: RefusedTimeout | None


def of_ids(ids: Iterable[LoggedId], *, coordinator_partitions: int, deleted: Mapping[tuple[str, int], int]) -> Iterator[FindingRow]:
    """Findings about transactional ids. `deleted`: the partitions of deleted topics."""
    for each in ids:
        hashes_to = partition_for(each.transactional_id, coordinator_partitions)
        if hashes_to != each.coordinator_partition:
            says = f"of {coordinator_partitions} partitions its hash leads to {hashes_to}"
            yield found(Finding.WRONG_COORDINATOR_PARTITION, says, each, producer_id=None)
        if (refused := each.refused) is not None:
            # Kafka: `TransactionManager.validateTransactionTimeoutMs`.
            says = f"timeout of {refused.transaction_timeout_ms} ms"
            at, producer_id = refused.offset, refused.producer_id
            yield found(Finding.INVALID_TRANSACTION_TIMEOUT, says, each, offset=at, producer_id=producer_id)
        times = {"appended": each.record_ms, "last update": each.last_update_ms, "transaction start": _begun_ms(each)}
        if odd := unshown(times):
            yield found(Finding.INVALID_TIMESTAMP, odd, each)
        if deleted and each.partitions and each.state in _ACTIVE:
            lost = listed_deleted(each.state, each.partitions, each.record_ms, deleted)
            if lost:
                yield found(Finding.UNKNOWN_TOPIC_OR_PARTITION, lost, each)


def _begun_ms(each: LoggedId) -> int | None:
    """The start of a transaction. That of an id without one is any number below 0."""
    if each.start_ms is None or each.start_ms >= 0:
        return each.start_ms
    return each.start_ms if each.state not in (None, TransactionState.EMPTY.kafka_name) else None


@dataclass(frozen=True, slots=True)
class NamedProducerId:
    """A row of `producer_id_owners`: a transactional id whose records name a producer id."""

    producer_id: int
    transactional_id: str
    coordinator_partition: int
    last_record_offset: int
    last_seen_ms: int | None


@dataclass(frozen=True, slots=True)
class ClaimedProducerId:
    """A producer id, and the transactional ids whose records name it."""

    producer_id: int
    claims: tuple[NamedProducerId, ...]


def of_owners(
    producer_ids: Iterable[ClaimedProducerId], *, highest: int | None, whole_metadata_ms: int | None
) -> Iterator[FindingRow]:
    """Producer ids that more than one transactional id claims, and those that the cluster never handed out.

    `highest`: as `core.findings.metadata.highest_producer_id` gives it.
    """
    for each in producer_ids:
        names = sorted({claim.transactional_id for claim in each.claims})
        if len(names) > 1:
            last = max(each.claims, key=lambda claim: claim.last_record_offset)
            says = f"claimed by {', '.join(names[:_SHOWN])}"
            yield found(Finding.PRODUCER_ID_OWNED_TWICE, says, last, offset=last.last_record_offset, transactional_id=None)
        if highest is None or whole_metadata_ms is None:
            continue
        for claim in each.claims:
            if claim.last_seen_ms is not None and claim.last_seen_ms <= whole_metadata_ms:
                yield from never_allocated(claim, highest, is_dated=True, offset=claim.last_record_offset)
