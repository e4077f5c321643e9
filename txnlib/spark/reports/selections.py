"""What the core's reports need from tables of the log: rows that can matter, and answers to questions about few places."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.kafka.constants import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from txnlib.spark import windows
from txnlib.spark.batch_runs import first_timestamp_ms, is_divided_at, single_batches
from txnlib.spark.coverage import broker
from txnlib.spark.instants import clock_ms
from txnlib.spark.joins import broadcast
from txnlib.spark.schemas import COPY, OPEN_TRANSACTION, PRODUCER, TOPIC_PARTITION


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


def unstable_offsets(producer_spans: DataFrame, coverage: DataFrame) -> DataFrame:
    """The first unstable offset of each partition. Columns: topic, partition, first_unstable_offset.

    Unstable are open transactions, and those ended by a marker at or above the high watermark.
    """
    marks = coverage.where("is_judged").select(*TOPIC_PARTITION, F.coalesce("high_watermark", "end_offset", F.lit(0)).alias("mark"))
    return (
        producer_spans.where(F.col("first_offset").isNotNull())
        .join(broadcast(marks), on=list(TOPIC_PARTITION), how="inner")
        .where(F.col("marker_offset").isNull() | (F.col("marker_offset") >= F.col("mark")))
        .groupBy(*TOPIC_PARTITION)
        .agg(F.min("first_offset").alias("first_unstable_offset"))
    )


def unstable_batches(ranges: DataFrame, record_batches: DataFrame) -> DataFrame:
    """Bytes of the batches in each range, and the time of the first. Columns: topic, partition, lag_bytes, stable_ms.

    `ranges`: topic, partition, source, last_stable_offset, high_watermark.
    """
    is_behind = (F.col("last_offset") >= F.col("last_stable_offset")) & (F.col("base_offset") < F.col("high_watermark"))
    behind = record_batches.join(broadcast(ranges), on=[*TOPIC_PARTITION, "source"], how="inner").where(is_behind)
    is_divided = is_divided_at(F.col("last_stable_offset")) | is_divided_at(F.col("high_watermark"))
    each = single_batches(behind, is_divided).where(is_behind)
    return each.groupBy(*TOPIC_PARTITION).agg(
        F.sum(F.col("size").cast("long")).alias("lag_bytes"),
        clock_ms(F.min_by(first_timestamp_ms(), F.col("base_offset"))).alias("stable_ms"),
    )


def marker_delays(transactions: DataFrame) -> DataFrame:
    """For each coordinator partition and partition, how soon markers followed decisions.

    Columns: those of `core.reports.broker_clocks.MarkerDelays`. Of each producer and partition, only the newest completed decision
    counts: the present leaders stamped it, unless they have moved since.
    """
    said_ms = F.unix_millis("start") + F.col("time_to_decide_ms")
    decided = transactions.where(F.col("completed").isNotNull()).select(
        "producer_id",
        "coordinator_partition",
        F.coalesce(said_ms, F.unix_millis("prepared")).alias("at_ms"),
        F.inline("markers"),
    )
    newest = F.max_by(F.struct("coordinator_partition", "at_ms", "marker_ms", "clock_offset_ms"), "at_ms").alias("newest")
    took_ms = clock_ms("marker_ms") - F.col("at_ms")
    return (
        decided.where(F.col("marker_offset").isNotNull() & F.col("at_ms").isNotNull())
        .groupBy(*PRODUCER)
        .agg(newest)
        .select(*TOPIC_PARTITION, "newest.*")
        .groupBy("coordinator_partition", *TOPIC_PARTITION)
        .agg(
            F.count(took_ms).alias("samples"),
            F.min(took_ms).alias("least_ms"),
            F.max_by("clock_offset_ms", F.abs("clock_offset_ms")).alias("applied_ms"),
        )
    )


def whole_transactions(ids: DataFrame, transaction_outcomes: DataFrame) -> DataFrame:
    """The transactions of ids that hold some partition. Columns: those of `core.verdicts.abort_plan.WholeTransaction`."""
    is_held = F.col("outcome") == "OPEN"
    return (
        transaction_outcomes.where(F.col("transaction_number").isNotNull())
        .join(broadcast(ids), on="transactional_id", how="left_semi")
        .groupBy("transactional_id", "coordinator_partition", "transaction_number")
        .agg(
            F.count_if(is_held).alias("held_partitions"),
            F.sum(F.when(is_held, F.col("records"))).alias("held_records"),
            F.count_if(F.col("outcome") == "COMMIT").alias("committed_partitions"),
            F.count_if(F.col("outcome") == "ABORT").alias("aborted_partitions"),
            F.collect_list(F.when(is_held, F.struct(*PRODUCER))).alias("held"),
        )
        .where(F.col("held_partitions") > 0)
    )


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


def last_records(records: DataFrame, transaction_log: DataFrame) -> DataFrame:
    """The copies of some records. `records`: transactional_id, coordinator_partition, last_record_offset."""
    written = transaction_log.where(F.col("topic") == TRANSACTION_STATE_TOPIC).select(
        "transactional_id",
        F.col("partition").alias("coordinator_partition"),
        F.col("offset").alias("last_record_offset"),
        "next_producer_id",
        "next_producer_epoch",
        "last_update_ms",
    )
    return written.join(broadcast(records), on=records.columns, how="left_semi")


def held_data(transactions: DataFrame, transaction_outcomes: DataFrame) -> DataFrame:
    """Records and bytes of some transactions on all their partitions. Columns: those of `transactions`, records, bytes."""
    written = transaction_outcomes.join(broadcast(transactions), on=transactions.columns, how="left_semi")
    return written.groupBy(*transactions.columns).agg(F.sum("records").alias("records"), F.sum("bytes").alias("bytes"))


def spans_of_producers(records: DataFrame, producer_spans: DataFrame) -> DataFrame:
    """The newest span of each producer, and those within bounds. Columns: those of `core.reports.marker_repairs.SpanOfProducer`.

    `records`: PRODUCER, began_by_ms, ended_after_ms.
    """
    began_ms, ended_ms = clock_ms("first_timestamp_ms"), clock_ms("marker_ms")
    bounds = records.groupBy(*PRODUCER).agg(
        F.max("began_by_ms").alias("began_by_ms"), F.min("ended_after_ms").alias("ended_after_ms")
    )
    is_last = F.coalesce("is_newest", F.lit(True)) & F.col("state").isNotNull()
    is_within = (began_ms <= F.col("began_by_ms")) & (ended_ms > F.col("ended_after_ms"))
    return (
        producer_spans.join(broadcast(bounds), on=list(PRODUCER), how="inner")
        .where(is_last | is_within)
        .select(
            *PRODUCER,
            "first_offset",
            began_ms.alias("began_ms"),
            "marker_offset",
            "marker_type",
            ended_ms.alias("ended_ms"),
            is_last.alias("is_last"),
            F.col("state.producer_epoch").alias("seen_epoch"),
            F.col("state.coordinator_epoch").alias("seen_coordinator_epoch"),
        )
    )


def copies_with_markers(markers: DataFrame, record_batches: DataFrame) -> DataFrame:
    """The copies that have certain markers. Columns: due (those of `markers`), copy (broker, source, offset).

    `markers`: PRODUCER, producer_epoch, control_type, since_ms.
    """
    due = markers.select(*PRODUCER, "producer_epoch", "control_type", "since_ms", F.struct(*markers.columns).alias("due"))
    return (
        record_batches.where(F.col("control_type").isNotNull())
        .join(broadcast(due), on=[*PRODUCER, "producer_epoch", "control_type"], how="inner")
        .where(clock_ms("max_timestamp_ms") >= F.col("since_ms"))
        .select("due", F.struct(broker().alias("broker"), "source", F.col("base_offset").alias("offset")).alias("copy"))
    )


def coordinator_epochs(coordinators: DataFrame, coordinator_states: DataFrame) -> DataFrame:
    """The newest coordinator epoch in the records of coordinator partitions. Columns: coordinator_partition, coordinator_epoch."""
    records = coordinator_states.join(broadcast(coordinators), on="coordinator_partition", how="left_semi")
    return records.groupBy("coordinator_partition").agg(F.max("coordinator_epoch").alias("coordinator_epoch"))


#: Fields of a commit. The first one orders the commits of one key.
COMMIT = ("offset", "is_tombstone", "committed_offset", "commit_timestamp_ms")


def group_positions(places: DataFrame, committed_offsets: DataFrame, producer_spans: DataFrame, coverage: DataFrame) -> DataFrame:
    """One row per group and partition: group_id, topic, partition, committed_offset, commit_timestamp_ms.

    `places`: the partitions (topic, partition) that are asked about.

    A commit takes effect when it is written. A commit inside a transaction takes effect with the COMMIT marker that follows it in
    its own partition of `__consumer_offsets`, and then counts as of its own offset, not the marker's. Pending and aborted commits
    have no effect. A tombstone removes, immediately, everything written before it. Judged copies only.
    Kafka: `OffsetMetadataManager.replay` and `replayEndTransactionMarker`.
    """
    judged = coverage.where(F.col("is_judged") & (F.col("topic") == GROUP_METADATA_TOPIC)).select(*COPY)
    asked = places.select(F.col("topic").alias("committed_topic"), F.col("partition").cast("int").alias("committed_partition"))
    commits = committed_offsets.join(broadcast(judged), on=list(COPY), how="left_semi").join(
        broadcast(asked), on=["committed_topic", "committed_partition"], how="left_semi"
    )
    is_at_once = F.col("producer_id").isNull() | F.col("is_tombstone")
    effective = commits.where(is_at_once).unionByName(_committed(commits.where(~is_at_once), producer_spans))
    newest = effective.groupBy("group_id", "committed_topic", "committed_partition").agg(
        F.max(F.struct(*COMMIT)).alias("newest")  # ordered by its first field, the record's offset
    )
    return newest.where(~F.col("newest.is_tombstone")).select(
        "group_id",
        F.col("committed_topic").alias("topic"),
        F.col("committed_partition").alias("partition"),
        "newest.committed_offset",
        "newest.commit_timestamp_ms",
    )


def _committed(commits: DataFrame, producer_spans: DataFrame) -> DataFrame:
    """The commits inside transactions whose next marker of the same producer is COMMIT."""
    markers = producer_spans.where((F.col("topic") == GROUP_METADATA_TOPIC) & F.col("marker_offset").isNotNull()).select(
        *PRODUCER,
        F.col("marker_offset").alias("offset"),
        F.coalesce("marker_type", F.lit("")).alias("marker_type"),
    )
    following = F.last("marker_type", ignorenulls=True).over(windows.until_now(windows.commits_of_producer_downwards()))
    ended = commits.unionByName(markers, allowMissingColumns=True).withColumn("ended_by", following)
    return ended.where(F.col("group_id").isNotNull() & (F.col("ended_by") == "COMMIT")).select(*commits.columns)
