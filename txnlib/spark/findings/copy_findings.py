"""Findings about copies of a partition that disagree below their high watermarks.

Spark finds where they do, the core says how.

Ranges of offsets are compared by fingerprint first, and batch by batch only if the fingerprints differ. So copies that agree cost
one pass.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.core.findings.contradictions import of_copies, of_indexed, of_replicas, of_unindexed
from txnlib.spark.batch_runs import batch_hash, single_batches
from txnlib.spark.coverage import sound_copies
from txnlib.spark.joins import broadcast, bucket_of, select
from txnlib.spark.local_rows import settled
from txnlib.spark.schemas import COPY, TOPIC_PARTITION

#: The fields of a batch that compaction does not change, and every tool prints.
COMPARED: Final = (
    *("last_offset", "producer_id", "producer_epoch", "base_sequence"),
    *("is_transactional", "is_control", "partition_leader_epoch", "control_type"),
)
#: The fields of a coordinator's record that every tool prints.
_COMPARED_RECORD: Final = ("transactional_id", "is_tombstone", "state", "producer_id", "producer_epoch", "partitions")


def differing_records(transaction_log: DataFrame, coverage: DataFrame) -> DataFrame:
    """The first offset of each coordinator partition at which its copies have different records of one leader epoch.

    They are of different logs. Records are compared by what is decoded.
    """
    records = (
        transaction_log.where(F.col("coordinator_epoch").isNotNull() & (F.col("offset") >= 0))
        .join(broadcast(_living(coverage).select(*COPY)), on=list(COPY), how="left_semi")
        .withColumn("partitions", F.sort_array("partitions"))
    )
    return _first_difference(records, [*TOPIC_PARTITION, "offset", "coordinator_epoch"], _COMPARED_RECORD)


def differing_batches(record_batches: DataFrame, coverage: DataFrame) -> DataFrame:
    """The first offset of each partition at which its copies have different batches, by their headers.

    A batch counts only below the high watermark of its own copy, if that is known: batches above it may still be truncated. A batch
    that only one copy has is no disagreement, because copies begin, end and are compacted independently.
    """
    rows = _comparable(record_batches, coverage)
    prints = rows.groupBy(*COPY, "bucket").agg(F.bit_xor("hash").alias("print"))
    differing = prints.groupBy(*TOPIC_PARTITION, "bucket").agg(F.min("print").alias("least"), F.max("print").alias("most"))
    suspects = settled(differing.where(F.col("least") != F.col("most")).select(*TOPIC_PARTITION, "bucket"))
    each = single_batches(rows.join(broadcast(suspects), on=[*TOPIC_PARTITION, "bucket"], how="left_semi"), F.lit(True))
    return _first_difference(each.withColumnRenamed("base_offset", "offset"), [*TOPIC_PARTITION, "offset"], COMPARED)


def _first_difference(rows: DataFrame, key: list[str], compared: tuple[str, ...]) -> DataFrame:
    """The first offset of each partition at which copies differ in one of these columns, and the number of such offsets.

    Not all tools print all columns, and NULL is no contradiction.
    """
    differing = (
        rows.groupBy(*key)
        .agg(
            _differs(compared).alias("differs"),
            F.max("producer_id").alias("producer_id"),
            F.collect_set(F.struct("source", F.struct(*compared).alias("read"))).alias("copies"),
        )
        .where("differs")
    )
    first = differing.groupBy(*TOPIC_PARTITION).agg(
        F.min(F.struct("offset", "producer_id", F.sort_array("copies").alias("copies"))).alias("first"),
        F.count("*").alias("count"),
    )
    copies = "transform(copies, copy -> named_struct('source', copy.source, 'read', to_json(copy.read)))"
    return first.select(*TOPIC_PARTITION, "first.*", "count").withColumn("copies", F.expr(copies))


def _living(coverage: DataFrame) -> DataFrame:
    return coverage.where(F.col("source").isNotNull() & ~F.coalesce("is_deleted", F.lit(False)))


def _comparable(record_batches: DataFrame, coverage: DataFrame) -> DataFrame:
    """The batches of partitions with several copies, each below its copy's high watermark."""
    copies = _living(coverage)
    several = copies.groupBy(*TOPIC_PARTITION).agg(F.count("*").alias("count")).where("count > 1").drop("count")
    bounds = settled(copies.join(several, on=list(TOPIC_PARTITION), how="left_semi").select(*COPY, "high_watermark"))
    is_stable = F.expr("coalesce(last_offset < high_watermark, TRUE)")
    # The batches of a run are not all stable if the high watermark is above its beginning and not above its end.
    is_divided = F.expr("coalesce(base_offset < high_watermark AND last_offset >= high_watermark, FALSE)")
    each = single_batches(record_batches.join(broadcast(bounds), on=list(COPY), how="inner"), is_divided)
    columns = (*COPY, "base_offset", *COMPARED, "batches_count", "packed_batches")
    return each.where(is_stable).select(*columns, bucket_of("base_offset"), batch_hash().alias("hash"))


def _differs(names: tuple[str, ...]) -> Column:
    differs = F.lit(False)
    for name in names:
        differs = differs | F.coalesce(F.min(name) != F.max(name), F.lit(False))
    return differs


