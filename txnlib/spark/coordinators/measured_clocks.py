"""`measured_clocks`: an estimate of how far two clocks differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame

from txnlib.core.cluster_metadata import PartitionAssignment
from txnlib.core.copies import CoverageRow
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS, TRANSACTION_STATE_TOPIC
from txnlib.core.sql_text import clock_ms
from txnlib.core.verdicts.clock_bounds import MARKER_SLACK_MS
from txnlib.core.verdicts.cluster_facts import cluster_clocks
from txnlib.core.verdicts.whose_clock import UNKNOWN
from txnlib.spark.coordinators.transactions import MATCHED_AT_ONCE, ended_instances
from txnlib.spark.frames import by_parts, kept, local_rows
from txnlib.spark.joins import quantile, select
from txnlib.spark.schemas import PRODUCER, TABLES, conform
from txnlib.spark.windows import NOTHING, SharedWindow

#: Minimum number of pairs of a decision and its marker for an estimate.
SAMPLES: Final = 3
#: Most pairs of a producer on a partition.
MOST_PAIRS: Final = 20


def measured_clocks(
    coordinator_states: DataFrame,
    producer_spans: DataFrame,
    judged_copies: DataFrame,
    coverage: Sequence[CoverageRow],
    partition_assignments: Sequence[PartitionAssignment],
) -> DataFrame:
    """One row per pair of a coordinator's clock and a partition's. Columns: MEASURED_CLOCKS.

    Two kinds of pairs are of one transaction without a comparison of times: the newest decision and the newest marker
    of a producer; and the n-th of each, where both logs are whole since their beginning. A lost marker breaks some
    pairs, so only what most pairs agree on counts. The time until a marker is written is not a clock difference. Too
    few pairs are no estimate, but two clocks that the first pair of whole logs shows far apart are not near.
    """
    named = cluster_clocks(coverage, partition_assignments).named
    rows = [(*place, epoch, clock) for place, by_epoch in named.items() for epoch, clock in by_epoch.items()]
    columns = "topic string, partition int, leader_epoch int, clock string"
    stamped = local_rows(coordinator_states.sparkSession, rows, columns)

    def samples(instances: DataFrame) -> DataFrame:
        return select(
            _SAMPLES,
            instances=instances,
            spans=producer_spans,
            states=coordinator_states,
            copies=judged_copies,
            named=stamped,
        )

    found = by_parts(kept(ended_instances(coordinator_states)), samples, "producer_id", MATCHED_AT_ONCE)
    return conform(select(_MEASURED, samples=found), TABLES["measured_clocks"])


_GROUP: Final = ", ".join(PRODUCER)
_DECISIONS: Final = SharedWindow(PRODUCER, ("last_record_offset",))
_MARKERS: Final = SharedWindow(PRODUCER, ("marker_offset",))
_AGREE: Final = "coalesce(m.marker_type = d.outcome, TRUE) AND m.marker_epoch = d.decided_epoch"
_SAMPLES: Final = f"""
WITH decided AS (
  SELECT producer_id, coordinator_partition, stamped_epoch, unix_millis(decided) AS decided_ms, outcome, decided_epoch,
    last_record_offset, inline(partitions)
  FROM {{instances}} WHERE completed IS NOT NULL AND decided IS NOT NULL AND partitions IS NOT NULL
), marked AS (
  SELECT {_GROUP}, marker_offset, {clock_ms("marker_ms")} AS marker_ms, marker_type, marker_epoch, marker_leader_epoch
  FROM {{spans}} LEFT SEMI JOIN decided USING (producer_id) WHERE marker_offset IS NOT NULL
), newest AS (
  SELECT {_GROUP}, d, m
  FROM (
    SELECT {_GROUP}, max_by(
      struct(coordinator_partition, stamped_epoch, decided_ms, outcome, decided_epoch), last_record_offset) AS d
    FROM decided GROUP BY {_GROUP}
  )
  JOIN (
    SELECT {_GROUP}, max_by(struct(marker_ms, marker_type, marker_epoch, marker_leader_epoch), marker_offset) AS m
    FROM marked GROUP BY {_GROUP}
  ) USING ({_GROUP})
), whole AS (
  SELECT topic, partition FROM {{copies}} WHERE is_whole
), whole_coordinators AS (
  SELECT coordinator_partition FROM {{states}} GROUP BY coordinator_partition
  HAVING min(offset) = 0 AND max(hole_offset) IS NULL
), oldest AS (
  SELECT {_GROUP}, rank, d, m, nullif(first_marker_ms, {NOTHING}) - first_decided_ms AS first_ms
  FROM (
    SELECT {_GROUP}, {_DECISIONS.rank} AS rank, {_DECISIONS.at_first("decided_ms")} AS first_decided_ms,
      struct(coordinator_partition, stamped_epoch, decided_ms, outcome, decided_epoch) AS d
    FROM (
      SELECT *, {_DECISIONS.numbered}
      FROM decided LEFT SEMI JOIN whole USING (topic, partition)
      LEFT SEMI JOIN whole_coordinators USING (coordinator_partition)
    )
  )
  JOIN (
    SELECT {_GROUP}, {_MARKERS.rank} AS rank, {_MARKERS.at_first(f"coalesce(marker_ms, {NOTHING})")} AS first_marker_ms,
      struct(marker_ms, marker_type, marker_epoch, marker_leader_epoch) AS m
    FROM (SELECT *, {_MARKERS.numbered} FROM marked LEFT SEMI JOIN whole USING (topic, partition))
  ) USING ({_GROUP}, rank)
  WHERE rank <= {MOST_PAIRS}
), pairs AS (
  SELECT topic, partition, d, m, FALSE AS is_first FROM newest
  UNION ALL
  SELECT topic, partition, d, m, rank = 1
  FROM oldest WHERE abs(m.marker_ms - d.decided_ms - first_ms) <= {CLOCKS_DIFFER_MS}
)
SELECT coalesce(there.clock, concat('{TRANSACTION_STATE_TOPIC}-', d.coordinator_partition, '@', d.stamped_epoch))
    AS coordinator_clock,
  coalesce(here.clock, concat(pairs.topic, '-', pairs.partition, '@', m.marker_leader_epoch)) AS clock,
  m.marker_ms - d.decided_ms AS difference_ms, is_first
