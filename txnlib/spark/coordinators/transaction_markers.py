"""The marker of each coordinator decision, by a join in time order.

Decisions and markers are joined by time and epoch: in transactions v0 and v1, many transactions share an epoch, and the
markers follow a decision within moments. The times of markers are first converted to the coordinator's clock
(`_CLOCKS`). A running `last` in both directions keeps the join linear, however often a producer commits.
"""

from __future__ import annotations

from typing import Final, cast

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, StructType

from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS, TRANSACTION_STATE_TOPIC, UNKNOWN_CLOCKS_DIFFER_MS
from txnlib.spark.coverage import BEGINS_LATE, SHOWS_MARKERS
from txnlib.spark.frames import gathered
from txnlib.spark.instants import clock_ms
from txnlib.spark.joins import quantile, select
from txnlib.spark.schemas import MARKERS
from txnlib.spark.windows import AFTER_PLACE, BEFORE_PLACE, PLACE, last_of, next_of

#: Minimum number of pairs of a decision and its marker for an estimate.
SAMPLES: Final = 3
#: Whose clock stamps a partition: its leader's; if the leader is not noted, a clock of its own. SQL, of columns of
#: COVERAGE.
CLOCK: Final = "if(leader != '-1', leader, concat_ws('-', topic, partition))"
_MARKER: Final = (
    *("marker_offset", "marker_type", "marker_epoch", "marker_coordinator_epoch", "marker_ms", "marker_leader_epoch"),
    *("first_offset", "first_timestamp_ms", "is_broker_clock"),
)


#: The type of a marker in `markers_of`, as SQL.
MARKER_TYPE: Final = StructType(
    [field for field in cast(StructType, cast(ArrayType, MARKERS).elementType) if field.name in _MARKER]
).simpleString()


def agrees(marker: str, decision: str) -> str:
    """Whether a marker matches a decision, by type and epoch, as SQL. A field that a dump does not print always
    matches."""
    same_type = f"coalesce({marker}.marker_type = {decision}.type, TRUE)"
    return f"coalesce({marker} IS NOT NULL AND {same_type} AND {marker}.marker_epoch = {decision}.epoch, FALSE)"


def markers_of(producer_spans: DataFrame) -> DataFrame:
    """The markers of all partitions. Columns: producer_id, topic, partition, at_ms (NULL if no clock shows that time),
    marker."""
    return producer_spans.where("marker_offset IS NOT NULL").selectExpr(
        *("producer_id", "topic", "partition"),
        f"{clock_ms('marker_ms')} AS at_ms",
        f"struct({', '.join(_MARKER)}) AS marker",
    )


