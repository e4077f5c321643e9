"""Findings about transactions that still list a partition of a deleted topic."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.finding_catalogue import Finding
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS, TRANSACTION_STATE_TOPIC
from txnlib.core.kafka.transaction_state import ACTIVE_STATES
from txnlib.spark.coordinators.transactional_ids import last_records
from txnlib.spark.instants import clock_ms
from txnlib.spark.joins import broadcast
from txnlib.spark.schemas import TOPIC_PARTITION

#: A record that is this much older than the checkpoints was written when they would have listed the partition: brokers write them
#: every five seconds (`replica.high.watermark.checkpoint.interval.ms`), and clocks may differ.
CHECKPOINTED_WITHIN_MS: Final = 60_000
_SHOWN: Final = 5


def deleted_topic_findings(coordinator_states: DataFrame, coverage: DataFrame, partition_assignments: DataFrame) -> DataFrame:
    """One row per transaction that has not ended: name, topic, partition, offset, producer_id, transactional_id, evidence.

    Topic, partition and offset are those of the id's last record. Kafka: `KafkaApis.handleAddPartitionsToTxn` rejects a partition
    that does not exist, so it existed when it was added; `TransactionMarkerChannelManager` drops it when the transaction ends.
    """
    proven_ms = F.unix_millis("checkpointed_at") - CHECKPOINTED_WITHIN_MS
    by_copies = coverage.where("is_gone").select(*TOPIC_PARTITION, proven_ms.alias("gone_ms"))
    # A topic that was created again has other partitions, even if they have the same names.
    ended = partition_assignments.groupBy(*TOPIC_PARTITION, "topic_id").agg(
        F.bool_or("is_current").alias("exists"), (F.unix_millis(F.max("until")) - CLOCKS_DIFFER_MS).alias("gone_ms")
    )
    by_metadata = ended.where(~F.col("exists")).select(*TOPIC_PARTITION, "gone_ms")
    gone = by_copies.unionByName(by_metadata).groupBy(*TOPIC_PARTITION).agg(F.max("gone_ms").alias("gone_ms"))
    active = last_records(coordinator_states).where(F.col("state").isin([state.kafka_name for state in ACTIVE_STATES]))
    identity = ("transactional_id", "coordinator_partition", "producer_id", "state", "record_offset", "record_ms")
    listed = (
        active.select(*identity, F.inline("partitions"))
        .join(broadcast(gone), on=list(TOPIC_PARTITION), how="inner")
        .where(clock_ms("record_ms") < F.col("gone_ms"))
        .groupBy(*identity)
        .agg(F.sort_array(F.collect_set(F.concat_ws("-", "topic", "partition"))).alias("names"))
    )
    shown = F.array_join(F.slice("names", 1, _SHOWN), ", ")
    more = F.when(F.size("names") > _SHOWN, F.concat(F.lit(" and "), F.size("names") - _SHOWN, F.lit(" more")))
    return listed.select(
        F.lit(Finding.UNKNOWN_TOPIC_OR_PARTITION.name).alias("name"),
        F.lit(TRANSACTION_STATE_TOPIC).alias("topic"),
        F.col("coordinator_partition").alias("partition"),
        F.col("record_offset").alias("offset"),
        "producer_id",
        "transactional_id",
        F.concat("state", F.lit(" with "), shown, F.coalesce(more, F.lit(""))).alias("evidence"),
    )
