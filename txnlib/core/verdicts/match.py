"""The markers of a producer's decisions on a partition: what every history says that loses least.

A history gives each marker to one decision, or to none, and keeps the order of both logs: without transactions v2, no
transaction begins before the last marker of the one before is written. Kafka: `TransactionCoordinator.endTransaction`
answers CONCURRENT_TRANSACTIONS until then. It loses a decision that lacks its marker, and a marker of no decision. Of
the histories that lose least, those that clocks agree with best count. What they have in common is known, and nothing
else. Source: docs/rules/copies.md#order-of-decisions-and-markers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

from txnlib.core.copies import highest, is_above
from txnlib.core.instants import clock_ms, clock_ms_or_latest
from txnlib.core.kafka.constants import is_ahead
from txnlib.core.kafka.marker_acceptance import record_epochs
from txnlib.core.verdicts.clock_bounds import MARKER_SLACK_MS
from txnlib.core.verdicts.dossier import (
    MOST_MARKERS,
    CoordinatorDecision,
    OpenSpan,
    RepeatedMarker,
    SiblingMarkers,
    WrittenMarker,
)
from txnlib.core.verdicts.whose_clock import Clocks, Difference, PartitionClocks

#: Cost of a decision without its marker, or of a marker without a decision: more than the cost of all clocks in a
#: group.
_LOSS: Final = 1_000
#: Cost of separating a pair: more than all losses of a group.
_NEVER: Final = 1_000_000


def decided_ms(decision: CoordinatorDecision) -> int | None:
    """When a transaction was decided, by its coordinator's clock; None if no clock shows it."""
    return clock_ms(decision.said_ms if decision.said_ms is not None else decision.prepared_ms)


def marker_epoch(decision: CoordinatorDecision) -> int | None:
    """The producer epoch of a decision's markers. If only its last record is left, that record has it."""
    if decision.decided_epoch is not None:
        return decision.decided_epoch
    return decision.first_epoch if decision.first_record_offset == decision.last_record_offset else None


def began_later_by_epoch(decision: CoordinatorDecision, span: OpenSpan) -> bool:
    """Whether none of the open records is of the decided transaction, by their epoch: its first record would have
    raised the producer epoch here.

    So its records were lost with a former leader, or never arrived.
    """
    epoch = marker_epoch(decision)
    if epoch is None:
        return False
    return span.producer_epoch < record_epochs(epoch, decision.outcome, decision.transaction_version)[0]


def has_own_epoch(decision: CoordinatorDecision) -> bool:
    """Whether records of this epoch can only be of this transaction: its client used transactions v2, so its end raised
    the epoch.

    Transactions of other clients share an epoch, even if the coordinator raises it to abort one of them.
    """
    began, ended = decision.first_epoch, decision.decided_epoch
    is_raised = began is not None and ended is not None and ended > began
    return is_raised and (decision.client_transaction_version or 0) >= 2


def is_of_its_kind(decision: CoordinatorDecision, marker: WrittenMarker) -> bool:
    """Whether a marker agrees with a decision in type, producer epoch and coordinator epoch. A field that a dump does
    not print always agrees."""
    epoch = marker_epoch(decision)
    if marker.type not in (None, decision.outcome) or (epoch is not None and marker.epoch != epoch):
        return False
    # Nobody sends a marker again once its decision is completed.
    is_later = decision.completed_ms is not None and is_ahead(marker.coordinator_epoch, decision.stamped_epoch)
    return not is_later and not is_ahead(decision.coordinator_epoch, marker.coordinator_epoch)


# ---- What clocks say of a decision and a marker