#: One row per coordinator partition and partition: clock_offset_ms and clocks_differ_ms. The first is the leader's
#: clock minus the coordinator's, the second how far they may still differ. One broker has one clock. Clocks of
#: different brokers are compared if enough samples agree, all of them stamped by today's leaders. The time until a
#: marker is written is not a clock difference.
_CLOCKS: Final = f"""
WITH clocks AS (
  SELECT topic, partition, {CLOCK} AS clock, newest_epoch
  FROM {{coverage}} JOIN (
    SELECT topic, partition, max(leader_epoch) AS newest_epoch FROM {{coverage}} GROUP BY topic, partition
  ) USING (topic, partition)
  WHERE is_judged
), coordinators AS (
  SELECT partition AS coordinator_partition, clock AS coordinator_clock, newest_epoch AS newest_coordinator_epoch
  FROM clocks WHERE topic = '{TRANSACTION_STATE_TOPIC}'
), pairs AS (
  SELECT /*+ BROADCAST(coordinators, clocks) */ *
  FROM (SELECT DISTINCT coordinator_partition, topic, partition FROM {{decided}})
  LEFT JOIN coordinators USING (coordinator_partition) LEFT JOIN clocks USING (topic, partition)
), samples AS (
  SELECT topic, partition, decision.coordinator_partition,
    {clock_ms("marker.marker_ms")} - decision.at_ms AS difference_ms, decision.stamped_epoch,
    marker.marker_leader_epoch
  FROM (
    SELECT topic, partition, producer_id,
      max_by(struct(coordinator_partition, at_ms, type, epoch, stamped_epoch), at_ms) AS decision
    FROM {{decided}} WHERE is_complete GROUP BY topic, partition, producer_id
  )
  JOIN (
    SELECT topic, partition, producer_id, max_by(marker, marker.marker_offset) AS marker
    FROM {{written}} GROUP BY topic, partition, producer_id
  ) USING (topic, partition, producer_id)
  WHERE {agrees("marker", "decision")}
), estimates AS (
  SELECT coordinator_clock, clock, count(*) AS samples, {quantile("difference_ms", 0.25)} AS lower_ms,
    {quantile("difference_ms", 0.75)} AS upper_ms
  FROM samples JOIN pairs USING (coordinator_partition, topic, partition)
  WHERE difference_ms IS NOT NULL AND coalesce(stamped_epoch = newest_coordinator_epoch, TRUE)
    AND coalesce(marker_leader_epoch = newest_epoch, TRUE)
  GROUP BY coordinator_clock, clock
)
SELECT coordinator_partition, topic, partition,
  if(NOT is_one_clock AND is_estimated AND abs(lower_ms) > {CLOCKS_DIFFER_MS}, lower_ms, 0L) AS clock_offset_ms,
  CAST(if(is_one_clock OR is_estimated, {CLOCKS_DIFFER_MS}, {UNKNOWN_CLOCKS_DIFFER_MS}) AS BIGINT) AS clocks_differ_ms
FROM (
  SELECT /*+ BROADCAST(estimates) */ *, coalesce(coordinator_clock = clock, FALSE) AS is_one_clock,
    coalesce(samples >= {SAMPLES} AND upper_ms - lower_ms <= {CLOCKS_DIFFER_MS}, FALSE) AS is_estimated
  FROM pairs LEFT JOIN estimates USING (coordinator_clock, clock)
)
"""


def decision_markers(instances: DataFrame, producer_spans: DataFrame, coverage: DataFrame) -> DataFrame:
    """For each decided transaction, `markers`: its partitions, each with the marker of the decision, or without.

    This is the nearest marker after the decision, or the one just before it, if the clocks may differ that much. Type
    and epoch must match. But if a marker before the decision is nearer to the previous decision, it belongs to that
    one: transactions may follow each other faster than the clocks differ.
    """
    decided, written = select(_DECIDED, instances=instances), markers_of(producer_spans)
    clocks = gathered(select(_CLOCKS, decided=decided, written=written, coverage=coverage))
    return select(_MARKED, decided=decided, written=written, clocks=clocks)


