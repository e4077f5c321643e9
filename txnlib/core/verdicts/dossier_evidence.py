"""The evidence on each open transaction, from the facts in its dossier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from txnlib.core.instants import NO_INSTANT_MS, clock_ms, latest_ms
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS, TWO_PHASE_COMMIT_TIMEOUTS, UNKNOWN_CLOCKS_DIFFER_MS, is_from
from txnlib.core.kafka.coordinator_partition import CountBasis
from txnlib.core.kafka.producer_state import V2_FROM
from txnlib.core.kafka.transaction_state import BY_KAFKA_NAME, COMPLETE_STATES, TransactionState
from txnlib.core.verdicts.coordinator_copies import NO_LEADER, Coordinators, Standing, has_leader, uncertainties
from txnlib.core.verdicts.copies import End, LeaderBasis, Role
from txnlib.core.verdicts.dossier import (
    MOST_MARKERS,
    CapturedCopy,
    Claim,
    ClusterFacts,
    CoordinatorDecision,
    CoordinatorPartition,
    Dossier,
    OpenSpan,
    Place,
)
from txnlib.core.verdicts.dossier_partition import partition_side
from txnlib.core.verdicts.evidence import ClusterSide, CoordinatorSide, Decided, Evidence, History, Owner, PartitionSide
from txnlib.core.verdicts.marker_matching import Clocks, Fit, Match, decided_ms, marker_epoch, match_markers, without_repeats


def lists(partitions: Sequence[Place], span: OpenSpan) -> bool:
    """Whether the partition of an open transaction is among some others."""
    return any(place.topic == span.topic and place.partition == span.partition for place in partitions)


def clocks_of(span: OpenSpan, claim: Claim | None, copy: CapturedCopy, facts: ClusterFacts) -> Clocks:
    """The clock of the partition's leader, compared with that of the id's coordinator."""
    if claim is None:
        return Clocks(differ_ms=UNKNOWN_CLOCKS_DIFFER_MS)
    of = facts.coordinator(claim.coordinator_partition)
    leaders = {each.leader for each in (of.copies if of else ()) if each.is_judged}
    if copy.leader not in (None, NO_LEADER) and leaders == {copy.leader}:
        return Clocks()
    estimate = next((each for each in span.clocks if each.coordinator_partition == claim.coordinator_partition), None)
    if estimate is None:
        return Clocks(differ_ms=UNKNOWN_CLOCKS_DIFFER_MS)
    return Clocks(offset_ms=estimate.offset_ms, differ_ms=estimate.differ_ms)


def matches_of(decisions: Sequence[CoordinatorDecision], span: OpenSpan, clocks: Clocks, copy: CapturedCopy) -> tuple[Match, ...]:
    """The decisions that list, or may list, the partition, each with its marker here. Oldest first."""
    here = [each for each in decisions if each.partitions is None or lists(each.partitions, span)]
    ordered = sorted(here, key=lambda each: (each.coordinator_partition, each.last_record_offset))
    return match_markers(ordered, without_repeats(span.markers), clocks, is_begin_known=is_begin_known(span, copy))


def is_begin_known(span: OpenSpan, copy: CapturedCopy) -> bool:
    """Whether the dossier has all markers of the producer that were ever written here."""
    return copy.begins_at_start and len(span.markers) < MOST_MARKERS


def decided_of(match: Match, *, facts: ClusterFacts, began_later: bool = False, began_before: bool = False) -> Decided:
    decision = match.decision
    of = facts.coordinator(decision.coordinator_partition)
    hole = None if of is None else hole_of(of)
    is_followed = of is not None and (hole is None or hole <= decision.first_record_offset)
    newest = of.newest_coordinator_epoch if of is not None else None
    began_epoch, ended_epoch = decision.first_epoch, decision.decided_epoch
    return Decided(
        type=decision.outcome,
        producer_epoch=marker_epoch(decision),
        coordinator_epoch=decision.coordinator_epoch if newest is None else newest,
        decided_ms=decision.said_ms if decision.said_ms is not None else decision.prepared_ms or decision.completed_ms,
        completed_ms=decision.completed_ms,
        transaction_version=decision.transaction_version,
        start_ms=decision.start_ms,
        is_marked=_is_marked(match),
        lists_partition=decision.partitions is not None,
        began_later=began_later,
        began_before=began_before,
        is_own_epoch=ended_epoch is not None and began_epoch is not None and ended_epoch > began_epoch,
        is_followed=is_followed,
        coordinator_partition=decision.coordinator_partition,
        record_offset=decision.last_record_offset,
    )


def _is_marked(match: Match) -> bool | None:
    """Whether the marker of a decision is here; None if its records, or no times, are left to tell."""
    if match.fit is Fit.UNTIMED:
        return None
    if match.marker is not None:
        return True
    return False if match.decision.partitions is not None else None


def history_of(
    span: OpenSpan,
    claim: Claim | None,
    matches: Sequence[Match],
    partition: PartitionSide,
    clocks: Clocks,
    facts: ClusterFacts,
    coordinators: Coordinators,
    *,
    is_complete: bool,
) -> History:
    """The decisions that may include the open records, and whether others may be lost to compaction.

    `is_complete`: the copy has all markers of the producer. Then as many markers as decisions are those of the decisions, whatever
    the clocks say.
    """
    last_own = max((number for number, match in enumerate(matches) if match.fit is Fit.EXACT), default=-1)
    own = matches[last_own].decision if last_own >= 0 else None
    is_whole, because = _is_whole(claim, own, partition, clocks, facts, coordinators)
    if is_whole and is_complete and all(match.marker is not None for match in matches):
        return History(is_whole=True, because=f"{because}; there are as many markers as decisions")
    unmarked = []
    for match in matches[last_own + 1 :]:
        if _ended_before(match.decision, span, partition, clocks):
            continue
        start = clock_ms(match.decision.start_ms)
        after, before = partition.stamped_after_ms, partition.stamped_before_ms
        began_later = (
            start is not None and after is not None and after + min(clocks.differ_ms, CLOCKS_DIFFER_MS) < start + clocks.offset_ms
        )
        began_before = start is not None and before is not None and before - clocks.differ_ms >= start + clocks.offset_ms
        unmarked.append(decided_of(match, facts=facts, began_later=began_later, began_before=began_before))
    return History(is_whole=is_whole, because=because, unmarked=tuple(unmarked))


def _ended_before(decision: CoordinatorDecision, span: OpenSpan, partition: PartitionSide, clocks: Clocks) -> bool:
    """Whether a transaction was decided before the first open batch was written, by epochs or by brokers' clocks."""
    epoch, first = marker_epoch(decision), span.first_epoch
    if epoch is not None and first is not None:
        # Under transactions v2, the next transaction begins with the epoch of the end before it.
        is_v2 = (decision.transaction_version or 0) >= 2
        if first > epoch or (is_v2 and first == epoch):
            return True
    ended = clock_ms(decision.completed_ms if decision.completed_ms is not None else decided_ms(decision))
    before = partition.stamped_before_ms
    return ended is not None and before is not None and before - clocks.differ_ms > ended + clocks.offset_ms


