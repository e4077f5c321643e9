"""Findings about copies of a partition that differ."""

from dataclasses import replace

import pyarrow as pa
import pytest

from tests.support.frames import batch_row, frame
from tests.support.log_notation import A, C, T
from txnlib.core.findings.differing_copies import DifferingCopies, of_copies
from txnlib.readers import arrow_schemas
from txnlib.spark.core_rows import rows_of
from txnlib.spark.findings.copy_findings import differing_batches, differing_records
from txnlib.spark.schemas import COVERAGE, TRANSACTION_LOG

_LOG = [T(1, 0, 0, 4, at=0), C(1, 0, at=5), T(2, 0, 0, at=6), A(2, 0, at=7), T(1, 0, 5, at=9000)]
LOG = [replace(batch, partition_leader_epoch=3) for batch in _LOG]


def found(spark, copies, high_watermarks=None):
    """Findings on a partition with a copy of each source."""
    rows = [batch_row(batch, "orders", 0, source) for source, log in copies.items() for batch in log]
    batches = spark.createDataFrame(pa.Table.from_pylist(rows, schema=arrow_schemas.RECORD_BATCHES))
    marks = high_watermarks or {}
    known = [{"topic": "orders", "partition": 0, "source": source, "high_watermark": marks.get(source)} for source in copies]
    coverage = frame(spark, COVERAGE, *known)
    differing = rows_of(differing_batches(batches, coverage), DifferingCopies)
    return [(row.name, row.offset, row.evidence) for row in of_copies(differing)]


@pytest.mark.parametrize(
    ("at", "changed"),
    [
        (0, {"producer_id": 9}),
        (0, {"producer_epoch": 1}),
        (0, {"base_sequence": 3}),
        (0, {"last_offset": 3}),
        (2, {"is_transactional": False}),
        (1, {"marker": A(1, 0, at=5).marker}),
        (4, {"partition_leader_epoch": 7}),
    ],
)
def test_a_batch_that_differs_in_one_copy_is_found_with_both_records(spark, at, changed):
    other = [*LOG[:at], replace(LOG[at], **changed), *LOG[at + 1 :]]
    ((name, offset, evidence),) = found(spark, {"raw:1": LOG, "raw:2": other})
    assert (name, offset) == ("COPIES_DISAGREE", LOG[at].base_offset)
    assert "raw:1 {" in evidence
    assert "raw:2 {" in evidence


def test_a_batch_is_shown_as_json_without_what_a_tool_does_not_print(spark):
    other = [replace(LOG[0], producer_id=9, partition_leader_epoch=None), *LOG[1:]]
    ((_, _, evidence),) = found(spark, {"raw:1": LOG, "text:1": other})
    shown = '"producer_epoch":0,"base_sequence":0,"is_transactional":true,"is_control":false'
    mine = f'raw:1 {{"last_offset":4,"producer_id":1,{shown},"partition_leader_epoch":3}}'
    assert evidence == f'{mine}; text:1 {{"last_offset":4,"producer_id":9,{shown}}}'


def test_what_only_one_copy_has_is_no_disagreement(spark):
    assert found(spark, {"raw:1": LOG, "raw:2": LOG[1:3], "raw:3": LOG}) == []


def test_what_a_copy_has_above_its_own_high_watermark_may_be_truncated_yet(spark):
    other = [*LOG[:-1], replace(LOG[-1], producer_id=9)]
    assert found(spark, {"raw:1": LOG, "raw:2": other}, {"raw:1": 9001, "raw:2": 9000}) == []
    assert len(found(spark, {"raw:1": LOG, "raw:2": other}, {"raw:1": 9001, "raw:2": 9001})) == 1


def test_what_a_tool_does_not_print_contradicts_nothing(spark):
    assert found(spark, {"raw:1": LOG, "text:1": [replace(batch, partition_leader_epoch=None) for batch in LOG]}) == []


def test_a_partition_is_one_finding_however_much_differs(spark):
    other = [replace(batch, partition_leader_epoch=7) for batch in LOG]
    ((_, offset, evidence),) = found(spark, {"raw:1": LOG, "raw:2": other})
    assert offset == 0
    assert evidence.endswith("; and 4 more offsets")


def test_one_copy_has_nothing_to_disagree_with(spark):
    assert found(spark, {"raw:1": LOG}) == []


# Records of coordinators are compared by what is decoded.

RECORD = {
    "topic": "__transaction_state",
    "partition": 3,
    "offset": 7,
    "coordinator_epoch": 2,
    "transactional_id": "pay",
    "is_tombstone": False,
    "producer_id": 5,
    "producer_epoch": 1,
    "state": "Ongoing",
    "partitions": [("orders", 0), ("orders", 1)],
}


@pytest.mark.parametrize(
    ("changed", "differs"),
    [
        ({}, False),
        ({"partitions": [("orders", 1), ("orders", 0)]}, False),
        ({"producer_epoch": None}, False),  # a tool that does not print it
        ({"coordinator_epoch": 3}, False),  # a truncated record, and the one that replaced it
        ({"offset": 8}, False),
        ({"state": "Empty"}, True),
        ({"transactional_id": "other"}, True),
        ({"producer_id": 6}, True),
        ({"producer_epoch": 2}, True),
        ({"partitions": [("orders", 0)]}, True),
        ({"is_tombstone": True}, True),
    ],
)
def test_records_at_one_offset_and_leader_epoch_are_the_same_in_all_copies(spark, changed, differs):
    copies = [RECORD | {"source": "raw:1", "path": "a"}, RECORD | {"source": "raw:2", "path": "b"} | changed]
    coverage = frame(spark, COVERAGE, *[{name: copy[name] for name in ("topic", "partition", "source")} for copy in copies])
    rows = list(of_copies(rows_of(differing_records(frame(spark, TRANSACTION_LOG, *copies), coverage), DifferingCopies)))
    assert [(row.name, row.partition, row.offset) for row in rows] == [("COPIES_DISAGREE", 3, 7)] * differs
    assert all("raw:1 {" in row.evidence and "raw:2 {" in row.evidence for row in rows)


def test_copies_of_a_deleted_topic_contradict_nothing(spark):
    copies = [RECORD | {"source": "raw:1", "path": "a"}, RECORD | {"source": "raw:2", "path": "b", "state": "Empty"}]
    known = [{name: copy[name] for name in ("topic", "partition", "source")} for copy in copies]
    coverage = frame(spark, COVERAGE, known[0], known[1] | {"is_deleted": True})
    assert differing_records(frame(spark, TRANSACTION_LOG, *copies), coverage).isEmpty()
