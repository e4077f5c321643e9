"""`partition_assignments`: who led each partition, with which replicas, from when to when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from txnlib.core.kafka.metadata_records import MetadataType
from txnlib.core.metadata.changes import MetadataChange, ValidState, by_subject, in_order, with_validity

TYPES: Final = (
    MetadataType.TOPIC,
    MetadataType.REMOVE_TOPIC,
    MetadataType.PARTITION,
    MetadataType.PARTITION_CHANGE,
    MetadataType.CLEAR_ELR,
)
#: `leader_recovery_state` of a leader that was elected uncleanly. Kafka: `LeaderRecoveryState.RECOVERING`.
_RECOVERING: Final = 1
_Brokers = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AssignmentRecord(MetadataChange):
    """A row of `metadata_log`. What is None does not change."""

    name: str | None = None
    topic_id: str | None = None
    partition_id: int | None = None
    sets_leader: bool | None = None
    leader: int | None = None
    leader_epoch: int | None = None
    leader_recovery_state: int | None = None
    isr: _Brokers | None = None
    replicas: _Brokers | None = None
    adding_replicas: _Brokers | None = None
    eligible_leader_replicas: _Brokers | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """The state of a partition."""

    leader: int | None = None
    leader_epoch: int | None = None
    isr: _Brokers | None = None
    replicas: _Brokers | None = None
    eligible_leader_replicas: _Brokers | None = None


@dataclass(frozen=True, slots=True)
class AssignmentRow(ValidState):
    """A row of `partition_assignments`."""

    topic: str | None
    partition: int | None
    topic_id: str | None
    leader: int | None
    leader_epoch: int | None
    isr: _Brokers | None
    replicas: _Brokers | None
    eligible_leader_replicas: _Brokers | None
    is_unclean: bool


def partition_assignments(metadata_log: Sequence[AssignmentRecord]) -> Iterator[AssignmentRow]:
    """A row for each partition and state of it. Kafka: `PartitionRegistration.merge`."""
    topics = {each.topic_id: each.name for each in metadata_log if each.type == MetadataType.TOPIC}
    removals = {each.topic_id: each for each in in_order(metadata_log) if each.type == MetadataType.REMOVE_TOPIC}
    changes = [each for each in metadata_log if each.type in (MetadataType.PARTITION, MetadataType.PARTITION_CHANGE)]
    changes += _clearings(metadata_log, changes, topics)
    for records in by_subject(changes, lambda each: (each.topic_id, each.partition_id)):
        topic_id, partition = records[0].topic_id, records[0].partition_id
        if topic_id not in topics:
            continue
        for _, (state, is_unclean), validity in with_validity(_states(records), removals.get(topic_id)):
            yield AssignmentRow(
                *validity,
                topics[topic_id],
                partition,
                topic_id,
                state.leader,
                state.leader_epoch,
                state.isr,
                state.replicas,
                state.eligible_leader_replicas,
                is_unclean,
            )


def _clearings(
    metadata_log: Sequence[AssignmentRecord], changes: Sequence[AssignmentRecord], topics: dict[str | None, str | None]
) -> Iterator[AssignmentRecord]:
    """What ClearElrRecords change: of the partitions of one topic, or, without a name, of all.

    A tool's text may lack the name. Kafka: `ReplicationControlManager.replay(ClearElrRecord)`.
    """
    cleared = [each for each in metadata_log if each.type == MetadataType.CLEAR_ELR]
    places = {(each.topic_id, each.partition_id) for each in changes if each.topic_id in topics} if cleared else ()
    for record in cleared:
        for topic_id, partition_id in places:
            if not record.name or record.name == topics[topic_id]:
                yield replace(record, topic_id=topic_id, partition_id=partition_id, sets_leader=False, eligible_leader_replicas=())


def _states(records: Sequence[AssignmentRecord]) -> list[tuple[AssignmentRecord, tuple[Assignment, bool]]]:
    """The states of a partition, each with the record that begins it, and whether its leader was elected uncleanly."""
    states: list[tuple[AssignmentRecord, tuple[Assignment, bool]]] = []
    now: Assignment | None = None
    adding: _Brokers | None = None
    for record in records:
        is_whole = record.type == MetadataType.PARTITION
        if now is None and not is_whole:
            continue  # what it changes is not known
        before, adding_before = now, adding
        now = _after(Assignment() if is_whole or before is None else before, record)
        adding = record.adding_replicas if is_whole or record.adding_replicas is not None else adding
        if now != before:
            states.append((record, (now, _is_unclean(before, adding_before, record))))
    return states


def _after(state: Assignment, record: AssignmentRecord) -> Assignment:
    """The state after a record. A change that sets a leader, even the same one, raises the leader epoch by one."""
    is_whole = record.type == MetadataType.PARTITION
    epoch = record.leader_epoch if is_whole else state.leader_epoch
    if not is_whole and record.sets_leader and epoch is not None:
        epoch += 1
    eligible = record.eligible_leader_replicas
    return Assignment(
        record.leader if record.sets_leader else state.leader,
        epoch,
        state.isr if record.isr is None else record.isr,
        state.replicas if record.replicas is None else record.replicas,
        (state.eligible_leader_replicas if eligible is None else eligible) or None,  # an empty list and no list mean the same
    )


def _is_unclean(before: Assignment | None, adding: _Brokers | None, record: AssignmentRecord) -> bool:
    """Whether a record elects a leader that may lack records.

    A reassignment that ends elects from the in-sync set after it, which may consist of replicas that were being added.
    """
    if not record.sets_leader or record.leader is None:
        return False
    if record.leader_recovery_state == _RECOVERING:
        return True
    if before is None or before.isr is None:
        return False
    return record.leader not in {*before.isr, *(before.eligible_leader_replicas or ()), *(adding or ())}
