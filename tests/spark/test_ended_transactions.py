"""The end of each transaction that the earlier run warned of."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql.types import StringType, StructField, StructType

from tests.support.frames import frame
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS
from txnlib.spark.reports.ended_transactions import ended_transactions, warned_of
from txnlib.spark.schemas import (
    COVERAGE,
    ENDED_TRANSACTIONS,
    FINDINGS,
    OPEN_TRANSACTIONS,
    PRODUCER_ID_OWNERS,
    PRODUCER_SPANS,
    TRANSACTIONS,
)

RUN = StructField("run_id", StringType())
EARLIER = StructType([*OPEN_TRANSACTIONS.fields, RUN])
#: producer id -> how it ended since
STORIES = {
    1: "DECIDED",
    2: "BY_HAND",
    3: "LOG_START_MOVED",
    4: "GONE",
    5: "NOT_CAPTURED",
    6: "NOT_CAPTURED",  # the copy ends before it
    7: "SPLIT",
    8: "MARKED",
    9: "BY_HAND",  # no coordinator knew its producer id
    10: "TOPIC_GONE",
    11: "BY_HAND",  # its coordinator has written nothing since
    12: "MARKED",  # nor has this one, but it is not known until then
}
STILL_OPEN, SEEN_FROM_ANOTHER_BEGINNING, OPEN_AGAIN, NEVER_WARNED_OF = 21, 22, 23, 24
#: Two-phase commits: prepared just now, for too long by its coordinator, and by its partition.
IN_TIME, FORGOTTEN, SINCE = 31, 32, 33
#: producer id -> its marker
MARKERS = {1: ("COMMIT", 201), **{number: ("ABORT", 200 + number) for number in (2, 7, 8, 9, 11, 12, OPEN_AGAIN)}}
STARTS = {3: 5, 6: 300}
PLACES = {5: 7, 10: 8}
PLACE = {"topic": "orders", "partition": 0}
MARKED_MS = 1_000_000
#: producer id -> its coordinator, and how long before the marker its last record was written. Coordinator 1 is known longer.
COORDINATORS = {8: (1, CLOCKS_DIFFER_MS), 11: (1, CLOCKS_DIFFER_MS + 1), 12: (2, CLOCKS_DIFFER_MS + 1)}


def at(ms):
    return datetime.fromtimestamp(ms / 1000, UTC)


def opened(producer_id, verdict="HANGING", start_offset=None):
    return {
        "topic": "orders",
        "partition": PLACES.get(producer_id, 0),
        "producer_id": producer_id,
        "start_offset": start_offset or STARTS.get(producer_id, 100 + producer_id),
        "verdict": verdict,
        "reason": "PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR" if producer_id == 9 else "WRITTEN_AFTER_MARKER",
        "run_id": "night-2",
        "as_of": datetime(2026, 11, 2, tzinfo=UTC),
    }


@pytest.fixture(scope="module")
def told(spark):
    earlier = [opened(number) for number in (*STORIES, STILL_OPEN, SEEN_FROM_ANOTHER_BEGINNING, OPEN_AGAIN)]
    spans = [
        # The transaction may have begun where nothing was read: only its marker counts.
        {
            **PLACE,
            "producer_id": p,
            "first_offset": 100 + p + p % 2,
            "marker_offset": at,
            "marker_type": kind,
            "marker_ms": MARKED_MS,
        }
        for p, (kind, at) in MARKERS.items()
    ]
    earlier_marker = {**PLACE, "producer_id": 1, "first_offset": 90, "marker_offset": 95, "marker_type": "ABORT", "marker_ms": 4}
    decided = {"producer_id": 1, "markers": [{**PLACE, "marker_offset": 201}, {**PLACE, "marker_offset": 95}]}
    names = {2: "MARKER_WITHOUT_DECISION", 7: "SPLIT_OUTCOME", 8: "OUT_OF_ORDER_SEQUENCE_NUMBER"}
    odd = [{**PLACE, "producer_id": p, "offset": MARKERS[p][1], "name": name} for p, name in names.items()]
    copy = {**PLACE, "is_judged": True, "log_start_offset": 50, "end_offset": 300}
    gone = {"topic": "orders", "partition": 8, "status": "MISSING", "is_judged": False, "is_gone": True}
    owners = [
        {"producer_id": p, "owner": "CURRENT", "coordinator_partition": number, "last_seen": at(MARKED_MS - ms)}
        for p, (number, ms) in COORDINATORS.items()
    ]
    coordinators = [
        {"topic": "__transaction_state", "partition": number, "source": "raw:1", "is_judged": True, "is_decoded": True}
        | {"status": "COMPLETE", "known_until": at(MARKED_MS + CLOCKS_DIFFER_MS + (1 if number == 1 else 0))}
        for number in (1, 2)
    ]
    now = [opened(STILL_OPEN), opened(SEEN_FROM_ANOTHER_BEGINNING, start_offset=130), opened(OPEN_AGAIN, start_offset=250)]
    rows = ended_transactions(
        frame(spark, EARLIER, *earlier),
        frame(spark, OPEN_TRANSACTIONS, *now),
        frame(spark, PRODUCER_SPANS, *spans, earlier_marker),
        frame(spark, TRANSACTIONS, decided),
        frame(spark, PRODUCER_ID_OWNERS, *owners),
        frame(spark, FINDINGS, *odd),
        frame(spark, COVERAGE, copy, gone, *coordinators),
        as_of_ms=0,
    ).collect()
    assert len(rows) == len({row["producer_id"] for row in rows})
    return {row["producer_id"]: row for row in rows}


def test_every_end_is_told_apart(told):
    assert {producer_id: row["how"] for producer_id, row in told.items()} == {**STORIES, OPEN_AGAIN: "MARKED"}


def test_an_abort_that_took_effect_is_confirmed_with_its_marker(told):
    row = told[2]
    assert (row["outcome"], row["marker_offset"], row["run_id_then"]) == ("ABORT", 202, "night-2")
    assert row["says"] == "ended by hand: ABORT marker at offset 202, which no coordinator decided"
    assert told[1]["says"] == "ended by its coordinator's COMMIT marker at offset 201"


def test_every_end_has_its_sentence(told):
    assert all(row["says"] for row in told.values())
    assert len({row["says"] for row in told.values()}) == len(told) - 1  # two were not captured


def test_a_run_warns_of_all_that_need_somebody_and_of_what_it_could_not_look_at(spark, told):
    schema = StructType([*ENDED_TRANSACTIONS.fields, RUN])
    ended = [{**row.asDict(), "run_id": "night-3"} for row in told.values()]
    night = datetime(2026, 11, 2, tzinfo=UTC)
    prepared = {"reason": "TWO_PHASE_COMMIT", "run_id": "night-3"}
    now = [
        {**opened(STILL_OPEN), "run_id": "night-3"},
        opened(NEVER_WARNED_OF, "OPEN"),
        {**opened(IN_TIME, "OPEN"), **prepared, "transaction_start": night - timedelta(minutes=15)},
        {**opened(FORGOTTEN, "OPEN"), **prepared, "transaction_start": night - timedelta(minutes=15, milliseconds=1)},
        {**opened(SINCE, "OPEN"), **prepared, "blocks_since": night - timedelta(days=3)},
    ]
    rows = frame(spark, EARLIER, *now), frame(spark, schema, *ended)
    warned = warned_of(*rows, transaction_max_timeout_ms=900_000).collect()
    unseen = dict.fromkeys([number for number, how in STORIES.items() if how == "NOT_CAPTURED"], "night-2")
    newly = dict.fromkeys([STILL_OPEN, FORGOTTEN, SINCE], "night-3")
    assert {row["producer_id"]: row["run_id"] for row in warned} == newly | unseen
    assert {row["as_of"] for row in warned} == {datetime(2026, 11, 2)}
