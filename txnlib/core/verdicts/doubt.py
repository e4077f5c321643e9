"""Reasons to doubt a verdict: what the copies do not prove, in order of precedence.

A rule gets the reason by the records as an argument, because reasons depend on different absences. Each names its
section of docs/rules/copies.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Final

from txnlib.core.copies import End, Role, highest, lowest
from txnlib.core.instants import clock_ms, latest_ms
from txnlib.core.kafka.constants import LATE_TRANSACTION_BUFFER_MS, is_ahead
from txnlib.core.kafka.coordinator_partition import CountBasis
from txnlib.core.kafka_commands import is_candidate
from txnlib.core.verdicts.cluster_facts import Thresholds
from txnlib.core.verdicts.dossier import Owner
from txnlib.core.verdicts.evidence import Crc, Evidence
from txnlib.core.verdicts.reason import Reason, cluster_version


class LateBy(StrEnum):
    LAST_WRITE = "LAST_WRITE"
    COORDINATOR_START = "COORDINATOR_START"
    BOTH = "BOTH"


#: (the last write is older than the brokers' limit, the coordinator's timeout has passed) -> how it is late.
LATE_BY: Final[Mapping[tuple[bool, bool], LateBy | None]] = {
    (False, False): None,
    (True, False): LateBy.LAST_WRITE,
    (False, True): LateBy.COORDINATOR_START,
    (True, True): LateBy.BOTH,
}


def known_at_ms(evidence: Evidence, thresholds: Thresholds) -> int:
    """The instant at which absence is judged: the earliest of `as_of` and the instants up to which both copies are
    known."""
    known = (evidence.on_partition.known_until_ms, evidence.at_coordinator.known_until_ms)
    return min([thresholds.as_of_ms, *[each for each in known if each is not None]])


def last_write_ms(evidence: Evidence) -> int | None:
    """The time of the last write, as stamped; None if it is out of range."""
    return clock_ms(evidence.on_partition.last_timestamp_ms)


def is_old_enough(evidence: Evidence, thresholds: Thresholds, at_ms: int) -> bool:
    """Whether the last write is older than the timeout at an instant: Kafka's own rule for a hanging transaction.

    If the client's clock is ahead of that instant, or its time is out of range, the age that brokers' clocks prove
    counts instead.
    """
    written = last_write_ms(evidence)
    if written is None or written - at_ms > thresholds.clock_tolerance_ms:
        proven = proven_age_ms(evidence, at_ms)
        return proven is not None and proven > thresholds.max_transaction_timeout_ms
    return is_candidate(written, at_ms, thresholds.max_transaction_timeout_ms)


def proven_since_ms(evidence: Evidence) -> int | None:
    """The oldest instant at which brokers' clocks prove that the transaction was open; None if there is none.

    It is not older than what it is made of, whatever stamps say.
    """
    partition, coordinator = evidence.on_partition, evidence.at_coordinator
    proofs = [partition.stamped_after_ms, partition.first_seen_ms]
    if partition.is_broker_clock:
        proofs.append(partition.first_timestamp_ms)
    if coordinator.is_active and coordinator.is_listed:
        proofs.append(coordinator.transaction_start_ms)
    proven = lowest(map(clock_ms, proofs))
    return proven if proven is None else highest((proven, partition.made_ms))


def proven_age_ms(evidence: Evidence, at_ms: int) -> int | None:
    """How long the transaction has been open at an instant, as brokers' clocks prove; None if they prove nothing."""
    since = proven_since_ms(evidence)
    return None if since is None else max(at_ms - since, 0)


def lateness(evidence: Evidence, thresholds: Thresholds, at_ms: int) -> LateBy | None:
    """The rule by which an expected transaction is late: the brokers' metric, the coordinator's timeout, both, or none.

    Source: docs/rules/transactions.md#late-transactions, docs/rules/transactions.md#timeouts-and-expiration.
    """
    written, ends_by = last_write_ms(evidence), times_out_ms(evidence, thresholds)
    limit = thresholds.transaction_max_timeout_ms + LATE_TRANSACTION_BUFFER_MS
    by_write = written is not None and at_ms - written > limit
    return LATE_BY[by_write, ends_by is not None and at_ms > ends_by]


def times_out_ms(evidence: Evidence, thresholds: Thresholds) -> int | None:
    """By when its coordinator aborts an expected transaction: when its timeout has passed, and a scan has found it."""
    start, timeout = (
        clock_ms(evidence.at_coordinator.transaction_start_ms),
        evidence.at_coordinator.transaction_timeout_ms,
    )
    return None if start is None or timeout is None else start + timeout + thresholds.timeout_scan_interval_ms


