"""Decisions and markers of a producer, matched one to one and in order.

A producer without transactions v2 cannot begin a transaction before the last marker of the one before is written, so decisions and
markers have the same order, and a marker that serves one decision serves no other. Kafka: `TransactionCoordinator.endTransaction`
answers CONCURRENT_TRANSACTIONS until then. Source: docs/rules/copies.md#order-of-decisions-and-markers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import is_ahead
from txnlib.core.verdicts.dossier import CoordinatorDecision, WrittenMarker

#: How far the clocks of two brokers that NTP keeps may be apart without a doubt about the order of a decision and its marker.
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
    """The clock of the partition's leader less that of the coordinator, and how far they may still differ. One clock: 0, 0."""

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


def without_repeats(markers: Sequence[WrittenMarker]) -> list[WrittenMarker]:
    """The markers, without those that a later coordinator sent again: same type and epoch, a higher coordinator, nothing to end."""
    kept: list[WrittenMarker] = []
    for marker in markers:
        last = kept[-1] if kept else None
        is_same = last is not None and (last.type, last.epoch) == (marker.type, marker.epoch)
        is_newer = last is not None and is_ahead(marker.coordinator_epoch, last.coordinator_epoch)
        if not (is_same and is_newer and marker.first_offset is None):
            kept.append(marker)
    return kept


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
        Match(decision=decision, marker=markers[pairs[d]], fit=fits[d][pairs[d]]) if d in pairs else Match(decision=decision)
        for d, decision in enumerate(decisions)
    )


def _pairs(fits: Sequence[Sequence[Fit]]) -> dict[int, int]:
    """Indices of rows -> of columns: the longest order-preserving matching, of these the best, of these the earliest."""
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
