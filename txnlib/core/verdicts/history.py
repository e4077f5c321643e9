"""The decisions that may include an open transaction.

Source: docs/rules/abort.md#no-commit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from txnlib.core.copies import highest, lowest
from txnlib.core.instants import clock_ms, latest_ms
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS, TRANSACTION_STATE_TOPIC, is_ahead
from txnlib.core.kafka.marker_acceptance import record_epochs
from txnlib.core.kafka.transaction_log import TopicPartition
from txnlib.core.kafka.transaction_state import TransactionState
from txnlib.core.rows import row_of
from txnlib.core.verdicts.clocks import MARKER_SLACK_MS, Clocks
from txnlib.core.verdicts.cluster_facts import ClusterFacts
from txnlib.core.verdicts.dossier import MOST_MARKERS, Claim, CoordinatorDecision, Dossier, OpenSpan, WrittenMarker
from txnlib.core.verdicts.earlier_audits import EarlierAudit, is_same_transaction
from txnlib.core.verdicts.evidence import Decided, History, Owner, PartitionSide
from txnlib.core.verdicts.match import (
    Fit,
    Match,
    decided_ms,
    fit,
    has_own_epoch,
    marker_epoch,
    match_markers,
    without_repeats,
)
from txnlib.core.verdicts.reason import Reason


def lists(partitions: Sequence[TopicPartition], span: OpenSpan) -> bool:
    """Whether the partition of an open transaction is among some others."""
    return TopicPartition(span.topic, span.partition) in partitions


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


# ---- The history of one open transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What is known of the past of an open transaction."""

    span: OpenSpan
    claim: Claim | None
    decisions: Sequence[CoordinatorDecision]
    matches: Sequence[Match]
    clocks: Clocks
    facts: ClusterFacts
    #: The newest epoch of the producer on any partition.
    newest_epoch: int | None
    #: Whether every decision about the producer id since it was assigned is in the dossier.
    has_all_decisions: bool

    def before_ms(self, coordinator_epoch: int | None) -> int | None:
        """An instant before the first batch, by the clock of the coordinator in one of its leader epochs."""
        return surely_before_ms(self.span, self.claim, self.clocks, coordinator_epoch)

    def is_sure(self, match: Match) -> bool:
        """Whether the marker of a match can be of no other decision, shown or removed by compaction."""
        return match.marker is not None and (match.is_certain or (match.is_only and self.has_all_decisions))

    @property
    def own(self) -> Match | None:
        """The newest decision whose marker is surely here."""
        return next((match for match in reversed(self.matches) if self.is_sure(match)), None)


# ---- A decision, as far as it concerns the open records


def decided_of(match: Match, past: Past, *, began_later: bool = False, began_before: bool = False) -> Decided:
    decision, may_be_deleted = match.decision, _may_be_deleted(match, past.span, past.clocks)
    of = past.facts.coordinator(decision.coordinator_partition)
    hole = None if of is None else of.hole_end
    newest = None if of is None else of.newest_coordinator_epoch
    return row_of(
        Decided,
        decision,
        type=decision.outcome,
        producer_epoch=marker_epoch(decision),
        coordinator_epoch=decision.coordinator_epoch if newest is None else newest,
        decided_ms=decision.said_ms if decision.said_ms is not None else decision.prepared_ms or decision.completed_ms,
        is_marked=None if may_be_deleted else _is_marked(match),
        is_surely_marked=past.is_sure(match),
        may_be_deleted=may_be_deleted,
        lists_partition=decision.partitions is not None,
        began_later=began_later,
        began_before=began_before,
        is_own_epoch=has_own_epoch(decision),
        is_followed=of is not None and (hole is None or hole <= decision.first_record_offset),
        record_offset=decision.last_record_offset,
    )


def _may_be_deleted(match: Match, span: OpenSpan, clocks: Clocks) -> bool:
    """Whether the marker of a decision may have been in a part of the log that retention or compaction removed.

    It was not, if an older stamp is left before the first batch, or if every stamp that is left is older than the
    decision.
    """
    copy, decision = span.judged_copy, match.decision
    begins = (copy.begins_at_start and not copy.first_offset) or any(each.before_ms is not None for each in span.stamps)
    if match.marker is not None or (begins and copy.gap_offset is None):
        return False
    oldest, ended = lowest(each.behind_ms for each in span.stamps), decided_ms(decision)
    differ = clocks.today(decision)
    return oldest is None or ended is None or ended + differ.offset_ms <= oldest + differ.differ_ms


