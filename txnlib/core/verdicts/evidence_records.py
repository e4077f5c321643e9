"""The records that a verdict rests on. They are printed so that an operator can look them up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from txnlib.core.cluster_metadata import Election, FencedBroker, LoweredFeature
from txnlib.core.display import instant
from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import (
    CLOCKS_DIFFER_MS,
    CLUSTER_METADATA_TOPIC,
    TRANSACTION_STATE_TOPIC,
    TRANSACTION_VERSION,
)
from txnlib.core.kafka.metadata_records import MetadataType
from txnlib.core.verdicts.evidence import Evidence, PartitionSide

Event = Election | FencedBroker | LoweredFeature


def since_ms(evidence: Evidence) -> int | None:
    """When the transaction was decided, else when it began, in epoch ms; None if unknown."""
    partition, coordinator = evidence.on_partition, evidence.at_coordinator
    decided = [each.decided_ms for each in (coordinator.commit_due, coordinator.decision) if each is not None]
    is_current = coordinator.is_active and coordinator.is_listed
    begun = (
        coordinator.transaction_start_ms if is_current else None,
        partition.stamped_before_ms,
        partition.first_timestamp_ms,
    )
    return next((ms for ms in map(clock_ms, (*decided, *begun)) if ms is not None), None)


def events(evidence: Evidence) -> dict[str, Event | None]:
    """Name of an event -> the first record of the metadata log that shows it, since the transaction was decided or
    began."""
    cluster, since = evidence.in_cluster, since_ms(evidence)

    def is_since(event: Event) -> bool:
        """Whether it is not older. Those that only a snapshot shows have no time."""
        return since is not None and event.at_ms is not None and event.at_ms >= since - CLOCKS_DIFFER_MS

    elections, led = list(filter(is_since, cluster.elections)), cluster.coordinator_elections
    is_created_again = len({each.topic_id for each in cluster.elections}) > 1
    return {
        # The new leader may lack the newest records.
        "unclean_election": next((each for each in elections if each.is_unclean), None),
        "topic_created": next((each for each in reversed(elections) if is_created_again and each.is_first), None),
        # A period in which the partition had no leader; it may have begun before.
        "leaderless": next(
            (
                each
                for each in cluster.elections
                if each.leader is None and (since is None or each.until_ms is None or each.until_ms >= since)
            ),
            None,
        ),
        # It led the coordinator's partition when it was fenced, or just before it lost that.
        "fenced_coordinator": next(
            (each for each in cluster.fenced if is_since(each) and any(_leads(one, each) for one in led)), None
        ),
        "lowered_feature": next(filter(is_since, cluster.lowered), None),
        # Only a snapshot is left, which does not show when it was.
        "undated_unclean_election": next(
            (each for each in cluster.elections if each.is_unclean and each.at_ms is None), None
        ),
        "coordinator_unclean": next((each for each in led if is_since(each) and each.is_unclean), None),
        "coordinator_leaderless": led[-1] if led else None,
    }


#: The events that are shown as records.
_SHOWN: Final = ("unclean_election", "topic_created", "leaderless", "fenced_coordinator", "lowered_feature")


def is_after_completion(event: Event, evidence: Evidence) -> bool:
    """Whether an election is later than the completion of the decision, as far as the clocks of a cluster show.

    Then every leader had acknowledged its marker before.
    """
    decided = evidence.at_coordinator.commit_due or evidence.at_coordinator.decision
    completed = None if decided is None else clock_ms(decided.completed_ms)
    return completed is not None and event.at_ms is not None and event.at_ms > completed + CLOCKS_DIFFER_MS


def is_leaderless(evidence: Evidence) -> bool:
    """Whether the metadata log shows that the partition has no leader now, and nothing newer says otherwise."""
    elections = evidence.in_cluster.elections
    return evidence.on_partition.has_leader is False and bool(elections) and elections[-1].leader is None


def is_coordinator_leaderless(evidence: Evidence) -> bool:
    """The same of the coordinator's partition."""
    elections = evidence.in_cluster.coordinator_elections
    return evidence.at_coordinator.has_leader is False and bool(elections) and elections[-1].leader is None


def _leads(election: Election, fenced: FencedBroker) -> bool:
    if election.leader != fenced.broker or fenced.at_ms is None:
        return False
    begun = election.at_ms is None or election.at_ms <= fenced.at_ms
    return begun and (election.until_ms is None or fenced.at_ms <= election.until_ms + CLOCKS_DIFFER_MS)


