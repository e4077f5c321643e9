"""What the core's reports need from tables of the log: rows that can matter, and answers to questions about few
places."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.batch_runs import FIRST_TIMESTAMP_MS, is_divided_at
from txnlib.core.kafka.constants import GROUP_METADATA_TOPIC
from txnlib.core.sql_text import clock_ms, next_of
from txnlib.spark.coordinators.transaction_markers import each_marker
from txnlib.spark.joins import broadcast, select, single_batches
from txnlib.spark.schemas import COPY, PRODUCER, TOPIC_PARTITION


def read_ends(ends: DataFrame, producer_spans: DataFrame, record_batches: DataFrame) -> DataFrame:
    """The offset after the last record that consumers receive. Columns: topic, partition, read_end.

    `ends`: topic, partition, source, last_stable_offset. For a committed transaction that ends below that offset, its
    span has the last record. For one that extends beyond it, its batches are read; each producer has at most one. A
    marker whose type is not printed may be a COMMIT.
    """
    text = """
    SELECT /*+ BROADCAST(ends) */ topic, partition, producer_id, first_offset AS begins_at, last_offset,
      last_offset < last_stable_offset AS is_within
    FROM {spans} JOIN (SELECT topic, partition, last_stable_offset FROM {ends}) AS ends USING (topic, partition)
    WHERE marker_offset IS NOT NULL AND coalesce(marker_type, '') != 'ABORT' AND first_offset < last_stable_offset
    """
    committed = select(text, spans=producer_spans, ends=ends)
    beyond = committed.where("NOT is_within").select(*PRODUCER, "begins_at")
    data = (
        record_batches.where("NOT is_control AND coalesce(records_count, 1) > 0")
        .join(broadcast(ends), on=list(COPY))
        .join(broadcast(beyond), on=list(PRODUCER), how="left")
        .where("base_offset < last_stable_offset")
    )
    is_divided = f"({is_divided_at('last_stable_offset')} OR coalesce({is_divided_at('begins_at')}, FALSE))"
    is_readable = "NOT coalesce(is_transactional, FALSE) OR base_offset >= begins_at"
    read = single_batches(data, is_divided).where("base_offset < last_stable_offset").where(is_readable)
    last = (*TOPIC_PARTITION, "last_offset")
    lasts = committed.where("is_within").select(*last).union(read.select(*last))
    return lasts.groupBy(*TOPIC_PARTITION).agg((F.max("last_offset") + 1).alias("read_end"))


def unstable_offsets(producer_spans: DataFrame, coverage: DataFrame) -> DataFrame:
    """The first unstable offset of each partition. Columns: topic, partition, first_unstable_offset.

    Unstable are open transactions, and those ended by a marker at or above the high watermark.
    """
    text = """
    SELECT /*+ BROADCAST(marks) */ topic, partition, min(first_offset) AS first_unstable_offset
    FROM {spans} JOIN (
      SELECT topic, partition, coalesce(high_watermark, end_offset, 0) AS mark FROM {coverage} WHERE is_judged
    ) AS marks USING (topic, partition)
    WHERE first_offset IS NOT NULL AND (marker_offset IS NULL OR marker_offset >= mark)
    GROUP BY topic, partition
    """
    return select(text, spans=producer_spans, coverage=coverage)


def unstable_batches(ranges: DataFrame, record_batches: DataFrame) -> DataFrame:
    """Bytes of the batches in each range, and the time of the first. Columns: topic, partition, lag_bytes, stable_ms.

    `ranges`: topic, partition, source, last_stable_offset, high_watermark.
    """
    is_behind = "last_offset >= last_stable_offset AND base_offset < high_watermark"
    behind = record_batches.join(broadcast(ranges), on=list(COPY)).where(is_behind)
    is_divided = f"({is_divided_at('last_stable_offset')} OR {is_divided_at('high_watermark')})"
    each = single_batches(behind, is_divided).where(is_behind)
    return each.groupBy(*TOPIC_PARTITION).agg(
        F.expr("sum(CAST(size AS BIGINT)) AS lag_bytes"),
        F.expr(f"{clock_ms(f'min_by({FIRST_TIMESTAMP_MS}, base_offset)')} AS stable_ms"),
    )


def whole_transactions(ids: DataFrame, transaction_outcomes: DataFrame) -> DataFrame:
    """The transactions of ids that hold some partition. Columns: those of
    `core.verdicts.abort_plan.WholeTransaction`."""
    text = """
    SELECT /*+ BROADCAST(ids) */ transactional_id, coordinator_partition, transaction_number,
      count_if(outcome = 'OPEN') AS held_partitions, sum(records) FILTER (WHERE outcome = 'OPEN') AS held_records,
      count_if(outcome = 'COMMIT') AS committed_partitions, count_if(outcome = 'ABORT') AS aborted_partitions,
      collect_list(struct(topic, partition, producer_id)) FILTER (WHERE outcome = 'OPEN') AS held
    FROM {outcomes} LEFT SEMI JOIN {ids} AS ids USING (transactional_id)
    WHERE transaction_number IS NOT NULL
    GROUP BY transactional_id, coordinator_partition, transaction_number
    HAVING count_if(outcome = 'OPEN') > 0
    """
    return select(text, ids=ids, outcomes=transaction_outcomes)


def first_markers(opened: DataFrame, producer_spans: DataFrame) -> DataFrame:
    """The first marker of its producer after the start of each transaction.

    `opened`: OPEN_TRANSACTION. Columns: those, marker_offset, marker_type, marker_ms.
    """
    text = """
    SELECT topic, partition, producer_id, start_offset, marker.marker_offset, marker.marker_type, marker.marker_ms
    FROM (
      SELECT /*+ BROADCAST(opened) */ topic, partition, producer_id, start_offset,
        min(struct(marker_offset, marker_type, marker_ms)) AS marker
      FROM {spans} JOIN {opened} AS opened USING (topic, partition, producer_id)
      WHERE marker_offset > start_offset
      GROUP BY topic, partition, producer_id, start_offset
    )
    """
    return select(text, opened=opened, spans=producer_spans)


def decided_markers(markers: DataFrame, transactions: DataFrame) -> DataFrame:
    """Those of some markers that a decision explains, or may. Columns: PRODUCER, marker_offset."""
    text = f"""
    SELECT /*+ BROADCAST(asked) */ topic, partition, producer_id, marker_offset
    FROM (SELECT topic, partition, producer_id, {each_marker()}
      FROM (SELECT producer_id, inline(markers) FROM {{transactions}}))
    LEFT SEMI JOIN {{markers}} AS asked USING (topic, partition, producer_id, marker_offset)
    """
    return select(text, markers=markers, transactions=transactions)


def group_positions(
    places: DataFrame, committed_offsets: DataFrame, producer_spans: DataFrame, coverage: DataFrame
) -> DataFrame:
    """One row per group and partition: group_id, topic, partition, committed_offset, commit_timestamp_ms.

    `places`: the partitions (topic, partition) that are asked about.

    A commit takes effect when it is written. A commit inside a transaction takes effect with the COMMIT marker that
    follows it in its own partition of `__consumer_offsets`, and then counts as of its own offset, not the marker's.
    Pending and aborted commits have no effect. A tombstone removes, immediately, everything written before it. Judged
    copies only. Kafka: `OffsetMetadataManager.replay` and `replayEndTransactionMarker`.
    """
    text = f"""
    WITH judged AS (
      SELECT topic, partition, source FROM {{coverage}} WHERE is_judged AND topic = '{GROUP_METADATA_TOPIC}'
    ), asked AS (
      SELECT topic AS committed_topic, CAST(partition AS INT) AS committed_partition FROM {{places}}
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
        FROM {{spans}} WHERE topic = '{GROUP_METADATA_TOPIC}' AND marker_offset IS NOT NULL
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
    return select(text, places=places, committed_offsets=committed_offsets, spans=producer_spans, coverage=coverage)
