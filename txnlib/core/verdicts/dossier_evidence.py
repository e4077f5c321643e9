"""The evidence on each open transaction, from the facts in its dossier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from txnlib.core.copies import NO_LEADER, CoverageRow, End, LeaderBasis, Role, highest, is_above, lowest
from txnlib.core.instants import NO_INSTANT_MS, clock_ms
from txnlib.core.kafka.constants import (
    CLOCKS_DIFFER_MS,
    MAX_SEQUENCE,
    TWO_PHASE_COMMIT_TIMEOUTS,
    UNKNOWN_CLOCKS_DIFFER_MS,
)
from txnlib.core.kafka.coordinator_partition import CountBasis
from txnlib.core.kafka.transaction_state import BY_KAFKA_NAME, COMPLETE_STATES, TransactionState
from txnlib.core.rows import row_of
from txnlib.core.verdicts.cluster_facts import ClusterFacts, uncertainties
from txnlib.core.verdicts.dossier import CheckedBatch, Claim, Dossier, EpochStamps, MarkerElsewhere, OpenSpan, Owner
from txnlib.core.verdicts.earlier_audits import is_same_transaction
from txnlib.core.verdicts.evidence import ClusterSide, CoordinatorSide, Crc, Evidence, PartitionSide
from txnlib.core.verdicts.history import began_later_by_epoch, decided_of, history_of
from txnlib.core.verdicts.no_commit import proof_carried
from txnlib.core.verdicts.past import Past, latest_bound_ms, lists, newest_ms

#: States that a transactional id leaves by writing a marker, or in which its next transaction may include any
#: partition.
_PENDING: Final = frozenset(
    {
        TransactionState.ONGOING,
        TransactionState.PREPARE_COMMIT,
        TransactionState.PREPARE_ABORT,
        TransactionState.PREPARE_EPOCH_FENCE,
    }
)
_COMPLETE: Final = frozenset(state.kafka_name for state in COMPLETE_STATES)


def evidence_of(dossier: Dossier, span: OpenSpan, facts: ClusterFacts) -> Evidence:
    """The evidence on one open transaction of a dossier."""
    past = Past(dossier=dossier, span=span, facts=facts)
    coordinator = _coordinator_side(past)
    partition = _partition_side(past, coordinator)
    led = past.coordinator.elections
    cluster = row_of(
        ClusterSide, span, facts, dossier, coordinator_elections=led, is_confirmed=facts.is_metadata_confirmed
    )
    history = history_of(past)
    return Evidence(partition, coordinator, cluster, history, proof_carried(past, history))


# ---- The coordinator


def _coordinator_side(past: Past) -> CoordinatorSide:
    dossier, span, claim, facts, of_claim = past.dossier, past.span, past.claim, past.facts, past.coordinator
    best = facts.worst_coordinator if claim.is_nobodys else of_claim.best
    numbers = {each.coordinator_partition for each in dossier.claims}
    wanted = sorted(
        (each for each in facts.coordinators if claim.is_nobodys or each.partition in numbers),
        key=lambda each: each.partition,
    )
    last_offset = claim.record_offset
    missing = facts.missing_coordinators
    decided = [decided_of(match, past) for match in past.matches if not began_later_by_epoch(match.decision, span)]
    last_marked = max((n for n, d in enumerate(decided) if d.is_marked), default=-1)
    captures = [each.best.captured_at_ms if each.best else None for each in wanted]
    high_watermark = None if best is None else best.high_watermark
    return row_of(
        CoordinatorSide,
        claim,
        of_claim,
        dossier,
        state=None if claim.state is None else BY_KAFKA_NAME[claim.state],
        transaction_start_ms=claim.start_ms,
        is_listed=lists(claim.partitions, span),
        transaction_version=claim.client_transaction_version,
        known_until_ms=facts.coordinators_known_until_ms if claim.is_nobodys else of_claim.known_until_ms,
        is_capture_instant_assumed=of_claim.is_instant_assumed,
        missing_partitions=missing,
        leader=_leader_to_copy(best, missing if claim.is_nobodys else None, facts),
        has_leader=best.has_leader if best and not claim.is_nobodys else None,
        is_leader_hidden=any(
            each.best and each.best.leader_basis == LeaderBasis.METADATA_LOG_DAMAGED for each in wanted
        ),
        decision=decided[-1] if decided else None,
        commit_due=next(
            (d for d in reversed(decided[last_marked + 1 :]) if d.type == "COMMIT" and not d.may_be_deleted), None
        ),
        ended_ms=_ended_ms(past),
        role=(best and best.role) or Role.OTHER,
        end=(best and best.ends) or End.TORN,
        is_record_committed=last_offset is None or high_watermark is None or last_offset < high_watermark,
        count_basis=CountBasis(facts.count_basis),
        compacted_ms=highest(each.hole_ms for each in facts.coordinators) if claim.is_nobodys else claim.hole_ms,
        cluster_transaction_version=facts.transaction_version,
        uncertain_copies=tuple(text for each in wanted for text in uncertainties(each))
        or (() if wanted else (_NONE_CAPTURED,)),
        pending_ids=_pending_ids(dossier.claims),
        earliest_copy_ms=None if None in captures else lowest(captures),
        may_be_v2=not facts.is_v2_excluded(begun_after_ms(past.stamps)),
        unclean_elections=tuple(one for each in wanted for one in each.elections if one.is_unclean),
    )


_NONE_CAPTURED: Final = "no partition of __transaction_state was captured"


def _leader_to_copy(best: CoverageRow | None, missing: tuple[int, ...] | None, facts: ClusterFacts) -> str | None:
    """The brokers to copy coordinators from: for a producer id without an owner, those that lead what is missing."""
    bests = [each.best for each in facts.coordinators if each.best and each.partition in (missing or ())]
    if leaders := sorted({each.leader for each in bests if each.leader not in (None, NO_LEADER)} - {None}, key=str):
        return ", ".join(map(str, leaders))
    return None if best is None or best.leader == NO_LEADER else best.leader


def _pending_ids(claims: Sequence[Claim]) -> tuple[str, ...]:
    """The ids that own or owned the producer id and may still include the partition, in words."""
    found = []
    for claim in claims:
        # What an id does under another producer id does not count, once it gave this one up.
        is_given_up = claim.owner == Owner.ROTATED
        is_pending = not is_given_up and claim.state is not None and BY_KAFKA_NAME[claim.state] in _PENDING
        if is_pending and claim.is_superseded:
            # Only ids between transactions expire: records that show its end are missing.
            found.append(
                f"{claim.transactional_id} was {claim.state} in an older copy of its log, and no record shows its end"
            )
        elif is_pending:
            two_phase = " in a two-phase commit" if claim.transaction_timeout_ms in TWO_PHASE_COMMIT_TIMEOUTS else ""
            found.append(f"{claim.transactional_id} is {claim.state}{two_phase}")
        elif claim.owner == Owner.NEXT:
            found.append(f"{claim.transactional_id} will use the producer id next")
    return tuple(found)


def _ended_ms(past: Past) -> int | None:
    """The latest time at which a decided transaction that lists the partition ended.

    By the coordinator's clock, or by the clock of the partition's leader, whichever says later: one of them may be
    wrong. If the time of an end is unknown, it may be as late as its copy, unless its marker is here.
    """
    span, decisions = past.span, [match.decision for match in past.matches]
    behind = [max(past.clocks.today(each).offset_ms, 0) for each in decisions]
    ended = highest(
        ms + late
        for each, late in zip(decisions, behind, strict=True)
        for ms in (each.prepared_ms, each.completed_ms)
        if ms is not None
    )
    is_untimed = any(
        each.completed_ms is None and (each.state in _COMPLETE or each.prepared_ms is None) for each in decisions
    )
    last_prepared = highest(each.prepared_ms for each in decisions)
    marked = clock_ms(span.markers[-1].ms) if span.markers else None
    if is_untimed and not (marked is not None and last_prepared is not None and marked >= last_prepared):
        captured = past.coordinator.captured_ms
        return highest((ended, NO_INSTANT_MS if captured is None else captured))
    return ended


def begun_after_ms(stamps: Sequence[EpochStamps]) -> int | None:
    """An instant before the first batch, whichever of the clocks around it is wrong."""
    before = newest_ms(each.before_ms for each in stamps)
    return None if before is None else lowest((before, *(each.behind_ms for each in stamps)))


# ---- The partition


#: Findings about partitions of `__transaction_state` that cast doubt on every record in them.
OF_WHOLE_COORDINATOR: Final = ("COORDINATOR_EPOCH_WENT_BACK", "COPIES_DISAGREE")
#: Those that mean that records of it may be lost: a producer id without an owner may have had one.
OF_LOST_RECORDS: Final = (*OF_WHOLE_COORDINATOR, "CORRUPT_MESSAGE", "LIVE_OWNER_UNKNOWN")


def _partition_side(past: Past, coordinator: CoordinatorSide) -> PartitionSide:
    dossier, span, claim, stamps = past.dossier, past.span, past.claim, past.stamps
    today = past.clocks.difference(claim.coordinator_partition, None, None)
    marker = span.markers[-1] if span.markers else None
    copy, first = span.judged_copy, span.first_check
    closed = highest((marker.offset if marker else None, span.closed_offset))
    floor = past.stamped_before_ms
    truncated = [each for each in span.markers_elsewhere if each.is_truncated]
    elsewhere = [each for each in span.markers_elsewhere if not each.is_truncated]
    living = span.living_copies
    last_offset = span.start_offset if span.last_offset is None else span.last_offset
    before_last = newest_ms(each.before_last_ms for each in stamps)
    floor_last = newest_ms([before_last, floor])
    copied = coordinator.earliest_copy_ms if coordinator.earliest_copy_ms is not None else coordinator.known_until_ms
    last_write = clock_ms(span.last_timestamp_ms)
    newest_write = newest_ms([before_last, last_write])
    snapshot_from = copy.read_from_offset if (copy.read_from_offset or 0) > (copy.log_start_offset or 0) else None
    is_begin_gone = first is None and span.start_offset < max(copy.log_start_offset or 0, copy.read_from_offset or 0)
    commit = max(
        span.siblings,
        key=lambda each: each.newest_unexplained_commit_ms if each.newest_unexplained_commit_ms is not None else -1,
        default=None,
    )
    seen = [each.copied_ms for each in span.earlier if is_same_transaction(each, copy, past.first_batch_crc)]
    begun = span.last_timestamp_ms if span.first_timestamp_ms is None else span.first_timestamp_ms
    led = first.partition_leader_epoch if first else None
    begun_ms = None if begun is None else begun - past.clocks.ahead_ms(led)
    return row_of(
        PartitionSide,
        span,
        copy,
        producer_id=dossier.producer_id,
        # A time by a broker's clock that contradicts the stamps around it proves nothing.
        first_timestamp_ms=latest_bound_ms([begun_ms], floor) if span.is_broker_clock else begun,
        is_start_exact=span.is_start_exact and (is_begin_gone or is_start_proven(span.checks, copy, closed)),
        made_ms=highest(
            (
                clock_ms(claim.created_ms) if claim.is_first_assigned else None,
                span.epoch_since_ms,
                span.block.allocated_at_ms if span.block is not None else None,
                *(each.at_ms for each in past.elections if led == each.leader_epoch),
            )
        ),
        stamped_before_ms=past.stamped_before_ms,
        begun_after_ms=begun_after_ms(stamps),
        stamped_after_ms=past.stamped_after_ms,
        hides_stamps=snapshot_from is not None and floor is None,
        checkpointed_ms=copy.checkpointed_at_ms if is_above(copy.high_watermark, span.start_offset) else None,
        gap_offset=copy.gap_offset if is_above(copy.gap_offset, span.start_offset) else None,
        captured_at_ms=_captured_by(copy),
        is_capture_instant_assumed=copy.is_instant_assumed is not False,
        role=copy.role or Role.OTHER,
        end=copy.ends or End.TORN,
        is_leader_hidden=copy.leader_basis == LeaderBasis.METADATA_LOG_DAMAGED,
        leader=None if copy.leader == NO_LEADER else copy.leader,
        is_tail_lost=is_above(copy.damaged_offset, span.start_offset),
        is_disputed="COPIES_DISAGREE" in span.alarms and copy.role != Role.LEADER,
        is_start_committed=None if copy.high_watermark is None else span.start_offset < copy.high_watermark,
        crc=_crc(span.checks),
        first_seen_ms=latest_bound_ms(seen, floor),
        newest_marker_ms=highest(each.newest_unexplained_ms for each in span.siblings),
        newest_commit_ms=commit.newest_unexplained_commit_ms if commit else None,
        newest_commit_coordinator_epoch=commit.newest_unexplained_commit_coordinator_epoch if commit else None,
        clocks_differ_ms=max(CLOCKS_DIFFER_MS, today.differ_ms) if past.matches else CLOCKS_DIFFER_MS,
        written_after_ms=before_last,
        written_checkpointed_ms=copy.checkpointed_at_ms if is_above(copy.high_watermark, last_offset) else None,
        is_written_again=last_offset > span.start_offset,
        written_before_ms=latest_bound_ms((each.behind_last_ms for each in stamps), floor_last),
        is_written_after_coordinator=_is_between(newest_write, copied, _captured_by(copy)),
        is_stable_offset_raised=not is_above(copy.answered_stable_offset, copy.log_start_offset or 0),
        first_leader_epoch=led,
        newest_leader_epoch=past.newest_leader_epoch,
        is_begin_gone=is_begin_gone,
        first_batch_crc=past.first_batch_crc,
        truncated_markers=_named(truncated),
        ended_elsewhere=_named(elsewhere),
        truncated_from=lowest(each.truncated_from for each in living),
        truncated_until=highest(
            each.end_offset - 1 for each in living if each.truncated_from is not None and each.end_offset is not None
        ),
        alarms=_alarms(past),
        marker_offset=None if marker is None else marker.offset,
        marker_type=None if marker is None else marker.type,
        marker_epoch=None if marker is None else marker.epoch,
        marker_coordinator_epoch=None if marker is None else marker.coordinator_epoch,
        marker_ms=None if marker is None else marker.ms,
    )


def _named(markers: Sequence[MarkerElsewhere]) -> tuple[str, ...]:
    return tuple(f"{each.type} marker at offset {each.offset} of broker {each.broker}" for each in markers)


def _is_between(written: int | None, copied: int | None, captured: int | None) -> bool:
    """Whether something was written after the coordinator's copy. A time after the partition's own copy is a client's
    invention."""
    if written is None or copied is None or captured is None or captured <= copied:
        return False
    return copied + CLOCKS_DIFFER_MS < written <= captured + UNKNOWN_CLOCKS_DIFFER_MS


def _captured_by(copy: CoverageRow) -> int | None:
    """The latest instant at which a copy can have been taken: it is not older than its newest broker stamp."""
    stamp = clock_ms(copy.newest_stamp_ms)
    if copy.captured_at_ms is None or stamp is None or stamp <= copy.captured_at_ms + CLOCKS_DIFFER_MS:
        return copy.captured_at_ms
    return stamp


def _crc(checks: Sequence[CheckedBatch]) -> Crc:
    if any(check.is_crc_valid is False for check in checks):
        return Crc.INVALID
    return Crc.VALID if checks and all(check.is_crc_valid for check in checks) else Crc.NOT_CHECKED


def is_start_proven(checks: Sequence[CheckedBatch], copy: CoverageRow, since_offset: int | None = None) -> bool:
    """Whether no batch of the producer can be missing below its first one. `since_offset`: of the marker before it, or
    of what a snapshot shows to be closed.

    The sequences of a producer are consecutive within an epoch, starting at 0. If they are not, or if there are none
    and the copy has holes or damage, an earlier batch of the transaction may be missing.
    """
    of = {check.place: check for check in sorted(checks, key=lambda check: check.place)}
    before, first = of.get("before"), of.get("first")
    # A hole below the marker before it, or below the snapshot, says nothing about the first batch.
    floor = highest((since_offset, copy.read_from_offset, copy.log_start_offset)) or 0
    has_holes = any(is_above(each, floor) for each in (copy.gap_offset, copy.damaged_offset, copy.first_offset))
    if since_offset is not None and not has_holes:
        return True
    if first is None or first.base_sequence is None:
        return not has_holes
    if before is None:
        # If the log begins late, its snapshot shows what came before.
        begins_late = (copy.read_from_offset or copy.log_start_offset or 0) > 0
        return begins_late or first.base_sequence == 0
    if before.producer_epoch != first.producer_epoch:
        return first.base_sequence == 0
    if before.last_sequence is None:
        return not has_holes
    return first.base_sequence == (0 if before.last_sequence == MAX_SEQUENCE else before.last_sequence + 1)


def committed_siblings(span: OpenSpan) -> tuple[str, ...]:
    """Names of the other partitions with a COMMIT marker since the open records may have begun."""
    before = newest_ms(each.before_ms for each in span.stamps)
    since = None if before is None else before - UNKNOWN_CLOCKS_DIFFER_MS
    return tuple(
        sorted(
            f"{each.topic}-{each.partition}"
            for each in span.siblings
            if each.is_committed and (since is None or each.committed_ms is None or each.committed_ms >= since)
        )
    )


def _alarms(past: Past) -> tuple[str, ...]:
    """Names of findings that forbid an abort: about the partition, the producer id, its ids, and the coordinators it
    rests on."""
    wanted = {each.coordinator_partition for each in past.dossier.claims}
    of_coordinators = [
        name
        for each in past.facts.coordinators
        for name in each.alarms
        if (each.partition in wanted and name in OF_WHOLE_COORDINATOR)
        or (past.claim.is_nobodys and name in OF_LOST_RECORDS)
    ]
    return tuple(sorted({*past.span.alarms, *past.dossier.alarms, *of_coordinators}))
