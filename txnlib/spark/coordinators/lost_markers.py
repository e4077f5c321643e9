"""Markers of completed transactions that are proven to be missing."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.spark.coordinators.transaction_markers import markers_of
from txnlib.spark.coverage import begins_at_snapshot
from txnlib.spark.joins import broadcast
from txnlib.spark.local_rows import settled
from txnlib.spark.schemas import TOPIC_PARTITION

_TRANSACTION: Final = ("transactional_id", "coordinator_partition", "transaction_number", "producer_id", "outcome", "completed")


def lost_markers(transactions: DataFrame, producer_spans: DataFrame, coverage: DataFrame) -> DataFrame:
    """Partitions of completed transactions without a marker, if the marker could not have been overlooked.

    Columns: transactional_id, coordinator_partition, transaction_number, producer_id, outcome, completed, topic, partition.
    """
    unmarked = settled(
        transactions.where(F.col("completed").isNotNull() & F.col("start").isNotNull())
        .select(*_TRANSACTION, "start", F.inline("markers"))
        .where(F.col("marker_offset").isNull() & ~F.col("is_followed"))
    )
    # Copies in which holes, damage, a snapshot, or the instant of the copy hide nothing.
    whole = coverage.where(
        F.col("is_judged")
        & F.col("gap_offset").isNull()
        & F.col("damaged_offset").isNull()
        & F.col("is_decoded")
        & ~begins_at_snapshot()
        & (F.col("log_start_offset") == 0)
    ).select(*TOPIC_PARTITION, F.unix_millis("known_until").alias("known_until_ms"))
    stamps = markers_of(producer_spans).groupBy(*TOPIC_PARTITION).agg(F.min("at_ms").alias("oldest_ms"))
    return (
        unmarked.join(broadcast(whole), on=list(TOPIC_PARTITION), how="inner")
        .where(F.col("known_until_ms") > F.unix_millis("completed") + F.col("clocks_differ_ms"))
        .join(stamps, on=list(TOPIC_PARTITION), how="inner")
        # If the oldest marker of the log is younger, the topic may have been deleted and created again.
        .where(F.col("oldest_ms") < F.unix_millis("start"))
        .select(*_TRANSACTION, *TOPIC_PARTITION)
    )
