"""`transactional_ids`: the last state of each id, as `list` and `describe` print it."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS, TWO_PHASE_COMMIT_TIMEOUTS
from txnlib.core.kafka.transaction_state import PREPARED_STATES
from txnlib.spark.core_udfs import application_of
from txnlib.spark.instants import clock_ms, instant
from txnlib.spark.joins import broadcast
from txnlib.spark.schemas import TRANSACTIONAL_IDS, conform

_ID = ("transactional_id", "coordinator_partition")


def transactional_ids(
    coordinator_states: DataFrame, producer_spans: DataFrame, *, application_patterns: tuple[str, ...] = ()
) -> DataFrame:
    """One row per transactional id, including expired ones (state NULL). Columns: TRANSACTIONAL_IDS.

    The last record by offset counts, never by time. As in the live description, a prepared id lists only partitions whose log does
    not have the marker of this decision yet. Kafka: `TransactionStateManager.loadTransactionMetadata`.
    """
    last = last_records(coordinator_states)
    prepared = last.where(is_prepared())
    unmarked = (
        prepared.select(*_ID, "producer_id", F.inline("partitions"), *_DECISION)
        .join(_markers(producer_spans, prepared), on=["topic", "partition", "producer_id"], how="left")
        .withColumn("is_marked", F.coalesce(is_marker_of_decision(), F.lit(False)))
        .groupBy(*_ID, "topic", "partition")
        .agg(F.bool_or("is_marked").alias("is_marked"))
        .where(~F.col("is_marked"))
        .groupBy(*_ID)
        .agg(F.sort_array(F.collect_list(F.struct("topic", "partition"))).alias("unmarked"))
    )
    none = F.array().cast("array<struct<topic:string,partition:int>>")
    described = last.join(unmarked, on=list(_ID), how="left").select(
        *_ID,
        "producer_id",
        "producer_epoch",
        "state",
        "transaction_timeout_ms",
        instant(F.when(F.col("state") != "Empty", F.col("start_ms"))).alias("transaction_start"),
        F.when(is_prepared(), F.coalesce("unmarked", none)).otherwise(F.coalesce("partitions", none)).alias("partitions"),
        instant("last_update_ms").alias("last_update"),
        F.col("record_offset"),
        instant("record_ms").alias("record_timestamp"),
        "coordinator_epoch",
        is_two_phase_commit().alias("is_two_phase_commit"),
    )
    owned = described.withColumn("application", application_of(application_patterns)("transactional_id"))
    return conform(owned, TRANSACTIONAL_IDS)


def last_records(coordinator_states: DataFrame, *also: Column) -> DataFrame:
    """The last record of each id, with its full set of partitions; after a tombstone, the last value without state.

    `also`: aggregates over all records of the id.
    """
    fields = ["producer_id", "producer_epoch", "transaction_timeout_ms", "start_ms", "last_update_ms"]
    value_offset = F.when(~F.col("is_tombstone"), F.col("offset"))
    return coordinator_states.groupBy(*_ID).agg(
        *[F.max_by(name, value_offset).alias(name) for name in fields],
        # An id whose last record the current copy no longer has, has expired.
        F.max_by(F.when(~F.coalesce("is_superseded", F.lit(False)), F.col("state")), "offset").alias("state"),
        F.max_by("is_tombstone", "offset").alias("is_tombstone"),
        F.max_by("partitions", "offset").alias("partitions"),
        F.max_by("timestamp_ms", "offset").alias("record_ms"),
        F.max_by("coordinator_epoch", "offset").alias("coordinator_epoch"),
        F.max_by("client_transaction_version", "offset").alias("client_transaction_version"),
        F.max_by("is_superseded", "offset").alias("is_superseded"),
        F.max_by("hole_ms", "offset").alias("hole_ms"),
        F.max("offset").alias("record_offset"),
        *also,
    )


def is_two_phase_commit() -> Column:
    """Whether the timeout is one of those that never expire; NULL if it is unknown."""
    return F.col("transaction_timeout_ms").isin(*TWO_PHASE_COMMIT_TIMEOUTS)


def is_prepared() -> Column:
    return F.coalesce(F.col("state").isin([state.kafka_name for state in PREPARED_STATES]), F.lit(False))


_DECISION = ("state", "producer_epoch", "coordinator_epoch", "last_update_ms")


def _markers(producer_spans: DataFrame, prepared: DataFrame) -> DataFrame:
    """The markers of the producers of prepared ids. These are few, while a log has many markers."""
    names = ("marker_offset", "marker_type", "marker_epoch", "marker_coordinator_epoch", "marker_ms")
    markers = producer_spans.where(F.col("marker_offset").isNotNull()).select("topic", "partition", "producer_id", *names)
    return markers.join(broadcast(prepared.select("producer_id").distinct()), on="producer_id", how="left_semi")


def is_marker_of_decision() -> Column:
    """`core.verdicts.verdict.is_decision_marker` over columns: type, epoch, coordinator epoch and time match the Prepare record."""
    decided = F.when(F.col("state") == "PrepareCommit", "COMMIT").otherwise("ABORT")
    return (
        F.coalesce(F.col("marker_type") == decided, F.lit(True))
        & (F.col("marker_epoch") == F.col("producer_epoch"))
        & F.coalesce(F.col("marker_coordinator_epoch") >= F.col("coordinator_epoch"), F.lit(True))
        & F.coalesce(clock_ms("marker_ms") >= clock_ms("last_update_ms") - CLOCKS_DIFFER_MS, F.lit(True))
    )