@dataclass(frozen=True, slots=True)
class Comparison:
    """How the clocks of one partition compare with those of the coordinators.

    `is_strict`: whether clocks that were never compared never agree well (0), however near their times are.
    """

    clocks: PartitionClocks
    is_strict: bool = False

    def cost(self, decision: CoordinatorDecision, marker: WrittenMarker) -> int | None:
        """How badly the clocks agree that a marker carries out a decision: 0 is well. None if the marker cannot: its
        type or epoch differs, its coordinator is older, or it was not written between the decision and its
        completion."""
        if not is_of_its_kind(decision, marker):
            return None
        since, until = decided_ms(decision), clock_ms(decision.completed_ms)
        since = clock_ms(decision.start_ms) if since is None else since
        after = self._after(self.prepared(decision, marker), marker, since)
        return _worst(after, self._before(self.stamped(decision, marker), marker, until))

    def hidden_cost(
        self, before: CoordinatorDecision | None, marker: WrittenMarker, after: CoordinatorDecision | None
    ) -> int | None:
        """As `cost`, of a decision that no record shows: the marker was written after `before` was completed, and
        before the transaction of `after` began."""
        since: int | None = 0
        until: int | None = 0
        if before is not None:
            ended = clock_ms(before.completed_ms)
            since = self._after(self.stamped(before, marker), marker, decided_ms(before) if ended is None else ended)
        if after is not None:
            began = clock_ms(after.start_ms)
            until = self._before(self.prepared(after, marker), marker, decided_ms(after) if began is None else began)
        return _worst(since, until)

    def stamped(self, decision: CoordinatorDecision, marker: WrittenMarker) -> Difference:
        """The clock that stamped a marker, less the clock that stamped the last record of a decision."""
        return self.clocks.difference(decision.coordinator_partition, decision.stamped_epoch, marker.leader_epoch)

    def prepared(self, decision: CoordinatorDecision, marker: WrittenMarker) -> Difference:
        """The clock that stamped a marker, less the clock that stamped the Prepare record of a decision. Another leader
        may have written its last record."""
        is_shown = decision.stamped_epoch is not None and decision.coordinator_epoch is not None
        epoch = decision.coordinator_epoch if is_shown else decision.stamped_epoch
        return self.clocks.difference(decision.coordinator_partition, epoch, marker.leader_epoch)

    def _after(self, differ: Difference, marker: WrittenMarker, since_ms: int | None) -> int | None:
        at = clock_ms(marker.ms)
        if at is None or since_ms is None:
            return 2
        return self._agrees(differ, since_ms - (at - differ.offset_ms))

    def _before(self, differ: Difference, marker: WrittenMarker, until_ms: int | None) -> int | None:
        at = clock_ms(marker.ms)
        return 0 if at is None or until_ms is None else self._agrees(differ, at - differ.offset_ms - until_ms)

    def _agrees(self, differ: Difference, beyond_ms: int) -> int | None:
        is_measured = differ.is_known or not self.is_strict
        if is_measured and beyond_ms <= differ.error_ms:
            return 0
        return 1 if beyond_ms <= differ.differ_ms else None


