"""`marker_repairs`: the partitions of decided transactions without their marker, and what each needs.

Nothing here writes to a cluster. The request is shown so that somebody can judge a repair, or hand it to Kafka's
developers. Kafka: `WriteTxnMarkersRequest`, `AbortTransactionHandler.buildBatchedRequest`,
`TransactionMarkerChannelManager`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from txnlib.core.copies import CoverageRow, highest_of
from txnlib.core.coverage.captured_files import broker_of
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC, is_from
from txnlib.core.kafka.marker_acceptance import LAST_EPOCH, Acceptance, acceptance, record_epochs
from txnlib.core.rows import OfProducer, TransactionKey, grouped, row_of
from txnlib.core.schema import row_class
from txnlib.core.verdicts.transaction_outcome import MarkerState

#: The states of a marker that is due and not there.
LACKING: Final = (MarkerState.MISSING, MarkerState.PENDING, MarkerState.CONTRADICTING)


@dataclass(frozen=True, slots=True)
class LackingPartition(TransactionKey):
    """A row of `transaction_outcomes` in one of the states LACKING."""

    producer_id: int
    topic: str
    partition: int
    decided_outcome: str
    decided_ms: int | None
    marker: str
    marker_offset: int | None
    first_offset: int | None
    outcome: str | None


@dataclass(frozen=True, slots=True)
class DecidedTransaction(TransactionKey):
    """A row of `transactions`."""

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
class RecordsOfProducer(OfProducer):
    """Asked of `producer_spans`: its newest span, and those that began by an instant and ended after another."""

    began_by_ms: int | None
    ended_after_ms: int | None


@dataclass(frozen=True, slots=True)
class SpanOfProducer(OfProducer):
    """Answered: such a span. The newest one has the epochs that the partition has seen."""

    first_offset: int | None
    began_ms: int | None
    marker_offset: int | None
    marker_type: str | None
    ended_ms: int | None
    is_last: bool
    seen_epoch: int | None
    seen_coordinator_epoch: int | None
    first_epoch: int | None = None
    marker_epoch: int | None = None

    @property
    def open_offset(self) -> int | None:
        """The offset of its first record, if no marker has ended it."""
        return self.first_offset if self.is_last and self.marker_offset is None else None


@dataclass(frozen=True, slots=True)
class DueMarker(OfProducer):
    """Asked of `record_batches`: a marker, in any copy of the partition."""

    producer_epoch: int
    control_type: str
    since_ms: int | None


@dataclass(frozen=True, slots=True)
class CopyWithMarker:
    """A copy of a partition, and where it has a marker."""

    source: str
    offset: int

    @property
    def broker(self) -> str | None:
        return broker_of(self.source)


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


MarkerRepair: Final = row_class("marker_repairs")


def marker_repairs(
    transaction_outcomes: Sequence[LackingPartition],
    coverage: Sequence[CoverageRow],
    transactions: Callable[[Sequence[TransactionKey]], Sequence[DecidedTransaction]],
    spans_of_producers: Callable[[Sequence[RecordsOfProducer]], Sequence[SpanOfProducer]],
    copies_with_markers: Callable[[Sequence[DueMarker]], Sequence[FoundMarker]],
    coordinator_epochs: Callable[[Sequence[CoordinatorKey]], Sequence[CoordinatorEpoch]],
    *,
    as_of_ms: int,
    kafka_version: str | None,
) -> Iterator[Any]:
    """A row for each partition of a decided transaction without its marker."""
    lacking = transaction_outcomes
    decided = {each.key: each for each in transactions([each.key for each in lacking])}
    due = [(each, decided[each.key]) for each in lacking if each.key in decided]
    found_spans = spans_of_producers([_records_of(each, of) for each, of in due])
    spans = grouped(found_spans, lambda span: (span.topic, span.partition, span.producer_id))
    copies: dict[DueMarker, set[CopyWithMarker]] = defaultdict(set)
    for found in copies_with_markers([_marker_of(each, of) for each, of in due]):
        copies[found.due].add(found.copy)
    coordinators = sorted({each.coordinator_partition for each in lacking})
    asked = coordinator_epochs([CoordinatorKey(number) for number in coordinators])
    known = [(each.coordinator_partition, each.coordinator_epoch) for each in asked]
    # The request must carry the newest one.
    epochs = highest_of(
        [*known, *((copy.partition, copy.leader_epoch) for copy in coverage if copy.topic == TRANSACTION_STATE_TOPIC)]
    )
    decisions: dict[_Producer, set[str]] = defaultdict(set)
    for each, _ in due:
        if each.first_offset is not None and each.marker != MarkerState.CONTRADICTING:
            decisions[each.topic, each.partition, each.producer_id].add(each.decided_outcome)
    for each, of in due:
        place = each.topic, each.partition, each.producer_id
        seen = next((span for span in spans[place] if span.is_last), None)
        fate, first_offset, ended_at_offset = _fate(each, _ended_later(each, of, spans[place]))
        is_others = fate is Fate.NONE or (fate is Fate.OPEN and len(decisions[place]) > 1)
        lost = row_of(
            LostMarker,
            each,
            marker_epoch=of.due_epoch,
            coordinator_epoch=epochs.get(each.coordinator_partition),
            transaction_version=of.version,
            seen_epoch=seen and seen.seen_epoch,
            seen_coordinator_epoch=seen and seen.seen_coordinator_epoch,
            fate=fate,
            first_offset=first_offset,
            ended_at_offset=ended_at_offset,
            others_offset=seen.open_offset if seen and is_others else None,
        )
        found_in = sorted(copies[_marker_of(each, of)], key=lambda copy: (copy.broker or "", copy.source, copy.offset))
        yield row_of(
            MarkerRepair, lost, repair(lost, kafka_version), each, as_of_ms=as_of_ms, copies=tuple(found_in) or None
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


def _ended_later(
    lacking: LackingPartition, of: DecidedTransaction, spans: Sequence[SpanOfProducer]
) -> SpanOfProducer | None:
    """The first span of its records that a marker ended."""
    records = _records_of(lacking, of)
    begun, ended_after = records.began_by_ms, records.ended_after_ms
    if begun is None or ended_after is None:
        return None
    possible = (span for span in spans if _may_be_of(of, lacking.decided_outcome, span))
    of_records = (span for span in possible if span.began_ms is not None and span.began_ms <= begun)
    later = (span for span in of_records if span.ended_ms is not None and span.ended_ms > ended_after)
    ended = [span for span in later if span.marker_offset is not None and span.first_offset is not None]
    return min(ended, key=lambda span: span.marker_offset or 0, default=None)


def _may_be_of(of: DecidedTransaction, outcome: str, span: SpanOfProducer) -> bool:
    """Whether the epochs of a span allow that it has records of a transaction."""
    lowest, highest = record_epochs(of.due_epoch, outcome, of.transaction_version)
    # A marker of transactions v2 has a higher epoch than the records that it ends.
    ended_from = lowest + 1 if (of.transaction_version or 0) >= 2 else lowest
    return (span.first_epoch is None or span.first_epoch <= highest) and (
        span.marker_epoch is None or span.marker_epoch >= ended_from
    )


def _fate(lacking: LackingPartition, later: SpanOfProducer | None) -> tuple[Fate, int | None, int | None]:
    """What became of the records that the marker should have ended, their first offset, and where another marker ended
    them."""
    first_offset = later.first_offset if lacking.first_offset is None and later is not None else lacking.first_offset
    ended_at = later.marker_offset if lacking.marker_offset is None and later is not None else lacking.marker_offset
    if lacking.marker == MarkerState.CONTRADICTING:
        return Fate(lacking.outcome or Fate.NONE), first_offset, ended_at
    if lacking.first_offset is not None:
        return Fate.OPEN, first_offset, None
    return Fate(later.marker_type) if later is not None and later.marker_type else Fate.NONE, first_offset, ended_at


# ---- The repair of a lost marker: its request, its sender, and what consumers saw


#: First version of brokers whose request names the transaction version (KAFKA-19446).
_NAMES_VERSION_FROM: Final = (4, 2)


class Fate(StrEnum):
    """What became of the records that the marker should have ended."""

    #: They are still open.
    OPEN = "OPEN"
    #: A later marker ended them.
    COMMIT = "COMMIT"
    ABORT = "ABORT"
    #: The partition has no record of the transaction, or none any more.
    NONE = "NONE"


@dataclass(frozen=True, slots=True, kw_only=True)
class LostMarker:
    """A partition of a decided transaction without its marker; names are the columns of `marker_repairs`."""

    topic: str
    partition: int
    producer_id: int
    #: Epochs of the decision.
    marker_epoch: int
    coordinator_epoch: int | None
    decided_outcome: str
    marker: str
    transaction_version: int | None
    #: Epochs that the partition has seen of the producer, and of its coordinators; None if it has seen none.
    seen_epoch: int | None
    seen_coordinator_epoch: int | None
    fate: Fate
    first_offset: int | None
    ended_at_offset: int | None
    #: The first offset of open records of the producer that a marker would end, too, although their decision is another
    #: one.
    others_offset: int | None = None


@dataclass(frozen=True, slots=True)
class Repair:
    """The request as JSON, whether the partition accepts the decided epochs, who can send it, and what consumers saw.

    There is no request if another marker has ended the records, or if the request would end records of another
    transaction.
    """

    request: str | None
    is_accepted: str
    tool: str
    consumers_saw: str


_WAIT: Final = "read_committed consumers wait at offset {first_offset} and have read none of these records"
#: Decision and what became of the records -> what consumers saw.
CONSUMERS_SAW: Final[Mapping[tuple[str, Fate], str]] = {
    ("COMMIT", Fate.OPEN): f"{_WAIT}, although the transaction is committed",
    (
        "COMMIT",
        Fate.COMMIT,
    ): "read_committed consumers read the records late, with the COMMIT marker at offset {ended_at_offset}",
    ("COMMIT", Fate.ABORT): (
        "read_committed consumers skip the records because of the ABORT marker at offset {ended_at_offset}, although"
        " the transaction is committed"
    ),
    ("COMMIT", Fate.NONE): "the partition shows no record of the transaction, so consumers read none here",
    ("ABORT", Fate.OPEN): f"{_WAIT}, as they should",
    ("ABORT", Fate.COMMIT): (
        "read_committed consumers read the records because of the COMMIT marker at offset {ended_at_offset}, although"
        " the transaction is aborted"
    ),
    (
        "ABORT",
        Fate.ABORT,
    ): "read_committed consumers skip the records, as they should, since the ABORT marker at offset {ended_at_offset}",
    ("ABORT", Fate.NONE): "the partition shows no record of the transaction, so consumers read none here",
}
_ENDED: Final = "no marker changes records that another marker ended: repair the data with the application's own tools"
_OF_OTHERS: Final = (
    "no one: a marker ends whatever the producer has open, and the records from offset {others_offset} on are not, or"
    " not all, of this transaction"
)
_RETRIES: Final = "its coordinator: it sends the request again by itself until the leader of the partition accepts it"
_NOBODY: Final = (
    "no shipped tool: kafka-transactions.sh abort, and Admin.abortTransaction behind it, always send"
    " transactionResult=false (AbortTransactionHandler.buildBatchedRequest)"
)
_BY_HAND: Final = "kafka-transactions.sh abort: it sends transactionResult=false, as was decided"
_REFUSED: Final = "the partition refuses the decided epochs for good, however often its coordinator tries; by hand: "
#: State of the marker, decision, and whether the partition refuses it -> who can send the request while the records are
#: open.
TOOLS: Final[Mapping[tuple[MarkerState, str, bool], str]] = {
    (MarkerState.PENDING, "COMMIT", False): _RETRIES,
    (MarkerState.PENDING, "ABORT", False): _RETRIES,
    (MarkerState.PENDING, "COMMIT", True): f"{_REFUSED}{_NOBODY}",
    (MarkerState.PENDING, "ABORT", True): f"{_REFUSED}{_BY_HAND}",
    (MarkerState.MISSING, "COMMIT", False): f"{_NOBODY}, and the coordinator has forgotten the transaction",
    (MarkerState.MISSING, "ABORT", False): _BY_HAND,
    (MarkerState.MISSING, "COMMIT", True): f"{_NOBODY}, and the coordinator has forgotten the transaction",
    (MarkerState.MISSING, "ABORT", True): _BY_HAND,
}


def repair(lost: LostMarker, kafka_version: str | None) -> Repair:
    """What the marker of one partition needs."""
    fate = lost.fate
    saw = CONSUMERS_SAW[lost.decided_outcome, fate].format(
        first_offset=lost.first_offset, ended_at_offset=lost.ended_at_offset
    )
    if fate is not Fate.NONE:
        saw += "; read_uncommitted consumers read the records as soon as they were replicated"
    accepted = _accepts(lost, lost.marker_epoch, kafka_version)
    is_fenced = (lost.seen_coordinator_epoch or 0) > (lost.coordinator_epoch or 0)
    if is_fenced:
        accepted = Acceptance.REFUSED
    state = MarkerState(lost.marker)
    is_ended = fate in (Fate.COMMIT, Fate.ABORT) or state is MarkerState.CONTRADICTING
    is_of_others = not is_ended and lost.others_offset is not None
    tool = _ENDED if is_ended else TOOLS[state, lost.decided_outcome, accepted is Acceptance.REFUSED]
    if is_of_others and tool != _RETRIES:
        tool = _OF_OTHERS.format(others_offset=lost.others_offset)
    return Repair(None if is_ended or is_of_others else _request(lost, kafka_version), accepted.value, tool, saw)


def _accepts(lost: LostMarker, epoch: int, kafka_version: str | None) -> Acceptance:
    if lost.seen_epoch is None:
        return Acceptance.ACCEPTED
    return acceptance(lost.seen_epoch, epoch, kafka_version, lost.transaction_version)


def _accepted_epoch(lost: LostMarker, kafka_version: str | None) -> int:
    """The lowest epoch, from that of the decision on, that the partition accepts whatever its version."""
    seen = lost.marker_epoch if lost.seen_epoch is None else lost.seen_epoch
    for epoch in (lost.marker_epoch, max(seen, lost.marker_epoch)):
        if _accepts(lost, epoch, kafka_version) is Acceptance.ACCEPTED:
            return epoch
    return min(max(seen, lost.marker_epoch) + 1, LAST_EPOCH)


def _request(lost: LostMarker, kafka_version: str | None) -> str:
    """The body of the request that the partition accepts, with the names and the order of Kafka's message
    definition."""
    marker: dict[str, object] = {
        "producerId": lost.producer_id,
        "producerEpoch": _accepted_epoch(lost, kafka_version),
        "transactionResult": lost.decided_outcome == "COMMIT",
        "topics": [{"name": lost.topic, "partitionIndexes": [lost.partition]}],
        "coordinatorEpoch": max(lost.coordinator_epoch or 0, lost.seen_coordinator_epoch or 0),
    }
    if is_from(_NAMES_VERSION_FROM, kafka_version) and lost.transaction_version is not None:
        marker["transactionVersion"] = lost.transaction_version
    return json.dumps({"markers": [marker]})
