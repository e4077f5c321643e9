"""Probable causes: known ones with their signatures, ranked, each with what in the records speaks for it.

A signature is a predicate on the case; a cause is named only if it matches. Versions are those with the fault: if
the brokers are newer according to the capture, the cause is UNLIKELY, because the fault may date from before an
upgrade. Source: the issues that the causes name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from txnlib.core.finding import Alarm
from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import (
    EXHAUSTED_EPOCH,
    GROUP_METADATA_TOPIC,
    is_ahead,
    is_from,
)
from txnlib.core.kafka_commands import MS_PER_MINUTE
from txnlib.core.verdicts.case import Case
from txnlib.core.verdicts.cause_name import Cause, CauseName
from txnlib.core.verdicts.evidence_records import (
    events,
    is_after_completion,
    is_coordinator_leaderless,
    is_leaderless,
    shown,
)
from txnlib.core.verdicts.no_commit import Answer
from txnlib.core.verdicts.reason import Reason, fields_of


class Likelihood(IntEnum):
    #: Records of the cluster's metadata log show it.
    PROVEN = 0
    LIKELY = 1
    POSSIBLE = 2
    UNLIKELY = 3


@dataclass(frozen=True, slots=True)
class CauseRule:
    """A known cause. `{…}` in `shows` are fields of the case. `given`: what the worlds must say. `fixed_in`: first
    version of the brokers without the fault."""

    cause: str
    likelihood: Likelihood
    shows: str
    applies: Callable[[Case], bool] = lambda case: True
    fixed_in: tuple[int, int] | None = None
    given: Callable[[Answer], bool] = lambda answer: True


def _has_marker(case: Case) -> bool:
    return case.span.marker is not None


def _is_same_epoch(case: Case) -> bool:
    """Data at the marker's epoch: transactions v0 and v1 do not fence it."""
    return case.span.marker is not None and case.span.producer_epoch == case.span.marker.epoch


def _is_v2(case: Case) -> bool:
    return (case.claim.client_transaction_version or 0) >= 2


def _lacks_marker(case: Case) -> bool:
    """Its coordinator decided a transaction with this partition, and the marker is missing here."""
    decision = case.decision
    if decision is not None and decision.is_marked is False and decision.lists_partition:
        return True
    return case.commit_due is not None or Alarm.MARKER_MISSING in case.alarms


def _is_in_time_at_coordinator(case: Case) -> bool:
    """By the coordinator's clock, the transaction is younger than the last write claims."""
    start, written = clock_ms(case.claim.start_ms), clock_ms(case.span.last_timestamp_ms)
    return start is not None and written is not None and written < start - 5 * MS_PER_MINUTE


def _has(name: str) -> Callable[[Case], bool]:
    """Whether the metadata log shows an event of `evidence_records.events`."""
    return lambda case: events(case)[name] is not None


def _lost_by(name: str, *, is_proven: bool) -> Callable[[Case], bool]:
    """Whether the marker is missing, and an event explains that: for certain, if all had acknowledged it before, or
    else."""

    def applies(case: Case) -> bool:
        event = events(case)[name]
        return _lacks_marker(case) and event is not None and is_after_completion(event, case) is is_proven

    return applies


def _may_be_lost_by_election(case: Case) -> bool:
    found = events(case)
    return _lacks_marker(case) and found["unclean_election"] is None and found["undated_unclean_election"] is not None


def _dropped_without_leader(case: Case) -> bool:
    """The partition had no leader at some time from the decision to its completion."""
    none = events(case)["leaderless"]
    decided = case.commit_due or case.decision
    completed = None if decided is None else decided.of.completed_ms
    if not _lacks_marker(case) or none is None or completed is None:
        return False
    return none.at_ms is None or none.at_ms <= completed


_PROVEN, _L, _P = Likelihood.PROVEN, Likelihood.LIKELY, Likelihood.POSSIBLE

_AFTER_MARKER: Final = "the open batches are after the {marker_type} marker at offset {marker_offset}"
_NO_RECORD: Final = "no record of any coordinator names producer {producer_id}"
_EPOCHS: Final = "epoch {producer_epoch} in the partition, {coordinator_producer_epoch} at the coordinator"
_RECORD: Final = "{transactional_id} at {record_place} of __transaction_state-{coordinator_partition}"

