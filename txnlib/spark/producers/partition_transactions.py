"""`partition_transactions`: the transactions on each partition, and how they ended."""

from __future__ import annotations

from pyspark.sql import DataFrame

from txnlib.spark.instants import instant
from txnlib.spark.joins import select
from txnlib.spark.producers.producer_spans import IS_NEWEST
from txnlib.spark.schemas import TABLES, conform


def partition_transactions(producer_spans: DataFrame) -> DataFrame:
    """One row per transaction on a partition, and how it ended. Columns: PARTITION_TRANSACTIONS.

    Markers that ended nothing are no transactions (2.8 and later). Kafka: `ProducerAppendInfo.appendEndTxnMarker`.
    """
    # A separate part, written by its own tasks: an incremental run carries over files in which every transaction has
    # ended.
    ended = producer_spans.where("marker_offset IS NOT NULL")
    rows = ended.unionByName(producer_spans.where(f"{IS_NEWEST} AND marker_offset IS NULL"))
    text = f"""
    SELECT *, if(marker_offset IS NULL, 'OPEN', marker_type) AS outcome, marker_coordinator_epoch AS coordinator_epoch,
      {instant("marker_ms")} AS completed, {instant("first_timestamp_ms")} AS first_timestamp,
      {instant("last_timestamp_ms")} AS last_timestamp
    FROM {{rows}} WHERE first_offset IS NOT NULL
    """
    return conform(select(text, rows=rows), TABLES["partition_transactions"])
