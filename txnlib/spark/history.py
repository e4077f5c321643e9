"""Since when, and in how many audits, has each open transaction been seen?"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.spark.schemas import OPEN_TRANSACTIONS, PRODUCER, conform


def with_history(open_transactions: DataFrame, earlier: DataFrame) -> DataFrame:
    """`open_transactions` with `first_seen` and `runs_seen` counted over `earlier` runs of the same cluster.

    `earlier` is the stored table with its `run_id`, other runs only. Columns: OPEN_TRANSACTIONS.
    """
    identity = [*PRODUCER, "start_offset"]
    seen = earlier.groupBy(*identity).agg(
        F.min("as_of").alias("earliest"), F.count_distinct("run_id").cast("int").alias("earlier_runs")
    )
    joined = open_transactions.join(seen, on=identity, how="left").withColumns(
        {
            "first_seen": F.least("earliest", "first_seen"),
            "runs_seen": F.col("runs_seen") + F.coalesce("earlier_runs", F.lit(0)),
        }
    )
    return conform(joined, OPEN_TRANSACTIONS)