_DECIDED: Final = """
SELECT decided_producer_id AS producer_id, inline(partitions), coordinator_partition, decided_ms AS at_ms,
  outcome AS type,
  decided_epoch AS epoch, completed_ms IS NOT NULL AS is_complete, stamped_epoch,
  struct(transactional_id, coordinator_partition, transaction_number, outcome AS type, decided_epoch AS epoch)
    AS decision
FROM {instances} WHERE decided_ms IS NOT NULL
"""
_PRIOR: Final = "if(decision IS NOT NULL, struct(decision.type, decision.epoch, at_ms), NULL)"
_TIMED_MARKER: Final = "if(marker IS NOT NULL AND at_ms IS NOT NULL, struct(at_ms, marker), NULL)"
_IS_NEAR: Final = "at_ms - before.at_ms <= clocks_differ_ms"
_IS_OF_PRIOR: Final = (
    f"({agrees('before.marker', 'prior')} AND abs(before.at_ms - prior.at_ms) <= at_ms - before.at_ms)"
)
_IS_BEFORE: Final = f"({agrees('before.marker', 'decision')} AND {_IS_NEAR} AND NOT {_IS_OF_PRIOR})"
_IS_AFTER: Final = (
    f"({agrees('after.marker', 'decision')} AND NOT ({_IS_BEFORE} AND at_ms - before.at_ms < after.at_ms - at_ms))"
)
#: Decisions have times of their coordinator's clock. Times of markers are converted to it, if the two clocks were
#: compared. Markers without a time come first, because each may be the one that is sought.
_MARKED: Final = f"""
WITH timed AS (
  SELECT /*+ BROADCAST(clocks) */ producer_id, topic, partition, at_ms, CAST(NULL AS {MARKER_TYPE}) AS marker, decision,
    clock_offset_ms, clocks_differ_ms
  FROM {{decided}} LEFT JOIN {{clocks}} AS clocks USING (coordinator_partition, topic, partition)
  UNION ALL
  SELECT /*+ BROADCAST(offsets) */ producer_id, topic, partition, at_ms - coalesce(clock_offset_ms, 0),
    marker, NULL, NULL, NULL
  FROM {{written}}
  LEFT JOIN (
    SELECT producer_id, max(coordinator_partition) AS coordinator_partition FROM {{decided}} GROUP BY producer_id
  ) USING (producer_id)
  LEFT JOIN (SELECT * FROM {{clocks}} WHERE clock_offset_ms <> 0) AS offsets
    USING (coordinator_partition, topic, partition)
), beside AS (
  SELECT *, {last_of(_TIMED_MARKER, "place", BEFORE_PLACE)} AS before,
    {next_of(_TIMED_MARKER, "place", AFTER_PLACE)} AS after,
    {last_of(_PRIOR, "place", BEFORE_PLACE)} AS prior,
    max(marker IS NOT NULL AND at_ms IS NULL) OVER ({BEFORE_PLACE}) AS has_untimed
  FROM (SELECT *, {PLACE} AS place FROM timed)
)
SELECT decision.transactional_id, decision.coordinator_partition, decision.transaction_number,
  CAST(sort_array(collect_list(struct(topic, partition, {", ".join(f"found.{name}" for name in _MARKER)},
    after IS NOT NULL OR coalesce({_IS_NEAR} OR has_untimed, FALSE) AS is_followed, clock_offset_ms, clocks_differ_ms
  ))) AS {MARKERS.simpleString()}) AS markers
FROM (
  SELECT *, CASE WHEN {_IS_AFTER} THEN after.marker WHEN {_IS_BEFORE} THEN before.marker END AS found
  FROM beside WHERE decision IS NOT NULL
)
GROUP BY decision.transactional_id, decision.coordinator_partition, decision.transaction_number
"""


def lost_markers(transactions: DataFrame, producer_spans: DataFrame, coverage: DataFrame) -> DataFrame:
    """Partitions of completed transactions without a marker, if the marker could not have been overlooked.

    Columns: transactional_id, coordinator_partition, transaction_number, producer_id, outcome, completed, topic,
    partition.
    """
    unmarked = select(_UNMARKED, transactions=transactions)
    return select(_LOST, unmarked=unmarked, markers=markers_of(producer_spans), coverage=coverage)


_TRANSACTION: Final = "transactional_id, coordinator_partition, transaction_number, producer_id, outcome, completed"
_UNMARKED: Final = f"""
SELECT *
FROM (
  SELECT {_TRANSACTION}, start, inline(markers)
  FROM {{transactions}} WHERE completed IS NOT NULL AND start IS NOT NULL
)
WHERE marker_offset IS NULL AND NOT is_followed
"""
#: In these copies, holes, damage, a snapshot, or the instant of the copy hide nothing. If the oldest marker of the log
#: is younger, the topic may have been deleted and created again.
_LOST: Final = f"""
SELECT /*+ BROADCAST(whole) */ {_TRANSACTION}, topic, partition
FROM {{unmarked}}
JOIN (
  SELECT topic, partition, unix_millis(known_until) AS known_until_ms
  FROM {{coverage}} WHERE is_judged AND {SHOWS_MARKERS} AND NOT {BEGINS_LATE}
) AS whole USING (topic, partition)
JOIN (SELECT topic, partition, min(at_ms) AS oldest_ms FROM {{markers}} GROUP BY topic, partition)
  USING (topic, partition)
WHERE known_until_ms > unix_millis(completed) + clocks_differ_ms AND oldest_ms < unix_millis(start)
"""
