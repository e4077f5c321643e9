"""The leader and replicas of each partition, from capture.json and from the cluster's metadata log."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.verdicts.copies import LeaderBasis
from txnlib.spark.schemas import COPY, TOPIC_PARTITION

#: The leader of a partition without one.
NO_LEADER: Final = "-1"


def leaders(
    partition_notes: DataFrame, partition_assignments: DataFrame, metadata_basis: LeaderBasis | None, noted_ms: int | None
) -> DataFrame:
    """One row per partition that capture.json or the metadata log names.

    Columns: TOPIC_PARTITION, leader (`-1`: none), replicas, in_sync, leader_basis, noted_leader, assigned_leader.

    capture.json wins, unless the leader changed in the metadata log after the notes were made. A stale metadata log names none.
    `partition_notes` (topic, partition, leader, replicas): of capture.json, made at `noted_ms`. `metadata_basis`: that of leaders
    in the metadata log; None if there is no such log.
    """
    noted = partition_notes.select(
        *TOPIC_PARTITION,
        F.col("leader").cast("string").alias("noted_leader"),
        F.nullif(F.col("replicas").cast("array<string>"), F.array().cast("array<string>")).alias("noted_replicas"),
    )
    joined = noted.join(_assigned(partition_assignments), on=list(TOPIC_PARTITION), how="full")
    is_newer = F.coalesce(F.col("since_ms") > F.lit(noted_ms).cast("long"), F.lit(False)) | F.col("noted_leader").isNull()
    is_assigned = is_newer & F.col("assigned_leader").isNotNull()
    of_metadata = F.lit(None) if metadata_basis is LeaderBasis.METADATA_LOG_STALE else F.col("assigned_leader")
    basis = F.when(is_assigned, F.lit(metadata_basis and metadata_basis.value)).when(
        F.col("noted_leader").isNotNull(), LeaderBasis.CAPTURE_JSON.value
    )
    return joined.select(
        *TOPIC_PARTITION,
        F.when(is_assigned, of_metadata).otherwise(F.col("noted_leader")).cast("string").alias("leader"),
        F.coalesce(F.when(is_assigned, F.col("assigned_replicas")), "noted_replicas").alias("replicas"),
        F.when(is_assigned, F.col("in_sync")).alias("in_sync"),
        basis.cast("string").alias("leader_basis"),
        "noted_leader",
        "assigned_leader",
    )


def _assigned(partition_assignments: DataFrame) -> DataFrame:
    in_sync = F.concat("isr", F.coalesce("eligible_leader_replicas", F.array().cast("array<int>")))
    return partition_assignments.where("is_current").select(
        *TOPIC_PARTITION,
        F.coalesce(F.col("leader").cast("string"), F.lit(NO_LEADER)).alias("assigned_leader"),
        F.col("replicas").cast("array<string>").alias("assigned_replicas"),
        F.array_distinct(in_sync).cast("array<string>").alias("in_sync"),
        F.unix_millis("since").alias("since_ms"),
    )


def deleted_copies(
    segments: DataFrame, checkpoints: DataFrame, partition_assignments: DataFrame, *, is_metadata_confirmed: bool
) -> DataFrame:
    """The copies of topics that were deleted, even if they were created again. Usually there are none. Columns: COPY.

    The topic id in `partition.metadata` shows it. Text shows no topic id: it counts as deleted only if no topic of its name exists
    any more. An id that the metadata log does not contain is older than its snapshot, unless the topic was created after the end
    of the log, which a confirmed log excludes. Kafka: `LogManager.isStrayKraftReplica`.
    """
    ids = checkpoints.where(F.col("name") == "topic_id").groupBy(*COPY).agg(F.max("topic_id").alias("topic_id"))
    of_names = partition_assignments.groupBy("topic").agg(
        F.max(F.when(F.col("is_current"), F.col("topic_id"))).alias("current_id"),
        F.collect_set(F.when(~F.col("is_current"), F.col("topic_id"))).alias("past_ids"),
    )
    copies = segments.where(F.col("kind").isin("raw", "text", "skipped")).select(*COPY).distinct()
    named = copies.join(ids, on=list(COPY), how="left").join(F.broadcast(of_names), on="topic")
    topic_id, current = F.col("topic_id"), F.col("current_id")
    is_past = F.array_contains("past_ids", topic_id) & ~topic_id.eqNullSafe(current)
    is_unlisted = F.lit(is_metadata_confirmed) & (topic_id != current)
    is_nameless = topic_id.isNull() & current.isNull()
    return named.where(F.coalesce(is_past, F.lit(False)) | F.coalesce(is_unlisted, F.lit(False)) | is_nameless).select(*COPY)
