"""Topics that brokers and notes prove to be deleted."""

from __future__ import annotations

from datetime import datetime

import pytest

from tests.support.frames import empty, noted_leaders, partition_notes
from txnlib.spark.coverage.coverage import coverage
from txnlib.spark.coverage.deleted_topics import with_gone
from txnlib.spark.schemas import CHECKPOINTS, RECORD_BATCHES, SEGMENTS

NOW = 1_700_000_000_000
#: Replicas by partition, as capture.json names them.
NOTED = {("orders", 0): [1, 2], ("orders", 1): [2]}
#: The same by broker, as the checkpoints list them.
LISTED = {1: [("orders", 0)], 2: [("orders", 0), ("orders", 1)]}
MISSING = [("gone", 0), ("gone", 1), ("orders", 7), ("__transaction_state", 3)]


def frames(spark, noted, listed):
    """What `coverage` is given of them."""
    notes = [(*tp, 1, replicas) for tp, replicas in noted.items()]
    return (
        spark.createDataFrame(
            [(*tp, f"{b}") for b, held in listed.items() for tp in held], "topic string, partition int, broker string"
        ),
        partition_notes(spark, notes),
        spark.createDataFrame([(None, None, NOW)], "broker string, folder string, captured_at_ms long"),
    )


def gone(spark, noted, listed):
    missing = spark.createDataFrame([tp for tp in MISSING if tp not in noted], "topic string, partition int")
    rows = with_gone(missing, *frames(spark, noted, listed)).where("is_gone").collect()
    assert {row["checkpointed_at"] for row in rows} <= {datetime.fromtimestamp(NOW / 1000)}
    return {(row["topic"], row["partition"]) for row in rows}


def test_a_topic_that_neither_names_is_gone_and_a_partition_of_a_known_topic_is_not(spark):
    assert gone(spark, NOTED, LISTED) == {("gone", 0), ("gone", 1)}


@pytest.mark.parametrize(
    ("noted", "listed"),
    [
        pytest.param(NOTED, {2: LISTED[2]}, id="a broker was not captured"),
        pytest.param(NOTED, {1: LISTED[1], 2: [("orders", 1)]}, id="one of its log directories was not"),
        pytest.param({("orders", 0): [1, 2]}, LISTED, id="the notes are of a selection"),
        pytest.param({}, LISTED, id="there are no notes"),
        pytest.param({}, {}, id="there is nothing"),
        pytest.param(NOTED | {("gone", 0): [1]}, LISTED, id="only the notes name it"),
    ],
)
def test_where_one_names_what_the_other_does_not_nothing_is_said(spark, noted, listed):
    assert gone(spark, noted, listed) == set()


def test_the_coverage_of_a_capture_tells_it(spark):
    marks = [(f"raw:brokers/{b}", "f", "high_watermark", *tp, 5) for b, held in LISTED.items() for tp in held]
    _, notes, instants = frames(spark, NOTED, LISTED)
    expected = spark.createDataFrame([*NOTED, *MISSING], "topic string, partition int")
    checkpoints = spark.createDataFrame([(*mark, None, None) for mark in marks], CHECKPOINTS)
    batches = empty(spark, RECORD_BATCHES)
    told = coverage(empty(spark, SEGMENTS), batches, checkpoints, notes, noted_leaders(notes), instants, expected).collect()
    assert {(row["topic"], row["partition"]): row["detail"] for row in told} == {
        **dict.fromkeys(NOTED, "not captured; broker 1 leads it"),
        **dict.fromkeys([("orders", 7), ("__transaction_state", 3)], "not captured"),
        **dict.fromkeys([("gone", 0), ("gone", 1)], "its topic no longer exists"),
    }
