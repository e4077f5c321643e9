"""Findings about logs that disagree with the answers of their brokers.

Spark selects what the core compares these answers with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pyspark.sql import DataFrame

from txnlib.core.copies import CoverageRow
from txnlib.core.findings.finding_row import FindingRow
from txnlib.core.findings.live_answer_findings import (
    AskedId,
    LiveAnswer,
    LiveProducer,
    LiveTransaction,
    Place,
    ToldSpan,
    answers_of,
    lost_transactions,
    of_live_transactions,
    stable_questions,
    unexplained_stable_offsets,
)
from txnlib.spark.coordinators.transactional_ids import last_records
from txnlib.spark.core_rows import rows_of
from txnlib.spark.frames import local_rows
from txnlib.spark.joins import broadcast
from txnlib.spark.schemas import PRODUCER, TOPIC_PARTITION


def live_answer_findings(
    live_producers: Sequence[LiveProducer],
    live_transactions: Sequence[LiveTransaction],
    coverage: Sequence[CoverageRow],
    producer_spans: DataFrame,
    coordinator_states: DataFrame,
) -> Iterator[FindingRow]:
    """Disagreements that only all answers together show; `producer_findings` has those of single open transactions."""
    answers, questions = answers_of(live_producers, coverage), stable_questions(coverage)
    yield from lost_transactions(answers, told_spans(producer_spans, answers))
    yield from unexplained_stable_offsets(questions, explained(producer_spans, questions))
    yield from of_live_transactions(live_transactions, asked_ids(coordinator_states, live_transactions), coverage)


def told_spans(producer_spans: DataFrame, answers: Mapping[Place, LiveAnswer]) -> list[ToldSpan]:
    """The spans that may be the transactions that leaders called open."""
    told = [
        (*place, live.producer_id, live.current_transaction_start_offset, answer.begin_offset, answer.high_watermark)
        for place, answer in answers.items()
        for live in answer.told
    ]
    if not told:
        return []
    schema = "topic string, partition int, producer_id long, live_start long, begin_offset long, high_watermark long"
    opened = broadcast(local_rows(producer_spans.sparkSession, told, schema))
    has_ended_since = "(marker_offset >= high_watermark AND live_start < begin_offset)"
    near = producer_spans.join(opened, on=list(PRODUCER), how="inner")
    return rows_of(near.where(f"first_offset = live_start OR {has_ended_since}"), ToldSpan)


def explained(producer_spans: DataFrame, questions: Mapping[Place, CoverageRow]) -> set[Place]:
    """The partitions in which a transaction was open at the last stable offset that the leader answered.

    It may have begun by then, at or below that offset, and no marker below it ended it.
    """
    if not questions:
        return set()
    asked = [(*place, copy.answered_stable_offset) for place, copy in questions.items()]
    told = broadcast(local_rows(producer_spans.sparkSession, asked, "topic string, partition int, stable_offset long"))
    found = (
        producer_spans.where("first_offset IS NOT NULL OR marker_offset IS NOT NULL")
        .join(told, on=list(TOPIC_PARTITION))
        .where("coalesce(if(is_start_exact, first_offset, NULL), 0) <= stable_offset")
        .where("coalesce(marker_offset >= stable_offset, TRUE)")
    )
    return {(row["topic"], row["partition"]) for row in found.select(*TOPIC_PARTITION).distinct().collect()}


def asked_ids(coordinator_states: DataFrame, live_transactions: Sequence[LiveTransaction]) -> list[AskedId]:
    """What the records of the ids show that coordinators described."""
    if not live_transactions:
        return []
    names = {(live.transactional_id,) for live in live_transactions}
    asked = broadcast(local_rows(coordinator_states.sparkSession, names, "transactional_id string"))
    records = coordinator_states.join(asked, on="transactional_id", how="left_semi")
    last = last_records(records, "collect_set(producer_id) AS producer_ids")
    return rows_of(last.withColumnRenamed("record_offset", "offset"), AskedId)
