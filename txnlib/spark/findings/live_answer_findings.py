"""Findings about logs that disagree with the answers of their brokers.

Brokers are asked when a capture is taken over the wire.

Only judged copies without damage are compared, and only what cannot have changed between the answer and the copy.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.core.finding_catalogue import Finding
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.kafka.transaction_state import NEVER_WRITTEN_STATES
from txnlib.spark.coordinators.transactional_ids import last_records
from txnlib.spark.coverage.sound_copies import sound_copies
from txnlib.spark.joins import broadcast
from txnlib.spark.producers.producer_spans import open_spans
from txnlib.spark.schemas import PRODUCER, TOPIC_PARTITION

_STATE: Final = ("state", "producer_id", "producer_epoch")


def live_answer_findings(
    producer_spans: DataFrame,
    coordinator_states: DataFrame,
    live_producers: DataFrame,
    live_transactions: DataFrame,
    coverage: DataFrame,
) -> DataFrame:
    """One row per disagreement: name, topic, partition, producer_id, transactional_id, offset, evidence.

    Kafka: `ProducerStateManager.activeProducers` via `DescribeProducersResponse`, and
    `TransactionCoordinator.handleDescribeTransactions`.
    """
    whole = sound_copies(coverage).select(*TOPIC_PARTITION, F.col("first_offset").alias("begin_offset"), "end_offset")
    answered = live_producers.join(broadcast(whole), on=list(TOPIC_PARTITION), how="inner")
    partitions = answered.groupBy(*TOPIC_PARTITION).agg(F.max("high_watermark").alias("high_watermark"))
    spans = producer_spans.join(broadcast(partitions), on=list(TOPIC_PARTITION), how="inner")
    live = answered.where(F.col("producer_id").isNotNull()).select(
        *PRODUCER,
        F.col("current_transaction_start_offset").alias("live_start"),
        F.col("producer_epoch").alias("live_epoch"),
        "begin_offset",
        "end_offset",
    )
    return (
        _only_live(spans, live)
        .unionByName(_only_in_log(spans, live), allowMissingColumns=True)
        .unionByName(_unstable_without_reason(coverage, producer_spans), allowMissingColumns=True)
        .unionByName(_of_coordinators(coordinator_states, live_transactions, whole), allowMissingColumns=True)
        .unionByName(_unknown_owners(coordinator_states, live_transactions), allowMissingColumns=True)
    )


def _only_live(spans: DataFrame, live: DataFrame) -> DataFrame:
    """Transactions that were open for the leader, and that the log does not have, or had ended by then."""
    begins, marker = F.col("live_start") == F.col("first_offset"), F.col("marker_offset")
    ended_since = (marker >= F.col("high_watermark")) & (begins | (F.col("live_start") < F.col("begin_offset")))
    agrees = F.coalesce(ended_since, F.lit(False)) | F.coalesce(begins & marker.isNull(), F.lit(False))
    ends = spans.select(*PRODUCER, "first_offset", "marker_offset", "high_watermark")
    told = live.where(F.col("live_start") < F.col("end_offset"))
    known = told.join(ends, on=list(PRODUCER)).where(agrees).select(*PRODUCER, "live_start").distinct()
    lost = told.join(known, on=[*PRODUCER, "live_start"], how="left_anti")
    return lost.select(
        F.lit(Finding.LIVE_PRODUCER_DISAGREES.name).alias("name"),
        *PRODUCER,
        F.col("live_start").alias("offset"),
        F.concat(
            F.lit("the leader: open since offset "), "live_start", F.lit("; the log: no transaction of the producer was open there")
        ).alias("evidence"),
    )


def _only_in_log(spans: DataFrame, live: DataFrame) -> DataFrame:
    """Transactions that are open in the log, were there when the leader was asked, and that it describes differently."""
    start = F.col("state.current_txn_first_offset")
    opened = open_spans(spans).where("is_start_exact").where(start < F.col("high_watermark"))
    told = opened.select(
        *PRODUCER,
        start.alias("log_start"),
        F.col("state.producer_epoch").alias("log_epoch"),
        (F.col("state.last_offset") < F.col("high_watermark")).alias("is_unchanged"),
    ).join(broadcast(live), on=list(PRODUCER), how="left")
    starts_differ = ~F.col("log_start").eqNullSafe(F.col("live_start"))
    epochs_differ = F.col("is_unchanged") & ~F.col("log_epoch").eqNullSafe(F.col("live_epoch"))
    live_text = F.coalesce(
        F.concat(F.lit("open since offset "), "live_start", F.lit(", producer epoch "), "live_epoch"),
        F.lit("no open transaction of the producer"),
    )
    return told.where(starts_differ | epochs_differ).select(
        F.lit(Finding.LIVE_PRODUCER_DISAGREES.name).alias("name"),
        *PRODUCER,
        F.col("log_start").alias("offset"),
        F.concat(
            F.lit("the log: open since offset "),
            "log_start",
            F.lit(", producer epoch "),
            "log_epoch",
            F.lit("; the leader: "),
            live_text,
        ).alias("evidence"),
    )


def _unstable_without_reason(coverage: DataFrame, producer_spans: DataFrame) -> DataFrame:
    """Last stable offsets below the high watermark that no transaction in the log explains."""
    log = F.when(F.col("status") == "MISSING", "not captured").otherwise("no transaction that was open there")
    return unexplained_stable_offsets(coverage, producer_spans).select(
        F.lit(Finding.LIVE_STABLE_OFFSET_DISAGREES.name).alias("name"),
        *TOPIC_PARTITION,
        F.col("answered_stable_offset").alias("offset"),
        F.concat(
            F.lit("the leader: last stable offset "),
            "answered_stable_offset",
            F.lit(", high watermark "),
            "answered_high_watermark",
            F.lit("; the log: "),
            log,
        ).alias("evidence"),
    )


def unexplained_stable_offsets(coverage: DataFrame, producer_spans: DataFrame) -> DataFrame:
    """The partitions whose leader answered a last stable offset below its high watermark, though no transaction explains it.

    One explains it that may have begun by then, at or below that offset, and that no marker below it ended. Columns:
    TOPIC_PARTITION, answered_stable_offset, answered_high_watermark, status.
    """
    stable = F.col("answered_stable_offset")
    is_known = F.col("is_judged") | ((F.col("status") == "MISSING") & F.col("is_gone").isNull())
    told = coverage.where(is_known & (stable < F.col("answered_high_watermark"))).select(
        *TOPIC_PARTITION, "answered_stable_offset", "answered_high_watermark", "status"
    )
    begun = F.when(F.col("is_start_exact"), F.col("first_offset")).otherwise(0)
    has_transaction = F.col("first_offset").isNotNull() | F.col("marker_offset").isNotNull()
    explaining = (
        producer_spans.where(has_transaction)
        .join(broadcast(told), on=list(TOPIC_PARTITION))
        .where((F.coalesce(begun, F.lit(0)) <= stable) & F.coalesce(F.col("marker_offset") >= stable, F.lit(True)))
        .select(*TOPIC_PARTITION)
        .distinct()
    )
    return told.join(broadcast(explaining), on=list(TOPIC_PARTITION), how="left_anti")


def _of_coordinators(coordinator_states: DataFrame, live_transactions: DataFrame, whole: DataFrame) -> DataFrame:
    """Ids whose last record was there when the coordinator was asked, and whose state it describes differently."""
    copies = whole.where(F.col("topic") == TRANSACTION_STATE_TOPIC).select(F.col("partition").alias("coordinator_partition"))
    never_written = [state.kafka_name for state in NEVER_WRITTEN_STATES]
    live = live_transactions.where(~F.col("state").isin(never_written)).select(
        "transactional_id", "coordinator_partition", "log_end_offset", *[F.col(name).alias(f"live_{name}") for name in _STATE]
    )
    known = live.join(broadcast(copies), on="coordinator_partition", how="left_semi")
    last = last_records(coordinator_states).join(known, on=["transactional_id", "coordinator_partition"], how="inner")
    is_different = ~F.struct(*_STATE).eqNullSafe(F.struct(*[F.col(f"live_{name}").alias(name) for name in _STATE]))
    return last.where((F.col("record_offset") < F.col("log_end_offset")) & is_different).select(
        F.lit(Finding.LIVE_STATE_DISAGREES.name).alias("name"),
        F.lit(TRANSACTION_STATE_TOPIC).alias("topic"),
        F.col("coordinator_partition").alias("partition"),
        "producer_id",
        "transactional_id",
        F.col("record_offset").alias("offset"),
        F.concat(F.lit("the log: "), _state_text(""), F.lit("; the coordinator: "), _state_text("live_")).alias("evidence"),
    )


def _unknown_owners(coordinator_states: DataFrame, live_transactions: DataFrame) -> DataFrame:
    """Ids with a producer id by a coordinator's answer that none of their records names. Producer ids never change their owner."""
    owner = ["transactional_id", "producer_id"]
    named = coordinator_states.where(F.col("producer_id").isNotNull()).select(*owner).distinct()
    told = live_transactions.where(F.col("producer_id") >= 0).join(named, on=owner, how="left_anti")
    return told.select(
        F.lit(Finding.LIVE_OWNER_UNKNOWN.name).alias("name"),
        F.lit(TRANSACTION_STATE_TOPIC).alias("topic"),
        F.col("coordinator_partition").alias("partition"),
        "producer_id",
        "transactional_id",
        F.lit(None).cast("long").alias("offset"),
        F.concat(
            F.lit("the log: no record of the id with this producer id; the coordinator: "),
            F.coalesce("state", F.lit("no state")),
            F.lit(", producer epoch "),
            F.coalesce(F.col("producer_epoch").cast("string"), F.lit("not told")),
        ).alias("evidence"),
    )


def _state_text(prefix: str) -> Column:
    state = F.coalesce(F.col(f"{prefix}state"), F.lit("no state"))
    return F.concat(state, F.lit(", producer id "), f"{prefix}producer_id", F.lit(", producer epoch "), f"{prefix}producer_epoch")
