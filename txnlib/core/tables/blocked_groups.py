"""`blocked_groups`: the groups that wait at a last stable offset."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from txnlib.core.batch_runs import is_divided_at, single_batches_of
from txnlib.core.copies import CoverageRow, highest
from txnlib.core.kafka.constants import GROUP_METADATA_TOPIC
from txnlib.core.rows import OnPartition, row_of
from txnlib.core.schema import row_class
from txnlib.core.sql_text import next_of


@dataclass(frozen=True, slots=True)
class BlockedPartition(OnPartition):
    """A row of `partitions`."""

    last_stable_offset: int
    high_watermark: int
    blocking_producer_id: int | None
    blocking_transactional_id: str | None


@dataclass(frozen=True, slots=True)
class GroupPosition:
    """The answer: the last commit of a group that took effect."""

    group_id: str
    topic: str
    partition: int
    committed_offset: int
    commit_timestamp_ms: int | None


#: Where the groups stand that committed offsets of these partitions. A commit takes effect when it is written. A commit
#: inside a transaction takes effect with the COMMIT marker that follows it in its own partition of
#: `__consumer_offsets`, and then counts as of its own offset, not the marker's. Pending and aborted commits have no
#: effect. A tombstone removes, immediately, everything written before it. Judged copies only. Kafka:
#: `OffsetMetadataManager.replay` and `replayEndTransactionMarker`.
GROUP_POSITIONS: Final = f"""
WITH judged AS (
  SELECT topic, partition, source FROM {{coverage}} WHERE is_judged AND topic = '{GROUP_METADATA_TOPIC}'
), asked AS (
  SELECT topic AS committed_topic, CAST(partition AS INT) AS committed_partition FROM {{asked}}
), commits AS (
  SELECT /*+ BROADCAST(judged, asked) */ topic, partition, producer_id, offset, group_id,
    committed_topic, committed_partition,
    is_tombstone, committed_offset, commit_timestamp_ms
  FROM {{committed_offsets}}
  LEFT SEMI JOIN judged USING (topic, partition, source)
  LEFT SEMI JOIN asked USING (committed_topic, committed_partition)
), ended AS (
  SELECT *, {next_of("marker_type", "offset", "PARTITION BY producer_id, topic, partition ORDER BY offset DESC")}
    AS ended_by
  FROM (
    SELECT *, CAST(NULL AS STRING) AS marker_type FROM commits WHERE producer_id IS NOT NULL AND NOT is_tombstone
    UNION ALL
    SELECT topic, partition, producer_id, marker_offset, NULL, NULL, NULL, NULL, NULL, NULL,
      coalesce(marker_type, '')
    FROM {{producer_spans}} WHERE topic = '{GROUP_METADATA_TOPIC}' AND marker_offset IS NOT NULL
  )
), effective AS (
  SELECT * FROM commits WHERE producer_id IS NULL OR is_tombstone
  UNION ALL
  SELECT topic, partition, producer_id, offset, group_id, committed_topic, committed_partition, is_tombstone,
    committed_offset, commit_timestamp_ms
  FROM ended WHERE group_id IS NOT NULL AND ended_by = 'COMMIT'
)
SELECT group_id, committed_topic AS topic, committed_partition AS partition,
  newest.committed_offset, newest.commit_timestamp_ms
