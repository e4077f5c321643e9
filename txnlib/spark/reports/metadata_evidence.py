"""What the cluster's metadata log shows about open transactions.

Columns have the field names of `core.verdicts.evidence.ClusterSide`. All times are the controller's.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC, TRANSACTION_VERSION
from txnlib.spark import windows
from txnlib.spark.joins import broadcast
from txnlib.spark.schemas import OPEN_TRANSACTION, TOPIC_PARTITION

#: Newest elections of a partition, and newest records that fenced a broker or lowered a feature, to look at.
MOST_EVENTS: Final = 100


def elections(opened: DataFrame, partition_assignments: DataFrame) -> DataFrame:
    """One row per partition of `opened` (TOPIC_PARTITION) with its elections, in order. Columns: TOPIC_PARTITION, elections."""
    here = partition_assignments.join(broadcast(opened.select(*TOPIC_PARTITION).distinct()), on=list(TOPIC_PARTITION))
    return _elections(here).groupBy(*TOPIC_PARTITION).agg(_newest(_election()).alias("elections"))


def coordinator_elections(partition_assignments: DataFrame) -> DataFrame:
    """The same of every coordinator partition. Columns: coordinator_partition, coordinator_elections."""
    coordinators = partition_assignments.where(F.col("topic") == TRANSACTION_STATE_TOPIC)
    number = F.col("partition").alias("coordinator_partition")
    return _elections(coordinators).groupBy(number).agg(_newest(_election()).alias("coordinator_elections"))


def _elections(partition_assignments: DataFrame) -> DataFrame:
    """The states with another leader or leader epoch than the one before, each until the next of them."""
    state = F.struct("leader", "leader_epoch")
    dated = partition_assignments.withColumn("before", F.lag(state).over(windows.assignments_of_partition()))
    changed = dated.where(F.col("before").isNull() | ~state.eqNullSafe(F.col("before")))
    until = F.coalesce(F.lead(F.unix_millis("since")).over(windows.assignments_of_partition()), F.unix_millis("until"))
    return changed.withColumn("until_ms", until)


def _election() -> Column:
    fields = {
        "offset": F.col("since_offset"),
        "at_ms": F.unix_millis("since"),
        "leader": F.col("leader"),
        "leader_epoch": F.col("leader_epoch"),
        "is_unclean": F.col("is_unclean"),
        "until_ms": F.col("until_ms"),
        "topic_id": F.col("topic_id"),
        "is_first": F.col("before").isNull(),
    }
    return F.struct(*[value.alias(name) for name, value in fields.items()])


def _newest(event: Column) -> Column:
    """The newest events, in order. They begin with their offset."""
    return F.reverse(F.slice(F.sort_array(F.collect_list(event), asc=False), 1, MOST_EVENTS))


def fenced_brokers(broker_sessions: DataFrame) -> DataFrame:
    """One row: `fenced`, the records that fenced a broker."""
    event = F.struct(
        F.col("since_offset").alias("offset"), F.unix_millis("since").alias("at_ms"), F.col("broker_id").alias("broker")
    )
    before = F.lag("is_fenced").over(windows.sessions_of_broker())
    fenced = broker_sessions.withColumn("was_fenced", before).where(F.col("is_fenced") & ~F.col("was_fenced"))
    return fenced.agg(_newest(event).alias("fenced"))


def lowered_features(cluster_settings: DataFrame) -> DataFrame:
    """One row: `lowered`, the records that lowered `transaction.version`."""
    levels = cluster_settings.where((F.col("scope") == "FEATURE") & (F.col("name") == TRANSACTION_VERSION)).select(
        F.col("since_offset").alias("offset"),
        F.unix_millis("since").alias("at_ms"),
        F.lag(F.col("value").cast("int")).over(windows.values_of_setting()).alias("level_before"),
        F.col("value").cast("int").alias("level"),
    )
    return levels.where("level < level_before").agg(_newest(F.struct("offset", "at_ms", "level_before", "level")).alias("lowered"))


def blocks(opened: DataFrame, producer_id_blocks: DataFrame) -> DataFrame:
    """One row per open transaction whose producer id is in a known block. Columns: OPEN_TRANSACTION, block."""
    block = F.struct("offset", F.unix_millis("allocated_at").alias("at_ms"), "first_producer_id", "last_producer_id", "broker_id")
    is_in = F.col("producer_id").between(F.col("first_producer_id"), F.col("last_producer_id"))
    joined = opened.select(*OPEN_TRANSACTION).join(broadcast(producer_id_blocks), on=is_in)
    return joined.groupBy(*OPEN_TRANSACTION).agg(F.max(block).alias("block"))
