"""Reasons to doubt a verdict: what the copies do not prove, in order of precedence.

A rule gets the reason by the records as an argument, because reasons depend on different absences. Each names its
section of docs/rules/copies.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from txnlib.core.copies import End, Role
from txnlib.core.instants import clock_ms, clock_ms_or_latest
from txnlib.core.kafka.constants import is_ahead
from txnlib.core.kafka.coordinator_partition import CountBasis
from txnlib.core.verdicts.age import LateBy, ages_since, known_at_ms, lateness
from txnlib.core.verdicts.capture_skew import is_skewed, is_undated, margin_ms
from txnlib.core.verdicts.case import Case, Crc
from txnlib.core.verdicts.dossier import Owner
from txnlib.core.verdicts.files_beside import ended_by
from txnlib.core.verdicts.reason import EXPECTED_BY_RECORDS, NOBODY_ENDS_IT, Reason, cluster_version

Doubt = Callable[[Case, Reason], bool]


def _has_loss(case: Case, _reason: Reason) -> bool:
    """Whether records are missing above the start that may have ended the transaction
    (docs/rules/copies.md#snapshots-and-holes)."""
    # A hole in the leader's own copy hides no marker that the leader has.
    is_hole = case.gap_offset is not None and not (case.copy.role == Role.LEADER and case.is_current)
    return is_hole or case.is_tail_lost or case.copy.ends == End.SHORT or ended_by(case) is not None


def _is_answered_otherwise(case: Case, reason: Reason) -> bool:
    """Whether a broker answered otherwise when the capture was taken (docs/rules/copies.md#answers-of-brokers)."""
    is_owned = reason in NOBODY_ENDS_IT and bool(case.dossier.answered_owners)
    return case.is_answered_closed or is_owned


def _owner_may_be_missing(case: Case, reason: Reason) -> bool:
    """Whether not every coordinator partition was searched (docs/rules/copies.md#number-of-coordinator-partitions)."""
    is_searched = not case.facts.are_coordinators_missing and case.facts.count_basis != CountBasis.AMBIGUOUS
    return reason is Reason.PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR and not is_searched


def _newer_record_is_lost(case: Case, _reason: Reason) -> bool:
    """Whether the newest records of the coordinator's log are damaged
    (docs/rules/copies.md#damage-to-the-newest-records)."""
    lost, last = case.coordinator.damaged_offset, case.claim.record_offset
    return lost is not None and last is not None and last < lost


def _coordinator_is_stale(case: Case, reason: Reason) -> bool:
    """Whether its id may have gone on after the copy of its coordinator (docs/rules/copies.md#current-copies).

    A producer id that was given up is never used again, so a stale copy is enough for it.
    """
    is_stale = case.coordinator_copy.is_other or case.coordinator_copy.ends == End.SHORT
    if case.claim.has_id:
        # A COMMIT after a decision carries it out. An Ongoing id with a later marker is handled by `is_skewed`.
        return is_stale or (reason in NOBODY_ENDS_IT and _committed_since(case))
    return is_stale and case.claim.owner != Owner.NOBODY and not case.is_record_committed


def _committed_since(case: Case) -> bool:
    """Whether a COMMIT marker is younger than the last record of the id, so that its coordinator wrote more than this
    copy contains.

    A marker with a coordinator epoch that the coordinator never had does not count.
    """
    commit = case.newest_commit
    if commit is None:
        return False
    if is_ahead(commit.newest_unexplained_commit_coordinator_epoch, case.coordinator.newest_coordinator_epoch):
        return False
    committed, recorded = clock_ms_or_latest(commit.newest_unexplained_commit_ms), clock_ms(case.claim.record_ms)
    return committed is not None and recorded is not None and committed > recorded + case.clocks_differ_ms


def _is_compacted(case: Case, reason: Reason) -> bool:
    """Whether a missing coordinator record may be younger than the partition's copy, and may have ended the
    transaction.

    Source: docs/rules/copies.md#compaction-between-copies.
    """
    compacted = clock_ms_or_latest(case.compacted_ms)
    if reason not in NOBODY_ENDS_IT or compacted is None or _kept_its_epoch(case):
        return False
    return case.copy.known_until_ms is None or compacted > case.copy.known_until_ms - margin_ms(case)


def _kept_its_epoch(case: Case) -> bool:
    """Whether the coordinator still has the epoch of the open records: under transactions v2 every end raises it."""
    is_same = case.claim.producer_epoch == case.span.producer_epoch
    return (
        case.claim.owns_producer_id
        and is_same
        and (case.claim.client_transaction_version or 0) >= 2
        and cluster_version(case) == 2
        and not case.is_upgraded
    )


def _is_a_followers(case: Case, reason: Reason) -> bool:
    """Whether only a follower's snapshot shows the transaction, and no coordinator expects it: the leader need not have
    it open.

    Source: docs/rules/copies.md#snapshots-and-holes.
    """
    return case.is_begin_gone and case.copy.is_other and reason not in EXPECTED_BY_RECORDS


def _is_metadata_lost(case: Case, reason: Reason) -> bool:
    """Whether a lost record of the metadata log may name another leader, remove the topic, or change the brokers'
    limit.

    Source: docs/rules/copies.md#damage-to-the-newest-records.
    """
    if case.copy.is_leader_hidden or case.coordinators.is_leader_hidden:
        return True
    if reason is not Reason.EXPECTED or not case.thresholds.is_limit_hidden:
        return False
    # Only the limit decides whether the last write is too old.
    return lateness(case, known_at_ms(case), limit_ms=0) is LateBy.LAST_WRITE


#: (doubt, predicate), in order of precedence.
DOUBTS: Final[tuple[tuple[Reason, Doubt], ...]] = (
    (Reason.CORRUPT_MESSAGE, lambda case, _reason: case.crc is Crc.INVALID),
    (Reason.PARTITION_LOG_INCOMPLETE, _has_loss),
    # No leader epoch shows which copy survived (docs/rules/copies.md#truncated-tails).
    (Reason.COPIES_DISAGREE, lambda case, _reason: case.is_disputed),
    (Reason.BROKER_ANSWERED_OTHERWISE, _is_answered_otherwise),
    (Reason.COORDINATOR_PARTITION_NOT_CAPTURED, _owner_may_be_missing),
    (Reason.COORDINATOR_LOG_DAMAGED, _newer_record_is_lost),
    (Reason.COORDINATOR_COPY_NOT_CURRENT, _coordinator_is_stale),
    (Reason.CAPTURE_SKEW, is_skewed),
    (Reason.COORDINATOR_RECORDS_COMPACTED, _is_compacted),
    (Reason.PARTITION_COPY_NOT_CURRENT, _is_a_followers),
    # Only the time since a copy would make it old, and there may have been writes since.
    (
        Reason.PARTITION_COPY_NOT_CURRENT,
        lambda case, *of: not case.is_current and ages_since(case, *of),
    ),
    (
        Reason.COORDINATOR_COPY_NOT_CURRENT,
        lambda case, *of: not case.is_coordinator_current and ages_since(case, *of),
    ),
    (Reason.CAPTURE_SKEW, is_undated),
    (Reason.METADATA_LOG_DAMAGED, _is_metadata_lost),
)


def doubt(case: Case, reason: Reason) -> Reason | None:
    """The first doubt that prevents a verdict; None if there is none."""
    return next((named for named, applies in DOUBTS if applies(case, reason)), None)
