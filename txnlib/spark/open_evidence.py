"""What speaks against the evidence on open transactions: compaction between copies, broken sequences, wrong CRCs, findings."""

from __future__ import annotations

from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.core.finding import Finding, Severity
from txnlib.core.sentinels import MAX_SEQUENCE, TRANSACTION_STATE_TOPIC
from txnlib.spark import windows
from txnlib.spark.coverage import shows_absence
from txnlib.spark.schemas import PRODUCER, TOPIC_PARTITION

_IDENTITY: Final = (*PRODUCER, "start_offset")
_ALARMING: Final = [Severity.ERROR.name, Severity.CRITICAL.name]
#: Findings about a coordinator partition, or an id, that put its other records in doubt, too.
_OF_COORDINATOR: Final = [Finding.COORDINATOR_EPOCH_WENT_BACK.value, Finding.COPIES_DISAGREE.value]


def _holes(coordinator_states: DataFrame) -> DataFrame:
    """Where records of coordinators' logs are missing: coordinator_partition, hole_offset and hole_ms of the record after.

    What was written there is older than that record.
    """
    before = F.coalesce(F.lag("offset").over(windows.states_of_coordinator()), F.lit(-1).cast("long"))
    return (
        coordinator_states.where(F.col("offset") >= 0)
        .withColumn("offset_before", before)
        .where(F.col("offset") > F.col("offset_before") + 1)
        .select("coordinator_partition", F.col("offset").alias("hole_offset"), F.col("timestamp_ms").alias("hole_ms"))
    )


def compacted(opened: DataFrame, owned: DataFrame, coordinator_states: DataFrame) -> DataFrame:
    """Per open transaction, the newest time at which coordinator records that are missing now may have been written:
    compacted_ms. Of an id those at or below its last record count; of nobody's producer id those of every coordinator.
    """
    holes = _holes(coordinator_states)
    ids = owned.select(*_IDENTITY, "coordinator_partition", "record_offset")
    of_ids = (
        holes.join(F.broadcast(ids), on="coordinator_partition", how="inner")
        .where(F.col("hole_offset") <= F.col("record_offset"))
        .groupBy(*_IDENTITY)
        .agg(F.max("hole_ms").alias("compacted_ms"))
    )
    orphans = opened.select(*_IDENTITY).join(F.broadcast(ids), on=list(_IDENTITY), how="left_anti")
    return of_ids.unionByName(orphans.join(F.broadcast(holes.agg(F.max("hole_ms").alias("compacted_ms"))), how="left"))


def superseded(owned: DataFrame, transaction_log: DataFrame, coverage: DataFrame) -> DataFrame:
    """Per open transaction, whether the current copy of its coordinator partition lacks the id's last record, which stands in an
    older copy: is_superseded.

    Compaction keeps the last record of an id until it has expired and its tombstone is gone. Kafka: `LogCleaner`.
    """
    whole = coverage.where(
        (F.col("topic") == TRANSACTION_STATE_TOPIC) & F.col("is_judged") & F.col("is_current") & shows_absence()
    ).select(F.col("partition").alias("coordinator_partition"), "source", F.col("survives_until").alias("copy_end"))
    ids = owned.select(*_IDENTITY, "coordinator_partition", "record_offset").join(
        F.broadcast(whole), on="coordinator_partition", how="inner"
    )
    below = ids.where(F.col("record_offset") < F.col("copy_end"))
    held = transaction_log.select(
        F.col("partition").alias("coordinator_partition"),
        "source",
        F.col("offset").alias("record_offset"),
        F.lit(True).alias("is_held"),
    )
    wanted = below.select("coordinator_partition", "source", "record_offset").distinct()
    key = ["coordinator_partition", "source", "record_offset"]
    found = held.join(F.broadcast(wanted), on=key, how="left_semi").distinct()
    return below.join(found, on=key, how="left").select(*_IDENTITY, F.col("is_held").isNull().alias("is_superseded"))


