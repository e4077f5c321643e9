"""The roles of copies, and up to when each is known."""

from __future__ import annotations

import pytest

from tests.support.frames import empty, noted_leaders, partition_notes
from txnlib.core.verdicts.copies import Copy, End, LeaderBasis, Role, known_until_ms
from txnlib.spark.coverage.coverage import coverage
from txnlib.spark.schemas import CHECKPOINTS, RECORD_BATCHES, SEGMENTS

NOW = 1_700_000_000_000
LONG, SHORT = 20, 10
LOST = LeaderBasis.METADATA_LOG_DAMAGED.value

#: (copies by source, with the offset at which each ends; leader; replicas) -> role of each.
GRID = {
    "each broker has a folder": ({"raw:1": LONG, "raw:2": LONG}, 1, [1, 2], ["LEADER", "OTHER"]),
    "the leader's folder is deeper": ({"raw:b/1/disk": LONG, "raw:b/2/disk": LONG}, 2, [1, 2], ["OTHER", "LEADER"]),
    "nobody noted the leader": ({"raw:1": LONG, "raw:2": SHORT}, None, None, ["FURTHEST", "OTHER"]),
    "no broker leads, and all replicas are there": ({"raw:1": SHORT, "raw:2": LONG}, -1, [1, 2], ["OTHER", "LAST_LEADER"]),
    "no broker leads, and one replica is not there": ({"raw:1": SHORT, "raw:2": LONG}, -1, [1, 2, 3], ["OTHER", "OTHER"]),
    "the folder names no broker, which may be any": ({"text:.": LONG}, 1, [1, 2], ["FURTHEST"]),
    "the folder names no broker, and no replicas are noted": ({"text:.": LONG}, 1, None, ["FURTHEST"]),
    "the folder names no broker, and there is one replica": ({"text:.": LONG}, 1, [1], ["LEADER"]),
    "the folder has a name of its own": ({"raw:kafka-logs": LONG}, 1, [1], ["LEADER"]),
    "a copy without a broker beside a longer one": ({"raw:1": LONG, "text:deep": SHORT}, 1, [1], ["LEADER", "OTHER"]),
    "no broker leads, and the folder names none": ({"text:.": LONG}, -1, [1], ["OTHER"]),
    "the copy of another broker": ({"raw:7": LONG}, 1, [1], ["OTHER"]),
    "a second log directory of the leader": ({"raw:1/2": LONG, "raw:2": LONG}, 1, [1, 2], ["LEADER", "OTHER"]),
    # Followers are never ahead of their leader, so the note is outdated.
    "a copy that is longer than the noted leader's": ({"raw:1": SHORT, "raw:2": LONG}, 1, [1, 2], ["OTHER", "FURTHEST"]),
    "console text proves nothing": ({"raw:1": SHORT, "printed:2": LONG}, 1, [1, 2], ["LEADER", "OTHER"]),
}


