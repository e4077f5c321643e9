"""Findings from the cluster's metadata log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from txnlib.core.display import timestamp
from txnlib.core.finding_catalogue import Finding
from txnlib.core.findings.found import FindingRow, OnPartition, found
from txnlib.core.kafka.constants import CLUSTER_METADATA_TOPIC

#: Producer ids that brokers may have been given between the end of the metadata log and the last copy: ten blocks.
SINCE_THEN: Final = 10_000


@dataclass(frozen=True, slots=True)
class ElectedLeader(OnPartition):
    """A row of `partition_assignments`."""

    leader: int | None
    leader_epoch: int | None
    is_unclean: bool | None
    since_ms: int | None
    since_offset: int | None


@dataclass(frozen=True, slots=True)
class LedCopy(OnPartition):
    """A row of `coverage`: a copy of a partition, and what is said about its leader and its topic."""

    source: str | None
    topic_id: str | None
    is_deleted: bool | None
    leader: str | None
    noted_leader: str | None
    assigned_leader: str | None


def metadata_findings(
    partition_assignments: Sequence[ElectedLeader], coverage: Sequence[LedCopy], *, contradictions: tuple[str, ...]
) -> Iterator[FindingRow]:
    """Unclean elections, and what capture.json and copies contradict. Kafka: the meter `UncleanLeaderElectionsPerSec`."""
    for each in partition_assignments:
        if each.is_unclean and each.since_offset is not None:
            yield found(Finding.UNCLEAN_LEADER_ELECTION, _election(each), each)
    differing = {
        (copy.topic, copy.partition, copy.noted_leader, copy.assigned_leader, copy.leader)
        for copy in coverage
        if None not in (copy.noted_leader, copy.assigned_leader) and copy.noted_leader != copy.assigned_leader
    }
    for topic, partition, noted, assigned, leader in differing:
        says = f"leader {noted} by capture.json, {assigned} by the metadata log; used: {_or_null(leader)}"
        yield found(Finding.CAPTURE_JSON_CONTRADICTED, says, topic=topic, partition=partition)
    for says in contradictions:
        yield found(Finding.CAPTURE_JSON_CONTRADICTED, says)
    for copy in coverage:
        if copy.is_deleted:
            says = f"{copy.source} has topic id {copy.topic_id or 'unknown'}"
            yield found(Finding.COPY_OF_DELETED_TOPIC, says, copy)


def _election(each: ElectedLeader) -> str:
    since = "null" if each.since_ms is None else timestamp(each.since_ms)
    return (
        f"{CLUSTER_METADATA_TOPIC} offset {each.since_offset}: broker {_or_null(each.leader)} elected at {since}, "
        f"leader epoch {_or_null(each.leader_epoch)}"
    )


def _or_null(value: object) -> object:
    return "null" if value is None else value


@dataclass(frozen=True, slots=True)
class NewestIdBlock:
    """A row of `producer_id_blocks`."""

    last_producer_id: int


def highest_producer_id(producer_id_blocks: Sequence[NewestIdBlock], whole_metadata_ms: int | None) -> int | None:
    """The highest producer id that the cluster handed out up to the end of its metadata log; None if that is not known."""
    return None if whole_metadata_ms is None else max((each.last_producer_id for each in producer_id_blocks), default=-1)


def never_allocated(at: Any, highest: int, *, is_dated: bool, offset: int | None) -> Iterator[FindingRow]:
    """The finding about the producer id of a row, if it is beyond every block and older than the end of the metadata log.

    A client's time does not prove that. Without a broker's (`is_dated`), the brokers would have to have used up several blocks
    since. Kafka: `ProducerIdManager`.
    """
    if at.producer_id > highest + (0 if is_dated else SINCE_THEN):
        says = f"the last producer id that the cluster handed out is {highest}"
        yield found(Finding.PRODUCER_ID_NEVER_ALLOCATED, says, at, offset=offset)
