"""Findings about markers and decisions that do not match.

Spark finds those that may not, the core judges them.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame

from txnlib.core.findings.marker_findings import Decision, Marker, OddMarker, of_markers
from txnlib.core.findings.transaction_findings import of_early_writes, of_unmarked
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.verdicts.clocks import UNKNOWN
from txnlib.readers.typed_rows import hints_of
from txnlib.spark.coordinators.transaction_markers import each_marker, markers_of
from txnlib.spark.core_rows import struct, struct_of
from txnlib.spark.coverage import BEGINS_LATE, SHOWS_MARKERS
from txnlib.spark.frames import gathered_if_any, kept_if_any
from txnlib.spark.instants import clock_ms
from txnlib.spark.joins import select
from txnlib.spark.windows import BEFORE, last_of, next_of

#: Maximum number of writes before their transaction to check per partition.
_SUSPECTS_OF_PARTITION: Final = 100


def odd_markers(
    producer_spans: DataFrame, transactions: DataFrame, coordinator_states: DataFrame, coverage: DataFrame
) -> DataFrame | None:
    """The markers of producers with a transactional id that are of no decision, with the decisions beside each; None if
    it is known that there are none."""
    markers = markers_of(producer_spans)
    odd = kept_if_any(
        select(_ODD, transactions=transactions, markers=markers, states=coordinator_states, coverage=coverage)
    )
    return None if odd is None else select(_BESIDE_ODD, transactions=transactions, odd=odd)


_OFFSET_MS: Final = f"coalesce(offset_ms, {UNKNOWN.offset_ms}L)"
_DIFFER_MS: Final = f"coalesce(differ_ms, {UNKNOWN.differ_ms}L)"
_PRODUCER: Final = "producer_id, topic, partition"
#: In time order. At the same instant, the decision comes first.
_IN_TIME: Final = f"PARTITION BY {_PRODUCER} ORDER BY at_ms, odd.offset NULLS FIRST"
_BACK_IN_TIME: Final = f"PARTITION BY {_PRODUCER} ORDER BY at_ms DESC, odd.offset DESC NULLS LAST"
_DECISION: Final = {
    "type": "outcome",
    "decided_ms": "coalesce(at_ms, start_ms)",
    "completed_ms": "unix_millis(completed)",
    "coordinator_epoch": "decided_coordinator_epoch",
}
_DECIDED: Final = "if(decision IS NOT NULL, struct(decision, marker_offset IS NULL AS is_unmarked), NULL)"
#: On a partition that no decision lists, compaction may have removed the only one.
_SINCE_MS: Final = "if(is_listed, complete_since_ms, whole_since_ms)"
_MARKER: Final = {
    **{name: f"written.{name}" for name in ("type", "epoch", "coordinator_epoch")},
    "ms": f"at_ms - {_OFFSET_MS}",
    "ends_data": "written.first_offset IS NOT NULL",
    "clocks_differ_ms": _DIFFER_MS,
    "complete_since_ms": _SINCE_MS,
    **dict.fromkeys(("before", "after", "is_first"), "NULL"),
}
_ODD_MARKER: Final = {
    "transaction_number": "NULL",
    "offset": "written.offset",
    "first_offset": "written.first_offset",
    "marker": struct(Marker, _MARKER),
}
_BESIDE: Final = {
    **{name: f"odd.marker.{name}" for name in hints_of(Marker)},
    "before": "before.decision",
    "after": "after",
    "is_first": "coalesce(before.is_unmarked, TRUE)",
}
_NONE_OF: Final = {of: f"CAST(NULL AS {struct_of(of).simpleString()})" for of in (Decision, OddMarker)}
#: The decisions of each producer on each partition.
_LISTED: Final = f"""listed AS (
  SELECT {_PRODUCER}, at_ms, marker_offset, possible_offsets, start_ms,
    struct(transactional_id, coordinator_partition) AS owner,
    {struct(Decision, _DECISION)} AS decision
  FROM (
    SELECT *, coalesce(unix_millis(decided), unix_millis(prepared)) AS at_ms, unix_millis(start) AS start_ms,
      coalesce(decided_epoch, if(first_record_offset = last_record_offset, producer_epoch, NULL)) AS epoch,
      inline(markers)
    FROM {{transactions}}
  )
  WHERE coalesce(at_ms, start_ms) IS NOT NULL
)"""
_ODD: Final = f"""
WITH clocks AS (
  -- As transactions list them. A decision without a marker was compared with the clock of today's leader.
  SELECT coordinator_partition, topic, partition,
    coalesce(if(marker_offset IS NULL, newest_epoch, marker_leader_epoch), -1) AS leader_epoch,
    max(clock_offset_ms) AS offset_ms, max(clocks_differ_ms) AS differ_ms
  FROM (SELECT coordinator_partition, inline(markers) FROM {{transactions}})
  LEFT JOIN (
    SELECT topic, partition, max(leader_epoch) AS newest_epoch FROM {{coverage}} GROUP BY topic, partition
  ) USING (topic, partition)
  GROUP BY coordinator_partition, topic, partition, leader_epoch
), history AS (
  -- The instants between which no record of each coordinator partition is missing. `whole_since_ms`: of a log that
  -- compaction has not touched, either.
  SELECT /*+ BROADCAST(logs) */ coordinator_partition, min({clock_ms("timestamp_ms")}) AS complete_since_ms,
    if(min(offset) = 0 AND max(hole_offset) IS NULL, 0L, NULL) AS whole_since_ms,
    first(known_until_ms) AS known_until_ms,
    greatest(max(coordinator_epoch), max(leader_epoch), max(checkpoint_leader_epoch)) AS newest_coordinator_epoch
  FROM {{states}} JOIN (
    SELECT partition AS coordinator_partition, unix_millis(known_until) AS known_until_ms, leader_epoch,
      checkpoint_leader_epoch, coalesce(greatest(gap_offset, damaged_offset), 0L) AS from_offset
    FROM {{coverage}} WHERE topic = '{TRANSACTION_STATE_TOPIC}' AND is_judged
  ) AS logs USING (coordinator_partition)
  WHERE offset >= from_offset
  GROUP BY coordinator_partition
), owned AS (
  SELECT producer_id, max(struct(transactional_id, coordinator_partition)) AS owner
  FROM {{states}} WHERE producer_id IS NOT NULL GROUP BY producer_id
), {_LISTED}
-- Missing records may have decided a marker that is older than all that is known.
-- On a partition that no decision lists, an ABORT may be one by hand.
SELECT {_PRODUCER}, at_ms - {_OFFSET_MS} AS at_ms, {struct(OddMarker, _ODD_MARKER)} AS odd
FROM (
  SELECT {_PRODUCER}, owner, is_listed, owner.coordinator_partition, owner.transactional_id, began_ms, ongoing,
    at_ms, marker AS written, marker.offset AS marker_offset, coalesce(marker.leader_epoch, -1L) AS leader_epoch
  FROM (
    SELECT {_PRODUCER}, coalesce(listed_owner, owner) AS owner, listed_owner IS NOT NULL AS is_listed, began_ms,
      ongoing, at_ms, marker
    FROM {{markers}} LEFT JOIN (
      SELECT {_PRODUCER}, max(owner) AS listed_owner, min(coalesce(start_ms, at_ms)) AS began_ms,
        max(if(at_ms IS NULL, decision, NULL)) AS ongoing
      FROM listed GROUP BY {_PRODUCER}
    ) USING ({_PRODUCER}) LEFT JOIN owned USING (producer_id)
    WHERE listed_owner IS NOT NULL OR (owner IS NOT NULL AND marker.type = 'COMMIT')
  )
)
LEFT ANTI JOIN (
  SELECT {_PRODUCER}, {each_marker()} FROM listed
) USING ({_PRODUCER}, marker_offset)
LEFT JOIN history USING (coordinator_partition)
LEFT JOIN clocks USING (coordinator_partition, topic, partition, leader_epoch)
WHERE at_ms - {_OFFSET_MS} + {_DIFFER_MS} >= least(began_ms, {_SINCE_MS})
"""
_BESIDE_ODD: Final = f"""
WITH {_LISTED}, timed AS (
  SELECT {_PRODUCER}, at_ms, decision, marker_offset, {_NONE_OF[OddMarker]} AS odd
  FROM listed LEFT SEMI JOIN {{odd}} USING ({_PRODUCER}) WHERE at_ms IS NOT NULL
  UNION ALL
  SELECT {_PRODUCER}, at_ms, {_NONE_OF[Decision]}, NULL, odd FROM {{odd}} AS odd
), beside AS (
  SELECT *, {last_of(_DECIDED, "at_ms", f"{_IN_TIME} {BEFORE}")} AS before,
    {next_of("decision", "at_ms", f"{_BACK_IN_TIME} {BEFORE}")} AS after
  FROM timed
)
SELECT topic, partition, producer_id, odd.transactional_id, odd.transaction_number, odd.offset, odd.first_offset,
  {struct(Marker, _BESIDE)} AS marker
