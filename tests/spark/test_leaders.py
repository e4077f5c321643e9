"""Leaders from capture.json and from the metadata log, and copies of deleted topics: every case as a row of a grid."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.support.frames import empty, frame, partition_notes
from txnlib.core.verdicts.copies import LeaderBasis
from txnlib.spark.coverage.leaders import deleted_copies, leaders
from txnlib.spark.schemas import CHECKPOINTS, METADATA_LOG, PARTITION_ASSIGNMENTS, SEGMENTS

NOTED_MS = 1_700_000_000_000
BEFORE, AFTER = NOTED_MS - 1, NOTED_MS + 1
CURRENT, STALE = LeaderBasis.METADATA_LOG, LeaderBasis.METADATA_LOG_STALE
UNCONFIRMED, DAMAGED = LeaderBasis.METADATA_LOG_UNCONFIRMED, LeaderBasis.METADATA_LOG_DAMAGED

#: Leader in capture.json, in the metadata log (None: the partition is in neither; -1: no leader), since when, basis of the metadata
#: log -> leader that is used, its basis.
LEADERS = {
    "only the notes": (1, None, None, None, ("1", "CAPTURE_JSON")),
    "only the metadata log": (None, 2, BEFORE, CURRENT, ("2", "METADATA_LOG")),
    "only an unconfirmed metadata log": (None, 2, BEFORE, UNCONFIRMED, ("2", "METADATA_LOG_UNCONFIRMED")),
    "only a stale metadata log": (None, 2, BEFORE, STALE, (None, "METADATA_LOG_STALE")),
    "both agree": (2, 2, BEFORE, CURRENT, ("2", "CAPTURE_JSON")),
    "they differ, and the notes are newer": (1, 2, BEFORE, CURRENT, ("1", "CAPTURE_JSON")),
    "they differ, and the election is newer": (1, 2, AFTER, CURRENT, ("2", "METADATA_LOG")),
    "they differ, and a snapshot does not show since when": (1, 2, None, CURRENT, ("1", "CAPTURE_JSON")),
    "the election is newer, but the log is stale": (1, 2, AFTER, STALE, (None, "METADATA_LOG_STALE")),
    "only a damaged metadata log": (None, 2, BEFORE, DAMAGED, ("2", "METADATA_LOG_DAMAGED")),
    "they differ, and the log is damaged": (1, 2, BEFORE, DAMAGED, ("1", "CAPTURE_JSON")),
    "the election is newer, and more may follow": (1, 2, AFTER, DAMAGED, ("2", "METADATA_LOG_DAMAGED")),
    "the metadata log says that there is no leader": (None, -1, BEFORE, CURRENT, ("-1", "METADATA_LOG")),
    "the notes say that there is no leader": (-1, 2, BEFORE, CURRENT, ("-1", "CAPTURE_JSON")),
}


def assignments(spark, rows):
    return spark.createDataFrame([[row.get(name) for name in PARTITION_ASSIGNMENTS.names] for row in rows], PARTITION_ASSIGNMENTS)


def assignment(topic, leader, since_ms, topic_id="id", *, is_current=True):
    since = None if since_ms is None else datetime.fromtimestamp(since_ms / 1000, UTC)
    row = {"topic": topic, "partition": 0, "topic_id": topic_id, "leader": None if leader == -1 else leader, "since": since}
    row |= {"leader_epoch": 0}
    return row | {"isr": [2], "replicas": [2, 3], "eligible_leader_replicas": [3], "is_current": is_current}


@pytest.mark.parametrize("basis", [None, CURRENT, UNCONFIRMED, STALE, DAMAGED])
def test_who_leads_and_how_that_is_known(spark, basis):
    cases = {name: case for name, case in LEADERS.items() if case[3] is basis}
    noted = [(name, 0, case[0], [1, 2]) for name, case in cases.items() if case[0] is not None]
    notes = spark.createDataFrame(noted, "topic string, partition int, leader int, replicas array<int>")
    assigned = assignments(spark, [assignment(name, case[1], case[2]) for name, case in cases.items() if case[1] is not None])
    found = {row["topic"]: row for row in leaders(notes, assigned, basis, NOTED_MS).collect()}
    assert {name: (row["leader"], row["leader_basis"]) for name, row in found.items()} == {
        name: case[4] for name, case in cases.items()
    }
    for row in found.values():
        is_assigned = row["leader_basis"] != "CAPTURE_JSON"
        assert row["in_sync"] == (["2", "3"] if is_assigned else None)
        assert row["replicas"] == (["2", "3"] if is_assigned else ["1", "2"])
        assert basis is not DAMAGED or row["assigned_leader"] is None, "it contradicts no note"


def test_without_an_instant_the_notes_are_the_newer(spark):
    notes = spark.createDataFrame([("t", 0, 1, [1])], "topic string, partition int, leader int, replicas array<int>")
    (row,) = leaders(notes, assignments(spark, [assignment("t", 2, AFTER)]), CURRENT, None).collect()
    assert (row["leader"], row["noted_leader"], row["assigned_leader"]) == ("1", "1", "2")


#: Topic id in the folder (None: text), ids of the topic now and in the past, whether the broker's own metadata log was captured,
#: whether the log is whole, whether it is confirmed -> whether the copy is of a deleted topic.
COPIES = {
    "the topic of today": ("now", "now", [], True, True, True, False),
    "the topic of today, which had another id": ("now", "now", ["old"], True, True, True, False),
    "the folder of the topic before": ("old", "now", ["old"], True, True, True, True),
    "the same, by a log that proves little": ("old", "now", ["old"], False, False, False, True),
    "a deleted topic": ("old", None, ["old"], True, True, True, True),
    "an id that the log does not have, beside its own log": ("other", "now", [], True, True, False, True),
    "an id that the log does not have, in a confirmed log": ("other", "now", [], False, True, True, True),
    "an id that the log does not have, and nothing else": ("other", "now", [], False, True, False, False),
    "an id that a damaged log may have lost": ("other", "now", [], True, False, True, False),
    "a topic that the log does not have, beside its own log": ("other", None, [], True, True, False, True),
    "a topic that the log does not have, and nothing else": ("other", None, [], False, True, False, False),
    "text of a topic of today": (None, "now", ["old"], False, True, True, False),
    "text of a deleted topic": (None, None, ["old"], False, True, True, True),
    "text of a deleted topic, by a log that proves little": (None, None, ["old"], False, False, False, False),
    "text of a topic that the log does not have": (None, None, [], False, True, True, True),
    "the same, if the log is not confirmed": (None, None, [], False, True, False, False),
}


@pytest.mark.parametrize(("is_whole", "is_confirmed"), [(True, True), (True, False), (False, True), (False, False)])
def test_which_copies_are_of_deleted_topics(spark, is_whole, is_confirmed):
    cases = {name: case for name, case in COPIES.items() if case[4:6] == (is_whole, is_confirmed)}
    segments, ids, rows, logs = [], [], [], []
    for number, (name, (own, now, past, has_log, *_)) in enumerate(cases.items()):
        source = f"{'text' if own is None else 'raw'}:{number}"
        where = {"topic": name, "partition": 0, "source": source}
        segments.append(where | {"kind": "text" if own is None else "raw", "path": "p"})
        if own is not None:
            ids.append({"source": source, "path": "p", "name": "topic_id", "topic": name, "partition": 0, "topic_id": own})
        if has_log:
            logs.append({"source": source, "path": "p", "offset": 0, "last_offset": 0, "type": "NO_OP_RECORD"})
        rows += [assignment(name, 1, None, now)] if now is not None else []
        rows += [assignment(name, 1, None, each, is_current=False) for each in past]
    # The metadata log's own folder has an id that is in no record.
    segments.append({"topic": "__cluster_metadata", "partition": 0, "source": "raw:0", "kind": "raw", "path": "p"})
    ids.append({"source": "raw:0", "path": "p", "name": "topic_id", "topic": "__cluster_metadata", "partition": 0, "topic_id": "A"})

    def frame(schema, given):
        return spark.createDataFrame([[row.get(name) for name in schema.names] for row in given], schema)

    found = deleted_copies(
        frame(SEGMENTS, segments),
        frame(CHECKPOINTS, ids),
        frame(METADATA_LOG, logs) if logs else empty(spark, METADATA_LOG),
        assignments(spark, rows),
        partition_notes(spark, []),
        is_metadata_whole=is_whole,
        is_metadata_confirmed=is_confirmed,
    )
    assert {row["topic"] for row in found.collect()} == {name for name, case in cases.items() if case[6]}


#: Copies of one partition without a metadata log: source -> topic id, newest stamp. The leader by capture.json. -> Deleted copies.
IDS = {
    "one id": ({"raw:1": ("A", 1), "raw:2": ("A", 9)}, 1, []),
    "the leader's lives": ({"raw:1": ("A", 1), "raw:2": ("B", 9)}, 1, ["raw:2"]),
    "without a leader, the youngest lives": ({"raw:1": ("A", 1), "raw:2": ("B", 9)}, None, ["raw:1"]),
    "nobody copied the leader's": ({"raw:1": ("A", 1), "raw:2": ("B", 9)}, 7, ["raw:1"]),
    "text has no id": ({"raw:1": ("A", 1), "text:2": (None, 9)}, 1, []),
    "two old folders": ({"raw:1": ("A", 1), "raw:2": ("B", 9), "raw:3": ("C", 8)}, 1, ["raw:2", "raw:3"]),
}


def test_topic_ids_separate_logs_without_a_metadata_log(spark):
    segments, ids, notes = [], [], []
    for topic, (copies, leader, _) in IDS.items():
        notes += [] if leader is None else [(topic, 0, leader, [1, 2])]
        for source, (topic_id, stamp) in copies.items():
            where = {"topic": topic, "partition": 0, "source": source, "path": "p"}
            segments.append(where | {"kind": source.partition(":")[0], "newest_broker_ms": stamp})
            ids += [] if topic_id is None else [where | {"name": "topic_id", "topic_id": topic_id}]
    found = deleted_copies(
        frame(spark, SEGMENTS, *segments),
        frame(spark, CHECKPOINTS, *ids),
        empty(spark, METADATA_LOG),
        empty(spark, PARTITION_ASSIGNMENTS),
        partition_notes(spark, notes),
        is_metadata_whole=False,
        is_metadata_confirmed=False,
    )
    expected = [(topic, 0, source) for topic, (_, _, deleted) in IDS.items() for source in deleted]
    assert sorted(tuple(row) for row in found.collect()) == sorted(expected)
