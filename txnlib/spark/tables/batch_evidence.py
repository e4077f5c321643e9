"""What batches and files around open transactions show: times of brokers, bytes, and markers that the judged copy
lacks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from txnlib.core.batch_runs import BATCHES, FIRST_TIMESTAMP_MS, is_divided_at, of_run
from txnlib.core.copies import CoverageRow, survives
from txnlib.core.kafka.constants import UNKNOWN_CLOCKS_DIFFER_MS
from txnlib.core.sql_text import BEFORE, clock_ms, struct
from txnlib.core.verdicts.dossier import EpochStamps, FileBeside, MarkerElsewhere
from txnlib.readers.header_columns import PAGE
from txnlib.readers.typed_rows import plain
from txnlib.spark.frames import kept, kept_if_any, local_rows, no_rows
from txnlib.spark.joins import block_of, bucket_of, first_block, select, single_batches
from txnlib.spark.schemas import TRUNCATED
from txnlib.spark.windows import UNTIL_NOW

#: The columns that name a copy.
COPY_DDL: Final = "topic string, partition int, source string"


def stamps_around(located: DataFrame, record_batches: DataFrame) -> DataFrame:
    """Broker-stamped times around the first and the last batch of each span, and the bytes from the first batch on.
    Only batches between the log start and the high watermark count as bytes.

    One pass over the batches sums up ranges of offsets, each divided at these batches, so that only few rows are
    sorted. Sorting all batches of a partition would take one task, and most of the time of a report. A range that
    contains such a batch is a block, which has few of them however many the partition has; any other range is a bucket.
    """
    points = kept(select(_POINTS, located=located))
    around = _around_points(points, located, record_batches)
    return select(_STAMPS, located=located, around=around)


_BEHIND_LAST: Final = "coalesce(last_offset, start_offset) + 1"
_POINTS: Final = f"""
SELECT DISTINCT topic, partition, explode(array(start_offset, {_BEHIND_LAST})) AS at FROM {{located}}
"""
_STAMPS: Final = f"""
SELECT topic, partition, producer_id, start_offset, sum(bytes) AS bytes_from_here,
  collect_list({struct(EpochStamps)}) AS stamps
