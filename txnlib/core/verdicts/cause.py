"""Probable causes: known ones with their signatures, ranked, each with what in the records speaks for it.

A signature is a predicate on the evidence; a cause is named only if it matches. Versions are those with the fault: if the brokers
are newer according to the capture, the cause is UNLIKELY, because the fault may date from before an upgrade.
Source: semantics.md 5, and the issues named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from txnlib.core.finding_catalogue import Finding
from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import EXHAUSTED_EPOCH, GROUP_METADATA_TOPIC
from txnlib.core.kafka.epochs import is_ahead
from txnlib.core.kafka.kafka_version import is_from
from txnlib.core.verdicts.evidence import Evidence
from txnlib.core.verdicts.find_hanging import MS_PER_MINUTE
from txnlib.core.verdicts.reason import Reason


class Likelihood(IntEnum):
    LIKELY = 0
    POSSIBLE = 1
    UNLIKELY = 2


@dataclass(frozen=True, slots=True)
class Cause:
    cause: str
    likelihood: str
    evidence: str


@dataclass(frozen=True, slots=True)
class CauseRule:
    """A known cause. `{…}` in `shows` are fields of the evidence. `fixed_in`: first version of the brokers without the fault."""

    cause: str
    likelihood: Likelihood
    shows: str
    applies: Callable[[Evidence], bool] = lambda evidence: True
    fixed_in: tuple[int, int] | None = None


def _is_offsets_topic(evidence: Evidence) -> bool:
    return evidence.on_partition.topic == GROUP_METADATA_TOPIC


def _has_marker(evidence: Evidence) -> bool:
    return evidence.on_partition.marker_offset is not None


def _is_same_epoch(evidence: Evidence) -> bool:
    """Data at the marker's epoch: transactions v0 and v1 do not fence it."""
    return _has_marker(evidence) and evidence.on_partition.producer_epoch == evidence.on_partition.marker_epoch


def _is_v2(evidence: Evidence) -> bool:
    return (evidence.at_coordinator.transaction_version or 0) >= 2


def _lacks_marker(evidence: Evidence) -> bool:
    """Its coordinator decided a transaction with this partition, and the marker is missing here."""
    decision = evidence.at_coordinator.decision
    if decision is not None and decision.is_marked is False and decision.lists_partition:
        return True
    return evidence.at_coordinator.commit_due is not None or Finding.MARKER_MISSING.name in evidence.on_partition.alarms


def _is_epoch_ahead(evidence: Evidence) -> bool:
    return is_ahead(evidence.on_partition.producer_epoch, evidence.at_coordinator.producer_epoch)


def _is_coordinator_epoch_ahead(evidence: Evidence) -> bool:
    return is_ahead(evidence.on_partition.coordinator_epoch, evidence.at_coordinator.newest_coordinator_epoch)


def _is_in_time_at_coordinator(evidence: Evidence) -> bool:
    """By the coordinator's clock, the transaction is younger than the last write claims."""
    start, written = clock_ms(evidence.at_coordinator.transaction_start_ms), clock_ms(evidence.on_partition.last_timestamp_ms)
    return start is not None and written is not None and written < start - 5 * MS_PER_MINUTE


def _is_exhausted(evidence: Evidence) -> bool:
    return (evidence.at_coordinator.producer_epoch or 0) > EXHAUSTED_EPOCH


_L, _P = Likelihood.LIKELY, Likelihood.POSSIBLE

_LATE_PRODUCE: Final = "late produce request after the end of the transaction (KAFKA-14402 family; closed by transactions v2, 4.0)"
_LATE_AT_MARKERS_EPOCH: Final = CauseRule(
    _LATE_PRODUCE,
    _L,
    "the open batches are after the {marker_type} marker at offset {marker_offset}, with its epoch {marker_epoch}",
    _is_same_epoch,
)
_OFFSETS: Final = CauseRule(
    "a transactional offset commit raced its verification (KAFKA-15784; brokers 3.6, fixed in 3.7.0)",
    _L,
    "the partition belongs to __consumer_offsets; the last marker of this producer there: {marker_offset}",
    _is_offsets_topic,
    (3, 7),
)
_LOST_MARKER: Final = CauseRule(
    "its coordinator decided a transaction with this partition, and the marker is gone: the topic was created again, the log was "
    "truncated (unclean election), or the copy is an older one",
    _L,
    "__transaction_state-{coordinator_partition} has the decision ({decision}) of {transactional_id}; no marker follows it here",
    _lacks_marker,
)

