"""Findings about copies of a partition that differ."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from tests.support.frames import assert_rows, batch_row, frame
from tests.support.log_notation import A, C, T
from txnlib.readers import arrow_schemas
from txnlib.spark.findings.copy_findings import copy_findings
from txnlib.spark.schemas import COVERAGE

_LOG = [T(1, 0, 0, 4, at=0), C(1, 0, at=5), T(2, 0, 0, at=6), A(2, 0, at=7), T(1, 0, 5, at=9000)]
LOG = [replace(batch, partition_leader_epoch=3) for batch in _LOG]


def found(spark, copies, high_watermarks=None):
    """Findings on a partition with a copy of each source."""
    rows = [batch_row(batch, "orders", 0, source) for source, log in copies.items() for batch in log]
    batches = spark.createDataFrame(pa.Table.from_pylist(rows, schema=arrow_schemas.RECORD_BATCHES))
    marks = high_watermarks or {}
    known = [{"topic": "orders", "partition": 0, "source": source, "high_watermark": marks.get(source)} for source in copies]
    coverage = frame(spark, COVERAGE, *known)
    return copy_findings(batches, coverage).select("name", "offset", "evidence")


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
    ((name, offset, evidence),) = found(spark, {"raw:1": LOG, "raw:2": other}).collect()
    assert (name, offset) == ("COPIES_DISAGREE", LOG[at].base_offset)
    assert "raw:1 {" in evidence
    assert "raw:2 {" in evidence


def test_what_only_one_copy_has_is_no_disagreement(spark):
    assert_rows(found(spark, {"raw:1": LOG, "raw:2": LOG[1:3], "raw:3": LOG}), [])


def test_what_a_copy_has_above_its_own_high_watermark_may_be_truncated_yet(spark):
    other = [*LOG[:-1], replace(LOG[-1], producer_id=9)]
    assert_rows(found(spark, {"raw:1": LOG, "raw:2": other}, {"raw:1": 9001, "raw:2": 9000}), [])
    assert found(spark, {"raw:1": LOG, "raw:2": other}, {"raw:1": 9001, "raw:2": 9001}).count() == 1


def test_what_a_tool_does_not_print_contradicts_nothing(spark):
    assert_rows(found(spark, {"raw:1": LOG, "text:1": [replace(batch, partition_leader_epoch=None) for batch in LOG]}), [])


def test_a_partition_is_one_finding_however_much_differs(spark):
    other = [replace(batch, partition_leader_epoch=7) for batch in LOG]
    ((_, offset, evidence),) = found(spark, {"raw:1": LOG, "raw:2": other}).collect()
    assert offset == 0
    assert evidence.endswith("; and 4 more offsets")


def test_one_copy_has_nothing_to_disagree_with(spark):
    assert_rows(found(spark, {"raw:1": LOG}), [])
