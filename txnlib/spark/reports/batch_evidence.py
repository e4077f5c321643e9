"""What batches around open transactions show: times of brokers, bytes, and truncated markers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.copies import CoverageRow
from txnlib.core.verdicts.dossier import EpochStamps, TruncatedMarker
from txnlib.readers.header_columns import PAGE
from txnlib.readers.typed_rows import plain
from txnlib.spark import windows
from txnlib.spark.batch_runs import batches_count, first_timestamp_ms, is_divided_at, packed, single_batches
from txnlib.spark.core_rows import struct
from txnlib.spark.coverage import survives
from txnlib.spark.instants import clock_ms
from txnlib.spark.joins import block_of, broadcast, bucket_of, first_block
from txnlib.spark.local_rows import local_rows, settled
from txnlib.spark.schemas import COPY, OPEN_TRANSACTION, PRODUCER, TOPIC_PARTITION, TRUNCATED

#: The columns that name a copy.
COPY_DDL: Final = "topic string, partition int, source string"
_SPAN: Final = list(OPEN_TRANSACTION)


def stamps_around(located: DataFrame, record_batches: DataFrame, *, is_small: bool = True) -> DataFrame:
    """Broker-stamped times around the first and the last batch of each span, and the bytes from the first to the high watermark.

    One pass over the batches sums up ranges of offsets, each split at these batches; then only few rows are sorted. Sorting all
    batches of a partition would take one task, and most of the time of a report. A range with points is a block, which has few of
    them however many the partition has; any other is a bucket.
    """
    ends = F.array("start_offset", F.coalesce("last_offset", "start_offset") + 1)
    points = located.select(*COPY, F.explode(ends).alias("at")).distinct().select("*", bucket_of("at"))
    copies = located.select(*COPY, "high_watermark").distinct()
    around = _around_points(points, copies, record_batches, is_small=is_small)
    stamps = ("leader_epoch", "before_ms", "behind_ms")
    first = around.select(*TOPIC_PARTITION, F.col("at").alias("start_offset"), *stamps, "bytes")
    last = around.select(
        *TOPIC_PARTITION,
        F.col("at").alias("behind_last"),
        "leader_epoch",
        F.col("before_ms").alias("before_last_ms"),
        F.col("behind_ms").alias("behind_last_ms"),
    )
    spans = located.select(*_SPAN, (F.coalesce("last_offset", "start_offset") + 1).alias("behind_last"))
    joined = spans.join(broadcast(first, is_small=is_small), on=[*TOPIC_PARTITION, "start_offset"]).join(
        broadcast(last, is_small=is_small), on=[*TOPIC_PARTITION, "behind_last", "leader_epoch"]
    )
    fields = {"leader_epoch": "nullif(leader_epoch, -1)"}
    return joined.groupBy(*_SPAN).agg(
        F.collect_list(struct(EpochStamps, fields)).alias("stamps"), F.sum("bytes").alias("bytes_from_here")
    )


def _around_points(points: DataFrame, copies: DataFrame, record_batches: DataFrame, *, is_small: bool) -> DataFrame:
    """For each point of a log and each leader epoch: the newest stamp before, the oldest behind, and the bytes from there."""
    near = points.select(*TOPIC_PARTITION, "bucket").distinct().withColumn("is_near", F.lit(True))
    cuts = points.groupBy(*TOPIC_PARTITION, block_of("at")).agg(F.sort_array(F.collect_set("at")).alias("cuts"))
    is_marker = F.col("is_control") & F.col("producer_id").isNotNull()
    # The CRC of larger data batches was not checked, so their times prove nothing. Those of a run are all larger, or none is.
    size_of_batch = F.when(batches_count() > 1, packed("size", 0)).otherwise(F.col("size"))
    is_stamped = is_marker | ((F.col("timestamp_type") == "LOG_APPEND_TIME") & (size_of_batch <= PAGE))
    rows = (
        record_batches.join(broadcast(copies, is_small=is_small), on=list(COPY), how="inner")
        .withColumn("bucket", bucket_of("base_offset"))
        .join(broadcast(near, is_small=is_small), on=[*TOPIC_PARTITION, "bucket"], how="left")
    )
    # A run is in one bucket, so no other point can divide it. Where no point is, a bucket needs no blocks.
    single = single_batches(rows, F.col("is_near") | is_divided_at(F.col("high_watermark"))).withColumn(
        "block", F.when(F.col("is_near"), block_of("base_offset")).otherwise(first_block())
    )
    pieces = single.join(broadcast(cuts, is_small=is_small), on=[*TOPIC_PARTITION, "block"], how="left").select(
        *TOPIC_PARTITION,
        F.coalesce("partition_leader_epoch", F.lit(-1)).alias("leader_epoch"),
        "block",
        F.coalesce(F.size(F.filter("cuts", lambda cut: cut <= F.col("base_offset"))), F.lit(0)).alias("cut"),
        # The times of a run do not fall.
        F.when(is_stamped, clock_ms("max_timestamp_ms")).alias("latest_ms"),
        F.when(is_stamped, clock_ms(first_timestamp_ms())).alias("earliest_ms"),
        F.expr("CASE WHEN coalesce(base_offset < high_watermark, TRUE) THEN size ELSE 0 END").cast("long").alias("size"),
    )
    key = [*TOPIC_PARTITION, "leader_epoch"]
    sums = settled(
        pieces.groupBy(*key, "block", "cut").agg(
            F.max("latest_ms").alias("latest_ms"), F.min("earliest_ms").alias("earliest_ms"), F.sum("size").alias("size")
        )
    )
    # The piece that begins at each point. Its batches may be missing.
    begun = cuts.select(*TOPIC_PARTITION, "block", F.posexplode("cuts").alias("place", "at")).select(
        *TOPIC_PARTITION, "block", (F.col("place") + 1).alias("cut"), "at"
    )
    epochs = sums.select(*key).distinct()
    empty = begun.join(broadcast(epochs, is_small=is_small), on=list(TOPIC_PARTITION)).withColumn("size", F.lit(0).cast("long"))
    summed = (
        sums.unionByName(empty, allowMissingColumns=True)
        .groupBy(*key, "block", "cut")
        .agg(
            F.max("at").alias("at"),
            F.max("latest_ms").alias("latest_ms"),
            F.min("earliest_ms").alias("earliest_ms"),
            F.sum("size").alias("size"),
        )
    )
    before, from_here = windows.before_now(windows.pieces()), windows.until_now(windows.pieces_downwards())
    return summed.select(
        *key,
        "at",
        F.max("latest_ms").over(before).alias("before_ms"),
        F.min("earliest_ms").over(from_here).alias("behind_ms"),
        F.sum("size").over(from_here).alias("bytes"),
    ).where(F.col("at").isNotNull())


def truncated_markers(opened: DataFrame, record_batches: DataFrame, copies: Sequence[CoverageRow], *, is_small: bool) -> DataFrame:
    """The markers of the producers in what a newer leader truncated, above each start, in any copy. Columns: _SPAN, ..."""
    rows = [
        (copy.topic, copy.partition, copy.source, copy.broker, [plain(each) for each in copy.truncated])
        for copy in copies
        if copy.truncated and not copy.is_deleted
    ]
    cut = local_rows(opened.sparkSession, rows, f"{COPY_DDL}, broker string, truncated {TRUNCATED.simpleString()}")
    markers = record_batches.where(F.col("is_control") & F.col("control_type").isNotNull())
    lost = (
        markers.join(broadcast(cut), on=list(COPY))
        .withColumns({"leader_epoch": F.col("partition_leader_epoch"), "at_offset": F.col("base_offset")})
        .where(~survives())
        .join(broadcast(opened.select(*_SPAN), is_small=is_small), on=list(PRODUCER))
        .where(F.col("base_offset") > F.col("start_offset"))
    )
    fields = {"offset": "base_offset", "type": "control_type", "epoch": "producer_epoch", "ms": "max_timestamp_ms"}
    return lost.groupBy(*_SPAN).agg(F.sort_array(F.collect_set(struct(TruncatedMarker, fields))).alias("truncated_markers"))
