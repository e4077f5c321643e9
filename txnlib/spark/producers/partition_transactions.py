"""`partition_transactions`: the transactions on each partition, and how they ended."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.spark.instants import instant
from txnlib.spark.producers.producer_spans import newest_spans
from txnlib.spark.schemas import PARTITION_TRANSACTIONS, PRODUCER, conform


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