_OLD_TIMESTAMPS: Final = CauseRule(
    "the producer writes old timestamps: by its coordinator's clock, the transaction is younger than its last write",
    _L,
    "the timestamp of the last write is older than the transaction's start at the coordinator",
    _is_in_time_at_coordinator,
)

#: Reason -> candidates, most likely first.
CAUSES: Final[Mapping[Reason, tuple[CauseRule, ...]]] = {
    Reason.WRITTEN_AFTER_MARKER: (
        _OFFSETS,
        _LATE_AT_MARKERS_EPOCH,
        CauseRule(
            "a repeated marker of the previous transaction ended the next one too early (KAFKA-19446; brokers 4.0 and 4.1)",
            _P,
            "transactions v2, and the marker at offset {marker_offset} has the epoch of the data, {marker_epoch}",
            lambda evidence: _is_v2(evidence) and _is_same_epoch(evidence),
            (4, 2),
        ),
        CauseRule(
            "a client other than Kafka's own continued to write after its EndTxn (KAFKA-18957)",
            _P,
            "the open batches are after the {marker_type} marker at offset {marker_offset}",
            _has_marker,
        ),
    ),
    Reason.PARTITION_NOT_IN_TRANSACTION: (
        _OFFSETS,
        _LOST_MARKER,
        CauseRule(
            "a client wrote without adding the partition to its transaction (KAFKA-12671; brokers before 3.6, or with "
            "transaction.partition.verification.enable off)",
            _L,
            "no current record of {transactional_id} lists {topic}-{partition}, and the partition has no marker of the producer",
            lambda evidence: not _has_marker(evidence) and not _lacks_marker(evidence),
        ),
        _LATE_AT_MARKERS_EPOCH,
        CauseRule(
            "a client wrote without adding the partition to its newest transaction (KAFKA-12671; brokers before 3.6, or with "
            "transaction.partition.verification.enable off)",
            _P,
            "the producer's last marker here, at offset {marker_offset}, ended an earlier transaction",
            lambda evidence: _has_marker(evidence) and not _lacks_marker(evidence),
        ),
    ),
    Reason.PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR: (
        CauseRule(
            "a coordinator partition lost its records (disk lost, topic created again, log truncated)",
            _P,
            "no record of any coordinator names producer {producer_id}, although a coordinator wrote its marker at offset "
            "{marker_offset}",
            _has_marker,
        ),
        CauseRule(
            "its transactional id expired, and compaction removed its tombstone",
            _P,
            "no record of any coordinator names producer {producer_id}",
        ),
        CauseRule(
            "a coordinator partition lost its records, or a client made up its producer id",
            _P,
            "no record of any coordinator names producer {producer_id}, and the partition has no marker of it",
            lambda evidence: not _has_marker(evidence),
        ),
    ),
    Reason.TRANSACTIONAL_ID_EXPIRED: (
        _LOST_MARKER,
        CauseRule(
            "the partition hung for longer than transactional.id.expiration.ms, and its id expired meanwhile",
            _L,
            "tombstone of {transactional_id} at offset {record_offset} of __transaction_state-{coordinator_partition}",
        ),
        CauseRule(
            _LATE_PRODUCE, _P, "the open batches are after the {marker_type} marker at offset {marker_offset}", _is_same_epoch
        ),
    ),
    Reason.PRODUCER_ID_ROTATED: (
        _LOST_MARKER,
        CauseRule(
            "late produce request with a producer id that its transactional id has given up (epochs exhausted, or the id was "
            "created again)",
            _L,
            "{transactional_id} had producer {producer_id} before, not now",
            lambda evidence: not _lacks_marker(evidence),
        ),
    ),
    Reason.EPOCH_AHEAD_OF_COORDINATOR: (
        CauseRule(
            "a client wrote with an epoch that its coordinator never assigned (accepted without verification, before 4.0)",
            _L,
            "epoch {producer_epoch} in the partition, {coordinator_producer_epoch} at the coordinator",
            fixed_in=(4, 0),
        ),
        CauseRule(
            "the coordinator lost its newest records (unclean election, or a restored older copy)",
            _P,
            "epoch {producer_epoch} in the partition, {coordinator_producer_epoch} at the coordinator",
        ),
    ),
    Reason.MARKER_REFUSED: (
        CauseRule(
            "the partition has seen a newer producer epoch than the decision's, so it refuses every retry of the marker",
            _L,
            "producer epoch {producer_epoch} in the partition, {coordinator_producer_epoch} in the Prepare record",
            _is_epoch_ahead,
        ),
        CauseRule(
            "the partition has seen a newer coordinator epoch, as after a marker by a zombie coordinator or by hand (KAFKA-9144 "
            "and similar), so it refuses every retry of the marker",
            _L,
            "coordinator epoch {coordinator_epoch} in the partition, {newest_coordinator_epoch} is the newest in "
            "__transaction_state-{coordinator_partition}",
            _is_coordinator_epoch_ahead,
        ),
    ),
    Reason.MARKER_OVERDUE: (
        CauseRule("the partition's leader is not reachable", _P, "no marker since the decision at offset {record_offset}"),
        CauseRule(
            "the coordinator stopped sending markers (KAFKA-16352, fixed in 3.8.0; KAFKA-9777, fixed in 2.6.0; KAFKA-10080)",
            _P,
            "no marker since the decision at offset {record_offset} of __transaction_state-{coordinator_partition}",
            fixed_in=(3, 8),
        ),
        CauseRule(
            "a repeated marker is refused under transactions v2 (KAFKA-19999; 4.2 before its fix)",
            _P,
            "transactions v2; decided at offset {record_offset} of __transaction_state-{coordinator_partition}",
            _is_v2,
        ),
    ),
    Reason.TIMEOUT_NOT_PASSED: (_OLD_TIMESTAMPS,),
    Reason.OVERDUE: (
        _OLD_TIMESTAMPS,
        CauseRule(
            "the epoch is exhausted, so its coordinator cannot fence it (KAFKA-20090)",
            _L,
            "epoch {coordinator_producer_epoch} at the coordinator",
            _is_exhausted,
        ),
        CauseRule(
            "its coordinator does not run the timeout scan: __transaction_state-{coordinator_partition} has no leader, or one "
            "that is overloaded",
            _P,
            "{transactional_id} at offset {record_offset} of __transaction_state-{coordinator_partition}",
        ),
    ),
}


