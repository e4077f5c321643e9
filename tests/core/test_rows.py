"""Rows that are made of other rows."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.support.copies import NOW, captured, covered, noted
from txnlib.core.rows import OfProducer, OnPartition, ProducerId, row_of


@dataclass(frozen=True)
class Marked(OfProducer):
    marker: str = "none"


def test_a_field_is_that_of_the_first_row_that_has_it_unless_a_value_is_given() -> None:
    place, id_ = OfProducer("a", 1, 7), ProducerId(8)
    assert row_of(Marked, OnPartition("b", 2), id_, place) == Marked("b", 2, 8)
    assert row_of(Marked, place, id_, partition=5, marker="COMMIT") == Marked("a", 5, 7, "COMMIT")


def test_a_field_that_nothing_has_and_that_has_no_default_is_an_error() -> None:
    with pytest.raises(TypeError, match="producer_id"):
        row_of(Marked, OnPartition("a", 1))


def test_a_row_of_coverage_has_no_answer_where_the_log_itself_is_there_or_is_not_known() -> None:
    answer = {"high_watermark": 20, "last_stable_offset": 20, "log_start_offset": 3, "answered_at_ms": NOW}
    notes = [noted("t", 1, [1], **answer), noted("gone", 1, [1], **answer)]
    here, missing = covered(captured(), partition_notes=notes, expected=[("gone", 0)])
    assert (here.status, here.is_nothing_open, here.log_start_offset) == ("COMPLETE", None, 0)
    assert (missing.status, missing.is_nothing_open, missing.log_start_offset) == ("MISSING", True, None)
