"""Brokers' clocks around a record: an interval, or nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.dossier_samples import MINUTE, NOON
from txnlib.core.verdicts.clocks import UNKNOWN, Clocks, Difference, off_by
from txnlib.core.verdicts.dossier import EpochStamps
from txnlib.core.verdicts.past import corrected, latest_bound_ms, newest_ms

FIVE = 5 * MINUTE

#: Stamps behind a record, a stamp before it -> the latest time at which it was written.
BOUNDS = [
    ([NOON], None, NOON),
    ([NOON + 9, NOON], None, NOON),
    ([None, 0, -1, NOON], None, NOON),
    ([], NOON, None),
    # A stamp behind that is older than one before proves nothing, unless clocks may differ that much.
    ([NOON], NOON + FIVE, NOON + FIVE),
    ([NOON], NOON + FIVE + 1, None),
    ([NOON, NOON + 2 * FIVE], NOON + FIVE + 1, NOON + 2 * FIVE),
    ([946_684_800_000], NOON, None),
]


@pytest.mark.parametrize(("behind", "floor", "expected"), BOUNDS)
def test_a_record_is_not_younger_than_a_stamp_behind_it(behind, floor, expected):
    assert latest_bound_ms(behind, floor) == expected


def clocks(measured: dict[tuple[str, str], int], leaders: str = "112", **behind: int) -> Clocks:
    """Broker 7 leads the partition, brokers 1, 1 and 2 the coordinators."""
    differ = {pair: Difference(offset_ms=ms, differ_ms=1_000) for pair, ms in measured.items()}
    led = {("__transaction_state", number): {0: broker} for number, broker in enumerate(leaders)}
    named = {("orders", 0): {0: "7"}, **led}
    late = {name[1:]: ms for name, ms in behind.items()}
    return Clocks(topic="orders", named=named, measured=differ, behind=late)


#: Clocks -> how far a stamp of the partition is corrected.
CORRECTIONS = [
    (clocks({}), 0),
    (clocks({("1", "7"): -FIVE}), FIVE),
    (clocks({("1", "7"): -1_000}), 0),
    # A clock that is ahead of most coordinators is ahead. If it is ahead of one of several, that one may be behind.
    (clocks({("1", "7"): FIVE}), -FIVE),
    (clocks({("2", "7"): FIVE}), 0),
    (clocks({("1", "7"): FIVE}, leaders="1122"), 0),
    (clocks({("1", "7"): FIVE}, leaders="11122"), -FIVE),
    (clocks({("1", "7"): FIVE, ("2", "7"): 0}), 0),
    # Another partition of its leader refutes the clock.
    (clocks({}, b7=FIVE), FIVE),
    (clocks({}, b8=FIVE), 0),
]


def shown(ms: int) -> Difference:
    """Of two clocks that one pair compares."""
    return replace(UNKNOWN, shown_ms=ms)


CORRECTIONS += [
    # One pair shows that a clock is behind, and not how far it is ahead.
    (replace(clocks({}), measured={("1", "7"): shown(-FIVE)}), FIVE),
    (replace(clocks({}), measured={("1", "7"): shown(FIVE)}), 0),
]


@pytest.mark.parametrize(
    ("measured", "apart"),
    [
        ({("1", "7"): Difference(offset_ms=-9)}, {"1": 9, "7": 9}),
        ({("1", "7"): Difference(offset_ms=9), ("2", "7"): shown(-FIVE)}, {"1": 9, "2": FIVE, "7": 9}),
        (
            {(n, "7"): Difference(offset_ms=ms) for n, ms in (("1", 4), ("2", 0), ("3", -8))},
            {"1": 4, "2": 0, "3": 8, "7": 4},
        ),
    ],
)
def test_a_clock_is_off_by_what_most_others_say(measured, apart):
    assert off_by(measured) == apart


@pytest.mark.parametrize(("given", "expected"), CORRECTIONS)
def test_a_stamp_is_corrected_by_what_its_clock_was_compared_with(given, expected):
    (stamps,) = corrected([EpochStamps(leader_epoch=0, before_ms=NOON, behind_ms=NOON + 1)], given)
    assert (stamps.before_ms, stamps.behind_ms, stamps.before_last_ms) == (NOON + expected, NOON + 1 + expected, None)


def test_a_leader_that_leads_a_coordinator_is_not_ahead_of_itself():
    given = clocks({("2", "1"): FIVE})
    assert replace(given, named=given.named | {("orders", 0): {0: "1"}}).ahead_ms(0) == 0


def test_the_newest_of_some_times_is_one_that_a_clock_shows():
    assert newest_ms([None, 0, NOON, NOON - 1]) == NOON
    assert newest_ms([None, -5]) is None
