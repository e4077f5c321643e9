"""Findings about notes and producer ids that contradict the metadata log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from txnlib.core.cluster_metadata import PartitionAssignment, ProducerIdBlock
from txnlib.core.copies import CoverageRow
from txnlib.core.display import precise_time
from txnlib.core.finding_catalogue import Finding
from txnlib.core.findings.finding_row import FindingRow, found
from txnlib.core.kafka.constants import CLUSTER_METADATA_TOPIC

#: Producer ids that brokers may have been given between the end of the metadata log and the last copy: ten blocks.
SINCE_THEN: Final = 10_000


def metadata_findings(
    partition_assignments: Sequence[PartitionAssignment],
    coverage: Sequence[CoverageRow],
    *,
    contradictions: tuple[str, ...],
    misnamed: tuple[str, ...],
) -> Iterator[FindingRow]:
    """Unclean elections, and what capture.json and copies contradict. Kafka: the meter
    `UncleanLeaderElectionsPerSec`."""
    for each in partition_assignments:
        if each.is_unclean and each.since_offset is not None:
            since = "null" if each.since_ms is None else precise_time(each.since_ms)
            elected = f"broker {_or_null(each.leader)} elected at {since}, leader epoch {_or_null(each.leader_epoch)}"
            says = f"{CLUSTER_METADATA_TOPIC} offset {each.since_offset}: {elected}"
            yield found(Finding.UNCLEAN_LEADER_ELECTION, says, each)
    differing = {
        (copy.topic, copy.partition, copy.noted_leader, copy.assigned_leader, copy.leader)
        for copy in coverage
        if None not in (copy.noted_leader, copy.assigned_leader) and copy.noted_leader != copy.assigned_leader
    }
    for topic, partition, noted, assigned, leader in differing:
        says = f"leader {noted} by capture.json, {assigned} by the metadata log; used: {_or_null(leader)}"
        yield found(Finding.CAPTURE_JSON_CONTRADICTED, says, topic=topic, partition=partition)
    for topic, partition in sorted({copy.place for copy in coverage if copy.noted_leader and copy.leader is None}):
        says = "another copy has a higher leader epoch, or goes on where the copy of the noted leader ends"
        yield found(Finding.CAPTURE_JSON_CONTRADICTED, says, topic=topic, partition=partition)
    for says in contradictions:
        yield found(Finding.CAPTURE_JSON_CONTRADICTED, says)
    for says in misnamed:
        yield found(Finding.INCONSISTENT_BROKER_ID, says)
    for copy in coverage:
        if copy.is_deleted:
            says = f"{copy.source} has topic id {copy.topic_id or 'unknown'}"
            yield found(Finding.COPY_OF_DELETED_TOPIC, says, copy)


def _or_null(value: object) -> object:
    return "null" if value is None else value


def highest_producer_id(producer_id_blocks: Sequence[ProducerIdBlock], whole_metadata_ms: int | None) -> int | None:
    """The highest producer id that the cluster handed out up to the end of its metadata log; None if that is not
    known."""
    return (
        None if whole_metadata_ms is None else max((each.last_producer_id for each in producer_id_blocks), default=-1)
    )


def never_allocated(at: Any, highest: int, *, is_dated: bool, offset: int | None) -> Iterator[FindingRow]:
    """The finding about the producer id of a row, if it is beyond every block and older than the end of the metadata
    log.

    A client's time does not prove that. Without a broker's (`is_dated`), the brokers would have to have used up several
    blocks since. Kafka: `ProducerIdManager`.
    """
    if at.producer_id > highest + (0 if is_dated else SINCE_THEN):
        says = f"the last producer id that the cluster handed out is {highest}"
        yield found(Finding.PRODUCER_ID_NEVER_ALLOCATED, says, at, offset=offset)
