"""`producer_id_owners`: the transactional ids of each producer id, from all surviving records.

A producer id never belongs to more than one transactional id. So a map from all records is safe to join, and has more producer ids
than the live tool, which knows only an id's current one.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.core.kafka.constants import EXHAUSTED_EPOCH
from txnlib.core.kafka.transaction_log import PRODUCER_ID_FIELDS
from txnlib.core.verdicts.evidence import Owner
from txnlib.spark.instants import instant
from txnlib.spark.schemas import PRODUCER_ID_OWNERS, conform


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
