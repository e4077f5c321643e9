"""The marker of each coordinator decision on each partition: the match that is stored.

Decisions and markers of a producer on a partition are put on one axis of time, the coordinator's. A decision and a
marker that are alone with each other there are a pair. The core says what the histories of the rest have in common
(`core.verdicts.match`). Source: docs/rules/copies.md#order-of-decisions-and-markers.
"""

from __future__ import annotations

from typing import Final, cast

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StructType

from txnlib.core.instants import NO_INSTANT_MS
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS, TRANSACTION_STATE_TOPIC
from txnlib.core.sql_text import clock_ms, struct
from txnlib.core.verdicts.dossier import CoordinatorDecision, WrittenMarker
from txnlib.core.verdicts.match import MarkerGroup, StoredMatch
from txnlib.core.verdicts.whose_clock import ONE_CLOCK, UNKNOWN, Clocks
from txnlib.spark.core_rows import struct_of
from txnlib.spark.core_udfs import markers_by_core
from txnlib.spark.frames import local_rows
from txnlib.spark.joins import select
from txnlib.spark.schemas import MARKERS, named
from txnlib.spark.windows import UNTIL_NOW, SharedWindow, own

#: The leader epoch, in a frame of clocks, of the clock that stamps a partition now.
_NEWEST: Final = -2
#: The columns of a marker in `producer_spans`.
MARKER: Final = {
    name: f"marker_{name}" for name in ("offset", "type", "epoch", "coordinator_epoch", "ms", "leader_epoch")
}


#: What Spark stores of a decision without the core: its marker is the first one of its group, or it has none.
_BY_ITSELF: Final = struct(StoredMatch, {"number": "if(has_pair, 0, NULL)", "possible_offsets": "NULL"})


def markers_of(producer_spans: DataFrame) -> DataFrame:
    """The markers of all partitions. Columns: producer_id, topic, partition, at_ms (NULL if no clock shows that time),
    marker."""
    return producer_spans.where("marker_offset IS NOT NULL").selectExpr(
        *("producer_id", "topic", "partition"),
        f"{clock_ms('marker_ms')} AS at_ms",
        f"{struct(WrittenMarker, MARKER)} AS marker",
    )


def each_marker(of: str = "") -> str:
    """SQL that gives a row for each marker that carries out a decision, or may do so. `of`: prefix of the columns."""
    return f"explode(coalesce({of}possible_offsets, array({of}marker_offset))) AS marker_offset"


def decision_markers(instances: DataFrame, producer_spans: DataFrame, clocks: Clocks) -> DataFrame:
    """For each transaction, `markers`: its partitions, each with the marker of the decision, or without."""
    spark, compared = instances.sparkSession, dict(clocks.measured)
    stamped = []
    for place, of in clocks.named.items():
        compared |= {(clock, clock): ONE_CLOCK for clock in of.values()}
        stamped += [(*place, epoch, clock) for epoch, clock in of.items()]
        stamped += [(*place, _NEWEST, of[max(of)])] if of else []
    differ = [(*pair, each.offset_ms, each.error_ms, each.differ_ms) for pair, each in compared.items()]
    frames = {
        "clocks": local_rows(spark, stamped, "topic string, partition int, leader_epoch long, clock string"),
        "compared": local_rows(
            spark, differ, "coordinator_clock string, clock string, offset_ms long, error_ms long, differ_ms long"
        ),
    }
    reach_ms = UNKNOWN.differ_ms + max((abs(each.offset_ms) for each in clocks.measured.values()), default=0)
    groups = select(_groups(reach_ms), instances=instances, markers=markers_of(producer_spans), **frames)
    by_core = markers_by_core(clocks)(F.expr(f"if(is_odd, {struct(MarkerGroup)}, NULL)"))
    found = groups.withColumn("found", F.coalesce(by_core, F.expr(f"array({_BY_ITSELF})")))
    return select(_MARKED, found=found, instances=instances, **frames)


