"""What leaders answered decides what a capture proves."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from tests.support.frames import assert_rows
from txnlib.spark.coverage.answers import PARTITION_NOTES, with_answers, with_nothing_open

ASKED_MS = 1_000
#: First segment of the copy -> what the leader answered (log start) and where the capture began; is it scoped, and its log start.
COPIES = {
    "nobody was asked": (100, None, (False, 100)),
    "it begins where the capture chose": (100, (0, 100), (True, 0)),
    "it is whole": (0, (0, 0), (False, 0)),
    "what is older was deleted": (100, (100, 100), (False, 100)),
    "a segment is missing": (150, (0, 100), (False, 150)),
}
#: Last stable offset and high watermark that the leader answered, and whether that proves that nothing was open.
MISSING = {
    "nobody was asked": (None, None),
    "nothing is open": ((50, 50), True),
    "something is open": ((40, 50), None),
    "it is empty": ((0, 0), True),
    "it did not say": ((None, 50), None),
}


def notes(spark: SparkSession, rows: list[dict[str, object]]) -> DataFrame:
    return spark.createDataFrame([{"topic": "orders", "leader": 1, **row} for row in rows], PARTITION_NOTES)


def test_a_copy_that_begins_by_choice_has_the_log_start_of_its_leader(spark: SparkSession) -> None:
    copies = [("orders", number, first, first) for number, (first, _, _) in enumerate(COPIES.values())]
    frame = spark.createDataFrame(copies, "topic string, partition int, first_segment_offset long, log_start_offset long")
    told = [
        {"partition": number, "log_start_offset": said[0], "fetched_from": said[1], "answered_at_ms": ASKED_MS}
        for number, (_, said, _) in enumerate(COPIES.values())
        if said is not None
    ]
    found = with_answers(frame, notes(spark, told)).select("partition", "is_scoped", "log_start_offset")
    assert_rows(found, [(number, *expected) for number, (_, _, expected) in enumerate(COPIES.values())])


def test_only_the_leaders_word_proves_that_nothing_is_open(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("orders", number) for number in range(len(MISSING))], "topic string, partition int")
    told = [
        {"partition": number, "last_stable_offset": said[0], "high_watermark": said[1], "answered_at_ms": ASKED_MS}
        for number, (said, _) in enumerate(MISSING.values())
        if said is not None
    ]
    found = with_nothing_open(frame, notes(spark, told)).select("partition", "is_nothing_open")
    assert_rows(found, [(number, expected) for number, (_, expected) in enumerate(MISSING.values())])


def test_an_answer_without_its_instant_proves_nothing(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("orders", 0)], "topic string, partition int")
    told = [{"partition": 0, "last_stable_offset": 5, "high_watermark": 5}]
    found = with_nothing_open(frame, notes(spark, told)).select("partition", "is_nothing_open")
    assert_rows(found, [(0, None)])
