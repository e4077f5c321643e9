"""The verdicts, and the closed list of their reasons. What each asks for: docs/runbook.md#verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, StrEnum
from typing import Final

from txnlib.core.display import offset_text
from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS, is_ahead
from txnlib.core.kafka.marker_acceptance import Acceptance, acceptance
from txnlib.core.kafka.transaction_state import TransactionState
from txnlib.core.verdicts.case import Case
from txnlib.core.verdicts.dossier import Owner


class Verdict(StrEnum):
    HANGING = "HANGING"
    SUSPECT = "SUSPECT"
    STUCK = "STUCK"
    LATE = "LATE"
    OPEN = "OPEN"
    UNKNOWN = "UNKNOWN"


class Reason(StrEnum):
    # No coordinator will end it.
    PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR = "PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR"
    TRANSACTIONAL_ID_EXPIRED = "TRANSACTIONAL_ID_EXPIRED"
    PRODUCER_ID_ROTATED = "PRODUCER_ID_ROTATED"
    WRITTEN_AFTER_MARKER = "WRITTEN_AFTER_MARKER"
    PARTITION_NOT_IN_TRANSACTION = "PARTITION_NOT_IN_TRANSACTION"
    EPOCH_AHEAD_OF_COORDINATOR = "EPOCH_AHEAD_OF_COORDINATOR"
    # Its coordinator decided.
    MARKER_PENDING = "MARKER_PENDING"
    MARKER_OVERDUE = "MARKER_OVERDUE"
    MARKER_REFUSED = "MARKER_REFUSED"
    # Its coordinator expects it.
    EXPECTED = "EXPECTED"
    OVERDUE = "OVERDUE"
    TIMEOUT_NOT_PASSED = "TIMEOUT_NOT_PASSED"
    TWO_PHASE_COMMIT = "TWO_PHASE_COMMIT"
    # Undecided.
    COORDINATOR_PARTITION_NOT_CAPTURED = "COORDINATOR_PARTITION_NOT_CAPTURED"
    COORDINATOR_LOG_DAMAGED = "COORDINATOR_LOG_DAMAGED"
    PARTITION_LOG_INCOMPLETE = "PARTITION_LOG_INCOMPLETE"
    CAPTURE_SKEW = "CAPTURE_SKEW"
    PARTITION_COPY_NOT_CURRENT = "PARTITION_COPY_NOT_CURRENT"
    COORDINATOR_COPY_NOT_CURRENT = "COORDINATOR_COPY_NOT_CURRENT"
    COORDINATOR_RECORDS_COMPACTED = "COORDINATOR_RECORDS_COMPACTED"
    COPIES_DISAGREE = "COPIES_DISAGREE"
    BROKER_ANSWERED_OTHERWISE = "BROKER_ANSWERED_OTHERWISE"
    CORRUPT_MESSAGE = "CORRUPT_MESSAGE"
    BROKER_VERSION_UNKNOWN = "BROKER_VERSION_UNKNOWN"
    METADATA_LOG_DAMAGED = "METADATA_LOG_DAMAGED"


#: Reasons that mean that no coordinator will end the transaction. They become a verdict only if there is no doubt.
NOBODY_ENDS_IT: Final = frozenset(
    {
        Reason.PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR,
        Reason.TRANSACTIONAL_ID_EXPIRED,
        Reason.PRODUCER_ID_ROTATED,
        Reason.WRITTEN_AFTER_MARKER,
        Reason.PARTITION_NOT_IN_TRANSACTION,
        Reason.EPOCH_AHEAD_OF_COORDINATOR,
    }
)
#: Reasons by the records that mean that the coordinator will end the transaction.
EXPECTED_BY_RECORDS: Final = frozenset({Reason.EXPECTED, Reason.TWO_PHASE_COMMIT})
#: Reasons by the records that mean that the coordinator has decided, and its marker is missing here.
DECIDED_BY_RECORDS: Final = frozenset({Reason.MARKER_PENDING, Reason.MARKER_REFUSED})
#: Reasons of a verdict that mean that the coordinator will end the transaction.
EXPECTED_REASONS: Final = frozenset(
    {Reason.EXPECTED, Reason.OVERDUE, Reason.TIMEOUT_NOT_PASSED, Reason.TWO_PHASE_COMMIT}
)
#: Reasons that mean that the coordinator aborts the transaction once its timeout has passed.
TIMED_REASONS: Final = EXPECTED_REASONS - {Reason.TWO_PHASE_COMMIT}


#: Reason -> one plain sentence for an on-call engineer. `{…}` are fields of the case.
EXPLANATIONS: Final[Mapping[Reason, str]] = {
    Reason.PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR: (
        "no transactional id in any coordinator partition ever had producer {producer_id}, so nobody will write its"
        " marker"
    ),
    Reason.TRANSACTIONAL_ID_EXPIRED: (
        "its transactional id {transactional_id} expired, and an expired producer id never comes back"
    ),
    Reason.PRODUCER_ID_ROTATED: (
        "{transactional_id} now uses another producer id, so nobody will write a marker for producer {producer_id}"
    ),
    Reason.WRITTEN_AFTER_MARKER: (
        "written after the {marker_type} marker at offset {marker_offset}; its coordinator has no transaction with this"
        " partition ({transactional_id} is in {state})"
    ),
    Reason.PARTITION_NOT_IN_TRANSACTION: (
        "its coordinator does not list this partition in a transaction of {transactional_id} (state {state})"
    ),
    Reason.EPOCH_AHEAD_OF_COORDINATOR: (
        "the partition has seen epoch {producer_epoch}, but its coordinator has epoch {coordinator_producer_epoch}: the"
        " marker will be refused"
    ),
    Reason.MARKER_PENDING: "its coordinator decided ({state}); the marker is on its way",
    Reason.MARKER_OVERDUE: "its coordinator decided ({state}) long ago, and the marker has not reached this partition",
    Reason.MARKER_REFUSED: (
        "its coordinator decided ({state}), but the partition refuses the marker, because it has seen {ahead}"
    ),
    Reason.EXPECTED: "{transactional_id} is {state} with this partition, within its time limit",
    Reason.OVERDUE: (
        "{transactional_id} is still {state} with this partition, and its coordinator should have aborted it"
    ),
    Reason.TIMEOUT_NOT_PASSED: (
        "the brokers' late metric counts it, because its last write was {write_age} ago by its own timestamp; but by"
        " its coordinator's clock, {transactional_id} began it {start_age} ago, and its timeout of {timeout} has not"
        " passed"
    ),
    Reason.TWO_PHASE_COMMIT: (
        "{transactional_id} takes part in two-phase commit: it may stay open until its owner decides"
    ),
    Reason.COORDINATOR_PARTITION_NOT_CAPTURED: (
        "no captured coordinator knows producer {producer_id}, and {missing}: it may belong there"
    ),
    Reason.COORDINATOR_LOG_DAMAGED: (
        "records of __transaction_state-{coordinator_partition} newer than the last one of {transactional_id} are lost"
    ),
    Reason.PARTITION_LOG_INCOMPLETE: "the copy of this partition {loss}, and the marker may be among what is missing",
    Reason.CAPTURE_SKEW: (
        "the copies of the partition and of its coordinator were taken at different instants, and the transaction may"
        " have begun, or ended, between them"
    ),
    Reason.PARTITION_COPY_NOT_CURRENT: (
        "this copy of the partition ({role}) is known only up to {known_until}: what the transaction did after that is "
        "unknown; {leader}"
    ),
    Reason.COORDINATOR_COPY_NOT_CURRENT: (
        "the copy of {coordinator_log} ({coordinator_role}) is known only up to {coordinator_known_until}: {owner} may"
        " have continued after that; {coordinator_leader}"
    ),
    Reason.COORDINATOR_RECORDS_COMPACTED: (
        "compaction removed coordinator records that may be newer than this copy of the partition, and the"
        " transaction's end may have been among them"
    ),
    Reason.COPIES_DISAGREE: (
        "the copies of the partition contain different batches, and neither capture.json nor a metadata log names the"
        " leader, whose copy would be right"
    ),
    Reason.BROKER_ANSWERED_OTHERWISE: (
        "what the copies show contradicts a broker's answer of the time of the capture: {answer}"
    ),
    Reason.CORRUPT_MESSAGE: (
        "the CRC of a batch that the verdict depends on does not match: its header cannot be trusted"
    ),
    Reason.METADATA_LOG_DAMAGED: (
        "records of the cluster's metadata log are lost: they may name another leader of this partition or of its"
        " coordinator, remove the topic, or change a setting that the verdict depends on"
    ),
    Reason.BROKER_VERSION_UNKNOWN: (
        "the partition has seen epoch {producer_epoch}, but its coordinator has epoch {coordinator_producer_epoch}:"
        " brokers before 4.2 accept its next marker, newer brokers refuse it under transactions v2, and the brokers'"
        " version is not known"
    ),
}


def fields_of(case: Case) -> dict[str, object]:
    """The fields of the case that the texts of reasons and causes name."""
    marker, state = case.span.marker, case.claim.transaction_state
    return {
        "topic": case.span.topic,
        "partition": case.span.partition,
        "producer_id": case.dossier.producer_id,
        "producer_epoch": case.span.producer_epoch,
        "coordinator_epoch": "unknown" if case.span.coordinator_epoch is None else case.span.coordinator_epoch,
        "marker_type": (marker and marker.type) or "end",
        "marker_offset": "none" if marker is None else marker.offset,
        "marker_epoch": "none" if marker is None or marker.epoch is None else marker.epoch,
        "transactional_id": case.claim.transactional_id,
        "state": "expired" if state is None else state.kafka_name,
        "coordinator_partition": case.claim.coordinator_partition,
        "coordinator_producer_epoch": case.claim.producer_epoch,
        "newest_coordinator_epoch": case.coordinator.newest_coordinator_epoch,
        "record_place": "no record" if case.claim.record_offset is None else offset_text(case.claim.record_offset),
        "gap_offset": case.gap_offset,
    }


# ---- The reason of an open transaction by the records alone


class LastRecord(Enum):
    """What the last record of the id says of this partition."""

    NOTHING = "NOTHING"  # Empty, Complete, or a transaction without this partition
    ONGOING = "ONGOING"
    PREPARED = "PREPARED"


class DecisionMarker(Enum):
    """The marker of the decision on this partition. The epoch check applies to a future marker, too."""

    NOT_WRITTEN = "NOT_WRITTEN"
    WRITTEN = "WRITTEN"
    REFUSED = "REFUSED"
    #: Refused or not, depending on the unknown version of the brokers.
    MAY_BE_REFUSED = "MAY_BE_REFUSED"


#: Reason if the transactional id still has the producer id, by its last record and the marker of its decision. Other
#: pairs do not occur: a decision that does not list the partition, or that is not made, has no marker to refuse.
REASONS_OF_OWNER: Final[Mapping[tuple[LastRecord, DecisionMarker], Reason]] = {
    (LastRecord.NOTHING, DecisionMarker.NOT_WRITTEN): Reason.PARTITION_NOT_IN_TRANSACTION,
    (LastRecord.NOTHING, DecisionMarker.WRITTEN): Reason.WRITTEN_AFTER_MARKER,
    (LastRecord.ONGOING, DecisionMarker.NOT_WRITTEN): Reason.EXPECTED,
    (LastRecord.ONGOING, DecisionMarker.REFUSED): Reason.EPOCH_AHEAD_OF_COORDINATOR,
    (LastRecord.ONGOING, DecisionMarker.MAY_BE_REFUSED): Reason.BROKER_VERSION_UNKNOWN,
    (LastRecord.PREPARED, DecisionMarker.NOT_WRITTEN): Reason.MARKER_PENDING,
    (LastRecord.PREPARED, DecisionMarker.WRITTEN): Reason.WRITTEN_AFTER_MARKER,
    (LastRecord.PREPARED, DecisionMarker.REFUSED): Reason.MARKER_REFUSED,
    (LastRecord.PREPARED, DecisionMarker.MAY_BE_REFUSED): Reason.MARKER_PENDING,
}

#: Reason if the transactional id no longer has the producer id, or never had it.
REASONS_OF_OTHERS: Final[Mapping[Owner, Reason]] = {
    Owner.NOBODY: Reason.PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR,
    Owner.ROTATED: Reason.PRODUCER_ID_ROTATED,
    Owner.EXPIRED: Reason.TRANSACTIONAL_ID_EXPIRED,
    # The id has not used it yet, so no transaction with it can list the partition.
    Owner.NEXT: Reason.PARTITION_NOT_IN_TRANSACTION,
}

#: Acceptance of the marker that a coordinator will send -> state of that marker.
_COMING_MARKERS: Final[Mapping[Acceptance, DecisionMarker]] = {
    Acceptance.ACCEPTED: DecisionMarker.NOT_WRITTEN,
    Acceptance.REFUSED: DecisionMarker.REFUSED,
    Acceptance.DEPENDS_ON_VERSION: DecisionMarker.MAY_BE_REFUSED,
}

#: Prepare state -> the marker that carries out the decision.
MARKER_TYPES: Final[Mapping[TransactionState, str]] = {
    TransactionState.PREPARE_COMMIT: "COMMIT",
    TransactionState.PREPARE_ABORT: "ABORT",
}


def reason_by_records(case: Case) -> Reason:
    """The reason, by the records alone. A decision without its marker is `MARKER_PENDING` at any age."""
    if case.claim.owner in REASONS_OF_OTHERS:
        return REASONS_OF_OTHERS[case.claim.owner]
    reason = REASONS_OF_OWNER[last_record(case), marker_state(case)]
    return Reason.TWO_PHASE_COMMIT if reason is Reason.EXPECTED and case.claim.is_two_phase_commit else reason


def last_record(case: Case) -> LastRecord:
    """What the last record of the id says of this partition."""
    if not case.is_listed:
        return LastRecord.NOTHING
    # The coordinator aborts a transaction in PrepareEpochFence. It is never written, so a record with it is a finding,
    # too.
    if case.claim.transaction_state in (TransactionState.ONGOING, TransactionState.PREPARE_EPOCH_FENCE):
        return LastRecord.ONGOING
    return LastRecord.PREPARED if case.claim.is_prepared else LastRecord.NOTHING


def marker_state(case: Case) -> DecisionMarker:
    """The state of the marker of the id's decision, or of its next one."""
    if case.claim.is_prepared and case.is_listed:
        if is_decision_marker(case):
            return DecisionMarker.WRITTEN
        if is_ahead(case.span.coordinator_epoch, case.coordinator.newest_coordinator_epoch):
            return DecisionMarker.REFUSED
        return _coming(case, case.claim.producer_epoch, case.claim.client_transaction_version)
    if case.claim.is_active and case.is_listed:
        # The epoch of the abort that ends an Ongoing transaction at the latest; under transactions v2, that of any end.
        following = None if case.claim.producer_epoch is None else case.claim.producer_epoch + 1
        return _coming(case, following, cluster_version(case))
    # If the *last* decision of the id about the partition has its marker here, the open batches came too late.
    is_written = None if case.decision is None else case.decision.is_marked
    if is_written is None:
        is_written = case.span.marker is not None
    return DecisionMarker.WRITTEN if is_written else DecisionMarker.NOT_WRITTEN


