"""The verdicts, and the closed list of their reasons. What each asks for: docs/runbook.md#verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


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


#: Reason -> one plain sentence for an on-call engineer. `{…}` are fields of the evidence.
EXPLANATIONS: Final[Mapping[Reason, str]] = {
    Reason.PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR: (
        "no transactional id in any coordinator partition ever had producer {producer_id}, so nobody will write its marker"
    ),
    Reason.TRANSACTIONAL_ID_EXPIRED: (
        "its transactional id {transactional_id} expired, and an expired producer id never comes back"
    ),
    Reason.PRODUCER_ID_ROTATED: (
        "{transactional_id} now uses another producer id, so nobody will write a marker for producer {producer_id}"
    ),
    Reason.WRITTEN_AFTER_MARKER: (
        "written after the {marker_type} marker at offset {marker_offset}; its coordinator has no transaction with this "
        "partition ({transactional_id} is in {state})"
    ),
    Reason.PARTITION_NOT_IN_TRANSACTION: (
        "its coordinator does not list this partition in a transaction of {transactional_id} (state {state})"
    ),
    Reason.EPOCH_AHEAD_OF_COORDINATOR: (
        "the partition has seen epoch {producer_epoch}, but its coordinator has epoch {coordinator_producer_epoch}: the marker "
        "will be refused"
    ),
    Reason.MARKER_PENDING: "its coordinator decided ({state}); the marker is on its way",
    Reason.MARKER_OVERDUE: "its coordinator decided ({state}) long ago, and the marker has not reached this partition",
    Reason.MARKER_REFUSED: (
        "its coordinator decided ({state}), but the partition refuses the marker, because it has seen producer epoch "
        "{producer_epoch} and coordinator epoch {coordinator_epoch}"
    ),
    Reason.EXPECTED: "{transactional_id} is {state} with this partition, within its time limit",
    Reason.OVERDUE: "{transactional_id} is still {state} with this partition, and its coordinator should have aborted it",
    Reason.TIMEOUT_NOT_PASSED: (
        "the brokers' late metric counts it, because its last write is {write_age} old by its own timestamp; but by its "
        "coordinator's clock, {transactional_id} began it {start_age} ago, and its timeout of {timeout} has not passed"
    ),
    Reason.TWO_PHASE_COMMIT: "{transactional_id} takes part in two-phase commit: it may stay open until its owner decides",
    Reason.COORDINATOR_PARTITION_NOT_CAPTURED: (
        "no captured coordinator knows producer {producer_id}, and {missing}: it may belong there"
    ),
    Reason.COORDINATOR_LOG_DAMAGED: (
        "records of __transaction_state-{coordinator_partition} newer than the last one of {transactional_id} are lost"
    ),
    Reason.PARTITION_LOG_INCOMPLETE: "the copy of this partition {loss}, and the marker may be among what is missing",
    Reason.CAPTURE_SKEW: (
        "the copies of the partition and of its coordinator were taken at different instants, and the transaction may have "
        "begun, or ended, between them"
    ),
    Reason.PARTITION_COPY_NOT_CURRENT: (
        "this copy of the partition ({role}) is known only up to {known_until}: what the transaction did after that is "
        "unknown; {leader}"
    ),
    Reason.COORDINATOR_COPY_NOT_CURRENT: (
        "the copy of {coordinator_log} ({coordinator_role}) is known only up to {coordinator_known_until}: {owner} may have "
        "continued after that; {coordinator_leader}"
    ),
    Reason.COORDINATOR_RECORDS_COMPACTED: (
        "compaction removed coordinator records that may be newer than this copy of the partition, and the transaction's end may "
        "have been among them"
    ),
    Reason.COPIES_DISAGREE: (
        "the copies of the partition contain different batches, and neither capture.json nor a metadata log names the leader, "
        "whose copy would be right"
    ),
    Reason.BROKER_ANSWERED_OTHERWISE: "what the copies show contradicts a broker's answer of the time of the capture: {answer}",
    Reason.CORRUPT_MESSAGE: "the CRC of a batch that the verdict depends on does not match: its header cannot be trusted",
    Reason.METADATA_LOG_DAMAGED: (
        "records of the cluster's metadata log are lost: they may name another leader of this partition or of its coordinator, "
        "remove the topic, or change a setting that the verdict depends on"
    ),
    Reason.BROKER_VERSION_UNKNOWN: (
        "the partition has seen epoch {producer_epoch}, but its coordinator has epoch {coordinator_producer_epoch}: brokers before "
        "4.2 accept its next marker, newer brokers refuse it under transactions v2, and the brokers' version is not known"
    ),
}