def _compared(rows: str, coordinator_epoch: str, leader_epoch: str) -> str:
    """The rows of a query, with how the clocks of two leader epochs differ (`Clocks.difference`), as SQL."""
    there, here = f"coalesce({coordinator_epoch}, {_NEWEST})", f"coalesce({leader_epoch}, {_NEWEST})"
    return f"""(
      SELECT stamped.*, coalesce(offset_ms, {UNKNOWN.offset_ms}L) AS clock_offset_ms,
        coalesce(error_ms, {UNKNOWN.error_ms}L) AS clock_error_ms,
        coalesce(differ_ms, {UNKNOWN.differ_ms}L) AS clocks_differ_ms
      FROM {rows} AS stamped
      LEFT JOIN {{clocks}} AS there ON there.topic = '{TRANSACTION_STATE_TOPIC}'
        AND there.partition = coordinator_partition AND there.leader_epoch = {there}
      LEFT JOIN {{clocks}} AS here
        ON here.topic = stamped.topic AND here.partition = stamped.partition AND here.leader_epoch = {here}
      LEFT JOIN {{compared}} AS compared
        ON compared.coordinator_clock = coalesce(there.clock,
          concat('{TRANSACTION_STATE_TOPIC}-', coordinator_partition, '@', {there}))
        AND compared.clock = coalesce(here.clock, concat(stamped.topic, '-', stamped.partition, '@', {here}))
    )"""


#: In time, as far as it is known: a decision before a marker of the same time.
_IN_TIME: Final = SharedWindow(("producer_id", "topic", "partition"), ("from_ms", "is_marker", "place"))
_GROUP: Final = ", ".join(_IN_TIME.keys)
_DECISION: Final = {
    "first_epoch": "producer_epoch",
    "coordinator_epoch": "decided_coordinator_epoch",
    "client_transaction_version": "client_version",
    "said_ms": "coalesce(decided_ms, acknowledged_ms)",
    "partitions": "slice(partitions, 1, 1)",
}
_NO_MARKER: Final = f"CAST(NULL AS {struct_of(WrittenMarker).simpleString()})"
_NO_DECISION: Final = f"CAST(NULL AS {struct_of(CoordinatorDecision).simpleString()})"
_DECISION_PLACE, _MARKER_PLACE = "if(is_marker, NULL, place)", "if(is_marker, place, NULL)"
#: Whether this row and the next one are a decision and a marker that can only belong together: they agree, nothing else
#: is at their time, and whatever is earlier or later in time is also earlier or later in its log. A marker that ended
#: nothing may repeat another one.
_IS_PAIR: Final = f"""coalesce(
  is_new AND NOT next_is_new AND coalesce(is_new_then, TRUE) AND is_marker != next.is_marker
    AND may_pair AND next.may_pair AND type = next.type AND epoch = next.epoch
    AND stamped_epoch = next.stamped_epoch AND stamped_epoch >= 0
    AND coalesce(if(is_marker, next.place, place) > {own("decision_before")}, TRUE)
    AND coalesce(if(is_marker, next.place, place) <= {own("decision_after")}, TRUE)
    AND coalesce(if(is_marker, place, next.place) > {own("marker_before")}, TRUE)
    AND coalesce(if(is_marker, place, next.place) <= {own("marker_after")}, TRUE),
  FALSE)"""
#: Columns of the next row that are compared to find a pair.
_OF_PAIR: Final = ("is_marker", "may_pair", "type", "epoch", "stamped_epoch", "place")
_NEXT: Final = ", ".join(f"{_IN_TIME.neighbour('lead', name)} AS {name}" for name in _OF_PAIR)


_IN_ORDER: Final = """sort_array(collect_list(
  if(is_marker, NULL, struct(decision.coordinator_partition, place, decision, is_followed))))"""


