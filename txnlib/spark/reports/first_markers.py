"""The markers that ended transactions. The rules are in `core.reports.ended_transactions`."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.spark.joins import broadcast
from txnlib.spark.schemas import OPEN_TRANSACTION, PRODUCER


def first_markers(opened: DataFrame, producer_spans: DataFrame) -> DataFrame:
    """The first marker of its producer after the start of each transaction.

    `opened`: OPEN_TRANSACTION. Columns: those, marker_offset, marker_type, marker_ms.
    """
    spans = producer_spans.where(F.col("marker_offset").isNotNull()).select(*PRODUCER, "marker_offset", "marker_type", "marker_ms")
    return (
        spans.join(broadcast(opened), on=list(PRODUCER), how="inner")
        .where(F.col("marker_offset") > F.col("start_offset"))
        .groupBy(*OPEN_TRANSACTION)
        .agg(F.min(F.struct("marker_offset", "marker_type", "marker_ms")).alias("marker"))
        .select(*OPEN_TRANSACTION, "marker.*")
    )


def decided_markers(markers: DataFrame, transactions: DataFrame) -> DataFrame:
    """Those of some markers that a decision explains. Columns: PRODUCER, marker_offset."""
    columns = [*PRODUCER, "marker_offset"]
    decided = transactions.select("producer_id", F.inline("markers")).select(*columns)
    return decided.join(broadcast(markers), on=columns, how="left_semi")
