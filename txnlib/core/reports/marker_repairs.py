"""`marker_repairs`: the partitions of decided transactions without their marker.

`core.verdicts.lost_marker` has what each of them needs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.reports.keys import TransactionKey
from txnlib.core.verdicts.lost_marker import Fate, LostMarker, repair
from txnlib.core.verdicts.transaction_outcome import MarkerState

#: The states of a marker that is due and not there.
LACKING: Final = (MarkerState.MISSING, MarkerState.PENDING, MarkerState.CONTRADICTING)


@dataclass(frozen=True, slots=True)
class LackingPartition:
    """A row of `transaction_outcomes` in one of the states LACKING."""

    transactional_id: str
    coordinator_partition: int
    transaction_number: int
    producer_id: int
    topic: str
    partition: int
    decided_outcome: str
    decided_ms: int | None
    marker: str
    marker_offset: int | None
    first_offset: int | None
    outcome: str | None

    @property
    def key(self) -> TransactionKey:
        return TransactionKey(self.transactional_id, self.coordinator_partition, self.transaction_number)


@dataclass(frozen=True, slots=True)
class EpochCopy:
    """A row of `coverage`: the leader epoch of a copy."""

    topic: str
    partition: int
    leader_epoch: int | None


@dataclass(frozen=True, slots=True)
class DecidedTransaction:
    """A row of `transactions`."""

    transactional_id: str
    coordinator_partition: int
    transaction_number: int
    producer_epoch: int
    decided_epoch: int | None
    transaction_version: int | None
    cluster_transaction_version: int | None
    completed_ms: int | None

    @property
    def due_epoch(self) -> int:
        """The epoch that the coordinator gives the markers."""
        return self.producer_epoch if self.decided_epoch is None else self.decided_epoch

    @property
    def version(self) -> int | None:
        return self.cluster_transaction_version if self.transaction_version is None else self.transaction_version


@dataclass(frozen=True, slots=True)
class RecordsOfProducer:
    """Asked of `producer_spans`: its newest span, and those that began by an instant and ended after another."""

    topic: str
    partition: int
    producer_id: int
    began_by_ms: int | None
    ended_after_ms: int | None


@dataclass(frozen=True, slots=True)
class SpanOfProducer:
    """Answered: such a span. The newest one has the epochs that the partition has seen."""

    topic: str
    partition: int
    producer_id: int
    first_offset: int | None
    began_ms: int | None
    marker_offset: int | None
    marker_type: str | None
    ended_ms: int | None
    is_last: bool
    seen_epoch: int | None
    seen_coordinator_epoch: int | None


@dataclass(frozen=True, slots=True)
class DueMarker:
    """Asked of `record_batches`: a marker, in any copy of the partition."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    control_type: str
    since_ms: int | None


@dataclass(frozen=True, slots=True)
class CopyWithMarker:
    """A copy of a partition, and where it has a marker."""

    broker: str | None
    source: str
    offset: int


@dataclass(frozen=True, slots=True)
class FoundMarker:
    """Answered: a copy that has a due marker."""

    due: DueMarker
    copy: CopyWithMarker


@dataclass(frozen=True, slots=True)
class CoordinatorKey:
    """Asked of `coordinator_states`."""

    coordinator_partition: int


@dataclass(frozen=True, slots=True)
class CoordinatorEpoch:
    """Answered: the newest coordinator epoch in the records of a coordinator partition."""

    coordinator_partition: int
    coordinator_epoch: int | None


@dataclass(frozen=True, slots=True)
class MarkerRepair:
    """A row of `marker_repairs`."""

    as_of_ms: int
    transactional_id: str
    coordinator_partition: int
    transaction_number: int
    producer_id: int
    topic: str
    partition: int
    decided_outcome: str
    decided_ms: int | None
    marker: str
    copies: tuple[CopyWithMarker, ...] | None
    marker_epoch: int
    coordinator_epoch: int | None
    transaction_version: int | None
    seen_epoch: int | None
    seen_coordinator_epoch: int | None
    is_accepted: str
    request: str | None
    tool: str
    fate: Fate
    first_offset: int | None
    ended_at_offset: int | None
    consumers_saw: str