# ---- Doubts


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
#: Reasons that mean that the coordinator will end the transaction.
EXPECTED: Final = frozenset({Reason.EXPECTED, Reason.TWO_PHASE_COMMIT})
#: Reasons that mean that the coordinator has decided, and the marker is missing here.
DECIDED: Final = frozenset({Reason.MARKER_PENDING, Reason.MARKER_REFUSED})

Doubt = Callable[[Evidence, Reason, Thresholds], bool]


def _has_loss(evidence: Evidence, _reason: Reason, _thresholds: Thresholds) -> bool:
    """Records missing above the start may have ended the transaction (docs/rules/copies.md#snapshots-and-holes)."""
    partition = evidence.on_partition
    # A hole in the leader's own copy hides no marker that the leader has.
    is_hole = partition.gap_offset is not None and not (partition.role == Role.LEADER and partition.is_current)
    return is_hole or partition.is_tail_lost or partition.end == End.SHORT


def _is_answered_otherwise(evidence: Evidence, reason: Reason, _thresholds: Thresholds) -> bool:
    """Whether a broker's answer of the time of the capture says otherwise (docs/rules/copies.md#answers-of-brokers)."""
    is_owned = reason in NOBODY_ENDS_IT and bool(evidence.at_coordinator.answered_owners)
    return evidence.on_partition.is_answered_closed or is_owned


def _owner_may_be_missing(evidence: Evidence, reason: Reason, _thresholds: Thresholds) -> bool:
    """Whether not every coordinator partition was searched (docs/rules/copies.md#number-of-coordinator-partitions)."""
    coordinator = evidence.at_coordinator
    is_uncounted = coordinator.count_basis is CountBasis.AMBIGUOUS
    return reason is Reason.PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR and (
        coordinator.are_partitions_missing or is_uncounted
    )


def _newer_record_is_lost(evidence: Evidence, _reason: Reason, _thresholds: Thresholds) -> bool:
    """Whether the newest records of the coordinator's log are damaged
    (docs/rules/copies.md#damage-to-the-newest-records)."""
    lost, last = evidence.at_coordinator.damaged_offset, evidence.at_coordinator.record_offset
    return lost is not None and last is not None and last < lost


def _coordinator_is_stale(evidence: Evidence, reason: Reason, _thresholds: Thresholds) -> bool:
    """A living id may have continued since (docs/rules/copies.md#current-copies).

    A producer id that was given up is never used again, so that stays true.
    """
    coordinator = evidence.at_coordinator
    is_stale = coordinator.role == Role.OTHER or coordinator.end == End.SHORT
    if coordinator.has_id:
        # A COMMIT after a decision carries it out. An Ongoing id with a later marker is handled by `_is_skewed`.
        return is_stale or (reason in NOBODY_ENDS_IT and _committed_since(evidence))
    return is_stale and coordinator.owner != Owner.NOBODY and not coordinator.is_record_committed


def _committed_since(evidence: Evidence) -> bool:
    """A COMMIT marker that is younger than the last record of the id: its coordinator wrote more than this copy
    contains.

    A marker with a coordinator epoch that the coordinator never had does not count.
    """
    is_foreign = is_ahead(
        evidence.on_partition.newest_commit_coordinator_epoch, evidence.at_coordinator.newest_coordinator_epoch
    )
    if is_foreign:
        return False
    committed, recorded = latest_ms(evidence.on_partition.newest_commit_ms), clock_ms(evidence.at_coordinator.record_ms)
    return (
        committed is not None and recorded is not None and committed > recorded + evidence.on_partition.clocks_differ_ms
    )


def _is_skewed(evidence: Evidence, reason: Reason, thresholds: Thresholds) -> bool:
    """It may have begun after the coordinator's copy, or ended after its own
    (docs/rules/copies.md#two-capture-instants)."""
    if reason in EXPECTED:
        return _ended_after_coordinator(evidence) or _is_another_transaction(evidence)
    if reason in DECIDED:
        return _ended_after_capture(evidence)
    if reason not in NOBODY_ENDS_IT:
        return False
    if _ended_after_capture(evidence) or not _began_before_capture(evidence, thresholds):
        return True
    return _may_be_written_since(evidence, thresholds)


def _ended_after_coordinator(evidence: Evidence) -> bool:
    """A marker of the producer, on any partition, that is younger than the coordinator's copy: the transaction has
    ended."""
    marked, copied = latest_ms(evidence.on_partition.newest_marker_ms), evidence.at_coordinator.known_until_ms
    return marked is not None and copied is not None and marked > copied - evidence.on_partition.clocks_differ_ms


