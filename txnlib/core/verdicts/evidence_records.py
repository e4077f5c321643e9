"""The records that a verdict rests on. They are printed so that an operator can look them up."""

from __future__ import annotations

from dataclasses import dataclass

from txnlib.core.verdicts.evidence import Evidence


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
            "the transaction begins here" if partition.is_start_exact else "the first batch captured; it may begin earlier",
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
    return tuple(records)


def _shown(value: int | None) -> str:
    return "none" if value is None else str(value)