def _is_whole(
    claim: Claim | None,
    own: CoordinatorDecision | None,
    partition: PartitionSide,
    clocks: Clocks,
    facts: ClusterFacts,
    coordinators: Coordinators,
) -> tuple[bool, str]:
    """Whether the coordinators' records since before the first open batch are all there, with the witness in words."""
    wanted = [each for each in facts.coordinators if claim is None or each.partition == claim.coordinator_partition]
    if not wanted or any(not coordinators.standings[each.partition].shows_absence for each in wanted):
        return False, "the coordinators' logs are not whole"
    holes = [each for each in wanted if hole_of(each) is not None]
    names = "every coordinator partition" if claim is None else f"__transaction_state-{claim.coordinator_partition}"
    if not holes:
        return True, f"{names} has every record since offset 0"
    hole = max(offset for each in holes if (offset := hole_of(each)) is not None)
    since = f"compaction removed records of {names} below offset {hole}"
    if (
        claim is not None
        and own is not None
        and own.last_record_offset >= hole
        and own.coordinator_partition == claim.coordinator_partition
    ):
        return True, f"{since}, but none since offset {own.last_record_offset}, a decision whose marker is here before the records"
    if claim is not None and own is not None and own.last_record_offset == claim.record_offset:
        kept = "and compaction keeps the newest record of an id"
        return True, f"{since}, but the last one of {claim.transactional_id} is a decision whose marker is here, {kept}"
    if claim is not None and claim.is_first_assigned and (claim.first_record_offset or 0) >= hole:
        return True, f"{since}, but none since offset {claim.first_record_offset}, which assigned the producer id"
    times = [latest_ms(each.hole_ms) for each in holes]
    newest, before = max((ms for ms in times if ms is not None), default=None), partition.stamped_before_ms
    if newest is not None and before is not None and before - clocks.differ_ms > newest + clocks.offset_ms:
        return True, f"{since}, all of them older than the stamps before the first batch"
    return False, f"{since}, and a decision that includes this partition may have been among them"


def hole_of(coordinator: CoordinatorPartition) -> int | None:
    """The offset below which records of a coordinator's log are missing; None if none are. They may be the newest ones, too."""
    ends = [end for copy in coordinator.copies for end in (copy.survives_until, copy.high_watermark) if end is not None]
    last = -1 if coordinator.last_offset is None else coordinator.last_offset
    return max(ends) if ends and max(ends) > last + 1 else coordinator.hole_offset


# ---- The evidence of one open transaction


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
