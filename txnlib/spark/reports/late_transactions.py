"""`late_transactions`: open transactions that their coordinator should have ended by now."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.verdicts.reason import Verdict
from txnlib.spark.schemas import LATE_TRANSACTIONS, conform


def late_transactions(open_transactions: DataFrame) -> DataFrame:
    """The open transactions whose verdict is LATE. Columns: LATE_TRANSACTIONS."""
    return conform(open_transactions.where(F.col("verdict") == Verdict.LATE.value), LATE_TRANSACTIONS)
