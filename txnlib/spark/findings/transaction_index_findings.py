"""Findings about aborts on which a log and its transaction index disagree.

Only judged copies without damage are compared, because damage and compaction remove markers.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.finding_catalogue import Finding
from txnlib.spark.coverage.sound_copies import sound_copies
from txnlib.spark.joins import broadcast
from txnlib.spark.schemas import COPY, TOPIC_PARTITION

_ABORT = (*TOPIC_PARTITION, "producer_id", "marker_offset")


def transaction_index_findings(producer_spans: DataFrame, aborted_transactions: DataFrame, coverage: DataFrame) -> DataFrame:
    """One row per abort that is only in one of the two: name, topic, partition, producer_id, offset, evidence.

    Kafka: `LogSegment.updateTxnIndex`, which writes an entry for each ABORT marker that ends a transaction with data.
    """
    whole = sound_copies(coverage).select(
        *COPY, "end_offset", "gap_offset", F.coalesce("read_from_offset", F.lit(0)).alias("read_from_offset")
    )
    index = aborted_transactions.join(broadcast(whole), on=list(COPY), how="inner")
    # An empty index file has a row, too: its segment has no aborts.
    files = index.groupBy(*TOPIC_PARTITION).agg(
        F.sort_array(F.collect_set("segment_base_offset")).alias("indexed_segments"),
        F.max("last_offset").alias("newest_entry"),
        F.max("gap_offset").alias("gap_offset"),
    )
    entries = index.where(F.col("producer_id").isNotNull()).withColumnRenamed("last_offset", "marker_offset")
    # Most captures have no index for most partitions.
    aborts = producer_spans.where(F.col("marker_type") == "ABORT").join(
        broadcast(files.select(*TOPIC_PARTITION)), on=list(TOPIC_PARTITION), how="left_semi"
    )
    derived = aborts.where(F.col("first_offset").isNotNull()).select(*_ABORT)
    markers = aborts.select(*_ABORT)
    return _not_indexed(derived, entries, files).unionByName(_without_marker(entries, markers))


def _not_indexed(derived: DataFrame, entries: DataFrame, files: DataFrame) -> DataFrame:
    """Aborts in the log without an index entry, only below the newest entry: the index may have been copied before the log."""
    lost = derived.join(entries.select(*_ABORT), on=list(_ABORT), how="left_anti").join(
        broadcast(files), on=list(TOPIC_PARTITION), how="inner"
    )
    first_segment = F.element_at("indexed_segments", 1)
    return lost.where((F.col("marker_offset") < F.col("newest_entry")) & (F.col("marker_offset") >= first_segment)).select(
        F.lit(Finding.ABORT_NOT_INDEXED.name).alias("name"),
        *TOPIC_PARTITION,
        "producer_id",
        F.col("marker_offset").alias("offset"),
        F.concat(F.lit("the index has no entry with last offset "), F.col("marker_offset")).alias("evidence"),
    )


def _without_marker(entries: DataFrame, markers: DataFrame) -> DataFrame:
    """Index entries whose marker is not in the part of the log that was read. Below a hole, compaction may have removed it."""
    is_read = (F.col("marker_offset") >= F.col("read_from_offset")) & (F.col("marker_offset") < F.col("end_offset"))
    is_behind_holes = F.coalesce(F.col("marker_offset") > F.col("gap_offset"), F.lit(True))
    lost = entries.where(is_read & is_behind_holes).join(markers, on=list(_ABORT), how="left_anti")
    shown = F.concat(
        F.lit("first offset "), "first_offset", F.lit(", last offset "), "marker_offset", F.lit(", LSO "), "last_stable_offset"
    )
    return lost.select(
        F.lit(Finding.INDEXED_ABORT_NOT_IN_LOG.name).alias("name"),
        *TOPIC_PARTITION,
        "producer_id",
        F.col("marker_offset").alias("offset"),
        shown.alias("evidence"),
    )
