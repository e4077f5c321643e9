"""From when to when a row of the metadata tables applies."""

from __future__ import annotations

from pyspark.sql import DataFrame, WindowSpec
from pyspark.sql import functions as F

from txnlib.spark.instants import instant


def since(states: DataFrame) -> DataFrame:
    """The states with `since_offset` and `since_ms`. A snapshot does not show when its state began."""
    is_dated = ~F.col("is_in_snapshot")
    return states.withColumns(
        {"since_offset": F.when(is_dated, F.col("at_offset")), "since_ms": F.when(is_dated, F.col("timestamp_ms"))}
    )


def until(states: DataFrame, ordered: WindowSpec, removed_offset: str | None = None, removed_ms: str | None = None) -> DataFrame:
    """The states with the columns `since` to `is_current`. Each ends with the next one, or where its subject was removed.

    `ordered`: the states of one subject. `removed_offset`, `removed_ms`: columns with the removal.
    """
    next_offset, next_ms = F.lead("at_offset").over(ordered), F.lead("since_ms").over(ordered)
    if removed_offset is not None and removed_ms is not None:
        is_last = next_offset.isNull()
        next_ms = F.when(is_last, F.col(removed_ms)).otherwise(next_ms)
        next_offset = F.coalesce(next_offset, F.col(removed_offset))
    return states.withColumns({"until_offset": next_offset, "until": instant(next_ms), "since": instant("since_ms")}).withColumn(
        "is_current", F.col("until_offset").isNull()
    )
