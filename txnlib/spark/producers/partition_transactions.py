"""`partition_transactions`: the transactions on each partition, and how they ended."""

from __future__ import annotations

from pyspark.sql import DataFrame

from txnlib.core.sql_text import IS_NEWEST, instant
from txnlib.spark.joins import select
from txnlib.spark.schemas import TABLES, conform


def partition_transactions(producer_spans: DataFrame) -> DataFrame:
    """One row per transaction on a partition, and how it ended. Columns: PARTITION_TRANSACTIONS.

    Markers that ended nothing are no transactions (2.8 and later). Kafka: `ProducerAppendInfo.appendEndTxnMarker`.
    """
    text = f"""
    SELECT *, if(marker_offset IS NULL, 'OPEN', marker_type) AS outcome, marker_coordinator_epoch AS coordinator_epoch,
      {instant("marker_ms")} AS completed, {instant("first_timestamp_ms")} AS first_timestamp,
      {instant("last_timestamp_ms")} AS last_timestamp
    FROM {{spans}} WHERE first_offset IS NOT NULL AND (marker_offset IS NOT NULL OR ({IS_NEWEST}))
    """
    return conform(select(text, spans=producer_spans), TABLES["partition_transactions"])
