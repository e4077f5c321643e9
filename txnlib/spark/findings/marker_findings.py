"""Findings about markers and decisions that do not match.

Spark finds those that may not, the core judges them.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame

from txnlib.core.findings.marker_findings import of_early_writes, of_markers, of_undecided_aborts, of_unmarked
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.spark.coordinators.transaction_markers import CLOCK, MARKER_TYPE, agrees, lost_markers, markers_of
from txnlib.spark.coordinators.transactions import DECIDED_MS
from txnlib.spark.frames import gathered
from txnlib.spark.instants import clock_ms
from txnlib.spark.joins import select
from txnlib.spark.windows import AFTER_PLACE, BEFORE_PLACE, PLACE, last_of, next_of

#: Maximum number of writes before their transaction to check per partition.
_SUSPECTS_OF_PARTITION: Final = 100


def odd_markers(
    transactions: DataFrame, producer_spans: DataFrame, coordinator_states: DataFrame, coverage: DataFrame
) -> DataFrame:
    """The markers beside decisions of their producers, but for the first after each that matches it."""
    markers = markers_of(producer_spans)
    return select(_ODD, transactions=transactions, markers=markers, states=coordinator_states, coverage=coverage)


#: How clocks compare (`transaction_markers`), from the markers that transactions list.
_CLOCKS: Final = "max(clock_offset_ms) AS clock_offset_ms, max(clocks_differ_ms) AS clocks_differ_ms"
#: What is known of the log of each coordinator partition.
_COORDINATORS: Final = f"""coordinators AS (
  SELECT partition AS coordinator_partition, unix_millis(known_until) AS known_until_ms, {CLOCK} AS coordinator_clock,
    coalesce(greatest(gap_offset, damaged_offset), 0L) AS from_offset
  FROM {{coverage}} WHERE topic = '{TRANSACTION_STATE_TOPIC}' AND is_judged
)"""
_ODD: Final = f"""
WITH {_COORDINATORS}, history AS (
  -- The instants between which no record of each coordinator partition is missing.
  SELECT /*+ BROADCAST(coordinators) */ coordinator_partition, min({clock_ms("timestamp_ms")}) AS complete_since_ms,
    first(known_until_ms) AS known_until_ms
  FROM {{states}} JOIN coordinators USING (coordinator_partition)
  WHERE offset >= from_offset
  GROUP BY coordinator_partition
), decided AS (
  SELECT producer_id, inline(markers), {DECIDED_MS} AS at_ms, struct(transactional_id, coordinator_partition) AS owner,
    struct(outcome AS type, decided_epoch AS epoch, unix_millis(start) AS start_ms, {DECIDED_MS} AS decided_ms,
      unix_millis(completed) AS completed_ms, decided_coordinator_epoch AS coordinator_epoch) AS decision
  FROM {{transactions}} WHERE {DECIDED_MS} IS NOT NULL AND outcome != 'OPEN'
), clocks AS (
  SELECT producer_id, topic, partition, {_CLOCKS} FROM decided GROUP BY producer_id, topic, partition
), timed AS (
  SELECT producer_id, topic, partition, at_ms, owner, decision, CAST(NULL AS {MARKER_TYPE}) AS marker,
    CAST(NULL AS BIGINT) AS clocks_differ_ms
  FROM decided
  UNION ALL
  -- Only markers of producers with decisions can be odd. To sort all others, too, would be most of the work of a
  -- report.
  SELECT producer_id, topic, partition, at_ms - clock_offset_ms, NULL, NULL, marker, clocks_differ_ms
  FROM {{markers}} JOIN clocks USING (producer_id, topic, partition)
), beside AS (
  SELECT producer_id, topic, partition, at_ms, marker, clocks_differ_ms,
    {last_of("decision", "place", BEFORE_PLACE)} AS before, {next_of("decision", "place", AFTER_PLACE)} AS after,
    coalesce({last_of("owner", "place", BEFORE_PLACE)}, {next_of("owner", "place", AFTER_PLACE)}) AS owner,
    {last_of("if(marker IS NOT NULL, at_ms, NULL)", "place", BEFORE_PLACE)} AS marker_before_ms
  FROM (SELECT *, {PLACE} AS place FROM timed)
), owned AS (
  SELECT *, owner.transactional_id, owner.coordinator_partition,
    coalesce(marker_before_ms < before.decided_ms, marker_before_ms IS NULL) AS is_first
  FROM beside WHERE marker IS NOT NULL AND owner IS NOT NULL AND at_ms IS NOT NULL
)
SELECT /*+ BROADCAST(history) */ topic, partition, producer_id, transactional_id, marker.marker_offset AS offset,
  marker.first_offset, struct(marker.marker_type AS type, marker.marker_epoch AS epoch,
    marker.marker_coordinator_epoch AS coordinator_epoch, at_ms AS ms, marker.first_offset IS NOT NULL AS ends_data,
    before, after,
    is_first, complete_since_ms, known_until_ms, clocks_differ_ms) AS marker
