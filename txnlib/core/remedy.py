"""What can be done about an open transaction, and what must not be? A judgement to an abort command or a refusal.

A marker by hand bypasses the coordinator: it is right only where no coordinator will ever write one, and breaks atomicity
everywhere else. Kafka: `TransactionsCommand.AbortTransactionCommand`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from txnlib.core.commands import abort, abort_on_old_brokers, knows_describe_producers, knows_force_terminate
from txnlib.core.evidence import Evidence, Thresholds
from txnlib.core.transaction_state import TransactionState
from txnlib.core.verdict import Judgement, Reason, Verdict


@dataclass(frozen=True, slots=True)
class Remedy:
    safe_to_abort: bool
    abort_command: str | None
    do_not_abort_because: str | None


#: Whether Kafka has forceTerminateTransaction (None: not known) -> how what a coordinator holds is ended.
WAYS_TO_END: Final[Mapping[bool | None, str]] = {
    True: "end it there (forceTerminateTransaction)",
    None: "end it there (forceTerminateTransaction, Kafka 4.1 and newer)",
    False: "leave it to its application's own recovery: started with the same transactional.id, it ends it there",
}

#: verdict -> why no marker may be written by hand; None where one may. {end_it} is one of `WAYS_TO_END`.
REFUSALS: Final[Mapping[Verdict, str | None]] = {
    Verdict.HANGING: None,
    Verdict.SUSPECT: "it is younger than the timeout: a request may still be under way; audit again later",
    Verdict.STUCK: "its coordinator decided: a marker by hand could contradict the decision; get the coordinator going",
    Verdict.LATE: "its coordinator still holds it: check that coordinator, or {end_it}",
    Verdict.OPEN: "it is in progress",
    Verdict.UNKNOWN: "the captured files do not allow a verdict",
}

#: reason -> what else there is to say than what `REFUSALS` has for the verdict.
REFUSALS_BY_REASON: Final[Mapping[Reason, str]] = {
    Reason.TWO_PHASE_COMMIT: "it takes part in two-phase commit: only its owner may decide it; if that is given up, {end_it}",
    Reason.COORDINATOR_PARTITION_NOT_CAPTURED: "coverage is incomplete: a coordinator that was not captured may still end it",
    Reason.COORDINATOR_LOG_DAMAGED: "coverage is incomplete: the newest records of its coordinator are lost",
    Reason.PARTITION_LOG_INCOMPLETE: "coverage is incomplete: its marker may stand in the hole of this copy",
    Reason.CAPTURE_SKEW: "the copies were taken at different instants: copy the coordinators before and after the partitions",
}

Doubt = Callable[[Evidence, Judgement, Thresholds], bool]


def _is_held_elsewhere(evidence: Evidence, judgement: Judgement, thresholds: Thresholds) -> bool:
    return judgement.reason is Reason.EPOCH_AHEAD_OF_COORDINATOR


def _is_committing(evidence: Evidence, judgement: Judgement, thresholds: Thresholds) -> bool:
    return evidence.at_coordinator.state is TransactionState.PREPARE_COMMIT


def _is_two_phase(evidence: Evidence, judgement: Judgement, thresholds: Thresholds) -> bool:
    return evidence.at_coordinator.is_active and evidence.at_coordinator.is_two_phase_commit


def _may_be_absorbed(evidence: Evidence, judgement: Judgement, thresholds: Thresholds) -> bool:
    return evidence.at_coordinator.is_active


def _has_no_start(evidence: Evidence, judgement: Judgement, thresholds: Thresholds) -> bool:
    return not evidence.on_partition.is_start_exact


def _has_no_age(evidence: Evidence, judgement: Judgement, thresholds: Thresholds) -> bool:
    return judgement.broker_clock_age_ms is None


def _is_young(evidence: Evidence, judgement: Judgement, thresholds: Thresholds) -> bool:
    age = judgement.broker_clock_age_ms
    return age is not None and age <= thresholds.max_transaction_timeout_ms


#: Why a hanging transaction should still not be aborted at once, in the order in which it is said.
PRECAUTIONS: Final[Mapping[str, Doubt]] = {
    "its coordinator still lists the partition: end the transaction there first, then look again": _is_held_elsewhere,
    "its transactional id is in PrepareCommit: an abort here could split the outcome": _is_committing,
    "its transactional id is in a two-phase commit that its owner may still commit": _is_two_phase,
    "its transactional id is in another transaction now, which may still add this partition and end it: look again after it": (
        _may_be_absorbed
    ),
    "the log was captured from the middle of the transaction, so its true start offset is not known": _has_no_start,
    "no broker's clock proves its age: its timestamps are the client's": _has_no_age,
    "brokers' clocks prove only part of its age: the client's timestamps may lie in the past": _is_young,
}


def remedy(evidence: Evidence, judgement: Judgement, thresholds: Thresholds, kafka_version: str | None = None) -> Remedy:
    """The exact command where an abort by hand is right, with whether it is safe; else why it is not."""
    refusal = REFUSALS[judgement.verdict]
    if refusal is not None:
        said = REFUSALS_BY_REASON.get(judgement.reason, refusal)
        return Remedy(False, None, said.format(end_it=WAYS_TO_END[knows_force_terminate(kafka_version)]))
    partition = evidence.on_partition
    if knows_describe_producers(kafka_version):
        command = abort(partition.topic, partition.partition, partition.start_offset)
    else:
        producer = (partition.producer_id, partition.producer_epoch, partition.coordinator_epoch)
        command = abort_on_old_brokers(partition.topic, partition.partition, *producer)
    doubt = next((why for why, applies in PRECAUTIONS.items() if applies(evidence, judgement, thresholds)), None)
    return Remedy(doubt is None, command, doubt)
