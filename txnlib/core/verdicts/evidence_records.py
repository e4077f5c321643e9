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
    MetadataType,
)
from txnlib.core.verdicts.case import Case

Event = Election | FencedBroker | LoweredFeature


def since_ms(case: Case) -> int | None:
    """When the transaction was decided, else when it began, in epoch ms; None if unknown."""
    decided = [each.of.dated_ms for each in (case.commit_due, case.decision) if each is not None]
    is_current = case.claim.is_active and case.is_listed
    begun = (
        case.claim.start_ms if is_current else None,
        case.stamped_before_ms,
        case.first_timestamp_ms,
    )
    return next((ms for ms in map(clock_ms, (*decided, *begun)) if ms is not None), None)


def events(case: Case) -> dict[str, Event | None]:
    """Name of an event -> the first record of the metadata log that shows it, since the transaction was decided or
    began."""
    since = since_ms(case)

    def is_since(event: Event) -> bool:
        """Whether it is not older. Those that only a snapshot shows have no time."""
        return since is not None and event.at_ms is not None and event.at_ms >= since - CLOCKS_DIFFER_MS

    elections, led = list(filter(is_since, case.place.elections)), case.coordinator.elections
    is_created_again = len({each.topic_id for each in case.place.elections}) > 1
    return {
        # The new leader may lack the newest records.
        "unclean_election": next((each for each in elections if each.is_unclean), None),
        "topic_created": next((each for each in reversed(elections) if is_created_again and each.is_first), None),
        # A period in which the partition had no leader; it may have begun before.
        "leaderless": next(
            (
                each
                for each in case.place.elections
                if each.leader is None and (since is None or each.until_ms is None or each.until_ms >= since)
            ),
            None,
        ),
        # It led the coordinator's partition when it was fenced, or just before it lost that.
        "fenced_coordinator": next(
            (each for each in case.facts.fenced if is_since(each) and any(_leads(one, each) for one in led)), None
        ),
        "lowered_feature": next(filter(is_since, case.facts.lowered), None),
        # Only a snapshot is left, which does not show when it was.
        "undated_unclean_election": next(
            (each for each in case.place.elections if each.is_unclean and each.at_ms is None), None
        ),
        "coordinator_unclean": next((each for each in led if is_since(each) and each.is_unclean), None),
        "coordinator_leaderless": led[-1] if led else None,
    }


#: The events that are shown as records.
_SHOWN: Final = ("unclean_election", "topic_created", "leaderless", "fenced_coordinator", "lowered_feature")


def is_after_completion(event: Event, case: Case) -> bool:
    """Whether an election is later than the completion of the decision, as far as the clocks of a cluster show.

    Then every leader had acknowledged its marker before.
    """
    decided = case.commit_due or case.decision
    completed = None if decided is None else clock_ms(decided.of.completed_ms)
    return completed is not None and event.at_ms is not None and event.at_ms > completed + CLOCKS_DIFFER_MS


def is_leaderless(case: Case) -> bool:
    """Whether the metadata log shows that the partition has no leader now, and nothing newer says otherwise."""
    elections = case.place.elections
    return case.copy.has_leader is False and bool(elections) and elections[-1].leader is None


def is_coordinator_leaderless(case: Case) -> bool:
    """The same of the coordinator's partition."""
    elections = case.coordinator.elections
    return case.coordinator.has_leader is False and bool(elections) and elections[-1].leader is None


def _leads(election: Election, fenced: FencedBroker) -> bool:
    if election.leader != fenced.broker or fenced.at_ms is None:
        return False
    begun = election.at_ms is None or election.at_ms <= fenced.at_ms
    return begun and (election.until_ms is None or fenced.at_ms <= election.until_ms + CLOCKS_DIFFER_MS)


def shown(case: Case) -> dict[str, str]:
    """Name of an event -> its record in words; empty if there is none. Used in the texts of causes."""
    number = case.claim.coordinator_partition
    of_id = "the coordinator's partition" if number is None else f"{TRANSACTION_STATE_TOPIC}-{number}"
    said = {}
    for name, event in events(case).items():
        place = of_id if name.startswith("coordinator_") else f"{case.span.topic}-{case.span.partition}"
        if event is None:
            said[name] = ""
        elif name == "topic_created":
            said[name] = f"{_place(event)}topic {case.span.topic} was created again"
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
