"""Decisions and markers: one to one, in order, by epochs where they can, by clocks where they must."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.dossier_samples import DECISION, MARKER, NOON
from txnlib.core.verdicts.clocks import MARKER_SLACK_MS, Clocks, Difference
from txnlib.core.verdicts.dossier import CoordinatorDecision, WrittenMarker
from txnlib.core.verdicts.match import Fit, fit, marker_epoch, match_markers, without_repeats

#: Decisions are of coordinator partition 3.
ONE_CLOCK = Clocks(named={("", 0): {0: "1"}, ("__transaction_state", 3): {0: "1"}})
#: Of two brokers that were not compared.
FAR = Clocks(named={("", 0): {0: "2"}, ("__transaction_state", 3): {0: "1"}})


def measured(**difference: int) -> Clocks:
    """Of two brokers that were compared."""
    return replace(FAR, measured={("1", "2"): Difference(**difference)})


def decision(at: int, *, takes: int | None = 20, **changes) -> CoordinatorDecision:
    completed = None if takes is None else NOON + at + takes
    times = {"start_ms": NOON + at - 60, "said_ms": NOON + at, "prepared_ms": NOON + at, "completed_ms": completed}
    return replace(DECISION, first_record_offset=at, last_record_offset=at + 2, **times | changes)


def marker(at: int, **changes) -> WrittenMarker:
    return replace(MARKER, offset=at, ms=NOON + at, **changes)


#: Changes to a decision at 100 that takes 20 ms, and to its marker at 110; clocks -> how well they fit.
FITS = [
    ({}, {}, ONE_CLOCK, Fit.EXACT),
    ({}, {"ms": NOON + 100}, ONE_CLOCK, Fit.EXACT),
    ({}, {"ms": NOON + 120}, ONE_CLOCK, Fit.EXACT),
    ({}, {"ms": NOON + 99}, ONE_CLOCK, Fit.NO),
    ({}, {"ms": NOON + 121}, ONE_CLOCK, Fit.NO),
    ({"completed_ms": None}, {"ms": NOON + 1_000_000}, ONE_CLOCK, Fit.EXACT),
    ({}, {"ms": NOON + 100 - MARKER_SLACK_MS}, FAR, Fit.EXACT),
    ({}, {"ms": NOON + 99 - MARKER_SLACK_MS}, FAR, Fit.WITHIN_TOLERANCE),
    ({}, {"ms": NOON + 121 + MARKER_SLACK_MS}, FAR, Fit.WITHIN_TOLERANCE),
    ({}, {"ms": NOON + 100 - 300_000}, FAR, Fit.WITHIN_TOLERANCE),
    ({}, {"ms": NOON + 99 - 300_000}, FAR, Fit.NO),
    ({}, {"ms": NOON + 121 + 300_000}, FAR, Fit.NO),
    ({}, {"ms": NOON + 7_310}, measured(offset_ms=7_200, error_ms=20, differ_ms=1_000), Fit.EXACT),
    ({}, {"ms": None}, ONE_CLOCK, Fit.UNTIMED),
    ({}, {"ms": 0}, ONE_CLOCK, Fit.UNTIMED),
    ({"said_ms": None}, {}, ONE_CLOCK, Fit.EXACT),
    ({"said_ms": None, "prepared_ms": None}, {"ms": NOON + 41}, ONE_CLOCK, Fit.EXACT),
    ({"said_ms": None, "prepared_ms": None, "start_ms": None}, {}, ONE_CLOCK, Fit.UNTIMED),
    ({}, {"type": "ABORT"}, ONE_CLOCK, Fit.NO),
    ({}, {"type": None}, ONE_CLOCK, Fit.EXACT),
    ({}, {"epoch": 6}, ONE_CLOCK, Fit.NO),
    ({"decided_epoch": 6}, {"epoch": 6}, ONE_CLOCK, Fit.EXACT),
    ({"decided_epoch": None}, {"epoch": 6}, ONE_CLOCK, Fit.EXACT),
    ({"decided_epoch": None, "last_record_offset": 100}, {"epoch": 6}, ONE_CLOCK, Fit.NO),
    ({}, {"coordinator_epoch": 18}, ONE_CLOCK, Fit.NO),
    ({}, {"coordinator_epoch": 20}, ONE_CLOCK, Fit.EXACT),
    ({}, {"coordinator_epoch": None}, ONE_CLOCK, Fit.EXACT),
]


@pytest.mark.parametrize(("of_decision", "of_marker", "clocks", "expected"), FITS)
def test_a_marker_fits_by_type_epochs_and_times(of_decision, of_marker, clocks, expected):
    assert fit(replace(decision(100), **of_decision), replace(marker(110), **of_marker), clocks) is expected


def test_a_last_record_alone_has_the_epoch_of_its_markers():
    assert marker_epoch(replace(decision(1), decided_epoch=None)) is None
    assert marker_epoch(replace(decision(1), decided_epoch=None, last_record_offset=1)) == 5


def matched(decisions, markers, clocks=ONE_CLOCK, *, is_begin_known=True) -> list[int | None]:
    """The offsets of the markers of each decision."""
    found = match_markers(decisions, markers, clocks, is_begin_known=is_begin_known)
    return [None if match.marker is None else match.marker.offset for match in found]


def test_what_is_missing_is_at_the_end_unless_the_begin_of_the_log_is_gone():
    two = [decision(0), decision(200)]
    assert matched(two, [marker(100)], FAR) == [100, None]
    assert matched(two, [marker(100)], FAR, is_begin_known=False) == [None, 100]


def test_a_marker_that_a_later_coordinator_sent_again_serves_no_second_decision():
    again = marker(20, coordinator_epoch=20, first_offset=None)
    assert without_repeats([marker(10), again]) == [marker(10)]
    # Whatever ended records, or differs, or is of the same coordinator, is a marker of its own.
    for other in ({"first_offset": 15}, {"type": "ABORT"}, {"epoch": 6}, {"coordinator_epoch": 19}):
        assert len(without_repeats([marker(10), replace(again, **other)])) == 2


def test_a_marker_that_its_coordinator_sent_again_before_it_completed_serves_no_second_decision():
    first, again = marker(10), marker(20, first_offset=None)
    assert without_repeats([first, again], [decision(0)], ONE_CLOCK) == [first]
    # Of another decision, or it ended records, or nothing shows until when the first was not completed.
    for decided, other in (
        ([decision(0, takes=15)], again),
        ([decision(0)], marker(20)),
        ([decision(0, takes=None)], again),
    ):
        assert without_repeats([first, other], decided, ONE_CLOCK) == [first, other]


def every_matching(rows: int, columns: int):
    """Every one to one matching that keeps the order."""
    for count in range(min(rows, columns) + 1):
        for left, right in product(combinations(range(rows), count), combinations(range(columns), count)):
            yield list(zip(left, right, strict=True))


def sole_pairs(fits: list[list[Fit]]) -> list[tuple[int, int]]:
    """Pairs that fit exactly, of which neither fits another one exactly."""
    exact = [(d, m) for d, row in enumerate(fits) for m, each in enumerate(row) if each is Fit.EXACT]
    return [(d, m) for d, m in exact if sum(d == other for other, _ in exact) == sum(m == o for _, o in exact) == 1]


@settings(max_examples=400)
@given(st.lists(st.integers(0, 400), max_size=4), st.lists(st.integers(0, 400), max_size=4), st.booleans())
def test_no_other_matching_with_the_pairs_that_clocks_show_has_more_pairs_or_fits_better(
    decided, marked, is_begin_known
):
    decisions, markers = [decision(at) for at in sorted(decided)], [marker(at) for at in sorted(marked)]
    clocks = measured(error_ms=20, differ_ms=60)
    fits = [[fit(each, other, clocks) for other in markers] for each in decisions]
    best = max(
        (len(pairs), sum(fits[d][m] for d, m in pairs))
        for pairs in every_matching(len(decisions), len(markers))
        if all(fits[d][m] is not Fit.NO for d, m in pairs) and set(sole_pairs(fits)) <= set(pairs)
    )
    found = match_markers(decisions, markers, clocks, is_begin_known=is_begin_known)
    pairs = [(number, markers.index(match.marker)) for number, match in enumerate(found) if match.marker is not None]
    assert (len(pairs), sum(match.fit for match in found)) == best
    assert [match.decision for match in found] == decisions
    offsets = [match.marker.offset for match in found if match.marker is not None]
    assert offsets == sorted(offsets)


def test_what_clocks_show_comes_before_the_number_of_pairs():
    two, later = [decision(0), decision(60)], [marker(50), marker(130)]
    assert matched(two, later, measured(error_ms=20, differ_ms=60)) == [None, 50]
    # Of two that contradict the order of the log, none.
    crossed = [replace(marker(210), offset=1), replace(marker(10), offset=2)]
    assert matched([decision(0), decision(200)], crossed) == [2, None]


def test_the_limits_of_a_tolerance_belong_to_it():
    assert fit(decision(100), marker(120 + 300_000), FAR) is Fit.WITHIN_TOLERANCE
    assert MARKER_SLACK_MS == 20
    assert [each.value for each in Fit] == [0, 1, 2, 3]


def test_a_time_of_the_value_counts_before_the_append_time():
    late = replace(decision(100), prepared_ms=NOON + 115)
    assert fit(late, marker(110), ONE_CLOCK) is Fit.EXACT
    assert fit(replace(late, said_ms=None), marker(110), ONE_CLOCK) is Fit.NO


def test_of_several_repeats_each_is_compared_with_the_last_that_counts():
    again = [marker(20 + n, coordinator_epoch=20 + n, first_offset=None) for n in range(3)]
    assert without_repeats([marker(10), *again]) == [marker(10)]
    assert without_repeats([]) == []
    assert len(without_repeats([marker(1), marker(2, type="ABORT"), again[0]])) == 3
