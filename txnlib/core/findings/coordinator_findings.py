"""Findings in the coordinators' logs: records, transactional ids, producer ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from txnlib.core.cluster_metadata import PartitionAssignment
from txnlib.core.copies import CoverageRow, highest_of
from txnlib.core.display import precise_time, some_of
from txnlib.core.finding_catalogue import Finding, Severity
from txnlib.core.findings.finding_row import FindingRow, found, unshown
from txnlib.core.findings.metadata_findings import never_allocated
from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS
from txnlib.core.kafka.coordinator import SuspectStep, oddities
from txnlib.core.kafka.coordinator_partition import partition_for
from txnlib.core.kafka.transaction_log import TopicPartition
from txnlib.core.kafka.transaction_state import ACTIVE_STATES, TransactionState
from txnlib.core.rows import OnPartition, grouped

_ACTIVE: Final = frozenset(state.kafka_name for state in ACTIVE_STATES)
_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class OddRecord:
    """A row of `coordinator_states` with a suspect step."""

    transactional_id: str
    coordinator_partition: int
    offset: int
    producer_id: int | None
    transition: str
    suspect: SuspectStep


def of_records(records: Iterable[OddRecord]) -> Iterator[FindingRow]:
    """The findings about each record, and about the step to it."""
    for each in records:
        yield from (found(finding, f"{each.transition}: {says}", each) for finding, says in oddities(each.suspect))


@dataclass(frozen=True, slots=True)
class UnfinishedTransaction:
    """A decided transaction whose markers are all there, and which its coordinator has not completed."""

    transactional_id: str
    coordinator_partition: int
    offset: int
    producer_id: int
    state: str
    decided_ms: int
    #: Up to when its coordinator's log is known.
    known_until_ms: int
    markers: int


def of_unfinished(transactions: Iterable[UnfinishedTransaction], overdue_after_ms: int) -> Iterator[FindingRow]:
    """The finding about each that has waited longer. Kafka: `TransactionMarkerChannelManager`; KAFKA-19999."""
    for each in transactions:
        if each.known_until_ms - each.decided_ms > overdue_after_ms:
            says = f"{each.state} since {precise_time(each.decided_ms)}; markers there: {each.markers}"
            yield found(Finding.COMPLETION_OVERDUE, says, each)


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


def of_ids(
    ids: Iterable[LoggedId], *, coordinator_partitions: int, deleted: Mapping[tuple[str, int], int]
) -> Iterator[FindingRow]:
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

    `highest`: as `core.findings.metadata_findings.highest_producer_id` gives it.
    """
    for each in producer_ids:
        names = sorted({claim.transactional_id for claim in each.claims})
        if len(names) > 1:
            last = max(each.claims, key=lambda claim: claim.last_record_offset)
            says = f"claimed by {', '.join(names[:_SHOWN])}"
            yield found(
                Finding.PRODUCER_ID_OWNED_TWICE, says, last, offset=last.last_record_offset, transactional_id=None
            )
        if highest is None or whole_metadata_ms is None:
            continue
        for claim in each.claims:
            if claim.last_seen_ms is not None and claim.last_seen_ms <= whole_metadata_ms:
                yield from never_allocated(claim, highest, is_dated=True, offset=claim.last_record_offset)


# ---- Findings about transactions that still list a partition of a deleted topic


#: A record that is this much older than the checkpoints was written when they would have listed the partition: brokers
#: write them every five seconds (`replica.high.watermark.checkpoint.interval.ms`), and clocks may differ.
CHECKPOINTED_WITHIN_MS: Final = 60_000
_SHOWN_PARTITIONS: Final = 5