def _is_marked(match: Match) -> bool | None:
    """Whether the marker of a decision is here; None if its records, or no times, are left to tell."""
    if match.fit is Fit.UNTIMED:
        return None
    if match.marker is not None:
        return True
    return False if match.decision.partitions is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """Whether the coordinators' records since before the first open batch are all there, and why."""

    holds: bool
    because: str
    #: What is older than this decision, or than this instant of its coordinator's clock, may be missing.
    since: Match | None = None
    since_ms: int | None = None


def past_of(dossier: Dossier, span: OpenSpan, claim: Claim | None, clocks: Clocks, facts: ClusterFacts) -> Past:
    return Past(
        span=span,
        claim=claim,
        decisions=dossier.decisions,
        matches=matches_of(dossier.decisions, span, clocks),
        clocks=clocks,
        facts=facts,
        newest_epoch=dossier.newest_epoch,
        has_all_decisions=len(dossier.decisions) < MOST_MARKERS and _shows_all_decisions(claim, facts),
    )


def _shows_all_decisions(claim: Claim | None, facts: ClusterFacts) -> bool:
    """Whether the coordinator's log has every record about the producer id since it was assigned."""
    of = None if claim is None else facts.coordinator(claim.coordinator_partition)
    if claim is None or of is None or not of.shows_absence:
        return False
    return of.hole_end is None or (claim.is_first_assigned and (claim.first_record_offset or 0) >= of.hole_end)


def history_of(past: Past, partition: PartitionSide) -> History:
    """The decisions that may include the open records, whether others may be missing, and what refutes that none is."""
    span, clocks, own = past.span, past.clocks, past.own
    whole = _whole(past, own)
    last_own = -1 if own is None else past.matches.index(own)
    unmarked = []
    for match in past.matches[last_own + 1 :]:
        before = past.before_ms(match.decision.stamped_epoch)
        if began_later_by_epoch(match.decision, span) or _ended_before(match.decision, span, before):
            continue
        start, after = clock_ms(match.decision.start_ms), partition.stamped_after_ms
        differ = clocks.today(match.decision)
        began_later = (
            start is not None
            and after is not None
            and after + min(differ.differ_ms, CLOCKS_DIFFER_MS) < start + differ.offset_ms
        )
        began_before = start is not None and before is not None and before >= start
        unmarked.append(decided_of(match, past, began_later=began_later, began_before=began_before))
    refuted = next((why for refutes, why in REFUTERS.items() if refutes(past, whole)), None) if whole.holds else None
    return History(
        is_whole=whole.holds and refuted is None,
        because=whole.because if refuted is None else f"{whole.because}, but {refuted}",
        lacks=next((why for refutes, why in LOSSES.items() if refutes(past, whole)), None),
        unmarked=tuple(unmarked),
    )


_EMPTY: Final = TransactionState.EMPTY.kafka_name
#: Reasons that mean that the producer id is never used again: no decision about it can follow.
GIVEN_UP: Final = frozenset(
    {
        Reason.PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR,
        Reason.TRANSACTIONAL_ID_EXPIRED,
        Reason.PRODUCER_ID_ROTATED,
    }
)


def proof_carried(past: Past, partition: PartitionSide, history: History) -> EarlierAudit | None:
    """The newest earlier audit that proved that no COMMIT includes the records, if no decision can have followed.

    None followed if the producer id had been given up by then; if the newest record of its id is still the one of that
    audit, because compaction keeps it; or if the leader of its copies leads until now, so that no marker since can have
    vanished. Source: docs/rules/abort.md#no-commit.
    """
    first = past.span.first_check
    crc = None if first is None else first.crc
    recorded = None if past.claim is None else past.claim.record_offset
    for each in sorted(past.span.earlier, key=lambda each: -each.as_of_ms):
        is_proven = each.proves_no_commit and is_same_transaction(each, past.span.judged_copy, crc)
        if not is_proven or _is_committed_since(history, each):
            continue
        is_quiet = recorded is not None and recorded == each.record_offset
        if each.reason in GIVEN_UP or is_quiet or _is_led_since(partition, each):
            return each
    return None


def _is_led_since(partition: PartitionSide, earlier: EarlierAudit) -> bool:
    """Whether the partition's newest leader, which its checkpoint names, led it already when it was copied before."""
    newest = partition.newest_leader_epoch
    return newest is not None and partition.checkpoint_leader_epoch == newest == earlier.newest_leader_epoch


