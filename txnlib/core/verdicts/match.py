"""The one matcher of decisions and markers of a producer on a partition.

A producer without transactions v2 cannot begin a transaction before the last marker of the one before is written, so
decisions and markers have the same order, and a marker that serves one decision serves no other. Kafka:
`TransactionCoordinator.endTransaction` answers CONCURRENT_TRANSACTIONS until then. Source:
docs/rules/copies.md#order-of-decisions-and-markers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import is_ahead
from txnlib.core.verdicts.clocks import MARKER_SLACK_MS, UNCOMPARED, Clocks, Difference
from txnlib.core.verdicts.dossier import MOST_MARKERS, CoordinatorDecision, WrittenMarker


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


def decided_ms(decision: CoordinatorDecision) -> int | None:
    """When a transaction was decided, by its coordinator's clock; None if no clock shows it."""
    return clock_ms(decision.said_ms if decision.said_ms is not None else decision.prepared_ms)


def marker_epoch(decision: CoordinatorDecision) -> int | None:
    """The producer epoch of a decision's markers. If only its last record is left, that record has it."""
    if decision.decided_epoch is not None:
        return decision.decided_epoch
    return decision.first_epoch if decision.first_record_offset == decision.last_record_offset else None


def has_own_epoch(decision: CoordinatorDecision) -> bool:
    """Whether no other decision ends records of its epoch: the client used transactions v2, so the end raised it.

    The transactions of other clients share an epoch, also where the coordinator raises it to abort one of them.
    """
    began, ended = decision.first_epoch, decision.decided_epoch
    is_raised = began is not None and ended is not None and ended > began
    return is_raised and (decision.client_transaction_version or 0) >= 2


def difference(decision: CoordinatorDecision, marker: WrittenMarker, clocks: Clocks) -> Difference:
    """The clock that stamped a marker less the one that stamped the last record of a decision."""
    return clocks.difference(decision.coordinator_partition, decision.stamped_epoch, marker.leader_epoch)


def when_decided(decision: CoordinatorDecision, marker: WrittenMarker, clocks: Clocks) -> Difference:
    """The same of its Prepare record, which another leader may have stamped."""
    is_shown = decision.stamped_epoch is not None and decision.coordinator_epoch is not None
    epoch = decision.coordinator_epoch if is_shown else decision.stamped_epoch
    return clocks.difference(decision.coordinator_partition, epoch, marker.leader_epoch)


def is_of_its_kind(decision: CoordinatorDecision, marker: WrittenMarker) -> bool:
    """Whether a marker has the type, the epoch and the coordinator of a decision. A field that a dump does not print
    always fits."""
    epoch = marker_epoch(decision)
    if marker.type not in (None, decision.outcome) or (epoch is not None and marker.epoch != epoch):
        return False
    # Nobody sends a marker again once its decision is completed.
    is_later = decision.completed_ms is not None and is_ahead(marker.coordinator_epoch, decision.stamped_epoch)
    return not is_later and not is_ahead(decision.coordinator_epoch, marker.coordinator_epoch)


def fit(decision: CoordinatorDecision, marker: WrittenMarker, clocks: Clocks) -> Fit:
    """How well a marker fits a decision."""
    if not is_of_its_kind(decision, marker):
        return Fit.NO
    at, since, until = clock_ms(marker.ms), decided_ms(decision), clock_ms(decision.completed_ms)
    if since is None:
        since = clock_ms(decision.start_ms)
    if at is None or since is None:
        return Fit.UNTIMED
    begun, ended = when_decided(decision, marker, clocks), difference(decision, marker, clocks)
    after = at - begun.offset_ms - since
    late = 0 if until is None else at - ended.offset_ms - until
    if after >= -begun.error_ms and late <= ended.error_ms:
        return Fit.EXACT
    return Fit.WITHIN_TOLERANCE if after >= -begun.differ_ms and late <= ended.differ_ms else Fit.NO


def explains(match: Match, marker: WrittenMarker, clocks: Clocks) -> bool:
    """Whether a decision may explain a marker: it is the decision's own, or that one sent again. Both are written
    before the decision is completed."""
    own, decision = match.marker, match.decision
    if fit(decision, marker, clocks) is Fit.NO:
        return False
    if own is None or own.offset == marker.offset or own.leader_epoch != marker.leader_epoch:
        return True
    at, again = clock_ms(own.ms), clock_ms(marker.ms)
    decided, completed = decided_ms(decision), clock_ms(decision.completed_ms)
    if at is None or again is None or decided is None or completed is None:
        return True
    return abs(again - at) <= completed - decided + MARKER_SLACK_MS


