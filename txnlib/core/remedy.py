"""What can be done about an open transaction, and what must not be? A judgement to an abort command or a refusal.

A marker by hand bypasses the coordinator: it is right only where no coordinator will ever write one, and breaks atomicity
everywhere else. Kafka: `TransactionsCommand.AbortTransactionCommand`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from txnlib.core.evidence import Evidence, Thresholds
from txnlib.core.transaction_state import TransactionState
from txnlib.core.verdict import Judgement, Reason, Verdict


@dataclass(frozen=True, slots=True)
class Remedy:
    safe_to_abort: bool
    abort_command: str | None
    do_not_abort_because: str | None


#: verdict -> why no marker may be written by hand; None where one may.
REFUSALS: Final[Mapping[Verdict, str | None]] = {
    Verdict.HANGING: None,
    Verdict.SUSPECT: "it is younger than the timeout: a request may still be under way; audit again later",
    Verdict.STUCK: "its coordinator decided: a marker by hand could contradict the decision; get the coordinator going",
    Verdict.LATE: "its coordinator still holds it: check that coordinator, or end it there (forceTerminateTransaction, 4.1+)",
    Verdict.OPEN: "it is in progress",
    Verdict.UNKNOWN: "the captured files do not allow a verdict",
}


def remedy(evidence: Evidence, judgement: Judgement, thresholds: Thresholds) -> Remedy:
    """The exact command where an abort by hand is right, with whether it is safe; else why it is not."""
    refusal = REFUSALS[judgement.verdict]
    if refusal is not None:
        return Remedy(False, None, refusal)
    partition = evidence.on_partition
    command = (
        f"kafka-transactions.sh --bootstrap-server $BOOTSTRAP abort --topic {partition.topic} "
        f"--partition {partition.partition} --start-offset {partition.start_offset}"
    )
    doubt = _unsafe_because(evidence, judgement, thresholds)
    return Remedy(doubt is None, command, doubt)


def _unsafe_because(evidence: Evidence, judgement: Judgement, thresholds: Thresholds) -> str | None:
    """Why a hanging transaction should still not be aborted at once; None if it may."""
    coordinator, age = evidence.at_coordinator, judgement.broker_clock_age_ms
    if judgement.reason is Reason.EPOCH_AHEAD_OF_COORDINATOR:
        return "its coordinator still lists the partition: end the transaction there first, then look again"
    if coordinator.state is TransactionState.PREPARE_COMMIT:
        return "its transactional id is in PrepareCommit: an abort here could split the outcome"
    if not evidence.on_partition.is_start_exact:
        return "the log was captured from the middle of the transaction, so its true start offset is not known"
    if age is None:
        return "no broker's clock proves its age: its timestamps are the client's"
    if age <= thresholds.max_transaction_timeout_ms:
        return "brokers' clocks prove only part of its age: the client's timestamps may lie in the past"
    return None