def _groups(reach_ms: int) -> str:
    """Groups of decisions and markers, from each certain pair to the next one, as SQL. Columns: those of MarkerGroup,
    has_pair, is_odd, and followed. `is_odd`: besides its pair, the group has both a decision and a marker, so the core
    has to compare them. `followed` says for each decision whether some marker may be as old as it, as far as
    clocks may differ; or whether there is a later marker that is in no pair: then a clock may have moved.

    Markers that are older than all decisions of their producer fit none. A record without a coordinator epoch may have
    been stamped by any clock, so it is near to all that some clock allows. A decision whose list of partitions is lost
    may be about any partition with a marker of the producer.
    """
    written = _compared("of_producers", "marker.coordinator_epoch", "marker.leader_epoch")

    def far(epoch: str) -> str:
        return f"if({epoch} IS NULL, {reach_ms}, 0)"

    return f"""
    WITH ended AS (
      SELECT *, coalesce(decided_producer_id, producer_id) AS of_producer,
        coalesce(decided_ms, acknowledged_ms, prepared_ms, start_ms) AS since_ms,
        coalesce(decided_epoch, if(first_record_offset = last_record_offset, producer_epoch, NULL)) AS epoch,
        {struct(CoordinatorDecision, _DECISION)} AS decision
      FROM {{instances}} WHERE outcome != 'OPEN'
    ), listed AS (
      SELECT of_producer AS producer_id, since_ms, completed_ms, epoch, decision, inline(partitions) FROM ended
      UNION ALL
      SELECT of_producer, since_ms, completed_ms, epoch, decision, topic, partition
      FROM ended
      JOIN (SELECT DISTINCT producer_id AS of_producer, topic, partition FROM {{markers}}) USING (of_producer)
      WHERE partitions IS NULL
    ), of_producers AS (
      SELECT producer_id, topic, partition, marker, coordinator_partition, if(has_one, at_ms, NULL) AS at_ms
      FROM {{markers}} JOIN (
        SELECT of_producer AS producer_id, max(coordinator_partition) AS coordinator_partition,
          min(coordinator_partition) = max(coordinator_partition) AS has_one,
          CASE WHEN count(since_ms) = count(*) THEN min(since_ms) - {reach_ms} END AS since_ms
        FROM ended GROUP BY of_producer
      ) USING (producer_id)
      WHERE coalesce(at_ms >= since_ms, TRUE)
    ), placed AS (
      SELECT {_GROUP}, since_ms - {far("decision.stamped_epoch")} AS from_ms,
        coalesce({clock_ms("completed_ms")} + {far("decision.stamped_epoch")}, {NO_INSTANT_MS}L) AS until_ms,
        FALSE AS is_marker, decision.last_record_offset AS place,
        if(decision.coordinator_epoch != decision.stamped_epoch, {_NEWEST}L, coalesce(decision.stamped_epoch, -1L))
          AS stamped_epoch, decision.outcome AS type, CAST(epoch AS BIGINT) AS epoch,
        completed_ms IS NOT NULL AND decision.partitions IS NOT NULL AS may_pair, decision, {_NO_MARKER} AS marker,
        CAST(NULL AS BIGINT) AS oldest_ms, CAST(NULL AS BIGINT) AS newest_ms
      FROM listed
      UNION ALL
      SELECT {_GROUP}, at_ms - clock_offset_ms - clock_error_ms - {far("marker.coordinator_epoch")},
        at_ms - clock_offset_ms + clock_error_ms + {far("marker.coordinator_epoch")}, TRUE,
        marker.offset, coalesce(marker.coordinator_epoch, -1L), marker.type, marker.epoch,
        marker.first_offset IS NOT NULL, {_NO_DECISION}, marker,
        coalesce(at_ms - clock_offset_ms - greatest(clocks_differ_ms, {CLOCKS_DIFFER_MS}), 0L),
        coalesce(at_ms - clock_offset_ms + greatest(clocks_differ_ms, {CLOCKS_DIFFER_MS}), {NO_INSTANT_MS}L)
      FROM {written}
    ), counted AS (
      SELECT *, {_IN_TIME.begins} AS begins FROM (SELECT *, {_IN_TIME.numbered} FROM placed)
    ), beside AS (
      SELECT *, {_IN_TIME.highest_before("until_ms")} AS until_before,
        {_IN_TIME.highest_before(_DECISION_PLACE)} AS decision_before,
        {_IN_TIME.lowest_after(_DECISION_PLACE)} AS decision_after,
        {_IN_TIME.highest_before(_MARKER_PLACE)} AS marker_before,
        {_IN_TIME.lowest_after(_MARKER_PLACE)} AS marker_after,
        {_IN_TIME.highest_before("newest_ms")} AS newest_before,
        {_IN_TIME.lowest_after("oldest_ms")} AS oldest_after, {_IN_TIME.lowest_after("-newest_ms")} AS newest_after,
        {_IN_TIME.neighbour("lag", "stamped_epoch")} AS stamped_before
      FROM counted
    ), new AS (
      SELECT *, from_ms > coalesce({own("until_before")}, from_ms - 1)
          AND stamped_epoch = coalesce(stamped_before, stamped_epoch) AS is_new
      FROM beside
    ), around AS (
      SELECT *, {_IN_TIME.neighbour("lead", "is_new")} AS next_is_new,
        {_IN_TIME.neighbour("lead", "is_new", 2)} AS is_new_then, struct({_NEXT}) AS next,
        {own("newest_before")} >= from_ms OR {own("oldest_after")} <= until_ms AS is_near,
        greatest({own("newest_before")}, newest_ms, -{own("newest_after")}) >= from_ms AS is_before_any
      FROM new
    ), paired AS (
      SELECT *, {_IS_PAIR} AS is_pair FROM around
    ), alone AS (
      SELECT *, if(is_marker AND NOT is_pair AND NOT coalesce({_IN_TIME.neighbour("lag", "is_pair")}, FALSE), 1, NULL)
        AS is_alone
      FROM paired
    ), numbered AS (
      SELECT *, is_near OR (is_before_any
          AND coalesce(is_alone, {own("alone_before")}, {own("alone_after")}) IS NOT NULL) AS is_followed
      FROM (
        SELECT *, count_if(is_pair) OVER ({_IN_TIME.over} {UNTIL_NOW}) AS number,
          {_IN_TIME.highest_before("is_alone")} AS alone_before, {_IN_TIME.lowest_after("is_alone")} AS alone_after
        FROM alone
      )
    )
    SELECT {_GROUP}, bool_or(is_pair) AS has_pair,
      least(count_if(is_marker), count_if(NOT is_marker)) > if(bool_or(is_pair), 1, 0) AS is_odd,
      transform({_IN_ORDER}, each -> each.decision) AS decisions,
      transform({_IN_ORDER}, each -> each.is_followed) AS followed,
      transform(sort_array(collect_list(if(is_marker, struct(place, marker), NULL))), each -> each.marker) AS markers
    FROM numbered GROUP BY {_GROUP}, number
    HAVING count_if(NOT is_marker) > 0
    """


