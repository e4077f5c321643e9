"""Brokers' clocks around a record: an interval, or nothing."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from tests.support.dossier_samples import MINUTE, NOON
from txnlib.core.verdicts.case_facts import CaseFacts
from txnlib.core.verdicts.clock_bounds import MARKER_SLACK_MS, AllBounds, ClockBounds, ComparedClocks
from txnlib.core.verdicts.cluster_facts import ClusterFacts, Thresholds
from txnlib.core.verdicts.dossier import Dossier, EpochStamps, OpenSpan
from txnlib.core.verdicts.whose_clock import UNKNOWN, Clocks, Difference, newest_ms, written_by_ms

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
    assert written_by_ms(behind, floor) == expected


def clocks(measured: dict[tuple[str, str], int], leaders: str = "112", **behind: int) -> Clocks:
    """Broker 7 leads the partition, brokers 1, 1 and 2 the coordinators."""
    differ = {pair: Difference(offset_ms=ms, differ_ms=1_000) for pair, ms in measured.items()}
    led = {("__transaction_state", number): {0: broker} for number, broker in enumerate(leaders)}
    named = {("orders", 0): {0: "7"}, **led}
    late = {name[1:]: ms for name, ms in behind.items()}
    return Clocks(named=named, measured=differ, behind=late)


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


def bound(there: str, lower: int, upper: int, pairs: int = 3, log: tuple[str, int, int] | None = None) -> ClockBounds:
    """What pairs show of the clock of broker 7 and of one of a coordinator."""
    topic, partition, leader_epoch = log or (None, None, None)
    return ClockBounds(
        coordinator_clock=there, clock="7", lower_ms=lower, upper_ms=upper, pairs=pairs, topic=topic,
        partition=partition, leader_epoch=leader_epoch,
    )  # fmt: skip


def bounded(*bounds: ClockBounds) -> Clocks:
    return replace(clocks({}), bounds=bounds)


CORRECTIONS += [
    (bounded(bound("1", -FIVE, -FIVE + 50)), FIVE + MARKER_SLACK_MS),
    (bounded(bound("1", -FIVE, -FIVE + 50, pairs=1)), FIVE),
    (bounded(bound("1", FIVE, FIVE + 50)), -FIVE + MARKER_SLACK_MS),
    (bounded(bound("1", FIVE, FIVE + 50, pairs=2)), 0),
]
#: Bounds -> how far a stamp of leader epoch 0 may be off.
MOVES = [
    ((), 0),
    ((bound("1", 0, 20),), 0),
    ((bound("1", 20, 0),), 0),
    ((bound("1", 21, 0),), 21),
    # Most others say that it did not move.
    ((bound("1", 90, 0), bound("2", 0, 20)), 0),
    ((bound("1", 90, 0), bound("2", 0, 20), bound("3", 80, 0)), 80),
    # In this leader epoch of this log, whatever most others say.
    ((bound("2", 0, 20), bound("1", 90, 0, log=("orders", 0, 0))), 90),
    ((bound("2", 0, 20), bound("1", 90, 0, log=("orders", 0, 1))), 0),
]


@pytest.mark.parametrize(("bounds", "moved"), MOVES)
def test_a_stamp_is_off_by_as_much_as_its_clock_moved(bounds, moved):
    of = facts_of(bounded(*bounds))
    assert of.moved_ms("orders", 0, 0) == moved
    (stamps,) = of.stamps
    assert (stamps.before_ms, stamps.behind_ms) == (NOON - moved, NOON + 1 + moved)


def test_the_pairs_of_the_producer_itself_do_not_count():
    own = replace(bound("1", 90, 0), producer_id=5)
    assert facts_of(bounded(own)).moved_ms("orders", 0, 0) == 0
    assert facts_of(bounded(own), producer_id=6).moved_ms("orders", 0, 0) == 90


@pytest.mark.parametrize("seed", range(20))
def test_without_a_producer_clocks_are_as_if_it_had_no_pairs(seed):
    """By brute force, on random bounds of few clocks."""
    draw = Random(seed)

    def some() -> ClockBounds:
        log = draw.choice([None, None, ("orders", 0, draw.randrange(2))])
        of = bound(
            draw.choice("1237"), draw.randrange(-9, 9) * 50, draw.randrange(-9, 9) * 50, draw.randrange(1, 5), log
        )
        return replace(of, clock=draw.choice("127"), producer_id=draw.choice([None, 5, 6, 7]))

    every = {
        (each.coordinator_clock, each.clock, each.log, each.producer_id): each for each in (some() for _ in range(40))
    }
    given, rest = (
        bounded(*every.values()).compared(5),
        bounded(*(each for each in every.values() if each.producer_id != 5)).compared(5),
    )
    for clock in "1237":
        assert sorted(map(str, given.pairs_of(clock))) == sorted(map(str, rest.pairs_of(clock)))
        assert (given.off_ms(clock), given.moved_ms(clock)) == (rest.off_ms(clock), rest.moved_ms(clock))
        assert [given.apart_ms(clock, other) for other in "1237"] == [rest.apart_ms(clock, other) for other in "1237"]
    assert [given.moved_at_ms("orders", 0, epoch) for epoch in (0, 1)] == [
        rest.moved_at_ms("orders", 0, epoch) for epoch in (0, 1)
    ]


def facts_of(given: Clocks, producer_id: int = 5) -> CaseFacts:
    """An open transaction on the partition, with a stamp on each side."""
    stamps = (EpochStamps(leader_epoch=0, before_ms=NOON, behind_ms=NOON + 1),)
    span = OpenSpan(topic="orders", partition=0, start_offset=0, producer_epoch=0, stamps=stamps)
    facts = ClusterFacts(thresholds=Thresholds(as_of_ms=NOON), clocks=given)
    return CaseFacts(dossier=Dossier(producer_id=producer_id, open=(span,)), span=span, facts=facts)


@pytest.mark.parametrize(("given", "expected"), CORRECTIONS)
def test_a_stamp_is_corrected_by_what_its_clock_was_compared_with(given, expected):
    (stamps,) = facts_of(given).stamps
    assert (stamps.before_ms, stamps.behind_ms, stamps.before_last_ms) == (NOON + expected, NOON + 1 + expected, None)


def test_a_leader_that_leads_a_coordinator_is_not_ahead_of_itself():
    given = clocks({("2", "1"): FIVE})
    given = replace(given, named=given.named | {("orders", 0): {0: "1"}})
    assert given.of("orders", 0).ahead_ms(0, given.compared(5)) == 0


def test_the_newest_of_some_times_is_one_that_a_clock_shows():
    assert newest_ms([None, 0, NOON, NOON - 1]) == NOON
    assert newest_ms([None, -5]) is None


def compared(*bounds: ClockBounds, **facts: dict[str, int]) -> ComparedClocks:
    return ComparedClocks(AllBounds(bounds), **{"behind": {}, **facts})


#: Of a partition's clock less a coordinator's, the bounds and how many pairs -> what the one shows less the other.
APART = [
    ((100, 300, 3), (80, 320)),
    ((300, 100, 3), (80, 320)),
    ((-300, -100, 3), (-320, -80)),
    # Fewer than three tell nothing but how far each is off at least, 80 ms.
    ((100, 300, 2), (-FIVE - 160, FIVE + 160)),
]


@pytest.mark.parametrize(("bounds", "expected"), APART)
def test_two_clocks_are_apart_the_same_in_both_directions(bounds, expected):
    least, most, pairs = bounds
    found = compared(ClockBounds(coordinator_clock="a", clock="b", lower_ms=least, upper_ms=most, pairs=pairs))
    assert found.apart_ms("a", "b") == expected
    assert found.apart_ms("b", "a") == (-expected[1], -expected[0])


def test_a_clock_is_off_as_far_as_something_shows():
    found = compared(behind={"a": 7_000}, unknown={"a": 5, "b": 5})
    assert [found.off_ms(clock) for clock in "abc"] == [7_000, 5, 0]
    pair = ClockBounds(coordinator_clock="a", clock="b", lower_ms=9_020, upper_ms=9_020, pairs=1)
    found = compared(pair, behind={"a": 7_000, "b": 10_000}, unknown={"a": 99_000})
    assert [found.off_ms(clock) for clock in "abc"] == [9_000, 10_000, 0]
