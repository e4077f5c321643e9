"""`producer_spans`: each producer's batches on a partition between two of its markers.

One pass of windows over all batches. Several tables read the result, so it is stored. A span ends with a marker, or is the newest
one. The windows at its last batch cover the whole span, so no grouping is needed.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.spark import windows
from txnlib.spark.coverage.coverage import begins_at_snapshot, survives
from txnlib.spark.joins import broadcast
from txnlib.spark.producers.producer_steps import earlier_of, now, sum_until_now, with_states
from txnlib.spark.schemas import BATCH_FIELDS, PRODUCER, PRODUCER_SPANS, TOPIC_PARTITION, TRUNCATED, conform

#: Maximum number of suspect batches per producer and partition that are kept for the core; the others are counted. A misbehaving
#: producer must not fill a row.
SUSPECTS_KEPT: Final = 100


def producer_spans(record_batches: DataFrame, producer_snapshots: DataFrame, coverage: DataFrame) -> DataFrame:
    """One row per producer and span of the judged copies, and one per suspect batch. Columns: PRODUCER_SPANS."""
    judged = with_snapshot(coverage.where("is_judged"), producer_snapshots)
    return located_spans(spans_of(with_states(batches_of(record_batches, producer_snapshots, judged))), judged)


def located_spans(spans: DataFrame, judged: DataFrame) -> DataFrame:
    """The spans, each with whether its start offset is exact. Columns: PRODUCER_SPANS."""
    # A log that was captured from its middle may hide where a transaction began.
    hides = judged.select(*TOPIC_PARTITION, ((F.col("begins_at") > 0) & F.col("snapshot_offset").isNull()).alias("hides_starts"))
    joined = spans.join(broadcast(hides), on=list(TOPIC_PARTITION), how="left")
    is_start_exact = (F.col("span") > 0) | ~F.coalesce("hides_starts", F.lit(False))
    return conform(joined.withColumn("is_start_exact", is_start_exact), PRODUCER_SPANS)


def producer_batches(record_batches: DataFrame, producer_snapshots: DataFrame, coverage: DataFrame) -> DataFrame:
    """One row per batch of a producer in the judged copies, and per producer of a snapshot: the input of the windows."""
    return batches_of(record_batches, producer_snapshots, with_snapshot(coverage.where("is_judged"), producer_snapshots))


def batches_of(record_batches: DataFrame, producer_snapshots: DataFrame, judged: DataFrame) -> DataFrame:
    """The same for the given judged copies with their snapshots (`with_snapshot`)."""
    return _seeds(producer_snapshots, judged).unionByName(read_batches_of(record_batches, judged))


def begins_at() -> Column:
    """The offset below which nothing of a copy was read."""
    return F.when(begins_at_snapshot(), F.col("read_from_offset")).otherwise(F.least("log_start_offset", "first_offset"))


def with_snapshot(judged: DataFrame, producer_snapshots: DataFrame) -> DataFrame:
    """The judged copies, each with the snapshot for the part of the log before its first captured offset.

    This is the oldest snapshot at or above the first offset: it contains the transactions that were open before and still are. A
    snapshot below the first offset is followed by a hole, in which these transactions may have ended (DESIGN.md 5.3, rule 5).
    """
    copy = [*TOPIC_PARTITION, "source"]
    begins = judged.select(*copy, begins_at().alias("begins_at"), _truncated(judged))
    offset, beginning = F.col("snapshot_offset"), F.col("begins_at")
    chosen = F.min(F.when(offset >= beginning, offset))
    usable = producer_snapshots.join(broadcast(begins), on=copy, how="inner").where(beginning > 0)
    return begins.join(usable.groupBy(*copy).agg(chosen.alias("snapshot_offset")), on=copy, how="left")


def _truncated(coverage: DataFrame) -> Column:
    """What a newer leader truncated from each copy; NULL in tables of older versions."""
    return F.col("truncated") if "truncated" in coverage.columns else F.lit(None).cast(TRUNCATED).alias("truncated")


def read_batches_of(record_batches: DataFrame, judged: DataFrame) -> DataFrame:
    """The batches of producers: not those without a producer id, and not control batches without a marker."""
    is_text = ~F.col("source").startswith("raw:")
    has_marker = F.col("control_type").isNotNull() | (is_text & (F.coalesce("records_count", F.lit(1)) > 0))
    return (
        record_batches.where(F.col("producer_id").isNotNull() & (~F.col("is_control") | has_marker))
        .join(broadcast(judged), on=[*TOPIC_PARTITION, "source"], how="inner")
        .withColumns({"leader_epoch": F.col("partition_leader_epoch"), "at_offset": F.col("base_offset")})
        .where(survives())
        .select(
            *PRODUCER,
            "base_offset",
            "last_offset",
            F.col("producer_epoch"),
            "base_sequence",
            "last_sequence",
            "max_timestamp_ms",
            "is_transactional",
            F.col("is_control").alias("is_marker"),
            "control_type",
            "coordinator_epoch",
            F.col("records_count").cast("long").alias("records"),
            F.col("size").cast("long").alias("bytes"),
            (F.col("timestamp_type") == "LOG_APPEND_TIME").alias("is_broker_clock"),
            F.when(F.col("is_transactional") & ~F.col("is_control"), F.col("base_offset")).alias("opens_at"),
            F.lit(False).alias("is_seed"),
            F.lit(None).cast("long").alias("snapshot_offset"),
        )
    )


def _seeds(producer_snapshots: DataFrame, judged: DataFrame) -> DataFrame:
    """One synthetic batch per producer of the snapshot before the log. Appending it results in the snapshot's state."""
    chosen = producer_snapshots.join(broadcast(judged), on=[*TOPIC_PARTITION, "source", "snapshot_offset"], how="inner").where(
        F.col("producer_id").isNotNull()
    )
    has_data = F.col("last_sequence").isNotNull()
    return chosen.select(
        *PRODUCER,
        (F.col("begins_at") - 1).alias("base_offset"),
        F.col("last_offset"),
        F.col("producer_epoch"),
        F.when(has_data, F.col("last_sequence")).alias("base_sequence"),
        "last_sequence",
        F.col("last_timestamp_ms").alias("max_timestamp_ms"),
        F.col("current_txn_first_offset").isNotNull().alias("is_transactional"),
        F.lit(False).alias("is_marker"),
        F.lit(None).cast("string").alias("control_type"),
        "coordinator_epoch",
        F.lit(None).cast("long").alias("records"),
        F.lit(None).cast("long").alias("bytes"),
        F.lit(False).alias("is_broker_clock"),
        F.col("current_txn_first_offset").alias("opens_at"),
        F.lit(True).alias("is_seed"),
        "snapshot_offset",
    )


