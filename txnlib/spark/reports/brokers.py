"""`brokers`: the values of each broker's own metrics at the audit's instant."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.kafka.transaction_state import TransactionState
from txnlib.spark.joins import broadcast
from txnlib.spark.schemas import BROKERS, TOPIC_PARTITION, conform


def brokers(coverage: DataFrame, partitions: DataFrame, transactional_ids: DataFrame) -> DataFrame:
    """One row per broker with a copy. Columns: BROKERS.

    Kafka: the gauge `PartitionsWithLateTransactionsCount` of ReplicaManager, over the partitions that the broker leads, and
    KIP-939's `active-transaction-open-time-max` over its coordinators (Ongoing only; prepared transactions are decided).
    """
    # If leaders are not noted, the judged copy counts as the leader's.
    leads = F.coalesce(F.col("is_leader"), F.col("is_judged"))
    copies = coverage.where(F.col("broker").isNotNull() & (F.col("status") != "MISSING"))
    # There may be several copies of a partition from one broker: coordinators before and after the others, or a text as well.
    held = copies.groupBy("broker", *TOPIC_PARTITION).agg(
        F.bool_or(leads).alias("leads"), F.bool_or(F.col("is_leader").isNull()).alias("is_assumed")
    )
    late = partitions.select("as_of", *TOPIC_PARTITION, "is_late")
    open_ms = F.unix_millis("as_of") - F.unix_millis("transaction_start")
    ongoing = transactional_ids.where(F.col("state") == TransactionState.ONGOING.kafka_name)
    opened = (
        ongoing.join(broadcast(partitions.select("as_of").limit(1)))
        .groupBy(F.col("coordinator_partition").alias("partition"))
        .agg(F.greatest(F.max(open_ms), F.lit(0)).alias("open_ms"))
    )
    coordinators = opened.withColumn("topic", F.lit(TRANSACTION_STATE_TOPIC))
    counted = (
        held.join(broadcast(late), on=list(TOPIC_PARTITION), how="left")
        .join(broadcast(coordinators), on=list(TOPIC_PARTITION), how="left")
        .groupBy("broker")
        .agg(
            F.max("as_of").alias("as_of"),
            F.bool_or("is_assumed").alias("is_leadership_assumed"),
            F.count("*").alias("replicas"),
            F.count_if("leads").alias("partitions_led"),
            F.count_if(F.col("leads") & F.coalesce("is_late", F.lit(False))).alias("partitions_with_late_transactions"),
            F.count_if(F.col("leads") & (F.col("topic") == TRANSACTION_STATE_TOPIC)).alias("coordinators_led"),
            F.max(F.when(F.col("leads"), F.col("open_ms"))).alias("active_transaction_open_time_max_ms"),
        )
    )
    return conform(counted, BROKERS)
