"""Findings in the coordinators' logs: records, transactional ids, producer ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from txnlib.core.cluster_metadata import PartitionAssignment
from txnlib.core.copies import CoverageRow, highest_of
from txnlib.core.display import precise_time, some_of
from txnlib.core.finding import Finding, Severity, Topic
from txnlib.core.findings.metadata_findings import highest_producer_id, never_allocated
from txnlib.core.findings.rule import INVALID_TIMESTAMP, FindingRow, Rule, found, unshown
from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS, TRANSACTION_STATE_TOPIC
from txnlib.core.kafka.coordinator_partition import partition_for
from txnlib.core.kafka.odd_coordinator_records import SuspectStep, oddities
from txnlib.core.kafka.transaction_state import ACTIVE_STATES, TransactionState
from txnlib.core.rows import TopicPartition, grouped
from txnlib.core.sql_text import IS_TWO_PHASE_COMMIT, last_records, quoted_list

INVALID_TRANSACTION_TIMEOUT: Final = Finding(
    name="INVALID_TRANSACTION_TIMEOUT",
    severity=Severity.WARNING,
    topic=Topic.RECORDS,
    meaning=("A transactional id has a timeout that brokers refuse: 0, negative, or above transaction.max.timeout.ms."),
    advice=(
        "brokers refuse such a timeout. Check `transaction_max_timeout_ms` in capture.json: the limit may have been"
        " lowered."
    ),
)
PRODUCER_ID_OWNED_TWICE: Final = Finding(
    name="PRODUCER_ID_OWNED_TWICE",
    severity=Severity.CRITICAL,
    topic=Topic.RECORDS,
    meaning="Two transactional ids claim the same producer id: the logs are corrupt, or from different clusters.",
    advice=(
        "check that the inputs are from one cluster. If they are, a block of producer ids was handed out twice:"
        " stop both applications before they fence each other's data."
    ),
)
WRONG_COORDINATOR_PARTITION: Final = Finding(
    name="WRONG_COORDINATOR_PARTITION",
    severity=Severity.WARNING,
    topic=Topic.RECORDS,
    meaning="A transactional id is in a coordinator partition other than the one that its hash selects.",
    advice=(
        "someone added partitions to `__transaction_state` while it was in use, so its ids have two coordinators."
        " No abort is safe until that is undone."
    ),
)
COMPLETION_OVERDUE: Final = Finding(
    name="COMPLETION_OVERDUE",
    severity=Severity.WARNING,
    topic=Topic.OUTCOME,
    meaning=(
        "A transaction was decided, every captured partition has its marker, and its coordinator has not completed"
        " it for longer than --stuck-after: its transactional id cannot begin another one."
    ),
    advice=(
        "the coordinator waits for the marker of a partition that was not captured or is gone, or has given up."
        " Move the leader of its `__transaction_state` partition, or restart that broker: the next coordinator"
        " sends the markers again (KAFKA-19999)."
    ),
)
UNKNOWN_TOPIC_OR_PARTITION: Final = Finding(
    name="UNKNOWN_TOPIC_OR_PARTITION",
    severity=Severity.WARNING,
    topic=Topic.LEFT_BEHIND,
    meaning=(
        "A transaction that has not ended lists a partition whose topic no longer exists: its records there are lost."
    ),
    advice=(
        "the topic was deleted while the transaction was open. The transaction ends by itself; the records that it"
        " wrote there are lost."
    ),
)


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
    """The findings about each record and the step to it."""
    for each in records:
        yield from (found(finding, f"{each.transition}: {says}", each) for finding, says in oddities(each.suspect))


ODD_RECORDS: Final = Rule(
    of="coordinator_states",
    query="""
    SELECT transactional_id, coordinator_partition, offset, producer_id, transition, suspect
    FROM {coordinator_states} WHERE suspect IS NOT NULL
    """,
    judge=of_records,
)


@dataclass(frozen=True, slots=True)
class UnfinishedTransaction:
    """A decided transaction that its coordinator has not completed, although each captured partition has its marker."""

    transactional_id: str
    coordinator_partition: int
    offset: int
    producer_id: int
    state: str
    decided_ms: int
    #: Up to when its coordinator's log is known.
    known_until_ms: int
    markers: int


def of_unfinished(transactions: Iterable[UnfinishedTransaction], *, stuck_after_ms: int) -> Iterator[FindingRow]:
    """A finding for each transaction that was decided more than `stuck_after_ms` before the end of its coordinator's
    known log. Kafka: `TransactionMarkerChannelManager`; KAFKA-19999."""
    for each in transactions:
        if each.known_until_ms - each.decided_ms > stuck_after_ms:
            says = f"{each.state} since {precise_time(each.decided_ms)}; markers there: {each.markers}"
            yield found(COMPLETION_OVERDUE, says, each)


#: Decided, not completed transactions with a marker on at least one partition, and on every captured one.
UNFINISHED_TRANSACTIONS: Final = Rule(
    of="transactions",
    query=f"""
    WITH judged AS (
      SELECT topic, partition, unix_millis(known_until) AS known_until_ms FROM {{coverage}} WHERE is_judged
    ), coordinators AS (
      SELECT partition AS coordinator_partition, known_until_ms FROM judged WHERE topic = '{TRANSACTION_STATE_TOPIC}'
    ), placed AS (
      SELECT transactional_id, coordinator_partition, last_record_offset AS offset, producer_id, state,
        unix_millis(decided) AS decided_ms, inline(markers)
      FROM {{transactions}} WHERE state LIKE 'Prepare%' AND completed IS NULL AND decided IS NOT NULL
    ), marked AS (
      SELECT transactional_id, coordinator_partition, offset, producer_id, state, decided_ms,
        count(marker_offset) AS markers,
        count_if(marker_offset IS NULL AND judged.topic IS NOT NULL) AS missing
      FROM placed
      LEFT JOIN judged ON judged.topic = placed.topic AND judged.partition = placed.partition
      GROUP BY transactional_id, coordinator_partition, offset, producer_id, state, decided_ms
    )
    SELECT transactional_id, coordinator_partition, offset, producer_id, state, decided_ms, markers,
      least(known_until_ms, :as_of_ms) AS known_until_ms
    FROM marked JOIN coordinators USING (coordinator_partition)
    WHERE markers > 0 AND missing = 0
    """,
    judge=of_unfinished,
)


#: A record that is older than the checkpoints by this much was written while they still listed the partition: brokers
#: write checkpoints every five seconds (`replica.high.watermark.checkpoint.interval.ms`), and clocks may differ.
CHECKPOINTED_WITHIN_MS: Final = 60_000
_SHOWN_PARTITIONS: Final = 5


def deleted_partitions(
    coverage: Sequence[CoverageRow], partition_assignments: Sequence[PartitionAssignment]
) -> dict[tuple[str, int], int]:
    """Partition of a deleted topic -> the instant, in epoch ms, up to which the partition existed."""
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
    """The partitions of deleted topics that the last record of an id lists, in words; None if it lists none.

    Kafka: `KafkaApis.handleAddPartitionsToTxn` rejects a partition that does not exist, so it existed when it was
    added; `TransactionMarkerChannelManager` drops it when the transaction ends.
    """
    written_ms = clock_ms(record_ms)
    if written_ms is None:
        return None
    names = sorted({str(each) for each in partitions if written_ms < deleted.get((each.topic, each.partition), 0)})
    return f"{state} with {some_of(names, _SHOWN_PARTITIONS)}" if names else None


@dataclass(frozen=True, slots=True)
class RefusedTimeout:
    """The last record of a transactional id whose timeout no broker accepts."""

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
    #: When the last record was appended, and the times in its value, which may be any numbers.
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
            yield found(WRONG_COORDINATOR_PARTITION, says, each, producer_id=None)
        if (refused := each.refused) is not None:
            # Kafka: `TransactionManager.validateTransactionTimeoutMs`.
            says = f"timeout of {refused.transaction_timeout_ms} ms"
            at, producer_id = refused.offset, refused.producer_id
            yield found(INVALID_TRANSACTION_TIMEOUT, says, each, offset=at, producer_id=producer_id)
        times = {"appended": each.record_ms, "last update": each.last_update_ms, "transaction start": _begun_ms(each)}
        if odd := unshown(times):
            yield found(INVALID_TIMESTAMP, odd, each)
        if deleted and each.partitions and each.state in _ACTIVE:
            lost = listed_deleted(each.state, each.partitions, each.record_ms, deleted)
            if lost:
                yield found(UNKNOWN_TOPIC_OR_PARTITION, lost, each)


def _begun_ms(each: LoggedId) -> int | None:
    """When the transaction began, by the last record; None if the id has none: then the record has any number below
    0."""
    if each.start_ms is None or each.start_ms >= 0:
        return each.start_ms
    return each.start_ms if each.state not in (None, TransactionState.EMPTY.kafka_name) else None


_REFUSED: Final = f"""max(struct(offset, producer_id, transaction_timeout_ms))
  FILTER (WHERE NOT {IS_TWO_PHASE_COMMIT}
    AND (transaction_timeout_ms <= 0 OR transaction_timeout_ms > :transaction_max_timeout_ms)) AS refused"""
#: The last record of every transactional id. None is left out, because only the core can compute their hashes.
LOGGED_IDS: Final = Rule(
    of="coordinator_states",
    query=f"""
    WITH newest AS ({last_records("{coordinator_states}", _REFUSED)})
    SELECT transactional_id, coordinator_partition, producer_id, state, record_offset AS offset, record_ms,
      last_update_ms, start_ms, refused, if(state IN {quoted_list(_ACTIVE)}, partitions, NULL) AS partitions
    FROM newest
    """,
    judge=of_ids,
    given={"deleted": deleted_partitions},
)


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
    """Findings about producer ids that several transactional ids claim, and about those that the cluster never handed
    out.

    `highest`: as `core.findings.metadata_findings.highest_producer_id` gives it.
    """
    for each in producer_ids:
        names = sorted({claim.transactional_id for claim in each.claims})
        if len(names) > 1:
            last = max(each.claims, key=lambda claim: claim.last_record_offset)
            says = f"claimed by {', '.join(names[:_SHOWN])}"
            yield found(PRODUCER_ID_OWNED_TWICE, says, last, offset=last.last_record_offset, transactional_id=None)
        if highest is None or whole_metadata_ms is None:
            continue
        for claim in each.claims:
            if claim.last_seen_ms is not None and claim.last_seen_ms <= whole_metadata_ms:
                yield from never_allocated(claim, highest, is_dated=True, offset=claim.last_record_offset)


#: The producer ids with several owners, and those above the highest that was handed out, if that is known.
CLAIMED_PRODUCER_IDS: Final = Rule(
    of="producer_id_owners",
    query="""
    SELECT producer_id,
      collect_list(struct(producer_id, transactional_id, coordinator_partition, last_record_offset,
        unix_millis(last_seen) AS last_seen_ms)) AS claims
    FROM {producer_id_owners} GROUP BY producer_id
    HAVING size(collect_set(transactional_id)) > 1 OR producer_id > :highest
    """,
    judge=of_owners,
    given={"highest": highest_producer_id},
)
