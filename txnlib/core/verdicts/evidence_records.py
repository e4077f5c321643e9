"""The records that a verdict rests on. They are printed so that an operator can look them up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from txnlib.core.display import instant
from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS, CLUSTER_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, TRANSACTION_VERSION
from txnlib.core.kafka.metadata_records import MetadataType
from txnlib.core.verdicts.evidence import Election, Evidence, FencedBroker, LoweredFeature, PartitionSide

_Event = TypeVar("_Event", Election, FencedBroker, LoweredFeature)


def since_ms(evidence: Evidence) -> int | None:
    """When the transaction was decided, else when it began, in epoch ms; None if unknown."""
    partition, coordinator = evidence.on_partition, evidence.at_coordinator
    decided = [each.decided_ms for each in (coordinator.commit_due, coordinator.decision) if each is not None]
    is_current = coordinator.is_active and coordinator.is_listed
    begun = (coordinator.transaction_start_ms if is_current else None, partition.stamped_before_ms, partition.first_timestamp_ms)
    return next((ms for ms in map(clock_ms, (*decided, *begun)) if ms is not None), None)


def _after(events: Iterable[_Event], since: int | None) -> list[_Event]:
    """The events that are not older than an instant. Those that only a snapshot shows have no time."""
    return [event for event in events if since is not None and event.at_ms is not None and event.at_ms >= since - CLOCKS_DIFFER_MS]


def unclean_election(evidence: Evidence) -> Election | None:
    """The first election since that was not clean: the new leader may lack the newest records."""
    return next((each for each in _after(evidence.in_cluster.elections, since_ms(evidence)) if each.is_unclean), None)


def is_after_completion(election: Election, evidence: Evidence) -> bool:
    """Whether an election is later than the completion of the decision, as far as the clocks of a cluster show.

    Then every leader had acknowledged its marker before.
    """
    coordinator = evidence.at_coordinator
    decided = coordinator.commit_due or coordinator.decision
    completed = None if decided is None else clock_ms(decided.completed_ms)
    return completed is not None and election.at_ms is not None and election.at_ms > completed + CLOCKS_DIFFER_MS


def undated_unclean_election(evidence: Evidence) -> Election | None:
    """An election that was not clean, of which only a snapshot is left: it does not show when it was."""
    return next((each for each in evidence.in_cluster.elections if each.is_unclean and each.at_ms is None), None)


def leaderless(evidence: Evidence) -> Election | None:
    """The first period since in which the partition had no leader; it may have begun before."""
    since = since_ms(evidence)
    periods = (each for each in evidence.in_cluster.elections if each.leader is None)
    return next((each for each in periods if since is None or each.until_ms is None or each.until_ms >= since), None)


def is_leaderless(evidence: Evidence) -> bool:
    """Whether the metadata log shows that the partition has no leader now, and nothing newer says otherwise."""
    elections = evidence.in_cluster.elections
    return evidence.on_partition.has_leader is False and bool(elections) and elections[-1].leader is None


def is_coordinator_leaderless(evidence: Evidence) -> bool:
    """The same of the coordinator's partition."""
    elections = evidence.in_cluster.coordinator_elections
    return evidence.at_coordinator.has_leader is False and bool(elections) and elections[-1].leader is None


def topic_created(evidence: Evidence) -> Election | None:
    """The first leader of the topic, if it was deleted and created again since."""
    elections = evidence.in_cluster.elections
    is_again = len({each.topic_id for each in elections}) > 1
    return next((each for each in reversed(_after(elections, since_ms(evidence))) if is_again and each.is_first), None)


def fenced_coordinator(evidence: Evidence) -> FencedBroker | None:
    """The first broker that was fenced since while it led the coordinator's partition, or just before it lost that."""
    led = evidence.in_cluster.coordinator_elections
    fenced = _after(evidence.in_cluster.fenced, since_ms(evidence))
    return next((each for each in fenced if any(_leads(one, each) for one in led)), None)


def _leads(election: Election, fenced: FencedBroker) -> bool:
    if election.leader != fenced.broker or fenced.at_ms is None:
        return False
    begun = election.at_ms is None or election.at_ms <= fenced.at_ms
    return begun and (election.until_ms is None or fenced.at_ms <= election.until_ms + CLOCKS_DIFFER_MS)


def lowered_feature(evidence: Evidence) -> LoweredFeature | None:
    """The first record since that lowered `transaction.version`."""
    return next(iter(_after(evidence.in_cluster.lowered, since_ms(evidence))), None)


def unclean_coordinator(evidence: Evidence) -> Election | None:
    """The first election of the coordinator's partition since that was not clean."""
    elections = _after(evidence.in_cluster.coordinator_elections, since_ms(evidence))
    return next((each for each in elections if each.is_unclean), None)


def shown(evidence: Evidence) -> dict[str, str]:
    """Name of an event -> its record in words; empty if there is none. Used in the texts of causes."""
    partition, coordinator = evidence.on_partition, evidence.at_coordinator
    place = f"{partition.topic}-{partition.partition}"
    number = coordinator.coordinator_partition
    of_id = "the coordinator's partition" if number is None else f"{TRANSACTION_STATE_TOPIC}-{number}"
    fenced, lowered, created = fenced_coordinator(evidence), lowered_feature(evidence), topic_created(evidence)
    return {
        "unclean_election": _election(unclean_election(evidence), place),
        "undated_unclean_election": _election(undated_unclean_election(evidence), place),
        "leaderless": _election(leaderless(evidence), place),
        "coordinator_unclean": _election(unclean_coordinator(evidence), of_id),
        "coordinator_leaderless": _election(next(iter(evidence.in_cluster.coordinator_elections[-1:]), None), of_id),
        "topic_created": "" if created is None else f"{_place(created)}topic {partition.topic} was created again",
        "fenced_coordinator": "" if fenced is None else f"{_place(fenced)}broker {fenced.broker}, which led {of_id}, was fenced",
        "lowered_feature": ""
        if lowered is None
        else f"{_place(lowered)}{TRANSACTION_VERSION} was lowered from {lowered.level_before} to {lowered.level}",
    }


def _election(election: Election | None, place: str) -> str:
    if election is None:
        return ""
    if election.leader is None:
        return f"{_place(election)}{place} has no leader"
    how = " without being in sync" if election.is_unclean else ""
    return f"{_place(election)}broker {election.leader} became the leader of {place}{how} (leader epoch {election.leader_epoch})"


def _place(event: Election | FencedBroker | LoweredFeature) -> str:
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
        "unclean_election": unclean_election(evidence),
        "topic_created": topic_created(evidence),
        "leaderless": leaderless(evidence),
        "fenced_coordinator": fenced_coordinator(evidence),
        "lowered_feature": lowered_feature(evidence),
    }
    says, block = shown(evidence), evidence.in_cluster.block
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
