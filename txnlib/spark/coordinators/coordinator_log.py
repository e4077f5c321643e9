"""Copies of each `__transaction_state` partition, merged into one log.

Copies of one partition have the same records at the same offsets. But each was compacted and captured at its own time, so together
they contain more than any one of them. Records that a newer leader truncated are left out: those at or above the first offset of a
higher leader epoch. If two copies differ at an offset, the record with the higher leader epoch survived; with the same one, they
are of two logs, and the judged copy's record counts (`findings.copy_findings` says so).
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.spark import windows
from txnlib.spark.coverage import survives
from txnlib.spark.joins import broadcast
from txnlib.spark.local_rows import no_rows

#: The judged copies of coordinator partitions that are current and show all records: their partition, source and end.
CURRENT_COPIES: Final = "partition int, current string, copy_end long"


def coordinator_log(transaction_log: DataFrame, coverage: DataFrame, current_copies: DataFrame | None = None) -> DataFrame:
    """The records of `transaction_log`, each offset of a partition once, with the column is_superseded.

    is_superseded: the current copy of the partition extends beyond the record but does not have it. Compaction keeps the newest
    record of an id until the id expires, so such a record is not the newest of its id, or the id has expired. Rows without an
    offset are unused records of console text (`console_copies`). `current_copies` (CURRENT_COPIES): None if there are none.
    Kafka: `LogCleaner`.
    """
    copies = coverage.where(F.col("topic") == TRANSACTION_STATE_TOPIC)
    cut = copies.select("partition", "source", "truncated", "is_deleted", (~F.col("is_judged")).alias("is_other"))
    current = no_rows(coverage.sparkSession, CURRENT_COPIES) if current_copies is None else current_copies
    located = transaction_log.join(broadcast(cut), on=["partition", "source"], how="left").join(
        broadcast(current), on="partition", how="left"
    )
    existing = located.where(~F.coalesce("is_deleted", F.lit(False)))
    history = existing.withColumns({"leader_epoch": F.col("coordinator_epoch"), "at_offset": F.col("offset")}).where(survives())
    ranked = (
        history.where(F.col("offset").isNotNull())
        .withColumn("lacks_start", F.col("start_ms").isNull())
        .withColumns(
            {
                "rank": F.row_number().over(windows.copies_of_record()),
                "is_held": F.max(F.col("source") == F.col("current")).over(windows.whole(windows.copies_of_record())),
            }
        )
    )
    is_superseded = F.coalesce(~F.col("is_held") & (F.col("offset") < F.col("copy_end")), F.lit(False))
    return ranked.where("rank = 1").select(*transaction_log.columns, is_superseded.alias("is_superseded"))