def shown(evidence: Evidence) -> dict[str, str]:
    """Name of an event -> its record in words; empty if there is none. Used in the texts of causes."""
    partition, number = evidence.on_partition, evidence.at_coordinator.coordinator_partition
    of_id = "the coordinator's partition" if number is None else f"{TRANSACTION_STATE_TOPIC}-{number}"
    said = {}
    for name, event in events(evidence).items():
        place = of_id if name.startswith("coordinator_") else f"{partition.topic}-{partition.partition}"
        if event is None:
            said[name] = ""
        elif name == "topic_created":
            said[name] = f"{_place(event)}topic {partition.topic} was created again"
        elif isinstance(event, FencedBroker):
            said[name] = f"{_place(event)}broker {event.broker}, which led {of_id}, was fenced"
        elif isinstance(event, LoweredFeature):
            said[name] = f"{_place(event)}{TRANSACTION_VERSION} was lowered from {event.level_before} to {event.level}"
        elif event.leader is None:
            said[name] = f"{_place(event)}{place} has no leader"
        else:
            how = " without being in sync" if event.is_unclean else ""
            leads = f"became the leader of {place}{how} (leader epoch {event.leader_epoch})"
            said[name] = f"{_place(event)}broker {event.leader} {leads}"
    return said


def _place(event: Event) -> str:
    """Where and when the metadata log shows an event, as the beginning of a sentence."""
    if event.offset is None:
        return f"a snapshot of {CLUSTER_METADATA_TOPIC}: "
    return f"offset {event.offset} of {CLUSTER_METADATA_TOPIC}, {instant(event.at_ms)}: "


# ---- Records that a verdict rests on


@dataclass(frozen=True, slots=True)
class EvidenceRecord:
    """One record that supports a verdict, in a form that an operator can look up."""

    topic: str
    partition: int
    offset: int
    record: str
    says: str


def evidence_records(evidence: Evidence) -> tuple[EvidenceRecord, ...]:
    """The records that support a verdict, in the order of the story."""
    partition, coordinator = evidence.on_partition, evidence.at_coordinator
    place, records = (partition.topic, partition.partition), []
    if partition.marker_offset is not None:
        shown = (
            f"endTxnMarker: {partition.marker_type or 'not printed'} producerEpoch: {partition.marker_epoch} "
            f"coordinatorEpoch: {_shown(partition.marker_coordinator_epoch)}"
        )
        records.append(
            EvidenceRecord(*place, partition.marker_offset, shown, "the producer's last marker in this partition")
        )
    batch = f"producerId: {partition.producer_id} producerEpoch: {partition.producer_epoch} isTransactional: true"
    records.append(EvidenceRecord(*place, partition.start_offset, batch, _begin(partition)))
    if coordinator.record_offset is not None and coordinator.coordinator_partition is not None:
        state = "<DELETE>" if coordinator.state is None else f"state={coordinator.state.kafka_name}"
        shown = (
            f"transactionalId={coordinator.transactional_id} {state} producerEpoch:{_shown(coordinator.producer_epoch)}"
        )
        says = (
            f"the last record of its transactional id {'lists' if coordinator.is_listed else 'does not list'} this"
            " partition"
        )
        number, offset = coordinator.coordinator_partition, coordinator.record_offset
        records.append(EvidenceRecord(TRANSACTION_STATE_TOPIC, number, offset, shown, says))
    return (*records, *_metadata_records(evidence))


def _begin(partition: PartitionSide) -> str:
    if partition.is_begin_gone:
        return "the transaction began here, by a producer snapshot or its leader's answer: this record is gone"
    return (
        "the transaction begins here" if partition.is_start_exact else "the first batch captured; it may begin earlier"
    )


def _metadata_records(evidence: Evidence) -> list[EvidenceRecord]:
    """The records of the cluster's metadata log that may explain the transaction."""
    found, says, block = events(evidence), shown(evidence), evidence.in_cluster.block
    records = [
        EvidenceRecord(CLUSTER_METADATA_TOPIC, 0, event.offset, _type(event), says[name].partition(": ")[2])
        for name in _SHOWN
        if (event := found[name]) is not None and event.offset is not None
    ]
    if block is not None and block.offset is not None:
        given = f"broker {block.broker_id} was given producer ids {block.first_producer_id} to {block.last_producer_id}"
        records.append(EvidenceRecord(CLUSTER_METADATA_TOPIC, 0, block.offset, str(MetadataType.PRODUCER_IDS), given))
    return records


def _type(event: Event) -> str:
    if isinstance(event, FencedBroker):
        return f"brokerId={event.broker} fenced"
    if isinstance(event, LoweredFeature):
        return MetadataType.FEATURE_LEVEL
    return MetadataType.PARTITION if event.is_first else MetadataType.PARTITION_CHANGE


def _shown(value: int | None) -> str:
    return "none" if value is None else str(value)
