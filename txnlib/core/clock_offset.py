"""The offset between two brokers' clocks, from decisions and their markers.

A partition's leader stamps a marker after the coordinator decided. So the time of a marker minus that of its decision is the offset
of the two clocks plus a delay that is never negative. As in NTP, the fastest markers in both directions enclose the offset.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS


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
    """The markers that one broker stamped for decisions of another: their number, and the least time from decision to marker."""

    samples: int
    least_ms: int


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """How far the other clock is ahead of the one: the middle of an interval, and how far the truth may be from there."""

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
