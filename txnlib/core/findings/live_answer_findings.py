"""Findings about logs that disagree with the answers of their brokers.

Brokers are asked when a capture is taken over the wire.

Only judged copies without damage are compared, and only what cannot have changed between the answer and the copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from txnlib.core.copies import IS_SOUND, is_above
from txnlib.core.finding import Finding, Severity, Topic
from txnlib.core.findings.copy_findings import CAPTURE_AGAIN
from txnlib.core.findings.rule import FindingRow, QueryStep, Rule, found, known
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.kafka.transaction_state import NEVER_WRITTEN_STATES
from txnlib.core.rows import OfProducer, OnPartition
from txnlib.core.sql_text import IS_OPEN, last_records

LIVE_ANSWER_DISAGREES: Final = Finding(
    name="LIVE_ANSWER_DISAGREES",
    severity=Severity.ERROR,
    topic=Topic.FILES,
    meaning=(
        "A broker and its log disagree: a leader about the open transaction of a producer, or a coordinator about"
        " the state of a transactional id."
    ),
    advice=CAPTURE_AGAIN,
)
LIVE_STABLE_OFFSET_DISAGREES: Final = Finding(
    name="LIVE_STABLE_OFFSET_DISAGREES",
    severity=Severity.ERROR,
    topic=Topic.FILES,
    meaning=(
        "The leader answered a last stable offset below its high watermark, and the log shows no transaction that"
        " was open there."
    ),
    advice=CAPTURE_AGAIN,
)
LIVE_OWNER_UNKNOWN: Final = Finding(
    name="LIVE_OWNER_UNKNOWN",
    severity=Severity.ERROR,
    topic=Topic.FILES,
    meaning=("A coordinator described a transactional id with a producer id that no captured record of the id names."),
    advice=CAPTURE_AGAIN,
)


@dataclass(frozen=True, slots=True)
class DescribedTransaction:
    """What a leader answered about a producer: its epoch, and where its open transaction begins; None if it has none
    open."""

    producer_epoch: int | None
    start_offset: int | None


@dataclass(frozen=True, slots=True)
class LoggedTransaction(OfProducer):
    """A transaction that is open in the log, with an exact start, and what its leader answered about the producer."""

    start_offset: int
    producer_epoch: int | None
    last_offset: int | None
    #: When the leader was asked.
    high_watermark: int | None
    described: tuple[DescribedTransaction, ...] = ()


def of_logged(transactions: Iterable[LoggedTransaction]) -> Iterator[FindingRow]:
    """A finding for each transaction that was in the log when its leader was asked, and that the answer shows otherwise
    or not at all. Kafka: `DescribeProducersResponse`."""
    for each in transactions:
        if not is_above(each.high_watermark, each.start_offset):
            continue
        is_unchanged = is_above(each.high_watermark, each.last_offset)
        for live in each.described or (DescribedTransaction(None, None),):
            is_same_epoch = each.producer_epoch == live.producer_epoch
            if each.start_offset == live.start_offset and (is_same_epoch or not is_unchanged):
                continue
            says = "no open transaction of the producer"
            if live.start_offset is not None and live.producer_epoch is not None:
                says = f"open since offset {live.start_offset}, producer epoch {live.producer_epoch}"
            log = f"open since offset {each.start_offset}, producer epoch {known(each.producer_epoch)}"
            yield found(LIVE_ANSWER_DISAGREES, f"the log: {log}; the leader: {says}", each, offset=each.start_offset)


LOGGED_TRANSACTIONS: Final = Rule(
    of="live_producers",
    query=f"""
    WITH answered AS (
      SELECT topic, partition, max(high_watermark) AS high_watermark
      FROM {{live_producers}}
      LEFT SEMI JOIN (SELECT topic, partition FROM {{coverage}} WHERE {IS_SOUND}) AS sound USING (topic, partition)
      GROUP BY topic, partition
    ), described AS (
      SELECT topic, partition, producer_id,
        collect_list(struct(producer_epoch, current_transaction_start_offset AS start_offset)) AS described
      FROM {{live_producers}} WHERE producer_id IS NOT NULL GROUP BY topic, partition, producer_id
    ), opened AS (
      SELECT topic, partition, producer_id, state.current_txn_first_offset AS start_offset,
        state.producer_epoch AS producer_epoch, state.last_offset AS last_offset
      FROM {{producer_spans}}
      WHERE {IS_OPEN} AND is_start_exact AND state.current_txn_first_offset IS NOT NULL
    )
    SELECT /*+ BROADCAST(answered) */ topic, partition, producer_id, start_offset, producer_epoch, last_offset,
      high_watermark, described
    FROM opened JOIN answered USING (topic, partition)
    LEFT JOIN described USING (topic, partition, producer_id)
    """,
    judge=of_logged,
)


@dataclass(frozen=True, slots=True)
class ToldSpan:
    """A span of `producer_spans` that may be the transaction that a leader told of."""

    first_offset: int | None
    marker_offset: int | None


@dataclass(frozen=True, slots=True)
class ToldTransaction(OfProducer):
    """A transaction that the leader answered to be open, below the end of the copy; and the spans of its producer that
    may be it."""

    start_offset: int
    #: When the leader was asked.
    high_watermark: int | None
    #: Of the copy.
    begin_offset: int | None
    spans: tuple[ToldSpan, ...] = ()


def of_told(transactions: Iterable[ToldTransaction]) -> Iterator[FindingRow]:
    """A finding for each transaction that the leader answered to be open, and that the log does not have, or had ended
    by then. Kafka: `ProducerStateManager.activeProducers`."""
    for each in transactions:
        if not any(_is_told(span, each) for span in each.spans):
            start = each.start_offset
            says = f"the leader: open since offset {start}; the log: no transaction of the producer was open there"
            yield found(LIVE_ANSWER_DISAGREES, says, each, offset=start)


def _is_told(span: ToldSpan, told: ToldTransaction) -> bool:
    """Whether a span is the transaction that the leader answered to be open."""
    begins = span.first_offset == told.start_offset
    if span.marker_offset is None:
        return begins
    has_ended_since = told.high_watermark is not None and span.marker_offset >= told.high_watermark
    return has_ended_since and (begins or is_above(told.begin_offset, told.start_offset))


TOLD_TRANSACTIONS: Final = Rule(
    of="live_producers",
    steps=(
        QueryStep(
            "told",
            f"""
            SELECT topic, partition, producer_id, current_transaction_start_offset AS start_offset, high_watermark,
              begin_offset
            FROM (
              SELECT topic, partition, producer_id, current_transaction_start_offset,
                max(high_watermark) OVER (PARTITION BY topic, partition) AS high_watermark
              FROM {{live_producers}}
            )
            JOIN (
              SELECT topic, partition, first_offset AS begin_offset, end_offset FROM {{coverage}} WHERE {IS_SOUND}
            ) USING (topic, partition)
            WHERE producer_id IS NOT NULL AND current_transaction_start_offset < end_offset
            """,
        ),
    ),
    query="""
    WITH near AS (
      SELECT /*+ BROADCAST(told) */ topic, partition, producer_id, start_offset,
        collect_list(struct(first_offset, marker_offset)) AS spans
      FROM {producer_spans}
      JOIN (
        SELECT DISTINCT topic, partition, producer_id, start_offset, high_watermark, begin_offset FROM {told}
      ) AS told USING (topic, partition, producer_id)
      WHERE first_offset = start_offset OR (marker_offset >= high_watermark AND start_offset < begin_offset)
      GROUP BY topic, partition, producer_id, start_offset
    )
    SELECT topic, partition, producer_id, start_offset, high_watermark, begin_offset, spans
    FROM {told} LEFT JOIN near USING (topic, partition, producer_id, start_offset)
    """,
    judge=of_told,
)


@dataclass(frozen=True, slots=True)
class UnexplainedStableOffset(OnPartition):
    """A last stable offset that a leader answered, below its high watermark, although the log has nothing open
    there."""

    #: Of the copy.
    status: str
    answered_stable_offset: int
    answered_high_watermark: int


def of_stable_offsets(offsets: Iterable[UnexplainedStableOffset]) -> Iterator[FindingRow]:
    """A finding for each such offset."""
    for each in offsets:
        log = "not captured" if each.status == "MISSING" else "no transaction that was open there"
        says = (
            f"the leader: last stable offset {each.answered_stable_offset}, "
            f"high watermark {each.answered_high_watermark}; the log: {log}"
        )
        yield found(LIVE_STABLE_OFFSET_DISAGREES, says, each, offset=each.answered_stable_offset)


#: A transaction explains the answered offset if it may begin at or below the offset, and if no marker below the offset
#: ended it.
UNEXPLAINED_OFFSETS: Final = Rule(
    of="coverage",
    steps=(
        QueryStep(
            "asked",
            """
            SELECT topic, partition, status, answered_stable_offset, answered_high_watermark
            FROM {coverage}
            WHERE answered_stable_offset < answered_high_watermark
              AND (is_judged OR (status = 'MISSING' AND is_gone IS NULL))
            """,
        ),
    ),
    query="""
    WITH explained AS (
      SELECT /*+ BROADCAST(asked) */ DISTINCT topic, partition
      FROM {producer_spans}
      JOIN (SELECT topic, partition, answered_stable_offset FROM {asked}) AS asked USING (topic, partition)
      WHERE (first_offset IS NOT NULL OR marker_offset IS NOT NULL)
        AND coalesce(if(is_start_exact, first_offset, NULL), 0) <= answered_stable_offset
        AND coalesce(marker_offset >= answered_stable_offset, TRUE)
    )
    SELECT topic, partition, status, answered_stable_offset, answered_high_watermark
    FROM {asked} LEFT ANTI JOIN explained USING (topic, partition)
    """,
    judge=of_stable_offsets,
)


@dataclass(frozen=True, slots=True)
class DescribedId:
    """A transactional id as its coordinator described it, and its last record."""

    transactional_id: str
    coordinator_partition: int
    live_producer_id: int | None
    live_epoch: int | None
    live_state: str | None
    #: The end of the coordinator's log when it was asked; None if its copy is not sound.
    log_end_offset: int | None
    #: Of the last record; None if there is none.
    offset: int | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    state: str | None = None
    #: Every producer id in the records of the id.
    producer_ids: tuple[int, ...] = ()


def of_described(ids: Iterable[DescribedId]) -> Iterator[FindingRow]:
    """Findings about ids that their coordinators describe differently from the records.

    These are ids whose last record was there when the coordinator was asked, and ids with a producer id that none of
    their records names: producer ids never change their owner. Kafka:
    `TransactionCoordinator.handleDescribeTransactions`.
    """
    for each in ids:
        if each.live_state not in (None, *_NEVER_WRITTEN) and is_above(each.log_end_offset, each.offset):
            log = _state(each.state, each.producer_id, each.producer_epoch)
            live = _state(each.live_state, each.live_producer_id, each.live_epoch)
            if log != live:
                yield found(LIVE_ANSWER_DISAGREES, f"the log: {log}; the coordinator: {live}", each)
        producer_id = each.live_producer_id
        if producer_id is not None and producer_id >= 0 and producer_id not in each.producer_ids:
            epoch = "not told" if each.live_epoch is None else each.live_epoch
            told = f"{each.live_state or 'no state'}, producer epoch {epoch}"
            says = f"the log: no record of the id with this producer id; the coordinator: {told}"
            yield found(LIVE_OWNER_UNKNOWN, says, each, offset=None, producer_id=producer_id)


_NEVER_WRITTEN: Final = frozenset(state.kafka_name for state in NEVER_WRITTEN_STATES)


def _state(state: str | None, producer_id: int | None, epoch: int | None) -> str:
    return f"{state or 'no state'}, producer id {known(producer_id)}, producer epoch {known(epoch)}"


DESCRIBED_IDS: Final = Rule(
    of="live_transactions",
    query=f"""
    WITH asked AS (
      SELECT transactional_id, coordinator_partition, producer_id AS live_producer_id, producer_epoch AS live_epoch,
        state AS live_state, if(sound.partition IS NULL, NULL, log_end_offset) AS log_end_offset
      FROM {{live_transactions}} LEFT JOIN (
        SELECT partition FROM {{coverage}} WHERE topic = '{TRANSACTION_STATE_TOPIC}' AND {IS_SOUND}
      ) AS sound ON sound.partition = coordinator_partition
    ), records AS (
      SELECT /*+ BROADCAST(named) */ *
      FROM {{coordinator_states}} LEFT SEMI JOIN (SELECT transactional_id FROM {{live_transactions}}) AS named
        USING (transactional_id)
    ), newest AS ({last_records("records")}), owned AS (
      SELECT transactional_id, collect_set(producer_id) AS producer_ids FROM records GROUP BY transactional_id
    )
    SELECT transactional_id, coordinator_partition, live_producer_id, live_epoch, live_state, log_end_offset,
      record_offset AS offset, producer_id, producer_epoch, state, producer_ids
    FROM asked
    LEFT JOIN newest USING (transactional_id, coordinator_partition)
    LEFT JOIN owned USING (transactional_id)
    """,
    judge=of_described,
)
