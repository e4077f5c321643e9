"""Findings about aborts on which a log and its transaction index disagree.

Only judged copies without damage are compared, because damage and compaction remove markers.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.spark.coverage import sound_copies
from txnlib.spark.joins import broadcast
from txnlib.spark.schemas import COPY, TOPIC_PARTITION

_ABORT = (*TOPIC_PARTITION, "producer_id", "marker_offset")


def _index(aborted_transactions: DataFrame, coverage: DataFrame) -> DataFrame:
    whole = sound_copies(coverage).select(
        *COPY, "end_offset", "gap_offset", F.coalesce("read_from_offset", F.lit(0)).alias("read_from_offset")
    )
    return aborted_transactions.join(broadcast(whole), on=list(COPY), how="inner").withColumnRenamed("last_offset", "marker_offset")


def _aborts(producer_spans: DataFrame, index: DataFrame) -> DataFrame:
    """The ABORT markers of partitions with an index, which most captures have of few partitions."""
    aborts = producer_spans.where(F.col("marker_type") == "ABORT")
    return aborts.join(broadcast(index.select(*TOPIC_PARTITION).distinct()), on=list(TOPIC_PARTITION), how="left_semi")


def unindexed_aborts(producer_spans: DataFrame, aborted_transactions: DataFrame, coverage: DataFrame) -> DataFrame:
    """Aborts of data in the log without an index entry, below the newest entry: the index may have been copied before the log."""
    index = _index(aborted_transactions, coverage)
    # An empty index file has a row, too: its segment has no aborts.
    files = index.groupBy(*TOPIC_PARTITION).agg(
        F.min("segment_base_offset").alias("first_segment"), F.max("marker_offset").alias("newest_entry")
    )
    aborts = _aborts(producer_spans, index).where(F.col("first_offset").isNotNull()).select(*_ABORT)
    lost = aborts.join(index.select(*_ABORT), on=list(_ABORT), how="left_anti").join(
        broadcast(files), on=list(TOPIC_PARTITION), how="inner"
    )
    is_indexed = (F.col("marker_offset") < F.col("newest_entry")) & (F.col("marker_offset") >= F.col("first_segment"))
    return lost.where(is_indexed).select(*_ABORT)


def lost_aborts(producer_spans: DataFrame, aborted_transactions: DataFrame, coverage: DataFrame) -> DataFrame:
    """Index entries whose marker is not in the part of the log that was read. Below a hole, compaction may have removed it."""
    index = _index(aborted_transactions, coverage)
    is_read = (F.col("marker_offset") >= F.col("read_from_offset")) & (F.col("marker_offset") < F.col("end_offset"))
    is_behind_holes = F.coalesce(F.col("marker_offset") > F.col("gap_offset"), F.lit(True))
    entries = index.where(F.col("producer_id").isNotNull() & is_read & is_behind_holes)
    lost = entries.join(_aborts(producer_spans, index).select(*_ABORT), on=list(_ABORT), how="left_anti")
    return lost.select(*TOPIC_PARTITION, "producer_id", "first_offset", "marker_offset", "last_stable_offset")
