"""Positions of consumer groups: the last commit of each that took effect."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.kafka.constants import GROUP_METADATA_TOPIC
from txnlib.spark import windows
from txnlib.spark.joins import broadcast
from txnlib.spark.schemas import COPY, PRODUCER

#: Fields of a commit. The first one orders the commits of one key.
COMMIT = ("offset", "is_tombstone", "committed_offset", "commit_timestamp_ms")


def group_positions(places: DataFrame, committed_offsets: DataFrame, producer_spans: DataFrame, coverage: DataFrame) -> DataFrame:
    """One row per group and partition: group_id, topic, partition, committed_offset, commit_timestamp_ms.

    `places`: the partitions (topic, partition) that are asked about.

    A commit takes effect when it is written. A commit inside a transaction takes effect with the COMMIT marker that follows it in
    its own partition of `__consumer_offsets`, and then counts as of its own offset, not the marker's. Pending and aborted commits
    have no effect. A tombstone removes, immediately, everything written before it. Judged copies only.
    Kafka: `OffsetMetadataManager.replay` and `replayEndTransactionMarker`.
    """
    judged = coverage.where(F.col("is_judged") & (F.col("topic") == GROUP_METADATA_TOPIC)).select(*COPY)
    asked = places.select(F.col("topic").alias("committed_topic"), F.col("partition").cast("int").alias("committed_partition"))
    commits = committed_offsets.join(broadcast(judged), on=list(COPY), how="left_semi").join(
        broadcast(asked), on=["committed_topic", "committed_partition"], how="left_semi"
    )
    is_at_once = F.col("producer_id").isNull() | F.col("is_tombstone")
    effective = commits.where(is_at_once).unionByName(_committed(commits.where(~is_at_once), producer_spans))
    newest = effective.groupBy("group_id", "committed_topic", "committed_partition").agg(
        F.max(F.struct(*COMMIT)).alias("newest")  # ordered by its first field, the record's offset
    )
    return newest.where(~F.col("newest.is_tombstone")).select(
        "group_id",
        F.col("committed_topic").alias("topic"),
        F.col("committed_partition").alias("partition"),
        "newest.committed_offset",
        "newest.commit_timestamp_ms",
    )


def _committed(commits: DataFrame, producer_spans: DataFrame) -> DataFrame:
    """The commits inside transactions whose next marker of the same producer is COMMIT."""
    markers = producer_spans.where((F.col("topic") == GROUP_METADATA_TOPIC) & F.col("marker_offset").isNotNull()).select(
        *PRODUCER,
        F.col("marker_offset").alias("offset"),
        F.coalesce("marker_type", F.lit("")).alias("marker_type"),
    )
    following = F.last("marker_type", ignorenulls=True).over(windows.until_now(windows.commits_of_producer_downwards()))
    ended = commits.unionByName(markers, allowMissingColumns=True).withColumn("ended_by", following)
    return ended.where(F.col("group_id").isNotNull() & (F.col("ended_by") == "COMMIT")).select(*commits.columns)
