"""Partitions that are known but have no copy."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from txnlib.core.coverage.leaders import NotedPartition, PartitionLeader
from txnlib.core.coverage.sources import NO_LEADER, Place
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC

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
