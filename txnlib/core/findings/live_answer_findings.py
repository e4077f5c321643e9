"""Findings about logs that disagree with the answers of their brokers.

Brokers are asked when a capture is taken over the wire.

Only judged copies without damage are compared, and only what cannot have changed between the answer and the copy.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from txnlib.core.copies import CoverageRow, highest_of, is_above
from txnlib.core.finding import Finding, Severity, Topic
from txnlib.core.findings.copy_findings import CAPTURE_AGAIN
from txnlib.core.findings.finding_row import FindingRow, found, known
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.kafka.transaction_state import NEVER_WRITTEN_STATES
from txnlib.core.rows import OfProducer, OnPartition, grouped

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


Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class LiveProducer(OnPartition):
    """A row of `live_producers`."""

    high_watermark: int | None
    producer_id: int | None
    producer_epoch: int | None
    current_transaction_start_offset: int | None


@dataclass(frozen=True, slots=True)
class LiveTransaction:
    """A row of `live_transactions`."""

    transactional_id: str
    coordinator_partition: int
    producer_id: int | None
    producer_epoch: int | None
    state: str | None
    log_end_offset: int | None


def _is_sound(copy: CoverageRow) -> bool:
    return copy.is_judged and copy.damaged_offset is None and copy.tail in ("CLEAN", "ZEROS")


@dataclass(frozen=True, slots=True)
class LiveAnswer:
    """What the leader of a partition with a sound copy answered."""

    high_watermark: int | None
    #: Of the copy.
    begin_offset: int | None
    end_offset: int | None
    producers: Mapping[int, list[LiveProducer]] = field(default_factory=lambda: defaultdict(list))

    @property
    def told(self) -> list[LiveProducer]:
        """The open transactions in it that begin before the end of the copy."""
        each = [live for producer in self.producers.values() for live in producer]
        return [live for live in each if is_above(self.end_offset, live.current_transaction_start_offset)]


def answers_of(live_producers: Sequence[LiveProducer], coverage: Sequence[CoverageRow]) -> dict[Place, LiveAnswer]:
    """The answer about each partition that has a sound copy. Kafka: `ProducerStateManager.activeProducers`."""
    sound = {copy.place: copy for copy in coverage if _is_sound(copy)} if live_producers else {}
    marks = highest_of(((live.topic, live.partition), live.high_watermark) for live in live_producers)
    answers: dict[Place, LiveAnswer] = {}
    for live in live_producers:
        place = live.topic, live.partition
        if (copy := sound.get(place)) is not None:
            answer = answers.setdefault(place, LiveAnswer(marks.get(place), copy.first_offset, copy.end_offset))
            if live.producer_id is not None:
                answer.producers[live.producer_id].append(live)
    return answers


def of_open_transaction(
    answer: LiveAnswer, at: object, producer_id: int, *, start: int, epoch: int | None, last_offset: int | None
) -> Iterator[FindingRow]:
    """The finding about an open transaction that was in the log when the leader was asked, and that it describes
    differently.

    `start` must be exact. Kafka: `DescribeProducersResponse`.
    """
    if not is_above(answer.high_watermark, start):
        return
    is_unchanged = is_above(answer.high_watermark, last_offset)
    described: Sequence[LiveProducer | None] = answer.producers.get(producer_id) or [None]
    for live in described:
        live_start = None if live is None else live.current_transaction_start_offset
        live_epoch = None if live is None else live.producer_epoch
        if start == live_start and not (is_unchanged and epoch != live_epoch):
            continue
        says = "no open transaction of the producer"
        if live_start is not None and live_epoch is not None:
            says = f"open since offset {live_start}, producer epoch {live_epoch}"
        evidence = f"the log: open since offset {start}, producer epoch {known(epoch)}; the leader: {says}"
        yield found(LIVE_ANSWER_DISAGREES, evidence, at, offset=start)


@dataclass(frozen=True, slots=True)
class ToldSpan(OfProducer):
    """A span of `producer_spans` of a producer with an open transaction by its leader's answer."""

    first_offset: int | None
    marker_offset: int | None


