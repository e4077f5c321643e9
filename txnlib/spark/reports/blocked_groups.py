"""`blocked_groups`: consumer groups that wait at a last stable offset.

A group waits if it has a commit between two offsets of a partition whose last stable offset (LSO) is below its high watermark:

    readable end <= committed offset <= LSO

The *readable end* is the offset after the last record below the LSO that `read_committed` consumers receive. Between the two there
are only markers, aborted data, and gaps from compaction. A consumer may or may not have passed these when it commits. A group above
the LSO reads uncommitted data and is not blocked; a group below the readable end still has records to read. A group at the LSO
counts whether or not it has a live member, because commits do not show that.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.spark.batch_runs import is_divided_at, single_batches
from txnlib.spark.instants import instant
from txnlib.spark.joins import broadcast
from txnlib.spark.reports.offset_commits import group_offsets
from txnlib.spark.schemas import BLOCKED_GROUPS, COPY, PRODUCER, TOPIC_PARTITION, conform


def blocked_groups(
    committed_offsets: DataFrame,
    producer_spans: DataFrame,
    record_batches: DataFrame,
    coverage: DataFrame,
    partitions: DataFrame,
    *,
    as_of_ms: int,
) -> DataFrame:
    """One row per group and partition where it waits. Columns: BLOCKED_GROUPS."""
    blocked = partitions.where(F.col("last_stable_offset") < F.col("high_watermark"))
    waiting = (
        group_offsets(committed_offsets, producer_spans, coverage)
        .join(broadcast(blocked), on=list(TOPIC_PARTITION), how="inner")
        .where(F.col("committed_offset") <= F.col("last_stable_offset"))
    )
    ends = _readable_ends(blocked, coverage, producer_spans, record_batches)
    return conform(
        waiting.join(broadcast(ends), on=list(TOPIC_PARTITION), how="left")
        .where(F.col("committed_offset") >= F.least("last_stable_offset", F.coalesce("readable_end", "last_stable_offset")))
        .withColumns(
            {
                "as_of": instant(F.lit(as_of_ms)),
                "lag_offsets": F.col("high_watermark") - F.col("committed_offset"),
                "committed_at": instant("commit_timestamp_ms"),
            }
        ),
        BLOCKED_GROUPS,
    )


def _readable_ends(blocked: DataFrame, coverage: DataFrame, producer_spans: DataFrame, record_batches: DataFrame) -> DataFrame:
    """The readable end of each blocked partition. It is never below an offset under which something was not read.

    For a committed transaction that ends below the LSO, its span has the last record. For one that extends beyond the LSO, its
    batches are read; each producer has at most one. A marker whose type is not printed may be a COMMIT.
    """
    # Below the log's start, a snapshot's offset, a hole or damage, there may be, or may have been, records to read.
    unread = F.greatest("log_start_offset", "read_from_offset", "gap_offset", "damaged_offset")
    judged = coverage.where("is_judged").select(*COPY, unread.alias("unread_end"))
    bounds = blocked.select(*TOPIC_PARTITION, "last_stable_offset").join(judged, on=list(TOPIC_PARTITION), how="inner")
    stable = F.col("last_stable_offset")
    committed = (
        producer_spans.where(F.col("marker_offset").isNotNull() & (F.coalesce("marker_type", F.lit("")) != "ABORT"))
        .join(broadcast(bounds), on=list(TOPIC_PARTITION), how="inner")
        .where(F.col("first_offset") < stable)
    )
    is_within = F.col("last_offset") < stable
    beyond = committed.where(~is_within).select(*PRODUCER, F.col("first_offset").alias("begins_at"))
    is_readable = ~F.coalesce("is_transactional", F.lit(False)) | (F.col("base_offset") >= F.col("begins_at"))
    data = (
        record_batches.where(~F.col("is_control") & (F.coalesce("records_count", F.lit(1)) > 0))
        .join(broadcast(bounds), on=list(COPY), how="inner")
        .join(broadcast(beyond), on=list(PRODUCER), how="left")
        .where(F.col("base_offset") < stable)
    )
    is_divided = is_divided_at(stable) | F.coalesce(is_divided_at(F.col("begins_at")), F.lit(False))
    data = single_batches(data, is_divided).where((F.col("base_offset") < stable) & is_readable)
    lasts = (
        committed.where(is_within).select(*TOPIC_PARTITION, "last_offset").unionByName(data.select(*TOPIC_PARTITION, "last_offset"))
    )
    read = lasts.groupBy(*TOPIC_PARTITION).agg((F.max("last_offset") + 1).alias("read_end"))
    return bounds.join(read, on=list(TOPIC_PARTITION), how="left").select(
        *TOPIC_PARTITION, F.greatest("read_end", "unread_end").alias("readable_end")
    )
