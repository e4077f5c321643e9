"""`ended_transactions`: open transactions of an earlier audit that have ended."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from txnlib.core.copies import CoverageRow, highest, lowest
from txnlib.core.findings.marker_findings import SPLIT_OUTCOME
from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS, TRANSACTION_STATE_TOPIC
from txnlib.core.rows import OfProducer, ProducerId, grouped, row_of
from txnlib.core.schema import row_class
from txnlib.core.verdicts.dossier import Owner
from txnlib.core.verdicts.plan_step import needs_somebody
from txnlib.core.verdicts.reason import Reason

#: How it ended is not known: its place in the partition was not captured. So the next audit reports it again.
NOT_CAPTURED: Final = "NOT_CAPTURED"
#: Findings about a marker that was written by hand.
BY_HAND: Final = ("MARKER_WITHOUT_DECISION", "SPLIT_OUTCOME", "ABORTED_WHILE_ONGOING")
#: Reasons that mean that no coordinator decides for the producer id any more, so a marker of it was written by hand.
_UNOWNED: Final = frozenset(
    {Reason.PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR, Reason.TRANSACTIONAL_ID_EXPIRED, Reason.PRODUCER_ID_ROTATED}
)


@dataclass(frozen=True, slots=True)
class OpenedTransaction(OfProducer):
    """Where a producer began a transaction."""

    start_offset: int

    @property
    def opened(self) -> OpenedTransaction:
        return OpenedTransaction(self.topic, self.partition, self.producer_id, self.start_offset)


@dataclass(frozen=True, slots=True)
class EarlierTransaction:
    """A row of `open_transactions` of the newest earlier run."""

    run_id: str
    as_of_ms: int
    topic: str
    partition: int
    producer_id: int
    start_offset: int
    transactional_id: str | None
    verdict: str
    reason: str
    transaction_start_ms: int | None
    blocks_since_ms: int | None


@dataclass(frozen=True, slots=True)
class WarnedTransaction(OpenedTransaction):
    """A row of `ended_transactions` of the newest earlier run: a transaction that was open in a run before, and whose
    place in the partition was not captured since."""

    transactional_id: str | None
    verdict: str
    reason: str
    run_id_then: str
    last_seen_ms: int
    how: str


@dataclass(frozen=True, slots=True)
class FirstMarker(OpenedTransaction):
    """Answered by `producer_spans`: the first marker of a producer after the start of a transaction."""

    marker_offset: int
    marker_type: str | None
    marker_ms: int | None

    @property
    def key(self) -> MarkerKey:
        return MarkerKey(self.topic, self.partition, self.producer_id, self.marker_offset)

    @property
    def says(self) -> str:
        return f"{f'{self.marker_type} ' if self.marker_type else ''}marker at offset {self.marker_offset}"


#: For each transaction asked for, the first marker of its producer after its start.
FIRST_MARKERS: Final = """
SELECT topic, partition, producer_id, start_offset, marker.marker_offset, marker.marker_type, marker.marker_ms
FROM (
  SELECT /*+ BROADCAST(opened) */ topic, partition, producer_id, start_offset,
    min(struct(marker_offset, marker_type, marker_ms)) AS marker
  FROM {producer_spans} JOIN {asked} AS opened USING (topic, partition, producer_id)
  WHERE marker_offset > start_offset
  GROUP BY topic, partition, producer_id, start_offset
)
"""


@dataclass(frozen=True, slots=True)
class MarkerKey(OfProducer):
    """The key of a marker, asked of `transactions`. A key in the answer is of a marker that a decision explains."""

    marker_offset: int


#: The markers asked for that carry out a decision, or may do so.
DECIDED_MARKERS: Final = """
SELECT /*+ BROADCAST(asked) */ topic, partition, producer_id, marker_offset
FROM (SELECT topic, partition, producer_id, explode(coalesce(possible_offsets, array(marker_offset))) AS marker_offset
  FROM (SELECT producer_id, inline(markers) FROM {transactions}))
