"""What the tables of the cluster show: about the cluster as a whole, its coordinators, and each partition."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise, takewhile
from operator import attrgetter
from typing import Any, Final

from txnlib.core.cluster_metadata import (
    BrokerSession,
    ClusterSetting,
    Election,
    FencedBroker,
    LoweredFeature,
    PartitionAssignment,
    ProducerIdBlock,
)
from txnlib.core.copies import NO_LEADER, CoverageRow, End, highest_of, lowest
from txnlib.core.finding import Severity
from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import (
    TRANSACTION_STATE_TOPIC,
    TRANSACTION_VERSION,
    UNKNOWN_CLOCKS_DIFFER_MS,
    is_from,
)
from txnlib.core.kafka.coordinator_partition import CountBasis
from txnlib.core.kafka.marker_acceptance import V2_FROM
from txnlib.core.rows import grouped, row_of
from txnlib.core.verdicts.coordinators import (
    CoordinatorLog,
    CoordinatorPartition,
    Coordinators,
    PartitionFacts,
    ReadBefore,
)
from txnlib.core.verdicts.in_sync import minimums, too_few_in_sync
from txnlib.core.verdicts.whose_clock import UNCOMPARED, Clocks, MeasuredClocks, clock_of, clocks_by_epoch

#: Newest elections of a partition, and newest records that fenced a broker or lowered a feature, to look at.
MOST_EVENTS: Final = 100
_NOT_CAPTURED: Final = CoordinatorPartition()


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """The instant of the audit, the limits, and the tolerated difference between clocks, all in ms."""

    as_of_ms: int
    max_transaction_timeout_ms: int = 900_000
    transaction_max_timeout_ms: int = 900_000
    #: Whether `transaction_max_timeout_ms` is assumed, although another value may be lost in the metadata log.
    is_limit_hidden: bool = False
    stuck_after_ms: int = 300_000
    timeout_scan_interval_ms: int = 10_000
    clock_tolerance_ms: int = 300_000
    transactional_id_expiration_ms: int = 604_800_000


@dataclass(frozen=True, slots=True, kw_only=True)
class NewestMade:
    """The newest record that handed out the producer id, or the producer epoch, of something open on a partition."""

    topic: str
    partition: int
    made_ms: int
    coordinator_partition: int
    coordinator_epoch: int


@dataclass(frozen=True, kw_only=True)
class ClusterFacts:
    """What all dossiers of an audit share."""

    thresholds: Thresholds
    kafka_version: str | None = None
    transaction_version: int | None = None
    #: How the number of coordinator partitions is known.
    count_basis: CountBasis = CountBasis.GIVEN
    #: Whether the metadata log was still growing when it was copied, so that it shows every election.
    is_metadata_confirmed: bool = False
    #: Whether elections may be lost in the metadata log.
    hides_elections: bool = False
    coordinators: tuple[CoordinatorPartition, ...] = ()
    fenced: tuple[FencedBroker, ...] = ()
    lowered: tuple[LoweredFeature, ...] = ()
    partitions: Mapping[tuple[str, int], PartitionFacts] = field(default_factory=dict)
    clocks: Clocks = UNCOMPARED
    #: The levels of `transaction.version` in the metadata log, each with its last instant (None: none, or not shown);
    #: None if it was not captured.
    levels: tuple[tuple[int, int | None], ...] | None = None
    blocks: tuple[ProducerIdBlock, ...] = ()
    #: Whether some COMMIT marker has a higher epoch than its records: only transactions v2 write such markers.
    has_v2_markers: bool = False

    def partition(self, topic: str, partition: int) -> PartitionFacts:
        """A partition; one without copies if it is not known."""
        return self.partitions.get((topic, partition), PartitionFacts())

    def coordinator(self, partition: int | None) -> CoordinatorPartition:
        """A partition of `__transaction_state`; one without copies if it is not known."""
        return self._by_number.get(partition, _NOT_CAPTURED)

    @cached_property
    def _by_number(self) -> Mapping[int | None, CoordinatorPartition]:
        return {each.partition: each for each in sorted(self.coordinators, key=lambda each: each.partition)}

    @cached_property
    def all_coordinators(self) -> Coordinators:
        return Coordinators(tuple(self._by_number.values()))

    def coordinators_of(self, numbers: Collection[int | None]) -> Coordinators:
        """The captured coordinator partitions with these numbers."""
        return Coordinators(tuple(of for number, of in self._by_number.items() if number in numbers))

    def clocks_behind(self, made: Iterable[NewestMade], clocks: Clocks) -> dict[str, int]:
        """Clock -> how far it is behind, in ms: its newest stamp on a partition is older than a record that handed out
        the epoch of something open there."""
        found: dict[str, int] = {}
        for each in made:
            judged = self.partition(each.topic, each.partition).judged
            of = clocks.named.get((TRANSACTION_STATE_TOPIC, each.coordinator_partition))
            if of is None or judged.newest_stamp_ms is None:
                continue
            clock = clock_of(judged.topic, judged.partition, judged.leader)
            behind = each.made_ms - judged.newest_stamp_ms
            if clock != of.get(each.coordinator_epoch) and behind > found.get(clock, 0):
                found[clock] = behind
        return found

    @cached_property
    def shows_v2(self) -> bool:
        """Whether some record or marker was written under transactions v2."""
        return self.has_v2_markers or any((each.highest_transaction_version or 0) >= 2 for each in self.coordinators)

    @cached_property
    def known_version(self) -> str | None:
        """The version of the brokers; None if records, or a level of `transaction.version`, refute what is noted."""
        is_v2 = self.shows_v2 or max((self.transaction_version or 0, *(level for level, _ in self.levels or ()))) >= 2
        return None if is_v2 and is_from(V2_FROM, self.kafka_version) is False else self.kafka_version

    def is_v2_excluded(self, since_ms: int | None) -> bool:
        """Whether no transaction since an instant can be of version 2. None: since ever.

        The level of that time comes first: a note about today says nothing about earlier times.
        """
        if self.shows_v2 or (self.transaction_version or 0) >= 2:
            return False
        highest_level = max((level for level, _ in self._levels_since(since_ms)), default=0)
        is_older = is_from(V2_FROM, self.known_version) is False
        return highest_level < 2 and (self.levels is not None or is_older)

    def is_raised_since(self, since_ms: int | None) -> bool:
        """Whether the metadata log shows that a level of `transaction.version` below 2 ended after an instant. None: at
        any time."""
        return any(level < 2 and until is not None for level, until in self._levels_since(since_ms))

    def _levels_since(self, since_ms: int | None) -> Iterator[tuple[int, int | None]]:
        """The levels that may have held at an instant or later. The controller's clock was compared with no other."""
        for level, until in self.levels or ():
            if until is None or since_ms is None or until > since_ms - UNKNOWN_CLOCKS_DIFFER_MS:
                yield level, until

    @cached_property
    def missing_coordinators(self) -> tuple[int, ...] | None:
        """The coordinator partitions that do not show which ids have no record; None if nothing was captured."""
        if not self.coordinators:
            return None
        return tuple(sorted(each.partition for each in self.coordinators if not each.shows_absence))

    @cached_property
    def leaders_of_missing(self) -> tuple[str, ...]:
        """The leaders of missing coordinator partitions that have a copy."""
        bests = [each.best for each in self.coordinators if each.best and not each.shows_absence]
        leaders = {each.leader for each in bests if each.leader is not None and each.leader != NO_LEADER}
        return tuple(sorted(leaders))

    @property
    def are_coordinators_missing(self) -> bool:
        """Whether any coordinator partition was not captured, or not completely."""
        return self.missing_coordinators != ()

    @cached_property
    def coordinators_known_until_ms(self) -> int | None:
        """The instant up to which all of them are known; None if one is unknown."""
        known = [each.known_until_ms for each in self.coordinators]
        return None if None in known else lowest(known)

    @cached_property
    def worst_coordinator(self) -> CoverageRow | None:
        """The best copy of the coordinator partition that is known least."""
        bests = [each.best for each in self.coordinators if each.best is not None]
        return min(bests, key=lambda copy: (bool(copy.is_current), copy.ends == End.WHOLE), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionAlarm:
    """A finding about a partition that forbids an abort."""

    name: str
    topic: str | None
    partition: int | None


#: Findings of these severities forbid an abort of what they name.
ALARMING: Final = (Severity.ERROR.name, Severity.CRITICAL.name)


def cluster_facts(
    known: ClusterFacts,
    coverage: Sequence[CoverageRow],
    coordinators: Iterable[CoordinatorLog],
    alarms: Iterable[PartitionAlarm],
    partition_assignments: Sequence[PartitionAssignment],
    broker_sessions: Sequence[BrokerSession],
    cluster_settings: Sequence[ClusterSetting],
    producer_id_blocks: Sequence[ProducerIdBlock],
    read_before: Iterable[ReadBefore] = (),
) -> ClusterFacts:
    """The facts that all dossiers of an audit share: `known` by its settings, and what the tables of the cluster
    show."""
    read = grouped(read_before, attrgetter("partition"))
    partitions = _partitions(coverage, alarms, partition_assignments, broker_sessions, cluster_settings)
    logs = {each.partition: each for each in coordinators}
    lived = highest_of((each.broker, clock_ms(each.newest_stamp_ms)) for each in coverage)
    return replace(
        known,
        coordinators=tuple(
            row_of(
                CoordinatorPartition,
                of,
                logs.get(partition, CoordinatorLog(partition=partition)),
                read_before=tuple(read.get(partition, ())),
                lived_ms=lived,
            )
            for (topic, partition), of in partitions.items()
            if topic == TRANSACTION_STATE_TOPIC and of.copies
        ),
        fenced=_newest(_fenced(broker_sessions)),
        lowered=_newest(_lowered(cluster_settings)),
        partitions=partitions,
        levels=_levels(partition_assignments, cluster_settings),
        blocks=tuple(sorted(producer_id_blocks, key=lambda each: -1 if each.offset is None else each.offset)),
    )


def cluster_clocks(
    coverage: Sequence[CoverageRow],
    partition_assignments: Sequence[PartitionAssignment],
    measured: Iterable[MeasuredClocks] = (),
) -> Clocks:
    """Whose clock stamped each partition in each leader epoch, and how these differ."""
    partitions = _partitions(coverage, (), partition_assignments)
    found = {(each.coordinator_clock, each.clock): each for each in measured}
    return Clocks(
        measured=found,
        named={place: clocks_by_epoch(of.copies, of.elections) for place, of in partitions.items()},
        begun=frozenset(each.place for each in coverage if each.is_judged and each.begins_at_start),
    )


def _partitions(
    coverage: Sequence[CoverageRow],
    alarms: Iterable[PartitionAlarm],
    partition_assignments: Sequence[PartitionAssignment],
    broker_sessions: Sequence[BrokerSession] = (),
    cluster_settings: Sequence[ClusterSetting] = (),
) -> dict[tuple[str, int], PartitionFacts]:
    living = [copy for copy in coverage if not copy.is_deleted]
    copies = grouped(living, lambda each: (each.topic, each.partition))
    elections = _elections(partition_assignments, _crashes(broker_sessions), _up(broker_sessions))
    states = grouped(partition_assignments, lambda each: (each.topic, each.partition))
    needed = minimums(cluster_settings)
    names: dict[tuple[str | None, int | None], set[str]] = defaultdict(set)
    for alarm in alarms:
        names[alarm.topic, alarm.partition].add(alarm.name)
    return {
        place: PartitionFacts(
            copies=tuple(copies.get(place, ())),
            elections=_newest(elections.get(place, ()), lambda election: election.may_lose or election.is_first),
            alarms=tuple(sorted(names.get(place, ()))),
            too_few_in_sync=too_few_in_sync(sorted(states.get(place, ()), key=_since), needed),
        )
        for place in {**copies, **elections, **names}
    }


def _elections(
    partition_assignments: Sequence[PartitionAssignment],
    crashes: Mapping[int, Sequence[int]],
    up: Mapping[int, Sequence[BrokerSession]],
) -> dict[tuple[str, int], list[Election]]:
    """Partition -> its elections: the states that begin with another leader or leader epoch. All times are the
    controller's.

    `crashes`, `up`: as the functions of these names.
    """
    found: dict[tuple[str, int], list[Election]] = defaultdict(list)
    of_topics = grouped(partition_assignments, lambda each: (each.topic_id, each.topic, each.partition))
    for (_, topic, partition), states in of_topics.items():
        states.sort(key=_since)
        changes = [
            (number, state)
            for number, (before, state) in enumerate(zip([None, *states], states, strict=False))
            if before is None or (before.leader, before.leader_epoch) != (state.leader, state.leader_epoch)
        ]
        for (number, state), (_, after) in zip(changes, [*changes[1:], (None, None)], strict=True):
            election = Election(
                offset=state.since_offset,
                at_ms=state.since_ms,
                leader=state.leader,
                leader_epoch=state.leader_epoch,
                topic_id=state.topic_id,
                is_unclean=bool(state.is_unclean),
                is_after_crash=_is_after_crash(states[:number], state, crashes)
                or _is_after_disk(states[:number], state, up),
                until_ms=after.since_ms if after and after.since_ms is not None else state.until_ms,
                is_first=number == 0,
            )
            found[topic, partition].append(election)
    return found


def _is_after_crash(
    before: Sequence[PartitionAssignment], state: PartitionAssignment, crashes: Mapping[int, Sequence[int]]
) -> bool:
    """Whether the leader of a state had crashed while it was the only replica in sync."""
    leader, alone = state.leader, _alone(before, state.leader)
    if not alone or leader is None or state.since_offset is None:
        return False
    since = -1 if alone[0].since_offset is None else alone[0].since_offset
    return any(since <= offset <= state.since_offset for offset in crashes.get(leader, ()))


def _is_after_disk(
    before: Sequence[PartitionAssignment], state: PartitionAssignment, up: Mapping[int, Sequence[BrokerSession]]
) -> bool:
    """Whether a disk of the leader of a state failed while it was the only replica in sync: it stopped leading, but its
    broker went on. With a new disk, it leads an empty log. Kafka:
    `ReplicationControlManager.handleDirectoriesOffline`."""
    leader = state.leader
    return any(
        was.leader == leader and each.leader is None and any(_is_during(each, of) for of in up.get(leader or 0, ()))
        for was, each in pairwise(_alone(before, leader))
    )


def _alone(states: Sequence[PartitionAssignment], broker: int | None) -> list[PartitionAssignment]:
    """The states at the end of the list in which a broker is the only replica in sync."""
    found = takewhile(lambda each: each.isr == (broker,) and not each.eligible_leader_replicas, reversed(states))
    return list(found)[::-1]


def _is_during(state: PartitionAssignment, of: BrokerSession) -> bool:
    """Whether a state of a partition began during a session of a broker, not at its ends: records of one event have the
    same instant, in no certain order."""
    if state.since_ms is None or of.since_ms is None:
        return False
    return of.since_ms < state.since_ms and (of.until_ms is None or state.since_ms < of.until_ms)


def _crashes(broker_sessions: Sequence[BrokerSession]) -> dict[int, list[int]]:
    """Broker -> the offsets of records that show a crash: they fence it, or register it again, without a controlled
    shutdown before."""
    found: dict[int, list[int]] = defaultdict(list)
    for broker, before, session in _successions(broker_sessions):
        is_fenced = session.is_fenced and before.is_fenced is False
        is_new = (session.broker_epoch, session.incarnation_id) != (before.broker_epoch, before.incarnation_id)
        if (is_fenced or is_new) and not before.is_in_controlled_shutdown and session.since_offset is not None:
            found[broker].append(session.since_offset)
    return found


def _up(broker_sessions: Sequence[BrokerSession]) -> dict[int, list[BrokerSession]]:
    """Broker -> its sessions in which it was neither fenced nor in controlled shutdown."""
    found: dict[int, list[BrokerSession]] = defaultdict(list)
    for each in broker_sessions:
        if each.broker_id is not None and each.is_fenced is False and not each.is_in_controlled_shutdown:
            found[each.broker_id].append(each)
    return found


def _levels(
    assignments: Sequence[PartitionAssignment], settings: Sequence[ClusterSetting]
) -> tuple[tuple[int, int | None], ...] | None:
    """The levels of `transaction.version` that the metadata log shows; a cluster that never set it has 0."""
    found = tuple(
        (int(each.value), each.until_ms)
        for each in settings
        if each.scope == "FEATURE" and each.name == TRANSACTION_VERSION and each.value is not None
    )
    return found if found or assignments else None


def _fenced(broker_sessions: Sequence[BrokerSession]) -> Iterable[FencedBroker]:
    for broker, before, session in _successions(broker_sessions):
        if session.is_fenced and before.is_fenced is False:
            yield FencedBroker(offset=session.since_offset, at_ms=session.since_ms, broker=broker)


def _successions(broker_sessions: Sequence[BrokerSession]) -> Iterator[tuple[int, BrokerSession, BrokerSession]]:
    """Broker, a session of it, and the session after that, for all sessions but the last."""
    for broker, sessions in grouped(broker_sessions, attrgetter("broker_id")).items():
        for before, session in pairwise(sorted(sessions, key=_since)):
            yield broker, before, session


def _lowered(cluster_settings: Sequence[ClusterSetting]) -> Iterable[LoweredFeature]:
    levels = [each for each in cluster_settings if each.scope == "FEATURE" and each.name == TRANSACTION_VERSION]
    levels.sort(key=_since)
    for before, after in pairwise(levels):
        if before.value is not None and after.value is not None and int(after.value) < int(before.value):
            yield LoweredFeature(
                offset=after.since_offset, at_ms=after.since_ms, level_before=int(before.value), level=int(after.value)
            )


def _since(state: Any) -> int:
    """Sort key of states: the offset of the record that begins one; -1 if only a snapshot shows it."""
    return -1 if state.since_offset is None else int(state.since_offset)


def _newest(events: Iterable[Any], stays: Callable[[Any], bool] = lambda _event: False) -> tuple[Any, ...]:
    """The newest events, and of the older ones those that `stays` keeps."""
    order = attrgetter("offset", "at_ms")
    in_order = sorted(events, key=lambda event: [-1 if number is None else number for number in order(event)])
    return (*filter(stays, in_order[:-MOST_EVENTS]), *in_order[-MOST_EVENTS:])