FROM (
  SELECT topic, partition, producer_id, start_offset, leader_epoch,
    max(before_ms) FILTER (WHERE edge = 0) AS before_ms, max(before_ms) FILTER (WHERE edge = 1) AS before_last_ms,
    max(behind_ms) FILTER (WHERE edge = 0) AS behind_ms, max(behind_ms) FILTER (WHERE edge = 1) AS behind_last_ms,
    max(bytes) FILTER (WHERE edge = 0) AS bytes
  FROM (
    SELECT topic, partition, producer_id, start_offset, posexplode(array(start_offset, {_BEHIND_LAST})) AS (edge, at)
    FROM {{located}}
  )
  JOIN {{around}} AS around USING (topic, partition, at)
  GROUP BY topic, partition, producer_id, start_offset, leader_epoch
)
GROUP BY topic, partition, producer_id, start_offset
"""


def _around_points(points: DataFrame, located: DataFrame, record_batches: DataFrame) -> DataFrame:
    """For each point of a log and each leader epoch: the newest stamp before the point, the oldest stamp from there on,
    and the bytes from there on."""
    near = f"SELECT DISTINCT topic, partition, {bucket_of('at')} AS bucket, TRUE AS is_near FROM {{points}}"
    read = f"""
    SELECT *
    FROM (SELECT *, {bucket_of("base_offset")} AS bucket FROM {{batches}})
    JOIN (SELECT DISTINCT topic, partition, source, log_start_offset, high_watermark FROM {{located}}) AS copies
      USING (topic, partition, source)
    LEFT JOIN ({near}) AS near USING (topic, partition, bucket)
    """
    rows = select(read, batches=record_batches, located=located, points=points)
    # A run is in one bucket, so no other point can divide it. Where no point is, a bucket needs no blocks.
    single = single_batches(
        rows, f"(is_near OR {is_divided_at('log_start_offset')} OR {is_divided_at('high_watermark')})"
    )
    in_blocks = points.selectExpr("topic", "partition", f"{block_of('at')} AS block", "at")
    cuts = kept(in_blocks.groupBy("topic", "partition", "block").agg(F.expr("sort_array(collect_set(at)) AS cuts")))
    # The CRC of larger data batches was not checked, so their times prove nothing. Those of a run are all larger, or
    # none is.
    size_of_batch = f"if({BATCHES} > 1, {of_run('size', 0)}, size)"
    is_marker = "is_control AND producer_id IS NOT NULL"
    is_stamped = f"(({is_marker}) OR (timestamp_type = 'LOG_APPEND_TIME' AND {size_of_batch} <= {PAGE}))"
    # The times of a run do not fall.
    pieces = f"""
    SELECT topic, partition, leader_epoch, block, cut,
      max(if({is_stamped}, {clock_ms("max_timestamp_ms")}, NULL)) AS latest_ms,
      min(if({is_stamped}, {clock_ms(FIRST_TIMESTAMP_MS)}, NULL)) AS earliest_ms,
      sum(if(coalesce(base_offset < high_watermark, TRUE) AND coalesce(last_offset >= log_start_offset, TRUE),
        size, 0L)) AS size
    FROM (
      SELECT *, coalesce(partition_leader_epoch, -1) AS leader_epoch,
        coalesce(size(filter(cuts, cut -> cut <= base_offset)), 0) AS cut
      FROM (SELECT *, if(is_near, {block_of("base_offset")}, {first_block()}) AS block FROM {{single}})
      LEFT JOIN {{cuts}} AS cuts USING (topic, partition, block)
    )
    GROUP BY topic, partition, leader_epoch, block, cut
    """
    sums = kept(select(pieces, single=single, cuts=cuts))
    return select(_AROUND, sums=sums, cuts=cuts)


#: The pieces of one leader epoch of a partition: ranges of offsets, split at points. What follows a row precedes it in
#: descending order. Spark scans a frame that ends in UNBOUNDED FOLLOWING again for every row, which takes quadratic
#: time.
_PIECES: Final = "PARTITION BY topic, partition, leader_epoch ORDER BY"
_FROM_HERE: Final = f"OVER ({_PIECES} block DESC, cut DESC {UNTIL_NOW})"
_AROUND: Final = f"""
WITH pieces AS (
  SELECT topic, partition, leader_epoch, block, cut, CAST(NULL AS BIGINT) AS at, latest_ms, earliest_ms, size
  FROM {{sums}}
  UNION ALL
  -- The piece that begins at each point. Its batches may be missing.
  SELECT topic, partition, leader_epoch, block, place + 1, at, NULL, NULL, 0
  FROM (SELECT topic, partition, block, posexplode(cuts) AS (place, at) FROM {{cuts}})
  JOIN (SELECT DISTINCT topic, partition, leader_epoch FROM {{sums}}) AS epochs USING (topic, partition)
)
SELECT *
FROM (
  SELECT topic, partition, leader_epoch, at, max(latest_ms) OVER ({_PIECES} block, cut {BEFORE}) AS before_ms,
    min(earliest_ms) {_FROM_HERE} AS behind_ms, sum(size) {_FROM_HERE} AS bytes
  FROM (
    SELECT topic, partition, leader_epoch, block, cut, max(at) AS at, max(latest_ms) AS latest_ms,
      min(earliest_ms) AS earliest_ms, sum(size) AS size
    FROM pieces GROUP BY topic, partition, leader_epoch, block, cut
  )
)
WHERE at IS NOT NULL
"""


def markers_elsewhere(opened: DataFrame, record_batches: DataFrame, copies: Sequence[CoverageRow]) -> DataFrame:
    """For each open transaction, the markers of its producer above its start that the judged copy lacks, and the last
    offset of batches in other copies of the same topic id. Markers that a newer leader truncated, or that the cleaner
    emptied, are from any copy."""
    rows = [
        (
            *(copy.topic, copy.partition, copy.source, copy.broker, copy.is_judged),
            [plain(each) for each in copy.truncated or ()],
        )
        for copy in _of_judged_topics(copies)
    ]
    ddl = f"{COPY_DDL}, broker string, is_judged boolean, truncated {TRUNCATED.simpleString()}"
    others = local_rows(opened.sparkSession, rows, ddl)
    return select(_ELSEWHERE, opened=opened, batches=record_batches, others=others)


def vanished_markers(
    opened: DataFrame, record_batches: DataFrame, transactions: DataFrame, copies: Sequence[CoverageRow]
) -> DataFrame:
    """Markers of producers with something open that may have been COMMITs and are gone: the cleaner emptied them, a
    newer leader truncated them, or their topic was deleted. Those that a decision may explain are left out.

    Columns: producer_id, topic, partition, ms, leader_epoch.
    """
    living, gone = _of_judged_topics(copies), [copy for copy in copies if copy.is_deleted]
    others = _with_truncated(opened.sparkSession, living, gone)
    frames = {"opened": opened, "batches": record_batches, "transactions": transactions, "others": others}
    found = kept_if_any(select(_VANISHED, **frames))
    return no_rows(opened.sparkSession, _VANISHED_DDL) if found is None else found


def vanished_commits(record_batches: DataFrame, copies: Sequence[CoverageRow]) -> DataFrame:
    """The COMMIT markers, of any producer, that a newer leader truncated, or whose topic was deleted. Columns:
    producer_id, topic, partition, marker_offset, marker_epoch, at_ms."""
    gone = [copy for copy in copies if copy.is_deleted]
    cut = [copy for copy in _of_judged_topics(copies) if copy.truncated]
    spark = record_batches.sparkSession
    if not cut and not gone:
        return no_rows(spark, _VANISHED_COMMITS_DDL)
    return select(_VANISHED_COMMITS, batches=record_batches, others=_with_truncated(spark, cut, gone))


def _with_truncated(spark: SparkSession, living: Iterable[CoverageRow], gone: Iterable[CoverageRow]) -> DataFrame:
    """A row for each copy, with what a newer leader truncated of it, and whether its topic is gone."""
    rows = [
        (*(copy.topic, copy.partition, copy.source), is_gone, [plain(each) for each in copy.truncated or ()])
        for is_gone, of in ((False, living), (True, gone))
        for copy in of
    ]
    return local_rows(spark, rows, f"{COPY_DDL}, is_gone boolean, truncated {TRUNCATED.simpleString()}")


def _of_judged_topics(copies: Sequence[CoverageRow]) -> list[CoverageRow]:
    """The copies that may have the topic id of the judged copy. An unknown id may be any."""
    judged = {copy.place: copy for copy in copies if copy.is_judged}
    living = [copy for copy in copies if copy.status != "MISSING" and not copy.is_deleted and copy.place in judged]
    ids = [(copy, {copy.topic_id, judged[copy.place].topic_id}) for copy in living]
    return [copy for copy, of_both in ids if len(of_both) == 1 or None in of_both]


_SURVIVES: Final = survives("partition_leader_epoch", "base_offset")
#: The bare header of a control batch.
_IS_CLEANED: Final = "(is_control AND control_type IS NULL AND records_count = 0)"
_IS_VANISHED_COMMIT: Final = f"(control_type = 'COMMIT' AND (is_gone OR NOT ({_SURVIVES})))"
_VANISHED_COMMITS_DDL: Final = (
    "producer_id long, topic string, partition int, marker_offset long, marker_epoch int, at_ms long"
)
_VANISHED_COMMITS: Final = f"""
SELECT DISTINCT producer_id, topic, partition, base_offset AS marker_offset, producer_epoch AS marker_epoch,
  {clock_ms("max_timestamp_ms")} AS at_ms