def _is_another_transaction(evidence: Evidence) -> bool:
    """The transaction in an older copy of the partition need not be the one that the coordinator began after that
    copy."""
    partition, coordinator = evidence.on_partition, evidence.at_coordinator
    known, copied, start = (
        partition.known_until_ms,
        coordinator.known_until_ms,
        latest_ms(coordinator.transaction_start_ms),
    )
    if known is None or copied is None or start is None or copied <= known:
        return known is None and not partition.is_current
    return start > known - partition.clocks_differ_ms


def _ended_after_capture(evidence: Evidence) -> bool:
    """A decision that lists the partition, or its completion, after the partition's copy: only the copy may lack the
    marker."""
    ended, known = latest_ms(evidence.at_coordinator.ended_ms), evidence.on_partition.known_until_ms
    # If it is unknown up to when the copy is complete, it may lack any marker.
    return ended is not None and (known is None or ended > known - _margin(evidence))


def _margin(evidence: Evidence) -> int:
    """How far a coordinator's time may be before an older copy of the partition and still be later.

    If the marker of the newest decision is here, or both copies are of one instant, no clocks need to be compared
    (docs/rules/copies.md#clocks-of-two-brokers).
    """
    partition, coordinator = evidence.on_partition, evidence.at_coordinator
    known, copied, decision = partition.known_until_ms, coordinator.known_until_ms, coordinator.decision
    is_older = known is not None and copied is not None and known < copied
    is_marked = decision is not None and decision.is_marked is True
    return partition.clocks_differ_ms if is_older and not is_marked else 0


def _began_before_capture(evidence: Evidence, thresholds: Thresholds) -> bool:
    """Whether the transaction is known to have begun before the coordinator's log was copied."""
    partition = evidence.on_partition
    if _is_copied_first(evidence):
        return True
    proofs = (partition.stamped_after_ms, partition.checkpointed_ms, partition.first_seen_ms)
    return _precedes_capture(evidence, thresholds, proofs, partition.first_timestamp_ms, partition.stamped_before_ms)


def _may_be_written_since(evidence: Evidence, thresholds: Thresholds) -> bool:
    """Whether it may have been written to after the coordinator's copy: in a transaction that this copy cannot show."""
    partition = evidence.on_partition
    if partition.is_written_after_coordinator:
        return True
    if not partition.is_written_again or _is_copied_first(evidence):
        return False
    proofs = (partition.written_before_ms, partition.written_checkpointed_ms)
    return not _precedes_capture(evidence, thresholds, proofs, partition.last_timestamp_ms, partition.written_after_ms)


def _is_copied_first(evidence: Evidence) -> bool:
    """Whether the partition was not copied after its coordinator's log."""
    partition, copied = evidence.on_partition, evidence.at_coordinator.known_until_ms
    taken = partition.known_until_ms if partition.captured_at_ms is None else partition.captured_at_ms
    return taken is not None and copied is not None and copied >= taken


def _precedes_capture(
    evidence: Evidence,
    thresholds: Thresholds,
    proofs: tuple[int | None, ...],
    written_ms: int | None,
    stamped_ms: int | None,
) -> bool:
    """Whether something was written before the coordinator's log was copied.

    By instants that are not older than it (`proofs`), or by its own time, if the newest stamp before it confirms that
    clock.
    """
    partition, copied = evidence.on_partition, evidence.at_coordinator.known_until_ms
    if copied is None:
        return False
    if any(proof is not None and proof <= copied for proof in map(clock_ms, proofs)):
        return True
    written, stamped = clock_ms(written_ms), clock_ms(stamped_ms)
    if written is None or partition.hides_stamps:
        return False
    if partition.is_broker_clock:
        return max(written, written if stamped is None else stamped) <= copied
    # A client's clock counts only if a broker's timestamp near it confirms it.
    if stamped is None or abs(stamped - written) > thresholds.clock_tolerance_ms:
        return False
    return max(written, stamped) <= copied


def _is_compacted(evidence: Evidence, reason: Reason, _thresholds: Thresholds) -> bool:
    """Missing coordinator records that may be younger than the partition's copy may have ended the transaction.

    Source: docs/rules/copies.md#compaction-between-copies.
    """
    partition, coordinator = evidence.on_partition, evidence.at_coordinator
    compacted = latest_ms(coordinator.compacted_ms)
    if reason not in NOBODY_ENDS_IT or compacted is None or _kept_its_epoch(evidence):
        return False
    return partition.known_until_ms is None or compacted > partition.known_until_ms - _margin(evidence)


