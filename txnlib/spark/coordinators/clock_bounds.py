"""How far two brokers' clocks can differ: what the decisions and markers that one stamped and the other wrote allow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import DataFrame

from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.spark.frames import local_rows
from txnlib.spark.instants import clock_ms
from txnlib.spark.joins import select
from txnlib.spark.producers.producer_spans import IS_OPEN


def clock_bounds(
    transactions: DataFrame, producer_spans: DataFrame, named: Mapping[tuple[str, int], Mapping[int, str]]
) -> DataFrame:
    """One row per pair of a coordinator's clock and a partition's; those of a producer with something open have rows of
    their own. Columns: those of `core.verdicts.clocks.ClockBounds`.

    A marker is written after its decision was made, and before it is complete. `named`: `Clocks.named`.
    """
    rows = [(*place, epoch, clock) for place, by_epoch in named.items() for epoch, clock in by_epoch.items()]
    columns = "topic string, partition int, leader_epoch int, clock string"
    stamped = local_rows(transactions.sparkSession, rows, columns)
    return select(_BOUNDS, transactions=transactions, spans=producer_spans, named=stamped)


_BOUNDS: Final = f"""
SELECT coordinator_clock, clock, producer_id, max(at_ms - completed_ms) AS lower_ms,
  min(at_ms - decided_ms) AS upper_ms, count(*) AS pairs
FROM (
  SELECT coalesce(there.clock, concat('{TRANSACTION_STATE_TOPIC}-', coordinator_partition, '@', stamped_epoch))
      AS coordinator_clock,
    coalesce(here.clock, concat(marked.topic, '-', marked.partition, '@', marker_leader_epoch)) AS clock,
    opened.producer_id, decided_ms, completed_ms, {clock_ms("marker_ms")} AS at_ms
  FROM (
    SELECT producer_id AS of_producer, coordinator_partition, stamped_epoch, unix_millis(decided) AS decided_ms,
      unix_millis(completed) AS completed_ms, inline(markers)
    FROM {{transactions}}
    WHERE decided IS NOT NULL AND completed IS NOT NULL AND decided_coordinator_epoch = stamped_epoch
  ) AS marked
  LEFT JOIN (SELECT DISTINCT producer_id FROM {{spans}} WHERE {IS_OPEN}) AS opened
    ON opened.producer_id = marked.of_producer
  LEFT JOIN {{named}} AS here
    ON here.topic = marked.topic AND here.partition = marked.partition AND here.leader_epoch = marker_leader_epoch
  LEFT JOIN {{named}} AS there
    ON there.topic = '{TRANSACTION_STATE_TOPIC}' AND there.partition = coordinator_partition
      AND there.leader_epoch = stamped_epoch
  WHERE marker_offset IS NOT NULL AND first_offset IS NOT NULL
)
WHERE at_ms IS NOT NULL
GROUP BY coordinator_clock, clock, producer_id
"""
