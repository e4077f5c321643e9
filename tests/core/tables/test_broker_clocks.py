"""The clocks of brokers, from decisions and their markers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from txnlib.core.copies import CoverageRow
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.tables.broker_clocks import ClockPair, MarkerDelays, broker_clocks

#: Partition of orders -> its leader; partition of __transaction_state -> its leader.
LED, COORDINATED = {0: "1", 1: "2", 2: "3", 3: None, 4: "-1"}, {0: "1", 1: "2"}
AHEAD = 47_000
COVERAGE = [
    CoverageRow(topic, number, leader=leader, is_judged=True)
    for topic, led in (("orders", LED), (TRANSACTION_STATE_TOPIC, COORDINATED))
    for number, leader in led.items()
]
THERE = MarkerDelays(0, "orders", 1, samples=2, least_ms=AHEAD + 12, applied_ms=AHEAD)
BACK = MarkerDelays(1, "orders", 0, samples=1, least_ms=-AHEAD + 8, applied_ms=0)


def clocks(*delays: MarkerDelays) -> list[ClockPair]:
    return list(broker_clocks(COVERAGE, delays, as_of_ms=1))


def test_markers_in_both_directions_enclose_the_offset() -> None:
    (row,) = clocks(THERE, BACK)
    assert (row.broker, row.other_broker, row.offset_ms, row.error_ms) == ("1", "2", AHEAD + 2, 10)
    assert (row.basis.value, row.samples, row.samples_back, row.applied_ms, row.is_far) == (
        "TWO_WAY",
        2,
        1,
        AHEAD,
        True,
    )


def test_one_direction_is_a_pair_too() -> None:
    (row,) = clocks(MarkerDelays(0, "orders", 2, samples=1, least_ms=5, applied_ms=0))
    assert (row.broker, row.other_broker, row.offset_ms, row.error_ms) == ("1", "3", -495, 500)
    assert (row.basis.value, row.samples, row.samples_back, row.applied_ms, row.is_far) == ("ONE_WAY", 1, 0, 0, False)


def test_the_fastest_marker_of_all_partitions_of_two_brokers_counts() -> None:
    slow = replace(THERE, samples=3, least_ms=AHEAD + 90, applied_ms=None)
    assert [(row.upper_ms, row.samples) for row in clocks(slow, THERE, BACK)] == [(AHEAD + 12, 5)]


def test_what_was_applied_in_the_other_direction_counts_with_the_other_sign() -> None:
    (row,) = clocks(replace(THERE, applied_ms=0), replace(BACK, applied_ms=-AHEAD))
    assert row.applied_ms == AHEAD
    (row,) = clocks(replace(THERE, applied_ms=5), replace(THERE, applied_ms=-7))
    assert row.applied_ms == -7, "the largest, whatever its sign"


@pytest.mark.parametrize(
    "delays",
    [
        pytest.param(MarkerDelays(0, "orders", 0, 1, 3, 0), id="one clock"),
        pytest.param(MarkerDelays(0, "orders", 3, 1, 3, 0), id="nobody knows its leader"),
        pytest.param(MarkerDelays(0, "orders", 4, 1, 3, 0), id="it has no leader"),
        pytest.param(MarkerDelays(9, "orders", 1, 1, 3, 0), id="nobody knows the leader of its coordinator"),
        pytest.param(MarkerDelays(0, "orders", 1, 0, None, 0), id="no time is known"),
    ],
)
def test_markers_that_compare_no_clocks(delays: MarkerDelays) -> None:
    assert clocks(delays) == []


def test_only_the_judged_copy_names_the_leader() -> None:
    other = replace(COVERAGE[1], leader="9", is_judged=False)
    (row,) = broker_clocks([*COVERAGE, other], [THERE], as_of_ms=1)
    assert row.other_broker == "2"
