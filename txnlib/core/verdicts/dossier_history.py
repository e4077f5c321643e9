"""The decisions that may include an open transaction, each with its marker.

Source: docs/rules/abort.md#no-commit.
"""

from __future__ import annotations

from collections.abc import Sequence

from txnlib.core.instants import clock_ms, latest_ms
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS, UNKNOWN_CLOCKS_DIFFER_MS
from txnlib.core.verdicts.coordinator_copies import NO_LEADER, Coordinators
from txnlib.core.verdicts.dossier import (
    MOST_MARKERS,
    CapturedCopy,
    Claim,
    ClusterFacts,
    CoordinatorDecision,
    CoordinatorPartition,
    OpenSpan,
    Place,
)
from txnlib.core.verdicts.evidence import Decided, History, PartitionSide
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