_LATE_AT_MARKERS_EPOCH: Final = CauseRule(
    CauseName.LATE_PRODUCE, _L, _AFTER_MARKER + ", with its epoch {marker_epoch}", _is_same_epoch
)
_OFFSETS: Final = CauseRule(
    CauseName.OFFSET_COMMIT_RACED,
    _L,
    "the partition belongs to __consumer_offsets; the last marker of this producer there: {marker_offset}",
    lambda case: case.span.topic == GROUP_METADATA_TOPIC,
    (3, 7),
)
_UNCLEAN_SHOWS: Final = "{unclean_election}{lost_offsets}; before, {transactional_id} was decided ({decision})"
#: Causes of a missing marker that the metadata log shows.
_SHOWN_LOSSES: Final = (
    CauseRule(CauseName.UNCLEAN_ELECTION, _PROVEN, _UNCLEAN_SHOWS, _lost_by("unclean_election", is_proven=True)),
    CauseRule(CauseName.UNCLEAN_ELECTION, _L, _UNCLEAN_SHOWS, _lost_by("unclean_election", is_proven=False)),
    CauseRule(
        CauseName.UNDATED_ELECTION,
        _L,
        "{undated_unclean_election}; {transactional_id} was decided ({decision}), at an unknown time before or after",
        _may_be_lost_by_election,
    ),
    CauseRule(
        CauseName.TOPIC_CREATED_AGAIN,
        _PROVEN,
        "{topic_created}; before, {transactional_id} was decided ({decision})",
        _lost_by("topic_created", is_proven=True),
    ),
    CauseRule(
        CauseName.DROPPED_WITHOUT_LEADER,
        _L,
        "{leaderless}; {transactional_id} was decided ({decision}) and completed without this marker",
        _dropped_without_leader,
    ),
)
_GAP_BEHIND: Final = "records are missing behind it, before offset {gap_offset}"
_CLEANED: Final = (
    CauseRule(
        CauseName.MARKER_CLEANED,
        _L,
        _GAP_BEHIND + "; {transactional_id} was decided ({decision})",
        lambda case: case.gap_offset is not None and _lacks_marker(case),
    ),
    CauseRule(
        CauseName.MARKER_CLEANED,
        _L,
        _GAP_BEHIND + "; {unmarked}",
        lambda case: case.gap_offset is not None and not _lacks_marker(case),
        given=lambda answer: answer.unmarked is not None,
    ),
    CauseRule(
        CauseName.MARKER_CLEANED,
        _P,
        _GAP_BEHIND + ": a marker may be among them",
        lambda case: case.gap_offset is not None and not _lacks_marker(case),
        given=lambda answer: answer.unmarked is None,
    ),
)
_LOWERED: Final = CauseRule(CauseName.TRANSACTION_VERSION_LOWERED, _L, "{lowered_feature}", _has("lowered_feature"))
_LOST_MARKER: Final = CauseRule(
    CauseName.MARKER_LOST,
    _L,
    "__transaction_state-{coordinator_partition} has the decision ({decision}) of {transactional_id}; no marker follows"
    " it here",
    lambda case: (
        _lacks_marker(case) and case.gap_offset is None and not any(rule.applies(case) for rule in _SHOWN_LOSSES)
    ),
)


def _not_added(likelihood: Likelihood, given: Callable[[Answer], bool]) -> CauseRule:
    return CauseRule(
        CauseName.PARTITION_NOT_ADDED,
        likelihood,
        "no current record of {transactional_id} lists {topic}-{partition}, and the partition has no marker of the"
        " producer",
        lambda case: not _has_marker(case) and not _lacks_marker(case),
        given=given,
    )


def _may_be_compacted(case: Case) -> bool:
    """Whether a record may have been removed from a coordinator's log: no copy shows one that has all records."""
    logs = case.facts.coordinators
    return not logs or any(each.hole_end is not None for each in logs)


_NO_LEADER: Final = CauseRule(CauseName.NO_LEADER, _PROVEN, "{leaderless}", is_leaderless)
_NO_COORDINATOR: Final = CauseRule(
    CauseName.NO_COORDINATOR, _PROVEN, "{coordinator_leaderless}", is_coordinator_leaderless
)
#: Nothing is written there: no marker, no end of a transaction.
_TOO_FEW: Final = CauseRule(
    CauseName.TOO_FEW_IN_SYNC, _PROVEN, "{too_few_in_sync}", lambda case: case.place.too_few_in_sync is not None
)
_COORDINATOR_TOO_FEW: Final = CauseRule(
    CauseName.COORDINATOR_TOO_FEW_IN_SYNC,
    _PROVEN,
    "{coordinator_too_few_in_sync}",
    lambda case: case.coordinator.too_few_in_sync is not None,
)
_FENCED_COORDINATOR: Final = CauseRule(
    CauseName.COORDINATOR_FENCED,
    _L,
    "{fenced_coordinator}",
    lambda case: events(case)["fenced_coordinator"] is not None and not is_coordinator_leaderless(case),
)
_OLD_TIMESTAMPS: Final = CauseRule(
    CauseName.OLD_TIMES,
    _L,
    "the timestamp of the last write is older than the transaction's start at the coordinator",
    _is_in_time_at_coordinator,
)

