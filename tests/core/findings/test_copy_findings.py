"""Findings about copies of a partition that differ. Each case has a partition of its own, so that all cases are one
question."""

from dataclasses import replace

import pytest

from tests.support.frames import batch_row, frame
from tests.support.log_notation import A, C, T
from tests.support.rules import found_by, selected
from txnlib.core.findings.copy_findings import (
    DIFFERING_BATCHES,
    DIFFERING_RECORDS,
    OPEN_ON_REPLICAS,
    CopiedRow,
    DifferingCopies,
    of_copies,
)
from txnlib.spark.schemas import TABLES

_LOG = [T(1, 0, 0, 4, at=0), C(1, 0, at=5), T(2, 0, 0, at=6), A(2, 0, at=7), T(1, 0, 5, at=9000)]
LOG = [replace(batch, partition_leader_epoch=3) for batch in _LOG]


def changed(at, **fields):
    return [*LOG[:at], replace(LOG[at], **fields), *LOG[at + 1 :]]


#: Another copy of the log -> the offset at which it differs.
DIFFERENT = {
    "producer id": (changed(0, producer_id=9), 0),
    "epoch": (changed(0, producer_epoch=1), 0),
    "sequence": (changed(0, base_sequence=3), 0),
    "length": (changed(0, last_offset=3), 0),
    "flag": (changed(2, is_transactional=False), 6),
    "marker": (changed(1, marker=A(1, 0, at=5).marker), 5),
    "leader epoch": (changed(4, partition_leader_epoch=7), 9000),
}
LAST = {"raw:2": changed(4, producer_id=9)}
#: Copies by source, and high watermarks -> offset of the finding, or None.
CASES = {
    **{f"another {name}": ({"raw:2": other}, {}, at) for name, (other, at) in DIFFERENT.items()},
    "text that prints no leader epoch": ({"text:1": changed(0, producer_id=9, partition_leader_epoch=None)}, {}, 0),
    "what only one copy has": ({"raw:2": LOG[1:3], "raw:3": LOG}, {}, None),
    "above its own high watermark it may be truncated yet": (LAST, {"raw:1": 9001, "raw:2": 9000}, None),
    "below it, it may not": (LAST, {"raw:1": 9001, "raw:2": 9001}, 9000),
    "what a tool does not print": (
        {"text:1": [replace(batch, partition_leader_epoch=None) for batch in LOG]},
        {},
        None,
    ),
    "everything differs": ({"raw:2": [replace(batch, partition_leader_epoch=7) for batch in LOG]}, {}, 0),
    "one copy": ({}, {}, None),
}


@pytest.fixture(scope="module")
def found(spark):
    """By case, offset and evidence of its findings."""
    rows, known = [], []
    for number, (others, marks, _) in enumerate(CASES.values()):
        for source, log in {"raw:1": LOG, **others}.items():
            rows += [batch_row(batch, "orders", number, source) for batch in log]
            known.append(
                {"topic": "orders", "partition": number, "source": source, "high_watermark": marks.get(source)}
            )
    batches = frame(spark, TABLES["record_batches"], *rows)
    names, told = list(CASES), {name: [] for name in CASES}
    for row in found_by(DIFFERING_BATCHES, record_batches=batches, coverage=frame(spark, TABLES["coverage"], *known)):
        assert row.name == "COPIES_DISAGREE"
        told[names[row.partition]].append((row.offset, row.evidence))
    return told


@pytest.mark.parametrize("name", CASES)
def test_a_batch_that_differs_in_one_copy_is_found_once_for_its_partition(found, name):
    others, _, at = CASES[name]
    assert [offset for offset, _ in found[name]] == ([] if at is None else [at])
    assert all("raw:1 {" in evidence and f"{next(iter(others))} {{" in evidence for _, evidence in found[name])


