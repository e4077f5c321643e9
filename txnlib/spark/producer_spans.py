"""What happened to each producer of a partition between two of its markers? The windows over every batch, once.

Windows remember: the state after each batch is a handful of window expressions, and the state before a batch is the one
after the batch before it. Three tables read the result, so it is stored.

| field after | window expression |
| --- | --- |
| producer_epoch | the batch's |
| last_sequence, last_offset, offset_delta | of the last data batch, if the epoch has not changed since |
| coordinator_epoch | last one of a marker |
| current_txn_first_offset | lowest base offset of transactional data since the last marker |
| last_timestamp | the batch's |

Kafka: `ProducerAppendInfo`; the same steps in Python are `core.producer_state.append`, and a property test compares them
row by row.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.core.sentinels import GROUP_METADATA_TOPIC, MAX_SEQUENCE
from txnlib.spark import windows
from txnlib.spark.schemas import BATCH_FIELDS, PRODUCER, PRODUCER_SPANS, STATE_FIELDS, TOPIC_PARTITION, conform

#: Batches of one producer in a partition that are kept for the core to judge; the rest is counted. A producer gone mad
#: must not fill a row.
SUSPECTS_KEPT: Final = 100


def producer_spans(record_batches: DataFrame, producer_snapshots: DataFrame, coverage: DataFrame) -> DataFrame:
    """One row per producer and span of the judged copies. Columns: PRODUCER_SPANS."""
    judged = _with_snapshot(coverage.where("is_judged"), producer_snapshots)
    steps = with_states(_seeds(producer_snapshots, judged).unionByName(_producer_batches(record_batches, judged)))
    return conform(_summed(steps), PRODUCER_SPANS)


def _with_snapshot(judged: DataFrame, producer_snapshots: DataFrame) -> DataFrame:
    """The judged copies, each with the snapshot that tells what a log captured from its middle does not show.

    The newest at or before the first offset; else the oldest behind it, which knows what was open before and still is.
    """
    copy = [*TOPIC_PARTITION, "source"]
    begins = judged.select(*copy, F.least("log_start_offset", "first_offset").alias("begins_at"))
    offset, begins_at = F.col("snapshot_offset"), F.col("begins_at")
    chosen = F.coalesce(F.max(F.when(offset <= begins_at, offset)), F.min(F.when(offset > begins_at, offset)))
    usable = producer_snapshots.join(F.broadcast(begins), on=copy, how="inner").where(begins_at > 0)
    return begins.join(usable.groupBy(*copy).agg(chosen.alias("snapshot_offset")), on=copy, how="left")


def _producer_batches(record_batches: DataFrame, judged: DataFrame) -> DataFrame:
    """The batches that concern producers: neither those without an id, nor control batches without a marker."""
    is_text = ~F.col("source").startswith("raw:")
    has_marker = F.col("control_type").isNotNull() | (is_text & (F.coalesce("records_count", F.lit(1)) > 0))
    return (
        record_batches.where(F.col("producer_id").isNotNull() & (~F.col("is_control") | has_marker))
        .join(F.broadcast(judged), on=[*TOPIC_PARTITION, "source"], how="inner")
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
            # A log captured from its middle may hide where a transaction began.
            ((F.col("begins_at") > 0) & F.col("snapshot_offset").isNull()).alias("is_from_the_middle"),
            F.when(F.col("is_transactional") & ~F.col("is_control"), F.col("base_offset")).alias("opens_at"),
            F.lit(False).alias("is_seed"),
            F.lit(None).cast("long").alias("snapshot_offset"),
        )
    )


def _seeds(producer_snapshots: DataFrame, judged: DataFrame) -> DataFrame:
    """One synthetic batch per producer of the snapshot that precedes the log: it leaves the snapshot's state behind."""
    chosen = producer_snapshots.join(F.broadcast(judged), on=[*TOPIC_PARTITION, "source", "snapshot_offset"], how="inner").where(
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
        F.lit(False).alias("is_from_the_middle"),
        F.col("current_txn_first_offset").alias("opens_at"),
        F.lit(True).alias("is_seed"),
        "snapshot_offset",
    )


def with_states(batches: DataFrame) -> DataFrame:
    """Each batch with the state before and after it, its span, and whether the core should look at it."""
    window = windows.batches_of_producer()
    batches = _fitted(batches)
    # A dump may print a part twice: the same offset is the same batch.
    once = batches.withColumn("offset_before", F.lag("base_offset").over(window)).where(
        F.col("offset_before").isNull() | (F.col("offset_before") < F.col("base_offset"))
    )
    epoch_step = F.coalesce((F.col("producer_epoch") != F.lag("producer_epoch").over(window)).cast("int"), F.lit(0))
    numbered = once.withColumns(
        {
            "span": F.count(F.when(F.col("is_marker"), True)).over(windows.before_now(window)),
            "epoch_step": epoch_step,
        }
    ).withColumn("epoch_run", F.sum("epoch_step").over(windows.until_now(window)))
    data = F.when(
        ~F.col("is_marker") & (~F.col("is_seed") | F.col("last_sequence").isNotNull()),
        F.struct(
            "epoch_run",
            "last_sequence",
            "last_offset",
            (F.col("last_offset") - F.col("base_offset")).cast("int").alias("offset_delta"),
        ),
    )
    until_now = windows.until_now(window)
    start = F.when(F.col("opens_at").isNotNull(), F.struct("span", (-F.col("opens_at")).alias("negative_start")))
    remembered = numbered.withColumns(
        {
            "last_data": F.last(data, ignorenulls=True).over(until_now),
            "coordinator_epoch_after": F.last("coordinator_epoch", ignorenulls=True).over(until_now),
            # The lowest start of the latest span that has one: one more window over the same order, not one per span.
            "opened": F.max(start).over(until_now),
        }
    )
    remembered = remembered.withColumn("opened_at", F.when(F.col("opened.span") == F.col("span"), -F.col("opened.negative_start")))
    is_same_run = F.col("last_data.epoch_run") == F.col("epoch_run")
    after = F.struct(
        F.col("producer_epoch"),
        F.when(is_same_run, F.col("last_data.last_sequence")).alias("last_sequence"),
        F.when(is_same_run, F.col("last_data.last_offset")).alias("last_offset"),
        F.when(is_same_run, F.col("last_data.offset_delta")).otherwise(F.lit(0)).alias("offset_delta"),
        F.col("coordinator_epoch_after").alias("coordinator_epoch"),
        F.when(~F.col("is_marker"), F.col("opened_at")).alias("current_txn_first_offset"),
        F.col("max_timestamp_ms").alias("last_timestamp"),
    ).cast(STATE_FIELDS)
    stepped = remembered.withColumn("after", after).withColumn("before", F.lag("after").over(window))
    return stepped.withColumn("is_suspect", _is_suspect())