FROM {{batches}} JOIN {{others}} AS others USING (topic, partition, source)
WHERE {_IS_VANISHED_COMMIT}
"""
_VANISHED_DDL: Final = "producer_id long, topic string, partition int, ms long, leader_epoch int"
#: A coordinator sends a marker again if the deposed leader had not acknowledged it. So a decision that has another
#: marker still explains a truncated one.
_VANISHED: Final = f"""
SELECT DISTINCT vanished.producer_id, vanished.topic, vanished.partition, ms, leader_epoch
FROM (
  SELECT producer_id, topic, partition, max_timestamp_ms AS ms, partition_leader_epoch AS leader_epoch,
    control_type AS type, producer_epoch AS epoch
  FROM {{batches}} JOIN {{others}} AS others USING (topic, partition, source)
  LEFT SEMI JOIN {{opened}} AS opened USING (producer_id)
  WHERE {_IS_CLEANED} OR {_IS_VANISHED_COMMIT}
) AS vanished
LEFT ANTI JOIN (
  SELECT producer_id, outcome, coalesce(decided_epoch, producer_epoch) AS decided_epoch, inline(markers),
    unix_millis(coalesce(decided, start)) - {UNKNOWN_CLOCKS_DIFFER_MS} AS since_ms,
    unix_millis(completed) + {UNKNOWN_CLOCKS_DIFFER_MS} AS until_ms
  FROM {{transactions}}
) AS decided
  ON decided.producer_id = vanished.producer_id AND decided.topic = vanished.topic
    AND decided.partition = vanished.partition
    AND ((type IS NULL AND decided.marker_offset IS NULL) OR (type = outcome AND epoch = decided_epoch))
    AND coalesce(vanished.ms >= since_ms, TRUE) AND coalesce(vanished.ms <= until_ms, TRUE)