FROM pairs
LEFT JOIN {{named}} AS here
  ON here.topic = pairs.topic AND here.partition = pairs.partition AND here.leader_epoch = m.marker_leader_epoch
LEFT JOIN {{named}} AS there
  ON there.topic = '{TRANSACTION_STATE_TOPIC}' AND there.partition = d.coordinator_partition
    AND there.leader_epoch = d.stamped_epoch
WHERE {_AGREE} AND m.marker_ms IS NOT NULL
"""
_MEASURED: Final = f"""
SELECT coordinator_clock, clock, if(is_estimated, lower_ms, 0L) AS offset_ms,
  if(is_estimated, greatest(upper_ms - lower_ms, {MARKER_SLACK_MS}L), {UNKNOWN.error_ms}L) AS error_ms,
  if(is_estimated, {CLOCKS_DIFFER_MS}L, {UNKNOWN.differ_ms}L) AS differ_ms,
  if(is_estimated, 0L, shown_ms) AS shown_ms
FROM (
  SELECT *, number >= {SAMPLES} AND upper_ms - lower_ms <= {CLOCKS_DIFFER_MS} AS is_estimated
  FROM (
    SELECT coordinator_clock, clock, count(*) AS number, {quantile("difference_ms", 0.25)} AS lower_ms,
      {quantile("difference_ms", 0.75)} AS upper_ms,
      max_by(difference_ms, if(is_first, abs(difference_ms), NULL)) AS shown_ms
    FROM {{samples}} GROUP BY coordinator_clock, clock
  )
)
WHERE coordinator_clock != clock AND (is_estimated OR shown_ms IS NOT NULL)
"""
