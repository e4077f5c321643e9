"""Each producer at the end of a log, and its transactions.

The tables `producer_states` and `partition_transactions`.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.spark.instants import instant
from txnlib.spark.producers.producer_spans import newest_spans
from txnlib.spark.schemas import PARTITION_TRANSACTIONS, PRODUCER, PRODUCER_STATES, conform


def producer_states(producer_spans: DataFrame, *, as_of_ms: int, producer_id_expiration_ms: int) -> DataFrame:
    """One row per producer of a partition that its broker still has in memory. Columns: PRODUCER_STATES.

    A broker removes a producer without an open transaction `producer_id_expiration_ms` after its last write. It never removes one
    with an open transaction. Kafka: `ProducerStateManager.removeExpiredProducers`.
    """
    last = newest_spans(producer_spans)
    is_open = F.col("state.current_txn_first_offset").isNotNull()
    silent_ms = F.try_subtract(F.lit(as_of_ms), F.coalesce("state.last_timestamp", F.lit(-1)))
    # A difference beyond int64 overflows in a broker, so that such a producer is younger than any limit.
    is_fresh = F.coalesce(silent_ms < producer_id_expiration_ms, F.lit(True))
    remembered = last.where(is_open | is_fresh).select(
        *PRODUCER,
        "state.producer_epoch",
        "state.coordinator_epoch",
        "state.last_sequence",
        instant("state.last_timestamp").alias("last_timestamp"),
        F.col("state.last_timestamp").alias("last_timestamp_ms"),
        F.col("state.current_txn_first_offset").alias("current_transaction_start_offset"),
    )
    return conform(remembered, PRODUCER_STATES)


# ---- `partition_transactions`: the transactions on each partition, and how they ended


def partition_transactions(producer_spans: DataFrame) -> DataFrame:
    """One row per transaction on a partition. Columns: PARTITION_TRANSACTIONS.

    Markers that ended nothing are no transactions (2.8 and later). Kafka: `ProducerAppendInfo.appendEndTxnMarker`.
    """
    outcome = F.when(F.col("marker_offset").isNull(), "OPEN").otherwise(F.col("marker_type"))
    # A separate part, written by its own tasks: an incremental run carries over files in which every transaction has ended.
    ended = producer_spans.where(F.col("marker_offset").isNotNull())
    opened = newest_spans(producer_spans).where(F.col("marker_offset").isNull())
    rows = (
        ended.unionByName(opened)
        .where(F.col("first_offset").isNotNull())
        .select(
            *PRODUCER,
            "producer_epoch",
            "first_offset",
            "last_offset",
            "marker_offset",
            outcome.alias("outcome"),
            "marker_epoch",
            F.col("marker_coordinator_epoch").alias("coordinator_epoch"),
            instant("marker_ms").alias("completed"),
            "batches",
            "records",
            "bytes",
            instant("first_timestamp_ms").alias("first_timestamp"),
            instant("last_timestamp_ms").alias("last_timestamp"),
        )
    )
    return conform(rows, PARTITION_TRANSACTIONS)
