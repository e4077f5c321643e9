"""Findings about aborts on which a log and its transaction index disagree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from txnlib.core.copies import IS_SOUND
from txnlib.core.finding import Finding, Severity, Topic
from txnlib.core.findings.rule import FindingRow, Rule, found, known
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
    """A finding for each marker that is not in the index, although it ended a transaction with data. Kafka:
    `LogSegment.updateTxnIndex`."""
    for each in aborts:
        says = f"the index has no entry with last offset {each.marker_offset}"
        yield found(TRANSACTION_INDEX_DISAGREES, says, each, offset=each.marker_offset)


#: Entries of the index files of judged copies without damage, and the ABORT markers of their partitions: most captures
#: have an index of few partitions. An empty index file has a row, too: its segment has no aborts.
_INDEX: Final = f"""
WITH whole AS (
  SELECT topic, partition, source, end_offset, gap_offset,
    coalesce(read_from_offset, 0) AS read_from_offset, log_start_offset
  FROM {{coverage}} WHERE {IS_SOUND}
), entries AS (
  SELECT /*+ BROADCAST(whole) */ *, last_offset AS marker_offset
  FROM {{aborted_transactions}} JOIN whole USING (topic, partition, source)
), aborts AS (
  SELECT /*+ BROADCAST(entries) */ topic, partition, producer_id, marker_offset, first_offset, last_offset
  FROM {{producer_spans}} LEFT SEMI JOIN entries USING (topic, partition) WHERE marker_type = 'ABORT'
)
"""
#: Aborts of data in the log without an index entry, below the newest entry: the index may have been copied before the
#: log. Nobody reads data below the log start, and a broker that has started since does not know of it.
UNINDEXED_ABORTS: Final = Rule(
    of="aborted_transactions",
    query=f"""{_INDEX}
    SELECT /*+ BROADCAST(files) */ topic, partition, producer_id, marker_offset
    FROM (SELECT * FROM aborts WHERE first_offset IS NOT NULL)
    LEFT ANTI JOIN entries USING (topic, partition, producer_id, marker_offset)
    JOIN (
      SELECT topic, partition, min(segment_base_offset) AS first_segment, max(marker_offset) AS newest_entry,
        max(log_start_offset) AS log_start_offset
      FROM entries GROUP BY topic, partition
    ) AS files USING (topic, partition)
    WHERE marker_offset < newest_entry AND marker_offset >= first_segment
      AND coalesce(last_offset >= log_start_offset, TRUE)
    """,
    judge=of_unindexed,
)


@dataclass(frozen=True, slots=True)
class IndexedAbort(OfProducer):
    """An entry of a transaction index whose marker is not in the log."""

    first_offset: int | None
    marker_offset: int
    last_stable_offset: int | None


def of_indexed(entries: Iterable[IndexedAbort]) -> Iterator[FindingRow]:
    """A finding for each index entry without its marker."""
    for each in entries:
        first, stable = known(each.first_offset), known(each.last_stable_offset)
        says = f"first offset {first}, last offset {each.marker_offset}, LSO {stable}"
        yield found(TRANSACTION_INDEX_DISAGREES, says, each, offset=each.marker_offset)


#: Index entries whose marker is not in the part of the log that was read. Below a hole, compaction may have removed it.
INDEXED_ABORTS: Final = Rule(
    of="aborted_transactions",
    query=f"""{_INDEX}
    SELECT topic, partition, producer_id, first_offset, marker_offset, last_stable_offset
    FROM entries LEFT ANTI JOIN aborts USING (topic, partition, producer_id, marker_offset)
    WHERE producer_id IS NOT NULL AND marker_offset >= read_from_offset AND marker_offset < end_offset
      AND coalesce(marker_offset > gap_offset, TRUE)
    """,
    judge=of_indexed,
)
