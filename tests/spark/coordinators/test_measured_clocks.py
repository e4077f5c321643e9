"""Measured clocks, on both sides of each limit."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.frames import frame
from txnlib.core.copies import CoverageRow
from txnlib.core.verdicts.whose_clock import UNKNOWN
from txnlib.spark.coordinators.measured_clocks import measured_clocks
from txnlib.spark.schemas import TABLES

NOON = 1_710_000_000_000
COORDINATOR, ORDERS = ("__transaction_state", 3), ("orders", 0)
NOTED = [
    CoverageRow(*place, is_judged=True, leader=leader, status="COMPLETE", leader_epoch=0)
    for place, leader in ((COORDINATOR, "1"), (ORDERS, "2"))
]


def decided(producer_id: int, at: int, offset: int) -> list[dict[str, Any]]:
    """The records of a COMMIT that was decided at an instant."""
    of = {"transactional_id": f"id-{producer_id}", "coordinator_partition": 3, "producer_id": producer_id}
    of |= {"transaction_number": 1, "producer_epoch": 0, "coordinator_epoch": 0, "start_ms": at - 1_000}
    place = {"topic": ORDERS[0], "partition": ORDERS[1]}
    return [
        of
        | {"offset": offset, "state": "PrepareCommit", "timestamp_ms": at, "last_update_ms": at, "partitions": [place]},
        of | {"offset": offset + 1, "state": "CompleteCommit", "timestamp_ms": at + 30, "last_update_ms": at + 20},
    ]


def shown(spark, ahead: list[int], *, is_whole: bool = False, epoch: int = 0) -> list[tuple[int, int, int, int]]:
    """What is measured, if the markers of producers are stamped so many ms after their decisions."""
    states, spans = [], []
    for number, ms in enumerate(ahead):
        at = NOON + 60_000 * number
        states += decided(number, at, 2 * number + (0 if is_whole else 10))
        of = {"topic": ORDERS[0], "partition": ORDERS[1], "producer_id": number, "marker_type": "COMMIT"}
        of |= {"marker_offset": number, "marker_epoch": epoch, "marker_leader_epoch": 0, "marker_ms": at + ms}
        spans.append(of)
    copies = [{"topic": ORDERS[0], "partition": ORDERS[1], "source": "raw:2", "is_whole": is_whole}]
    found = measured_clocks(
        frame(spark, TABLES["coordinator_states"], *states),
        frame(spark, TABLES["producer_spans"], *spans),
        spark.createDataFrame(copies, "topic string, partition int, source string, is_whole boolean"),
        NOTED,
        (),
    ).collect()
    assert {(row["coordinator_clock"], row["clock"]) for row in found} <= {("1", "2")}
    return [(row["offset_ms"], row["error_ms"], row["differ_ms"], row["shown_ms"]) for row in found]


NOT_MEASURED = (UNKNOWN.offset_ms, UNKNOWN.error_ms, UNKNOWN.differ_ms)


@pytest.mark.parametrize(
    ("ahead", "expected"),
    [
        # The fastest markers enclose the offset; two clocks that agree to the millisecond may still be 20 ms apart.
        ([150, 150, 150], [(150, 20, 1_000, 0)]),
        ([-600_000, -600_000, -599_900, -599_900], [(-600_000, 100, 1_000, 0)]),
        # Too few pairs, or pairs that disagree by more than a second, are no estimate.
        ([150, 150], []),
        ([0, 0, 1_001, 1_001], []),
    ],
)
def test_three_pairs_that_agree_within_a_second_measure_an_offset(spark, ahead, expected):
    assert shown(spark, ahead) == expected


def test_a_single_pair_of_whole_logs_shows_how_far_clocks_are_apart_at_most(spark):
    assert shown(spark, [600_000], is_whole=True) == [(*NOT_MEASURED, 600_000)]
    assert shown(spark, [600_000]) == []


def test_a_marker_of_another_epoch_is_of_another_decision(spark):
    assert shown(spark, [150, 150, 150], epoch=1) == []