def cluster_version(case: Case) -> int | None:
    """The transaction version with which a coordinator aborts: that of the cluster. A client of version 2 proves 2;
    None if unknown."""
    if case.facts.transaction_version is not None:
        return case.facts.transaction_version
    shown = case.claim.client_transaction_version
    return shown if shown is not None and shown >= 2 else None


def _coming(case: Case, marker_epoch: int | None, transaction_version: int | None) -> DecisionMarker:
    if marker_epoch is None:
        return DecisionMarker.NOT_WRITTEN
    epoch, version = case.span.producer_epoch, case.kafka_version
    return _COMING_MARKERS[acceptance(epoch, marker_epoch, version, transaction_version)]


def is_decision_marker(case: Case) -> bool:
    """Whether the last marker of the producer here is the one for the Prepare record.

    TV0 and TV1 reuse an epoch for many transactions, so the time is compared, too. Fields that a dump does not show are
    ignored.
    """
    marker, state = case.span.marker, case.claim.transaction_state
    decision = None if state is None else MARKER_TYPES.get(state)
    if marker is None or decision is None:
        return False
    if is_ahead(case.claim.record_coordinator_epoch, marker.coordinator_epoch):
        return False
    if case.decision is not None and (case.decision.is_marked is not None or clock_ms(marker.ms) is not None):
        return case.decision.is_marked is True
    agrees = marker.type in (None, decision) and marker.epoch == case.claim.producer_epoch
    marked_ms, updated_ms = clock_ms(marker.ms), clock_ms(case.claim.last_update_ms)
    if marked_ms is not None and updated_ms is not None:
        agrees &= marked_ms >= updated_ms - CLOCKS_DIFFER_MS
    return agrees