def causes(reason: Reason, evidence: Evidence, kafka_version: str | None = None) -> tuple[Cause, ...]:
    """The candidates whose signature matches, most likely first; empty if the transaction needs no explanation."""
    fields = _fields(evidence)
    ranked = []
    for rule in CAUSES.get(reason, ()):
        if rule.applies(evidence):
            shows, likelihood = rule.shows.format(**fields), rule.likelihood
            if _is_fixed(rule, kafka_version):
                likelihood, shows = Likelihood.UNLIKELY, f"{shows}; but the capture says Kafka {kafka_version}"
            ranked.append((likelihood, Cause(rule.cause.format(**fields), likelihood.name, shows)))
    return tuple(cause for _, cause in sorted(ranked, key=lambda pair: pair[0]))


def _is_fixed(rule: CauseRule, kafka_version: str | None) -> bool:
    return rule.fixed_in is not None and is_from(rule.fixed_in, kafka_version) is True


def _fields(evidence: Evidence) -> dict[str, object]:
    partition, coordinator = evidence.on_partition, evidence.at_coordinator
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "producer_id": partition.producer_id,
        "producer_epoch": partition.producer_epoch,
        "coordinator_epoch": "unknown" if partition.coordinator_epoch is None else partition.coordinator_epoch,
        "marker_type": partition.marker_type or "end",
        "marker_offset": "none" if partition.marker_offset is None else partition.marker_offset,
        "marker_epoch": "none" if partition.marker_epoch is None else partition.marker_epoch,
        "transactional_id": coordinator.transactional_id,
        "state": "expired" if coordinator.state is None else coordinator.state.kafka_name,
        "coordinator_partition": coordinator.coordinator_partition,
        "coordinator_producer_epoch": coordinator.producer_epoch,
        "newest_coordinator_epoch": coordinator.newest_coordinator_epoch,
        "record_offset": coordinator.record_offset,
        "decision": "not known" if coordinator.decision is None else coordinator.decision.type,
    }