def _fitted(batches: DataFrame) -> DataFrame:
    """The batches, with each seed as it is true before them.

    A snapshot behind the first offset tells the state there only of producers without a batch in between. Of the others
    it tells one thing: which transaction had begun before, and was still open.
    """
    has_batches = F.coalesce(F.lead("base_offset").over(windows.batches_of_producer()) < F.col("snapshot_offset"), F.lit(False))
    weak = batches.withColumn("is_weak", F.col("is_seed") & has_batches)
    unknown = {
        name: F.when(~F.col("is_weak"), F.col(name)).alias(name)
        for name in ("last_offset", "producer_epoch", "base_sequence", "last_sequence", "coordinator_epoch")
    }
    kept = weak.where(~F.col("is_weak") | (F.col("opens_at") <= F.col("base_offset")))
    return kept.withColumns(unknown).drop("is_weak")


def _is_suspect() -> Column:
    """Whether a batch could have a finding; the core decides about those (a property test shows that others have none)."""
    before = F.col("before")
    epoch_went_back = F.col("producer_epoch") < before["producer_epoch"]
    demanded = F.when((F.col("producer_epoch") != before["producer_epoch"]) | before["last_sequence"].isNull(), F.lit(0)).otherwise(
        (before["last_sequence"].cast("long") + 1).bitwiseAND(MAX_SEQUENCE)
    )
    sequence_jumped = F.col("base_sequence").isNotNull() & (F.col("base_sequence") != demanded)
    outside = before["current_txn_first_offset"].isNotNull() & ~F.col("is_transactional")
    fenced = F.col("coordinator_epoch") < before["coordinator_epoch"]
    is_checked = F.col("topic") != GROUP_METADATA_TOPIC
    of_data = ~F.col("is_marker") & (sequence_jumped & is_checked | outside)
    of_marker = F.col("is_marker") & fenced
    is_odd = F.coalesce(epoch_went_back, F.lit(False)) | F.coalesce(of_data, F.lit(False)) | F.coalesce(of_marker, F.lit(False))
    return before.isNotNull() & ~F.col("is_seed") & is_odd


def _summed(steps: DataFrame) -> DataFrame:
    """One row per span; grouped as the windows were, so nothing is shuffled again."""
    in_transaction = F.col("opens_at").isNotNull() & ~F.col("is_marker")
    suspect_number = F.count(F.when(F.col("is_suspect"), True)).over(windows.until_now(windows.batches_of_producer()))
    suspect = F.struct("before", F.struct(*BATCH_FIELDS.names).alias("batch"))

    def of_marker(name: str) -> Column:
        return F.max(F.when(F.col("is_marker"), F.col(name)))  # a span has at most one

    numbered = steps.withColumn("suspect_number", suspect_number)
    kept = F.col("is_suspect") & (F.col("suspect_number") <= SUSPECTS_KEPT)
    return numbered.groupBy(*PRODUCER, "span").agg(
        F.min_by("producer_epoch", "base_offset").alias("producer_epoch"),
        F.min("opens_at").alias("first_offset"),
        F.max(F.when(in_transaction & ~F.col("is_seed"), F.col("last_offset"))).alias("last_offset"),
        (~F.min_by(F.col("is_from_the_middle"), "base_offset") | (F.col("span") > 0)).alias("is_start_exact"),
        of_marker("base_offset").alias("marker_offset"),
        of_marker("control_type").alias("marker_type"),
        of_marker("producer_epoch").alias("marker_epoch"),
        of_marker("coordinator_epoch").alias("marker_coordinator_epoch"),
        of_marker("max_timestamp_ms").alias("marker_ms"),
        F.count(F.when(in_transaction & ~F.col("is_seed"), True)).alias("batches"),
        F.sum(F.when(in_transaction, F.col("records"))).alias("records"),
        F.sum(F.when(in_transaction, F.col("bytes"))).alias("bytes"),
        F.min_by("max_timestamp_ms", F.when(in_transaction, F.col("base_offset"))).alias("first_timestamp_ms"),
        F.max_by("max_timestamp_ms", F.when(in_transaction, F.col("base_offset"))).alias("last_timestamp_ms"),
        F.bool_and(F.when(in_transaction, F.col("is_broker_clock"))).alias("is_broker_clock"),
        F.max_by("after", "base_offset").alias("state"),
        F.collect_list(F.when(kept, suspect)).alias("suspects"),
        F.count(F.when(F.col("is_suspect"), True)).alias("suspects_count"),
    )
