"""What to do about one open transaction: abort it by hand, or why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from txnlib.core.display import instant
from txnlib.core.kafka.transaction_state import TransactionState
from txnlib.core.kafka_commands import (
    abort,
    abort_on_old_brokers,
    cannot_name,
    knows_describe_producers,
    knows_force_terminate,
    named,
)
from txnlib.core.verdicts.abort_proof import proofs, safe_from_ms
from txnlib.core.verdicts.capture_skew import REFUSALS_BY_SKEW, skew_of
from txnlib.core.verdicts.case import Case
from txnlib.core.verdicts.dossier import EarlierAudit
from txnlib.core.verdicts.no_commit import Answer
from txnlib.core.verdicts.reason import Reason, Verdict
from txnlib.core.verdicts.statements import Proof, Statement
from txnlib.core.verdicts.verdict import Judgement, coordinator_log


@dataclass(frozen=True, slots=True)
class Remedy:
    """Whether an abort by hand is safe, by which proof; `safe_from_ms` is epoch ms."""

    safe_to_abort: bool
    abort_command: str | None
    do_not_abort_because: str | None
    safe_from_ms: int | None
    safety: tuple[Proof, ...]


#: Whether the tool has forceTerminateTransaction (None if unknown) -> how to end a transaction at its coordinator.
WAYS_TO_END: Final[Mapping[bool | None, str]] = {
    True: "end it there (forceTerminateTransaction)",
    None: "end it there (forceTerminateTransaction of a tool of 4.1 or newer, Admin.fenceProducers since 3.2)",
    False: (
        "end it there (forceTerminateTransaction of a tool of 4.1 or newer, which works with these brokers;"
        " Admin.fenceProducers; or its application, started with the same transactional.id)"
    ),
}

#: Verdict -> why no marker may be written by hand; None if one may. {end_it} is one of `WAYS_TO_END`.
REFUSALS: Final[Mapping[Verdict, str | None]] = {
    Verdict.HANGING: None,
    Verdict.SUSPECT: "it is younger than the timeout: a request may still be in flight; audit again later",
    Verdict.STUCK: "its coordinator decided: an abort by hand could contradict the decision; get the coordinator going",
    Verdict.LATE: "its coordinator still expects it: check it, or {end_it}",
    Verdict.OPEN: "it is in progress",
    Verdict.UNKNOWN: "the captured files do not allow a verdict",
}

#: Reason -> text, if it differs from that of `REFUSALS` for the verdict.
REFUSALS_BY_REASON: Final[Mapping[Reason, str]] = {
    Reason.TWO_PHASE_COMMIT: (
        "it takes part in two-phase commit: only its owner may decide it; if the owner has abandoned it, {end_it}"
    ),
    Reason.TIMEOUT_NOT_PASSED: (
        "it is in progress by its coordinator's clock: look at the timestamps that its producer writes"
    ),
    Reason.MARKER_REFUSED: (
        "its coordinator decided, and the partition refuses the marker: getting the coordinator going does not help"
    ),
    Reason.COORDINATOR_PARTITION_NOT_CAPTURED: (
        "coverage is incomplete: a coordinator that was not captured may still end it"
    ),
    Reason.COORDINATOR_LOG_DAMAGED: "coverage is incomplete: the newest records of its coordinator are lost",
    Reason.PARTITION_LOG_INCOMPLETE: (
        "coverage is incomplete: its marker may be in the part that this copy lacks; copy another replica"
    ),
    Reason.CAPTURE_SKEW: (
        "the copies were taken at different instants: copy the coordinators before and after the partitions"
    ),
    Reason.PARTITION_COPY_NOT_CURRENT: "coverage is incomplete: copy the partition from its leader",
    Reason.COORDINATOR_COPY_NOT_CURRENT: "coverage is incomplete: copy its coordinator partition from its leader",
    Reason.COORDINATOR_RECORDS_COMPACTED: "compaction may have removed its end: copy the partition again",
    Reason.COPIES_DISAGREE: (
        "copies contradict each other: name the leaders in capture.json, or copy only the leader's log"
    ),
    Reason.BROKER_ANSWERED_OTHERWISE: "a broker answered otherwise when the capture was taken: capture again",
    Reason.CORRUPT_MESSAGE: "a batch is damaged: copy another replica",
    Reason.METADATA_LOG_DAMAGED: (
        "the metadata log is damaged: copy __cluster_metadata-0 of another broker, or add the leaders to capture.json"
        " (partitions)"
    ),
    Reason.BROKER_VERSION_UNKNOWN: "the version of the brokers is not known: add kafka_version to capture.json",
}


def remedy(case: Case, judgement: Judgement, answer: Answer, promised: EarlierAudit | None = None) -> Remedy:
    """The exact command and whether it is safe, if an abort by hand is right; else the reason why it is not.

    There is a command only where the proof holds, or where its age alone is missing; and for an ABORT that the
    partition refuses, because an abort by hand writes the same. `promised`: an earlier audit that called it safe, from
    some instant on. `answer`: of the worlds.
    """
    found = proofs(case, judgement, answer)
    safe_from = safe_from_ms(case, judgement, found)
    unnamed = cannot_name(case.span.topic)
    refusal = REFUSALS[judgement.verdict]
    if refusal is not None:
        state = case.claim.transaction_state
        is_agreed = judgement.reason is Reason.MARKER_REFUSED and state is TransactionState.PREPARE_ABORT
        if is_agreed and unnamed is None:
            return Remedy(False, _command(case), None, safe_from, found)
        text = REFUSALS_BY_REASON.get(judgement.reason, refusal)
        if judgement.reason is Reason.CAPTURE_SKEW:
            text = REFUSALS_BY_SKEW.get(skew_of(case), text)
        said = _needs_replicas(case, judgement) or text.format(
            log=coordinator_log(case.claim.coordinator_partition),
            end_it=WAYS_TO_END[knows_force_terminate(case.kafka_version)],
        )
        return Remedy(False, None, _dated(said, safe_from), safe_from, found)
    if unnamed is not None:
        return Remedy(False, None, unnamed, None, found)
    problems = {proof.name: proof.says for proof in found if not proof.holds}
    command = _command(case) if set(problems) <= {Statement.IS_OLD_ENOUGH} else None
    # Every statement that fails. Without the third, an abort destroys data, so it comes first.
    named = sorted(problems, key=lambda statement: statement is not Statement.NO_COMMIT_INCLUDES_IT)
    says = "; ".join(problems[statement] for statement in named)
    withdrawn = "" if promised is None or safe_from is not None else _withdrawn(promised)
    return Remedy(not problems, command, _dated(says, safe_from) + withdrawn if named else None, safe_from, found)


def _needs_replicas(case: Case, judgement: Judgement) -> str | None:
    """What helps where no coordinator can write the end of a transaction, because too few replicas are in sync."""
    of_id, here = case.coordinator.too_few_in_sync, case.place.too_few_in_sync
    if judgement.reason is Reason.OVERDUE and of_id is not None:
        return f"its coordinator still expects it, and cannot write that it ends: {of_id.remedy}"
    if judgement.verdict is Verdict.STUCK and judgement.reason is not Reason.MARKER_REFUSED:
        refused = here or of_id
        return None if refused is None else f"its coordinator decided, and cannot write the marker: {refused.remedy}"
    return None


def _dated(problem: str, safe_from: int | None) -> str:
    return (
        problem
        if safe_from is None
        else f"{problem}; safe from {instant(safe_from + 999)} on, if an audit then still proves the rest"
    )


def _withdrawn(promised: EarlierAudit) -> str:
    """What an earlier audit said and this one does not, as the end of a sentence."""
    when = "" if promised.safe_from_ms is None else f" from {instant(promised.safe_from_ms + 999)} on"
    return f"; audit {promised.run_id} called it safe{when}: that is withdrawn"


def _command(case: Case) -> str:
    span, version = case.span, case.kafka_version
    if knows_describe_producers(version):
        return named(abort(span.topic, span.partition, span.start_offset), version)
    producer = (case.dossier.producer_id, span.producer_epoch, span.coordinator_epoch)
    return named(abort_on_old_brokers(span.topic, span.partition, *producer), version)