"""
_MARKER: Final = {
    "is_truncated": f"NOT ({_SURVIVES})",
    "is_cleaned": _IS_CLEANED,
    **{"offset": "base_offset", "type": "control_type", "epoch": "producer_epoch", "ms": "max_timestamp_ms"},
}
_ELSEWHERE: Final = f"""
SELECT topic, partition, producer_id, start_offset,
  sort_array(collect_set(CASE WHEN is_control THEN {struct(MarkerElsewhere, _MARKER)} END)) AS markers_elsewhere,
  max(CASE WHEN NOT is_control AND {_SURVIVES} THEN last_offset END) AS last_elsewhere_offset
FROM (
  SELECT *
  FROM {{batches}} JOIN {{others}} AS others USING (topic, partition, source)
  JOIN (SELECT topic, partition, producer_id, start_offset FROM {{opened}}) AS spans
    USING (topic, partition, producer_id)
  WHERE last_offset > start_offset
    AND ({_IS_CLEANED} OR ((NOT is_control OR control_type IS NOT NULL) AND NOT (is_judged AND {_SURVIVES})))
)
GROUP BY topic, partition, producer_id, start_offset
"""


def files_beside(
    opened: DataFrame, producer_snapshots: DataFrame, aborted_transactions: DataFrame, copies: Sequence[CoverageRow]
) -> DataFrame:
    """What producer snapshots and transaction indices of all copies say of each producer behind its start.

    Of each copy, only two snapshots count: the newest one, and the oldest one that does not have the transaction open.
    """
    captured = [(*each.place, each.source, each.broker, each.truncated_from) for each in _of_judged_topics(copies)]
    beside = [
        (*copy.place, each.source, each.broker, each.overtaken_from)
        for copy in copies
        for each in copy.copies_beside or ()
    ]
    ddl = f"{COPY_DDL}, broker string, truncated_from long"
    others = local_rows(opened.sparkSession, [*captured, *beside], ddl)
    files = {"snapshots": producer_snapshots, "index": aborted_transactions}
    return select(_BESIDE, opened=opened, copies=others, **files)


_SNAPSHOT: Final = {
    "is_index": "FALSE",
    "file_offset": "snapshot_offset",
    "offset": "snapshot_offset",
    "first_offset": "current_txn_first_offset",
    "is_truncated": "coalesce(snapshot_offset > truncated_from, FALSE)",
}
_INDEX_ENTRY: Final = {
    "is_index": "TRUE",
    "file_offset": "segment_base_offset",
    "offset": "last_offset",
    "last_offset": "NULL",
    "is_truncated": "coalesce(last_offset >= truncated_from, FALSE)",
}
_IN_COPY: Final = "topic, partition, producer_id, start_offset, source"
_BESIDE: Final = f"""
WITH spans AS (
  SELECT topic, partition, producer_id, start_offset, source, broker, truncated_from
  FROM {{opened}} JOIN {{copies}} USING (topic, partition)
),

-- A snapshot that does not name a producer has nothing open of it.
snapshots AS (
  SELECT topic, partition, source, snapshot_offset, producer_id, current_txn_first_offset, last_offset
  FROM {{snapshots}} LEFT SEMI JOIN spans USING (topic, partition, source) WHERE is_answer IS NULL
),
states AS (
  SELECT {_IN_COPY}, snapshot_offset, {struct(FileBeside, _SNAPSHOT)} AS file,
    coalesce(current_txn_first_offset = start_offset, FALSE) AS agrees
  FROM (
    SELECT *
    FROM spans
    JOIN (SELECT DISTINCT topic, partition, source, snapshot_offset FROM snapshots) USING (topic, partition, source)
    WHERE snapshot_offset > start_offset
  )
  LEFT JOIN snapshots USING (topic, partition, source, snapshot_offset, producer_id)
),
files AS (
  SELECT topic, partition, producer_id, start_offset, file
  FROM (
    SELECT *, max(snapshot_offset) OVER (PARTITION BY {_IN_COPY}) AS newest,
      min(if(agrees, NULL, snapshot_offset)) OVER (PARTITION BY {_IN_COPY}) AS oldest
    FROM states
  )
  WHERE snapshot_offset = newest OR snapshot_offset <=> oldest
  UNION ALL
  SELECT topic, partition, producer_id, start_offset, {struct(FileBeside, _INDEX_ENTRY)} AS file
  FROM {{index}} JOIN spans USING (topic, partition, producer_id, source)
  WHERE last_offset > start_offset
)
SELECT topic, partition, producer_id, start_offset, sort_array(collect_set(file)) AS files_beside
FROM files GROUP BY topic, partition, producer_id, start_offset
"""