def open_on_replicas(producer_snapshots: DataFrame, producer_spans: DataFrame, coverage: DataFrame) -> DataFrame:
    """Transactions that the newest producer snapshot of a replica has open, and the log of the leader does not show.

    The copy of the leader has every record since that snapshot, so that no marker has ended them.
    """
    text = """
    WITH leaders AS (
      SELECT topic, partition, greatest(log_start_offset, read_from_offset, first_offset, gap_offset) AS whole_from, end_offset
      FROM {coverage} WHERE is_judged AND is_current AND is_decoded AND damaged_offset IS NULL
    ), replicas AS (
      SELECT topic, partition, source, broker
      FROM {coverage} WHERE NOT is_judged AND status != 'MISSING' AND NOT coalesce(is_deleted, FALSE) AND truncated IS NULL
    ), newest AS (
      SELECT topic, partition, source, max(snapshot_offset) AS snapshot_offset
      FROM {snapshots} WHERE is_answer IS NULL GROUP BY topic, partition, source
    ), opened AS (
      SELECT /*+ BROADCAST(leaders, replicas, newest) */ topic, partition, producer_id, broker, snapshot_offset, producer_epoch,
        current_txn_first_offset AS first_offset
      FROM (SELECT * FROM {snapshots} WHERE current_txn_first_offset IS NOT NULL)
      JOIN newest USING (topic, partition, source, snapshot_offset)
      JOIN replicas USING (topic, partition, source)
      JOIN leaders USING (topic, partition)
      WHERE snapshot_offset BETWEEN whole_from AND end_offset
    )
    SELECT opened.* FROM opened LEFT ANTI JOIN (
      SELECT topic, partition, producer_id, marker_offset, state.current_txn_first_offset IS NOT NULL AS is_open FROM {spans}
    ) AS known
    ON opened.topic = known.topic AND opened.partition = known.partition AND opened.producer_id = known.producer_id
      AND (is_open OR marker_offset > opened.first_offset)
    """
    return select(text, snapshots=producer_snapshots, spans=producer_spans, coverage=coverage)


# ---- Findings about aborts on which a log and its transaction index disagree


_ABORT = (*TOPIC_PARTITION, "producer_id", "marker_offset")


def _index(aborted_transactions: DataFrame, coverage: DataFrame) -> DataFrame:
    whole = sound_copies(coverage).selectExpr(
        *COPY, "end_offset", "gap_offset", "coalesce(read_from_offset, 0) AS read_from_offset", "log_start_offset"
    )
    return aborted_transactions.join(broadcast(whole), on=list(COPY), how="inner").withColumnRenamed("last_offset", "marker_offset")


def _aborts(producer_spans: DataFrame, index: DataFrame) -> DataFrame:
    """The ABORT markers of partitions with an index, which most captures have of few partitions."""
    aborts = producer_spans.where(F.col("marker_type") == "ABORT")
    return aborts.join(broadcast(index.select(*TOPIC_PARTITION).distinct()), on=list(TOPIC_PARTITION), how="left_semi")


def unindexed_aborts(producer_spans: DataFrame, aborted_transactions: DataFrame, coverage: DataFrame) -> DataFrame:
    """Aborts of data in the log without an index entry, below the newest entry: the index may have been copied before the log.

    Nobody reads data below the log start, and a broker that has started since does not know of it.
    """
    index = _index(aborted_transactions, coverage)
    # An empty index file has a row, too: its segment has no aborts.
    files = index.groupBy(*TOPIC_PARTITION).agg(
        F.min("segment_base_offset").alias("first_segment"),
        F.max("marker_offset").alias("newest_entry"),
        F.max("log_start_offset").alias("log_start_offset"),
    )
    aborts = _aborts(producer_spans, index).where("first_offset IS NOT NULL").select(*_ABORT, "last_offset")
    lost = aborts.join(index, on=list(_ABORT), how="left_anti").join(broadcast(files), on=list(TOPIC_PARTITION), how="inner")
    is_read = "coalesce(last_offset >= log_start_offset, TRUE)"
    return lost.where(f"marker_offset < newest_entry AND marker_offset >= first_segment AND {is_read}").select(*_ABORT)


def lost_aborts(producer_spans: DataFrame, aborted_transactions: DataFrame, coverage: DataFrame) -> DataFrame:
    """Index entries whose marker is not in the part of the log that was read. Below a hole, compaction may have removed it."""
    index = _index(aborted_transactions, coverage)
    is_read = "marker_offset >= read_from_offset AND marker_offset < end_offset AND coalesce(marker_offset > gap_offset, TRUE)"
    entries = index.where(f"producer_id IS NOT NULL AND {is_read}")
    lost = entries.join(_aborts(producer_spans, index).select(*_ABORT), on=list(_ABORT), how="left_anti")
    return lost.select(*TOPIC_PARTITION, "producer_id", "first_offset", "marker_offset", "last_stable_offset")


#: What is selected here, and the function of the core that makes findings of it.
RULES: Final = (
    (differing_batches, of_copies),
    (differing_records, of_copies),
    (open_on_replicas, of_replicas),
    (unindexed_aborts, of_unindexed),
    (lost_aborts, of_indexed),
)
