"""What did the coordinators write, once? The copies of each `__transaction_state` partition as one log.

Copies of one partition hold the same records at the same offsets, but each was compacted on its own and captured at its
own time, so together they know more than any one of them. Where two differ at an offset, the higher leader epoch is the
history that survived.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.spark import windows


def coordinator_log(transaction_log: DataFrame) -> DataFrame:
    """The records of `transaction_log`, each offset of a partition once.

    Rows without an offset are a console consumer's that nobody needs (`console_copies`).
    """
    ranked = (
        transaction_log.where(F.col("offset").isNotNull())
        .withColumns(
            {
                "negative_coordinator_epoch": -F.coalesce("coordinator_epoch", F.lit(-1)),
                "lacks_start": F.col("start_ms").isNull(),
            }
        )
        .withColumn("rank", F.row_number().over(windows.copies_of_record()))
    )
    return ranked.where("rank = 1").select(*transaction_log.columns)
