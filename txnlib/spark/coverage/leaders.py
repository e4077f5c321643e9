"""Leaders and replicas of partitions, from capture.json and the metadata log."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.core.kafka.constants import CLUSTER_METADATA_TOPIC
from txnlib.core.verdicts.copies import LeaderBasis
from txnlib.spark.instants import clock_ms
from txnlib.spark.joins import broadcast
from txnlib.spark.schemas import COPY, TOPIC_PARTITION

#: The leader of a partition without one.
NO_LEADER: Final = "-1"


def leaders(
    partition_notes: DataFrame, partition_assignments: DataFrame, metadata_basis: LeaderBasis | None, noted_ms: int | None
) -> DataFrame:
    """One row per partition that capture.json or the metadata log names.

    Columns: TOPIC_PARTITION, leader (`-1`: none), replicas, in_sync, leader_basis, noted_leader (of notes that are in force),
    assigned_leader; and of leaders from the metadata log, `led_epoch` and `led_since_ms`: their leader epoch, and its begin.

    capture.json wins, unless the leader changed in the metadata log after the notes were made. A stale metadata log names none, and
    a damaged one contradicts none.
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
    of_metadata = F.lit(None).cast("string") if metadata_basis is LeaderBasis.METADATA_LOG_STALE else F.col("assigned_leader")
    is_proven = metadata_basis is not LeaderBasis.METADATA_LOG_DAMAGED
    contradicting = of_metadata if is_proven else F.lit(None)
    basis = F.when(is_assigned, F.lit(metadata_basis and metadata_basis.value)).when(
        F.col("noted_leader").isNotNull(), LeaderBasis.CAPTURE_JSON.value
    )
    is_superseded = is_assigned & F.col("noted_leader").isNotNull()
    return joined.select(
        *TOPIC_PARTITION,
        F.when(is_assigned, of_metadata).otherwise(F.col("noted_leader")).cast("string").alias("leader"),
        F.coalesce(F.when(is_assigned, F.col("assigned_replicas")), "noted_replicas").alias("replicas"),
        F.when(is_assigned, F.col("in_sync")).alias("in_sync"),
        basis.cast("string").alias("leader_basis"),
        F.when(~is_superseded, F.col("noted_leader")).alias("noted_leader"),
        contradicting.cast("string").alias("assigned_leader"),
        F.when(is_assigned, F.col("leader_epoch")).alias("led_epoch"),
        F.when(is_assigned, F.col("since_ms")).alias("led_since_ms"),
    )


def _assigned(partition_assignments: DataFrame) -> DataFrame:
    """The current state of each partition, and since when its leader epoch lasts, if a record shows it."""
    in_sync = F.concat("isr", F.coalesce("eligible_leader_replicas", F.array().cast("array<int>")))
    begun = F.when(F.bool_and(F.col("since").isNotNull()), F.min(F.unix_millis("since")))
    epochs = partition_assignments.groupBy(*TOPIC_PARTITION, "topic_id", "leader_epoch").agg(begun.alias("since_ms"))
    current = partition_assignments.where("is_current").select(
        *TOPIC_PARTITION,
        "topic_id",
        "leader_epoch",
        F.coalesce(F.col("leader").cast("string"), F.lit(NO_LEADER)).alias("assigned_leader"),
        F.col("replicas").cast("array<string>").alias("assigned_replicas"),
        F.array_distinct(in_sync).cast("array<string>").alias("in_sync"),
    )
    return current.join(epochs, on=[*TOPIC_PARTITION, "topic_id", "leader_epoch"], how="left")


