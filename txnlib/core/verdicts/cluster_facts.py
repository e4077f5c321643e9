"""What the tables of the cluster show: about the cluster as a whole, its coordinators, and each partition."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import attrgetter
from typing import Any, Final, TypeVar

from txnlib.core.finding_catalogue import Finding, Severity
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC, TRANSACTION_VERSION
from txnlib.core.verdicts.dossier import CapturedCopy, ClusterFacts, CoordinatorPartition, Dossier, PartitionFacts
from txnlib.core.verdicts.evidence import Election, FencedBroker, LoweredFeature, ProducerIdBlock, Thresholds

#: Newest elections of a partition, and newest records that fenced a broker or lowered a feature, to look at.
MOST_EVENTS: Final = 100

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentFact:
    """A row of `partition_assignments`: the state of a partition from one metadata record to the next."""

    topic: str
    partition: int
    topic_id: str | None
    leader: int | None
    leader_epoch: int | None
    is_unclean: bool | None
    since_offset: int | None
    since_ms: int | None
    until_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSessionRow:
    """A row of `broker_sessions`."""

    broker_id: int
    is_fenced: bool | None
    since_offset: int | None
    since_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingFact:
    """A row of `cluster_settings`."""

    scope: str | None
    name: str | None
    value: str | None
    since_offset: int | None
    since_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockRow:
    """A row of `producer_id_blocks`."""

    offset: int | None
    allocated_at_ms: int | None
    first_producer_id: int
    last_producer_id: int
    broker_id: int

    @property
    def block(self) -> ProducerIdBlock:
        return ProducerIdBlock(
            offset=self.offset,
            at_ms=self.allocated_at_ms,
            first_producer_id=self.first_producer_id,
            last_producer_id=self.last_producer_id,
            broker_id=self.broker_id,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionAlarm:
    """A finding about a partition that forbids an abort."""

    name: str
    topic: str | None
    partition: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorLog:
    """What compaction left of the log of a partition of `__transaction_state`."""

    partition: int
    newest_coordinator_epoch: int | None = None
    last_offset: int | None = None
    hole_offset: int | None = None
    hole_ms: int | None = None


#: Findings of these severities forbid an abort of what they name, and so does this one.
ALARMING: Final = (Severity.ERROR.name, Severity.CRITICAL.name)
ALARMING_FINDING: Final = Finding.WRONG_COORDINATOR_PARTITION.name


def cluster_facts(
    coverage: Sequence[CapturedCopy],
    coordinators: Iterable[CoordinatorLog],
    alarms: Iterable[PartitionAlarm],
    partition_assignments: Sequence[AssignmentFact],
    broker_sessions: Sequence[BrokerSessionRow],
    cluster_settings: Sequence[SettingFact],
    producer_id_blocks: Sequence[BlockRow],
    *,
    thresholds: Thresholds,
    kafka_version: str | None,
    transaction_version: int | None,
    count_basis: str,
    is_metadata_confirmed: bool,
    hides_elections: bool = False,
) -> ClusterFacts:
    """The facts that all dossiers of an audit share."""
    partitions = _partitions(coverage, alarms, partition_assignments)
    logs = {each.partition: each for each in coordinators}
    raw = [copy for copy in coverage if (copy.source or "").startswith("raw:")]
    return ClusterFacts(
        thresholds=thresholds,
        kafka_version=kafka_version,
        transaction_version=transaction_version,
        count_basis=count_basis,
        is_metadata_confirmed=is_metadata_confirmed,
        hides_elections=hides_elections,
        coordinators=tuple(
            _coordinator(partition, of, logs.get(partition) or CoordinatorLog(partition=partition))
            for (topic, partition), of in partitions.items()
            if topic == TRANSACTION_STATE_TOPIC and of.copies
        ),
        # Brokers keep one in each partition's folder: where most copies have theirs, the others were lost.
        has_epoch_checkpoints=2 * sum(copy.checkpoint_leader_epoch is not None for copy in raw) > len(raw),
        fenced=_newest(_fenced(broker_sessions)),
        lowered=_newest(_lowered(cluster_settings)),
        partitions=partitions,
        blocks=tuple(sorted((each.block for each in producer_id_blocks), key=_in_order)),
    )


def with_cluster(dossier: Dossier, facts: ClusterFacts) -> Dossier:
    """The dossier, with what the tables of the cluster show about its partitions and its producer id."""
    producer_id = dossier.producer_id
    holding = [each for each in facts.blocks if each.first_producer_id <= producer_id <= each.last_producer_id]
    spans = []
    for span in dossier.open:
        of = facts.partitions.get((span.topic, span.partition), PartitionFacts())
        block = holding[-1] if holding else None
        spans.append(replace(span, copies=of.copies, elections=of.elections, alarms=of.alarms, block=block))
    return replace(dossier, open=tuple(spans))


def _partitions(
    coverage: Sequence[CapturedCopy], alarms: Iterable[PartitionAlarm], partition_assignments: Sequence[AssignmentFact]
) -> dict[tuple[str, int], PartitionFacts]:
    living = [copy for copy in coverage if not copy.is_deleted]
    copies = grouped(living, lambda each: (each.topic, each.partition))
    elections = _elections(partition_assignments)
    names: dict[tuple[str | None, int | None], set[str]] = defaultdict(set)
    for alarm in alarms:
        names[alarm.topic, alarm.partition].add(alarm.name)
    return {
        place: PartitionFacts(
            copies=tuple(copies.get(place, ())),
            elections=_newest(elections.get(place, ())),
            alarms=tuple(sorted(names.get(place, ()))),
        )
        for place in {**copies, **elections, **names}
    }


def _coordinator(partition: int, of: PartitionFacts, log: CoordinatorLog) -> CoordinatorPartition:
    return CoordinatorPartition(
        partition=partition,
        copies=of.copies,
        newest_coordinator_epoch=log.newest_coordinator_epoch,
        last_offset=log.last_offset,
        hole_offset=log.hole_offset,
        hole_ms=log.hole_ms,
        elections=of.elections,
        alarms=of.alarms,
    )


def _elections(partition_assignments: Sequence[AssignmentFact]) -> dict[tuple[str, int], list[Election]]:
    """The states of each partition with another leader or leader epoch than before. All times are the controller's."""
    found: dict[tuple[str, int], list[Election]] = defaultdict(list)
    of_topics = grouped(partition_assignments, lambda each: (each.topic_id, each.topic, each.partition))
    for (topic_id, topic, partition), states in of_topics.items():
        states.sort(key=_since)
        changes = [
            state
            for before, state in zip([None, *states], states, strict=False)
            if before is None or (before.leader, before.leader_epoch) != (state.leader, state.leader_epoch)
        ]
        for state, after in zip(changes, [*changes[1:], None], strict=True):
            election = Election(
                offset=state.since_offset,
                at_ms=state.since_ms,
                leader=state.leader,
                leader_epoch=state.leader_epoch,
                is_unclean=bool(state.is_unclean),
                until_ms=after.since_ms if after and after.since_ms is not None else state.until_ms,
                topic_id=topic_id,
                is_first=state is changes[0],
            )
            found[topic, partition].append(election)
    return found


