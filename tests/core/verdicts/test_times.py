"""Differences of instants: closed under the shortest path, and refused where they contradict each other."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from txnlib.core.verdicts.times import Times

NAMES = ("a", "b", "c", "d")
#: (later, earlier, the greatest difference)
BOUNDS = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES), st.integers(-3, 3)), max_size=8)


def solutions(bounds):
    """All instants from 0 to 9 that meet some bounds, the first one at 0 or later."""
    for instants in product(range(10), repeat=len(NAMES)):
        at = dict(zip(NAMES, instants, strict=True))
        if all(at[later] - at[earlier] <= ms for later, earlier, ms in bounds):
            yield at


@given(BOUNDS)
def test_bounds_are_refused_exactly_where_no_instants_meet_them(bounds):
    times, kept = Times(), []
    for later, earlier, ms in bounds:
        is_possible = any(True for _ in solutions([*kept, (later, earlier, ms)]))
        assert times.add(later, earlier, ms) == is_possible
        if is_possible:
            kept.append((later, earlier, ms))


@given(BOUNDS)
def test_the_greatest_difference_is_that_of_some_instants(bounds):
    times, kept = Times(), []
    for bound in bounds:
        if times.add(*bound):
            kept.append(bound)
    found = list(solutions(kept))
    for later, earlier in product(NAMES, NAMES):
        most = times.most_ms(later, earlier) if later in times and earlier in times else None
        if most is not None:
            assert max(at[later] - at[earlier] for at in found) == most
        assert times.may_be_before(earlier, later) == (most is None or most >= 0)


def test_a_clock_ties_what_it_showed():
    times = Times()
    assert times.shows("decided", "clock", 1_000)
    assert times.shows("marker", "clock", 1_010)
    assert (times.most_ms("marker", "decided"), times.most_ms("decided", "marker")) == (10, -10)
    assert not times.precedes("marker", "decided")
    slack = Times()
    assert slack.shows("decided", "clock", 1_000, 10)
    assert slack.shows("marker", "clock", 1_010, 10)
    assert slack.precedes("marker", "decided")


def test_a_time_that_no_clock_shows_demands_nothing():
    times = Times()
    assert times.shows("decided", "clock", -1)
    assert "decided" not in times


def test_two_clocks_differ_by_what_is_allowed():
    times = Times()
    assert times.differ("left", "right", 100, 200)
    assert times.shows("decided", "left", 1_000)
    assert times.shows("marker", "right", 1_250)
    # A clock is true time less what it shows.
    assert (times.most_ms("marker", "decided"), times.most_ms("decided", "marker")) == (150, -50)


def test_a_copy_leaves_what_it_is_copied_from():
    times = Times()
    times.precedes("a", "b")
    Times(times).precedes("b", "a")
    assert times.most_ms("a", "b") == 0
    assert times.most_ms("b", "a") is None
