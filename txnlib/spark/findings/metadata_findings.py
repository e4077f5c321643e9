"""Findings from the cluster's metadata log: unclean elections, producer ids of nobody, and what contradicts the log."""

from __future__ import annotations

from functools import partial, reduce
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.finding_catalogue import Finding
from txnlib.core.kafka.constants import CLUSTER_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from txnlib.spark.instants import clock_ms, instant
from txnlib.spark.joins import broadcast
from txnlib.spark.local_rows import local_rows
from txnlib.spark.producers.producer_spans import newest_spans
from txnlib.spark.schemas import PRODUCER, TOPIC_PARTITION


def metadata_findings(
    coverage: DataFrame,
    producer_spans: DataFrame,
    producer_id_owners: DataFrame,
    partition_assignments: DataFrame,
    producer_id_blocks: DataFrame,
    whole_metadata_ms: int | None,
    contradictions: tuple[str, ...],
) -> DataFrame:
    """One row per finding: name, topic, partition, offset, producer_id, transactional_id, evidence."""
    found = [
        _unclean_elections(partition_assignments),
        _contradicted_leaders(coverage),
        _contradicted_settings(coverage, contradictions),
        _copies_of_deleted_topics(coverage),
    ]
    if whole_metadata_ms is not None:
        found.append(_never_allocated(producer_spans, producer_id_owners, producer_id_blocks, whole_metadata_ms))
    return reduce(partial(DataFrame.unionByName, allowMissingColumns=True), found)


#: Producer ids that brokers may have been given between the end of the metadata log and the last copy: ten blocks.
_SINCE_THEN: Final = 10_000


def _unclean_elections(partition_assignments: DataFrame) -> DataFrame:
    """Kafka: the meter `UncleanLeaderElectionsPerSec`."""
    unclean = partition_assignments.where(F.col("is_unclean") & F.col("since_offset").isNotNull())
    says = F.format_string(
        f"{CLUSTER_METADATA_TOPIC} offset %d: broker %d elected at %s, leader epoch %d",
        "since_offset",
        "leader",
        F.col("since").cast("string"),
        "leader_epoch",
    )
    return unclean.select(F.lit(Finding.UNCLEAN_LEADER_ELECTION.name).alias("name"), *TOPIC_PARTITION, says.alias("evidence"))


def _contradicted_leaders(coverage: DataFrame) -> DataFrame:
    differing = coverage.where(F.col("noted_leader") != F.col("assigned_leader")).select(
        *TOPIC_PARTITION, "noted_leader", "assigned_leader", "leader"
    )
    says = F.format_string(
        "leader %s by capture.json, %s by the metadata log; used: %s", "noted_leader", "assigned_leader", "leader"
    )
    return differing.distinct().select(
        F.lit(Finding.CAPTURE_JSON_CONTRADICTED.name).alias("name"), *TOPIC_PARTITION, says.alias("evidence")
    )


def _contradicted_settings(coverage: DataFrame, contradictions: tuple[str, ...]) -> DataFrame:
    rows = [(Finding.CAPTURE_JSON_CONTRADICTED.name, says) for says in contradictions]
    return local_rows(coverage.sparkSession, rows, "name string, evidence string")


def _copies_of_deleted_topics(coverage: DataFrame) -> DataFrame:
    says = F.concat("source", F.lit(" has topic id "), F.coalesce("topic_id", F.lit("unknown")))
    return coverage.where("is_deleted").select(
        F.lit(Finding.COPY_OF_DELETED_TOPIC.name).alias("name"), *TOPIC_PARTITION, says.alias("evidence")
    )


def _never_allocated(
    producer_spans: DataFrame, producer_id_owners: DataFrame, producer_id_blocks: DataFrame, whole_metadata_ms: int
) -> DataFrame:
    """Producer ids beyond every block, in records that are older than the end of the metadata log.

    A client's time does not prove that. Without a broker's, the brokers would have to have used up several blocks since.
    Kafka: `ProducerIdManager`.
    """
    highest = producer_id_blocks.agg(F.coalesce(F.max("last_producer_id"), F.lit(-1).cast("long")).alias("highest"))
    stamped_ms = F.coalesce(F.when(F.col("is_broker_clock"), clock_ms("first_timestamp_ms")), clock_ms("marker_ms"))
    is_dated = F.coalesce(stamped_ms <= whole_metadata_ms, F.lit(False))
    on_partitions = newest_spans(producer_spans).select(
        *PRODUCER, F.coalesce("first_offset", "marker_offset").alias("offset"), is_dated.alias("is_dated")
    )
    at_coordinators = producer_id_owners.where(F.col("last_seen") <= instant(F.lit(whole_metadata_ms))).select(
        F.lit(TRANSACTION_STATE_TOPIC).alias("topic"),
        F.col("coordinator_partition").alias("partition"),
        "producer_id",
        F.col("last_record_offset").alias("offset"),
        "transactional_id",
        F.lit(True).alias("is_dated"),
    )
    used = on_partitions.unionByName(at_coordinators, allowMissingColumns=True)
    least = F.col("highest") + F.when(F.col("is_dated"), 0).otherwise(_SINCE_THEN)
    beyond = used.join(broadcast(highest)).where(F.col("producer_id") > least)
    says = F.concat(F.lit("the last producer id that the cluster handed out is "), "highest")
    return (
        beyond.withColumn("name", F.lit(Finding.PRODUCER_ID_NEVER_ALLOCATED.name))
        .withColumn("evidence", says)
        .drop("highest", "is_dated")
    )