def _fenced(broker_sessions: Sequence[BrokerSessionRow]) -> Iterable[FencedBroker]:
    """The records that fenced a broker."""
    for broker, sessions in grouped(broker_sessions, attrgetter("broker_id")).items():
        sessions.sort(key=_since)
        for before, session in pairwise(sessions):
            if session.is_fenced and before.is_fenced is False:
                yield FencedBroker(offset=session.since_offset, at_ms=session.since_ms, broker=broker)


def _lowered(cluster_settings: Sequence[SettingFact]) -> Iterable[LoweredFeature]:
    """The records that lowered `transaction.version`."""
    levels = [each for each in cluster_settings if each.scope == "FEATURE" and each.name == TRANSACTION_VERSION]
    levels.sort(key=_since)
    for before, after in pairwise(levels):
        if before.value is not None and after.value is not None and int(after.value) < int(before.value):
            yield LoweredFeature(
                offset=after.since_offset, at_ms=after.since_ms, level_before=int(before.value), level=int(after.value)
            )


def _since(state: Any) -> int:
    """In order; what only a snapshot shows comes first."""
    return -1 if state.since_offset is None else int(state.since_offset)


def _newest(events: Iterable[Row]) -> tuple[Row, ...]:
    return tuple(sorted(events, key=_in_order)[-MOST_EVENTS:])


def _in_order(event: Any) -> tuple[int, int]:
    return -1 if event.offset is None else event.offset, -1 if event.at_ms is None else event.at_ms


def grouped(rows: Iterable[Row], key: Callable[[Row], Any]) -> Mapping[Any, list[Row]]:
    """The rows by their key, in the order in which they came."""
    found: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return found
