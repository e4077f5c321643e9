"""Which transactions did each transactional id begin, and how did they end, by its coordinator?"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.transaction_state import ACTIVE_STATES, COMPLETE_STATES, PREPARED_STATES
from txnlib.spark.schemas import TRANSACTIONS, conform


def transactions(coordinator_states: DataFrame) -> DataFrame:
    """One row per transaction of a transactional id, from what survived of its records. Columns: TRANSACTIONS.

    Identity is (id, first record): in transactions v0 and v1 many transactions share an epoch. A Complete record's update
    time is when its Prepare was acknowledged, so `completed` is the append time of the record (semantics.md 1.4).
    """
    records = coordinator_states.where(F.col("transaction_number").isNotNull())
    active = F.col("state").isin([s.kafka_name for s in ACTIVE_STATES])
    prepared = F.col("state").isin([s.kafka_name for s in PREPARED_STATES])
    completed = F.col("state").isin([s.kafka_name for s in COMPLETE_STATES])
    last = F.max_by("state", "offset")
    outcome = F.when(F.col("state").endswith("Commit"), "COMMIT").when(F.col("state").endswith("Abort"), "ABORT").otherwise("OPEN")
    found = (
        records.groupBy("transactional_id", "coordinator_partition", "transaction_number")
        .agg(
            F.min_by("producer_id", "offset").alias("producer_id"),
            F.min_by("producer_epoch", "offset").alias("producer_epoch"),
            last.alias("state"),
            F.timestamp_millis(F.min("start_ms")).alias("start"),
            F.timestamp_millis(F.max(F.when(prepared, F.col("timestamp_ms")))).alias("prepared"),
            F.timestamp_millis(F.max(F.when(completed, F.col("timestamp_ms")))).alias("completed"),
            F.max_by("partitions", F.when(active, F.col("offset"))).alias("partitions"),
            F.max_by("transaction_timeout_ms", "offset").alias("transaction_timeout_ms"),
            F.max("client_transaction_version").alias("transaction_version"),
            F.min("offset").alias("first_record_offset"),
            F.max("offset").alias("last_record_offset"),
        )
        .withColumns({"outcome": outcome, "is_two_phase_commit": F.col("transaction_timeout_ms").isin(2**31 - 1, -1)})
    )
    return conform(found, TRANSACTIONS)
