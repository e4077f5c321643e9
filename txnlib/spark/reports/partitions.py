"""`partitions`: the last stable offset, the transaction behind it, and the late metric."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.finding_catalogue import Finding
from txnlib.core.kafka.constants import LATE_TRANSACTION_BUFFER_MS
from txnlib.core.verdicts.reason import Verdict
from txnlib.spark.batch_runs import first_timestamp_ms, is_divided_at, single_batches
from txnlib.spark.coverage.coverage import begins_at_snapshot
from txnlib.spark.instants import clock_ms, instant
from txnlib.spark.joins import broadcast
from txnlib.spark.schemas import PARTITIONS, TOPIC_PARTITION, conform

_NEXT: Final = ("start_offset", "producer_id", "transactional_id")
_NEXT_NAMES: Final = {
    "start_offset": "next_blocking_offset",
    "producer_id": "next_blocking_producer_id",
    "transactional_id": "next_blocking_transactional_id",
}


def partitions(
    coverage: DataFrame,
    producer_spans: DataFrame,
    record_batches: DataFrame,
    open_transactions: DataFrame,
    findings: DataFrame,
    *,
    as_of_ms: int,
    transaction_max_timeout_ms: int,
) -> DataFrame:
    """One row per captured partition, by its judged copy. Columns: PARTITIONS.

    Kafka: `UnifiedLog.fetchLastStableOffsetMetadata` (never above the high watermark, never below the log start), and
    `ProducerStateManager.hasLateTransaction` (only the open transaction with the lowest first offset counts).
    """
    # A partition that was never written to has no segment worth copying; its checkpoint contains all facts about it.
    # The same is true where the leader said that nothing is open, and the log was not fetched.
    is_told = (F.col("high_watermark") == 0) | (F.col("is_nothing_open") & F.col("high_watermark").isNotNull())
    is_empty = (F.col("status") == "MISSING") & is_told
    copies = coverage.where(F.col("is_judged") | F.coalesce(is_empty, F.lit(False))).select(
        *TOPIC_PARTITION,
        "source",
        F.coalesce("end_offset", "high_watermark", F.lit(0)).alias("end_offset"),
        F.coalesce("log_start_offset", F.lit(0)).alias("log_start_offset"),
        F.coalesce("high_watermark", "end_offset", F.lit(0)).alias("high_watermark"),
        F.col("high_watermark").isNull().alias("is_high_watermark_assumed"),
        "read_from_offset",
    )
    # Open transactions, and those ended by a marker at or above the high watermark.
    is_unstable = F.col("marker_offset").isNull() | (F.col("marker_offset") >= F.col("high_watermark"))
    unstable = (
        producer_spans.where(F.col("first_offset").isNotNull())
        .join(broadcast(copies.select(*TOPIC_PARTITION, "high_watermark")), on=list(TOPIC_PARTITION), how="inner")
        .where(is_unstable)
        .groupBy(*TOPIC_PARTITION)
        .agg(F.min("first_offset").alias("first_unstable_offset"))
    )
    blocking = open_transactions.groupBy(*TOPIC_PARTITION).agg(
        F.min("start_offset").alias("first_undecided_offset"),
        F.min_by("producer_id", "start_offset").alias("blocking_producer_id"),
        F.min_by("transactional_id", "start_offset").alias("blocking_transactional_id"),
        F.min_by("verdict", "start_offset").alias("blocking_verdict"),
        F.min_by(F.unix_millis("last_timestamp"), F.col("start_offset")).alias("blocking_ms"),
        F.try_element_at(F.sort_array(F.collect_list(F.struct(*_NEXT))), F.lit(2)).alias("next"),
    )
    blocking = blocking.select("*", *[F.col(f"next.{name}").alias(alias) for name, alias in _NEXT_NAMES.items()])
    unexplained = findings.where(F.col("name") == Finding.LIVE_STABLE_OFFSET_DISAGREES.name).select(
        *TOPIC_PARTITION, F.col("offset").alias("answered_stable_offset")
    )
    raised = F.greatest("first_unstable_offset", "log_start_offset")
    limit = transaction_max_timeout_ms + LATE_TRANSACTION_BUFFER_MS
    # Brokers skip times of 0 and below, and a time above those that clocks show is not old: both are NULL here.
    is_late = F.lit(as_of_ms) - F.col("blocking_ms") > limit
    # The leader said that something is open there; which transaction it is, nothing shows.
    is_unknown = F.col("answered_stable_offset").isNotNull()
    of_unknown = dict.fromkeys(("producer_id", "transactional_id", "ms"), F.lit(None)) | {"verdict": F.lit(Verdict.UNKNOWN.value)}
    described = (
        copies.join(unstable, on=list(TOPIC_PARTITION), how="left")
        .join(blocking, on=list(TOPIC_PARTITION), how="left")
        .join(broadcast(unexplained), on=list(TOPIC_PARTITION), how="left")
        .withColumn("first_unstable_offset", F.least("first_unstable_offset", "answered_stable_offset"))
        .withColumns(
            {f"blocking_{name}": F.when(is_unknown, to).otherwise(F.col(f"blocking_{name}")) for name, to in of_unknown.items()}
        )
        .withColumns(
            {
                "last_stable_offset": F.when(F.col("first_unstable_offset").isNull(), F.col("high_watermark")).otherwise(
                    F.least(raised, "high_watermark")
                ),
                "is_late": F.coalesce(is_late, F.lit(False)),
            }
        )
    )
    # Batches before a snapshot were not read, so their bytes and times are unknown.
    is_lag_read = ~begins_at_snapshot() | (F.col("last_stable_offset") >= F.col("read_from_offset"))
    lagging = described.where((F.col("last_stable_offset") < F.col("high_watermark")) & is_lag_read)
    lags = _lags(lagging, record_batches)
    return conform(
        described.join(lags, on=list(TOPIC_PARTITION), how="left").withColumns(
            {
                "as_of": instant(F.lit(as_of_ms)),
                "lag_offsets": F.col("high_watermark") - F.col("last_stable_offset"),
                "lag_bytes": F.when(is_lag_read, F.coalesce("lag_bytes", F.lit(0).cast("long"))),
                "lag_ms": F.when(F.col("stable_ms").isNotNull(), F.greatest(F.lit(as_of_ms) - F.col("stable_ms"), F.lit(0))),
            }
        ),
        PARTITIONS,
    )


def _lags(lagging: DataFrame, record_batches: DataFrame) -> DataFrame:
    """Number of bytes from the last stable offset to the high watermark, and the time of the batch at the last stable offset."""
    bounds = lagging.select(*TOPIC_PARTITION, "source", "last_stable_offset", "high_watermark")
    is_behind = (F.col("last_offset") >= F.col("last_stable_offset")) & (F.col("base_offset") < F.col("high_watermark"))
    behind = record_batches.join(broadcast(bounds), on=[*TOPIC_PARTITION, "source"], how="inner").where(is_behind)
    is_divided = is_divided_at(F.col("last_stable_offset")) | is_divided_at(F.col("high_watermark"))
    each = single_batches(behind, is_divided).where(is_behind)
    return each.groupBy(*TOPIC_PARTITION).agg(
        F.sum(F.col("size").cast("long")).alias("lag_bytes"),
        clock_ms(F.min_by(first_timestamp_ms(), F.col("base_offset"))).alias("stable_ms"),
    )