def test_both_records_are_shown_as_json_without_what_a_tool_does_not_print(found):
    shown = '"producer_epoch":0,"base_sequence":0,"is_transactional":true,"is_control":false'
    mine = f'raw:1 {{"last_offset":4,"producer_id":1,{shown},"partition_leader_epoch":3}}'
    ((_, evidence),) = found["text that prints no leader epoch"]
    assert evidence == f'{mine}; text:1 {{"last_offset":4,"producer_id":9,{shown}}}'
    ((_, evidence),) = found["everything differs"]
    assert evidence.endswith("; and 4 more offsets")


@pytest.mark.parametrize(("overlap", "again", "offsets"), [(0, 9, [0]), (0, 1, []), (None, 9, [])])
def test_two_texts_of_one_copy_that_differ_are_found(spark, overlap, again, offsets):
    """They lie in one folder, or name the same path. A part that one text prints twice is no second log."""
    logs = [*LOG, *changed(0, producer_id=again)]
    batches = frame(spark, TABLES["record_batches"], *(batch_row(batch, "orders", 0, "text:1") for batch in logs))
    copy = {"topic": "orders", "partition": 0, "source": "text:1", "overlap_offset": overlap}
    found = selected(DIFFERING_BATCHES, record_batches=batches, coverage=frame(spark, TABLES["coverage"], copy))
    assert [each.offset for each in found] == offsets


# Records of coordinators are compared by what is decoded.

RECORD = {
    "topic": "__transaction_state",
    "offset": 7,
    "coordinator_epoch": 2,
    "transactional_id": "pay",
    "is_tombstone": False,
}
RECORD |= {"producer_id": 5, "producer_epoch": 1, "state": "Ongoing", "partitions": [("orders", 0), ("orders", 1)]}
#: What the other copy has, and whether it is of a deleted topic -> whether it differs.
RECORDS = [
    ({}, False, False),
    ({"partitions": [("orders", 1), ("orders", 0)]}, False, False),
    ({"producer_epoch": None}, False, False),  # a tool that does not print it
    ({"coordinator_epoch": 3}, False, False),  # a truncated record, and the one that replaced it
    ({"offset": 8}, False, False),
    ({"state": "Empty"}, True, False),  # of a deleted topic: it contradicts nothing
    ({"state": "Empty"}, False, True),
    ({"transactional_id": "other"}, False, True),
    ({"producer_id": 6}, False, True),
    ({"producer_epoch": 2}, False, True),
    ({"partitions": [("orders", 0)]}, False, True),
    ({"is_tombstone": True}, False, True),
]


def test_records_at_one_offset_and_leader_epoch_are_the_same_in_all_copies(spark):
    copies, known = [], []
    for number, (other, is_deleted, _) in enumerate(RECORDS):
        one, two = (
            RECORD | {"partition": number, "source": source, "part": part}
            for part, source in enumerate(("raw:1", "raw:2"))
        )
        copies += [one, two | other]
        place = {"topic": RECORD["topic"], "partition": number}
        known += [place | {"source": "raw:1"}, place | {"source": "raw:2", "is_deleted": is_deleted}]
    rows = found_by(
        DIFFERING_RECORDS,
        transaction_log=frame(spark, TABLES["transaction_log"], *copies),
        coverage=frame(spark, TABLES["coverage"], *known),
    )
    assert {(row.name, row.offset) for row in rows} == {("COPIES_DISAGREE", 7)}
    assert sorted(row.partition for row in rows) == [number for number, (*_, differs) in enumerate(RECORDS) if differs]
    assert all("raw:1 {" in row.evidence and "raw:2 {" in row.evidence for row in rows)


# A replica may remember a transaction that retention or compaction removed from the log of the leader.