def _is_committed_since(history: History, earlier: EarlierAudit) -> bool:
    """Whether a COMMIT without a marker of its own may be younger than the copies of an earlier audit."""
    seen = earlier.record_offset
    return any(
        each.type == "COMMIT" and (seen is None or each.record_offset is None or each.record_offset > seen)
        for each in history.unmarked
    )


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


def surely_before_ms(span: OpenSpan, claim: Claim | None, clocks: Clocks, coordinator_epoch: int | None) -> int | None:
    """An instant before the first open batch, by the coordinator's clock: a stamp, less what the two clocks may differ.

    A stamp proves nothing if one behind the batch is older: one of the two clocks is wrong.
    """
    coordinator = None if claim is None else claim.coordinator_partition
    behind = oldest_behind_ms(span)
    found = []
    for each in span.stamps:
        ms = clock_ms(each.before_ms)
        if ms is None or (behind is not None and ms > behind + CLOCKS_DIFFER_MS):
            continue
        differ = clocks.difference(coordinator, coordinator_epoch, each.leader_epoch)
        found.append(ms - differ.offset_ms - differ.differ_ms)
    return max(found, default=None)


def oldest_behind_ms(span: OpenSpan) -> int | None:
    """The oldest stamp behind the first batch."""
    return lowest(clock_ms(each.behind_ms) for each in span.stamps)


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


def _whole(past: Past, own: Match | None) -> Whole:
    """Whether the coordinators' records since before the first open batch are all there, with the witness in words.

    `own`: the newest decision whose marker is surely here.
    """
    claim = past.claim
    if claim is None:
        # Nobody's producer id: the age of holes tells nothing, and a log without it is not the one that had it.
        return Whole(holds=False, because="no coordinator has a record of the producer id")
    of = past.facts.coordinator(claim.coordinator_partition)
    if of is None or not of.shows_absence:
        return Whole(holds=False, because="the coordinator's log is not whole")
    if len(past.decisions) >= MOST_MARKERS and own is None:
        newest = f"only the newest {MOST_MARKERS} decisions of its producer were compared with its markers"
        return Whole(holds=False, because=newest)
    name, hole = f"{TRANSACTION_STATE_TOPIC}-{claim.coordinator_partition}", of.hole_end
    if hole is None:
        return Whole(holds=True, because=f"{name} has every record since offset 0")
    since = f"compaction removed records of {name} below offset {hole}"
    if claim.owner == Owner.CURRENT.value and claim.state == _EMPTY and claim.producer_epoch == 0:
        born = f"the last record of {claim.transactional_id} assigned the producer id, and compaction keeps that"
        return Whole(holds=True, because=f"{since}, but {born}")
    if own is not None and own.decision.coordinator_partition == claim.coordinator_partition:
        offset = own.decision.last_record_offset
        if offset >= hole:
            here = f"{since}, but none since offset {offset}, a decision whose marker is here before the records"
            return Whole(holds=True, because=here, since=own)
        if offset == claim.record_offset:
            kept = f"the last one of {claim.transactional_id} is a decision whose marker is here"
            newest = f"{since}, but {kept}, and compaction keeps the newest record of an id"
            return Whole(holds=True, because=newest, since=own)
    if claim.is_first_assigned and (claim.first_record_offset or 0) >= hole:
        born = f"{since}, but none since offset {claim.first_record_offset}, which assigned the producer id"
        return Whole(holds=True, because=born)
    written, before = latest_ms(of.hole_ms), past.before_ms(of.hole_epoch)
    if written is not None and before is not None and before > written:
        older = f"{since}, all of them older than the stamps before the first batch"
        return Whole(holds=True, because=older, since_ms=written)
    return Whole(holds=False, because=f"{since}, and a decision that includes this partition may have been among them")


# ---- What refutes a whole history: a decision that the log does not show has left a trace


def _has_unexplained_marker(past: Past, whole: Whole) -> bool:
    """A marker of the producer here that fits no decision of the log."""
    known = past.span.markers
    if whole.since is not None and whole.since.marker is not None:
        known = tuple(each for each in known if each.offset > whole.since.marker.offset)
    return any(_is_within(past, whole, each) and _is_unexplained(past, each) for each in known)


