"""Partitions that have no copy, and copies of deleted topics."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from txnlib.core.coverage.checkpoints import Checkpoints
from txnlib.core.coverage.leaders import AssignedPartition, NotedPartition, PartitionLeader
from txnlib.core.coverage.segments import RAW, SKIPPED, TEXT, CapturedFile
from txnlib.core.coverage.sources import NO_LEADER, CopyKey, Place, broker_of
from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import CLUSTER_METADATA_TOPIC, TRANSACTION_STATE_TOPIC

#: A partition, and a broker that has a replica of it.
Replica = tuple[Place, str | None]


@dataclass(frozen=True, slots=True)
class TopicProof:
    """What a capture proves about topics that it does not contain. Instants are epoch ms, None if there is no such proof."""

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
    listed: Collection[Replica], partition_notes: Iterable[NotedPartition], default_ms: int | None, metadata_ms: int | None
) -> TopicProof:
    """What a capture proves about topics that it does not contain.

    A broker's checkpoint of high watermarks lists all its partitions (`listed`), and capture.json lists the replicas. If both list
    the same replicas, both are complete: no broker and no log directory is missing in the capture, and a topic in neither list is
    on no broker. Partitions are only deleted together with their topic.
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
        return _quiet(noted, leader)
    if leader.leader == NO_LEADER:
        return f"not captured; no broker leads it; in sync last: {', '.join(leader.in_sync or ())}"
    return "not captured" if leader.leader is None else f"not captured; broker {leader.leader} leads it"


def _quiet(noted: NotedPartition, leader: PartitionLeader) -> str:
    answered = datetime.fromtimestamp((noted.answered_at_ms or 0) // 1000, UTC)
    who = "its leader" if leader.leader is None else f"broker {leader.leader}"
    return (
        f"nothing was open at {answered:%Y-%m-%dT%H:%M:%SZ}, by the word of {who}: its last stable offset was its high watermark, "
        f"{noted.last_stable_offset}; its log was not fetched (--scope open)"
    )


# ---- The copies of deleted topics


def deleted_copies(
    segments: Collection[CapturedFile],
    checkpoints: Mapping[CopyKey, Checkpoints],
    partition_assignments: Iterable[AssignedPartition],
    partition_notes: Iterable[NotedPartition],
    brokers_with_metadata: Collection[str | None],
    *,
    is_metadata_whole: bool,
    is_metadata_confirmed: bool,
) -> set[CopyKey]:
    """The copies of deleted topics, usually none.

    The topic id in `partition.metadata` shows it. A broker makes the folder of a partition after it has stored the topic's record
    in its own metadata log. So an id that a metadata log with beginning and end (`is_metadata_whole`) does not contain is older
    than its snapshot, if the log of that broker was captured, or if the log is confirmed. Text shows no topic id: it counts as
    deleted if a confirmed log has no topic of its name. Without such a log, copies with different topic ids are of different logs,
    and one of them lives. `partition_notes`: of capture.json. Kafka: `LogManager.isStrayKraftReplica`, `BrokerMetadataPublisher`.
    """
    ids = {copy: noted.topic_id for copy, noted in checkpoints.items() if noted.topic_id is not None}
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
        return is_metadata_whole and (is_metadata_confirmed or broker_of(source) in brokers_with_metadata)

    copies = {file.copy for file in segments if file.kind in (RAW, TEXT, SKIPPED) and file.topic != CLUSTER_METADATA_TOPIC}
    deleted = {copy for copy in copies if copy is not None and is_deleted(copy)}
    unsettled = {copy: topic_id for copy, topic_id in ids.items() if copy not in deleted}
    return deleted | _of_other_ids(segments, unsettled, partition_notes)


def _of_other_ids(
    segments: Iterable[CapturedFile], ids: Mapping[CopyKey, str], partition_notes: Iterable[NotedPartition]
) -> set[CopyKey]:
    """Copies whose topic id is not that of the living topic, which leaders' copies have, else the copy with the newest stamp.

    `ids`: those that no metadata log has settled.
    """
    leaders = {each.place: each.leader for each in partition_notes if each.leader is not None}
    newest_ms: dict[CopyKey, int] = {}
    for file in segments:
        if file.copy is not None and file.copy in ids:
            newest_ms[file.copy] = max(clock_ms(file.newest_broker_ms) or -1, newest_ms.get(file.copy, -1))
    led: dict[tuple[str, str], int] = defaultdict(int)
    stamped_ms: dict[tuple[str, str], int] = defaultdict(lambda: -1)
    for copy, topic_id in ids.items():
        topic, partition, source = copy
        leader = leaders.get((topic, partition))
        led[topic, topic_id] += leader is not None and leader == broker_of(source)
        stamped_ms[topic, topic_id] = max(stamped_ms[topic, topic_id], newest_ms.get(copy, -1))
    living: dict[str, tuple[int, int, str]] = {}
    for (topic, topic_id), count in led.items():
        standing = count, stamped_ms[topic, topic_id], topic_id
        living[topic] = max(standing, living.get(topic, standing))
    return {copy for copy, topic_id in ids.items() if topic_id != living[copy[0]][2]}