FROM (
  SELECT group_id, committed_topic, committed_partition,
    max(struct(offset, is_tombstone, committed_offset, commit_timestamp_ms)) AS newest
  FROM effective GROUP BY group_id, committed_topic, committed_partition
)
WHERE NOT newest.is_tombstone
"""


@dataclass(frozen=True, slots=True)
class StableEnd(OnPartition):
    """Asked of `producer_spans` and `record_batches`: up to which offset `read_committed` consumers receive records of
    a copy."""

    source: str | None
    last_stable_offset: int


@dataclass(frozen=True, slots=True)
class ReadEnd(OnPartition):
    """The answer: the offset after the last record that these consumers receive."""

    read_end: int


BlockedGroup: Final = row_class("blocked_groups")


_DATA: Final = """(
  SELECT /*+ BROADCAST(ends, beyond) */ *
  FROM {record_batches} JOIN {asked} AS ends USING (topic, partition, source)
  LEFT JOIN beyond USING (topic, partition, producer_id)
  WHERE NOT is_control AND coalesce(records_count, 1) > 0 AND base_offset < last_stable_offset
)"""
_SINGLE_DATA: Final = single_batches_of(
    _DATA,
    f"{is_divided_at('last_stable_offset')} OR coalesce({is_divided_at('begins_at')}, FALSE)",
    ("topic", "partition", "base_offset", "last_offset", "is_transactional", "begins_at", "last_stable_offset"),
)
#: For a committed transaction that ends below the last stable offset, its span has the last record. For one that
#: extends beyond it, its batches are read; each producer has at most one. A marker whose type is not printed may be a
#: COMMIT.
READ_ENDS: Final = f"""
WITH committed AS (
  SELECT /*+ BROADCAST(ends) */ topic, partition, producer_id, first_offset AS begins_at, last_offset,
    last_offset < last_stable_offset AS is_within
  FROM {{producer_spans}} JOIN (SELECT topic, partition, last_stable_offset FROM {{asked}}) AS ends
    USING (topic, partition)
  WHERE marker_offset IS NOT NULL AND coalesce(marker_type, '') != 'ABORT' AND first_offset < last_stable_offset
), beyond AS (
  SELECT topic, partition, producer_id, begins_at FROM committed WHERE NOT is_within
), readable AS (
  SELECT topic, partition, last_offset FROM committed WHERE is_within
  UNION ALL
  SELECT topic, partition, last_offset FROM ({_SINGLE_DATA})
  WHERE base_offset < last_stable_offset AND (NOT coalesce(is_transactional, FALSE) OR base_offset >= begins_at)
)
SELECT topic, partition, max(last_offset) + 1 AS read_end FROM readable GROUP BY topic, partition
"""


def blocked_groups(
    partitions: Sequence[BlockedPartition],
    coverage: Sequence[CoverageRow],
    group_positions: Callable[[Sequence[OnPartition]], Sequence[GroupPosition]],
    read_ends: Callable[[Sequence[StableEnd]], Sequence[ReadEnd]],
    *,
    as_of_ms: int,
) -> Iterator[Any]:
    """A row for each group and partition where it waits: with a commit between two offsets, if the LSO is below the
    high watermark.

        readable end <= committed offset <= LSO (last stable offset)

    The *readable end* is the offset after the last record below the LSO that `read_committed` consumers receive.
    Between the two there are only markers, aborted data, and gaps from compaction. A consumer may or may not have
    passed these when it commits. A group above the LSO reads uncommitted data and is not blocked; a group below the
    readable end still has records to read. A group at the LSO counts whether or not it has a live member, because
    commits do not show that.
    """
    blocked = {
        (each.topic, each.partition): each for each in partitions if each.last_stable_offset < each.high_watermark
    }
    stands = group_positions([OnPartition(*place) for place in blocked])
    below = [each for each in stands if each.committed_offset <= blocked[each.topic, each.partition].last_stable_offset]
    places = {(each.topic, each.partition) for each in below}
    judged = {copy.place: copy for copy in coverage if copy.is_judged and copy.place in places}
    asked = [StableEnd(*place, copy.source, blocked[place].last_stable_offset) for place, copy in judged.items()]
    received = {(end.topic, end.partition): end.read_end for end in read_ends(asked)}
    for each in below:
        place = each.topic, each.partition
        at = blocked[place]
        # Below these offsets there may be, or may have been, records that were not read.
        copy = judged.get(place, CoverageRow())
        unread = (copy.log_start_offset, copy.read_from_offset, copy.gap_offset, copy.damaged_offset)
        readable_end = highest((received.get(place), *unread))
        if each.committed_offset < min(
            at.last_stable_offset if readable_end is None else readable_end, at.last_stable_offset
        ):
            continue
        lag = at.high_watermark - each.committed_offset
        yield row_of(
            BlockedGroup, each, at, as_of_ms=as_of_ms, lag_offsets=lag, committed_at_ms=each.commit_timestamp_ms
        )
