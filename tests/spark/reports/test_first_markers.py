"""The markers that ended transactions."""

from tests.support.frames import assert_rows, frame
from txnlib.spark.reports.selections import decided_markers, first_markers
from txnlib.spark.schemas import PRODUCER_SPANS, TRANSACTIONS

PLACE = {"topic": "orders", "partition": 0, "producer_id": 1}


def test_the_first_marker_after_the_start_ended_a_transaction(spark):
    spans = [
        # The transaction may have begun where nothing was read: only its marker counts.
        PLACE | {"first_offset": 102, "marker_offset": 201, "marker_type": "COMMIT", "marker_ms": 7},
        PLACE | {"first_offset": 90, "marker_offset": 95, "marker_type": "ABORT", "marker_ms": 4},
        PLACE | {"first_offset": 250, "marker_offset": 260, "marker_type": "ABORT", "marker_ms": 9},
        PLACE | {"first_offset": 300},
        PLACE | {"producer_id": 2, "marker_offset": 150, "marker_type": "ABORT"},
    ]
    opened = spark.createDataFrame(
        [("orders", 0, 1, 101), ("orders", 0, 1, 300), ("orders", 1, 1, 5)],
        "topic string, partition long, producer_id long, start_offset long",
    )
    assert_rows(first_markers(opened, frame(spark, PRODUCER_SPANS, *spans)), [("orders", 0, 1, 101, 201, "COMMIT", 7)])


def test_a_marker_that_a_decision_explains_is_decided(spark):
    fields = TRANSACTIONS["markers"].dataType.elementType
    marked = [tuple((PLACE | {"marker_offset": offset}).get(field.name) for field in fields) for offset in (201, 95, None)]
    transactions = frame(spark, TRANSACTIONS, {"producer_id": 1, "markers": marked}, {"producer_id": 2})
    markers = spark.createDataFrame(
        [("orders", 0, 1, 201), ("orders", 0, 1, 202), ("orders", 0, 2, 95)],
        "topic string, partition long, producer_id long, marker_offset long",
    )
    assert_rows(decided_markers(markers, transactions), [("orders", 0, 1, 201)])
