"""Topics that brokers and notes prove to be deleted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.support.frames import empty, frame, noted_leaders, partition_notes
from txnlib.spark.coverage.coverage import coverage
from txnlib.spark.coverage.deleted_topics import with_gone
from txnlib.spark.findings.deleted_topic_findings import CHECKPOINTED_WITHIN_MS, deleted_topic_findings
from txnlib.spark.schemas import CHECKPOINTS, COORDINATOR_STATES, COVERAGE, PARTITION_ASSIGNMENTS, RECORD_BATCHES, SEGMENTS

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


def at(ms):
    return datetime.fromtimestamp(NOW / 1000, UTC) + timedelta(milliseconds=ms)


def record(id_, state, partitions, ms):
    return {"transactional_id": id_, "coordinator_partition": 3, "offset": 8, "state": state, "producer_id": 7} | {
        "is_tombstone": False,
        "timestamp_ms": NOW + ms,
        "partitions": partitions,
    }


def test_an_unended_transaction_that_lists_it_is_found(spark):
    copies = [{"topic": "gone", "partition": p, "status": "MISSING", "is_gone": True, "checkpointed_at": at(0)} for p in (0, 1)]
    listed, old = [("gone", 0), ("gone", 1), ("orders", 0)], -CHECKPOINTED_WITHIN_MS - 1
    records = [
        record("ongoing", "Ongoing", listed, old),
        record("prepared", "PrepareAbort", listed[:1], old),
        record("of another topic", "Ongoing", listed[2:], old),
        record("younger than the checkpoints", "Ongoing", listed, old + 1),
        record("ended", "CompleteAbort", [], old),
    ]
    states = frame(spark, COORDINATOR_STATES, *records)
    covered = frame(spark, COVERAGE, *copies)
    found = {
        row["transactional_id"]: row
        for row in deleted_topic_findings(states, covered, empty(spark, PARTITION_ASSIGNMENTS)).collect()
    }
    assert {id_: row["evidence"] for id_, row in found.items()} == {
        "ongoing": "Ongoing with gone-0, gone-1",
        "prepared": "PrepareAbort with gone-0",
    }
    assert (found["ongoing"]["topic"], found["ongoing"]["partition"], found["ongoing"]["offset"]) == ("__transaction_state", 3, 8)
