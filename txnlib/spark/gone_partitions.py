"""Partitions that no longer exist, and transactions that still list one."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.finding import Finding
from txnlib.core.sentinels import TRANSACTION_STATE_TOPIC
from txnlib.core.transaction_state import ACTIVE_STATES
from txnlib.spark.instants import clock_ms, instant
from txnlib.spark.schemas import TOPIC_PARTITION
from txnlib.spark.transactional_ids import last_records

#: A record so much older than the checkpoints was written while they would have listed the partition: brokers write them every
#: five seconds (`replica.high.watermark.checkpoint.interval.ms`), and their clocks may differ.
CHECKPOINTED_WITHIN_MS: Final = 60_000
_SHOWN: Final = 5


def with_gone(missing: DataFrame, listed: DataFrame, partition_notes: DataFrame, instants: DataFrame) -> DataFrame:
    """`missing` with `is_gone`, and the instant of the proof as `checkpointed_at`; both NULL where nothing is proven.

    A broker's checkpoint of high watermarks lists all that it holds (`listed`: topic, partition, broker), and capture.json names
    the replicas (`partition_notes`). Where both name the same ones, both are whole: no broker and no log directory was left out
    of the capture, and a topic in neither is on no broker. Partitions are never deleted but with their topic.
    """
    noted = partition_notes.select(*TOPIC_PARTITION, F.explode(F.col("replicas").cast("array<string>")).alias("broker"))
    replica = [*TOPIC_PARTITION, "broker"]
    both = listed.withColumn("is_listed", F.lit(True)).join(noted.withColumn("is_noted", F.lit(True)), on=replica, how="full")
    agreed = both.agg(F.bool_and(F.col("is_listed").isNotNull() & F.col("is_noted").isNotNull()).alias("is_whole"))
    topics = both.select("topic", F.lit(True).alias("exists")).distinct()
    default = instants.where(F.col("broker").isNull()).select(instant("captured_at_ms").alias("checkpointed_at"))
    told = (
        missing.join(F.broadcast(topics), on="topic", how="left")
        .join(F.broadcast(agreed), how="left")
        .join(F.broadcast(default), how="left")
    )
    is_gone = F.col("is_whole") & F.col("exists").isNull() & (F.col("topic") != TRANSACTION_STATE_TOPIC)
    return told.withColumn("is_gone", F.when(is_gone, F.lit(True))).withColumn(
        "checkpointed_at", F.when(F.col("is_gone"), F.col("checkpointed_at"))
    )


def gone_partition_findings(coordinator_states: DataFrame, coverage: DataFrame) -> DataFrame:
    """One row per transaction that has not ended: name, topic, partition, offset, producer_id, transactional_id, evidence.

    The place is that of the id's last record. Kafka: `KafkaApis.handleAddPartitionsToTxn` lets nobody add a partition that
    does not exist, so it did when it was added; `TransactionMarkerChannelManager` drops it once the transaction ends.
    """
    gone = coverage.where("is_gone").select(*TOPIC_PARTITION, F.unix_millis("checkpointed_at").alias("checkpointed_ms"))
    active = last_records(coordinator_states).where(F.col("state").isin([state.kafka_name for state in ACTIVE_STATES]))
    known = ("transactional_id", "coordinator_partition", "producer_id", "state", "record_offset", "record_ms")
    listed = (
        active.select(*known, F.inline("partitions"))
        .join(F.broadcast(gone), on=list(TOPIC_PARTITION), how="inner")
        .where(clock_ms("record_ms") + CHECKPOINTED_WITHIN_MS < F.col("checkpointed_ms"))
        .groupBy(*known)
        .agg(F.sort_array(F.collect_set(F.concat_ws("-", "topic", "partition"))).alias("names"))
    )
    shown = F.array_join(F.slice("names", 1, _SHOWN), ", ")
    more = F.when(F.size("names") > _SHOWN, F.concat(F.lit(" and "), F.size("names") - _SHOWN, F.lit(" more")))
    return listed.select(
        F.lit(Finding.UNKNOWN_TOPIC_OR_PARTITION.value).alias("name"),
        F.lit(TRANSACTION_STATE_TOPIC).alias("topic"),
        F.col("coordinator_partition").alias("partition"),
        F.col("record_offset").alias("offset"),
        "producer_id",
        "transactional_id",
        F.concat("state", F.lit(" with "), shown, F.coalesce(more, F.lit(""))).alias("evidence"),
    )
