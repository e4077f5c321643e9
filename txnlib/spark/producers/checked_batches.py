"""`checked_batches`: CRC checks of odd batches and of evidence for verdicts.

For batches above a page, the readers read only the headers (docs/decisions/0001). So one flipped bit could invent an orphaned
transaction, or hide one. Before a transaction may be reported as hanging, its first and last batch, and the producer's batch before
them, are read again completely. So is each batch that does not fit what its producer wrote before. These are few rows at known
positions. Source: docs/rules/abort.md#open-now; Kafka: `DefaultRecordBatch.isValid`.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.readers.header_columns import PAGE
from txnlib.spark.batch_runs import batch_at, batches_count, is_divided_at, last_batch_offset, single_batches
from txnlib.spark.core_udfs import is_batch_valid
from txnlib.spark.coverage import paths_of_segments
from txnlib.spark.joins import broadcast, bucket_of
from txnlib.spark.local_rows import local_relation, relaxed
from txnlib.spark.producers.producer_spans import newest_spans, open_spans
from txnlib.spark.schemas import CHECKED_BATCHES, COPY, PRODUCER, TOPIC_PARTITION, conform

#: Maximum number of odd batches to check. A log has none, or is in a state where more checks would show nothing new.
ODD_CHECKED: Final = 1_000


def checked_batches(record_batches: DataFrame, producer_spans: DataFrame, coverage: DataFrame, segments: DataFrame) -> DataFrame:
    """One row per batch and transaction that depends on it. Columns: CHECKED_BATCHES."""
    judged = broadcast(coverage.where("is_judged").select(*COPY))
    opened = open_spans(producer_spans).select(*PRODUCER, F.col("first_offset").alias("start_offset"))
    opened = opened.join(judged, on=list(TOPIC_PARTITION), how="inner")
    own = record_batches.join(broadcast(opened), on=[*COPY, "producer_id"], how="inner").where(~F.col("is_control"))
    own = _ends_of_runs(single_batches(own, is_divided_at(F.col("start_offset"))))
    batch = F.struct(*_BATCH)
    is_before = F.col("base_offset") < F.col("start_offset")
    of_transactions = own.groupBy(*COPY, "producer_id", "start_offset").agg(
        F.max(F.when(is_before, batch)).alias("before"),
        F.min(F.when(~is_before, batch)).alias("first"),
        F.max(F.when(~is_before, batch)).alias("last"),
    )
    rows = [F.struct(F.lit(what).alias("place"), F.col(what).alias("batch")) for what in ("before", "first", "last")]
    each = (
        of_transactions.select(*COPY, "producer_id", "start_offset", F.explode(F.array(*rows)).alias("row"))
        .select(*COPY, "producer_id", "start_offset", "row.place", "row.batch.*")
        .where(F.col("base_offset").isNotNull())
    )
    # Gathered, because there are hardly ever any: then Spark need not look for them among all batches.
    found = relaxed(_odd_batches(producer_spans))
    odd = local_relation(found.sparkSession, found.toArrow(), found.schema).join(judged, on=list(TOPIC_PARTITION), how="inner")
    # Of a run, the size is that of all its batches, so that it may have one above a page.
    unchecked = record_batches.where(F.col("source").startswith("raw:") & (F.col("size") > PAGE) & ~F.col("is_control"))
    is_within = F.col("odd_offset").between(F.col("base_offset"), last_batch_offset())
    wanted = odd.select(*COPY, "producer_id", F.col("base_offset").alias("odd_offset"), bucket_of("base_offset"))
    around = unchecked.select("*", bucket_of("base_offset")).join(
        broadcast(wanted), on=[*COPY, "producer_id", "bucket"], how="inner"
    )
    exactly = single_batches(around.where(is_within), F.lit(True)).where(
        (F.col("base_offset") == F.col("odd_offset")) & (F.col("size") > PAGE)
    )
    other = exactly.select(
        *COPY, "producer_id", F.lit(None).cast("long").alias("start_offset"), F.lit("odd").alias("place"), *_BATCH
    )
    paths = paths_of_segments(segments)
    located = each.unionByName(other).join(paths, on=[*COPY, "segment_base_offset"], how="left")
    return conform(located.withColumn("is_crc_valid", _is_valid()), CHECKED_BATCHES)


def _ends_of_runs(rows: DataFrame) -> DataFrame:
    """The first and the last batch of each row. The lowest and the highest of some batches are among them."""
    count = batches_count()
    ends = rows.withColumn("end", F.explode(F.when(count > 1, F.array(F.lit(0), count - 1)).otherwise(F.array(F.lit(0)))))
    return batch_at(ends, F.col("end"))


_BATCH: Final = (
    "base_offset",
    "last_offset",
    "position",
    "size",
    "segment_base_offset",
    "producer_epoch",
    "base_sequence",
    "last_sequence",
    "partition_leader_epoch",
    "crc",
)


def _is_valid() -> Column:
    """Whether the CRC matches. NULL if there are no bytes to check: for text, and for files that no longer exist."""
    is_raw = F.col("kind") == "raw"
    was_checked = is_raw & (F.col("size") <= PAGE)
    again = is_batch_valid()(F.when(is_raw & ~was_checked, F.col("path")), F.col("position"), F.col("size"))
    return F.when(was_checked, F.lit(True)).otherwise(again)


def _odd_batches(producer_spans: DataFrame) -> DataFrame:
    """PRODUCER and base_offset of the batches that do not fit the producer's state.

    Each comes with the batch that left that state. Also the last batch of each producer that wrote outside of transactions after a
    marker, as no client does.
    """
    before, batch = F.col("suspect.before"), F.col("suspect.batch")
    suspects = producer_spans.where(F.col("suspect").isNotNull()).select(
        *PRODUCER, F.explode(F.array(batch["base_offset"], _base_offset(before))).alias("base_offset")
    )
    newest = newest_spans(producer_spans)
    is_outside = (F.col("span") > 0) & F.col("first_offset").isNull() & F.col("marker_offset").isNull()
    outside = newest.where(is_outside).select(*PRODUCER, _base_offset(F.col("state")).alias("base_offset"))
    return suspects.unionByName(outside).distinct().orderBy(*PRODUCER, "base_offset").limit(ODD_CHECKED)


def _base_offset(state: Column) -> Column:
    """Base offset of a producer's last batch, from its state."""
    return state["last_offset"] - state["offset_delta"]
