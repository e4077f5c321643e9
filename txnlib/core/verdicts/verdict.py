"""The verdict on an open transaction: its reason in words, and what the live tool would print.

Three steps, each a table: the reason by the records (`reason_by_records`), what makes that doubtful (`doubt`), and the
verdict that the reason gives at this age.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from txnlib.core.copies import ENDS_SHORT, ROLES, UNOPENED, End, Role, is_above
from txnlib.core.display import duration, instant, some_of
from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC, is_ahead
from txnlib.core.kafka.coordinator_partition import CountBasis
from txnlib.core.kafka.marker_acceptance import LAST_EPOCH
from txnlib.core.kafka_commands import is_candidate, is_printed
from txnlib.core.verdicts.age import (
    LateBy,
    has_outlived_timeout,
    known_at_ms,
    last_write_ms,
    lateness,
    proven_age_ms,
    proven_since_ms,
    times_out_ms,
)
from txnlib.core.verdicts.capture_skew import EXPLANATIONS_BY_SKEW, skew_of
from txnlib.core.verdicts.case import Case
from txnlib.core.verdicts.doubt import doubt
from txnlib.core.verdicts.files_beside import ended_by
from txnlib.core.verdicts.reason import (
    EXPECTED_REASONS,
    EXPLANATIONS,
    NOBODY_ENDS_IT,
    TIMED_REASONS,
    LastRecord,
    Reason,
    Verdict,
    fields_of,
    is_decision_marker,
    last_record,
    reason_by_records,
)

#: (verdict, whether `find-hanging` prints it), if they differ -> why, as the end of a sentence.
DIFFERENCES: Final[Mapping[tuple[Verdict, bool], str]] = {
    (
        Verdict.HANGING,
        False,
    ): "find-hanging does not print it, because it does not compare epochs, decisions or brokers' clocks",
    (Verdict.STUCK, False): "find-hanging does not print transactions that a coordinator has decided",
    (Verdict.UNKNOWN, True): "find-hanging would have printed it at this instant",
}


def _is_absorbed(case: Case) -> bool:
    start, stamped = clock_ms(case.claim.start_ms), clock_ms(case.stamped_after_ms)
    return start is not None and stamped is not None and stamped < start - case.clocks_differ_ms


def _is_one_epoch_ahead(case: Case) -> bool:
    seen, held = case.span.producer_epoch, case.claim.producer_epoch
    is_ongoing = last_record(case) is LastRecord.ONGOING
    return is_ongoing and held is not None and seen == held + 1 and seen != LAST_EPOCH


#: Further oddities of a transaction that its coordinator expects, although its marker will end all of it.
ODDITIES: Final[Mapping[str, Callable[[Case], bool]]] = {
    "its first records were written before that transaction began, and will be ended with it": _is_absorbed,
    "its records have an older epoch than its coordinator: a fenced producer wrote them": lambda case: is_ahead(
        case.claim.producer_epoch, case.span.producer_epoch
    ),
    (
        "its records have an epoch one higher than its coordinator's: the partition will refuse the commit of a client"
        " without transactions v2, but not the coordinator's abort"
    ): _is_one_epoch_ahead,
}

#: Most numbers of missing partitions to name.
_NAMED: Final = 5
#: Text for a last write of unknown age.
UNSHOWN: Final = "its last write is stamped with a time that no clock shows ({ms} ms)"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict and its basis. Ages are in ms."""

    verdict: Verdict
    reason: Reason
    explanation: str
    kafka_find_hanging: bool | None
    late_by: LateBy | None
    age_basis: str
    broker_clock_age_ms: int | None
    #: The oldest instant at which brokers' clocks prove that the transaction was open, in epoch ms.
    proven_since_ms: int | None
    #: By when its coordinator ends it; None where nobody does, or nobody knows when.
    ends_by_ms: int | None