#: Reason -> candidates, most likely first.
CAUSES: Final[Mapping[Reason, tuple[CauseRule, ...]]] = {
    Reason.WRITTEN_AFTER_MARKER: (
        *_SHOWN_LOSSES,
        _LOWERED,
        _OFFSETS,
        _LATE_AT_MARKERS_EPOCH,
        *_CLEANED,
        CauseRule(
            CauseName.ENDED_EARLY,
            _P,
            "transactions v2, and the marker at offset {marker_offset} has the epoch of the data, {marker_epoch}",
            lambda case: _is_v2(case) and _is_same_epoch(case),
            (4, 2),
        ),
        CauseRule(CauseName.OTHER_CLIENT_CONTINUED, _P, _AFTER_MARKER, _has_marker),
    ),
    Reason.PARTITION_NOT_IN_TRANSACTION: (
        *_SHOWN_LOSSES,
        _LOWERED,
        _OFFSETS,
        _LOST_MARKER,
        CauseRule(
            CauseName.COORDINATOR_LOST_RECORDS, _L, "{lost_decisions}", given=lambda answer: bool(answer.lost_decisions)
        ),
        _not_added(_L, lambda answer: answer.no_commit.holds and answer.unmarked is None),
        _not_added(_P, lambda answer: not answer.no_commit.holds and answer.unmarked is None),
        CauseRule(
            CauseName.EPOCH_MADE_UP,
            _P,
            "epoch {producer_epoch} in the partition, and no record of {transactional_id} has it",
            lambda case: is_ahead(case.span.producer_epoch, case.claim.highest_epoch),
            fixed_in=(4, 0),
        ),
        _LATE_AT_MARKERS_EPOCH,
        *_CLEANED,
        CauseRule(
            CauseName.PARTITION_NOT_ADDED_TO_NEWEST,
            _P,
            "the producer's last marker here, at offset {marker_offset}, ended an earlier transaction",
            lambda case: _has_marker(case) and not _lacks_marker(case),
        ),
    ),
    Reason.PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR: (
        CauseRule(
            CauseName.FOREIGN_PRODUCER_ID,
            _PROVEN,
            "producer {producer_id} is beyond every block of producer ids that the cluster handed out",
            lambda case: case.dossier.is_never_allocated,
        ),
        *_CLEANED,
        CauseRule(
            CauseName.COORDINATOR_LOST_RECORDS,
            _P,
            _NO_RECORD + ", although a coordinator wrote its marker at offset {marker_offset}",
            _has_marker,
        ),
        CauseRule(CauseName.ID_EXPIRED, _P, _NO_RECORD, _may_be_compacted),
        CauseRule(
            CauseName.RECORDS_LOST_OR_ID_MADE_UP,
            _P,
            _NO_RECORD + ", and the partition has no marker of it",
            lambda case: not _has_marker(case),
        ),
    ),
    Reason.TRANSACTIONAL_ID_EXPIRED: (
        *_SHOWN_LOSSES,
        _LOST_MARKER,
        CauseRule(CauseName.HUNG_UNTIL_EXPIRY, _L, "tombstone of " + _RECORD),
        *_CLEANED,
        CauseRule(CauseName.LATE_PRODUCE, _P, _AFTER_MARKER, _is_same_epoch),
    ),
    Reason.PRODUCER_ID_ROTATED: (
        *_SHOWN_LOSSES,
        _LOST_MARKER,
        CauseRule(
            CauseName.LATE_WITH_FORMER_PRODUCER_ID,
            _L,
            "{transactional_id} had producer {producer_id} before, not now",
            lambda case: not _lacks_marker(case),
        ),
        *_CLEANED,
    ),
    Reason.EPOCH_AHEAD_OF_COORDINATOR: (
        _LOWERED,
        CauseRule(
            CauseName.COORDINATOR_UNCLEAN_ELECTION, _PROVEN, "{coordinator_unclean}", _has("coordinator_unclean")
        ),
        CauseRule(CauseName.EPOCH_MADE_UP, _L, _EPOCHS, fixed_in=(4, 0)),
        CauseRule(CauseName.COORDINATOR_LOST_NEWEST_RECORDS, _P, _EPOCHS),
    ),
    Reason.MARKER_REFUSED: (
        CauseRule(
            CauseName.EPOCH_AHEAD,
            _L,
            "producer epoch {producer_epoch} in the partition, {coordinator_producer_epoch} in the Prepare record",
            lambda case: is_ahead(case.span.producer_epoch, case.claim.producer_epoch),
        ),
        CauseRule(
            CauseName.COORDINATOR_EPOCH_AHEAD,
            _L,
            "coordinator epoch {coordinator_epoch} in the partition, {newest_coordinator_epoch} is the newest in "
            "__transaction_state-{coordinator_partition}",
            lambda case: is_ahead(case.span.coordinator_epoch, case.coordinator.newest_coordinator_epoch),
        ),
    ),
    Reason.MARKER_PENDING: (_NO_LEADER, _NO_COORDINATOR, _TOO_FEW, _COORDINATOR_TOO_FEW, _FENCED_COORDINATOR),
    Reason.MARKER_OVERDUE: (
        _NO_LEADER,
        _NO_COORDINATOR,
        _TOO_FEW,
        _COORDINATOR_TOO_FEW,
        _FENCED_COORDINATOR,
        CauseRule(
            CauseName.LEADER_UNREACHABLE,
            _P,
            "no marker since the decision at {record_place}",
            lambda case: not is_leaderless(case) and case.place.too_few_in_sync is None,
        ),
        CauseRule(
            CauseName.FORGOTTEN,
            _P,
            "no marker since the decision at {record_place} of __transaction_state-{coordinator_partition}",
            fixed_in=(3, 8),
        ),
        CauseRule(
            CauseName.REPEATED_MARKER_REFUSED,
            _P,
            "transactions v2; decided at {record_place} of __transaction_state-{coordinator_partition}",
            _is_v2,
        ),
    ),
    Reason.TIMEOUT_NOT_PASSED: (_OLD_TIMESTAMPS,),
    Reason.OVERDUE: (
        _NO_COORDINATOR,
        _COORDINATOR_TOO_FEW,
        _FENCED_COORDINATOR,
        _OLD_TIMESTAMPS,
        CauseRule(
            CauseName.EPOCH_EXHAUSTED,
            _L,
            "epoch {coordinator_producer_epoch} at the coordinator",
            lambda case: (case.claim.producer_epoch or 0) > EXHAUSTED_EPOCH,
        ),
        CauseRule(CauseName.TIMEOUT_SCAN_STOPPED, _P, _RECORD, lambda case: case.coordinator.too_few_in_sync is None),
    ),
}


