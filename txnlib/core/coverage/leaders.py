"""Leaders of partitions, by capture.json and the metadata log.

Also partitions without a copy, and copies of deleted topics.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from txnlib.core.cluster_metadata import PartitionAssignment
from txnlib.core.copies import NO_LEADER, LeaderBasis, highest_of, is_above, lowest
from txnlib.core.coverage.captured_files import RAW, TEXT, CapturedFile, Checkpoints, CopyKey, Place, broker_of
from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import CLUSTER_METADATA_TOPIC, TRANSACTION_STATE_TOPIC


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
    noted_leader_epoch: int | None = None

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
        """The high watermark that the leader answered just before the last stable offset, so that later appends do not
        count; None if it was not asked."""
        before = self.high_watermark if self.high_watermark_before is None else self.high_watermark_before
        return before if self.is_answered else None

    @property
    def is_nothing_open(self) -> bool:
        """Whether the leader answered that nothing was open: its last stable offset was its high watermark."""
        stable_offset = self.answered_stable_offset
        return stable_offset is not None and stable_offset == self.high_watermark

    def is_scoped(self, first_segment_offset: int | None) -> bool:
        """Whether a copy whose first segment begins at this offset begins above its log start because the capture was
        told so."""
        is_chosen = self.is_answered and first_segment_offset is not None and first_segment_offset == self.fetched_from
        return is_chosen and is_above(self.fetched_from, self.log_start_offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLeader:
    """The leader of a partition, and how it is known. `-1`: no broker leads it."""

    leader: str | None = None
    replicas: tuple[str, ...] = ()
    #: In-sync and eligible leader replicas, by the metadata log; None if it was not used.
    in_sync: tuple[str, ...] | None = None
    leader_basis: LeaderBasis | None = None
    #: The leader by the notes, if they are in force; and by the metadata log.
    noted_leader: str | None = None
    assigned_leader: str | None = None
    #: Leader epoch of the leader by the metadata log, and when that epoch began.
    led_epoch: int | None = None
    led_since_ms: int | None = None


def leaders(
    partition_notes: Iterable[NotedPartition],
    partition_assignments: Iterable[PartitionAssignment],
    metadata_basis: LeaderBasis | None,
    noted_ms: int | None,
) -> dict[Place, PartitionLeader]:
    """The leader of each partition that capture.json or the metadata log names.

    capture.json wins, unless the leader changed in the metadata log after the notes were made. A stale metadata log
    names none, and a damaged one contradicts none. `partition_notes` were made at `noted_ms`. `metadata_basis`: that of
    leaders in the metadata log; None if there is no such log.
    """
    notes = {each.place: each for each in partition_notes}
    assigned = dict(_assigned(partition_assignments, metadata_basis))
    return {place: _leader(notes.get(place), assigned.get(place), noted_ms) for place in notes.keys() | assigned.keys()}


def _leader(noted: NotedPartition | None, assigned: PartitionLeader | None, noted_ms: int | None) -> PartitionLeader:
    """The leader of one partition, by its notes or by the metadata log; at least one of the two is given."""
    if assigned is None or (
        noted is not None and noted.leader is not None and not is_above(assigned.led_since_ms, noted_ms)
    ):
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
    partition_assignments: Iterable[PartitionAssignment], basis: LeaderBasis | None
) -> Iterator[tuple[Place, PartitionLeader]]:
    """The current leader of each partition by the metadata log, and since when its leader epoch lasts, if a record
    shows it."""
    begins: dict[tuple[str, int, int | None], list[int | None]] = defaultdict(list)
    current: list[tuple[Place, PartitionAssignment]] = []
    for each in partition_assignments:
        begins[each.topic_id, each.partition, each.leader_epoch].append(each.since_ms)
        if each.is_current and each.topic is not None:
            current.append(((each.topic, each.partition), each))
    for place, each in current:
        since = begins[each.topic_id, each.partition, each.leader_epoch]
        leader = NO_LEADER if each.leader is None else str(each.leader)
        leader_named = None if basis is LeaderBasis.METADATA_LOG_STALE else leader
        in_sync = (
            None if each.isr is None else dict.fromkeys(map(str, (*each.isr, *(each.eligible_leader_replicas or ()))))
        )
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


# ---- Partitions without a copy


#: A partition, and a broker that has a replica of it.
Replica = tuple[Place, str | None]


@dataclass(frozen=True, slots=True)
class TopicProof:
    """What a capture proves about topics that it does not contain. Instants are epoch ms, None if there is no such
    proof."""

    #: The topics that a broker or capture.json names, and the instant up to which these are all.
    listed: frozenset[str] = frozenset()
    listed_ms: int | None = None
    are_all_listed: bool = False
    #: The instant up to which the metadata log is known to name every partition.
    metadata_ms: int | None = None

    def is_gone(self, place: Place, leader: PartitionLeader) -> tuple[bool, int | None]:
        """Whether the topic of a partition no longer exists, and the instant of the proof."""
        topic, _ = place
        if topic == TRANSACTION_STATE_TOPIC:
            return False, None
        if self.metadata_ms is not None and leader.assigned_leader is None:
            return True, self.metadata_ms
        is_unlisted = self.are_all_listed and topic not in self.listed
        return is_unlisted, self.listed_ms if is_unlisted else None


def topic_proof(
    listed: Collection[Replica],
    partition_notes: Iterable[NotedPartition],
    default_ms: int | None,
    metadata_ms: int | None,
) -> TopicProof:
    """What a capture proves about topics that it does not contain.

    A broker's checkpoint of high watermarks lists all its partitions (`listed`), and capture.json lists the replicas.
    If both list the same replicas, both are complete: no broker and no log directory is missing in the capture, and a
    topic in neither list is on no broker. Partitions are only deleted together with their topic.
    """
    noted = {(each.place, replica) for each in partition_notes for replica in each.replicas}
    replicas = set(listed)
    topics = frozenset(topic for (topic, _), _ in noted | replicas)
    return TopicProof(topics, default_ms, bool(noted) and noted == replicas, metadata_ms)


def absence(leader: PartitionLeader, noted: NotedPartition, *, is_gone: bool) -> str:
    """What to do about a partition without a copy, in words."""
    if is_gone:
        return "its topic no longer exists"
    if noted.is_nothing_open:
        answered = datetime.fromtimestamp((noted.answered_at_ms or 0) // 1000, UTC)
        who = "its leader" if leader.leader is None else f"broker {leader.leader}"
        return (
            f"nothing was open at {answered:%Y-%m-%dT%H:%M:%SZ}, by the word of {who}: its last stable offset was its"
            f" high watermark, {noted.last_stable_offset}; its log was not fetched (--scope open)"
        )
    if leader.leader == NO_LEADER:
        return f"not captured; no broker leads it; in sync last: {', '.join(leader.in_sync or ())}"
    return "not captured" if leader.leader is None else f"not captured; broker {leader.leader} leads it"


# ---- The copies of deleted topics


def deleted_copies(
    segments: Collection[CapturedFile],
    checkpoints: Mapping[CopyKey, Checkpoints],
    partition_assignments: Iterable[PartitionAssignment],
    partition_notes: Iterable[NotedPartition],
    brokers_with_metadata: Collection[str | None],
    *,
    is_metadata_whole: bool,
    is_metadata_confirmed: bool,
    metadata_known_ms: int | None,
) -> set[CopyKey]:
    """The copies of deleted topics, usually none.

    The topic id in `partition.metadata` shows it:

    * The metadata log names the id: the copy is deleted if the topic has another id now.
    * A metadata log with beginning and end (`is_metadata_whole`) does not name the id: the topic was deleted before the
      snapshot of that log. This holds for a log that is confirmed, or that was captured from the same broker, because a
      broker makes the folder of a partition only after it has the topic's record in its own metadata log. It does not
      hold if the copy was written after the log ends (`metadata_known_ms`): then the log has lost its end.
    * No such log: copies with different topic ids are of different topics, and one of these lives.

    Text shows no topic id: it counts as deleted if a confirmed log has no topic of its name. `partition_notes`: of
    capture.json. Kafka: `LogManager.isStrayKraftReplica`, `BrokerMetadataPublisher`.
    """
    ids = {copy: noted.topic_id for copy, noted in checkpoints.items() if noted.topic_id is not None}
    newest_ms: dict[CopyKey | None, int] = highest_of((file.copy, clock_ms(file.newest_broker_ms)) for file in segments)
    known_ids: dict[str | None, set[str]] = defaultdict(set)
    current_ids: dict[str | None, str] = {}
    for each in partition_assignments:
        known_ids[each.topic].add(each.topic_id)
        if each.is_current:
            current_ids[each.topic] = max(each.topic_id, current_ids.get(each.topic, ""))

    def is_deleted(copy: CopyKey) -> bool:
        topic, _, source = copy
        topic_id, current_id = ids.get(copy), current_ids.get(topic)
        if topic_id is None:
            return is_metadata_whole and is_metadata_confirmed and current_id is None
        if topic_id in known_ids.get(topic, ()):
            return topic_id != current_id
        is_outlived = is_above(newest_ms.get(copy), metadata_known_ms)
        return (
            is_metadata_whole
            and not is_outlived
            and (is_metadata_confirmed or broker_of(source) in brokers_with_metadata)
        )

    copies = {file.copy for file in segments if file.kind in (RAW, TEXT) and file.topic != CLUSTER_METADATA_TOPIC}
    deleted = {copy for copy in copies if copy is not None and is_deleted(copy)}
    unsettled = {copy: topic_id for copy, topic_id in ids.items() if copy not in deleted}
    return deleted | _of_other_ids(newest_ms, unsettled, partition_notes)


def _of_other_ids(
    newest_ms: Mapping[CopyKey | None, int], ids: Mapping[CopyKey, str], partition_notes: Iterable[NotedPartition]
) -> set[CopyKey]:
    """Copies whose topic id is not that of the living topic, which leaders' copies have, else the copy with the newest
    stamp.

    `newest_ms`: the newest stamp of each copy. `ids`: those that no metadata log has settled.
    """
    leaders = {each.place: each.leader for each in partition_notes if each.leader is not None}
    stamped_ms = highest_of(((copy[0], topic_id), newest_ms.get(copy, -1)) for copy, topic_id in ids.items())
    led: dict[tuple[str, str], int] = defaultdict(int)
    for copy, topic_id in ids.items():
        topic, partition, source = copy
        leader = leaders.get((topic, partition))
        led[topic, topic_id] += leader is not None and leader == broker_of(source)
    living: dict[str, tuple[int, int, str]] = {}
    for (topic, topic_id), count in led.items():
        standing = count, stamped_ms[topic, topic_id], topic_id
        living[topic] = max(standing, living.get(topic, standing))
    return {copy for copy, topic_id in ids.items() if topic_id != living[copy[0]][2]}