FROM beside WHERE odd IS NOT NULL
"""


def lost_markers(transactions: DataFrame, producer_spans: DataFrame, coverage: DataFrame) -> DataFrame:
    """Partitions of completed transactions without a marker, if the marker could not have been overlooked."""
    return select(_LOST, transactions=transactions, markers=markers_of(producer_spans), coverage=coverage)


#: In these copies, holes, damage, a snapshot, or the instant of the copy hide nothing. If the oldest marker of the log
#: is younger, the topic may have been deleted and created again. Where the partition's clock is ahead of the
#: coordinator's, the transaction completed later than its records say.
_LOST: Final = f"""
SELECT /*+ BROADCAST(whole) */ transactional_id, transaction_number, producer_id, outcome,
  unix_millis(completed) AS completed_ms, topic, partition
FROM (
  SELECT transactional_id, transaction_number, producer_id, outcome, completed, start, inline(markers)
  FROM {{transactions}} WHERE completed IS NOT NULL AND start IS NOT NULL
)
JOIN (
  SELECT topic, partition, unix_millis(known_until) AS known_until_ms
  FROM {{coverage}} WHERE is_judged AND {SHOWS_MARKERS} AND NOT {BEGINS_LATE}
) AS whole USING (topic, partition)
JOIN (SELECT topic, partition, min(at_ms) AS oldest_ms FROM {{markers}} GROUP BY topic, partition)
  USING (topic, partition)