FROM owned LEFT JOIN history USING (coordinator_partition)
-- Nearly all markers are the first after a decision, and match it.
WHERE NOT ({agrees("marker", "before")} AND is_first
  AND coalesce(marker.marker_coordinator_epoch >= before.coordinator_epoch, TRUE))
"""


def undecided_aborts(transactions: DataFrame, producer_spans: DataFrame, coverage: DataFrame) -> DataFrame:
    """ABORT markers of no decision, on a partition of a transaction of the producer that is Ongoing."""
    return select(_UNDECIDED, transactions=transactions, spans=producer_spans, coverage=coverage)


_UNDECIDED: Final = f"""
WITH {_COORDINATORS}, clocks AS (
  SELECT coordinator_partition, topic, partition, {_CLOCKS}
  FROM (SELECT coordinator_partition, inline(markers) FROM {{transactions}})
  GROUP BY coordinator_partition, topic, partition
), stamped_by AS (
  SELECT topic, partition, {CLOCK} AS clock FROM {{coverage}} WHERE is_judged
), ongoing AS (
  SELECT /*+ BROADCAST(coordinators, clocks, stamped_by) */ producer_id, producer_epoch, transactional_id,
    coordinator_partition, start_ms, topic, partition, known_until_ms, coordinator_clock, clock_offset_ms,
    clocks_differ_ms, clock
  FROM (
    SELECT producer_id, producer_epoch, transactional_id, coordinator_partition, unix_millis(start) AS start_ms,
      inline(partitions)
    FROM {{transactions}} WHERE outcome = 'OPEN' AND start IS NOT NULL
  )
  JOIN coordinators USING (coordinator_partition)
  LEFT JOIN clocks USING (coordinator_partition, topic, partition)
  LEFT JOIN stamped_by USING (topic, partition)
)
SELECT /*+ BROADCAST(ongoing) */ *
FROM (
  SELECT producer_id, topic, partition, marker_offset, marker_epoch, marker_ms, first_offset
  FROM {{spans}} WHERE marker_type = 'ABORT' AND first_offset IS NOT NULL
)
LEFT ANTI JOIN (SELECT producer_id, inline(markers) FROM {{transactions}})
  USING (producer_id, topic, partition, marker_offset)
JOIN ongoing USING (producer_id, topic, partition)
WHERE marker_epoch = producer_epoch
"""


def early_writes(transactions: DataFrame, producer_spans: DataFrame) -> DataFrame:
    """Records whose first batch may be older than the transaction that ended them."""
    early = gathered(select(_EARLY, transactions=transactions))
    return select(_STAMPED, early=early, markers=markers_of(producer_spans))


#: `start_ms` is on the partition's clock, as far as the two were compared.
_EARLY: Final = f"""
SELECT *
FROM (
  SELECT *, row_number() OVER (PARTITION BY topic, partition ORDER BY first_offset) AS number
  FROM (
    SELECT *, began_ms + clock_offset_ms - clocks_differ_ms AS start_ms
    FROM (
      SELECT transactional_id, producer_id, unix_millis(start) AS began_ms, inline(markers)
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
  FROM (SELECT topic, partition, at_ms AS stamp_ms, marker.marker_offset AS stamp_offset FROM {markers})
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
    (undecided_aborts, of_undecided_aborts),
)