LEFT SEMI JOIN {asked} AS asked USING (topic, partition, producer_id, marker_offset)
"""


@dataclass(frozen=True, slots=True)
class OwnedId:
    """A row of `producer_id_owners`."""

    producer_id: int
    coordinator_partition: int
    owner: str
    last_seen_ms: int | None


@dataclass(frozen=True, slots=True)
class ManualMarker:
    """A row of `findings` about a marker."""

    name: str
    topic: str
    partition: int
    producer_id: int
    offset: int


EndedTransaction: Final = row_class("ended_transactions")


def warned_of(
    open_then: Sequence[EarlierTransaction], ended_then: Sequence[WarnedTransaction], *, transaction_max_timeout_ms: int
) -> Iterator[WarnedTransaction]:
    """The transactions that an earlier run had open and that needed an operator, and those that it could not check
    itself."""
    for each in open_then:
        times = each.transaction_start_ms, each.blocks_since_ms, each.as_of_ms, transaction_max_timeout_ms
        if needs_somebody(each.verdict, each.reason, *times):
            yield row_of(WarnedTransaction, each, run_id_then=each.run_id, last_seen_ms=each.as_of_ms, how=NOT_CAPTURED)
    yield from (each for each in ended_then if each.how == NOT_CAPTURED)


def ended_transactions(
    open_then: Sequence[EarlierTransaction],
    ended_then: Sequence[WarnedTransaction],
    coverage: Sequence[CoverageRow],
    odd_markers: Sequence[ManualMarker],
    open_transactions: Callable[[Sequence[OfProducer]], Sequence[OpenedTransaction]],
    first_markers: Callable[[Sequence[OpenedTransaction]], Sequence[FirstMarker]],
    decided_markers: Callable[[Sequence[MarkerKey]], Sequence[MarkerKey]],
    producer_id_owners: Callable[[Sequence[ProducerId]], Sequence[OwnedId]],
    *,
    as_of_ms: int,
    transaction_max_timeout_ms: int,
) -> Iterator[Any]:
    """A row for each transaction that the newest earlier run warned of and that is no longer open.

    A transaction was ended by the first marker of its producer after its start. If there is none and the producer has
    an open transaction, it is still the same one, seen from another log start.
    """
    warned = list(warned_of(open_then, ended_then, transaction_max_timeout_ms=transaction_max_timeout_ms))
    still_open = set(open_transactions([OfProducer(each.topic, each.partition, each.producer_id) for each in warned]))
    open_producers = {(each.topic, each.partition, each.producer_id) for each in still_open}
    gone = [each for each in warned if each.opened not in still_open]
    markers = {each.opened: each for each in first_markers([each.opened for each in gone])}
    decided = set(decided_markers([each.key for each in markers.values()]))
    odd: dict[MarkerKey, set[str]] = defaultdict(set)
    for finding in odd_markers:
        odd[MarkerKey(finding.topic, finding.partition, finding.producer_id, finding.offset)].add(finding.name)
    last_records = _last_records(
        producer_id_owners([ProducerId(number) for number in {each.producer_id for each in gone}]), coverage
    )
    logs = {copy.place: copy for copy in coverage if copy.is_judged or copy.is_gone}
    for each in gone:
        marker = markers.get(each.opened)
        if marker is None:
            if (each.topic, each.partition, each.producer_id) in open_producers:
                continue
            how = _how_without_marker(each.start_offset, logs.get((each.topic, each.partition)))
        else:
            is_quiet = _is_quiet(clock_ms(marker.marker_ms), *last_records.get(each.producer_id, (None, None)))
            how = _how(odd[marker.key], marker.key in decided, each.reason in _UNOWNED or is_quiet)
        yield row_of(
            EndedTransaction,
            each,
            as_of_ms=as_of_ms,
            how=how,
            outcome=marker and marker.marker_type,
            marker_offset=marker and marker.marker_offset,
            ended_at_ms=marker and marker.marker_ms,
            says=SENTENCES[how].format(marker=None if marker is None else marker.says),
        )


#: How a transaction ended -> the sentence about it.
SENTENCES: Final[Mapping[str, str]] = {
    "DECIDED": "ended by its coordinator's {marker}",
    "BY_HAND": "ended by hand: {marker}, which no coordinator decided",
    "SPLIT": "ended by hand, against what its coordinator decided: {marker}",
    "MARKED": "ended by the {marker}; who decided that is in no coordinator's log",
    NOT_CAPTURED: "its place in the partition was not captured this time",
    "LOG_START_MOVED": "the log now begins behind it, and no snapshot remembers it",
    "TOPIC_GONE": "its topic no longer exists",
    "GONE": "no batch of it is in the log any more: truncated, or the topic was created again",
}


def _how(findings: Collection[str], is_decided: bool, is_unowned: bool) -> str:
    """How a transaction ended that has a marker: a key of SENTENCES."""
    if SPLIT_OUTCOME.name in findings:
        return "SPLIT"
    if is_decided:
        return "DECIDED"
    return "BY_HAND" if findings or is_unowned else "MARKED"


def _how_without_marker(start_offset: int, log: CoverageRow | None) -> str:
    if log is None:
        return NOT_CAPTURED
    if log.is_gone:
        return "TOPIC_GONE"
    if log.log_start_offset is not None and start_offset < log.log_start_offset:
        return "LOG_START_MOVED"
    # The transaction is gone only if the copy shows what the log has at its offset: a lagging, damaged or older copy
    # may lack it.
    lost = max(log.gap_offset or 0, log.damaged_offset or 0)
    return "GONE" if log.end_offset is not None and log.end_offset > start_offset >= lost else NOT_CAPTURED


def _last_records(
    owners: Sequence[OwnedId], coverage: Sequence[CoverageRow]
) -> dict[int, tuple[int | None, int | None]]:
    """Current producer id -> when its newest record was written, and up to when its coordinator's log is known; in
    epoch ms, None if unknown.

    Only producer ids whose coordinator partition has a copy that proves absence.
    """
    known = {
        copy.partition: copy.known_until_ms
        for copy in coverage
        if copy.topic == TRANSACTION_STATE_TOPIC and copy.is_judged and copy.shows_absence
    }
    current = (each for each in owners if each.owner == Owner.CURRENT.value and each.coordinator_partition in known)
    found = grouped(current, lambda each: each.producer_id)
    return {
        producer_id: (
            highest(each.last_seen_ms for each in of),
            lowest(known[each.coordinator_partition] for each in of),
        )
        for producer_id, of in found.items()
    }


def _is_quiet(marker_ms: int | None, last_ms: int | None, known_until_ms: int | None) -> bool:
    """Whether the coordinator wrote no record after a marker, so that the marker was written by hand.

    A coordinator would have written its Complete record after the marker, and compaction keeps the last record of an
    id.
    """
    if marker_ms is None or last_ms is None or known_until_ms is None:
        return False
    return last_ms < marker_ms - CLOCKS_DIFFER_MS and known_until_ms > marker_ms + CLOCKS_DIFFER_MS
