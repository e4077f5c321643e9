"""The least and the most that pairs allow two clocks to differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import DataFrame

from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.sql_text import IS_OPEN, clock_ms
from txnlib.spark.frames import local_rows
from txnlib.spark.joins import select


def clock_pairs(
    transactions: DataFrame, producer_spans: DataFrame, named: Mapping[tuple[str, int], Mapping[int, str]]
) -> DataFrame:
    """How far any two clocks can differ, by pairs of a decision and its marker; and the same by the pairs in one leader
    epoch of a log, of coordinators and of partitions with something open. Columns: those of
    `core.verdicts.clock_bounds.ClockBounds`.

    A marker is written after its decision was made, and before the decision is complete. Pairs of a producer with
    something open have rows of their own. `named`: `Clocks.named`.
    """
    rows = [(*place, epoch, clock) for place, by_epoch in named.items() for epoch, clock in by_epoch.items()]
    columns = "topic string, partition int, leader_epoch int, clock string"
    stamped = local_rows(transactions.sparkSession, rows, columns)
    return select(_BOUNDS, transactions=transactions, spans=producer_spans, named=stamped)


#: Decisions and markers that the match left over, on one partition and with one type and epoch, belong together in
#: order if there are as many of both: then the clocks are further apart than a match allows.
_KIND: Final = "producer_id, topic, partition, outcome, epoch"
_RANKED: Final = f"""count(*) OVER (PARTITION BY {_KIND}) AS number,
    row_number() OVER (PARTITION BY {_KIND} ORDER BY place) AS rank"""
_OF_PAIRS: Final = """max(at_ms - completed_ms) AS lower_ms, min(at_ms - decided_ms) AS upper_ms,
  CAST(count(*) AS BIGINT) AS pairs"""
_BOUNDS: Final = f"""
WITH decided AS (
  SELECT producer_id, coordinator_partition, stamped_epoch, outcome,
    coalesce(decided_epoch, if(first_record_offset = last_record_offset, producer_epoch, NULL)) AS epoch,
    last_record_offset AS place, unix_millis(decided) AS decided_ms, unix_millis(completed) AS completed_ms,
    partitions, markers
  FROM {{transactions}}
  WHERE decided IS NOT NULL AND completed IS NOT NULL
    AND coalesce(decided_coordinator_epoch, stamped_epoch) = stamped_epoch
), listed AS (
  SELECT producer_id, coordinator_partition, stamped_epoch, outcome, epoch, place, decided_ms, completed_ms,
    inline(markers)
  FROM decided
), written AS (
  SELECT producer_id, topic, partition, marker_type AS outcome, marker_epoch AS epoch, marker_offset AS place,
    marker_offset, {clock_ms("marker_ms")} AS at_ms, marker_leader_epoch
  FROM {{spans}} LEFT SEMI JOIN decided USING (producer_id)
  WHERE marker_offset IS NOT NULL AND first_offset IS NOT NULL
), left_markers AS (
  SELECT *, {_RANKED}
  FROM written LEFT ANTI JOIN listed USING (producer_id, topic, partition, marker_offset)
), left_decisions AS (
  SELECT *, {_RANKED}
  FROM (
    SELECT {_KIND}, place, coordinator_partition, stamped_epoch, decided_ms, completed_ms
    FROM listed WHERE marker_offset IS NULL
    UNION ALL
    -- Its list of partitions is gone, so it may be about any.
    SELECT {_KIND}, place, coordinator_partition, stamped_epoch, decided_ms, completed_ms
    FROM decided JOIN (SELECT DISTINCT producer_id, topic, partition FROM left_markers) USING (producer_id)
    WHERE partitions IS NULL AND coalesce(size(markers), 0) < 1
  )
), pairs AS (
  SELECT producer_id, coordinator_partition, stamped_epoch, topic, partition, marker_leader_epoch, decided_ms,
    completed_ms, {clock_ms("marker_ms")} AS at_ms
  FROM listed WHERE marker_offset IS NOT NULL AND first_offset IS NOT NULL
  UNION ALL
  SELECT producer_id, coordinator_partition, stamped_epoch, topic, partition, marker_leader_epoch, decided_ms,
    completed_ms, at_ms
  FROM left_decisions
  JOIN (SELECT {_KIND}, number, rank, at_ms, marker_leader_epoch FROM left_markers) USING ({_KIND}, number, rank)
), opened AS (
  SELECT DISTINCT producer_id, topic, partition FROM {{spans}} WHERE {IS_OPEN}
), stamped AS (
  SELECT coalesce(there.clock, concat('{TRANSACTION_STATE_TOPIC}-', coordinator_partition, '@', stamped_epoch))
      AS coordinator_clock,
    coalesce(here.clock, concat(pairs.topic, '-', pairs.partition, '@', marker_leader_epoch)) AS clock,
    of_open.producer_id, pairs.topic, pairs.partition, marker_leader_epoch, coordinator_partition, stamped_epoch,
    decided_ms, completed_ms, at_ms
  FROM pairs
  LEFT JOIN (SELECT DISTINCT producer_id FROM opened) AS of_open ON of_open.producer_id = pairs.producer_id
  LEFT JOIN {{named}} AS here
    ON here.topic = pairs.topic AND here.partition = pairs.partition AND here.leader_epoch = marker_leader_epoch
  LEFT JOIN {{named}} AS there
    ON there.topic = '{TRANSACTION_STATE_TOPIC}' AND there.partition = coordinator_partition
      AND there.leader_epoch = stamped_epoch
  WHERE at_ms IS NOT NULL
)
-- A pair counts for its clocks, for the leader epoch of a log with something open, and for that of its coordinator.
SELECT coordinator_clock, clock, producer_id, topic, partition, leader_epoch, {_OF_PAIRS}
FROM (
  SELECT coordinator_clock, clock, producer_id, decided_ms, completed_ms, at_ms, inline(array(
    named_struct('topic', CAST(NULL AS STRING), 'partition', CAST(NULL AS BIGINT), 'leader_epoch', CAST(NULL AS BIGINT),
      'counts', TRUE),
    named_struct('topic', stamped.topic, 'partition', CAST(stamped.partition AS BIGINT),
      'leader_epoch', CAST(marker_leader_epoch AS BIGINT), 'counts', places.topic IS NOT NULL),
    named_struct('topic', '{TRANSACTION_STATE_TOPIC}', 'partition', CAST(coordinator_partition AS BIGINT),
      'leader_epoch', CAST(stamped_epoch AS BIGINT), 'counts', TRUE)))
  FROM stamped LEFT JOIN (SELECT DISTINCT topic, partition FROM opened) AS places
    ON places.topic = stamped.topic AND places.partition = stamped.partition
)
WHERE counts GROUP BY coordinator_clock, clock, producer_id, topic, partition, leader_epoch
"""
