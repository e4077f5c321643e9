"""`marker_repairs`: each partition of a decided transaction that lacks its marker."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.verdicts.marker_repair import Fate
from txnlib.core.verdicts.transaction_outcome import MarkerState
from txnlib.spark.core_udfs import marker_repair
from txnlib.spark.coverage.leaders import broker
from txnlib.spark.instants import clock_ms
from txnlib.spark.joins import broadcast
from txnlib.spark.local_rows import settled
from txnlib.spark.producers.producer_spans import newest_spans
from txnlib.spark.schemas import MARKER_REPAIRS, PRODUCER, TOPIC_PARTITION, conform

_PLACE: Final = ("transactional_id", "coordinator_partition", "transaction_number", *TOPIC_PARTITION)
#: The states of a marker that is due and not there.
LACKING: Final = (MarkerState.MISSING, MarkerState.PENDING, MarkerState.CONTRADICTING)


def lacking(transaction_outcomes: DataFrame) -> DataFrame:
    """The partitions of decided transactions that lack their marker."""
    return transaction_outcomes.where(F.col("marker").isin(*[state.value for state in LACKING]))


def marker_repairs(
    transaction_outcomes: DataFrame,
    transactions: DataFrame,
    producer_spans: DataFrame,
    record_batches: DataFrame,
    coordinator_states: DataFrame,
    coverage: DataFrame,
    *,
    kafka_version: str | None,
) -> DataFrame:
    """One row per partition of a decided transaction without its marker. Columns: MARKER_REPAIRS."""
    decided = transactions.select(
        "transactional_id",
        "coordinator_partition",
        "transaction_number",
        F.coalesce("decided_epoch", "producer_epoch").alias("due_epoch"),
        F.coalesce("transaction_version", "cluster_transaction_version").alias("transaction_version"),
        F.unix_millis("completed").alias("completed_ms"),
    )
    lost = settled(
        lacking(transaction_outcomes)
        .select("as_of", *_PLACE, "producer_id", "decided_outcome", "decided", "marker", "marker_offset", "first_offset", "outcome")
        .join(decided, on=list(_PLACE[:3]), how="left")
    )
    ended = F.struct("marker_offset", "marker_type", "first_offset").alias("ended")
    later = (
        producer_spans.where(F.col("marker_offset").isNotNull() & F.col("first_offset").isNotNull())
        .select(*PRODUCER, clock_ms("marker_ms").alias("ended_ms"), clock_ms("first_timestamp_ms").alias("began_ms"), ended)
        .join(broadcast(lost.select(*_PLACE, "producer_id", "decided", "completed_ms")), on=list(PRODUCER), how="inner")
        # Records that were written before the decision, and ended after it.
        .where(
            (F.col("ended_ms") > F.unix_millis("decided"))
            & (F.col("began_ms") <= F.coalesce("completed_ms", F.unix_millis("decided")))
        )
        .groupBy(*_PLACE)
        .agg(F.min("ended").alias("ended"))
    )
    seen = newest_spans(producer_spans).select(
        *PRODUCER,
        F.col("state.producer_epoch").alias("seen_epoch"),
        F.col("state.coordinator_epoch").alias("seen_coordinator_epoch"),
    )
    rows = (
        lost.join(broadcast(later), on=list(_PLACE), how="left")
        .join(seen, on=list(PRODUCER), how="left")
        .join(broadcast(_copies_with_marker(lost, record_batches)), on=list(_PLACE), how="left")
        .join(broadcast(_coordinator_epochs(coordinator_states, coverage)), on="coordinator_partition", how="left")
    )
    is_contradicted = F.col("marker") == MarkerState.CONTRADICTING.value
    is_open = ~is_contradicted & F.col("first_offset").isNotNull()
    fate = (
        F.when(is_contradicted, F.col("outcome"))
        .when(is_open, Fate.OPEN.value)
        .when(F.col("ended").isNotNull(), F.coalesce("ended.marker_type", F.lit(Fate.NONE.value)))
        .otherwise(Fate.NONE.value)
    )
    facts = rows.withColumns(
        {
            "fate": fate,
            "ended_at_offset": F.when(~is_open, F.coalesce("marker_offset", "ended.marker_offset")),
            "first_offset": F.coalesce("first_offset", "ended.first_offset"),
            "marker_epoch": F.col("due_epoch"),
        }
    )
    names = (
        *TOPIC_PARTITION,
        "producer_id",
        "marker_epoch",
        "coordinator_epoch",
        "decided_outcome",
        "marker",
        "transaction_version",
        "seen_epoch",
        "seen_coordinator_epoch",
        "fate",
        "first_offset",
        "ended_at_offset",
    )
    repaired = facts.withColumn("repair", marker_repair()(F.struct(*names), F.lit(kafka_version).cast("string")))
    return conform(repaired.select("*", "repair.*"), MARKER_REPAIRS)


def _copies_with_marker(lost: DataFrame, record_batches: DataFrame) -> DataFrame:
    """Per partition, the copies that have the marker. A copy that is not judged may be that of an old leader."""
    markers = record_batches.where(F.col("control_type").isNotNull()).select(
        *PRODUCER, "source", broker().alias("broker"), "base_offset", "control_type", "producer_epoch", "max_timestamp_ms"
    )
    is_it = (
        (F.col("control_type") == F.col("decided_outcome"))
        & (F.col("producer_epoch") == F.col("due_epoch"))
        & (clock_ms("max_timestamp_ms") >= F.unix_millis("decided"))
    )
    found = markers.join(
        broadcast(lost.select(*_PLACE, "producer_id", "decided", "decided_outcome", "due_epoch")), on=list(PRODUCER)
    )
    copy = F.struct("broker", "source", F.col("base_offset").alias("offset"))
    return found.where(is_it).groupBy(*_PLACE).agg(F.sort_array(F.collect_set(copy)).alias("copies"))


def _coordinator_epochs(coordinator_states: DataFrame, coverage: DataFrame) -> DataFrame:
    """The newest coordinator epoch of each coordinator partition, which the request must carry."""
    of_records = coordinator_states.select("coordinator_partition", "coordinator_epoch")
    of_copies = coverage.where(F.col("topic") == TRANSACTION_STATE_TOPIC).select(
        F.col("partition").alias("coordinator_partition"), F.col("leader_epoch").alias("coordinator_epoch")
    )
    return (
        of_records.unionByName(of_copies)
        .groupBy("coordinator_partition")
        .agg(F.max("coordinator_epoch").alias("coordinator_epoch"))
    )