#: Verdicts that do not depend on an age.
DECIDED_VERDICTS: Final[Mapping[Reason, Verdict]] = {
    Reason.MARKER_PENDING: Verdict.OPEN,
    Reason.MARKER_OVERDUE: Verdict.STUCK,
    Reason.MARKER_REFUSED: Verdict.STUCK,
    Reason.TWO_PHASE_COMMIT: Verdict.OPEN,
    Reason.BROKER_VERSION_UNKNOWN: Verdict.UNKNOWN,
}
#: Why an expected transaction is late, by the rule and by whether the coordinator's start is known.
LATE_REASONS: Final[Mapping[tuple[LateBy, bool], Reason]] = {
    (by, is_known): Reason.TIMEOUT_NOT_PASSED if is_known and by is LateBy.LAST_WRITE else Reason.OVERDUE
    for by in LateBy
    for is_known in (True, False)
}


def judge(case: Case) -> Judgement:
    """The verdict on one open transaction."""
    at_ms = known_at_ms(case)
    reason = reason_by_records(case)
    doubted = doubt(case, reason)
    late_by, live = None, live_answer(case)
    if doubted is not None:
        verdict, reason = Verdict.UNKNOWN, doubted
    elif reason in NOBODY_ENDS_IT:
        verdict = Verdict.HANGING if has_outlived_timeout(case, at_ms) else Verdict.SUSPECT
    elif reason is Reason.EXPECTED:
        late_by = lateness(case, at_ms)
        verdict = Verdict.OPEN if late_by is None else Verdict.LATE
        if late_by is not None:
            reason = LATE_REASONS[late_by, times_out_ms(case) is not None]
    else:
        decided = clock_ms(case.claim.record_ms)
        if reason is Reason.MARKER_PENDING and decided is not None and at_ms - decided > case.thresholds.stuck_after_ms:
            reason = Reason.MARKER_OVERDUE
        verdict = DECIDED_VERDICTS[reason]
    return Judgement(
        verdict=verdict,
        reason=reason,
        explanation="; ".join([explain(reason, case, at_ms), *_remarks(verdict, reason, case, live)]),
        kafka_find_hanging=live,
        late_by=late_by,
        age_basis="BROKER_CLOCK" if case.span.is_broker_clock else "CLIENT_CLOCK",
        broker_clock_age_ms=proven_age_ms(case, at_ms),
        proven_since_ms=proven_since_ms(case),
        ends_by_ms=times_out_ms(case) if reason in TIMED_REASONS else None,
    )


def _remarks(verdict: Verdict, reason: Reason, case: Case, live: bool | None) -> list[str]:
    """Remarks for readers who compare the verdict with the live tool or with the records."""
    odd = [text for text, applies in ODDITIES.items() if reason in EXPECTED_REASONS and applies(case)]
    stamped = case.span.last_timestamp_ms
    if stamped is not None and clock_ms(stamped) is None:
        odd.append(UNSHOWN.format(ms=stamped))
    difference = None if live is None else DIFFERENCES.get((verdict, live))
    return odd if difference is None else [*odd, difference]


def live_answer(case: Case) -> bool | None:
    """Whether `kafka-transactions.sh find-hanging` would have printed the row; None if that depends on missing
    coordinators.

    The live description of a prepared id lists only partitions that have not acknowledged their marker yet.
    """
    is_listed = case.claim.is_active and case.is_listed
    if is_listed and case.claim.is_prepared:
        is_listed = not is_decision_marker(case)
    return is_printed(
        is_candidate=is_candidate(
            case.span.last_timestamp_ms, case.thresholds.as_of_ms, case.thresholds.max_transaction_timeout_ms
        ),
        is_id_known=case.claim.owns_producer_id,
        is_partition_listed=is_listed,
        are_coordinators_complete=not case.facts.are_coordinators_missing,
    )