_FOUND: Final = {
    **{f"marker_{name}": f"marker.{name}" for name in MARKER},
    **{name: f"marker.{name}" for name in ("first_offset", "first_timestamp_ms", "is_broker_clock")},
    "is_followed": "coalesce(marker IS NULL AND is_followed, FALSE)",
    "clocks_differ_ms": f"greatest(clocks_differ_ms, {CLOCKS_DIFFER_MS})",
}
_FIELDS: Final = cast(StructType, cast(ArrayType, MARKERS).elementType)
_KEY: Final = "transactional_id, coordinator_partition, transaction_number"
_MATCHED: Final = f"""(
  SELECT topic, partition, decision, decision.coordinator_partition, is_followed, match.possible_offsets,
    get(markers, CAST(match.number AS INT)) AS marker
  FROM (SELECT *, inline(arrays_zip(decisions, found, followed)) AS (decision, match, is_followed) FROM {{found}})
  WHERE coalesce(match.number, get(match.possible_offsets, 0)) IS NOT NULL OR decision.partitions IS NOT NULL
  UNION ALL
  SELECT topic, partition, decision, coordinator_partition, FALSE, NULL, {_NO_MARKER}
  FROM (
    SELECT coordinator_partition, {struct(CoordinatorDecision, _DECISION)} AS decision, inline(partitions)
    FROM {{instances}} WHERE outcome = 'OPEN'
  )
)"""
_MARKED: Final = f"""
SELECT decision.transactional_id, coordinator_partition, decision.transaction_number,
  sort_array(collect_list({named(_FIELDS, [_FOUND.get(name, name) for name in _FIELDS.names])})) AS markers
FROM {_compared(_MATCHED, "decision.stamped_epoch", "marker.leader_epoch")}
GROUP BY decision.transactional_id, coordinator_partition, decision.transaction_number
"""
