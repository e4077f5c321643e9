"""The tables of the cluster's metadata log, as functions over its records.

They take those that count, in any order. Which ones do, of several copies, is decided before (`spark.metadata_log`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from txnlib.core.kafka.constants import MAX_INT64, MetadataType
from txnlib.core.rows import grouped

_Brokers = tuple[int, ...]
State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class MetadataChange:
    """A row of `metadata_log` that counts. What is None does not change."""

    type: str
    offset: int
    snapshot_offset: int | None = None
    timestamp_ms: int | None = None
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
    broker_id: int | None = None
    broker_epoch: int | None = None
    incarnation_id: str | None = None
    is_fenced: bool | None = None
    is_in_controlled_shutdown: bool | None = None
    feature_level: int | None = None
    resource_type: str | None = None
    resource_name: str | None = None
    value: str | None = None
    next_producer_id: int | None = None

    @property
    def at_offset(self) -> int:
        """The place in the log. A snapshot shows the state before its offset, after all records of lower offsets."""
        return self.offset if self.snapshot_offset is None else self.snapshot_offset - 1

    @property
    def begin(self) -> tuple[int | None, int | None]:
        """The offset and the time at which a state begins; None in a snapshot, which does not show it."""
        return (self.offset, self.timestamp_ms) if self.snapshot_offset is None else (None, None)


@dataclass(frozen=True, slots=True)
class ValidState:
    """The columns that say from when to when a row of the metadata tables applies."""

    since_offset: int | None = None
    since_ms: int | None = None
    until_offset: int | None = None
    until_ms: int | None = None
    is_current: bool | None = None


def in_order(changes: Iterable[MetadataChange]) -> list[MetadataChange]:
    """The records in the order of the log, those of a snapshot after the records that led to its state."""
    return sorted(changes, key=lambda each: (each.at_offset, each.snapshot_offset is not None, each.offset))


def with_validity(
    states: Sequence[tuple[MetadataChange, State]], removal: MetadataChange | None = None
) -> Iterator[tuple[State, dict[str, Any]]]:
    """Each state of a subject with its validity: it ends where the next one begins, or its subject is removed."""
    ends = [*(change for change, _ in states[1:]), removal]
    for (change, state), end in zip(states, ends, strict=False):
        until = (None, None) if end is None else (end.at_offset, end.begin[1])
        yield state, dict(zip(ValidState.__slots__, (*change.begin, *until, end is None), strict=True))


# ---- `broker_sessions`: when each broker was registered, and when it was fenced


SESSION_TYPES: Final = (
    MetadataType.REGISTER_BROKER,
    MetadataType.UNREGISTER_BROKER,
    MetadataType.BROKER_REGISTRATION_CHANGE,
    MetadataType.FENCE_BROKER,
    MetadataType.UNFENCE_BROKER,
)


@dataclass(frozen=True, slots=True)
class BrokerSession(ValidState):
    """A row of `broker_sessions`: what the cluster knows of a broker."""

    broker_id: int | None = None
    broker_epoch: int | None = None
    incarnation_id: str | None = None
    is_fenced: bool | None = None
    is_in_controlled_shutdown: bool | None = None


def broker_sessions(metadata_log: Sequence[MetadataChange]) -> Iterator[BrokerSession]:
    """A row for each broker and state of it while it is registered. Kafka: `ClusterControlManager.replay`."""
    of_brokers = in_order(each for each in metadata_log if each.broker_id is not None)
    for records in grouped(of_brokers, lambda each: each.broker_id).values():
        states: list[tuple[MetadataChange, tuple[bool, BrokerSession]]] = []
        now = False, BrokerSession(broker_id=records[0].broker_id)
        for record in records:
            before, now = now, (record.type != MetadataType.UNREGISTER_BROKER, _session_after(now[1], record))
            if not states or now != before:
                states.append((record, now))
        for (is_registered, session), validity in with_validity(states):
            if is_registered:
                yield replace(session, **validity)


def _session_after(session: BrokerSession, record: MetadataChange) -> BrokerSession:
    """The state after a record. A registration begins anew; old versions of it do not contain the last flag."""
    is_shutting_down = record.is_in_controlled_shutdown
    if record.type == MetadataType.REGISTER_BROKER:
        is_shutting_down = bool(is_shutting_down)
    said = {
        "incarnation_id": record.incarnation_id,
        "is_fenced": record.is_fenced,
        "is_in_controlled_shutdown": is_shutting_down,
    }
    changed: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
    return replace(session, broker_epoch=record.broker_epoch, **changed)


# ---- `cluster_settings`: dynamic settings and feature levels, from when to when


SETTING_TYPES: Final = (MetadataType.FEATURE_LEVEL, MetadataType.CONFIG, MetadataType.TOPIC, MetadataType.REMOVE_TOPIC)


@dataclass(frozen=True, slots=True)
class ClusterSetting(ValidState):
    """A row of `cluster_settings`."""

    scope: str | None = None
    scope_name: str | None = None
    name: str | None = None
    value: str | None = None


#: Scope, name of the topic, broker or group, and name of the setting.
_Key = tuple[str | None, str | None, str | None]


def cluster_settings(metadata_log: Sequence[MetadataChange]) -> Iterator[ClusterSetting]:
    """A row for each value that a setting had.

    Removing a topic removes its settings. Kafka: `ConfigurationControlManager.replay`, `FeatureControlManager.replay`.
    """
    topics = {each.topic_id: each.name for each in metadata_log if each.type == MetadataType.TOPIC}
    values: dict[_Key, list[tuple[MetadataChange, str | None]]] = {}
    of_topic: dict[str | None, list[_Key]] = {}
    for record in in_order(metadata_log):
        if record.type == MetadataType.REMOVE_TOPIC:
            for key in of_topic.get(topics.get(record.topic_id), ()):
                _set(values[key], record, None)
        elif record.type != MetadataType.TOPIC:
            key, value = (record.resource_type, record.resource_name or None, record.name), record.value
            if record.type == MetadataType.FEATURE_LEVEL:
                key, value = (
                    ("FEATURE", None, record.name),
                    None if record.feature_level is None else str(record.feature_level),
                )
            if key not in values:
                values[key] = []
                if key[0] == "TOPIC" and key[1] is not None:
                    of_topic.setdefault(key[1], []).append(key)
            _set(values[key], record, value)
    for (scope, scope_name, name), changes in values.items():
        for value, validity in with_validity(changes):
            if value is not None:
                yield ClusterSetting(scope=scope, scope_name=scope_name, name=name, value=value, **validity)


def _set(changes: list[tuple[MetadataChange, str | None]], record: MetadataChange, value: str | None) -> None:
    """Adds a value, unless the setting had the same value before."""
    if value != (changes[-1][1] if changes else None):
        changes.append((record, value))


# ---- `partition_assignments`: who led each partition, with which replicas, from when to when


ASSIGNMENT_TYPES: Final = (
    MetadataType.TOPIC,
    MetadataType.REMOVE_TOPIC,
    MetadataType.PARTITION,
    MetadataType.PARTITION_CHANGE,
    MetadataType.CLEAR_ELR,
    MetadataType.FEATURE_LEVEL,
)
_METADATA_VERSION: Final = "metadata.version"
#: The first level at which a record says that its leader was elected uncleanly. Kafka: `MetadataVersion.IBP_3_2_IV0`.
_SAYS_RECOVERY_FROM: Final = 3
#: `leader_recovery_state` of a leader that was elected uncleanly. Kafka: `LeaderRecoveryState.RECOVERING`.
_RECOVERING: Final = 1


@dataclass(frozen=True, slots=True)
class PartitionAssignment(ValidState):
    """A row of `partition_assignments`: the state of a partition."""

    topic: str = ""
    partition: int = 0
    topic_id: str = ""
    leader: int | None = None
    leader_epoch: int | None = None
    isr: _Brokers | None = None
    replicas: _Brokers | None = None
    eligible_leader_replicas: _Brokers | None = None
    #: Whether its leader was elected uncleanly.
    is_unclean: bool | None = None


def partition_assignments(metadata_log: Sequence[MetadataChange]) -> Iterator[PartitionAssignment]:
    """A row for each partition and state of it. Kafka: `PartitionRegistration.merge`."""
    topics: dict[str | None, Any] = {
        each.topic_id: each.name for each in metadata_log if each.type == MetadataType.TOPIC
    }
    removals = {each.topic_id: each for each in in_order(metadata_log) if each.type == MetadataType.REMOVE_TOPIC}
    changes = [each for each in metadata_log if each.type in (MetadataType.PARTITION, MetadataType.PARTITION_CHANGE)]
    changes += _clearings(metadata_log, changes, topics)
    says_recovery_from = _says_recovery_from(metadata_log)
    for records in grouped(in_order(changes), lambda each: (each.topic_id, each.partition_id)).values():
        topic_id = records[0].topic_id
        place: dict[str, Any] = {"topic_id": topic_id, "partition": records[0].partition_id}
        if topic_id in topics:
            states = _states(records, says_recovery_from)
            for (state, is_unclean), validity in with_validity(states, removals.get(topic_id)):
                yield replace(state, topic=topics[topic_id], is_unclean=is_unclean, **place, **validity)


def _says_recovery_from(metadata_log: Sequence[MetadataChange]) -> int:
    """The place in the log from which records say that a leader was elected uncleanly.

    Before metadata.version 3.3, a log does not name its level. The first one that is named was there from the start.
    """
    levels = [
        (record.at_offset, record.feature_level)
        for record in in_order(metadata_log)
        if record.type == MetadataType.FEATURE_LEVEL and record.name == _METADATA_VERSION
    ]
    at = next((offset for offset, level in levels if level is not None and level >= _SAYS_RECOVERY_FROM), MAX_INT64)
    return 0 if levels and at == levels[0][0] else at


def _clearings(
    metadata_log: Sequence[MetadataChange], changes: Sequence[MetadataChange], topics: Mapping[str | None, Any]
) -> Iterator[MetadataChange]:
    """What ClearElrRecords change: of the partitions of one topic, or, without a name, of all.

    A tool's text may lack the name. Kafka: `ReplicationControlManager.replay(ClearElrRecord)`.
    """
    cleared = [each for each in metadata_log if each.type == MetadataType.CLEAR_ELR]
    places = {(each.topic_id, each.partition_id) for each in changes if each.topic_id in topics} if cleared else ()
    for record in cleared:
        for topic_id, partition_id in places:
            if not record.name or record.name == topics[topic_id]:
                yield replace(
                    record, topic_id=topic_id, partition_id=partition_id, sets_leader=False, eligible_leader_replicas=()
                )


def _states(
    records: Sequence[MetadataChange], says_recovery_from: int
) -> list[tuple[MetadataChange, tuple[PartitionAssignment, bool]]]:
    """The states of a partition, each with the record that begins it, and whether its leader was elected uncleanly."""
    states: list[tuple[MetadataChange, tuple[PartitionAssignment, bool]]] = []
    now: PartitionAssignment | None = None
    adding: _Brokers | None = None
    for record in records:
        is_whole = record.type == MetadataType.PARTITION
        if now is None and not is_whole:
            continue  # what it changes is not known
        before, adding_before = now, adding
        now = _state_after(PartitionAssignment() if is_whole or before is None else before, record)
        adding = record.adding_replicas if is_whole or record.adding_replicas is not None else adding
        if now != before:
            # Of a replica that was being added, only the record itself tells whether it was in sync.
            caught_up = adding_before if record.at_offset >= says_recovery_from else None
            states.append((record, (now, _is_unclean(before, caught_up, record))))
    return states


def _state_after(state: PartitionAssignment, record: MetadataChange) -> PartitionAssignment:
    """The state after a record. A change that sets a leader, even the same one, raises the leader epoch by one."""
    is_whole = record.type == MetadataType.PARTITION
    epoch = record.leader_epoch if is_whole else state.leader_epoch
    if not is_whole and record.sets_leader and epoch is not None:
        epoch += 1
    eligible = record.eligible_leader_replicas
    return PartitionAssignment(
        leader=record.leader if record.sets_leader else state.leader,
        leader_epoch=epoch,
        isr=state.isr if record.isr is None else record.isr,
        replicas=state.replicas if record.replicas is None else record.replicas,
        # An empty list and no list mean the same.
        eligible_leader_replicas=(state.eligible_leader_replicas if eligible is None else eligible) or None,
    )


def _is_unclean(before: PartitionAssignment | None, adding: _Brokers | None, record: MetadataChange) -> bool:
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


# ---- `producer_id_blocks`: which broker was given which producer ids


#: Kafka: `ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE`.
BLOCK_SIZE: Final = 1_000
BLOCK_TYPES: Final = (MetadataType.PRODUCER_IDS,)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdBlock:
    """A row of `producer_id_blocks`."""

    first_producer_id: int
    last_producer_id: int
    broker_id: int | None = None
    broker_epoch: int | None = None
    offset: int | None = None
    allocated_at_ms: int | None = None


def producer_id_blocks(metadata_log: Sequence[MetadataChange]) -> Iterator[ProducerIdBlock]:
    """A row for each block.

    A record contains the producer id after its block, which begins after the block before. Kafka:
    `ProducerIdControlManager`.
    """
    before: int | None = None
    for record in in_order(metadata_log):
        following = record.next_producer_id
        if following is not None:
            first = max(following - BLOCK_SIZE, 0) if before is None else before
            if first < following:
                offset, ms = record.begin
                yield ProducerIdBlock(
                    first_producer_id=first,
                    last_producer_id=following - 1,
                    broker_id=record.broker_id,
                    broker_epoch=record.broker_epoch,
                    offset=offset,
                    allocated_at_ms=ms,
                )
            before = following if before is None else max(before, following)


# ---- Events that a verdict looks at


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    """The leader of a partition from one record of the metadata log to the next that changes it. Times are the
    controller's.

    `offset` and `at_ms` are None if only a snapshot shows it; `leader` None: the partition had none; `until_ms` None:
    still so.
    """

    offset: int | None = None
    at_ms: int | None = None
    leader: int | None = None
    leader_epoch: int | None = None
    is_unclean: bool = False
    #: Whether its leader had crashed, or lost its disk, while it was the only one in sync: what it had not yet written
    #: to disk is lost.
    is_after_crash: bool = False
    until_ms: int | None = None
    topic_id: str | None = None
    #: Whether it made the partition, or, without an offset, is the first that is shown.
    is_first: bool = False

    @property
    def may_lose(self) -> bool:
        """Whether its leader may lack what was acknowledged."""
        return self.is_unclean or self.is_after_crash


def elections_of(topic_id: str | None, elections: Iterable[Election]) -> list[Election]:
    """The elections under one topic id: those of a deleted topic of the same name do not count."""
    return [each for each in elections if topic_id is None or each.topic_id in (None, topic_id)]


@dataclass(frozen=True, slots=True, kw_only=True)
class FencedBroker:
    """A record of the metadata log that fenced a broker."""

    offset: int | None = None
    at_ms: int | None = None
    broker: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoweredFeature:
    """A record of the metadata log that lowered the level of `transaction.version`."""

    offset: int | None = None
    at_ms: int | None = None
    level_before: int
    level: int
