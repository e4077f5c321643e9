"""Rows about undecided transactions. The rules are in `core.reports.in_doubt_transactions`."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.spark.joins import broadcast


def last_records(records: DataFrame, transaction_log: DataFrame) -> DataFrame:
    """The copies of some records. `records`: transactional_id, coordinator_partition, last_record_offset."""
    written = transaction_log.where(F.col("topic") == TRANSACTION_STATE_TOPIC).select(
        "transactional_id",
        F.col("partition").alias("coordinator_partition"),
        F.col("offset").alias("last_record_offset"),
        "next_producer_id",
        "next_producer_epoch",
        "last_update_ms",
    )
    return written.join(broadcast(records), on=records.columns, how="left_semi")


def held_data(transactions: DataFrame, transaction_outcomes: DataFrame) -> DataFrame:
    """Records and bytes of some transactions on all their partitions. Columns: those of `transactions`, records, bytes."""
    written = transaction_outcomes.join(broadcast(transactions), on=transactions.columns, how="left_semi")
    return written.groupBy(*transactions.columns).agg(F.sum("records").alias("records"), F.sum("bytes").alias("bytes"))
