"""Rows of tables as dataclasses of the core, and back."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.support.copies import NOW, captured, covered, epoch, noted
from txnlib.core.copies import CoverageRow
from txnlib.core.instants import NO_INSTANT_MS
from txnlib.readers.typed_rows import arrow_rows, columns_read, typed_rows
from txnlib.spark.core_rows import answers, rows_of
from txnlib.spark.frames import frame_of
from txnlib.spark.schemas import TABLES


class Kind(Enum):
    ONE = "one"


@dataclass(frozen=True)
class Truncated:
    leader_epoch: int
    from_offset: int


@dataclass(frozen=True, kw_only=True)
class Copy:
    topic: str
    captured_at_ms: int | None
    truncated: tuple[Truncated, ...] | None
    status: Kind | None


NOTHING = Copy(topic="a", captured_at_ms=None, truncated=None, status=None)
COPIES = [replace(NOTHING, captured_at_ms=1_700_000_000_123, truncated=(Truncated(1, 2),), status=Kind.ONE), NOTHING]


def test_rows_come_back_as_they_were() -> None:
    assert typed_rows(arrow_rows("coverage", COPIES), Copy) == COPIES


def test_rows_of_coverage_come_back_as_they_were() -> None:
    """They do where `coverage` is lowered."""
    copies = captured(newest_broker_ms=NOW), captured(source="raw:2", end=15)
    epochs = [epoch(1, 0, 19), epoch(2, 10, 14, source="raw:2")]
    rows = covered(*copies, epochs=epochs, partition_notes=[noted(leader=1, replicas=[1])], expected=[("missing", 0)])
    assert typed_rows(arrow_rows("coverage", rows), CoverageRow) == rows


def test_a_time_that_no_clock_shows_is_null() -> None:
    (copy,) = typed_rows(arrow_rows("coverage", [replace(NOTHING, captured_at_ms=NO_INSTANT_MS)]), Copy)
    assert copy.captured_at_ms is None


def test_a_column_without_a_field_is_null() -> None:
    assert arrow_rows("coverage", COPIES)["bytes"].to_pylist() == [None, None]
    assert arrow_rows("coverage", []).num_rows == 0


def test_a_field_without_a_column_is_refused() -> None:
    with pytest.raises(ValueError, match="captured_at_ms"):
        columns_read(Copy, ["topic", "truncated", "status"])
    with pytest.raises(ValueError, match="leader_epoch"):
        arrow_rows("quarantine", [Truncated(1, 2)])


@dataclass(frozen=True)
class Question:
    topic: str
    since_ms: int | None


@dataclass(frozen=True)
class Answer:
    topic: str
    count: int


def test_questions_are_answered_in_one_query_and_none_without_a_question(spark):
    def count(questions: DataFrame) -> DataFrame:
        asked.append(questions.columns)
        return questions.groupBy("topic").count()

    asked: list[list[str]] = []
    ask = answers(spark, count, Callable[[Sequence[Question]], Sequence[Answer]])
    assert ask([]) == []
    assert asked == []
    found = ask([Question("a", None), Question("b", 1 << 62), Question("a", 3)])
    assert sorted(found, key=lambda each: each.topic) == [Answer("a", 2), Answer("b", 1)]
    assert asked == [["topic", "since_ms"]]


def test_of_a_wide_table_only_the_columns_of_the_class_are_read(spark):
    rows = arrow_rows("coverage", COPIES)
    assert rows_of(rows, Copy) == COPIES
    assert sorted(rows_of(spark.createDataFrame(rows), Copy), key=lambda copy: copy.topic) == COPIES


def test_rows_of_several_parts_are_all_in_the_frame(spark: SparkSession) -> None:
    none, some = arrow_rows("coverage", []), arrow_rows("coverage", COPIES)
    rows = pa.concat_tables([none, some, none, some])
    assert frame_of(spark, rows, TABLES["coverage"]).toArrow()["status"].to_pylist() == ["one", None] * 2
