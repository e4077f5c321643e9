"""Findings about copies of a partition, or log and index, that disagree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from txnlib.core.finding_catalogue import Finding
from txnlib.core.findings.found import FindingRow, as_json, found, known
from txnlib.core.kafka.transaction_log import TopicPartition

#: Most copies that the evidence shows.
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class ComparedBatch:
    """The fields of a batch that compaction does not change, and every tool prints."""

    last_offset: int | None
    producer_id: int | None
    producer_epoch: int | None
    base_sequence: int | None
    is_transactional: bool | None
    is_control: bool | None
    partition_leader_epoch: int | None
    control_type: str | None


@dataclass(frozen=True, slots=True)
class ComparedRecord:
    """The fields of a coordinator's record that every tool prints."""

    transactional_id: str | None
    is_tombstone: bool | None
    state: str | None
    producer_id: int | None
    producer_epoch: int | None
    partitions: tuple[TopicPartition, ...] | None


@dataclass(frozen=True, slots=True)
class CopiedBatch:
    """A batch in one copy."""

    source: str
    read: ComparedBatch


@dataclass(frozen=True, slots=True)
class CopiedRecord:
    """A coordinator's record in one copy."""

    source: str
    read: ComparedRecord


@dataclass(frozen=True, slots=True)
class DifferingBatches:
    """The first offset of a partition at which its copies have different batches."""

    topic: str
    partition: int
    offset: int
    producer_id: int | None
    copies: tuple[CopiedBatch, ...]
    #: Number of such offsets.
    count: int


@dataclass(frozen=True, slots=True)
class DifferingRecords:
    """The same of a coordinator partition and its records."""

    topic: str
    partition: int
    offset: int
    producer_id: int | None
    copies: tuple[CopiedRecord, ...]
    count: int


def of_copies(differing: Iterable[DifferingBatches]) -> Iterator[FindingRow]:
    """A finding for each partition whose copies disagree."""
    return map(_of_copies, differing)


def of_record_copies(differing: Iterable[DifferingRecords]) -> Iterator[FindingRow]:
    """A finding for each coordinator partition whose copies disagree."""
    return map(_of_copies, differing)


def _of_copies(each: DifferingBatches | DifferingRecords) -> FindingRow:
    copies = sorted((copy.source, as_json(copy.read)) for copy in each.copies)
    more = f"; and {each.count - 1} more offsets" if each.count > 1 else ""
    shown = "; ".join(f"{source} {read}" for source, read in copies[:_SHOWN])
    return found(Finding.COPIES_DISAGREE, shown + more, each)


@dataclass(frozen=True, slots=True)
class UnindexedAbort:
    """An ABORT marker that is not in the transaction index of its segment."""

    topic: str
    partition: int
    producer_id: int
    marker_offset: int


def of_unindexed(aborts: Iterable[UnindexedAbort]) -> Iterator[FindingRow]:
    """The finding about each marker, which ended a transaction with data. Kafka: `LogSegment.updateTxnIndex`."""
    for each in aborts:
        says = f"the index has no entry with last offset {each.marker_offset}"
        yield found(Finding.ABORT_NOT_INDEXED, says, each, offset=each.marker_offset)


@dataclass(frozen=True, slots=True)
class IndexedAbort:
    """An entry of a transaction index whose marker is not in the log."""

    topic: str
    partition: int
    producer_id: int
    first_offset: int | None
    marker_offset: int
    last_stable_offset: int | None


def of_indexed(entries: Iterable[IndexedAbort]) -> Iterator[FindingRow]:
    """The finding about each entry."""
    for each in entries:
        first, stable = known(each.first_offset), known(each.last_stable_offset)
        says = f"first offset {first}, last offset {each.marker_offset}, LSO {stable}"
        yield found(Finding.INDEXED_ABORT_NOT_IN_LOG, says, each, offset=each.marker_offset)