def lost_transactions(answers: Mapping[Place, LiveAnswer], spans: Sequence[ToldSpan]) -> Iterator[FindingRow]:
    """Transactions that were open for the leader, and that the log does not have, or had ended by then."""
    spans_of = grouped(spans, lambda span: ((span.topic, span.partition), span.producer_id))
    for place, answer in answers.items():
        for live in answer.told:
            start, producer_id = live.current_transaction_start_offset, live.producer_id
            assert start is not None
            assert producer_id is not None
            if not any(_has(span, start, answer) for span in spans_of[place, producer_id]):
                says = f"the leader: open since offset {start}; the log: no transaction of the producer was open there"
                yield found(LIVE_ANSWER_DISAGREES, says, live, offset=start)


def _has(span: ToldSpan, start: int, answer: LiveAnswer) -> bool:
    """Whether a span is the transaction that was open for the leader."""
    begins = span.first_offset == start
    if span.marker_offset is None:
        return begins
    has_ended_since = answer.high_watermark is not None and span.marker_offset >= answer.high_watermark
    return has_ended_since and (begins or is_above(answer.begin_offset, start))


def stable_questions(coverage: Sequence[CoverageRow]) -> dict[Place, CoverageRow]:
    """The partitions whose leader answered a last stable offset below its high watermark."""
    return {
        copy.place: copy
        for copy in coverage
        if (copy.is_judged or (copy.status == "MISSING" and copy.is_gone is None))
        and is_above(copy.answered_high_watermark, copy.answered_stable_offset)
    }


def unexplained_stable_offsets(
    questions: Mapping[Place, CoverageRow], explained: AbstractSet[Place]
) -> Iterator[FindingRow]:
    """Last stable offsets below the high watermark that no transaction in the log explains.

    `explained`: the partitions with a transaction that was open there.
    """
    for place, copy in questions.items():
        if place not in explained:
            log = "not captured" if copy.status == "MISSING" else "no transaction that was open there"
            says = (
                f"the leader: last stable offset {copy.answered_stable_offset}, "
                f"high watermark {copy.answered_high_watermark}; the log: {log}"
            )
            yield found(LIVE_STABLE_OFFSET_DISAGREES, says, copy, offset=copy.answered_stable_offset)


@dataclass(frozen=True, slots=True)
class AskedId:
    """The last record of an id that a coordinator described, and all producer ids that its records name."""

    transactional_id: str
    coordinator_partition: int
    producer_id: int | None
    producer_epoch: int | None
    state: str | None
    offset: int
    producer_ids: tuple[int, ...]


def of_live_transactions(
    live_transactions: Sequence[LiveTransaction], ids: Sequence[AskedId], coverage: Sequence[CoverageRow]
) -> Iterator[FindingRow]:
    """Ids that coordinators describe differently from their records.

    These are ids whose last record was there when the coordinator was asked, and ids with a producer id that none of
    their records names: producer ids never change their owner. Kafka:
    `TransactionCoordinator.handleDescribeTransactions`.
    """
    sound = {copy.partition for copy in coverage if copy.topic == TRANSACTION_STATE_TOPIC and _is_sound(copy)}
    last = {(each.transactional_id, each.coordinator_partition): each for each in ids}
    named = {(each.transactional_id, producer_id) for each in ids for producer_id in each.producer_ids}
    for live in live_transactions:
        record = last.get((live.transactional_id, live.coordinator_partition))
        is_told = live.state not in (None, *_NEVER_WRITTEN) and live.coordinator_partition in sound
        if (
            record is not None
            and is_told
            and is_above(live.log_end_offset, record.offset)
            and _state(record) != _state(live)
        ):
            says = f"the log: {_state(record)}; the coordinator: {_state(live)}"
            yield found(LIVE_ANSWER_DISAGREES, says, record)
        if (
            live.producer_id is not None
            and live.producer_id >= 0
            and (live.transactional_id, live.producer_id) not in named
        ):
            epoch = "not told" if live.producer_epoch is None else live.producer_epoch
            told = f"{live.state or 'no state'}, producer epoch {epoch}"
            says = f"the log: no record of the id with this producer id; the coordinator: {told}"
            yield found(LIVE_OWNER_UNKNOWN, says, live)


_NEVER_WRITTEN = frozenset(state.kafka_name for state in NEVER_WRITTEN_STATES)


def _state(of: AskedId | LiveTransaction) -> str:
    return f"{of.state or 'no state'}, producer id {known(of.producer_id)}, producer epoch {known(of.producer_epoch)}"
