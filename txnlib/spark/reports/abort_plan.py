"""`abort_plan`: the core's plan for each open transaction."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.core.verdicts.reason import Reason
from txnlib.spark import windows
from txnlib.spark.core_udfs import plan
from txnlib.spark.joins import broadcast
from txnlib.spark.schemas import ABORT_PLAN, PRODUCER, conform

_NEEDED = (
    *PRODUCER,
    "producer_epoch",
    "coordinator_epoch",
    "start_offset",
    "transactional_id",
    "verdict",
    "reason",
    "safe_to_abort",
    "kafka_find_hanging",
    "abort_command",
    "do_not_abort_because",
    "coordinator_partition",
    "coordinator_state",
    "records",
    "committed_siblings",
    "held_partitions",
    "held_records",
    "committed_partitions",
    "aborted_partitions",
)


def needs_somebody(transaction_max_timeout_ms: int) -> Column:
    """Whether an open transaction needs an operator.

    True for all that are not simply in time, and for two-phase commits older than the maximum timeout of other transactions.
    """
    open_ms = F.unix_millis("as_of") - F.unix_millis(F.coalesce("transaction_start", "blocks_since"))
    is_forgotten = (F.col("reason") == Reason.TWO_PHASE_COMMIT.value) & (open_ms > transaction_max_timeout_ms)
    return (F.col("verdict") != "OPEN") | F.coalesce(is_forgotten, F.lit(False))


def abort_plan(
    open_transactions: DataFrame, transaction_outcomes: DataFrame, *, transaction_max_timeout_ms: int, kafka_version: str | None
) -> DataFrame:
    """One row per step; steps that unblock consumers come first. Columns: ABORT_PLAN.

    A step that the coordinator takes for all partitions of a transaction at once is one row. On each partition, the open
    transaction with the lowest start offset determines the last stable offset. The others are waiting for it to end.
    """
    holds = F.col("start_offset") == F.min("start_offset").over(windows.whole_partition())
    placed = F.concat(F.concat_ws("-", "topic", "partition"), F.lit(" offset "), F.col("start_offset"))
    needy = open_transactions.withColumns({"is_holder": holds, "place": placed}).where(needs_somebody(transaction_max_timeout_ms))
    needy = needy.join(broadcast(_whole_transactions(transaction_outcomes)), on=["transactional_id", *PRODUCER], how="left")
    version = F.lit(kafka_version).cast("string")
    planned = needy.withColumn("plan", plan()(F.struct(*_NEEDED), version)).where(F.col("plan").isNotNull()).select("*", "plan.*")
    own = F.concat_ws("-", "topic", "partition", "start_offset")
    step = F.when(F.col("is_of_whole_transaction"), F.lit("")).otherwise(own)
    grouped = planned.withColumns({"step": step, "is_waiting": ~F.col("is_holder")})
    whole = windows.step_of_plan()
    first = grouped.withColumns(
        {
            "places": F.sort_array(F.collect_set("place").over(windows.whole(whole))),
            "rank": F.row_number().over(windows.first_of_step(whole)),
        }
    ).where("rank = 1")
    return conform(first.withColumn("number", F.row_number().over(windows.plan_in_order())), ABORT_PLAN)


def _whole_transactions(transaction_outcomes: DataFrame) -> DataFrame:
    """What the whole transaction of each open row of a coordinator holds, and how many of its partitions have their marker."""
    key = ("transactional_id", "coordinator_partition", "transaction_number")
    known = transaction_outcomes.where(F.col("transaction_number").isNotNull())
    is_held = F.col("outcome") == "OPEN"
    whole = known.groupBy(*key).agg(
        F.count_if(is_held).cast("int").alias("held_partitions"),
        F.sum(F.when(is_held, F.col("records"))).alias("held_records"),
        F.count_if(F.col("outcome") == "COMMIT").cast("int").alias("committed_partitions"),
        F.count_if(F.col("outcome") == "ABORT").cast("int").alias("aborted_partitions"),
    )
    counts = ("held_partitions", "held_records", "committed_partitions", "aborted_partitions")
    return (
        known.where(is_held)
        .groupBy("transactional_id", *PRODUCER)
        .agg(F.max_by(F.struct("coordinator_partition", "transaction_number"), "transaction_number").alias("of"))
        .select("transactional_id", *PRODUCER, "of.*")
        .join(whole, on=list(key), how="inner")
        .select("transactional_id", *PRODUCER, *counts)
    )
