"""Whole transactions that hold some partition. The rules are in `core.reports.abort_plan`."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.spark.joins import broadcast
from txnlib.spark.schemas import PRODUCER


def whole_transactions(ids: DataFrame, transaction_outcomes: DataFrame) -> DataFrame:
    """The transactions of ids that hold some partition. Columns: those of `core.verdicts.abort_plan.WholeTransaction`."""
    is_held = F.col("outcome") == "OPEN"
    return (
        transaction_outcomes.where(F.col("transaction_number").isNotNull())
        .join(broadcast(ids), on="transactional_id", how="left_semi")
        .groupBy("transactional_id", "coordinator_partition", "transaction_number")
        .agg(
            F.count_if(is_held).alias("held_partitions"),
            F.sum(F.when(is_held, F.col("records"))).alias("held_records"),
            F.count_if(F.col("outcome") == "COMMIT").alias("committed_partitions"),
            F.count_if(F.col("outcome") == "ABORT").alias("aborted_partitions"),
            F.collect_list(F.when(is_held, F.struct(*PRODUCER))).alias("held"),
        )
        .where(F.col("held_partitions") > 0)
    )
