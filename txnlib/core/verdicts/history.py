"""Decisions and markers of a producer, matched one to one and in order.

A producer without transactions v2 cannot begin a transaction before the last marker of the one before is written, so
decisions and markers have the same order, and a marker that serves one decision serves no other. Kafka:
`TransactionCoordinator.endTransaction` answers CONCURRENT_TRANSACTIONS until then. Source:
docs/rules/copies.md#order-of-decisions-and-markers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from txnlib.core.copies import NO_LEADER, highest, lowest
from txnlib.core.instants import clock_ms, latest_ms
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS, UNKNOWN_CLOCKS_DIFFER_MS, is_ahead
from txnlib.core.kafka.marker_acceptance import record_epochs
from txnlib.core.kafka.transaction_log import TopicPartition
from txnlib.core.rows import row_of
from txnlib.core.verdicts.cluster_facts import ClusterFacts
from txnlib.core.verdicts.dossier import MOST_MARKERS, Claim, CoordinatorDecision, OpenSpan, WrittenMarker
from txnlib.core.verdicts.evidence import Decided, History, PartitionSide

#: How far the clocks of two brokers that NTP keeps may be apart without a doubt about the order of a decision and its
#: marker.
MARKER_SLACK_MS: Final = 20


class Fit(IntEnum):
    """How well a marker fits a decision."""

    #: Another type or epoch, an older coordinator, or a time at which the decision's marker cannot have been written.
    NO = 0
    #: No clock shows the time of the marker or of the decision.
    UNTIMED = 1
    #: Their times allow it only because the two clocks may differ.
    WITHIN_TOLERANCE = 2
    #: Written from the decision on, and not after the completion.
    EXACT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """The clock of the partition's leader less that of the coordinator, and how far they may still differ. One clock:
    0, 0."""

    offset_ms: int = 0
    differ_ms: int = 0


def decided_ms(decision: CoordinatorDecision) -> int | None:
    """When a transaction was decided, by its coordinator's clock; None if no clock shows it."""
    return clock_ms(decision.said_ms if decision.said_ms is not None else decision.prepared_ms)


def marker_epoch(decision: CoordinatorDecision) -> int | None:
    """The producer epoch of a decision's markers. If only its last record is left, that record has it."""
    if decision.decided_epoch is not None:
        return decision.decided_epoch
    return decision.first_epoch if decision.first_record_offset == decision.last_record_offset else None


def fit(decision: CoordinatorDecision, marker: WrittenMarker, clocks: Clocks) -> Fit:
    """How well a marker fits a decision. A field that a dump does not print always fits."""
    epoch = marker_epoch(decision)
    if marker.type not in (None, decision.outcome) or (epoch is not None and marker.epoch != epoch):
        return Fit.NO
    if is_ahead(decision.coordinator_epoch, marker.coordinator_epoch):
        return Fit.NO
    at, since, until = clock_ms(marker.ms), decided_ms(decision), clock_ms(decision.completed_ms)
    if since is None:
        since = clock_ms(decision.start_ms)
    if at is None or since is None:
        return Fit.UNTIMED
    at -= clocks.offset_ms
    slack = MARKER_SLACK_MS if clocks.differ_ms else 0
    if since <= at + slack and (until is None or at <= until + slack):
        return Fit.EXACT
    is_near = at >= since - clocks.differ_ms and (until is None or at <= until + clocks.differ_ms)
    return Fit.WITHIN_TOLERANCE if is_near else Fit.NO


def without_repeats(
    markers: Sequence[WrittenMarker], decisions: Sequence[CoordinatorDecision] = (), clocks: Clocks = Clocks()
) -> list[WrittenMarker]:
    """The markers, without those that were sent again: same type and epoch, and nothing to end.

    A later coordinator sends all again. The same one repeats a marker whose answer it did not get, before it completes
    the transaction. Kafka: `TransactionMarkerRequestCompletionHandler.onComplete`, which puts it into the queue again.
    """
    kept: list[WrittenMarker] = []
    for marker in markers:
        last = kept[-1] if kept else None
        is_repeat = (
            last is not None
            and (last.type, last.epoch, None) == (marker.type, marker.epoch, marker.first_offset)
            and (
                is_ahead(marker.coordinator_epoch, last.coordinator_epoch)
                or _are_of_one(last, marker, decisions, clocks)
            )
        )
        if not is_repeat:
            kept.append(marker)
    return kept


