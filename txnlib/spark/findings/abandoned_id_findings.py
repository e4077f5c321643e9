"""Findings about applications and partitions whose ids are used once and abandoned."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.core.finding_catalogue import Finding, Severity
from txnlib.core.findings.abandoned_ids import FEW, LEFT_BEHIND_AFTER_MS, MANY_PRODUCER_IDS, MANY_TRANSACTIONAL_IDS
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.kafka.transaction_state import ACTIVE_STATES, TransactionState
from txnlib.spark.core_udfs import application_of
from txnlib.spark.instants import clock_ms, instant
from txnlib.spark.joins import broadcast
from txnlib.spark.local_rows import settled
from txnlib.spark.producers.producer_spans import newest_spans
from txnlib.spark.schemas import TOPIC_PARTITION

_FOUND = ("name", *TOPIC_PARTITION, "offset", "producer_id", "transactional_id", "severity", "evidence")


def abandoned_id_findings(
    coordinator_states: DataFrame, producer_spans: DataFrame, application_patterns: tuple[str, ...]
) -> DataFrame:
    """One row per application, and per partition, with abandoned ids. Limits: `core.findings.abandoned_ids`.

    Columns: name, topic, partition, offset, producer_id, transactional_id, severity, evidence.
    """
    ids = _transactional_ids(coordinator_states, application_patterns)
    return ids.unionByName(_producer_ids(producer_spans), allowMissingColumns=True).select(*_FOUND)


def _transactional_ids(coordinator_states: DataFrame, application_patterns: tuple[str, ...]) -> DataFrame:
    """The finding for transactional ids that were initialised only once.

    Only ids whose records begin with their first initialisation count, so that no earlier record is missing.
    """
    is_empty = F.col("state") == TransactionState.EMPTY.kafka_name
    used_ms = F.when(~F.col("is_tombstone"), clock_ms("timestamp_ms"))
    active = [state.kafka_name for state in ACTIVE_STATES]
    begun = settled(
        coordinator_states.groupBy("transactional_id", "coordinator_partition")
        .agg(
            F.min_by(is_empty & (F.col("producer_epoch") == 0), "offset").alias("is_begun"),
            F.count_if(is_empty).alias("initialisations"),
            F.coalesce(F.max("transaction_number"), F.lit(0)).alias("transactions"),
            F.coalesce(F.max_by(F.col("state").isin(active), "offset"), F.lit(False)).alias("is_active"),
            F.min(used_ms).alias("first_ms"),
            F.max(used_ms).alias("last_ms"),
            F.max("offset").alias("offset"),
        )
        .where("is_begun")
        .withColumn("application", application_of(application_patterns)("transactional_id"))
    )
    newest = begun.groupBy("application").agg(F.max("first_ms").alias("newest_ms"))
    is_once = (F.col("initialisations") == 1) & (F.col("transactions") <= 1) & ~F.col("is_active")
    left = begun.where(is_once).join(newest, on="application", how="inner").where(_is_left_behind())
    counted = left.groupBy("application").agg(
        F.count("*").alias("count"),
        F.max_by(F.struct("coordinator_partition", "offset", "transactional_id"), "last_ms").alias("last"),
        *_period(),
    )
    said = F.concat(
        F.col("count"),
        F.lit(" transactional ids of application "),
        F.col("application"),
        F.lit(", each initialised once and used for at most one transaction, from "),
        _between(),
    )
    return counted.where(F.col("count") >= MANY_TRANSACTIONAL_IDS // FEW).select(
        F.lit(Finding.TRANSACTIONAL_IDS_NOT_REUSED.name).alias("name"),
        F.lit(TRANSACTION_STATE_TOPIC).alias("topic"),
        F.col("last.coordinator_partition").alias("partition"),
        "last.offset",
        F.lit(None).cast("long").alias("producer_id"),
        "last.transactional_id",
        _severity(MANY_TRANSACTIONAL_IDS).alias("severity"),
        said.alias("evidence"),
    )


def _producer_ids(producer_spans: DataFrame) -> DataFrame:
    """The finding for producer ids outside transactions that wrote only one batch: of epoch 0, from sequence 0 on."""
    state = F.col("state")
    is_first_batch = (state["producer_epoch"] == 0) & (state["last_sequence"] == state["offset_delta"])
    is_plain = F.col("marker_offset").isNull() & F.col("first_offset").isNull() & (F.col("span") == 0)
    once = (
        newest_spans(producer_spans)
        .where(is_first_batch & is_plain)
        .select(
            *TOPIC_PARTITION,
            "producer_id",
            state["last_offset"].alias("offset"),
            clock_ms(state["last_timestamp"]).alias("first_ms"),
            clock_ms(state["last_timestamp"]).alias("last_ms"),
        )
    )
    newest = once.groupBy(*TOPIC_PARTITION).agg(F.max("first_ms").alias("newest_ms"))
    left = settled(once.join(broadcast(newest), on=list(TOPIC_PARTITION), how="inner").where(_is_left_behind()))
    counted = left.groupBy(*TOPIC_PARTITION).agg(
        F.count("*").alias("count"), F.max_by(F.struct("offset", "producer_id"), "last_ms").alias("last"), *_period()
    )
    said = F.concat(F.col("count"), F.lit(" producer ids with one batch each, by their clients' clocks from "), _between())
    return counted.where(F.col("count") >= MANY_PRODUCER_IDS // FEW).select(
        F.lit(Finding.PRODUCER_IDS_NOT_REUSED.name).alias("name"),
        *TOPIC_PARTITION,
        "last.offset",
        "last.producer_id",
        F.lit(None).cast("string").alias("transactional_id"),
        _severity(MANY_PRODUCER_IDS).alias("severity"),
        said.alias("evidence"),
    )


def _is_left_behind() -> Column:
    """Whether an id was abandoned: a newer id was created at least LEFT_BEHIND_AFTER_MS after its last use."""
    return F.col("last_ms") + LEFT_BEHIND_AFTER_MS <= F.col("newest_ms")


def _period() -> tuple[Column, Column]:
    return F.min("first_ms").alias("from_ms"), F.max("last_ms").alias("to_ms")


def _between() -> Column:
    return F.concat(instant("from_ms").cast("string"), F.lit(" to "), instant("to_ms").cast("string"))


def _severity(many: int) -> Column:
    """The severity of this number of abandoned ids."""
    return F.when(F.col("count") >= many, Severity.WARNING.name).otherwise(Severity.INFO.name)