def _kept_its_epoch(evidence: Evidence) -> bool:
    """Whether the coordinator still has the epoch of the open records: under transactions v2 every end raises it."""
    coordinator = evidence.at_coordinator
    is_same = coordinator.producer_epoch == evidence.on_partition.producer_epoch
    return (
        coordinator.owns_producer_id
        and is_same
        and (coordinator.transaction_version or 0) >= 2
        and cluster_version(coordinator) == 2
    )


def _is_a_followers(evidence: Evidence, reason: Reason, _thresholds: Thresholds) -> bool:
    """Only the snapshot of a follower shows it, and no coordinator lists it, so the leader need not have it open.

    Source: docs/rules/copies.md#snapshots-and-holes.
    """
    partition = evidence.on_partition
    return partition.is_begin_gone and partition.role == Role.OTHER and reason not in EXPECTED


def _is_undated(evidence: Evidence, reason: Reason, thresholds: Thresholds) -> bool:
    partition, coordinator = evidence.on_partition, evidence.at_coordinator
    is_assumed = partition.is_capture_instant_assumed or coordinator.is_capture_instant_assumed
    return is_assumed and _ages_since(evidence, reason, thresholds)


def _ages_since(evidence: Evidence, reason: Reason, thresholds: Thresholds) -> bool:
    """Whether the transaction would be old at `as_of`, and is not at the instant up to which both copies are known."""
    known, as_of = known_at_ms(evidence, thresholds), thresholds.as_of_ms
    if reason in NOBODY_ENDS_IT:
        return is_old_enough(evidence, thresholds, as_of) and not is_old_enough(evidence, thresholds, known)
    if reason is Reason.EXPECTED:
        return lateness(evidence, thresholds, as_of) is not None and lateness(evidence, thresholds, known) is None
    return False


def _is_metadata_lost(evidence: Evidence, reason: Reason, thresholds: Thresholds) -> bool:
    """Lost records of the metadata log may name other leaders, remove the topic, or change the brokers' limit.

    Source: docs/rules/copies.md#damage-to-the-newest-records.
    """
    if evidence.on_partition.is_leader_hidden or evidence.at_coordinator.is_leader_hidden:
        return True
    if reason is not Reason.EXPECTED or not thresholds.is_limit_hidden:
        return False
    # Only the limit decides whether the last write is too old.
    lowest = replace(thresholds, transaction_max_timeout_ms=0)
    return lateness(evidence, lowest, known_at_ms(evidence, thresholds)) is LateBy.LAST_WRITE


#: (doubt, predicate), in order of precedence.
DOUBTS: Final[tuple[tuple[Reason, Doubt], ...]] = (
    (Reason.CORRUPT_MESSAGE, lambda evidence, _reason, _thresholds: evidence.on_partition.crc is Crc.INVALID),
    (Reason.PARTITION_LOG_INCOMPLETE, _has_loss),
    # No leader epoch shows which copy survived (docs/rules/copies.md#truncated-tails).
    (Reason.COPIES_DISAGREE, lambda evidence, _reason, _thresholds: evidence.on_partition.is_disputed),
    (Reason.BROKER_ANSWERED_OTHERWISE, _is_answered_otherwise),
    (Reason.COORDINATOR_PARTITION_NOT_CAPTURED, _owner_may_be_missing),
    (Reason.COORDINATOR_LOG_DAMAGED, _newer_record_is_lost),
    (Reason.COORDINATOR_COPY_NOT_CURRENT, _coordinator_is_stale),
    (Reason.CAPTURE_SKEW, _is_skewed),
    (Reason.COORDINATOR_RECORDS_COMPACTED, _is_compacted),
    (Reason.PARTITION_COPY_NOT_CURRENT, _is_a_followers),
    # Only the time since a copy would make it old, and there may have been writes since.
    (
        Reason.PARTITION_COPY_NOT_CURRENT,
        lambda evidence, *of: not evidence.on_partition.is_current and _ages_since(evidence, *of),
    ),
    (
        Reason.COORDINATOR_COPY_NOT_CURRENT,
        lambda evidence, *of: not evidence.at_coordinator.is_log_current and _ages_since(evidence, *of),
    ),
    (Reason.CAPTURE_SKEW, _is_undated),
    (Reason.METADATA_LOG_DAMAGED, _is_metadata_lost),
)


def doubt(evidence: Evidence, reason: Reason, thresholds: Thresholds) -> Reason | None:
    """The first doubt that prevents a verdict; None if there is none."""
    return next((named for named, applies in DOUBTS if applies(evidence, reason, thresholds)), None)
