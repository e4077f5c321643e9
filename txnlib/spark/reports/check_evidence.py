"""Evidence against the records of an open transaction: broken sequences, wrong CRCs, findings."""

from __future__ import annotations

from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.core.finding_catalogue import Finding, Severity
from txnlib.core.kafka.constants import MAX_SEQUENCE, TRANSACTION_STATE_TOPIC
from txnlib.spark.joins import broadcast
from txnlib.spark.schemas import OPEN_TRANSACTION

_ALARMING: Final = [Severity.ERROR.name, Severity.CRITICAL.name]
#: Findings about a coordinator partition, or an id, that cast doubt on its other records, too.
_OF_COORDINATOR: Final = [Finding.COORDINATOR_EPOCH_WENT_BACK.name, Finding.COPIES_DISAGREE.name]


def start_checks(opened: DataFrame, checked_batches: DataFrame) -> DataFrame:
    """Per open transaction: crc and is_start_proven.

    crc: the result of the CRC checks of its batches. is_start_proven: no batch of the producer can be missing below its first one.
    The sequences of a producer are consecutive within an epoch, starting at 0. If they are not, or if there are none and the copy
    has holes or damage, an earlier batch of the transaction may be missing.

    `opened`: OPEN_TRANSACTION, source, begins_late, copy_gap_offset, partition_damaged_offset.
    """
    key = [*OPEN_TRANSACTION, "source"]
    is_refuted = F.bool_or(~F.col("is_crc_valid"))
    is_checked = F.bool_and(F.coalesce("is_crc_valid", F.lit(False)))
    of = {
        place: F.max(F.when(F.col("place") == place, F.struct("producer_epoch", "base_sequence", "last_sequence"))).alias(place)
        for place in ("before", "first")
    }
    summed = checked_batches.groupBy(*key).agg(
        F.when(is_refuted, "INVALID").when(is_checked, "VALID").otherwise("NOT_CHECKED").alias("crc"), *of.values()
    )
    has_holes = F.col("copy_gap_offset").isNotNull() | F.col("partition_damaged_offset").isNotNull()
    joined = opened.select(*key, "begins_late", has_holes.alias("has_holes")).join(summed, on=key, how="left")
    return joined.select(
        *OPEN_TRANSACTION, F.coalesce("crc", F.lit("NOT_CHECKED")).alias("crc"), _follows().alias("is_start_proven")
    )


def _follows() -> Column:
    before, first = F.col("before"), F.col("first")
    expected = F.when(before["last_sequence"] == MAX_SEQUENCE, 0).otherwise(before["last_sequence"] + 1)
    is_same_epoch = before["producer_epoch"] == first["producer_epoch"]
    begins_at_zero = first["base_sequence"] == 0
    follows = F.when(is_same_epoch, first["base_sequence"] == expected).otherwise(begins_at_zero)
    # If the log begins late, its snapshot shows what came before.
    alone = F.when(F.coalesce("begins_late", F.lit(False)), F.lit(True)).otherwise(begins_at_zero)
    by_sequence = F.when(before.isNull(), alone).otherwise(follows)
    is_sequenced = first["base_sequence"].isNotNull() & (before.isNull() | before["last_sequence"].isNotNull() | ~is_same_epoch)
    return F.when(F.coalesce(is_sequenced, F.lit(False)), by_sequence).otherwise(~F.col("has_holes"))


def alarms(opened: DataFrame, owned: DataFrame, findings: DataFrame) -> DataFrame:
    """Per open transaction: alarms, is_disputed and is_never_allocated.

    alarms: the names of findings with severity ERROR or CRITICAL about its partition, its producer id or its transactional id.
    is_disputed: copies of its partition disagree. is_never_allocated: the cluster never handed out its producer id.

    `opened`: OPEN_TRANSACTION. `owned`: the same with transactional_id and coordinator_partition.
    """
    is_alarming = F.col("severity").isin(_ALARMING) | (F.col("name") == Finding.WRONG_COORDINATOR_PARTITION.name)
    is_unallocated = F.col("name") == Finding.PRODUCER_ID_NEVER_ALLOCATED.name
    alarming = findings.where(is_alarming | is_unallocated).select(
        "name",
        is_alarming.alias("is_alarming"),
        F.col("topic").alias("of_topic"),
        F.col("partition").alias("of_partition"),
        F.col("producer_id").alias("of_producer_id"),
        F.col("transactional_id").alias("of_transactional_id"),
    )
    ids = owned.select(*OPEN_TRANSACTION, "transactional_id", "coordinator_partition")
    keyed = opened.select(*OPEN_TRANSACTION).join(broadcast(ids), on=list(OPEN_TRANSACTION), how="left")
    is_of_coordinator = F.col("of_topic") == TRANSACTION_STATE_TOPIC
    names = [
        (F.col("of_topic") == F.col("topic")) & (F.col("of_partition") == F.col("partition")),
        F.col("of_producer_id") == F.col("producer_id"),
        F.col("of_transactional_id") == F.col("transactional_id"),
        is_of_coordinator & (F.col("of_partition") == F.col("coordinator_partition")) & F.col("name").isin(_OF_COORDINATOR),
    ]
    matches = reduce(Column.__or__, [F.coalesce(each, F.lit(False)) for each in names])
    matched = alarming.join(broadcast(keyed), on=matches, how="inner")
    is_dispute = (F.col("name") == Finding.COPIES_DISAGREE.name) & (F.col("of_topic") == F.col("topic"))
    return matched.groupBy(*OPEN_TRANSACTION).agg(
        F.sort_array(F.collect_set(F.when(F.col("is_alarming"), F.col("name")))).alias("alarms"),
        F.bool_or(is_dispute).alias("is_disputed"),
        F.bool_or(is_unallocated & (F.col("of_producer_id") == F.col("producer_id"))).alias("is_never_allocated"),
    )