def without_repeats(
    markers: Sequence[WrittenMarker],
    decisions: Sequence[CoordinatorDecision] = (),
    clocks: Clocks = UNCOMPARED,
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
    #: Whether the marker can be of no other decision that the coordinator's log shows.
    is_only: bool = False
    #: Whether the marker is the decision's, whatever else was decided: clocks that were compared, or an epoch of its
    #: own, show it.
    is_certain: bool = False


def match_markers(
    decisions: Sequence[CoordinatorDecision], markers: Sequence[WrittenMarker], clocks: Clocks, *, is_begin_known: bool
) -> tuple[Match, ...]:
    """Each decision with its marker: one to one and in order.

    A decision and a marker that fit exactly, each no other one, are a pair. Between two pairs: as many as possible, and
    of these the best fitting. What is still open then gets the earliest marker for the earliest decision. If the
    beginning of the log is gone (`is_begin_known`), its markers are gone, too, and up to the first pair, the latest
    marker goes to the latest decision.
    """
    fits = [[fit(decision, marker, clocks) for marker in markers] for decision in decisions]
    pairs: dict[int, int] = {}
    d = m = 0
    for row, column in (*_sole_pairs(fits), (len(decisions), len(markers))):
        between = [each[m:column] for each in fits[d:row]]
        if is_begin_known or pairs:
            found = _pairs(between)
        else:
            flipped = _pairs([each[::-1] for each in between[::-1]])
            found = {row - 1 - left: column - 1 - right for left, right in flipped.items()}
        pairs |= {d + left: m + right for left, right in found.items()} | {row: column}
        d, m = row + 1, column + 1
    return tuple(_match(decisions, markers, fits, d, pairs.get(d), clocks) for d in range(len(decisions)))


def _sole_pairs(fits: Sequence[Sequence[Fit]]) -> list[tuple[int, int]]:
    """Rows and columns that fit exactly, each no other one. None of two that contradict the order."""
    exact = [(d, m) for d, row in enumerate(fits) for m, each in enumerate(row) if each is Fit.EXACT]
    rows, columns = Counter(d for d, _ in exact), Counter(m for _, m in exact)
    sole = [(d, m) for d, m in exact if rows[d] == columns[m] == 1]
    return [(d, m) for d, m in sole if all((d < row) == (m < column) for row, column in sole if row != d)]


def _match(
    decisions: Sequence[CoordinatorDecision],
    markers: Sequence[WrittenMarker],
    fits: Sequence[Sequence[Fit]],
    d: int,
    m: int | None,
    clocks: Clocks,
) -> Match:
    decision = decisions[d]
    if m is None:
        return Match(decision=decision)
    # A marker may be sent twice, and its repeat may end a late write. So numbers prove nothing.
    others = [fits[other][m] for other in range(len(decisions)) if other != d]
    are_known = [of(decision, markers[m], clocks).is_known for of in (when_decided, difference)]
    is_compared = all(are_known) and fits[d][m] is Fit.EXACT
    return Match(
        decision=decision,
        marker=markers[m],
        fit=fits[d][m],
        is_only=all(other is Fit.NO for other in others),
        is_certain=has_own_epoch(decision) or (is_compared and Fit.EXACT not in others),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkerGroup:
    """Decisions about a producer on a partition, and its markers there, that Spark did not pair."""

    topic: str
    partition: int
    decisions: tuple[CoordinatorDecision, ...]
    markers: tuple[WrittenMarker, ...]


def stored_match(group: MarkerGroup, clocks: Clocks) -> list[int | None]:
    """For each decision, the number of its marker: what is stored. Of a large group, only the newest are compared."""
    decisions, markers = group.decisions[-MOST_MARKERS:], group.markers[-MOST_MARKERS:]
    clocks = clocks.of(group.topic, group.partition)
    is_whole = (decisions, markers) == (group.decisions, group.markers)
    is_begun = is_whole and (group.topic, group.partition) in clocks.begun
    kept = without_repeats(markers, decisions, clocks)
    matches = match_markers(decisions, kept, clocks, is_begin_known=is_begun)
    numbers = {marker.offset: number for number, marker in enumerate(group.markers)}
    found = [None if match.marker is None else numbers[match.marker.offset] for match in matches]
    return [None] * (len(group.decisions) - len(decisions)) + found