def explain(reason: Reason, case: Case, at_ms: int) -> str:
    """The reason as one sentence about this transaction. Ages are as of an instant in epoch ms."""
    text = EXPLANATIONS[reason]
    if reason is Reason.CAPTURE_SKEW:
        text = EXPLANATIONS_BY_SKEW.get(skew_of(case), text)
    return text.format(
        name=coordinator_log(case.claim.coordinator_partition),
        **fields_of(case),
        coordinator_log=coordinator_log(case.claim.coordinator_partition),
        owner=case.claim.transactional_id or f"an owner of producer {case.dossier.producer_id}",
        loss=_loss(case),
        answer=_answer(case),
        missing=_missing(case),
        ahead=_ahead(case),
        leader=_leads(case.copy.led_by),
        coordinator_leader=_leads(case.coordinator_leader),
        role=ROLES[case.copy.role or Role.OTHER],
        coordinator_role=ROLES[case.coordinator_copy.role or Role.OTHER],
        known_until=instant(case.copy.known_until_ms),
        coordinator_known_until=instant(case.coordinators_known_until_ms),
        write_age=_age(last_write_ms(case), at_ms),
        start_age=_age(clock_ms(case.claim.start_ms), at_ms),
        timeout=duration(case.claim.transaction_timeout_ms),
    )


def coordinator_log(coordinator_partition: int | None) -> str:
    """The log of a coordinator in words; not which one, if no transactional id is known for the producer id."""
    return (
        "a coordinator partition"
        if coordinator_partition is None
        else f"{TRANSACTION_STATE_TOPIC}-{coordinator_partition}"
    )


def _leads(leader: str | None) -> str:
    """The broker to copy from, as the end of a sentence."""
    return "its leader is not known" if leader is None else f"broker {leader} leads it: copy its log directory"


def _age(since_ms: int | None, at_ms: int) -> str:
    return "an unknown time" if since_ms is None else duration(at_ms - since_ms)


def _answer(case: Case) -> str:
    """What a broker answered, as the end of a sentence."""
    owners = ", ".join(case.dossier.answered_owners)
    if owners:
        return f"{owners} has producer {case.dossier.producer_id}, which no captured record shows"
    return f"nothing was open below offset {case.copy.answered_stable_offset} at {instant(case.copy.answered_at_ms)}"


def _ahead(case: Case) -> str:
    """The epochs for which a partition refuses a marker, each with the older one of its coordinator, as the end of a
    sentence."""
    epochs = {
        "producer epoch": (case.span.producer_epoch, case.claim.producer_epoch),
        "coordinator epoch": (case.span.coordinator_epoch, case.coordinator.newest_coordinator_epoch),
    }
    seen = [
        f"{name} {here} (its coordinator has {there})"
        for name, (here, there) in epochs.items()
        if is_ahead(here, there)
    ]
    return " and ".join(seen) or f"producer epoch {case.span.producer_epoch}"


def _loss(case: Case) -> str:
    """What is missing in the copy, as the end of a sentence."""
    ended = ended_by(case)
    if ended is not None:
        return f"ends before what a file beside a log shows ({ended.says})"
    if case.gap_offset is not None:
        return f"has a hole before offset {case.gap_offset}"
    if case.copy.tail == UNOPENED:
        return "has files that could not be opened"
    is_below = is_above(case.copy.noted_high_watermark, case.copy.survives_until)
    if case.copy.tail in ENDS_SHORT and not is_below:
        return "could not be read to its end"
    if is_below:
        return "ends below the high watermark"
    if case.copy.ends == End.SHORT:
        return "ends below what a file beside it shows"
    return "is damaged above the transaction's start"


def _missing(case: Case) -> str:
    if not case.facts.are_coordinators_missing and case.facts.count_basis == CountBasis.AMBIGUOUS:
        return "how many partitions __transaction_state has is not known (give --coordinator-partitions)"
    missing, leader = case.facts.missing_coordinators, case.coordinator_leader
    if missing is None:
        return "no partition of __transaction_state was captured"
    named = some_of([*map(str, missing)], _NAMED) or "none"
    assumed = ""
    if case.facts.count_basis == CountBasis.DEFAULT:
        assumed = ", if it has as many as Kafka's default (else give --coordinator-partitions)"
    led = "" if leader is None else f" (led by broker {leader})"
    partition = "partition {} is" if len(missing) == 1 else "partitions {} are"
    return f"__transaction_state {partition.format(named)} missing or incomplete{led}{assumed}"