def _are_of_one(
    left: WrittenMarker, right: WrittenMarker, decisions: Sequence[CoordinatorDecision], clocks: Clocks
) -> bool:
    """Whether two markers were both written between one decision and its completion."""
    completed = (each for each in decisions if each.completed_ms is not None)
    return any(fit(each, left, clocks) is fit(each, right, clocks) is Fit.EXACT for each in completed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A decision with its own marker; without one, no marker is left for it."""

    decision: CoordinatorDecision
    marker: WrittenMarker | None = None
    fit: Fit = Fit.NO


def match_markers(
    decisions: Sequence[CoordinatorDecision], markers: Sequence[WrittenMarker], clocks: Clocks, *, is_begin_known: bool
) -> tuple[Match, ...]:
    """Each decision with its marker: as many as possible, one to one and in order, and of these the best fitting.

    What is still open then gets the earliest marker for the earliest decision. If the beginning of the log is gone
    (`is_begin_known`), its markers are gone, too, and the latest marker goes to the latest decision.
    """
    fits = [[fit(decision, marker, clocks) for marker in markers] for decision in decisions]
    if is_begin_known:
        pairs = _pairs(fits)
    else:
        flipped = _pairs([row[::-1] for row in fits[::-1]])
        pairs = {len(decisions) - 1 - d: len(markers) - 1 - m for d, m in flipped.items()}
    return tuple(
        (
            Match(decision=decision, marker=markers[pairs[d]], fit=fits[d][pairs[d]])
            if d in pairs
            else Match(decision=decision)
        )
        for d, decision in enumerate(decisions)
    )


def _pairs(fits: Sequence[Sequence[Fit]]) -> dict[int, int]:
    """Indices of rows -> of columns: the longest order-preserving matching, of these the best, of these the
    earliest."""
    height, width = len(fits), len(fits[0]) if fits else 0
    #: (pairs, sum of fits) of the best matching of the rows and columns from here on.
    best = [[(0, 0)] * (width + 1) for _ in range(height + 1)]
    for d in reversed(range(height)):
        for m in reversed(range(width)):
            options = [best[d + 1][m], best[d][m + 1]]
            if fits[d][m] is not Fit.NO:
                pairs, total = best[d + 1][m + 1]
                options.append((pairs + 1, total + fits[d][m]))
            best[d][m] = max(options)
    found, d, m = {}, 0, 0
    while d < height and m < width:
        pairs, total = best[d + 1][m + 1]
        if fits[d][m] is not Fit.NO and (pairs + 1, total + fits[d][m]) == best[d][m]:
            found[d] = m
            d, m = d + 1, m + 1
        elif best[d][m + 1] == best[d][m]:
            m += 1
        else:
            d += 1
    return found


# ---- The decisions about the partition of one open transaction


def lists(partitions: Sequence[TopicPartition], span: OpenSpan) -> bool:
    """Whether the partition of an open transaction is among some others."""
    return TopicPartition(span.topic, span.partition) in partitions


def clocks_of(span: OpenSpan, claim: Claim | None, facts: ClusterFacts) -> Clocks:
    """The clock of the partition's leader, compared with that of the id's coordinator."""
    if claim is None:
        return Clocks(differ_ms=UNKNOWN_CLOCKS_DIFFER_MS)
    of = facts.coordinator(claim.coordinator_partition)
    leaders = {each.leader for each in (of.copies if of else ()) if each.is_judged}
    leader = span.judged_copy.leader
    if leader not in (None, NO_LEADER) and leaders == {leader}:
        return Clocks()
    estimate = next((each for each in span.clocks if each.coordinator_partition == claim.coordinator_partition), None)
    if estimate is None:
        return Clocks(differ_ms=UNKNOWN_CLOCKS_DIFFER_MS)
    return Clocks(offset_ms=estimate.offset_ms, differ_ms=estimate.differ_ms)


def matches_of(decisions: Sequence[CoordinatorDecision], span: OpenSpan, clocks: Clocks) -> tuple[Match, ...]:
    """The decisions that list, or may list, the partition, each with its marker here. Oldest first."""
    here = [each for each in decisions if each.partitions is None or lists(each.partitions, span)]
    ordered = sorted(here, key=lambda each: (each.coordinator_partition, each.last_record_offset))
    return match_markers(
        ordered, without_repeats(span.markers, ordered, clocks), clocks, is_begin_known=is_begin_known(span)
    )


def is_begin_known(span: OpenSpan) -> bool:
    """Whether the dossier has all markers of the producer that were ever written here."""
    return span.judged_copy.begins_at_start and len(span.markers) < MOST_MARKERS


def decided_of(
    match: Match,
    span: OpenSpan,
    clocks: Clocks,
    facts: ClusterFacts,
    *,
    began_later: bool = False,
    began_before: bool = False,
) -> Decided:
    decision, may_be_deleted = match.decision, _may_be_deleted(match, span, clocks)
    of = facts.coordinator(decision.coordinator_partition)
    hole = None if of is None else of.hole_end
    is_followed = of is not None and (hole is None or hole <= decision.first_record_offset)
    newest = of.newest_coordinator_epoch if of is not None else None
    began_epoch, ended_epoch = decision.first_epoch, decision.decided_epoch
    return row_of(
        Decided,
        decision,
        type=decision.outcome,
        producer_epoch=marker_epoch(decision),
        coordinator_epoch=decision.coordinator_epoch if newest is None else newest,
        decided_ms=decision.said_ms if decision.said_ms is not None else decision.prepared_ms or decision.completed_ms,
        is_marked=None if may_be_deleted else _is_marked(match),
        may_be_deleted=may_be_deleted,
        lists_partition=decision.partitions is not None,
        began_later=began_later,
        began_before=began_before,
        # The transactions of other clients share an epoch, also where the coordinator raises it to abort one of them.
        is_own_epoch=ended_epoch is not None
        and began_epoch is not None
        and ended_epoch > began_epoch
        and (decision.client_transaction_version or 0) >= 2,
        is_followed=is_followed,
        record_offset=decision.last_record_offset,
    )


def _may_be_deleted(match: Match, span: OpenSpan, clocks: Clocks) -> bool:
    """Whether the marker of a decision may have been in a part of the log that retention or compaction removed.

    It was not, if an older stamp is left before the first batch, or if every stamp that is left is older than the
    decision.
    """
    copy = span.judged_copy
    begins = (copy.begins_at_start and not copy.first_offset) or any(each.before_ms is not None for each in span.stamps)
    if match.marker is not None or (begins and copy.gap_offset is None):
        return False
    oldest, ended = lowest(each.behind_ms for each in span.stamps), decided_ms(match.decision)
    return oldest is None or ended is None or ended + clocks.offset_ms <= oldest + clocks.differ_ms


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
    *,
    has_all_decisions: bool,
) -> History:
    """The decisions that may include the open records, and whether others may be lost to compaction.

    If the copy has all markers of the producer, and as many as there are decisions, then each decision has its marker,
    whatever the clocks say: of two decisions and two markers, the first marker is of the first decision. Only a marker
    that ended nothing is not counted in this way: it may be an older marker that was sent again, unless its time shows
    that it is of a decision. `has_all_decisions`: whether the dossier has every decision of the producer.
    """
    before = surely_before_ms(span, partition, clocks)
    last_own = max((number for number, match in enumerate(matches) if match.fit is Fit.EXACT), default=-1)
    own = matches[last_own].decision if last_own >= 0 else None
    is_whole, because = _is_whole(claim, own, before, facts)
    if own is None and not has_all_decisions:
        is_whole, because = (
            False,
            f"only the newest {MOST_MARKERS} decisions of its producer were compared with its markers",
        )
    if is_whole and is_begin_known(span) and all(map(_has_its_own, matches)):
        return History(is_whole=True, because=f"{because}; there are as many markers as decisions")
    unmarked = []
    for number, match in enumerate(matches):
        if number <= last_own and not _may_have_lost_it(match, span, clocks):
            continue
        if began_later_by_epoch(match.decision, span) or _ended_before(match.decision, span, before):
            continue
        start = clock_ms(match.decision.start_ms)
        after = partition.stamped_after_ms
        began_later = (
            start is not None
            and after is not None
            and after + min(clocks.differ_ms, CLOCKS_DIFFER_MS) < start + clocks.offset_ms
        )
        began_before = start is not None and before is not None and before >= start
        unmarked.append(decided_of(match, span, clocks, facts, began_later=began_later, began_before=began_before))
    return History(is_whole=is_whole, because=because, unmarked=tuple(unmarked))


def _may_have_lost_it(match: Match, span: OpenSpan, clocks: Clocks) -> bool:
    """Whether a later decision may have got the marker of this COMMIT, by clocks that differ, so that its own was
    lost."""
    return match.decision.outcome == "COMMIT" and match.marker is None and not _may_be_deleted(match, span, clocks)


def _has_its_own(match: Match) -> bool:
    """Whether a marker is matched that cannot be a repeat of another decision's."""
    return match.marker is not None and (match.marker.first_offset is not None or match.fit is Fit.EXACT)


def began_later_by_epoch(decision: CoordinatorDecision, span: OpenSpan) -> bool:
    """Whether none of the open records is of a transaction: its first record would have raised the epoch of the
    producer here.

    Its records were lost with a former leader, or never arrived.
    """
    epoch = marker_epoch(decision)
    return (
        epoch is not None
        and span.producer_epoch < record_epochs(epoch, decision.outcome, decision.transaction_version)[0]
    )


def surely_before_ms(span: OpenSpan, partition: PartitionSide, clocks: Clocks) -> int | None:
    """An instant before the first open batch, by the coordinator's clock: a stamp, less what the two clocks may differ.

    `clocks` is about today's leader. The clocks of former leaders were compared with no other.
    """
    today, former = clocks.offset_ms + clocks.differ_ms, UNKNOWN_CLOCKS_DIFFER_MS
    return highest(
        ms - (today if each.leader_epoch == partition.newest_leader_epoch else former)
        for each in span.stamps
        if (ms := clock_ms(each.before_ms)) is not None
    )


def _ended_before(decision: CoordinatorDecision, span: OpenSpan, before: int | None) -> bool:
    """Whether a transaction was decided before the first open batch was written, by epochs or by brokers' clocks
    (`before`)."""
    epoch, first = marker_epoch(decision), span.first_epoch
    if (
        epoch is not None
        and first is not None
        and first > record_epochs(epoch, decision.outcome, decision.transaction_version)[1]
    ):
        return True
    ended = clock_ms(decision.completed_ms if decision.completed_ms is not None else decided_ms(decision))
    return ended is not None and before is not None and before > ended


def _is_whole(
    claim: Claim | None, own: CoordinatorDecision | None, before: int | None, facts: ClusterFacts
) -> tuple[bool, str]:
    """Whether the coordinators' records since before the first open batch are all there, with the witness in words."""
    wanted = [each for each in facts.coordinators if claim is None or each.partition == claim.coordinator_partition]
    if not wanted or any(not each.shows_absence for each in wanted):
        return False, "the coordinators' logs are not whole"
    holes = [each for each in wanted if each.hole_end is not None]
    names = "every coordinator partition" if claim is None else f"__transaction_state-{claim.coordinator_partition}"
    if not holes and claim is None:
        # A coordinator writes a record before it gives an id its producer id. So this log is not the one that had it.
        return False, "no coordinator has a record of the producer id, though compaction removed none: a log was lost"
    if not holes:
        return True, f"{names} has every record since offset 0"
    hole = max(offset for each in holes if (offset := each.hole_end) is not None)
    since = f"compaction removed records of {names} below offset {hole}"
    if (
        claim is not None
        and own is not None
        and own.last_record_offset >= hole
        and own.coordinator_partition == claim.coordinator_partition
    ):
        return (
            True,
            (
                f"{since}, but none since offset {own.last_record_offset}, a decision whose marker is here before the"
                " records"
            ),
        )
    if claim is not None and own is not None and own.last_record_offset == claim.record_offset:
        kept = "and compaction keeps the newest record of an id"
        return True, f"{since}, but the last one of {claim.transactional_id} is a decision whose marker is here, {kept}"
    if claim is not None and claim.is_first_assigned and (claim.first_record_offset or 0) >= hole:
        return True, f"{since}, but none since offset {claim.first_record_offset}, which assigned the producer id"
    newest = highest(latest_ms(each.hole_ms) for each in holes)
    if newest is not None and before is not None and before > newest:
        return True, f"{since}, all of them older than the stamps before the first batch"
    return False, f"{since}, and a decision that includes this partition may have been among them"
