"""Decisions and markers: what every history that loses least has in common."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.dossier_samples import DECISION, MARKER, NOON
from txnlib.core.rows import TopicPartition
from txnlib.core.verdicts.clock_bounds import MARKER_SLACK_MS
from txnlib.core.verdicts.dossier import CoordinatorDecision, WrittenMarker
from txnlib.core.verdicts.match import (
    Comparison,
    Histories,
    MarkerGroup,
    StoredMatch,
    has_own_epoch,
    marker_epoch,
    may_be_again,
    stored_match,
)
from txnlib.core.verdicts.whose_clock import Clocks, Difference, PartitionClocks

#: Decisions are of coordinator partition 3.
ALL_OF_ONE = Clocks(named={("", 0): {0: "1"}, ("__transaction_state", 3): {0: "1"}})
ONE_CLOCK = ALL_OF_ONE.of("", 0)
#: Of two brokers that were not compared.
FAR_APART = Clocks(named={("", 0): {0: "2"}, ("__transaction_state", 3): {0: "1"}})
FAR = FAR_APART.of("", 0)


def measured(**difference: int) -> PartitionClocks:
    """Of two brokers that were compared."""
    return replace(FAR_APART, measured={("1", "2"): Difference(**difference)}).of("", 0)


def decision(at: int, *, takes: int | None = 20, **changes) -> CoordinatorDecision:
    completed = None if takes is None else NOON + at + takes
    times = {"start_ms": NOON + at - 60, "said_ms": NOON + at, "prepared_ms": NOON + at, "completed_ms": completed}
    return replace(DECISION, first_record_offset=at, last_record_offset=at + 2, **times | changes)


def marker(at: int, **changes) -> WrittenMarker:
    return replace(MARKER, offset=at, ms=NOON + at, **changes)


#: Changes to a decision at 100 that takes 20 ms, and to its marker at 110; clocks -> how badly they agree, and the same
#: if clocks that were not compared tell nothing.
COSTS = [
    ({}, {}, ONE_CLOCK, 0, 0),
    ({}, {"ms": NOON + 100}, ONE_CLOCK, 0, 0),
    ({}, {"ms": NOON + 120}, ONE_CLOCK, 0, 0),
    ({}, {"ms": NOON + 99}, ONE_CLOCK, None, None),
    ({}, {"ms": NOON + 121}, ONE_CLOCK, None, None),
    ({"completed_ms": None}, {"ms": NOON + 1_000_000}, ONE_CLOCK, 0, 0),
    ({}, {"ms": NOON + 100 - MARKER_SLACK_MS}, FAR, 0, 1),
    ({}, {"ms": NOON + 99 - MARKER_SLACK_MS}, FAR, 1, 1),
    ({}, {"ms": NOON + 121 + MARKER_SLACK_MS}, FAR, 1, 1),
    ({}, {"ms": NOON + 100 - 300_000}, FAR, 1, 1),
    ({}, {"ms": NOON + 99 - 300_000}, FAR, None, None),
    ({}, {"ms": NOON + 120 + 300_000}, FAR, 1, 1),
    ({}, {"ms": NOON + 121 + 300_000}, FAR, None, None),
    ({}, {"ms": NOON + 7_310}, measured(offset_ms=7_200, error_ms=20, differ_ms=1_000), 0, 0),
    ({}, {"ms": NOON + 7_341}, measured(offset_ms=7_200, error_ms=20, differ_ms=1_000), 1, 1),
    ({}, {"ms": None}, ONE_CLOCK, 2, 2),
    ({}, {"ms": 0}, ONE_CLOCK, 2, 2),
    ({"said_ms": None}, {}, ONE_CLOCK, 0, 0),
    ({"said_ms": None, "prepared_ms": None}, {"ms": NOON + 41}, ONE_CLOCK, 0, 0),
    ({"said_ms": None, "prepared_ms": None, "start_ms": None}, {}, ONE_CLOCK, 2, 2),
    ({}, {"type": "ABORT"}, ONE_CLOCK, None, None),
    ({}, {"type": None}, ONE_CLOCK, 0, 0),
    ({}, {"epoch": 6}, ONE_CLOCK, None, None),
    ({"decided_epoch": 6}, {"epoch": 6}, ONE_CLOCK, 0, 0),
    ({"decided_epoch": None}, {"epoch": 6}, ONE_CLOCK, 0, 0),
    ({"decided_epoch": None, "last_record_offset": 100}, {"epoch": 6}, ONE_CLOCK, None, None),
    ({}, {"coordinator_epoch": 18}, ONE_CLOCK, None, None),
    ({}, {"coordinator_epoch": 20}, ONE_CLOCK, 0, 0),
    ({"stamped_epoch": 19}, {"coordinator_epoch": 20}, ONE_CLOCK, None, None),
    ({"stamped_epoch": 19, "completed_ms": None}, {"coordinator_epoch": 20}, ONE_CLOCK, 0, 1),
    ({}, {"coordinator_epoch": None}, ONE_CLOCK, 0, 0),
]


@pytest.mark.parametrize(("of_decision", "of_marker", "clocks", "cost", "strict_cost"), COSTS)
def test_a_marker_fits_by_type_epochs_and_times(of_decision, of_marker, clocks, cost, strict_cost):
    of, written = replace(decision(100), **of_decision), replace(marker(110), **of_marker)
    assert Comparison(clocks).cost(of, written) == cost
    assert Comparison(clocks, is_strict=True).cost(of, written) == strict_cost


@pytest.mark.parametrize(
    ("began", "ended", "client", "is_own"), [(4, 5, 2, True), (5, 5, 2, False), (4, 5, 1, False), (4, 5, None, False),
    (None, 5, 2, False), (4, None, 2, False)]
)  # fmt: skip
def test_an_end_of_transactions_v2_has_an_epoch_of_its_own(began, ended, client, is_own):
    of = replace(decision(0), first_epoch=began, decided_epoch=ended, client_transaction_version=client)
    assert has_own_epoch(of) is is_own


def test_a_time_of_the_value_counts_before_the_append_time():
    late = replace(decision(100), prepared_ms=NOON + 115)
    assert Comparison(ONE_CLOCK).cost(late, marker(110)) == 0
    assert Comparison(ONE_CLOCK).cost(replace(late, said_ms=None), marker(110)) is None


def test_a_last_record_alone_has_the_epoch_of_its_markers():
    assert marker_epoch(replace(decision(1), decided_epoch=None)) is None
    assert marker_epoch(replace(decision(1), decided_epoch=None, last_record_offset=1)) == 5


#: The time of a marker -> how badly clocks agree that a hidden decision wrote it between one that was complete at 120
#: and one that begins at 940, on one clock, and on two that were not compared.
HIDDEN = [(119, None, 1), (120, 0, 0), (940, 0, 0), (941, None, 0), (961, None, 1), (320_000, None, None)]


@pytest.mark.parametrize(("at", "on_one", "on_two"), HIDDEN)
def test_a_hidden_decision_is_between_its_neighbours(at, on_one, on_two):
    around = decision(100), marker(at), decision(1_000)
    assert Comparison(ONE_CLOCK).hidden_cost(*around) == on_one
    assert Comparison(FAR).hidden_cost(*around) == (0 if at == 119 else on_two)
    assert Comparison(FAR, is_strict=True).hidden_cost(*around) == (None if on_two is None else 1)
    assert Comparison(ONE_CLOCK).hidden_cost(None, marker(at), None) == 0


def test_a_marker_is_sent_again_before_the_completion():
    of, own = decision(100), marker(105)
    assert may_be_again(of, own, marker(105 + 20 + MARKER_SLACK_MS))
    assert not may_be_again(of, own, marker(105 + 21 + MARKER_SLACK_MS))
    # Another clock, or no time, tells nothing.
    assert may_be_again(of, own, marker(999, leader_epoch=7))
    assert may_be_again(replace(of, completed_ms=None), own, marker(999))
    assert may_be_again(of, own, replace(marker(999), ms=None))


def histories(
    decisions, markers, clocks=ONE_CLOCK, *, is_deleted=False, is_hiding=False, is_strict=False, has_hole=False
) -> Histories:
    return Histories(
        decisions=decisions,
        markers=markers,
        compared=Comparison(clocks, is_strict=is_strict),
        may_be_deleted=lambda _: is_deleted,
        hides=lambda after: is_hiding and after is not None,
        has_hole=has_hole,
    )


def offsets(found: Histories) -> list[list[int | None]]:
    """The offsets of the markers that each decision may have."""
    return [[None if each is None else each.offset for each in of.markers] for of in found.marked()]


def test_a_deleted_marker_was_in_front_of_all_that_are_left():
    first, second, third = (replace(decision(at), completed_ms=None) for at in (0, 1, 2))
    due = [replace(each, completed_ms=NOON + 900) for each in (first, second, third)]
    near = [replace(marker(at), ms=NOON + 450) for at in (1, 2)]
    assert offsets(histories(due, near, ONE_CLOCK, is_deleted=True)) == [[None], [1], [2]]
    # Compaction leaves holes anywhere.
    assert len(offsets(histories(due, near, ONE_CLOCK, is_deleted=True, has_hole=True))[1]) > 1


def test_a_marker_of_a_hidden_decision_is_of_no_other():
    of = decision(1_000, takes=None)
    near = replace(marker(10), ms=NOON + 1_030)
    assert offsets(histories([of], [near], FAR)) == [[10]]
    (hidden,) = histories([of], [near], FAR, is_hiding=True, is_strict=True).marked()
    assert hidden.markers == (near, None)
    assert hidden.is_marked is None
    (untimed,) = histories([of], [replace(near, ms=None)], is_hiding=True).marked()
    assert untimed.is_marked is None
    # An epoch of its own is of none that is hidden.
    own = replace(of, first_epoch=4, client_transaction_version=2)
    (shown,) = histories([own], [near], FAR, is_hiding=True, is_strict=True).marked()
    assert shown.is_marked is True
    # It was written long after the hidden one was complete.
    (timed,) = histories([of], [near], ONE_CLOCK, is_hiding=True).marked()
    assert timed.is_marked is True


def test_a_decision_has_no_marker_only_if_none_may_be_its_own():
    listed = (TopicPartition("orders", 0),)
    here, later = decision(0, partitions=listed), decision(900_000, partitions=listed)
    assert [each.is_marked for each in histories([here, later], [marker(10)]).marked()] == [True, False]
    assert [each.is_marked for each in histories([here], [], is_deleted=True).marked()] == [None]
    assert [each.is_marked for each in histories([replace(here, partitions=None)], []).marked()] == [None]
    near = [decision(0, partitions=listed), decision(100, partitions=listed)]
    assert [each.is_marked for each in histories(near, [marker(110)], FAR).marked()] == [None, True]


def test_a_marker_is_alone_with_its_decision_if_it_fits_no_other_as_well():
    two = [decision(0), decision(900_000)]
    assert [each.is_alone for each in histories(two, [marker(10)], FAR).marked()] == [True, False]
    near = [decision(0), decision(100)]
    both = histories(near, [marker(10), marker(110)], FAR, is_strict=True).marked()
    assert [(each.is_marked, each.is_alone) for each in both] == [(True, False), (True, False)]
    assert [each.is_alone for each in histories(near, [marker(10), marker(110)]).marked()] == [True, True]


def test_a_pair_is_of_each_other_only():
    listed = (TopicPartition("orders", 0),)
    clocks = measured(error_ms=20, differ_ms=1_000)
    two = [decision(0, partitions=listed), decision(200, partitions=listed)]
    assert histories(two, [marker(10), marker(210)], clocks).pairs == [(0, 0), (1, 1)]
    # Without a pair, it would be the marker of the second, and that of the first deleted.
    assert offsets(histories(two, [marker(10)], clocks, is_deleted=True)) == [[10], [None]]
    # Of two that contradict the order, none; nor where two are near, or where none is due.
    crossed = [replace(marker(210), offset=1), replace(marker(10), offset=2)]
    assert histories(two, crossed, clocks).pairs == []
    assert histories(two, [marker(10), marker(15)], clocks).pairs == []
    assert histories([replace(two[0], completed_ms=None)], [marker(10)], clocks).pairs == []
    assert histories([replace(two[0], partitions=None)], [marker(10)], clocks).pairs == []
    # One that is not complete is in no pair; nor may it have the marker of one.
    waiting = [two[0], decision(490, takes=None, partitions=listed)]
    assert histories(waiting, [marker(10), marker(500)], clocks).fits == [[0, 1], [1, 0]]
    assert histories(waiting, [marker(10), marker(500)], clocks).costs == [[0, None], [None, 0]]
    assert [each.is_alone for each in histories(waiting, [marker(10)], clocks).marked()] == [True, False]


# ---- Every history, one by one


def every_history(given: Histories) -> Iterator[tuple[int, list[int | None]]]:
    """What each history costs, and the marker of each decision."""
    count = len(given.decisions)
    places = [each / 2 for each in range(-1, 2 * count)]
    for owners in product(places, repeat=len(given.markers)):
        if list(owners) == sorted(owners) and (cost := cost_of(given, owners)) is not None:
            yield cost, [owners.index(number) if number in owners else None for number in range(count)]


def cost_of(given: Histories, owners: tuple[float, ...]) -> int | None:
    """`owners`: the decision of each marker; between two: of none that is known, between these. None: no history."""
    if any(owners[at] != row for row, at in given.pairs):
        return None
    total = 0
    for at, (owner, written) in enumerate(zip(owners, given.markers, strict=True)):
        if owner != int(owner):
            total += hidden_cost(given, int(owner + 0.5), written)
            continue
        of, own = given.decisions[int(owner)], owners.index(owner)
        cost = given.costs[int(owner)][at]
        if cost is None or (own < at and not may_be_again(of, given.markers[own], written)):
            return None
        total += cost + (1_000 if own < at and written.first_offset is not None else 0)
    for number, each in enumerate(given.decisions):
        if number not in owners and each.completed_ms is not None and each.partitions is not None:
            is_in_front = not any(owner < number for owner in owners)
            total += 0 if is_in_front and given.may_be_deleted(each) else 1_000
    return total


def hidden_cost(given: Histories, place: int, written: WrittenMarker) -> int:
    before = given.decisions[place - 1] if place else None
    after = given.decisions[place] if place < len(given.decisions) else None
    cost = given.compared.hidden_cost(before, written, after) if given.hides(after) else None
    return 1_000 if cost is None else cost


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 400), st.booleans()), max_size=3),
    st.lists(st.tuples(st.integers(0, 400), st.booleans()), max_size=4),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_what_is_said_of_a_marker_is_what_all_histories_that_lose_least_say(
    decided, marked, is_deleted, is_hiding, is_strict
):
    listed = (TopicPartition("orders", 0),)
    decisions = [decision(at, takes=20 if ends else None, partitions=listed) for at, ends in sorted(decided)]
    markers = [replace(marker(at), first_offset=at if ends else None) for at, ends in sorted(marked)]
    clocks = measured(error_ms=20, differ_ms=60)
    of = histories(decisions, markers, clocks, is_deleted=is_deleted, is_hiding=is_hiding, is_strict=is_strict)
    every = list(every_history(of))
    least = min(cost for cost, _ in every)
    expected = [
        {None if own[number] is None else markers[own[number]] for cost, own in every if cost == least}
        for number in range(len(decisions))
    ]
    assert [set(each.markers) for each in of.marked()] == expected


# ---- What is stored


def test_a_group_stores_one_marker_or_those_that_it_may_be():
    two, near = (decision(0), decision(200)), (replace(marker(100), ms=NOON + 5_000),)
    begun = replace(FAR_APART, begun=frozenset({("", 0)}))
    group = MarkerGroup(topic="", partition=0, decisions=two, markers=near)
    assert stored_match(group, begun) == [StoredMatch(possible_offsets=(100,)), StoredMatch(possible_offsets=(100,))]
    assert stored_match(group, FAR_APART) == [StoredMatch(), StoredMatch(number=0)]
    assert stored_match(replace(group, markers=()), FAR_APART) == [StoredMatch(), StoredMatch()]


def test_of_a_large_group_the_newest_are_compared():
    many = tuple(decision(1_000 * number) for number in range(205))
    group = MarkerGroup(topic="", partition=0, decisions=many, markers=(marker(204_010),))
    assert stored_match(group, ALL_OF_ONE) == [*[StoredMatch()] * 204, StoredMatch(number=0)]


def test_only_in_front_of_a_group_without_a_pair_a_decision_may_be_hidden():
    """By two clocks, the marker is as near to the decision as to one that was complete when that began."""
    waiting, near = decision(1_000, takes=None), replace(marker(900), ms=NOON + 970)
    group = MarkerGroup(topic="", partition=0, decisions=(waiting,), markers=(near,))
    assert stored_match(group, FAR_APART) == [StoredMatch(possible_offsets=(900,))]
    assert stored_match(replace(group, has_pair=True), FAR_APART) == [StoredMatch(number=0)]
    behind = replace(group, decisions=(decision(0), waiting), markers=(marker(10), near))
    assert stored_match(behind, FAR_APART) == [StoredMatch(number=0), StoredMatch(number=1)]
