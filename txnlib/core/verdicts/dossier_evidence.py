"""The evidence on each open transaction, from the facts in its dossier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from txnlib.core.instants import NO_INSTANT_MS, clock_ms
from txnlib.core.kafka.constants import TWO_PHASE_COMMIT_TIMEOUTS
from txnlib.core.kafka.coordinator_partition import CountBasis
from txnlib.core.kafka.kafka_version import is_from
from txnlib.core.kafka.marker_acceptance import V2_FROM
from txnlib.core.kafka.transaction_state import BY_KAFKA_NAME, COMPLETE_STATES, TransactionState
from txnlib.core.verdicts.coordinator_copies import NO_LEADER, Coordinators, Standing, has_leader, uncertainties
from txnlib.core.verdicts.copies import End, LeaderBasis, Role
from txnlib.core.verdicts.dossier import CapturedCopy, Claim, ClusterFacts, Dossier, OpenSpan
from txnlib.core.verdicts.dossier_history import clocks_of, decided_of, history_of, is_begin_known, lists, matches_of
from txnlib.core.verdicts.dossier_partition import partition_side
from txnlib.core.verdicts.evidence import ClusterSide, CoordinatorSide, Decided, Evidence, Owner
from txnlib.core.verdicts.marker_matching import Match

#: Owners of a producer id, the best claim first.
_BY_CLAIM: Final = (Owner.CURRENT, Owner.NEXT, Owner.ROTATED, Owner.EXPIRED)
#: States that a transactional id leaves by writing a marker, or in which its next transaction may include any partition.
_PENDING: Final = frozenset(
    {
        TransactionState.ONGOING,
        TransactionState.PREPARE_COMMIT,
        TransactionState.PREPARE_ABORT,
        TransactionState.PREPARE_EPOCH_FENCE,
    }
)
_COMPLETE: Final = frozenset(state.kafka_name for state in COMPLETE_STATES)


def evidence_of(dossier: Dossier, span: OpenSpan, facts: ClusterFacts, coordinators: Coordinators) -> Evidence:
    """The evidence on one open transaction of a dossier."""
    claim = best_claim(dossier.claims, span)
    copy = span.judged_copy
    clocks = clocks_of(span, claim, copy, facts)
    of_claim = facts.coordinator(claim.coordinator_partition) if claim else None
    matches = matches_of(dossier.decisions, span, clocks, copy)
    coordinator = _coordinator_side(dossier, span, claim, matches, facts, coordinators)
    partition = partition_side(dossier, span, copy, claim, clocks, matches, coordinator, facts)
    cluster = ClusterSide(
        elections=span.elections,
        coordinator_elections=of_claim.elections if of_claim else (),
        fenced=facts.fenced,
        lowered=facts.lowered,
        is_confirmed=facts.is_metadata_confirmed,
        hides_elections=facts.hides_elections,
        block=span.block,
        is_never_allocated=dossier.is_never_allocated,
    )
    is_complete = is_begin_known(span, copy)
    history = history_of(span, claim, matches, partition, clocks, facts, coordinators, is_complete=is_complete)
    return Evidence(partition, coordinator, cluster, history)


# ---- The owner: docs/rules/copies.md#owners-of-a-producer-id


def best_claim(claims: Sequence[Claim], span: OpenSpan) -> Claim | None:
    """The transactional id of an open transaction; None if none ever had its producer id.

    If several ids claim it, one that lists the partition wins, then one whose current producer id it is. An id whose last record
    the current copy of its coordinator's log no longer has, has expired: compaction keeps the newest record of every other id.
    """
    known = [
        replace(claim, owner=Owner.EXPIRED.value, state=None, partitions=()) if claim.is_superseded else claim for claim in claims
    ]
    return min(known, key=lambda claim: _preference(claim, span), default=None)


def _preference(claim: Claim, span: OpenSpan) -> tuple[bool, int, int, str]:
    return (
        not lists(claim.partitions, span),
        _BY_CLAIM.index(Owner(claim.owner)),
        -(claim.last_record_offset or 0),
        claim.transactional_id,
    )


# ---- The coordinator


#: Stands in for the record of a producer id that nobody owns.
_NO_CLAIM: Final = Claim(transactional_id="", coordinator_partition=-1, owner=Owner.NOBODY.value)


def _coordinator_side(
    dossier: Dossier,
    span: OpenSpan,
    claim: Claim | None,
    matches: Sequence[Match],
    facts: ClusterFacts,
    coordinators: Coordinators,
) -> CoordinatorSide:
    standing = None if claim is None else coordinators.standings.get(claim.coordinator_partition)
    best = coordinators.worst if claim is None else (standing.best if standing else None)
    numbers = coordinators.standings.keys() if claim is None else {each.coordinator_partition for each in dossier.claims}
    wanted = [coordinators.standings[number] for number in sorted(numbers) if number in coordinators.standings]
    record = _NO_CLAIM if claim is None else claim
    known_until = None if standing is None else standing.known_until_ms
    missing = coordinators.missing
    decided = [decided_of(match, facts=facts) for match in matches]
    newest = decided[-1] if decided else None
    last_marked = max((n for n, d in enumerate(decided) if d.is_marked), default=-1)
    due = next((d for d in reversed(decided[last_marked + 1 :]) if d.type == "COMMIT"), None)
    of_claim = facts.coordinator(claim.coordinator_partition) if claim else None
    holes = [each.hole_ms for each in facts.coordinators if each.hole_ms is not None]
    state = None if claim is None or claim.state is None else BY_KAFKA_NAME[claim.state]
    high_watermark = None if best is None else best.high_watermark
    captures = [each.best.captured_at_ms if each.best else None for each in wanted]
    side = CoordinatorSide(
        owner=Owner.NOBODY if claim is None else Owner(claim.owner),
        transactional_id=None if claim is None else claim.transactional_id,
        coordinator_partition=None if claim is None else claim.coordinator_partition,
        state=state,
        record_offset=record.record_offset,
        producer_epoch=record.producer_epoch,
        transaction_timeout_ms=record.transaction_timeout_ms,
        transaction_start_ms=record.start_ms,
        last_update_ms=record.last_update_ms,
        record_ms=record.record_ms,
        record_coordinator_epoch=record.record_coordinator_epoch,
        newest_coordinator_epoch=None if of_claim is None else of_claim.newest_coordinator_epoch,
        is_listed=lists(record.partitions, span),
        transaction_version=record.client_transaction_version,
        known_until_ms=coordinators.known_until_ms if claim is None else known_until,
        is_capture_instant_assumed=standing.is_assumed if standing else True,
        damaged_offset=None if standing is None else standing.damaged_offset,
        missing_partitions=missing,
        leader=_leader_to_copy(best, None if claim else missing, coordinators),
        has_leader=has_leader(best) if claim is not None else None,
        is_leader_hidden=any(each.best and each.best.leader_basis == LeaderBasis.METADATA_LOG_DAMAGED for each in wanted),
        decision=newest,
        commit_due=due,
        ended_ms=_ended_ms(matches, span, standing),
        role=Role(best.role) if best and best.role else Role.OTHER,
        end=End(best.ends) if best and best.ends else End.TORN,
        is_record_committed=claim is None
        or claim.record_offset is None
        or high_watermark is None
        or claim.record_offset < high_watermark,
        count_basis=CountBasis(facts.count_basis),
        compacted_ms=max(holes, default=None) if claim is None else claim.hole_ms,
        cluster_transaction_version=facts.transaction_version,
        uncertain_copies=tuple(text for each in wanted for text in uncertainties(each)) or _none_captured(wanted),
        pending_ids=_pending_ids(dossier.claims),
        answered_owners=dossier.answered_owners,
        earliest_copy_ms=None if None in captures or not captures else min(ms for ms in captures if ms is not None),
    )
    return replace(side, may_be_v2=_may_be_v2(side, decided, facts))


def _none_captured(wanted: Sequence[Standing]) -> tuple[str, ...]:
    return () if wanted else ("no partition of __transaction_state was captured",)


def _leader_to_copy(best: CapturedCopy | None, missing: tuple[int, ...] | None, coordinators: Coordinators) -> str | None:
    """The brokers to copy coordinators from: for a producer id without an owner, those that lead what is missing."""
    bests = [coordinators.standings[number].best for number in missing or ()]
    leaders = sorted({each.leader for each in bests if each is not None and each.leader not in (None, NO_LEADER)} - {None}, key=str)
    if leaders:
        return ", ".join(map(str, leaders))
    return None if best is None or best.leader == NO_LEADER else best.leader


def _pending_ids(claims: Sequence[Claim]) -> tuple[str, ...]:
    """The ids that own or owned the producer id and may still include the partition, in words."""
    found = []
    for claim in claims:
        state = None if claim.state is None or claim.is_superseded else BY_KAFKA_NAME[claim.state]
        if state in _PENDING:
            two_phase = " in a two-phase commit" if claim.transaction_timeout_ms in TWO_PHASE_COMMIT_TIMEOUTS else ""
            found.append(f"{claim.transactional_id} is {state.kafka_name if state else ''}{two_phase}")
        elif claim.owner == Owner.NEXT.value:
            found.append(f"{claim.transactional_id} will use the producer id next")
    return tuple(found)


def _may_be_v2(coordinator: CoordinatorSide, decided: Sequence[Decided], facts: ClusterFacts) -> bool:
    """Whether the records may be of transactions v2: a record or the cluster's feature says so, or nothing excludes it."""
    versions = [coordinator.transaction_version, *(each.transaction_version for each in decided), facts.transaction_version]
    if any((version or 0) >= 2 for version in versions):
        return True
    return facts.transaction_version is None and is_from(V2_FROM, facts.kafka_version) is not False


def _ended_ms(matches: Sequence[Match], span: OpenSpan, standing: Standing | None) -> int | None:
    """The latest time at which a decided transaction that lists the partition ended.

    If the time of an end is unknown, it may be as late as its copy, unless its marker is here.
    """
    decisions = [match.decision for match in matches]
    ended = max((ms for each in decisions for ms in (each.prepared_ms, each.completed_ms) if ms is not None), default=None)
    is_untimed = any(each.completed_ms is None and (each.state in _COMPLETE or each.prepared_ms is None) for each in decisions)
    last_prepared = max((each.prepared_ms for each in decisions if each.prepared_ms is not None), default=None)
    marked = clock_ms(span.markers[-1].ms) if span.markers else None
    if is_untimed and not (marked is not None and last_prepared is not None and marked >= last_prepared):
        captured = NO_INSTANT_MS if standing is None or standing.captured_ms is None else standing.captured_ms
        return captured if ended is None else max(ended, captured)
    return ended
