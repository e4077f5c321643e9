"""The decisions that may include an open transaction.

Source: docs/rules/abort.md#no-commit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from txnlib.core.copies import highest, is_above, lowest
from txnlib.core.instants import clock_ms, latest_ms
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS, TRANSACTION_STATE_TOPIC, UNKNOWN_CLOCKS_DIFFER_MS, is_ahead
from txnlib.core.kafka.marker_acceptance import record_epochs
from txnlib.core.kafka.transaction_state import TransactionState
from txnlib.core.verdicts.dossier import (
    MOST_MARKERS,
    CoordinatorDecision,
    OpenSpan,
    Owner,
    WrittenMarker,
)
from txnlib.core.verdicts.match import (
    Fit,
    Match,
    decided_ms,
    explains,
    marker_epoch,
)
from txnlib.core.verdicts.past import Past


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A decision about the producer id that lists, or may list, the partition, as far as it concerns the open
    records."""

    of: CoordinatorDecision
    #: Newest leader epoch of the coordinator partition, which a marker for the decision would have.
    coordinator_epoch: int | None = None
    #: Whether its marker is in the partition; None if the relevant records are gone.
    is_marked: bool | None = None
    #: Whether that marker can be of no other decision.
    is_surely_marked: bool = False
    #: Whether its marker may have been in the part of the log that was deleted.
    may_be_deleted: bool = False
    #: Whether it is certain that the first open batch was written before it began.
    began_later: bool = False
    #: Whether it is certain that the first open batch was written after it began.
    began_before: bool = False
    #: Whether nothing is missing in the coordinator's log from its first record on.
    is_followed: bool = False

    @property
    def is_commit(self) -> bool:
        return self.of.outcome == "COMMIT"

    @property
    def lists_partition(self) -> bool:
        """Whether its records list the partition; if not, only its last record is left, which lists none."""
        return self.of.partitions is not None

    @property
    def decided_ms(self) -> int | None:
        """When it was decided, by its coordinator's clock; else when it was completed."""
        of = self.of
        return of.said_ms if of.said_ms is not None else of.prepared_ms or of.completed_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The decisions that may concern the open records: those after the last one whose marker is known to be here."""

    #: Whether no record of the coordinators can be missing since before the first open batch, and why.
    is_whole: bool = False
    because: str = "nothing shows that compaction removed no decision"
    #: What shows that records are missing that compaction does not remove; None if nothing does.
    lacks: str | None = None
    #: Those that list, or may list, the partition, and have no marker of their own here.
    unmarked: tuple[Decided, ...] = ()


NO_HISTORY: Final = History()


# ---- A decision, as far as it concerns the open records


def decided_of(match: Match, past: Past, *, began_later: bool = False, began_before: bool = False) -> Decided:
    decision, may_be_deleted = match.decision, _may_be_deleted(match, past)
    of = past.facts.coordinator(decision.coordinator_partition)
    hole = past.hole_end if decision.transactional_id == past.claim.transactional_id else of.hole_end
    newest = of.newest_coordinator_epoch
    return Decided(
        of=decision,
        coordinator_epoch=decision.coordinator_epoch if newest is None else newest,
        is_marked=None if may_be_deleted else _is_marked(match),
        is_surely_marked=past.is_sure(match),
        may_be_deleted=may_be_deleted,
        began_later=began_later,
        began_before=began_before,
        is_followed=bool(of.copies) and (hole is None or hole <= decision.first_record_offset),
    )


def _may_be_deleted(match: Match, past: Past) -> bool:
    """Whether the marker of a decision may have been in a part of the log that retention or compaction removed.

    It was not, if an older stamp is left before the first batch, or if every stamp that is left is older than the
    decision.
    """
    copy, decision, stamps = past.copy, match.decision, past.span.stamps
    begins = (copy.begins_at_start and not copy.first_offset) or any(each.before_ms is not None for each in stamps)
    if match.marker is not None or (begins and copy.gap_offset is None):
        return False
    oldest, ended = lowest(each.behind_ms for each in stamps), decided_ms(decision)
    differ = past.clocks.today(decision)
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


def history_of(past: Past) -> History:
    """The decisions that may include the open records, whether others may be missing, and what refutes that none is."""
    span, clocks, own = past.span, past.clocks, past.own
    whole = _whole(past, own)
    last_own = -1 if own is None else past.matches.index(own)
    unmarked = []
    for number, match in enumerate(past.matches[last_own + 1 :], last_own + 1):
        if began_later_by_epoch(match.decision, span) or _ended_before(past, number):
            continue
        start, after = clock_ms(match.decision.start_ms), past.stamped_after_ms
        before = past.before_ms(match.decision.stamped_epoch)
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


def _ended_before(past: Past, number: int) -> bool:
    """Whether a transaction ended before the first open batch was written, by epochs or by brokers' clocks.

    A time proves nothing if one in front of it in the coordinator's log is younger: one of the two clocks is wrong. A
    copy that shows all markers would have its own, so there only clocks count that were compared.
    """
    decision = past.matches[number].decision
    epoch, ended = marker_epoch(decision), _ended_ms(decision)
    last = None if epoch is None else record_epochs(epoch, decision.outcome, decision.transaction_version)[1]
    newest = highest(_ended_ms(each.decision) for each in past.matches[:number])
    before = past.before_ms(decision.stamped_epoch, by_known_clocks=past.shows_all_markers)
    is_refuted = ended is not None and newest is not None and ended < newest - UNKNOWN_CLOCKS_DIFFER_MS
    return is_ahead(past.span.first_epoch, last) or (is_above(before, ended) and not is_refuted)


def _ended_ms(decision: CoordinatorDecision) -> int | None:
    return clock_ms(decision.completed_ms if decision.completed_ms is not None else decided_ms(decision))


def _whole(past: Past, own: Match | None) -> Whole:
    """Whether the coordinators' records since before the first open batch are all there, with the witness in words.

    `own`: the newest decision whose marker is surely here.
    """
    claim, of = past.claim, past.coordinator
    if claim.is_nobodys:
        # Nobody's producer id: the age of holes tells nothing, and a log without it is not the one that had it.
        return Whole(holds=False, because="no coordinator has a record of the producer id")
    if not of.shows_absence:
        return Whole(holds=False, because="the coordinator's log is not whole")
    if len(past.dossier.decisions) >= MOST_MARKERS and own is None:
        newest = f"only the newest {MOST_MARKERS} decisions of its producer were compared with its markers"
        return Whole(holds=False, because=newest)
    name, hole = f"{TRANSACTION_STATE_TOPIC}-{claim.coordinator_partition}", past.hole_end
    if hole is None:
        every = "record since offset 0" if of.hole_end is None else f"record of {claim.transactional_id} since offset 0"
        return Whole(holds=True, because=f"{name} has every {every}")
    since = f"compaction removed records of {name} below offset {hole}"
    if claim.owner == Owner.CURRENT and claim.state == _EMPTY and claim.producer_epoch == 0:
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
    if past.is_assigned_behind_holes:
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
    return any(
        _is_within(past, whole, each) and not any(explains(match, each, past.clocks) for match in past.matches)
        for each in known
    )


def _is_within(past: Past, whole: Whole, marker: WrittenMarker) -> bool:
    """Whether a marker is certainly younger than the missing records."""
    if whole.since_ms is None:
        return True
    at, epoch = clock_ms(marker.ms), past.coordinator.hole_epoch
    differ = past.clocks.difference(past.claim.coordinator_partition, epoch, marker.leader_epoch)
    return at is not None and at - differ.offset_ms - differ.differ_ms > whole.since_ms


def _has_unexplained_sibling(past: Past, whole: Whole) -> bool:
    """The same on another partition."""
    since = whole.since_ms
    if whole.since is not None:
        decision = whole.since.decision
        since = highest((decision.completed_ms, decided_ms(decision)))
    place = (past.span.topic, past.span.partition)
    others = [each for each in past.siblings if (each.topic, each.partition) != place]
    newest = [latest_ms(each.newest_unexplained_ms) for each in others]
    return any(ms is not None and (since is None or ms > since + CLOCKS_DIFFER_MS) for ms in newest)


def _has_marker_of_another_coordinator(past: Past, _whole: Whole) -> bool:
    """A marker with a coordinator epoch beyond those of the log."""
    claim = past.claim
    logs = past.facts.coordinators
    wanted = [each for each in logs if claim.is_nobodys or each.partition == claim.coordinator_partition]
    newest = highest(each.newest_leader_epoch for each in wanted)
    seen = [each.coordinator_epoch for each in past.span.markers]
    seen += [past.span.coordinator_epoch, *(each.newest_coordinator_epoch for each in past.siblings)]
    return any(is_ahead(each, newest) for each in seen)


def _has_epoch_never_assigned(past: Past, _whole: Whole) -> bool:
    """A producer epoch beyond those of the log: each is written before a client gets it.

    Compaction keeps the newest one, as long as the id has the producer id; a log without holes has all.
    """
    claim = past.claim
    known = claim.highest_epoch if claim.owner == Owner.CURRENT or past.shows_all_decisions else None
    return is_ahead(highest((past.span.producer_epoch, past.dossier.newest_epoch)), known)


def _is_older_than_its_producer_id(past: Past, _whole: Whole) -> bool:
    """A marker, or a stamp behind the first batch, that is older than the record that created the producer id."""
    claim = past.claim
    created = clock_ms(claim.created_ms) if claim.is_first_assigned else None
    if created is None:
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
