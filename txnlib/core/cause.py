"""What probably brought it about? Ranked candidates for a reason, each with what in the records speaks for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from txnlib.core.evidence import Evidence
from txnlib.core.verdict import Reason


@dataclass(frozen=True, slots=True)
class Cause:
    cause: str
    likelihood: str
    evidence: str


#: reason -> candidates, likeliest first; `{…}` are fields of the evidence (semantics.md 5).
CAUSES: Final[Mapping[Reason, tuple[Cause, ...]]] = {
    Reason.WRITTEN_AFTER_MARKER: (
        Cause(
            "late produce request after the end of the transaction (KAFKA-14402 family; closed by partition verification "
            "and transactions v2)",
            "LIKELY",
            "the open batches stand after the {marker_type} marker at offset {marker_offset}",
        ),
    ),
    Reason.PARTITION_NOT_IN_TRANSACTION: (
        Cause(
            "a client wrote without adding the partition to its transaction (KAFKA-12671; before 3.6, or verification off)",
            "LIKELY",
            "no record of {transactional_id} that holds now lists {topic}-{partition}",
        ),
        Cause(
            "late produce request after the end of an earlier transaction",
            "POSSIBLE",
            "the producer's last marker here: {marker_offset}",
        ),
    ),
    Reason.PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR: (
        Cause(
            "a coordinator partition lost its data, or the id's records were compacted after it expired",
            "POSSIBLE",
            "no record of any coordinator names producer {producer_id}",
        ),
        Cause("a client made up its producer id", "POSSIBLE", "no record of any coordinator names producer {producer_id}"),
    ),
    Reason.TRANSACTIONAL_ID_EXPIRED: (
        Cause(
            "the partition hung for longer than transactional.id.expiration.ms, and its id expired meanwhile",
            "LIKELY",
            "tombstone of {transactional_id} at offset {record_offset} of __transaction_state-{coordinator_partition}",
        ),
    ),
    Reason.PRODUCER_ID_ROTATED: (
        Cause(
            "late produce request of a producer id that its transactional id has given up",
            "LIKELY",
            "{transactional_id} had producer {producer_id} before, not now",
        ),
    ),
    Reason.EPOCH_AHEAD_OF_COORDINATOR: (
        Cause(
            "a client wrote with an epoch its coordinator never gave out (accepted without verification, before 4.0)",
            "LIKELY",
            "epoch {producer_epoch} in the partition, {coordinator_producer_epoch} at the coordinator",
        ),
    ),
    Reason.MARKER_REFUSED: (
        Cause(
            "the partition has seen a newer epoch than the coordinator holds, so it refuses every retry of the marker",
            "LIKELY",
            "producer epoch {producer_epoch} and coordinator epoch {coordinator_epoch} in the partition",
        ),
    ),
    Reason.MARKER_OVERDUE: (
        Cause(
            "the partition's leader is not reachable",
            "POSSIBLE",
            "no marker since the decision at offset {record_offset}",
        ),
        Cause(
            "the coordinator stopped sending markers (KAFKA-16352, KAFKA-9777 and others)",
            "POSSIBLE",
            "no marker since the decision at offset {record_offset}",
        ),
    ),
    Reason.OVERDUE: (
        Cause(
            "its coordinator does not run the timeout scan, or the producer writes old timestamps",
            "POSSIBLE",
            "{transactional_id} at offset {record_offset} of __transaction_state-{coordinator_partition}",
        ),
    ),
}


def causes(reason: Reason, evidence: Evidence) -> tuple[Cause, ...]:
    """The candidates for this transaction, likeliest first; none for what needs no explanation."""
    partition, coordinator = evidence.on_partition, evidence.at_coordinator
    fields = {
        "topic": partition.topic,
        "partition": partition.partition,
        "producer_id": partition.producer_id,
        "producer_epoch": partition.producer_epoch,
        "coordinator_epoch": "unknown" if partition.coordinator_epoch is None else partition.coordinator_epoch,
        "marker_type": partition.marker_type or "end",
        "marker_offset": "none" if partition.marker_offset is None else partition.marker_offset,
        "transactional_id": coordinator.transactional_id,
        "coordinator_partition": coordinator.coordinator_partition,
        "coordinator_producer_epoch": coordinator.producer_epoch,
        "record_offset": coordinator.record_offset,
    }
    return tuple(Cause(c.cause, c.likelihood, c.evidence.format(**fields)) for c in CAUSES.get(reason, ()))


@dataclass(frozen=True, slots=True)
class EvidenceRecord:
    """One record that shows something, as an operator can look it up."""

    topic: str
    partition: int
    offset: int
    record: str
    says: str


def evidence_records(evidence: Evidence) -> tuple[EvidenceRecord, ...]:
    """The records behind a verdict, in the order in which they tell the story."""
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
