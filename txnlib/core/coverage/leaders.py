"""Leaders of partitions, by capture.json and the metadata log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from txnlib.core.coverage.sources import NO_LEADER, Place, is_above, lowest
from txnlib.core.verdicts.copies import LeaderBasis


@dataclass(frozen=True, slots=True, kw_only=True)
class NotedPartition:
    """What capture.json notes of a partition: its leader and replicas, and what the leader answered, over the wire.

    Kafka: to `ListOffsetsRequest` with isolation level READ_COMMITTED, a leader answers the last stable offset.
    """

    topic: str
    partition: int
    leader: str | None = None
    replicas: tuple[str, ...] = ()
    log_start_offset: int | None = None
    high_watermark: int | None = None
    high_watermark_before: int | None = None
    last_stable_offset: int | None = None
    answered_at_ms: int | None = None
    fetched_from: int | None = None

    @property
    def place(self) -> Place:
        return self.topic, self.partition

    @property
    def is_answered(self) -> bool:
        """Whether the leader was asked. An answer without its instant proves nothing."""
        return self.answered_at_ms is not None

    @property
    def answered_stable_offset(self) -> int | None:
        return self.last_stable_offset if self.is_answered else None

    @property
    def answered_high_watermark(self) -> int | None:
        """Of several answers, the one before the last stable offset: what was appended later does not count."""
        before = self.high_watermark if self.high_watermark_before is None else self.high_watermark_before
        return before if self.is_answered else None

    @property
    def is_nothing_open(self) -> bool:
        """Whether the leader answered that nothing was open: its last stable offset was its high watermark."""
        stable_offset = self.answered_stable_offset
        return stable_offset is not None and stable_offset == self.high_watermark

    def is_scoped(self, first_segment_offset: int | None) -> bool:
        """Whether a copy with that first segment begins above its log start because the capture chose so."""
        is_chosen = self.is_answered and first_segment_offset is not None and first_segment_offset == self.fetched_from
        return is_chosen and is_above(self.fetched_from, self.log_start_offset)


@dataclass(frozen=True, slots=True)
class AssignedPartition:
    """A row of `partition_assignments`: a state of a partition."""

    topic: str | None
    partition: int
    topic_id: str
    leader: int | None
    leader_epoch: int | None
    isr: tuple[int, ...] | None
    replicas: tuple[int, ...] | None
    eligible_leader_replicas: tuple[int, ...] | None
    since_ms: int | None
    is_current: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLeader:
    """The leader of a partition, and how it is known. `-1`: no broker leads it."""

    leader: str | None = None
    replicas: tuple[str, ...] = ()
    #: In-sync and eligible leader replicas, by the metadata log; None if it was not used.
    in_sync: tuple[str, ...] | None = None
    leader_basis: LeaderBasis | None = None
    #: Leader by notes that are in force, and by the metadata log.
    noted_leader: str | None = None
    assigned_leader: str | None = None
    #: Of a leader from the metadata log: its leader epoch, and when it began.
    led_epoch: int | None = None
    led_since_ms: int | None = None


def leaders(
    partition_notes: Iterable[NotedPartition],
    partition_assignments: Iterable[AssignedPartition],
    metadata_basis: LeaderBasis | None,
    noted_ms: int | None,
) -> dict[Place, PartitionLeader]:
    """The leader of each partition that capture.json or the metadata log names.

    capture.json wins, unless the leader changed in the metadata log after the notes were made. A stale metadata log names none, and
    a damaged one contradicts none. `partition_notes` were made at `noted_ms`. `metadata_basis`: that of leaders in the metadata
    log; None if there is no such log.
    """
    notes = {each.place: each for each in partition_notes}
    assigned = dict(_assigned(partition_assignments, metadata_basis))
    return {place: _leader(notes.get(place), assigned.get(place), noted_ms) for place in notes.keys() | assigned.keys()}


def _leader(noted: NotedPartition | None, assigned: PartitionLeader | None, noted_ms: int | None) -> PartitionLeader:
    """The leader of one partition, which one of both names."""
    if assigned is None or (noted is not None and noted.leader is not None and not is_above(assigned.led_since_ms, noted_ms)):
        leader, replicas = (None, ()) if noted is None else (noted.leader, noted.replicas)
        return PartitionLeader(
            leader=leader,
            replicas=replicas,
            leader_basis=None if leader is None else LeaderBasis.CAPTURE_JSON,
            noted_leader=leader,
            assigned_leader=None if assigned is None else assigned.assigned_leader,
        )
    return replace(assigned, replicas=noted.replicas) if noted is not None and not assigned.replicas else assigned


def _assigned(
    partition_assignments: Iterable[AssignedPartition], basis: LeaderBasis | None
) -> Iterator[tuple[Place, PartitionLeader]]:
    """The current leader of each partition by the metadata log, and since when its leader epoch lasts, if a record shows it."""
    begins: dict[tuple[str, int, int | None], list[int | None]] = defaultdict(list)
    current: list[tuple[Place, AssignedPartition]] = []
    for each in partition_assignments:
        begins[each.topic_id, each.partition, each.leader_epoch].append(each.since_ms)
        if each.is_current and each.topic is not None:
            current.append(((each.topic, each.partition), each))
    for place, each in current:
        since = begins[each.topic_id, each.partition, each.leader_epoch]
        leader = NO_LEADER if each.leader is None else str(each.leader)
        leader_named = None if basis is LeaderBasis.METADATA_LOG_STALE else leader
        in_sync = None if each.isr is None else dict.fromkeys(map(str, (*each.isr, *(each.eligible_leader_replicas or ()))))
        yield (
            place,
            PartitionLeader(
                leader=leader_named,
                replicas=tuple(map(str, each.replicas or ())),
                in_sync=None if in_sync is None else tuple(in_sync),
                leader_basis=basis,
                assigned_leader=None if basis is LeaderBasis.METADATA_LOG_DAMAGED else leader_named,
                led_epoch=each.leader_epoch,
                led_since_ms=None if None in since else lowest(since),
            ),
        )
