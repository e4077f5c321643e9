"""What Spark selects for the core's findings: no less than has one."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product

import pytest

from tests.support.frames import frame
from txnlib.core.copies import CoverageRow
from txnlib.core.findings.live_answer_findings import (
    LiveProducer,
    LiveTransaction,
    ToldSpan,
    answers_of,
    lost_transactions,
)
from txnlib.core.findings.producer_findings import (
    SUSPECTS_KEPT,
    NewestSpan,
    OddProducer,
    ProducerChecks,
    of_producers,
)
from txnlib.core.kafka.producer_state import ProducerState
from txnlib.readers.typed_rows import arrow_rows
from txnlib.spark.core_rows import Suspects, rows_by_core, rows_of
from txnlib.spark.findings.live_answer_findings import asked_ids, explained, told_spans
from txnlib.spark.findings.producer_findings import odd_producers
from txnlib.spark.frames import arrow_of
from txnlib.spark.schemas import TABLES

NOW, HIGHEST = 1_700_000_000_000, 40
TIMES = (NOW, NOW + 1, NOW * 10**6, 0, None)
PLACE = {"topic": "orders", "partition": 0}
COPY = CoverageRow(
    "orders", is_judged=True, status="COMPLETE", tail="CLEAN", first_offset=5, end_offset=100,
    answered_stable_offset=34, answered_high_watermark=50,
)  # fmt: skip
ANSWERS = answers_of([LiveProducer("orders", 0, 50, None, None, None)], [COPY])
CHECKS = ProducerChecks(
    as_of_ms=NOW, clock_tolerance_ms=0, producer_id_expiration_ms=1, whole_metadata_ms=NOW, highest=HIGHEST
)


def newest_spans():
    kinds = product([None, 10], [None, 20], TIMES, TIMES, [True, False], [True, False, None])
    for producer_id, (first, marker, last_ms, first_ms, is_open, is_exact) in enumerate(kinds):
        state = ProducerState(3, 4, 14, 0, None, 10 if is_open else None, last_ms)
        yield producer_id, NewestSpan(first, 14, is_exact, marker, NOW, first_ms, None, state)


def span_row(producer_id, span):
    fields = {name: getattr(span, name) for name in NewestSpan.__dataclass_fields__ if name != "state"}
    state = tuple(getattr(span.state, name) for name in ProducerState.__dataclass_fields__)
    return PLACE | fields | {"producer_id": producer_id, "span": 0, "state": state, "is_newest": True}


@pytest.mark.both
@pytest.mark.parametrize("answers", [{}, ANSWERS], ids=["nobody was asked", "the leader was asked"])
def test_newest_spans_that_are_cleared_have_no_finding(spark, answers):
    checks = ProducerChecks(
        **{name: getattr(CHECKS, name) for name in ProducerChecks.__dataclass_fields__} | {"answers": answers}
    )
    every = [OddProducer("orders", 0, producer_id, (), None, span) for producer_id, span in newest_spans()]
    spans = frame(spark, TABLES["producer_spans"], *[span_row(*each) for each in newest_spans()])
    kept = rows_of(odd_producers(spans, checks), OddProducer)
    expected = set(of_producers(every, checks))
    assert len(expected) > 100
    assert set(of_producers(kept, checks)) == expected
    assert len(kept) < len(every)


def test_all_suspects_of_a_producer_come_together_with_their_number(spark):
    batch = (15, 16, 2, 5, NOW, True, False, None, None)
    suspects = [
        PLACE | {"producer_id": 7, "suspect": ((3, 4, 14, 0, None, 10, NOW), (15 + number, *batch[1:]))}
        for number in range(3)
    ]
    newest = PLACE | {
        "producer_id": 7, "state": (3, 4, 14, 0, None, None, NOW), "suspects_count": SUSPECTS_KEPT + 2,
        "is_newest": True,
    }  # fmt: skip
    (kept,) = rows_of(odd_producers(frame(spark, TABLES["producer_spans"], *suspects, newest), CHECKS), OddProducer)
    assert sorted(suspect.batch.base_offset for suspect in kept.suspects) == [15, 16, 17]
    assert (kept.suspects_count, kept.newest) == (SUSPECTS_KEPT + 2, None)


def test_the_core_judges_each_row_of_a_selection(spark):
    spans = frame(spark, TABLES["producer_spans"], *[span_row(*each) for each in newest_spans()])
    odd, judge = odd_producers(spans, CHECKS), partial(of_producers, checks=CHECKS)
    found = arrow_of(rows_by_core("findings", Suspects(odd, OddProducer, judge)))
    expected = arrow_rows("findings", judge(rows_of(odd, OddProducer)))
    assert found.num_rows > 100
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, expected.to_pylist()))


#: First offset and marker of a span of a producer whose transaction was open from 10, or from 2, by its leader's
#: answer.
SPANS = list(product([None, 2, 10, 12], [None, 40, 50, 60]))


@pytest.mark.both
@pytest.mark.parametrize("start", [2, 10])
def test_spans_that_are_cleared_are_no_transaction_that_a_leader_called_open(spark, start):
    producers = range(len(SPANS))
    live = [LiveProducer("orders", 0, 50, producer_id, 3, start) for producer_id in producers]
    answers = answers_of(live, [COPY])
    every = [ToldSpan("orders", 0, producer_id, *span) for producer_id, span in enumerate(SPANS)]
    rows = [
        PLACE
        | {
            "producer_id": span.producer_id,
            "first_offset": span.first_offset,
            "marker_offset": span.marker_offset,
        }
        for span in every
    ]
    kept = told_spans(frame(spark, TABLES["producer_spans"], *rows), answers)
    assert set(lost_transactions(answers, kept)) == set(lost_transactions(answers, every))
    assert 0 < len(kept) < len(every)


#: First offset and marker of a transaction in the log, whether its start is exact, the leader's last stable offset, and
#: whether the transaction explains it.
STABLE_OFFSETS = {
    "nothing is in the log": (None, 34, False),
    "it is open": ((34, None, True), 34, True),
    "it has ended": ((34, 60, True), 34, True),
    "it began later": ((40, None, True), 34, False),
    "it had ended": ((10, 20, True), 34, False),
    "it began before the log, and the leader raised its answer": ((2, None, True), 5, True),
    "only its marker is in the log": ((None, 60, True), 34, True),
    "its start is hidden": ((40, None, False), 34, True),
    "data outside of transactions": ((None, None, True), 34, False),
}


def test_a_last_stable_offset_is_explained_by_a_transaction_that_was_open_there(spark):
    questions, spans = {}, []
    for number, (span, stable, _) in enumerate(STABLE_OFFSETS.values()):
        questions["orders", number] = replace(COPY, partition=number, answered_stable_offset=stable)
        if span is not None:
            first, marker, is_exact = span
            place = {"topic": "orders", "partition": number, "producer_id": 7, "is_start_exact": is_exact}
            spans.append(place | {"first_offset": first, "marker_offset": marker})
    expected = {("orders", number) for number, (*_, is_explained) in enumerate(STABLE_OFFSETS.values()) if is_explained}
    assert explained(frame(spark, TABLES["producer_spans"], *spans), questions) == expected


def test_of_an_id_that_was_asked_for_the_last_record_and_all_producer_ids_count(spark):
    place = {"transactional_id": "pay", "coordinator_partition": 3, "is_tombstone": False, "producer_epoch": 1}
    records = [
        place | {"offset": 5, "producer_id": 7, "state": "Empty"},
        place | {"offset": 9, "producer_id": 8, "state": "Ongoing"},
        place | {"offset": 9, "producer_id": 8, "state": "Ongoing", "transactional_id": "not asked"},
    ]
    live = [LiveTransaction(id_, 3, 8, 1, "Ongoing", 10) for id_ in ("pay", "unknown")]
    (found,) = asked_ids(frame(spark, TABLES["coordinator_states"], *records), live)
    assert (found.transactional_id, found.state, found.producer_id, found.offset) == ("pay", "Ongoing", 8, 9)
    assert sorted(found.producer_ids) == [7, 8]


def test_nothing_is_asked_of_the_log_without_answers():
    assert (told_spans(None, {}), explained(None, {}), asked_ids(None, [])) == ([], set(), [])
