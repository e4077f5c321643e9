"""`broker_clocks`: how far the clocks of two brokers differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from txnlib.core.copies import NO_LEADER, CoverageRow
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS, TRANSACTION_STATE_TOPIC
from txnlib.core.rows import row_of
from txnlib.core.schema import row_class


class OffsetBasis(StrEnum):
    """What encloses an offset."""

    #: Markers in both directions: nothing is assumed.
    TWO_WAY = "TWO_WAY"
    #: Markers in one direction. The fastest is assumed to have been written within a second of its decision.
    ONE_WAY = "ONE_WAY"
    #: Both directions exclude each other: a clock was set, or a leader has moved, between two markers.
    CONTRADICTORY = "CONTRADICTORY"


@dataclass(frozen=True, slots=True)
class Fastest:
    """The markers that one broker stamped for decisions of another: their number, and the least time from decision to
    marker."""

    samples: int
    least_ms: int


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """How far the other clock is ahead of the one: the middle of an interval, and how far the truth may be from
    there."""

    offset_ms: int
    error_ms: int
    lower_ms: int
    upper_ms: int
    basis: OffsetBasis
    #: Whether the clocks differ by more than comparisons of their times allow for.
    is_far: bool


def clock_offset(there: Fastest | None, back: Fastest | None) -> ClockOffset:
    """The offset of the other clock. `there`: the other broker's markers for the one's decisions; `back`: the reverse.

    Raises ValueError if neither is known.
    """
    if there is not None and back is not None:
        basis, lower, upper = OffsetBasis.TWO_WAY, -back.least_ms, there.least_ms
    elif there is not None:
        basis, lower, upper = OffsetBasis.ONE_WAY, there.least_ms - CLOCKS_DIFFER_MS, there.least_ms
    elif back is not None:
        basis, lower, upper = OffsetBasis.ONE_WAY, -back.least_ms, CLOCKS_DIFFER_MS - back.least_ms
    else:
        raise ValueError("no marker compares the two clocks")
    if lower > upper:
        basis = OffsetBasis.CONTRADICTORY
        lower, upper = upper, lower
    offset = (lower + upper) // 2
    error = max(upper - offset, offset - lower)
    return ClockOffset(offset, error, lower, upper, basis, abs(offset) - error > CLOCKS_DIFFER_MS)


# ---- `broker_clocks`: the offset between the clocks of two brokers


@dataclass(frozen=True, slots=True)
class MarkerDelays:
    """The newest decisions of a coordinator partition that have a marker on a partition, one for each producer."""

    coordinator_partition: int
    topic: str
    partition: int
    #: Number of those whose times are known, and the least time from decision to marker.
    samples: int
    least_ms: int | None
    #: The offset with the largest absolute value that was applied when markers were matched with decisions.
    applied_ms: int | None


ClockPair: Final = row_class("broker_clocks")


def broker_clocks(
    coverage: Sequence[CoverageRow], marker_delays: Sequence[MarkerDelays], *, as_of_ms: int
) -> Iterator[Any]:
    """A row for each pair of brokers whose clocks a marker compares: its coordinator's, and its partition's leader's.

    Source: docs/rules/copies.md#clocks-of-two-brokers.
    """
    leaders = {
        (copy.topic, copy.partition): copy.leader
        for copy in coverage
        if copy.is_judged and copy.leader is not None and copy.leader != NO_LEADER
    }
    ways: dict[tuple[str, str], list[MarkerDelays]] = defaultdict(list)
    for delays in marker_delays:
        decided_by = leaders.get((TRANSACTION_STATE_TOPIC, delays.coordinator_partition))
        marked_by = leaders.get((delays.topic, delays.partition))
        if decided_by is not None and marked_by is not None and decided_by != marked_by:
            ways[decided_by, marked_by].append(delays)
    fastest, applied = {}, {}
    for way, delays_of in ways.items():
        known = [each.least_ms for each in delays_of if each.least_ms is not None]
        if known:
            fastest[way] = Fastest(sum(each.samples for each in delays_of), min(known))
            applied[way] = max(
                (each.applied_ms for each in delays_of if each.applied_ms is not None), key=abs, default=0
            )
    for one, other in sorted({(min(way), max(way)) for way in fastest}):
        there, back = fastest.get((one, other)), fastest.get((other, one))
        yield row_of(
            ClockPair,
            clock_offset(there, back),
            as_of_ms=as_of_ms,
            broker=one,
            other_broker=other,
            samples=0 if there is None else there.samples,
            samples_back=0 if back is None else back.samples,
            applied_ms=applied.get((one, other), 0) or -applied.get((other, one), 0),
        )