def _is_within(past: Past, whole: Whole, marker: WrittenMarker) -> bool:
    """Whether a marker is certainly younger than the missing records."""
    if whole.since_ms is None:
        return True
    at, claim = clock_ms(marker.ms), past.claim
    of = past.facts.coordinator(claim.coordinator_partition if claim else None)
    partition, epoch = (None, None) if of is None else (of.partition, of.hole_epoch)
    differ = past.clocks.difference(partition, epoch, marker.leader_epoch)
    return at is not None and at - differ.offset_ms - differ.differ_ms > whole.since_ms


def _is_unexplained(past: Past, marker: WrittenMarker) -> bool:
    return not any(
        fit(match.decision, marker, past.clocks) is not Fit.NO and _may_be_its_own(match, marker)
        for match in past.matches
    )


def _may_be_its_own(match: Match, marker: WrittenMarker) -> bool:
    """Whether a marker that fits a decision is its own or that one's repeat: both were written before it was
    completed."""
    own, decision = match.marker, match.decision
    if own is None or own.offset == marker.offset or own.leader_epoch != marker.leader_epoch:
        return True
    at, again = clock_ms(own.ms), clock_ms(marker.ms)
    decided, completed = decided_ms(decision), clock_ms(decision.completed_ms)
    if at is None or again is None or decided is None or completed is None:
        return True
    return abs(again - at) <= completed - decided + MARKER_SLACK_MS


def _has_unexplained_sibling(past: Past, whole: Whole) -> bool:
    """The same on another partition."""
    since = whole.since_ms
    if whole.since is not None:
        decision = whole.since.decision
        since = highest((decision.completed_ms, decided_ms(decision)))
    place = (past.span.topic, past.span.partition)
    others = [each for each in past.span.siblings if (each.topic, each.partition) != place]
    newest = [latest_ms(each.newest_unexplained_ms) for each in others]
    return any(ms is not None and (since is None or ms > since + CLOCKS_DIFFER_MS) for ms in newest)


def _has_marker_of_another_coordinator(past: Past, _whole: Whole) -> bool:
    """A marker with a coordinator epoch beyond those of the log."""
    claim = past.claim
    logs = past.facts.coordinators
    wanted = [each for each in logs if claim is None or each.partition == claim.coordinator_partition]
    newest = highest(each.newest_leader_epoch for each in wanted)
    seen = [each.coordinator_epoch for each in past.span.markers]
    seen += [past.span.coordinator_epoch, *(each.newest_coordinator_epoch for each in past.span.siblings)]
    return any(is_ahead(each, newest) for each in seen)


def _has_epoch_never_assigned(past: Past, _whole: Whole) -> bool:
    """A producer epoch beyond those of the log: each is written before a client gets it.

    Compaction keeps the newest one, as long as the id has the producer id; a log without holes has all.
    """
    claim = past.claim
    is_kept = claim is not None and (claim.owner == Owner.CURRENT.value or _shows_all_decisions(claim, past.facts))
    known = claim.highest_epoch if claim is not None and is_kept else None
    return is_ahead(highest((past.span.producer_epoch, past.newest_epoch)), known)


def _is_older_than_its_producer_id(past: Past, _whole: Whole) -> bool:
    """A marker, or a stamp behind the first batch, that is older than the record that created the producer id."""
    claim = past.claim
    created = clock_ms(claim.created_ms) if claim is not None and claim.is_first_assigned else None
    if claim is None or created is None:
        return False
    stamps = [(each.ms, each.leader_epoch) for each in past.span.markers]
    stamps += [(each.behind_ms, each.leader_epoch) for each in past.span.stamps]
    for ms, leader_epoch in stamps:
        at, differ = clock_ms(ms), past.clocks.difference(claim.coordinator_partition, None, leader_epoch)
        if at is not None and at - differ.offset_ms + differ.differ_ms < created:
            return True
    return False


#: What shows that a coordinator's log lacks records that compaction does not remove -> in words.
LOSSES: Final[Mapping[Callable[[Past, Whole], bool], str]] = {
    _has_marker_of_another_coordinator: "a marker has a newer coordinator epoch than all of its records",
    _has_epoch_never_assigned: "the partition has a newer producer epoch than all of its records",
}
#: What refutes that a coordinator's log shows every decision about the open records -> in words.
REFUTERS: Final[Mapping[Callable[[Past, Whole], bool], str]] = {
    **LOSSES,
    _has_unexplained_marker: "a marker of the producer here carries out no decision of it",
    _has_unexplained_sibling: "a marker of the producer on another partition carries out no decision of it",
    _is_older_than_its_producer_id: "stamps here are older than the record that assigned the producer id",
}
