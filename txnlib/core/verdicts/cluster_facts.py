"""What the tables of the cluster show: about the cluster as a whole, its coordinators, and each partition."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
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
from txnlib.core.copies import LOG_END, CoverageRow, End, Role, highest, lowest
from txnlib.core.finding_catalogue import Finding, Severity
from txnlib.core.kafka.constants import (
    TRANSACTION_STATE_TOPIC,
    TRANSACTION_VERSION,
    UNKNOWN_CLOCKS_DIFFER_MS,
    is_from,
)
from txnlib.core.kafka.marker_acceptance import V2_FROM
from txnlib.core.rows import grouped, row_of
from txnlib.core.verdicts.clocks import UNCOMPARED, Clocks, clock_of, clocks_by_epoch, newest_leader_epoch
from txnlib.core.verdicts.dossier import Dossier

#: Newest elections of a partition, and newest records that fenced a broker or lowered a feature, to look at.
MOST_EVENTS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """The instant of the audit, the limits, and the tolerated difference between clocks, all in ms."""

    as_of_ms: int
    max_transaction_timeout_ms: int = 900_000
    transaction_max_timeout_ms: int = 900_000
    #: Whether that is assumed, and another value may be lost in the metadata log.
    is_limit_hidden: bool = False
    stuck_after_ms: int = 300_000
    timeout_scan_interval_ms: int = 10_000
    clock_tolerance_ms: int = 300_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFacts:
    """What the tables of the cluster show about a partition."""

    copies: tuple[CoverageRow, ...] = ()
    elections: tuple[Election, ...] = ()
    #: Names of findings of severity ERROR or CRITICAL about the partition.
    alarms: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CoordinatorPartition(PartitionFacts):
    """A partition of `__transaction_state`: its copies, what they prove together, and what compaction left of its log.

    Kafka: `TransactionStateManager.loadTransactionMetadata` reads the whole log. Source:
    docs/rules/abort.md#no-coordinator-left.
    """

    partition: int = -1
    newest_coordinator_epoch: int | None = None
    last_offset: int | None = None
    #: The newest record that follows a hole: nothing is missing from there on. None: nothing is missing at all.
    hole_offset: int | None = None
    hole_ms: int | None = None
    #: Its leader epoch.
    hole_epoch: int | None = None
    #: The newest transaction version of a client in its records.
    highest_transaction_version: int | None = None

    @cached_property
    def _captured(self) -> list[CoverageRow]:
        return [copy for copy in self.copies if copy.status != "MISSING"]

    @cached_property
    def best(self) -> CoverageRow | None:
        """The copy that reaches furthest for certain; None if nothing was captured."""
        return max(
            self._captured,
            key=lambda copy: (bool(copy.is_current), copy.ends == End.WHOLE, copy.is_judged, copy.end_offset or 0),
            default=None,
        )

    @cached_property
    def known_until_ms(self) -> int | None:
        """The instant up to which the copies show everything."""
        return highest(copy.known_until_ms for copy in self._captured if copy.is_decoded)

    @cached_property
    def captured_ms(self) -> int | None:
        """When the newest copy that shows absence was taken."""
        return highest(copy.captured_at_ms for copy in self._captured if copy.shows_absence)

    @cached_property
    def is_instant_assumed(self) -> bool:
        return all(copy.is_instant_assumed is not False for copy in self._captured)

    @cached_property
    def damaged_offset(self) -> int | None:
        """Records below this offset are lost in every copy.

        Only a copy that contains the damaged offsets, undamaged and not truncated below them, makes up for a damaged
        one.
        """
        copies = self._captured
        ends = {copy.damage_ends_at for copy in copies}
        return highest(
            end for end in ends if end is not None and not any(_contains(copy, end, copies) for copy in copies)
        )

    @cached_property
    def shows_absence(self) -> bool:
        """Whether an id without a record in the copies has none in the log."""
        return self.damaged_offset is None and any(copy.shows_absence for copy in self._captured)

    @property
    def newest_leader_epoch(self) -> int | None:
        """The newest leader epoch that records, checkpoints or elections show."""
        return highest((self.newest_coordinator_epoch, newest_leader_epoch(self.copies, self.elections)))

    @property
    def hole_end(self) -> int | None:
        """The offset below which records of the log are missing; None if none are. They may be the newest ones, too."""
        end = highest(end for copy in self.copies for end in (copy.survives_until, copy.high_watermark))
        last = -1 if self.last_offset is None else self.last_offset
        return end if end is not None and end > last + 1 else self.hole_offset


def _contains(copy: CoverageRow, end: int, copies: Iterable[CoverageRow]) -> bool:
    """Whether a copy is whole up to an offset; for the end of the log, up to all that any copy or checkpoint
    reaches."""
    if not copy.shows_absence or copy.survives_until is None:
        return False
    if end < LOG_END:
        return copy.survives_until >= end
    mark = highest(mark for each in copies for mark in (each.noted_high_watermark, each.high_watermark))
    reached = highest(each.end_offset for each in copies)
    return mark is not None and bool(copy.is_current) and copy.survives_until >= max(mark, reached or 0)


def uncertainties(coordinator: CoordinatorPartition) -> list[str]:
    """Why a coordinator partition is not known for certain, in words; empty if it is: current, whole, by a certain
    leader."""
    name, best, damaged = (
        f"{TRANSACTION_STATE_TOPIC}-{coordinator.partition}",
        coordinator.best,
        coordinator.damaged_offset,
    )
    if best is None:
        return [f"{name} was not captured"]
    if not best.has_leader:
        return [f"the leader of {name} is not known for certain: note it in capture.json, or copy the metadata log"]
    if best.role != Role.LEADER or not best.is_current:
        return [f"the copy of {name} is not known to be current: copy its leader's (broker {best.leader})"]
    if damaged is not None:
        return [
            f"{name} is damaged{' at its end' if damaged >= LOG_END else f' below offset {damaged}'}: copy another"
            " replica of it"
        ]
    if best.segment_gap_offset is not None:
        lacks = f"may lack a segment before offset {best.segment_gap_offset}"
        return [f"the copy of {name} {lacks}: copy the cleaner-offset-checkpoint of broker {best.leader} after it"]
    if not best.begins_at_start:
        return [f"the copy of {name} lacks its first segments: copy the whole folder"]
    if not coordinator.shows_absence:
        return [f"the copy of {name} does not show all of its records: copy the raw segments"]
    if best.high_watermark is None:
        return [
            f"the end of the copy of {name} is not confirmed: copy the replication-offset-checkpoint of broker"
            f" {best.leader}"
        ]
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class NewestMade:
    """The newest record that handed out a producer id, or an epoch of one, of what is open on a partition."""

    topic: str
    partition: int
    made_ms: int
    coordinator_partition: int
    coordinator_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """What all dossiers of an audit share."""

    thresholds: Thresholds
    kafka_version: str | None = None
    transaction_version: int | None = None
    #: How the number of coordinator partitions is known (`CountBasis`).
    count_basis: str = "GIVEN"
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
    #: Whether a COMMIT marker has a higher epoch than its records, as only transactions v2 write it.
    has_v2_markers: bool = False

    def coordinator(self, partition: int | None) -> CoordinatorPartition:
        """A partition of `__transaction_state`; one without copies if it is not known."""
        return next((each for each in self.coordinators if each.partition == partition), CoordinatorPartition())

    def clocks_behind(self, made: Iterable[NewestMade], clocks: Clocks) -> dict[str, int]:
        """The clocks that are behind, because all stamps on a partition are older than what is open there."""
        found: dict[str, int] = {}
        for each in made:
            copies = self.partitions.get((each.topic, each.partition), PartitionFacts()).copies
            judged = next((copy for copy in copies if copy.is_judged), None)
            of = clocks.named.get((TRANSACTION_STATE_TOPIC, each.coordinator_partition))
            if judged is None or of is None or judged.newest_stamp_ms is None:
                continue
            clock = clock_of(judged.topic, judged.partition, judged.leader)
            behind = each.made_ms - judged.newest_stamp_ms
            if clock != of.get(each.coordinator_epoch) and behind > found.get(clock, 0):
                found[clock] = behind
        return found

    @property
    def shows_v2(self) -> bool:
        """Whether records or markers are of transactions v2."""
        return self.has_v2_markers or any((each.highest_transaction_version or 0) >= 2 for each in self.coordinators)

    @property
    def known_version(self) -> str | None:
        """The version of the brokers; None if records refute what is noted."""
        is_refuted = self.shows_v2 and is_from(V2_FROM, self.kafka_version) is False
        return None if is_refuted else self.kafka_version

    def is_v2_excluded(self, since_ms: int | None) -> bool:
        """Whether no transaction since an instant can be of version 2 (None: since ever).

        What a note says of today says nothing of before.
        """
        if self.shows_v2 or (self.transaction_version or 0) >= 2:
            return False
        if is_from(V2_FROM, self.kafka_version) is False:
            return True
        # The controller's clock was compared with no other.
        later = (
            level
            for level, until in self.levels or ()
            if until is None or since_ms is None or until > since_ms - UNKNOWN_CLOCKS_DIFFER_MS
        )
        return self.levels is not None and max(later, default=0) < 2

    @property
    def missing_coordinators(self) -> tuple[int, ...] | None:
        """The coordinator partitions that do not show which ids have no record; None if nothing was captured."""
        if not self.coordinators:
            return None
        return tuple(sorted(each.partition for each in self.coordinators if not each.shows_absence))

    @property
    def coordinators_known_until_ms(self) -> int | None:
        """The instant up to which all of them are known; None if one is unknown."""
        known = [each.known_until_ms for each in self.coordinators]
        return None if None in known else lowest(known)

    @property
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorLog:
    """What compaction left of the log of a partition of `__transaction_state`."""

    partition: int
    newest_coordinator_epoch: int | None = None
    last_offset: int | None = None
    hole_offset: int | None = None
    hole_ms: int | None = None
    hole_epoch: int | None = None
    highest_transaction_version: int | None = None


#: Findings of these severities forbid an abort of what they name, and so does this one.
ALARMING: Final = (Severity.ERROR.name, Severity.CRITICAL.name)
ALARMING_FINDING: Final = Finding.WRONG_COORDINATOR_PARTITION.name


def cluster_facts(
    known: ClusterFacts,
    coverage: Sequence[CoverageRow],
    coordinators: Iterable[CoordinatorLog],
    alarms: Iterable[PartitionAlarm],
    partition_assignments: Sequence[PartitionAssignment],
    broker_sessions: Sequence[BrokerSession],
    cluster_settings: Sequence[ClusterSetting],
    producer_id_blocks: Sequence[ProducerIdBlock],
) -> ClusterFacts:
    """The facts that all dossiers of an audit share: `known` by its settings, and what the tables of the cluster
    show."""
    partitions = _partitions(coverage, alarms, partition_assignments)
    logs = {each.partition: each for each in coordinators}
    return replace(
        known,
        coordinators=tuple(
            row_of(CoordinatorPartition, of, logs.get(partition), partition=partition)
            for (topic, partition), of in partitions.items()
            if topic == TRANSACTION_STATE_TOPIC and of.copies
        ),
        fenced=_newest(_fenced(broker_sessions)),
        lowered=_newest(_lowered(cluster_settings)),
        partitions=partitions,
        levels=_levels(partition_assignments, cluster_settings),
        blocks=tuple(sorted(producer_id_blocks, key=lambda each: -1 if each.offset is None else each.offset)),
    )


def cluster_clocks(coverage: Sequence[CoverageRow], partition_assignments: Sequence[PartitionAssignment]) -> Clocks:
    """Whose clock stamped each partition in each leader epoch."""
    partitions = _partitions(coverage, (), partition_assignments)
    return Clocks(
        named={place: clocks_by_epoch(of.copies, of.elections) for place, of in partitions.items()},
        begun=frozenset(each.place for each in coverage if each.is_judged and each.begins_at_start),
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
    coverage: Sequence[CoverageRow],
    alarms: Iterable[PartitionAlarm],
    partition_assignments: Sequence[PartitionAssignment],
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
            elections=_newest(elections.get(place, ()), lambda election: election.is_unclean),
            alarms=tuple(sorted(names.get(place, ()))),
        )
        for place in {**copies, **elections, **names}
    }


def _elections(partition_assignments: Sequence[PartitionAssignment]) -> dict[tuple[str, int], list[Election]]:
    """The states of each partition with another leader or leader epoch than before. All times are the controller's."""
    found: dict[tuple[str, int], list[Election]] = defaultdict(list)
    of_topics = grouped(partition_assignments, lambda each: (each.topic_id, each.topic, each.partition))
    for (_, topic, partition), states in of_topics.items():
        states.sort(key=_since)
        changes = [
            state
            for before, state in zip([None, *states], states, strict=False)
            if before is None or (before.leader, before.leader_epoch) != (state.leader, state.leader_epoch)
        ]
        for state, after in zip(changes, [*changes[1:], None], strict=True):
            election = row_of(
                Election,
                state,
                offset=state.since_offset,
                at_ms=state.since_ms,
                is_unclean=bool(state.is_unclean),
                until_ms=after.since_ms if after and after.since_ms is not None else state.until_ms,
                is_first=state is changes[0],
            )
            found[topic, partition].append(election)
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
    for broker, sessions in grouped(broker_sessions, attrgetter("broker_id")).items():
        sessions.sort(key=_since)
        for before, session in pairwise(sessions):
            if session.is_fenced and before.is_fenced is False:
                yield FencedBroker(offset=session.since_offset, at_ms=session.since_ms, broker=broker)


def _lowered(cluster_settings: Sequence[ClusterSetting]) -> Iterable[LoweredFeature]:
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


def _newest(events: Iterable[Any], stays: Callable[[Any], bool] = lambda _event: False) -> tuple[Any, ...]:
    """The newest events, and all older ones that stay."""
    order = attrgetter("offset", "at_ms")
    in_order = sorted(events, key=lambda event: [-1 if number is None else number for number in order(event)])
    return (*filter(stays, in_order[:-MOST_EVENTS]), *in_order[-MOST_EVENTS:])
