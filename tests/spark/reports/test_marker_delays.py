"""How soon markers followed the newest decisions."""

from datetime import UTC, datetime

from tests.support.frames import assert_rows, frame
from txnlib.spark.reports.selections import marker_delays
from txnlib.spark.schemas import TRANSACTIONS

DECIDED = 1_000_000


def at(ms):
    return datetime.fromtimestamp(ms / 1000, UTC)


def decision(producer_id, took_ms, decided_ms=DECIDED, applied_ms=0):
    marker = {"topic": "orders", "partition": 1, "marker_offset": 9, "clock_offset_ms": applied_ms}
    marker |= {"marker_ms": None if took_ms is None else decided_ms + took_ms}
    fields = TRANSACTIONS["markers"].dataType.elementType
    return {
        "transactional_id": f"id-{producer_id}",
        "coordinator_partition": 0,
        "producer_id": producer_id,
        "start": at(decided_ms - 100),
        "time_to_decide_ms": 100,
        "completed": at(decided_ms + 10),
        "markers": [tuple(marker.get(field.name) for field in fields)],
    }


def test_the_newest_decision_of_each_producer_counts(spark):
    transactions = [
        decision(1, 12, applied_ms=-7),
        decision(2, 90, applied_ms=5),
        # An older decision of a producer counts no more: a leader may have moved since.
        decision(2, -500, decided_ms=DECIDED - 50_000),
        decision(3, None),
        {**decision(4, 1), "completed": None},
    ]
    assert_rows(marker_delays(frame(spark, TRANSACTIONS, *transactions)), [(0, "orders", 1, 2, 12, -7)])
