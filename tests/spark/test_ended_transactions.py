"""Is it told what became of each transaction that the run before warned of?"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pyspark.sql.types import StringType, StructField, StructType

from txnlib.spark.ended_transactions import ended_transactions
from txnlib.spark.schemas import COVERAGE, OPEN_TRANSACTIONS, PRODUCER_SPANS, TRANSACTIONS

EARLIER = StructType([*OPEN_TRANSACTIONS.fields, StructField("run_id", StringType())])
#: producer id -> how it ended since
STORIES = {1: "DECIDED", 2: "BY_HAND", 3: "LOG_START_MOVED", 4: "GONE", 5: "NOT_CAPTURED"}
STILL_OPEN, NEVER_WARNED_OF, OF_AN_OLDER_RUN = 6, 7, 8


def frame(spark, schema, *rows):
    return spark.createDataFrame([[row.get(name) for name in schema.names] for row in rows], schema)


def opened(producer_id, verdict="HANGING", run_id="night-2", day=2):
    partition = 9 if producer_id == 5 else 0
    offset = 5 if producer_id == 3 else 100 + producer_id
    return {
        "topic": "orders",
        "partition": partition,
        "producer_id": producer_id,
        "start_offset": offset,
        "verdict": verdict,
        "reason": "WRITTEN_AFTER_MARKER",
        "run_id": run_id,
        "as_of": datetime(2026, 11, day, tzinfo=UTC),
    }


@pytest.fixture(scope="module")
def told(spark):
    earlier = [opened(number) for number in (*STORIES, STILL_OPEN)]
    earlier += [opened(NEVER_WARNED_OF, "OPEN"), opened(OF_AN_OLDER_RUN, run_id="night-1", day=1)]
    ends = {1: ("COMMIT", 201), 2: ("ABORT", 202)}
    place = {"topic": "orders", "partition": 0}
    spans = [
        {**place, "producer_id": p, "first_offset": 100 + p, "marker_offset": at, "marker_type": kind, "marker_ms": 5}
        for p, (kind, at) in ends.items()
    ]
    decided = {"producer_id": 1, "markers": [{**place, "marker_offset": 201}]}
    copy = {**place, "is_judged": True, "log_start_offset": 50, "end_offset": 300}
    rows = ended_transactions(
        frame(spark, EARLIER, *earlier),
        frame(spark, OPEN_TRANSACTIONS, opened(STILL_OPEN)),
        frame(spark, PRODUCER_SPANS, *spans),
        frame(spark, TRANSACTIONS, decided),
        frame(spark, COVERAGE, copy),
        as_of_ms=0,
    ).collect()
    return {row["producer_id"]: row for row in rows}


def test_every_end_is_told_apart(told):
    assert {producer_id: row["how"] for producer_id, row in told.items()} == STORIES


def test_an_abort_that_took_effect_is_confirmed_with_its_marker(told):
    row = told[2]
    assert (row["outcome"], row["marker_offset"], row["run_id_then"]) == ("ABORT", 202, "night-2")
    assert row["says"] == "ended by hand: ABORT marker at offset 202, which no coordinator decided"
    assert told[1]["says"] == "ended by its coordinator's COMMIT marker at offset 201"


def test_only_what_the_run_before_warned_of_is_told(told):
    assert not told.keys() & {STILL_OPEN, NEVER_WARNED_OF, OF_AN_OLDER_RUN}
