"""The records that a verdict rests on. They are printed so that an operator can look them up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from txnlib.core.cluster_metadata import FencedBroker, LoweredFeature
from txnlib.core.kafka.constants import (
    CLUSTER_METADATA_TOPIC,
    TRANSACTION_STATE_TOPIC,
    MetadataType,
)
from txnlib.core.verdicts.case import Case
from txnlib.core.verdicts.metadata_events import Event, events, shown

#: The events that are shown as records.
_SHOWN: Final = ("unclean_election", "topic_created", "leaderless", "fenced_coordinator", "lowered_feature")


@dataclass(frozen=True, slots=True)
class EvidenceRecord:
    """One record that supports a verdict, in a form that an operator can look up."""

    topic: str
    partition: int
    offset: int
    record: str
    says: str


def evidence_records(case: Case) -> tuple[EvidenceRecord, ...]:
    """The records that support a verdict, in the order of the story."""
    place, records = (case.span.topic, case.span.partition), []
    if (marker := case.span.marker) is not None:
        shown = (
            f"endTxnMarker: {marker.type or 'not printed'} producerEpoch: {marker.epoch} "
            f"coordinatorEpoch: {_shown(marker.coordinator_epoch)}"
        )
        records.append(EvidenceRecord(*place, marker.offset, shown, "the producer's last marker in this partition"))
    batch = f"producerId: {case.dossier.producer_id} producerEpoch: {case.span.producer_epoch} isTransactional: true"
    records.append(EvidenceRecord(*place, case.span.start_offset, batch, _begin(case)))
    if case.claim.record_offset is not None and case.claim.coordinator_partition is not None:
        state = "<DELETE>" if case.claim.state is None else f"state={case.claim.state}"
        shown = (
            f"transactionalId={case.claim.transactional_id} {state} producerEpoch:{_shown(case.claim.producer_epoch)}"
        )
        says = (
            f"the last record of its transactional id {'lists' if case.is_listed else 'does not list'} this partition"
        )
        number, offset = case.claim.coordinator_partition, case.claim.record_offset
        records.append(EvidenceRecord(TRANSACTION_STATE_TOPIC, number, offset, shown, says))
    return (*records, *_metadata_records(case))


def _begin(case: Case) -> str:
    if case.is_begin_gone:
        return "the transaction began here, by a producer snapshot or its leader's answer: this record is gone"
    return "the transaction begins here" if case.is_start_exact else "the first batch captured; it may begin earlier"


def _metadata_records(case: Case) -> list[EvidenceRecord]:
    """The records of the cluster's metadata log that may explain the transaction."""
    found, says, block = events(case), shown(case), case.block
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