def told(spark, cases, *, captured=NOW, **metadata):
    """The coverage of each case, a topic of its own: (copies, leader, replicas, stamp, tail)."""
    rows, notes = [], []
    for topic, (copies, leader, replicas, stamped, tail) in cases.items():
        notes += [] if leader is None else [(topic, 0, leader, replicas)]
        for source, end in copies.items():
            row = {"topic": topic, "partition": 0, "source": source, "path": source, "kind": source.partition(":")[0]} | {
                "segment_base_offset": 0,
                "first_offset": 0,
                "end_offset": end,
                "bytes": 1,
                "batches": 1,
                "tail": tail,
                "is_decoded": True,
                "newest_broker_ms": stamped,
                "unreadable": [],
            }
            rows.append([row.get(name) for name in SEGMENTS.names])
    noted = partition_notes(spark, notes)
    found = coverage(
        spark.createDataFrame(rows, SEGMENTS),
        empty(spark, RECORD_BATCHES),
        empty(spark, CHECKPOINTS),
        noted,
        noted_leaders(noted),
        spark.createDataFrame(
            [] if captured is None else [(None, None, captured)], "broker string, folder string, captured_at_ms long"
        ),
        spark.createDataFrame([], "topic string, partition int"),
        **metadata,
    )
    by_copy = {(row["topic"], row["source"]): row for row in found.collect()}
    return {topic: [by_copy[topic, source] for source in case[0]] for topic, case in cases.items()}


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({}, ["CAPTURE_JSON", None, None]),
        ({"metadata_basis": LeaderBasis.METADATA_LOG}, ["CAPTURE_JSON", None, None]),
        ({"metadata_basis": LeaderBasis.METADATA_LOG, "hides_leaders": True}, ["CAPTURE_JSON", LOST, None]),
        ({"metadata_basis": LeaderBasis.METADATA_LOG_DAMAGED, "hides_leaders": True}, ["CAPTURE_JSON", LOST, LOST]),
    ],
    ids=["no metadata log", "a whole one", "one without its begin", "a damaged one"],
)
def test_a_leader_that_nobody_names_may_be_lost_in_the_metadata_log(spark, metadata, expected):
    """Of a note that another copy refutes, a log without its begin but with its end shows no newer leader."""
    cases = {
        "noted": ({"raw:1": LONG}, 1, [1], NOW, "CLEAN"),
        "not noted": ({"raw:1": LONG}, None, None, NOW, "CLEAN"),
        "refuted": ({"raw:1": SHORT, "raw:2": LONG}, 1, [1, 2], NOW, "CLEAN"),
    }
    rows = told(spark, cases, **metadata)
    assert [rows[topic][0]["leader_basis"] for topic in cases] == expected


def test_the_role_of_each_copy(spark):
    found = told(spark, {name: (*case[:3], NOW - 5, "CLEAN") for name, case in GRID.items()})
    assert {name: [row["role"] for row in rows] for name, rows in found.items()} == {name: case[3] for name, case in GRID.items()}


@pytest.mark.parametrize("captured", [None, NOW])
def test_columns_and_core_agree_up_to_when_a_copy_is_known(spark, captured):
    copies = {"raw:1": LONG, "raw:2": LONG}
    stamps, tails = [None, NOW - 5, NOW + 5], ["CLEAN", "TORN"]
    cases = {f"{stamped}-{tail}": (copies, 1, [1, 2], stamped, tail) for stamped in stamps for tail in tails}
    for name, rows in told(spark, cases, captured=captured).items():
        for row in rows:
            role, end, stamped = Role(row["role"]), End(row["ends"]), cases[name][3]
            copy = Copy(role=role, end=end, captured_at_ms=captured, newest_broker_ms=stamped)
            known = None if row["known_until"] is None else round(row["known_until"].timestamp() * 1000)
            assert known == known_until_ms(copy), (name, role)


@pytest.mark.parametrize(
    ("high_watermark", "expected"), [(None, ("TORN", "PARTIAL")), (0, ("WHOLE", "COMPLETE")), (9, ("SHORT", "PARTIAL"))]
)
def test_a_text_without_batches_is_whole_only_by_a_high_watermark(spark, high_watermark, expected):
    row = {"topic": "empty", "partition": 0, "source": "text:1", "path": "empty.txt", "kind": "text", "segment_base_offset": 0}
    row |= {"bytes": 0, "batches": 0, "tail": "EMPTY_OR_CUT", "is_decoded": True, "unreadable": []}
    mark = {"topic": "empty", "partition": 0, "source": "raw:1", "name": "high_watermark", "value": high_watermark}
    marks = [] if high_watermark is None else [[mark.get(name) for name in CHECKPOINTS.names]]
    noted = partition_notes(spark, [("empty", 0, 1, [1])])
    (found,) = coverage(
        spark.createDataFrame([[row.get(name) for name in SEGMENTS.names]], SEGMENTS),
        empty(spark, RECORD_BATCHES),
        spark.createDataFrame(marks, CHECKPOINTS),
        noted,
        noted_leaders(noted),
        spark.createDataFrame([(None, None, NOW)], "broker string, folder string, captured_at_ms long"),
        spark.createDataFrame([], "topic string, partition int"),
    ).collect()
    assert (found["ends"], found["status"]) == expected
    assert found["is_current"] == (high_watermark == 0)