def start_checks(opened: DataFrame, checked_batches: DataFrame, coverage: DataFrame) -> DataFrame:
    """Per open transaction: crc, what the CRCs of its batches say, and is_start_proven, whether no batch of the producer can be
    missing below its first one.

    Sequences of a producer follow one another within an epoch, from 0 on. Where they do not, or are not there and the copy has
    holes or damage, an earlier batch of the transaction may be among what is missing.
    """
    key = [*_IDENTITY, "source"]
    is_refuted = F.bool_or(~F.col("is_crc_valid"))
    is_checked = F.bool_and(F.coalesce("is_crc_valid", F.lit(False)))
    of = {
        place: F.max(F.when(F.col("place") == place, F.struct("producer_epoch", "base_sequence", "last_sequence"))).alias(place)
        for place in ("before", "first")
    }
    summed = checked_batches.groupBy(*key).agg(
        F.when(is_refuted, "INVALID").when(is_checked, "VALID").otherwise("NOT_CHECKED").alias("crc"), *of.values()
    )
    copies = coverage.where("is_judged").select(
        *TOPIC_PARTITION,
        (F.coalesce("read_from_offset", "log_start_offset", F.lit(0)) > 0).alias("begins_late"),
        (F.col("gap_offset").isNotNull() | F.col("damaged_offset").isNotNull()).alias("has_holes"),
    )
    told = opened.select(*key).join(summed, on=key, how="left").join(F.broadcast(copies), on=list(TOPIC_PARTITION), how="left")
    return told.select(*_IDENTITY, F.coalesce("crc", F.lit("NOT_CHECKED")).alias("crc"), _follows().alias("is_start_proven"))


def _follows() -> Column:
    before, first = F.col("before"), F.col("first")
    expected = F.when(before["last_sequence"] == MAX_SEQUENCE, 0).otherwise(before["last_sequence"] + 1)
    is_same_epoch = before["producer_epoch"] == first["producer_epoch"]
    begins_anew = first["base_sequence"] == 0
    follows = F.when(is_same_epoch, first["base_sequence"] == expected).otherwise(begins_anew)
    # What stands before a log that begins late is the snapshot's to know.
    alone = F.when(F.coalesce("begins_late", F.lit(False)), F.lit(True)).otherwise(begins_anew)
    by_sequence = F.when(before.isNull(), alone).otherwise(follows)
    is_sequenced = first["base_sequence"].isNotNull() & (before.isNull() | before["last_sequence"].isNotNull() | ~is_same_epoch)
    return F.when(F.coalesce(is_sequenced, F.lit(False)), by_sequence).otherwise(~F.coalesce("has_holes", F.lit(False)))


def alarms(opened: DataFrame, owned: DataFrame, findings: DataFrame) -> DataFrame:
    """Per open transaction: alarms, the names of findings of severity ERROR or CRITICAL that name its partition, its producer id or
    its transactional id; and is_disputed, whether copies of its partition disagree."""
    is_alarming = F.col("severity").isin(_ALARMING) | (F.col("name") == Finding.WRONG_COORDINATOR_PARTITION.value)
    alarming = findings.where(is_alarming).select(
        "name",
        F.col("topic").alias("of_topic"),
        F.col("partition").alias("of_partition"),
        F.col("producer_id").alias("of_producer_id"),
        F.col("transactional_id").alias("of_transactional_id"),
    )
    keyed = opened.select(*_IDENTITY).join(
        owned.select(*_IDENTITY, "transactional_id", "coordinator_partition"), on=list(_IDENTITY), how="left"
    )
    is_of_coordinator = F.col("of_topic") == TRANSACTION_STATE_TOPIC
    names = [
        (F.col("of_topic") == F.col("topic")) & (F.col("of_partition") == F.col("partition")),
        F.col("of_producer_id") == F.col("producer_id"),
        F.col("of_transactional_id") == F.col("transactional_id"),
        is_of_coordinator & (F.col("of_partition") == F.col("coordinator_partition")) & F.col("name").isin(_OF_COORDINATOR),
    ]
    matches = reduce(Column.__or__, [F.coalesce(each, F.lit(False)) for each in names])
    found = alarming.join(F.broadcast(keyed), on=matches, how="inner")
    is_dispute = (F.col("name") == Finding.COPIES_DISAGREE.value) & (F.col("of_topic") == F.col("topic"))
    return found.groupBy(*_IDENTITY).agg(
        F.sort_array(F.collect_set("name")).alias("alarms"), F.bool_or(is_dispute).alias("is_disputed")
    )
