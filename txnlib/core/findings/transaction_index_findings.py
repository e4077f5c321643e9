"""Findings about aborts on which a log and its transaction index disagree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from txnlib.core.finding import Finding, Severity, Topic
from txnlib.core.findings.finding_row import FindingRow, found, known
from txnlib.core.rows import OfProducer

_REBUILD_THE_INDEX: Final = (
    "the index of that segment is wrong. Stop the broker, remove that `.txnindex`, and let it be rebuilt. Until then"
    " consumers may read aborted records or miss committed ones."
)
TRANSACTION_INDEX_DISAGREES: Final = Finding(
    name="TRANSACTION_INDEX_DISAGREES",
    severity=Severity.ERROR,
    topic=Topic.FILES,
    meaning=(
        "A log and its transaction index disagree about an abort: read_committed consumers read records that were"
        " aborted, or skip records that were not."
    ),
    advice=_REBUILD_THE_INDEX,
)


@dataclass(frozen=True, slots=True)
class UnindexedAbort(OfProducer):
    """An ABORT marker that is not in the transaction index of its segment."""

    marker_offset: int


def of_unindexed(aborts: Iterable[UnindexedAbort]) -> Iterator[FindingRow]:
    """The finding about each marker, which ended a transaction with data. Kafka: `LogSegment.updateTxnIndex`."""
    for each in aborts:
        says = f"the index has no entry with last offset {each.marker_offset}"
        yield found(TRANSACTION_INDEX_DISAGREES, says, each, offset=each.marker_offset)


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
        yield found(TRANSACTION_INDEX_DISAGREES, says, each, offset=each.marker_offset)
