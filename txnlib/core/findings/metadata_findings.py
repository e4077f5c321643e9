"""Findings about notes and producer ids that contradict the metadata log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from txnlib.core.cluster_metadata import PartitionAssignment, ProducerIdBlock
from txnlib.core.copies import CoverageRow
from txnlib.core.display import precise_time
from txnlib.core.finding import Finding, Severity, Topic
from txnlib.core.findings.rule import FindingRow, found
from txnlib.core.kafka.constants import CLUSTER_METADATA_TOPIC

UNCLEAN_LEADER_ELECTION: Final = Finding(
    name="UNCLEAN_LEADER_ELECTION",
    severity=Severity.WARNING,
    topic=Topic.OUTCOME,
    meaning=(
        "A broker became the leader of a partition without being in sync: records, and markers among them, may be lost."
    ),
    advice=(
        "records that were acknowledged may be gone. Look for transactions whose markers are missing, for a disk"
        " that still has the lost offsets, and for `unclean.leader.election.enable`."
    ),
)
PRODUCER_ID_NEVER_ALLOCATED: Final = Finding(
    name="PRODUCER_ID_NEVER_ALLOCATED",
    severity=Severity.ERROR,
    topic=Topic.BATCHES,
    meaning="The cluster never handed out the producer id: it is beyond every block in the metadata log.",
    advice=(
        "a client made the producer id up, or the records were copied from another cluster, which decides about"
        " them: ask there, and abort nothing here. Find the client that wrote them."
    ),
)
CAPTURE_JSON_CONTRADICTED: Final = Finding(
    name="CAPTURE_JSON_CONTRADICTED",
    severity=Severity.WARNING,
    topic=Topic.FILES,
    meaning=(
        "The notes in capture.json and the cluster's metadata log contradict each other, and capture.json is used;"
        " or a copy refutes the noted leader, which is then not known."
    ),
    advice=("correct capture.json, or leave out what the metadata log contains. Check that both are from one cluster."),
)
INCONSISTENT_BROKER_ID: Final = Finding(
    name="INCONSISTENT_BROKER_ID",
    severity=Severity.WARNING,
    topic=Topic.FILES,
    meaning=(
        "A folder has the number of one broker, and its `meta.properties` that of another, whose copies these are:"
        " its disk moved, or somebody copied it there. Kafka up to 3.6: `InconsistentBrokerIdException`."
    ),
    advice="copy each broker into a folder of its own number; if the disk moved, find out what it has missed.",
)
COPY_OF_DELETED_TOPIC: Final = Finding(
    name="COPY_OF_DELETED_TOPIC",
    severity=Severity.INFO,
    topic=Topic.FILES,
    meaning="A copy belongs to a topic that was deleted, perhaps to be created again. It is not judged.",
    advice=(
        "nothing to do, unless you need the records of the deleted topic. A broker that was down during the"
        " deletion removes them."
    ),
)


#: Producer ids that brokers may have been given between the end of the metadata log and the last copy: ten blocks.
SINCE_THEN: Final = 10_000


def metadata_findings(
    partition_assignments: Sequence[PartitionAssignment],
    coverage: Sequence[CoverageRow],
    *,
    contradictions: tuple[str, ...],
    misnamed: tuple[str, ...],
) -> Iterator[FindingRow]:
    """Findings about unclean elections, and where capture.json or copies contradict the metadata log. Kafka: the meter
    `UncleanLeaderElectionsPerSec`."""
    for each in partition_assignments:
        if each.is_unclean and each.since_offset is not None:
            since = "null" if each.since_ms is None else precise_time(each.since_ms)
            elected = f"broker {_or_null(each.leader)} elected at {since}, leader epoch {_or_null(each.leader_epoch)}"
            says = f"{CLUSTER_METADATA_TOPIC} offset {each.since_offset}: {elected}"
            yield found(UNCLEAN_LEADER_ELECTION, says, each)
    differing = {
        (copy.topic, copy.partition, copy.noted_leader, copy.assigned_leader, copy.leader)
        for copy in coverage
        if None not in (copy.noted_leader, copy.assigned_leader) and copy.noted_leader != copy.assigned_leader
    }
    for topic, partition, noted, assigned, leader in differing:
        says = f"leader {noted} by capture.json, {assigned} by the metadata log; used: {_or_null(leader)}"
        yield found(CAPTURE_JSON_CONTRADICTED, says, topic=topic, partition=partition)
    for topic, partition in sorted({copy.place for copy in coverage if copy.noted_leader and copy.leader is None}):
        says = "another copy has a higher leader epoch, or goes on where the copy of the noted leader ends"
        yield found(CAPTURE_JSON_CONTRADICTED, says, topic=topic, partition=partition)
    for says in contradictions:
        yield found(CAPTURE_JSON_CONTRADICTED, says)
    for says in misnamed:
        yield found(INCONSISTENT_BROKER_ID, says)
    for copy in coverage:
        if copy.is_deleted:
            says = f"{copy.source} has topic id {copy.topic_id or 'unknown'}"
            yield found(COPY_OF_DELETED_TOPIC, says, copy)


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
        yield found(PRODUCER_ID_NEVER_ALLOCATED, says, at, offset=offset)
