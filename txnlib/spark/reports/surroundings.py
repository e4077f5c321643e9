"""What stands around the start of an open transaction: broker-stamped times, and how much log it holds back."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.readers.header_columns import PAGE
from txnlib.spark import windows
from txnlib.spark.batch_runs import batches_count, first_timestamp_ms, is_divided_at, packed, single_batches
from txnlib.spark.instants import clock_ms
from txnlib.spark.joins import broadcast
from txnlib.spark.offset_buckets import bucket_of
from txnlib.spark.schemas import TOPIC_PARTITION


def surroundings(opened: DataFrame, record_batches: DataFrame) -> DataFrame:
    """The nearest broker-stamped times around each start, and the number of bytes from there on.

    One pass over the batches sums up ranges of offsets (`offset_buckets`), each split at the starts in it; then only few rows are
    sorted. Sorting all batches of a partition would take one task, and most of the time of a report.
    """
    starts = opened.select(*TOPIC_PARTITION, "source", "start_offset", bucket_of("start_offset")).distinct()
    copies = starts.select(*TOPIC_PARTITION, "source").distinct()
    cuts = starts.groupBy(*TOPIC_PARTITION, "bucket").agg(F.sort_array(F.collect_set("start_offset")).alias("cuts"))
    is_marker = F.col("is_control") & F.col("producer_id").isNotNull()
    # The CRC of larger data batches was not checked, so their times prove nothing. Those of a run are all larger, or none is.
    size_of_batch = F.when(batches_count() > 1, packed("size", 0)).otherwise(F.col("size"))
    is_stamped = (F.col("timestamp_type") == "LOG_APPEND_TIME") & (size_of_batch <= PAGE)
    rows = (
        record_batches.join(broadcast(copies), on=[*TOPIC_PARTITION, "source"], how="left_semi")
        .withColumn("bucket", bucket_of("base_offset"))
        .join(broadcast(cuts), on=[*TOPIC_PARTITION, "bucket"], how="left")
    )
    # A run is in one bucket, so no other start can divide it.
    is_divided = F.exists("cuts", lambda cut: is_divided_at(cut))
    pieces = single_batches(rows, is_divided).select(
        *TOPIC_PARTITION,
        "bucket",
        F.coalesce(F.size(F.filter("cuts", lambda cut: cut <= F.col("base_offset"))), F.lit(0)).alias("cut"),
        F.lit(None).cast("long").alias("start_offset"),
        # The times of a run do not fall.
        F.when(is_marker | is_stamped, clock_ms("max_timestamp_ms")).alias("latest_ms"),
        F.when(is_marker | is_stamped, clock_ms(first_timestamp_ms())).alias("earliest_ms"),
        F.col("size").cast("long").alias("size"),
    )
    # The piece that begins at each start. Its batches may be missing.
    begun = cuts.select(*TOPIC_PARTITION, "bucket", F.posexplode("cuts").alias("place", "start_offset")).select(
        *TOPIC_PARTITION,
        "bucket",
        (F.col("place") + 1).alias("cut"),
        "start_offset",
        F.lit(None).cast("long").alias("latest_ms"),
        F.lit(None).cast("long").alias("earliest_ms"),
        F.lit(0).cast("long").alias("size"),
    )
    sums = (
        pieces.unionByName(begun)
        .groupBy(*TOPIC_PARTITION, "bucket", "cut")
        .agg(
            F.max("start_offset").alias("start_offset"),
            F.max("latest_ms").alias("latest_ms"),
            F.min("earliest_ms").alias("earliest_ms"),
            F.sum("size").alias("size"),
        )
    )
    before, from_here = windows.before_now(windows.pieces()), windows.until_now(windows.pieces_downwards())
    around = sums.select(
        *TOPIC_PARTITION,
        "start_offset",
        F.max("latest_ms").over(before).alias("stamped_before_ms"),
        F.min("earliest_ms").over(from_here).alias("stamped_after_ms"),
        F.sum("size").over(from_here).alias("bytes_from_here"),
    )
    return around.where(F.col("start_offset").isNotNull())
