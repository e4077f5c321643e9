"""What to do about each open transaction, in which order? The core's plan beside the verdicts."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.core.verdict import Reason
from txnlib.spark import windows
from txnlib.spark.decisions import plan
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
)


def needs_somebody(transaction_max_timeout_ms: int) -> Column:
    """Of open transactions: all that are not simply in time, and two-phase commits older than other transactions may become."""
    open_ms = F.unix_millis("as_of") - F.unix_millis(F.coalesce("transaction_start", "blocks_since"))
    is_forgotten = (F.col("reason") == Reason.TWO_PHASE_COMMIT.value) & (open_ms > transaction_max_timeout_ms)
    return (F.col("verdict") != "OPEN") | F.coalesce(is_forgotten, F.lit(False))


def abort_plan(open_transactions: DataFrame, *, transaction_max_timeout_ms: int, kafka_version: str | None) -> DataFrame:
    """One row per open transaction that needs somebody, in order of what to do first. Columns: ABORT_PLAN."""
    needy = open_transactions.where(needs_somebody(transaction_max_timeout_ms))
    version = F.lit(kafka_version).cast("string")
    planned = needy.withColumn("plan", plan()(F.struct(*_NEEDED), version)).where(F.col("plan").isNotNull()).select("*", "plan.*")
    return conform(planned.withColumn("number", F.row_number().over(windows.plan_in_order())), ABORT_PLAN)
