"""Findings about copies of a partition, or log and index, that disagree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from txnlib.core.finding_catalogue import Finding
from txnlib.core.findings.found import FindingRow, OfProducer, OnPartition, found, known

#: Most copies that the evidence shows.
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class CopiedRow:
    """A batch, or a coordinator's record, in one copy: what is compared of it, as JSON."""

    source: str
    read: str


@dataclass(frozen=True, slots=True)
class DifferingCopies(OnPartition):
    """The first offset of a partition at which its copies have different batches or records."""

    offset: int
    producer_id: int | None
    copies: tuple[CopiedRow, ...]
    #: Number of such offsets.
    count: int


def of_copies(differing: Iterable[DifferingCopies]) -> Iterator[FindingRow]:
    """A finding for each partition whose copies disagree."""
    for each in differing:
        copies = sorted((copy.source, copy.read) for copy in each.copies)
        more = f"; and {each.count - 1} more offsets" if each.count > 1 else ""
        shown = "; ".join(f"{source} {read}" for source, read in copies[:_SHOWN])
        yield found(Finding.COPIES_DISAGREE, shown + more, each)


@dataclass(frozen=True, slots=True)
class UnindexedAbort(OfProducer):
    """An ABORT marker that is not in the transaction index of its segment."""

    marker_offset: int


def of_unindexed(aborts: Iterable[UnindexedAbort]) -> Iterator[FindingRow]:
    """The finding about each marker, which ended a transaction with data. Kafka: `LogSegment.updateTxnIndex`."""
    for each in aborts:
        says = f"the index has no entry with last offset {each.marker_offset}"
        yield found(Finding.ABORT_NOT_INDEXED, says, each, offset=each.marker_offset)


@dataclass(frozen=True, slots=True)
class IndexedAbort(OfProducer):
    """An entry of a transaction index whose marker is not in the log."""

    first_offset: int | None
    marker_offset: int
    last_stable_offset: int | None


def of_indexed(entries: Iterable[IndexedAbort]) -> Iterator[FindingRow]:
    """The finding about each entry."""
    for each in entries:
        first, stable = known(each.first_offset), known(each.last_stable_offset)
        says = f"first offset {first}, last offset {each.marker_offset}, LSO {stable}"
        yield found(Finding.INDEXED_ABORT_NOT_IN_LOG, says, each, offset=each.marker_offset)