def causes(reason: Reason, case: Case, answer: Answer) -> tuple[Cause, ...]:
    """The candidates whose signature matches, most likely first; empty if the transaction needs no explanation.

    `answer`: of the worlds. None of them contradicts a candidate.
    """
    decision, unmarked = case.decision, answer.unmarked
    removed = f"offsets {case.truncated_from} to {case.truncated_until}"
    fields = {
        **fields_of(case),
        **shown(case),
        "lost_offsets": (
            "" if case.truncated_from is None else f"; another copy still has the {removed} that it removed"
        ),
        "decision": "not known" if decision is None else decision.of.outcome,
        "too_few_in_sync": "" if case.place.too_few_in_sync is None else case.place.too_few_in_sync.says,
        "coordinator_too_few_in_sync": (
            "" if case.coordinator.too_few_in_sync is None else case.coordinator.too_few_in_sync.says
        ),
        "lost_decisions": answer.lost_decisions or "",
        "unmarked": "" if unmarked is None else f"{unmarked.place} decided {unmarked.outcome} for this partition, too",
    }
    ranked = []
    for rule in CAUSES.get(reason, ()):
        if rule.given(answer) and rule.applies(case):
            shows, likelihood = rule.shows.format(**fields), rule.likelihood
            if rule.fixed_in is not None and is_from(rule.fixed_in, case.kafka_version) is True:
                likelihood, shows = Likelihood.UNLIKELY, f"{shows}; but the capture says Kafka {case.kafka_version}"
            ranked.append((likelihood, Cause(rule.cause.format(**fields), likelihood.name, shows)))
    return tuple(cause for _, cause in sorted(ranked, key=lambda pair: pair[0]))