def newest_spans(producer_spans: DataFrame) -> DataFrame:
    """The newest span of each producer. Columns: PRODUCER_SPANS."""
    # The first condition lets Delta skip the files of all other spans; older versions wrote only the second column.
    return producer_spans.where(F.coalesce("is_newest", F.lit(True)) & F.col("state").isNotNull())


def open_spans(producer_spans: DataFrame) -> DataFrame:
    """The newest spans that no marker has ended. Columns: PRODUCER_SPANS."""
    return newest_spans(producer_spans).where(F.col("first_offset").isNotNull() & F.col("marker_offset").isNull())


def spans_of(steps: DataFrame) -> DataFrame:
    """The last batch of each span, with the sums of the span, and each suspect batch. All other batches are dropped."""
    window, earlier = windows.batches_of_producer(), earlier_of(steps)
    kept = steps.withColumn("is_end", F.col("is_marker") | F.col("is_newest")).where(F.col("is_end") | F.col("is_suspect"))
    sums = {name: F.when(F.col("is_marker"), sum_until_now(name)) for name in SUMS}
    is_suspect = F.count(F.when(F.col("is_suspect"), True))
    marker = F.struct(
        F.col("base_offset").alias("offset"),
        F.col("control_type").alias("type"),
        F.col("producer_epoch").alias("epoch"),
        "coordinator_epoch",
        F.col("max_timestamp_ms").alias("ms"),
    )
    last_marker = F.last(F.when(F.col("is_marker"), marker), ignorenulls=True)
    numbered = kept.withColumns(
        {f"{name}_at_marker": F.last(value, ignorenulls=True).over(windows.before_now(window)) for name, value in sums.items()}
        | {
            "marker_before": F.coalesce(last_marker.over(windows.before_now(window)), earlier("marker")),
            "suspect_number": is_suspect.over(windows.until_now(window)) + F.coalesce(earlier("suspects"), F.lit(0)),
        }
    )
    is_shown = F.col("is_suspect") & (F.col("suspect_number") <= SUSPECTS_KEPT)
    suspect = F.struct("before", F.struct(*BATCH_FIELDS.names).alias("batch"))
    return numbered.where(F.col("is_end") | is_shown).select(
        *PRODUCER,
        "span",
        *[F.when(F.col("is_end"), value).alias(name) for name, value in _end().items()],
        F.when(is_shown, suspect).alias("suspect"),
        "is_newest",
        F.when(F.col("is_newest"), F.col("suspect_number")).alias("suspects_count"),
    )


#: Columns that are NULL in the row of a suspect that does not end a span.
END_OF_SPAN: Final = tuple(
    field
    for field in PRODUCER_SPANS.names
    if field not in (*PRODUCER, "span", "is_start_exact", "state", "suspect", "is_newest", "suspects_count")
)
#: Sums over a span: the running sum at its end, less the one at the marker before.
SUMS: Final = ("batches", "records", "uncounted", "bytes", "client_clocks")


def _end() -> dict[str, Column]:
    """The columns of a span, at its last batch."""
    is_marker = F.col("is_marker")
    first_offset = F.when(is_marker, F.col("start_before")).otherwise(now("start"))
    has_transaction = first_offset.isNotNull()
    last_offset = now("newest_offset")

    def of_span(name: str) -> Column:
        return sum_until_now(name) - F.coalesce(f"{name}_at_marker", F.lit(0))

    return {
        "producer_epoch": now("first_epoch"),
        "first_offset": first_offset,
        "last_offset": F.when(last_offset >= first_offset, last_offset),
        "marker_offset": F.when(is_marker, F.col("base_offset")),
        "marker_type": F.when(is_marker, F.col("control_type")),
        "marker_epoch": F.when(is_marker, F.col("producer_epoch")),
        "marker_coordinator_epoch": F.when(is_marker, F.col("coordinator_epoch")),
        "marker_ms": F.when(is_marker, F.col("max_timestamp_ms")),
        "marker_before": F.when(~is_marker, F.col("marker_before")),
        "batches": of_span("batches"),
        "records": F.when(has_transaction & (of_span("uncounted") == 0), of_span("records")),
        "bytes": F.when(has_transaction, of_span("bytes")),
        "first_timestamp_ms": F.when(has_transaction, now("first_timestamp")),
        "last_timestamp_ms": F.when(has_transaction, now("newest_timestamp")),
        "is_broker_clock": F.when(has_transaction, of_span("client_clocks") == 0),
        "state": F.when(F.col("is_newest"), F.col("after")),
    }
