"""`partition_assignments`: who led each partition, with which replicas, from when to when."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.core.kafka.metadata_records import MetadataType
from txnlib.spark import windows
from txnlib.spark.joins import broadcast
from txnlib.spark.metadata.metadata_log import effective
from txnlib.spark.metadata.validity import since, until
from txnlib.spark.schemas import PARTITION_ASSIGNMENTS, conform

_STATE: Final = ("leader", "leader_epoch", "isr", "replicas", "eligible_leader_replicas")


def partition_assignments(metadata_log: DataFrame) -> DataFrame:
    """One row per partition and state of it. Columns: PARTITION_ASSIGNMENTS.

    Kafka: `PartitionRegistration.merge`. A change that sets a leader, even the same one, raises the leader epoch by one.
    """
    changes = effective(metadata_log, MetadataType.PARTITION, MetadataType.PARTITION_CHANGE)
    states = _states(changes.unionByName(_cleared(metadata_log, changes)))
    removed = effective(metadata_log, MetadataType.REMOVE_TOPIC).select(
        "topic_id", F.col("at_offset").alias("removed_offset"), F.col("timestamp_ms").alias("removed_ms")
    )
    joined = states.join(broadcast(topics(metadata_log)), on="topic_id").join(broadcast(removed), on="topic_id", how="left")
    return conform(until(joined, windows.states_of_assignment(), "removed_offset", "removed_ms"), PARTITION_ASSIGNMENTS)


def topics(metadata_log: DataFrame) -> DataFrame:
    """The name of each topic id that ever existed. Columns: topic_id, topic."""
    return effective(metadata_log, MetadataType.TOPIC).select("topic_id", F.col("name").alias("topic")).distinct()


def _is_of_topic() -> Column:
    """Whether a record without a topic, or with this one, in a tool's text perhaps without its name, applies to a topic."""
    return F.coalesce("name", F.lit("")).isin("") | (F.col("name") == F.col("cleared_topic"))


def _cleared(metadata_log: DataFrame, changes: DataFrame) -> DataFrame:
    """The eligible leader replicas that ClearElrRecords cleared, as changes: of one topic, or, without a name, of all.

    Kafka: `ReplicationControlManager.replay(ClearElrRecord)`.
    """
    cleared = (
        effective(metadata_log, MetadataType.CLEAR_ELR)
        .drop("topic_id")
        .join(broadcast(topics(metadata_log).toDF("cleared_id", "cleared_topic")), on=_is_of_topic())
    )
    places = changes.select("topic_id", "partition_id").distinct()
    facts = {"eligible_leader_replicas": F.array().cast("array<int>"), "sets_leader": F.lit(False)}
    columns = [name for name in changes.columns if name not in ("topic_id", "partition_id")]
    of_topics = cleared.select(*columns, F.col("cleared_id").alias("topic_id"))
    return of_topics.join(places, on="topic_id").withColumns(facts).select(*changes.columns)


def _states(changes: DataFrame) -> DataFrame:
    """The state of each partition after each record that changes it."""
    ordered = windows.changes_of_partition()
    now = windows.until_now(ordered)
    is_whole = F.col("type") == MetadataType.PARTITION.value
    numbered = changes.withColumn("base", F.count(F.when(is_whole, 1)).over(now)).where("base > 0")
    of_base = windows.until_now(windows.changes_since_partition_record())
    raised = F.sum(F.when(~is_whole & F.col("sets_leader"), 1).otherwise(0)).over(of_base)
    state = {
        "leader": F.last(F.when(F.col("sets_leader"), F.struct("leader")), ignorenulls=True).over(of_base)["leader"],
        "leader_epoch": (F.first("leader_epoch").over(of_base) + raised).cast("int"),
        "isr": F.last("isr", ignorenulls=True).over(of_base),
        "replicas": F.last("replicas", ignorenulls=True).over(of_base),
        "adding_replicas": F.last("adding_replicas", ignorenulls=True).over(of_base),
        # An empty list and no list mean the same.
        "eligible_leader_replicas": F.nullif(
            F.last("eligible_leader_replicas", ignorenulls=True).over(of_base), F.array().cast("array<int>")
        ),
    }
    states = numbered.withColumns(state)
    before = states.withColumns({"state": F.struct(*_STATE), "before": F.lag(F.struct(*_STATE, "adding_replicas")).over(ordered)})
    # A reassignment that ends elects from the in-sync set after it, which may consist of replicas that were being added.
    none = F.array().cast("array<int>")
    adding = F.coalesce("before.adding_replicas", none)
    may_lead = F.concat("before.isr", F.coalesce("before.eligible_leader_replicas", none), adding)
    is_stranger = F.coalesce(~F.array_contains(may_lead, F.col("leader")), F.lit(False))
    is_elected = F.col("sets_leader") & F.col("leader").isNotNull()
    is_recovering = F.coalesce(F.col("leader_recovery_state") == 1, F.lit(False))
    same = F.struct(*[F.col(f"before.{name}").alias(name) for name in _STATE])
    changed = before.where(F.col("before").isNull() | ~F.col("state").eqNullSafe(same))
    return since(
        changed.withColumns({"is_unclean": is_elected & (is_stranger | is_recovering), "partition": F.col("partition_id")})
    ).select("topic_id", "partition", *_STATE, "is_unclean", "at_offset", "since_offset", "since_ms")
