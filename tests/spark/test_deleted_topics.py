"""Unended transactions that list partitions of deleted topics."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.support.frames import empty, frame
from txnlib.spark.findings.deleted_topic_findings import CHECKPOINTED_WITHIN_MS, deleted_topic_findings
from txnlib.spark.schemas import COORDINATOR_STATES, COVERAGE, PARTITION_ASSIGNMENTS

NOW = 1_700_000_000_000


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
