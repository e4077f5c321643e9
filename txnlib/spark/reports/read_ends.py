"""The last record that consumers receive below an offset. The rules are in `core.reports.blocked_groups`."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.spark.batch_runs import is_divided_at, single_batches
from txnlib.spark.joins import broadcast
from txnlib.spark.schemas import COPY, PRODUCER, TOPIC_PARTITION


def read_ends(ends: DataFrame, producer_spans: DataFrame, record_batches: DataFrame) -> DataFrame:
    """The offset after the last record that consumers receive. Columns: topic, partition, read_end.

    `ends`: topic, partition, source, last_stable_offset. For a committed transaction that ends below that offset, its span has the
    last record. For one that extends beyond it, its batches are read; each producer has at most one. A marker whose type is not
    printed may be a COMMIT.
    """
    stable = F.col("last_stable_offset")
    committed = (
        producer_spans.where(F.col("marker_offset").isNotNull() & (F.coalesce("marker_type", F.lit("")) != "ABORT"))
        .join(broadcast(ends.drop("source")), on=list(TOPIC_PARTITION), how="inner")
        .where(F.col("first_offset") < stable)
    )
    is_within = F.col("last_offset") < stable
    beyond = committed.where(~is_within).select(*PRODUCER, F.col("first_offset").alias("begins_at"))
    is_readable = ~F.coalesce("is_transactional", F.lit(False)) | (F.col("base_offset") >= F.col("begins_at"))
    data = (
        record_batches.where(~F.col("is_control") & (F.coalesce("records_count", F.lit(1)) > 0))
        .join(broadcast(ends), on=list(COPY), how="inner")
        .join(broadcast(beyond), on=list(PRODUCER), how="left")
        .where(F.col("base_offset") < stable)
    )
    is_divided = is_divided_at(stable) | F.coalesce(is_divided_at(F.col("begins_at")), F.lit(False))
    data = single_batches(data, is_divided).where((F.col("base_offset") < stable) & is_readable)
    lasts = (
        committed.where(is_within).select(*TOPIC_PARTITION, "last_offset").unionByName(data.select(*TOPIC_PARTITION, "last_offset"))
    )
    return lasts.groupBy(*TOPIC_PARTITION).agg((F.max("last_offset") + 1).alias("read_end"))
