"""`hanging_transactions`: open transactions that no coordinator will end."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.verdicts.reason import Verdict
from txnlib.spark.schemas import HANGING_TRANSACTIONS, conform


def hanging_transactions(open_transactions: DataFrame) -> DataFrame:
    """The open transactions whose verdict is HANGING. Columns: HANGING_TRANSACTIONS."""
    return conform(open_transactions.where(F.col("verdict") == Verdict.HANGING.value), HANGING_TRANSACTIONS)
