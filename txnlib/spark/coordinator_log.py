"""The copies of each `__transaction_state` partition as one log.

Copies of one partition hold the same records at the same offsets, but each was compacted on its own and captured at its
own time, so together they know more than any one of them. What a newer leader truncated is no history: what follows a higher
leader epoch at a lower offset is left out, and where two differ at an offset, the higher leader epoch survived (DESIGN.md 5.3,
rule 2).
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.sentinels import TRANSACTION_STATE_TOPIC
from txnlib.spark import windows
from txnlib.spark.coverage import survives


def coordinator_log(transaction_log: DataFrame, coverage: DataFrame) -> DataFrame:
    """The records of `transaction_log`, each offset of a partition once.

    Rows without an offset are a console consumer's that nobody needs (`console_copies`).
    """
    cut = coverage.where((F.col("topic") == TRANSACTION_STATE_TOPIC) & F.col("truncated").isNotNull())
    told = transaction_log.join(F.broadcast(cut.select("partition", "source", "truncated")), on=["partition", "source"], how="left")
    history = told.withColumns({"leader_epoch": F.col("coordinator_epoch"), "at_offset": F.col("offset")}).where(survives())
    ranked = (
        history.where(F.col("offset").isNotNull())
        .withColumns(
            {
                "negative_coordinator_epoch": -F.coalesce("coordinator_epoch", F.lit(-1)),
                "lacks_start": F.col("start_ms").isNull(),
            }
        )
        .withColumn("rank", F.row_number().over(windows.copies_of_record()))
    )
    return ranked.where("rank = 1").select(*transaction_log.columns)