def deleted_copies(
    segments: DataFrame,
    checkpoints: DataFrame,
    metadata_log: DataFrame,
    partition_assignments: DataFrame,
    partition_notes: DataFrame,
    *,
    is_metadata_whole: bool,
    is_metadata_confirmed: bool,
) -> DataFrame:
    """The copies of topics that were deleted, even if they were created again. Usually there are none. Columns: COPY.

    The topic id in `partition.metadata` shows it. A broker makes the folder of a partition after it has stored the topic's record
    in its own metadata log. So an id that a metadata log with beginning and end (`is_metadata_whole`) does not contain is older
    than its snapshot, if the log of that broker was captured, or if the log is confirmed. Text shows no topic id: it counts as
    deleted if a confirmed log has no topic of its name. Without such a log, copies with different topic ids are of different logs,
    and one of them lives. `partition_notes`: of capture.json. Kafka: `LogManager.isStrayKraftReplica`, `BrokerMetadataPublisher`.
    """
    ids = checkpoints.where(F.col("name") == "topic_id").groupBy(*COPY).agg(F.max("topic_id").alias("topic_id"))
    of_names = partition_assignments.groupBy("topic").agg(
        F.max(F.when(F.col("is_current"), F.col("topic_id"))).alias("current_id"), F.collect_set("topic_id").alias("known_ids")
    )
    with_log = metadata_log.select(broker().alias("broker"), F.lit(True).alias("has_log")).distinct()
    is_copy = F.col("kind").isin("raw", "text", "skipped") & (F.col("topic") != CLUSTER_METADATA_TOPIC)
    copies = segments.where(is_copy).select(*COPY, broker().alias("broker")).distinct()
    named = (
        copies.join(ids, on=list(COPY), how="left")
        .join(broadcast(of_names), on="topic", how="left")
        .join(broadcast(with_log), on="broker", how="left")
    )
    topic_id, current = F.col("topic_id"), F.col("current_id")
    is_known = F.coalesce(F.array_contains("known_ids", topic_id), F.lit(False))
    is_past = is_known & ~topic_id.eqNullSafe(current)
    is_proof = F.lit(is_metadata_confirmed) | F.coalesce("has_log", F.lit(False))
    is_unlisted = F.lit(is_metadata_whole) & topic_id.isNotNull() & ~is_known & is_proof
    is_nameless = F.lit(is_metadata_whole and is_metadata_confirmed) & topic_id.isNull() & current.isNull()
    deleted = named.where(is_past | is_unlisted | is_nameless).select(*COPY)
    return deleted.unionByName(_of_other_ids(segments, ids.join(deleted, on=list(COPY), how="left_anti"), partition_notes))


def _of_other_ids(segments: DataFrame, ids: DataFrame, partition_notes: DataFrame) -> DataFrame:
    """Copies whose topic id is not that of the living topic, which leaders' copies have, else the copy with the newest stamp.

    `ids` (COPY, topic_id): those that no metadata log has settled.
    """
    leaders = partition_notes.select(*TOPIC_PARTITION, F.col("leader").cast("string").alias("leader"))
    newest = segments.groupBy(*COPY).agg(F.max(clock_ms("newest_broker_ms")).alias("newest_ms"))
    known = (
        ids.where(F.col("topic_id").isNotNull())
        .join(newest, on=list(COPY), how="left")
        .join(broadcast(leaders), on=list(TOPIC_PARTITION), how="left")
    )
    led = F.count_if(F.col("leader") == broker())
    standing = known.groupBy("topic", "topic_id").agg(F.struct(led.alias("led"), F.max("newest_ms").alias("ms")).alias("standing"))
    living = standing.groupBy("topic").agg(F.max_by("topic_id", "standing").alias("living_id"))
    return known.join(broadcast(living), on="topic").where(F.col("topic_id") != F.col("living_id")).select(*COPY)


def broker() -> Column:
    """The broker in a source: the first number in its path, else the last name (see `readers.capture.broker_of`)."""
    parts = F.filter(F.slice(F.split("source", "[:/]"), 2, 100), lambda part: ~part.isin(".", "..", ""))
    numbers = F.filter(parts, lambda part: part.rlike("^[0-9]+$"))
    return F.coalesce(F.try_element_at(numbers, F.lit(1)), F.try_element_at(parts, F.lit(-1)))
