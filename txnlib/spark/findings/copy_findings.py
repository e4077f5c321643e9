"""Findings about copies of a partition that disagree below their high watermarks.

Ranges of offsets are compared by fingerprint first, and batch by batch only if the fingerprints differ. So copies that agree cost
one pass.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.core.finding_catalogue import Finding
from txnlib.spark.batch_runs import batch_hash, single_batches
from txnlib.spark.joins import broadcast
from txnlib.spark.local_rows import settled
from txnlib.spark.offset_buckets import bucket_of
from txnlib.spark.schemas import COPY, TOPIC_PARTITION

#: Fields that compaction does not change, and every tool prints.
COMPARED: Final = (
    "last_offset",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "is_transactional",
    "is_control",
    "partition_leader_epoch",
)
_SHOWN: Final = 3


#: Fields of a coordinator's record that every tool prints.
_COMPARED_RECORD: Final = ("transactional_id", "is_tombstone", "state", "producer_id", "producer_epoch", "partitions")


def copy_findings(record_batches: DataFrame, transaction_log: DataFrame, coverage: DataFrame) -> DataFrame:
    """One row per partition whose copies disagree: name, topic, partition, producer_id, offset, evidence.

    Batches are compared by their headers, coordinators' records by what is decoded. A batch counts only below the high watermark of
    its own copy, if that is known: batches above it may still be truncated. A batch that only one copy has is no disagreement,
    because copies begin, end and are compacted independently.
    """
    return _of_batches(record_batches, coverage).unionByName(_of_records(transaction_log, coverage))


def _of_records(transaction_log: DataFrame, coverage: DataFrame) -> DataFrame:
    """Coordinator partitions with copies that have different records at one offset and leader epoch: they are of different logs."""
    living = coverage.where(F.col("source").isNotNull() & ~F.coalesce("is_deleted", F.lit(False))).select(*COPY)
    key = [*TOPIC_PARTITION, "offset", "coordinator_epoch"]
    records = transaction_log.where(F.col("coordinator_epoch").isNotNull() & (F.col("offset") >= 0)).join(
        broadcast(living), on=list(COPY), how="left_semi"
    )
    sorted_ = records.withColumn("partitions", F.sort_array("partitions"))
    said = F.concat("source", F.lit(" "), F.to_json(F.struct(*_COMPARED_RECORD)))
    compared = (
        sorted_.groupBy(*key)
        .agg(
            _differs(_COMPARED_RECORD).alias("differs"),
            F.max("producer_id").alias("producer_id"),
            F.slice(F.sort_array(F.collect_set(said)), 1, _SHOWN).alias("said"),
        )
        .where("differs")
    )
    first = compared.groupBy(*TOPIC_PARTITION).agg(
        F.min(F.struct("offset", "producer_id", "said")).alias("first"), F.count("*").alias("count")
    )
    return first.select(
        F.lit(Finding.COPIES_DISAGREE.name).alias("name"),
        *TOPIC_PARTITION,
        "first.producer_id",
        "first.offset",
        F.concat(F.array_join("first.said", "; "), _more()).alias("evidence"),
    )


def _more() -> Column:
    more = F.when(F.col("count") > 1, F.concat(F.lit("; and "), F.col("count") - 1, F.lit(" more offsets")))
    return F.coalesce(more, F.lit(""))


def _of_batches(record_batches: DataFrame, coverage: DataFrame) -> DataFrame:
    rows = _comparable(record_batches, coverage)
    fields = F.struct(*COMPARED, "control_type")
    prints = rows.groupBy(*COPY, "bucket").agg(F.bit_xor("hash").alias("print"))
    differing = prints.groupBy(*TOPIC_PARTITION, "bucket").agg(F.min("print").alias("least"), F.max("print").alias("most"))
    suspects = settled(differing.where(F.col("least") != F.col("most")).select(*TOPIC_PARTITION, "bucket"))
    compared = (
        single_batches(rows.join(broadcast(suspects), on=[*TOPIC_PARTITION, "bucket"], how="left_semi"), F.lit(True))
        .groupBy(*TOPIC_PARTITION, "base_offset")
        .agg(
            # Not all tools print all fields, and NULL is no contradiction.
            _differs((*COMPARED, "control_type")).alias("differs"),
            F.max("producer_id").alias("producer_id"),
            F.slice(F.sort_array(F.collect_set(F.struct("source", F.to_json(fields).alias("batch")))), 1, _SHOWN).alias("batches"),
        )
        .where("differs")
    )
    first = compared.groupBy(*TOPIC_PARTITION).agg(
        F.min(F.struct("base_offset", "producer_id", "batches")).alias("first"), F.count("*").alias("count")
    )
    said = F.transform("first.batches", lambda copy: F.concat(copy["source"], F.lit(" "), copy["batch"]))
    return first.select(
        F.lit(Finding.COPIES_DISAGREE.name).alias("name"),
        *TOPIC_PARTITION,
        "first.producer_id",
        F.col("first.base_offset").alias("offset"),
        F.concat(F.array_join(said, "; "), _more()).alias("evidence"),
    )


def _comparable(record_batches: DataFrame, coverage: DataFrame) -> DataFrame:
    """The batches of partitions with several copies, each below its copy's high watermark."""
    copies = coverage.where(F.col("source").isNotNull() & ~F.coalesce("is_deleted", F.lit(False)))
    several = copies.groupBy(*TOPIC_PARTITION).agg(F.count("*").alias("count")).where("count > 1").drop("count")
    bounds = copies.join(several, on=list(TOPIC_PARTITION), how="left_semi").select(*COPY, "high_watermark")
    is_stable = F.coalesce(F.col("last_offset") < F.col("high_watermark"), F.lit(True))
    # The batches of a run are not all stable if the high watermark is above its beginning and not above its end.
    is_divided = F.coalesce((F.col("base_offset") < F.col("high_watermark")) & ~is_stable, F.lit(False))
    each = single_batches(record_batches.join(broadcast(bounds), on=list(COPY), how="inner"), is_divided)
    compared = (*COPY, "base_offset", *COMPARED, "control_type")
    runs = ("batches_count", "packed_batches")
    return each.where(is_stable).select(*compared, *runs, bucket_of("base_offset"), batch_hash().alias("hash"))


def _differs(names: tuple[str, ...]) -> Column:
    differs = F.lit(False)
    for name in names:
        differs = differs | F.coalesce(F.min(name) != F.max(name), F.lit(False))
    return differs