def deleted_partitions(
    coverage: Sequence[CoverageRow], partition_assignments: Sequence[PartitionAssignment]
) -> dict[tuple[str, int], int]:
    """The partitions of deleted topics, each with the instant, in epoch ms, before which it existed."""
    gone = [
        (copy.place, copy.checkpointed_at_ms - CHECKPOINTED_WITHIN_MS)
        for copy in coverage
        if copy.is_gone and copy.checkpointed_at_ms is not None
    ]
    # A topic that was created again has other partitions, even if they have the same names.
    states = grouped(partition_assignments, lambda each: (each.topic, each.partition, each.topic_id))
    for (topic, partition, _), of_topic in states.items():
        until = [each.until_ms for each in of_topic if each.until_ms is not None]
        if until and not any(each.is_current for each in of_topic):
            gone.append(((topic, partition), max(until) - CLOCKS_DIFFER_MS))
    return highest_of(gone)


def listed_deleted(
    state: str, partitions: Sequence[TopicPartition], record_ms: int | None, deleted: Mapping[tuple[str, int], int]
) -> str | None:
    """Which partitions of deleted topics the last record of an id with a transaction lists; None if there are none.

    Kafka: `KafkaApis.handleAddPartitionsToTxn` rejects a partition that does not exist, so it existed when it was
    added; `TransactionMarkerChannelManager` drops it when the transaction ends.
    """
    written_ms = clock_ms(record_ms)
    if written_ms is None:
        return None
    names = sorted({str(each) for each in partitions if written_ms < deleted.get((each.topic, each.partition), 0)})
    return f"{state} with {some_of(names, _SHOWN_PARTITIONS)}" if names else None


# ---- Findings about ids that are used once and abandoned


#: An id counts as abandoned if its application created a newer id at least this long after its last use. Instances that
#: start one after the other also create new ids while older ids wait for work, but rarely for an hour.
LEFT_BEHIND_AFTER_MS: Final = 3_600_000

#: Abandoned ids of an application from which the finding is a WARNING: more than a fleet that has just started has
#: instances.
MANY_TRANSACTIONAL_IDS: Final = 100
#: Abandoned producer ids on a partition from which the finding is a WARNING. Java clients are idempotent by default
#: since 3.0, so each server of a large fleet has a producer id.
MANY_PRODUCER_IDS: Final = 1_000
#: Below either number divided by this, there is no finding, because restarts abandon some ids. In between it is INFO.
FEW: Final = 10


@dataclass(frozen=True, slots=True)
class AbandonedIds:
    """The transactional ids of an application that were each used once, and abandoned."""

    application: str
    count: int
    from_ms: int
    to_ms: int
    #: Of these, the id that was used last, and its last record.
    coordinator_partition: int
    offset: int
    transactional_id: str


def of_abandoned_ids(applications: Iterable[AbandonedIds]) -> Iterator[FindingRow]:
    """A finding for each application that abandoned many."""
    for each in applications:
        if each.count >= MANY_TRANSACTIONAL_IDS // FEW:
            yield found(
                Finding.TRANSACTIONAL_IDS_NOT_REUSED,
                f"{each.count} transactional ids of application {each.application}, each initialised once and used for"
                f" at most one transaction, from {_between(each)}",
                each,
                severity=_severity(each.count, MANY_TRANSACTIONAL_IDS),
            )


@dataclass(frozen=True, slots=True)
class AbandonedProducers(OnPartition):
    """The producer ids on a partition that each wrote one batch, and were abandoned."""

    count: int
    from_ms: int
    to_ms: int
    #: Of these, the producer id that was used last, and its batch.
    producer_id: int
    offset: int


def of_abandoned_producers(partitions: Iterable[AbandonedProducers]) -> Iterator[FindingRow]:
    """A finding for each partition with many."""
    for each in partitions:
        if each.count >= MANY_PRODUCER_IDS // FEW:
            yield found(
                Finding.PRODUCER_IDS_NOT_REUSED,
                f"{each.count} producer ids with one batch each, by their clients' clocks from {_between(each)}",
                each,
                severity=_severity(each.count, MANY_PRODUCER_IDS),
            )


def _between(each: AbandonedIds | AbandonedProducers) -> str:
    return f"{precise_time(each.from_ms)} to {precise_time(each.to_ms)}"


def _severity(count: int, many: int) -> Severity:
    return Severity.WARNING if count >= many else Severity.INFO