LEADER = {
    "topic": "orders",
    "source": "raw:1",
    "is_judged": True,
    "is_current": True,
    "is_decoded": True,
    "log_start_offset": 50,
}
LEADER |= {"end_offset": 90}
REPLICA = {"topic": "orders", "source": "raw:2", "broker": "2", "status": "COMPLETE", "is_judged": False}
SHOWN = {"topic": "orders", "source": "raw:2", "snapshot_offset": 80, "producer_id": 7, "producer_epoch": 3}
SHOWN |= {"current_txn_first_offset": 20}
OPEN, CLOSED = ({"state": {"current_txn_first_offset": at}, "is_newest": True} for at in (20, None))
#: What differs in the leader's copy, the replica's, its snapshot and the leader's spans -> whether there is a finding.
REPLICAS = [
    ({}, {}, {}, None, True),
    ({"log_start_offset": 80}, {}, {}, None, True),
    ({"log_start_offset": 81}, {}, {}, None, False),  # a marker may have been deleted since the snapshot
    ({"log_start_offset": 0, "first_offset": 81}, {}, {}, None, False),
    ({"gap_offset": 80}, {}, {}, None, True),
    ({"gap_offset": 81}, {}, {}, None, False),
    ({"end_offset": 80}, {}, {}, None, True),
    ({"end_offset": 79}, {}, {}, None, False),  # the replica has what the leader has not
    ({"damaged_offset": 60}, {}, {}, None, False),
    ({"is_decoded": False}, {}, {}, None, False),
    ({"is_current": False}, {}, {}, None, False),
    ({}, {"is_judged": True}, {}, None, False),
    ({}, {"status": "MISSING"}, {}, None, False),
    ({}, {"is_deleted": True}, {}, None, False),
    ({}, {"truncated": [(3, 70)]}, {}, None, False),
    ({}, {}, {"current_txn_first_offset": None}, None, False),
    ({}, {}, {"is_answer": True}, None, False),
    ({}, {}, {}, CLOSED | {"marker_offset": 20}, True),  # it ended an earlier transaction
    ({}, {}, {}, CLOSED | {"marker_offset": 21}, False),
    ({}, {}, {}, CLOSED | {"marker_offset": 85}, False),
    ({}, {}, {}, CLOSED, True),
    ({}, {}, {}, OPEN, False),
]


def test_what_is_open_on_a_replica_alone_is_found(spark):
    copies, snapshots, spans = [], [], []
    for number, (leader, replica, shown, span, _) in enumerate(REPLICAS):
        place = {"partition": number}
        copies += [LEADER | leader | place, REPLICA | replica | place]
        older = {"snapshot_offset": 70, "producer_id": 8}
        snapshots += [SHOWN | shown | place, SHOWN | shown | older | place]
        spans += [{"topic": "orders", "producer_id": 7} | span | place] if span else []
    rows = found_by(
        OPEN_ON_REPLICAS,
        producer_snapshots=frame(spark, TABLES["producer_snapshots"], *snapshots),
        producer_spans=frame(spark, TABLES["producer_spans"], *spans),
        coverage=frame(spark, TABLES["coverage"], *copies),
    )
    assert sorted(row.partition for row in rows) == [
        number for number, (*_, is_found) in enumerate(REPLICAS) if is_found
    ]
    assert {(row.name, row.producer_id, row.offset) for row in rows} == {("OPEN_ON_REPLICA", 7, 20)}
    assert {row.evidence for row in rows} == {"open on broker 2, by its snapshot at offset 80: epoch 3"}


def test_the_first_three_copies_of_a_batch_are_shown() -> None:
    copies = tuple(CopiedRow(f"raw:{number}", f'{{"producer_id":{number}}}') for number in (4, 2, 3, 1))
    (one,) = of_copies([DifferingCopies("orders", 0, 5, 7, copies[:1], 1)])
    assert one.evidence == 'raw:4 {"producer_id":4}'
    (many,) = of_copies([DifferingCopies("orders", 0, 5, 7, copies, 3)])
    assert [part.partition(" ")[0] for part in many.evidence.split("; ")] == ["raw:1", "raw:2", "raw:3", "and"]
    assert many.evidence.endswith("; and 2 more offsets")
