"""Partitions whose topic was deleted."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.spark.instants import instant
from txnlib.spark.joins import broadcast
from txnlib.spark.schemas import TOPIC_PARTITION


def with_gone(missing: DataFrame, listed: DataFrame, partition_notes: DataFrame, instants: DataFrame) -> DataFrame:
    """`missing` with the column `is_gone`, and with the instant of the proof as `checkpointed_at`; both NULL without a proof.

    A broker's checkpoint of high watermarks lists all its partitions (`listed`: topic, partition, broker), and capture.json lists
    the replicas (`partition_notes`). If both list the same replicas, both are complete: no broker and no log directory is missing
    in the capture, and a topic in neither list is on no broker. Partitions are only deleted together with their topic.
    """
    noted = partition_notes.select(*TOPIC_PARTITION, F.explode(F.col("replicas").cast("array<string>")).alias("broker"))
    replica = [*TOPIC_PARTITION, "broker"]
    both = listed.withColumn("is_listed", F.lit(True)).join(noted.withColumn("is_noted", F.lit(True)), on=replica, how="full")
    agreed = both.agg(F.bool_and(F.col("is_listed").isNotNull() & F.col("is_noted").isNotNull()).alias("is_whole"))
    topics = both.select("topic", F.lit(True).alias("exists")).distinct()
    default = instants.where(F.col("broker").isNull()).select(instant("captured_at_ms").alias("checkpointed_at"))
    joined = (
        missing.join(broadcast(topics), on="topic", how="left")
        .join(broadcast(agreed), how="left")
        .join(broadcast(default), how="left")
    )
    is_gone = F.col("is_whole") & F.col("exists").isNull() & (F.col("topic") != TRANSACTION_STATE_TOPIC)
    return joined.withColumn("is_gone", F.when(is_gone, F.lit(True))).withColumn(
        "checkpointed_at", F.when(F.col("is_gone"), F.col("checkpointed_at"))
    )
