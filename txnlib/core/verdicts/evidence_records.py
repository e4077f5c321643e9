"""The records that a verdict rests on. They are printed so that an operator can look them up."""

from __future__ import annotations

from dataclasses import dataclass

from txnlib.core.kafka.constants import CLUSTER_METADATA_TOPIC
from txnlib.core.kafka.metadata_records import MetadataType
from txnlib.core.verdicts import cluster_events as events
from txnlib.core.verdicts.evidence import Election, Evidence, FencedBroker, LoweredFeature, PartitionSide


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
    records = []
    if partition.marker_offset is not None:
        records.append(
            EvidenceRecord(
                partition.topic,
                partition.partition,
                partition.marker_offset,
                f"endTxnMarker: {partition.marker_type or 'not printed'} producerEpoch: {partition.marker_epoch} "
                f"coordinatorEpoch: {_shown(partition.marker_coordinator_epoch)}",
                "the producer's last marker in this partition",
            )
        )
    records.append(
        EvidenceRecord(
            partition.topic,
            partition.partition,
            partition.start_offset,
            f"producerId: {partition.producer_id} producerEpoch: {partition.producer_epoch} isTransactional: true",
            _begin(partition),
        )
    )
    if coordinator.record_offset is not None and coordinator.coordinator_partition is not None:
        state = "<DELETE>" if coordinator.state is None else f"state={coordinator.state.kafka_name}"
        records.append(
            EvidenceRecord(
                "__transaction_state",
                coordinator.coordinator_partition,
                coordinator.record_offset,
                f"transactionalId={coordinator.transactional_id} {state} producerEpoch:{_shown(coordinator.producer_epoch)}",
                "the last record of its transactional id "
                + ("lists this partition" if coordinator.is_listed else "does not list this partition"),
            )
        )
    return (*records, *_metadata_records(evidence))


def _begin(partition: PartitionSide) -> str:
    if partition.is_begin_gone:
        return "the transaction began here, by a producer snapshot or its leader's answer: this record is gone"
    return "the transaction begins here" if partition.is_start_exact else "the first batch captured; it may begin earlier"


def _metadata_records(evidence: Evidence) -> list[EvidenceRecord]:
    """The records of the cluster's metadata log that may explain the transaction."""
    found = {
        "unclean_election": events.unclean_election(evidence),
        "topic_created": events.topic_created(evidence),
        "leaderless": events.leaderless(evidence),
        "fenced_coordinator": events.fenced_coordinator(evidence),
        "lowered_feature": events.lowered_feature(evidence),
    }
    says, block = events.shown(evidence), evidence.in_cluster.block
    records = [
        EvidenceRecord(CLUSTER_METADATA_TOPIC, 0, event.offset, _type(event), says[name].partition(": ")[2])
        for name, event in found.items()
        if event is not None and event.offset is not None
    ]
    if block is not None and block.offset is not None:
        given = f"broker {block.broker_id} was given producer ids {block.first_producer_id} to {block.last_producer_id}"
        records.append(EvidenceRecord(CLUSTER_METADATA_TOPIC, 0, block.offset, str(MetadataType.PRODUCER_IDS), given))
    return records


def _type(event: Election | FencedBroker | LoweredFeature) -> str:
    if isinstance(event, FencedBroker):
        return f"brokerId={event.broker} fenced"
    if isinstance(event, LoweredFeature):
        return MetadataType.FEATURE_LEVEL
    return MetadataType.PARTITION if event.is_first else MetadataType.PARTITION_CHANGE


def _shown(value: int | None) -> str:
    return "none" if value is None else str(value)
