"""The last state of each id, and the ids of producers.

The tables `transactional_ids` and `producer_id_owners`.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS, EXHAUSTED_EPOCH, TWO_PHASE_COMMIT_TIMEOUTS
from txnlib.core.kafka.transaction_log import PRODUCER_ID_FIELDS
from txnlib.core.kafka.transaction_state import PREPARED_STATES
from txnlib.core.verdicts.evidence import Owner
from txnlib.spark.core_udfs import application_of
from txnlib.spark.instants import clock_ms, instant
from txnlib.spark.joins import broadcast
from txnlib.spark.schemas import PRODUCER_ID_OWNERS, TRANSACTIONAL_IDS, conform

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
    """`core.verdicts.reason.is_decision_marker` over columns: type, epoch, coordinator epoch and time match the Prepare record."""
    decided = F.when(F.col("state") == "PrepareCommit", "COMMIT").otherwise("ABORT")
    return (
        F.coalesce(F.col("marker_type") == decided, F.lit(True))
        & (F.col("marker_epoch") == F.col("producer_epoch"))
        & F.coalesce(F.col("marker_coordinator_epoch") >= F.col("coordinator_epoch"), F.lit(True))
        & F.coalesce(clock_ms("marker_ms") >= clock_ms("last_update_ms") - CLOCKS_DIFFER_MS, F.lit(True))
    )


# ---- `producer_id_owners`: the transactional ids of each producer id, from all surviving records


def producer_id_owners(coordinator_states: DataFrame) -> DataFrame:
    """One row per producer id and transactional id that appear in one record. Columns: PRODUCER_ID_OWNERS.

    Previous and next producer ids of a record count, too (KIP-939; written since 4.3).
    """
    named = F.array(*[F.struct(F.col(name).alias("named_id"), F.lit(name).alias("field")) for name in PRODUCER_ID_FIELDS])
    records = coordinator_states.where(~F.col("is_tombstone"))
    ids = ("transactional_id", "coordinator_partition")
    pairs = records.select(*ids, "offset", "timestamp_ms", "producer_id", "producer_epoch", F.inline(named)).where(
        F.col("named_id").isNotNull()
    )
    owners = pairs.groupBy("named_id", *ids).agg(
        # By position in PRODUCER_ID_FIELDS, not by name: the plainest field that contains the producer id.
        F.min_by("field", F.array_position(F.array(*[F.lit(f) for f in PRODUCER_ID_FIELDS]), F.col("field"))).alias("known_from"),
        F.min("offset").alias("first_record_offset"),
        F.max("offset").alias("last_record_offset"),
        instant(F.min("timestamp_ms")).alias("first_seen"),
        instant(F.max("timestamp_ms")).alias("last_seen"),
        F.max(F.when(F.col("named_id") == F.col("producer_id"), F.col("producer_epoch"))).alias("highest_epoch"),
    )
    last = coordinator_states.groupBy(*ids).agg(
        F.max_by("is_tombstone", "offset").alias("is_expired"),
        F.max_by("producer_id", "offset").alias("producer_id_now"),
        F.max("offset").alias("newest_record_offset"),
        F.max(F.when(F.col("is_tombstone"), F.col("offset"))).alias("tombstone_offset"),
    )
    is_next = F.col("known_from") == "next_producer_id"
    owner = (
        F.when(F.col("is_expired"), Owner.EXPIRED.value)
        .when(F.col("named_id") == F.col("producer_id_now"), Owner.CURRENT.value)
        # A next producer id is a future one as long as the id's newest record contains it.
        .when(is_next & (F.col("last_record_offset") == F.col("newest_record_offset")), Owner.NEXT.value)
        .otherwise(Owner.ROTATED.value)
    )
    is_expired = F.col("tombstone_offset") > F.col("last_record_offset")
    given_up = F.when(
        ~F.col("owner").isin(Owner.CURRENT.value, Owner.NEXT.value), F.when(is_expired, "EXPIRED").otherwise(_without_expiry())
    )
    rows = owners.join(last, on=list(ids), how="left").withColumn("owner", owner).withColumn("given_up", given_up)
    return conform(rows.withColumnRenamed("named_id", "producer_id"), PRODUCER_ID_OWNERS)


def _without_expiry() -> Column:
    """Why an id got another producer id before it expired. Kafka: `TransactionMetadata.isEpochExhausted`."""
    return F.when(F.col("highest_epoch") >= EXHAUSTED_EPOCH, "EPOCHS_EXHAUSTED").otherwise("UNKNOWN")