def marker_repairs(
    transaction_outcomes: Sequence[LackingPartition],
    coverage: Sequence[EpochCopy],
    transactions: Callable[[Sequence[TransactionKey]], Sequence[DecidedTransaction]],
    spans_of_producers: Callable[[Sequence[RecordsOfProducer]], Sequence[SpanOfProducer]],
    copies_with_markers: Callable[[Sequence[DueMarker]], Sequence[FoundMarker]],
    coordinator_epochs: Callable[[Sequence[CoordinatorKey]], Sequence[CoordinatorEpoch]],
    *,
    as_of_ms: int,
    kafka_version: str | None,
) -> Iterator[MarkerRepair]:
    """A row for each partition of a decided transaction without its marker."""
    lacking = transaction_outcomes
    decided = {
        TransactionKey(each.transactional_id, each.coordinator_partition, each.transaction_number): each
        for each in transactions([each.key for each in lacking])
    }
    due = [(each, decided[each.key]) for each in lacking if each.key in decided]
    spans: dict[_Producer, list[SpanOfProducer]] = defaultdict(list)
    for span in spans_of_producers([_records_of(each, of) for each, of in due]):
        spans[span.topic, span.partition, span.producer_id].append(span)
    copies: dict[DueMarker, set[CopyWithMarker]] = defaultdict(set)
    for found in copies_with_markers([_marker_of(each, of) for each, of in due]):
        copies[found.due].add(found.copy)
    coordinators = sorted({each.coordinator_partition for each in lacking})
    epochs = _newest_epochs(coordinator_epochs([CoordinatorKey(number) for number in coordinators]), coverage)
    for each, of in due:
        of_producer = spans[each.topic, each.partition, each.producer_id]
        records = _fate(each, _ended_later(_records_of(each, of), of_producer))
        seen = next((span for span in of_producer if span.is_last), None)
        lost = LostMarker(
            topic=each.topic,
            partition=each.partition,
            producer_id=each.producer_id,
            marker_epoch=of.due_epoch,
            coordinator_epoch=epochs.get(each.coordinator_partition),
            decided_outcome=each.decided_outcome,
            marker=each.marker,
            transaction_version=of.version,
            seen_epoch=None if seen is None else seen.seen_epoch,
            seen_coordinator_epoch=None if seen is None else seen.seen_coordinator_epoch,
            fate=records.fate,
            first_offset=records.first_offset,
            ended_at_offset=records.ended_at_offset,
        )
        needed = repair(lost, kafka_version)
        yield MarkerRepair(
            as_of_ms=as_of_ms,
            transactional_id=each.transactional_id,
            coordinator_partition=each.coordinator_partition,
            transaction_number=each.transaction_number,
            producer_id=each.producer_id,
            topic=each.topic,
            partition=each.partition,
            decided_outcome=each.decided_outcome,
            decided_ms=each.decided_ms,
            marker=each.marker,
            copies=_in_order(copies[_marker_of(each, of)]),
            marker_epoch=lost.marker_epoch,
            coordinator_epoch=lost.coordinator_epoch,
            transaction_version=lost.transaction_version,
            seen_epoch=lost.seen_epoch,
            seen_coordinator_epoch=lost.seen_coordinator_epoch,
            is_accepted=needed.is_accepted,
            request=needed.request,
            tool=needed.tool,
            fate=records.fate,
            first_offset=lost.first_offset,
            ended_at_offset=lost.ended_at_offset,
            consumers_saw=needed.consumers_saw,
        )


_Producer = tuple[str, int, int]


def _records_of(lacking: LackingPartition, of: DecidedTransaction) -> RecordsOfProducer:
    """What the transaction wrote: before it was complete, and not ended when it was decided."""
    began_by_ms = lacking.decided_ms if of.completed_ms is None else of.completed_ms
    return RecordsOfProducer(lacking.topic, lacking.partition, lacking.producer_id, began_by_ms, lacking.decided_ms)


def _marker_of(lacking: LackingPartition, of: DecidedTransaction) -> DueMarker:
    """The marker that is due. A copy that is not judged may be that of an old leader, and have it."""
    place = (lacking.topic, lacking.partition, lacking.producer_id)
    return DueMarker(*place, of.due_epoch, lacking.decided_outcome, lacking.decided_ms)


def _ended_later(records: RecordsOfProducer, spans: Sequence[SpanOfProducer]) -> SpanOfProducer | None:
    """The first span of these records that a marker ended."""
    ended = [span for span in spans if span.marker_offset is not None and span.first_offset is not None and _is_of(records, span)]
    return min(ended, key=lambda span: span.marker_offset or 0, default=None)


def _is_of(records: RecordsOfProducer, span: SpanOfProducer) -> bool:
    if records.began_by_ms is None or records.ended_after_ms is None or span.began_ms is None or span.ended_ms is None:
        return False
    return span.began_ms <= records.began_by_ms and span.ended_ms > records.ended_after_ms


@dataclass(frozen=True, slots=True)
class _Records:
    """What became of the records that the marker should have ended."""

    fate: Fate
    first_offset: int | None
    ended_at_offset: int | None


def _fate(lacking: LackingPartition, later: SpanOfProducer | None) -> _Records:
    first_offset = later.first_offset if lacking.first_offset is None and later is not None else lacking.first_offset
    ended_at = later.marker_offset if lacking.marker_offset is None and later is not None else lacking.marker_offset
    if lacking.marker == MarkerState.CONTRADICTING:
        return _Records(Fate(lacking.outcome or Fate.NONE), first_offset, ended_at)
    if lacking.first_offset is not None:
        return _Records(Fate.OPEN, first_offset, None)
    return _Records(Fate(later.marker_type) if later is not None and later.marker_type else Fate.NONE, first_offset, ended_at)


def _in_order(copies: set[CopyWithMarker]) -> tuple[CopyWithMarker, ...] | None:
    return tuple(sorted(copies, key=lambda copy: (copy.broker or "", copy.source, copy.offset))) or None


def _newest_epochs(of_records: Sequence[CoordinatorEpoch], coverage: Sequence[EpochCopy]) -> dict[int, int]:
    """Coordinator partition -> its newest coordinator epoch, which the request must carry."""
    known = [(each.coordinator_partition, each.coordinator_epoch) for each in of_records]
    known += [(copy.partition, copy.leader_epoch) for copy in coverage if copy.topic == TRANSACTION_STATE_TOPIC]
    newest: dict[int, int] = {}
    for partition, epoch in known:
        if epoch is not None:
            newest[partition] = max(newest.get(partition, epoch), epoch)
    return newest
