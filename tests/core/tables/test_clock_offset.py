"""The offset between two clocks, against grids by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txnlib.core.tables.broker_clocks import Fastest, OffsetBasis, clock_offset

#: Least times from decision to marker, there and back -> offset, error, basis, is_far.
BY_HAND = [
    ((5, 5), (0, 5, "TWO_WAY", False)),
    ((47_012, -46_988), (47_000, 12, "TWO_WAY", True)),
    ((-46_988, 47_012), (-47_000, 12, "TWO_WAY", True)),
    # exactly a second beyond its error is not far yet
    ((1_010, -990), (1_000, 10, "TWO_WAY", False)),
    ((1_021, -1_001), (1_011, 10, "TWO_WAY", True)),
    ((8, None), (-492, 500, "ONE_WAY", False)),
    ((None, 8), (492, 500, "ONE_WAY", False)),
    ((60_000, None), (59_500, 500, "ONE_WAY", True)),
    ((None, 60_000), (-59_500, 500, "ONE_WAY", True)),
    # no offset explains markers that are older than their decisions in both directions
    ((-10, -30), (10, 20, "CONTRADICTORY", False)),
]


def fastest(least_ms):
    return None if least_ms is None else Fastest(3, least_ms)


@pytest.mark.parametrize(("least", "expected"), BY_HAND)
def test_the_fastest_markers_enclose_the_offset(least, expected):
    found = clock_offset(*map(fastest, least))
    assert (found.offset_ms, found.error_ms, found.basis.value, found.is_far) == expected


def test_without_a_marker_there_is_no_offset():
    with pytest.raises(ValueError, match="no marker"):
        clock_offset(None, None)


DELAYS = st.lists(st.integers(0, 100_000), min_size=1, max_size=5)
OFFSETS = st.integers(-10_000_000, 10_000_000)


@given(OFFSETS, DELAYS, DELAYS)
def test_the_true_offset_is_within_the_bound(offset, there, back):
    found = clock_offset(Fastest(len(there), offset + min(there)), Fastest(len(back), min(back) - offset))
    assert found.basis is OffsetBasis.TWO_WAY
    assert found.lower_ms <= offset <= found.upper_ms
    assert abs(found.offset_ms - offset) <= found.error_ms


@given(OFFSETS, DELAYS, DELAYS)
def test_the_other_broker_sees_the_opposite(offset, there, back):
    one, other = Fastest(len(there), offset + min(there)), Fastest(len(back), min(back) - offset)
    found, reverse = clock_offset(one, other), clock_offset(other, one)
    assert (reverse.lower_ms, reverse.upper_ms) == (-found.upper_ms, -found.lower_ms)
    assert reverse.is_far == found.is_far


@given(OFFSETS, st.integers(0, 1_000))
def test_one_direction_is_enough_if_a_marker_took_less_than_a_second(offset, delay):
    assert abs(clock_offset(Fastest(1, offset + delay), None).offset_ms - offset) <= 500
    assert abs(clock_offset(None, Fastest(1, delay - offset)).offset_ms - offset) <= 500