WHERE marker_offset IS NULL AND NOT is_followed
  AND known_until_ms > unix_millis(completed) + greatest(clock_offset_ms, 0) + clocks_differ_ms
  AND oldest_ms < unix_millis(start) + least(clock_offset_ms, 0)
"""


def early_writes(transactions: DataFrame, producer_spans: DataFrame) -> DataFrame | None:
    """Records whose first batch may be older than the transaction that ended them; None if there are none."""
    early = gathered_if_any(select(_EARLY, transactions=transactions))
    if early is None:
        return None
    return select(_STAMPED, early=early, markers=markers_of(producer_spans))


#: `start_ms` is on the partition's clock, as far as the two were compared.
_EARLY: Final = f"""
SELECT *
FROM (
  SELECT *, row_number() OVER (PARTITION BY topic, partition ORDER BY first_offset) AS number
  FROM (
    SELECT *, unix_millis(start) AS began_ms, unix_millis(start) + clock_offset_ms - clocks_differ_ms AS start_ms
    FROM (
      SELECT transactional_id, transaction_number, producer_id, start, inline(markers)
      FROM {{transactions}} WHERE start IS NOT NULL
    )
  )
  WHERE first_offset IS NOT NULL AND first_timestamp_ms < start_ms
)
WHERE number <= {_SUSPECTS_OF_PARTITION}
"""
#: The oldest stamp between the beginning of the records and their marker. A log has many markers and few suspects.
_STAMPED: Final = """
SELECT *
FROM {early}
LEFT JOIN (
  SELECT /*+ BROADCAST(early) */ topic, partition, producer_id, first_offset, marker_offset, start_ms,
    min(stamp_ms) AS stamp_ms
  FROM (SELECT topic, partition, at_ms AS stamp_ms, marker.offset AS stamp_offset FROM {markers})
  JOIN {early} AS early USING (topic, partition)
  WHERE stamp_offset BETWEEN first_offset AND marker_offset
  GROUP BY topic, partition, producer_id, first_offset, marker_offset, start_ms
) USING (topic, partition, producer_id, first_offset, marker_offset, start_ms)
"""


#: What is selected here, and the function of the core that makes findings of it.
RULES: Final = (
    (odd_markers, of_markers),
    (lost_markers, of_unmarked),
    (early_writes, of_early_writes),
)