def _worst(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else max(left, right)


def may_be_again(decision: CoordinatorDecision, own: WrittenMarker, marker: WrittenMarker) -> bool:
    """Whether a marker may repeat `own`, the marker of a decision: a coordinator writes both before it completes the
    decision.

    A later coordinator sends all markers again. The same coordinator sends one again if it got no answer. Kafka:
    `TransactionMarkerRequestCompletionHandler.onComplete`, which puts the marker into the queue again.
    """
    if own.leader_epoch != marker.leader_epoch:
        return True
    at, again = clock_ms(own.ms), clock_ms(marker.ms)
    decided, completed = decided_ms(decision), clock_ms(decision.completed_ms)
    if at is None or again is None or decided is None or completed is None:
        return True
    return abs(again - at) <= completed - decided + MARKER_SLACK_MS


# ---- The histories of one partition

#: The numbers of decisions and of markers that a history has passed.
_Told: TypeAlias = tuple[int, int]


class _Step(NamedTuple):
    """A step of a history: a decision with its marker and repeats of it, or without a marker; or a marker of no known
    decision."""

    since: _Told
    until: _Told
    cost: int
    marker: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """A decision, and what the histories say of its marker."""

    of: CoordinatorDecision
    #: The markers that may carry out the decision; None is among them if it may have none.
    markers: tuple[WrittenMarker | None, ...] = (None,)
    #: Whether at least one marker agrees with it in kind and time, whatever was lost.
    may_have_one: bool = False
    #: Whether its marker fits this decision better than any other one.
    is_alone: bool = False
    #: Whether its marker may have been in a part of the log that is deleted.
    may_be_deleted: bool = False

    @property
    def is_marked(self) -> bool | None:
        """Whether its marker is here; None if histories differ, or if records that would tell are gone."""
        if None not in self.markers:
            return True
        is_known = len(self.markers) == 1 and not self.may_have_one and self.lists_partition
        return False if is_known and not self.may_be_deleted else None

    @property
    def lists_partition(self) -> bool:
        """Whether its records list the partition; if not, only its last record is left, which lists none."""
        return self.of.partitions is not None


@dataclass(frozen=True, kw_only=True)
class Histories:
    """Decisions about a producer on a partition, and its markers there, each in the order of its log."""

    decisions: Sequence[CoordinatorDecision]
    markers: Sequence[WrittenMarker]
    compared: Comparison
    #: Whether the marker of a decision may have been in a part of the log that is deleted.
    may_be_deleted: Callable[[CoordinatorDecision], bool]
    #: Whether a deleted part of the log may lie after a marker that is left.
    has_hole: bool = False
    #: A decision -> whether decisions that no record shows may be between the one before it and itself. None stands for
    #: the end: whether they may be after the last one.
    hides: Callable[[CoordinatorDecision | None], bool]

    @cached_property
    def fits(self) -> list[list[int | None]]:
        """For each decision, `Comparison.cost` of each marker."""
        return [[self.compared.cost(each, marker) for marker in self.markers] for each in self.decisions]

    @cached_property
    def costs(self) -> list[list[int | None]]:
        """As `fits`, but the decision and the marker of a pair fit nothing else: None."""
        rows, columns = {}, {}
        for row, column in self.pairs:
            rows[row], columns[column] = column, row
        return [
            [cost if rows.get(row, at) == at and columns.get(at, row) == row else None for at, cost in enumerate(costs)]
            for row, costs in enumerate(self.fits)
        ]

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """The numbers of completed decisions and of their markers, if clocks leave no choice: the decision fits no
        other marker, and the marker no other decision. Pairs that contradict the order of another pair are left out."""
        shown = [(row, at) for row, of in enumerate(self.fits) for at, cost in enumerate(of) if cost == 0]
        rows, columns = Counter(row for row, _ in shown), Counter(at for _, at in shown)
        alone = [
            (row, at) for row, at in shown if rows[row] == columns[at] == 1 and _must_be_marked(self.decisions[row])
        ]
        return [(row, at) for row, at in alone if all((row < r) == (at < a) for r, a in alone if row != r)]

    def marked(self) -> list[Marked]:
        """For each decision, what the histories that lose least say of its marker."""
        steps, end = [*self._steps()], (len(self.decisions), len(self.markers))
        so_far, left = {(0, 0): 0}, {end: 0}
        for each in steps:
            _lower(so_far, each.until, so_far[each.since] + each.cost)
        for each in reversed(steps):
            _lower(left, each.since, each.cost + left[each.until])
        found: list[set[int | None]] = [set() for _ in self.decisions]
        for each in steps:
            is_decision = each.until[0] > each.since[0]
            if is_decision and so_far[each.since] + each.cost + left[each.until] == so_far[end]:
                found[each.since[0]].add(each.marker)
        return [self._marked(number, sorted(markers, key=_none_last)) for number, markers in enumerate(found)]

    def _marked(self, number: int, markers: list[int | None]) -> Marked:
        return Marked(
            of=self.decisions[number],
            markers=tuple(None if at is None else self.markers[at] for at in markers),
            may_have_one=any(cost is not None for cost in self.fits[number]),
            is_alone=len(markers) == 1 and self._is_alone(number, markers[0]),
            may_be_deleted=None in markers and self.may_be_deleted(self.decisions[number]),
        )

    def _is_alone(self, number: int, at: int | None) -> bool:
        if at is None:
            return False
        others = [costs[at] for other, costs in enumerate(self.fits) if other != number]
        return all(each is None or (self.fits[number][at] == 0 and each > 0) for each in others)

    def _steps(self) -> Iterator[_Step]:
        """Every step of every history, in the order of both logs."""
        own_epochs = {marker_epoch(each) for each in self.decisions if has_own_epoch(each)}
        paired, pairs = dict(self.pairs), {at for _, at in self.pairs}
        for told in range(len(self.decisions) + 1):
            before = self.decisions[told - 1] if told else None
            decision = self.decisions[told] if told < len(self.decisions) else None
            is_hiding = self.hides(decision)
            is_deleted = decision is not None and self.may_be_deleted(decision)
            for at in range(len(self.markers) + 1):
                if decision is not None:
                    is_lost = _must_be_marked(decision) and (not is_deleted or (at > 0 and not self.has_hole))
                    lost = _LOSS if is_lost else 0
                    yield _Step((told, at), (told + 1, at), _NEVER if told in paired else lost)
                    yield from self._own(decision, told, at)
                if at < len(self.markers):
                    marker, cost = self.markers[at], None
                    if is_hiding and marker.epoch not in own_epochs:
                        cost = self.compared.hidden_cost(before, marker, decision)
                    cost = _LOSS if cost is None else cost
                    yield _Step((told, at), (told, at + 1), _NEVER if at in pairs else cost)

    def _own(self, decision: CoordinatorDecision, told: int, at: int) -> Iterator[_Step]:
        """A decision with a marker, and as many repeats of that as there may be."""
        costs = self.costs[told]
        cost = costs[at] if at < len(self.markers) else None
        if cost is None:
            return
        yield _Step((told, at), (told + 1, at + 1), cost, at)
        own = self.markers[at]
        for last in range(at + 1, len(self.markers)):
            again, of_it = self.markers[last], costs[last]
            if of_it is None or not may_be_again(decision, own, again):
                return
            # A repeat that ends records ends a late write.
            cost += of_it + (0 if again.first_offset is None else _LOSS)
            yield _Step((told, at), (told + 1, last + 1), cost, at)


def _must_be_marked(decision: CoordinatorDecision) -> bool:
    """Whether a decision has certainly written its marker, because it is completed and its partitions are known. Kafka:
    `TransactionMarkerChannelManager.maybeWriteTxnCompletion`."""
    return decision.completed_ms is not None and decision.partitions is not None


def _none_last(number: int | None) -> tuple[bool, int]:
    return number is None, number or 0


def _lower(costs: dict[_Told, int], told: _Told, cost: int) -> None:
    costs[told] = min(cost, costs.get(told, cost))


# ---- Markers on other partitions


def with_unexplained(markers: SiblingMarkers, clocks: PartitionClocks, producer_epoch: int) -> SiblingMarkers:
    """The markers of another partition. A marker that looks like the one before it also counts as unexplained, unless
    it was sent again for the same decision.

    `producer_epoch`: that of the open records.
    """
    again = [each.marker for each in markers.repeated if not _is_sent_again(each, clocks)]
    commits = [each for each in again if each.type == "COMMIT"]
    found = replace(
        markers,
        newest_unexplained_ms=highest(
            (markers.newest_unexplained_ms, *(clock_ms_or_latest(each.ms) for each in again))
        ),
    )
    newest = max(commits, key=lambda each: clock_ms_or_latest(each.ms) or 0, default=None)
    if newest is not None and not is_above(markers.newest_unexplained_commit_ms, clock_ms_or_latest(newest.ms)):
        found = replace(
            found,
            newest_unexplained_commit_ms=clock_ms_or_latest(newest.ms),
            newest_unexplained_commit_coordinator_epoch=newest.coordinator_epoch,
        )
    of_epoch = [clock_ms_or_latest(each.ms) for each in commits if (each.epoch or 0) >= producer_epoch]
    return replace(found, committed_ms=highest((markers.committed_ms, *of_epoch)))


def _is_sent_again(repeated: RepeatedMarker, clocks: PartitionClocks) -> bool:
    of, own = repeated.decision, repeated.own
    if of is None or Comparison(clocks).cost(of, repeated.marker) is None:
        return False
    return own is None or may_be_again(of, own, repeated.marker)


# ---- What is stored


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkerGroup:
    """The decisions about a producer on a partition, and its markers there, from one certain pair to the next."""

    topic: str
    partition: int
    #: Whether the group begins with a pair, so that nothing before the group matters.
    has_pair: bool = False
    decisions: tuple[CoordinatorDecision, ...]
    markers: tuple[WrittenMarker, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMatch:
    """What is stored of a decision's marker: its number in the group; or the offsets of several possible ones, if
    histories differ."""

    number: int | None = None
    possible_offsets: tuple[int, ...] | None = None


def stored_match(group: MarkerGroup, clocks: Clocks) -> list[StoredMatch]:
    """What is stored of the marker of each decision, in order. In a large group, only the newest are compared."""
    decisions, markers = group.decisions[-MOST_MARKERS:], group.markers[-MOST_MARKERS:]
    compared = Comparison(clocks.of(group.topic, group.partition))
    is_whole = (decisions, markers) == (group.decisions, group.markers)
    is_begun = is_whole and (group.has_pair or (group.topic, group.partition) in clocks.begun)

    def may_be_deleted(decision: CoordinatorDecision) -> bool:
        return not is_begun and (not markers or compared.hidden_cost(decision, markers[0], None) is not None)

    found = Histories(
        decisions=decisions,
        markers=markers,
        compared=compared,
        may_be_deleted=may_be_deleted,
        # Compaction keeps the newest record of an id, so decisions that it hides come before all that are left.
        hides=lambda decision: decision in decisions[:1] and not (is_whole and group.has_pair),
    ).marked()
    numbers = {marker.offset: number for number, marker in enumerate(group.markers)}
    unknown = [StoredMatch() for _ in range(len(group.decisions) - len(decisions))]
    return [*unknown, *(_stored(each.markers, numbers) for each in found)]


def _stored(markers: Sequence[WrittenMarker | None], numbers: Mapping[int, int]) -> StoredMatch:
    offsets = tuple(each.offset for each in markers if each is not None)
    if len(markers) > 1:
        return StoredMatch(possible_offsets=offsets)
    return StoredMatch(number=numbers[offsets[0]]) if offsets else StoredMatch()
