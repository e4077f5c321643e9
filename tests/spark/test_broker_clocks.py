"""The clocks of brokers, from decisions and their markers."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.support.frames import frame
from txnlib.spark.reports.broker_clocks import broker_clocks
from txnlib.spark.schemas import COVERAGE, TRANSACTIONS

#: Partition of orders -> its leader; partition of __transaction_state -> its leader.
LED, COORDINATED = {0: "1", 1: "2", 2: "3", 3: None}, {0: "1", 1: "2"}
AHEAD = 47_000
DECIDED = 1_000_000


def at(ms):
    return datetime.fromtimestamp(ms / 1000, UTC)


def decision(producer_id, coordinator, partition, took_ms, decided_ms=DECIDED, applied_ms=0):
    marker = {
        "topic": "orders",
        "partition": partition,
        "marker_offset": 9,
        "marker_ms": decided_ms + took_ms,
        "clock_offset_ms": applied_ms,
    }
    fields = TRANSACTIONS["markers"].dataType.elementType
    return {
        "transactional_id": f"id-{producer_id}",
        "coordinator_partition": coordinator,
        "producer_id": producer_id,
        "start": at(decided_ms - 100),
        "time_to_decide_ms": 100,
        "completed": at(decided_ms + 10),
        "markers": [tuple(marker.get(field.name) for field in fields)],
    }


def test_markers_in_both_directions_enclose_the_offset(spark):
    judged = [("orders", LED), ("__transaction_state", COORDINATED)]
    coverage = [
        {"topic": topic, "partition": number, "source": "raw", "leader": leader, "is_judged": True}
        for topic, led in judged
        for number, leader in led.items()
    ]
    transactions = [
        decision(1, 0, 1, AHEAD + 12, applied_ms=AHEAD),
        decision(2, 0, 1, AHEAD + 90, applied_ms=AHEAD),
        # an older decision of a producer counts no more: a leader may have moved since
        decision(2, 0, 1, -500, decided_ms=DECIDED - 50_000),
        decision(3, 1, 0, -AHEAD + 8),
        decision(4, 0, 2, 5),
        decision(5, 0, 0, 3),  # one clock
        decision(6, 0, 3, 4),  # nobody knows its leader
    ]
    found = broker_clocks(frame(spark, TRANSACTIONS, *transactions), frame(spark, COVERAGE, *coverage), as_of_ms=DECIDED)
    shown = ("broker", "other_broker", "offset_ms", "error_ms", "basis", "samples", "samples_back", "applied_ms", "is_far")
    assert [tuple(row[name] for name in shown) for row in found.orderBy("broker", "other_broker").collect()] == [
        ("1", "2", AHEAD + 2, 10, "TWO_WAY", 2, 1, AHEAD, True),
        ("1", "3", -495, 500, "ONE_WAY", 1, 0, 0, False),
    ]
