"""Findings in the coordinators' logs.

Spark selects what may be odd, the core judges it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.copies import CoverageRow
from txnlib.core.findings.contradictions import highest_producer_id
from txnlib.core.findings.coordinator_records import (
    LEFT_BEHIND_AFTER_MS,
    ClaimedProducerId,
    LoggedId,
    deleted_partitions,
    of_abandoned_ids,
    of_ids,
    of_owners,
    of_records,
)
from txnlib.core.kafka.constants import TWO_PHASE_COMMIT_TIMEOUTS
from txnlib.core.kafka.transaction_state import ACTIVE_STATES, TransactionState
from txnlib.core.metadata import PartitionAssignment, ProducerIdBlock
from txnlib.spark import windows
from txnlib.spark.coordinators.transactional_ids import last_records
from txnlib.spark.core_rows import rows_by_core
from txnlib.spark.instants import clock_ms

_ID: Final = ("transactional_id", "coordinator_partition")
_ACTIVE: Final = [state.kafka_name for state in ACTIVE_STATES]


def odd_records(coordinator_states: DataFrame) -> DataFrame:
    """The records with findings."""
    return coordinator_states.where(F.size("findings") > 0)


def id_findings(
    coordinator_states: DataFrame,
    coverage: Sequence[CoverageRow],
    partition_assignments: Sequence[PartitionAssignment],
    *,
    coordinator_partitions: int,
    transaction_max_timeout_ms: int,
) -> DataFrame | pa.Table:
    """Findings about transactional ids, from the last record of each."""
    deleted = deleted_partitions(coverage, partition_assignments)
    judge = partial(of_ids, coordinator_partitions=coordinator_partitions, deleted=deleted)
    return rows_by_core("findings", logged_ids(coordinator_states, transaction_max_timeout_ms), LoggedId, judge)


def logged_ids(coordinator_states: DataFrame, transaction_max_timeout_ms: int) -> DataFrame:
    """All transactional ids, because the core computes their hashes."""
    timeout = F.col("transaction_timeout_ms")
    is_refused = ~timeout.isin(*TWO_PHASE_COMMIT_TIMEOUTS) & ((timeout <= 0) | (timeout > transaction_max_timeout_ms))
    refused = F.max(F.when(is_refused, F.struct("offset", "producer_id", "transaction_timeout_ms"))).alias("refused")
    listed = F.when(F.col("state").isin(_ACTIVE), F.col("partitions"))
    return last_records(coordinator_states, refused).withColumnRenamed("record_offset", "offset").withColumn("partitions", listed)


def owner_findings(
    producer_id_owners: DataFrame, producer_id_blocks: Sequence[ProducerIdBlock], *, whole_metadata_ms: int | None
) -> DataFrame | pa.Table:
    """Findings about producer ids by the records of coordinators."""
    highest = highest_producer_id(producer_id_blocks, whole_metadata_ms)
    judge = partial(of_owners, highest=highest, whole_metadata_ms=whole_metadata_ms)
    return rows_by_core("findings", claimed_producer_ids(producer_id_owners, highest), ClaimedProducerId, judge)


def claimed_producer_ids(producer_id_owners: DataFrame, highest: int | None) -> DataFrame:
    """The producer ids with several owners, and those above the highest that was handed out, if that is known."""
    claim = F.struct("producer_id", *_ID, "last_record_offset", "last_seen")
    is_odd = F.size(F.array_distinct("claims.transactional_id")) > 1
    if highest is not None:
        is_odd = is_odd | (F.col("producer_id") > highest)
    return producer_id_owners.groupBy("producer_id").agg(F.collect_list(claim).alias("claims")).where(is_odd)


def abandoned_ids(coordinator_states: DataFrame, transactional_ids: DataFrame) -> DataFrame:
    """The applications with several ids that were initialised only once.

    Only ids whose records begin with their first initialisation count, so that no earlier record is missing.
    """
    is_empty = F.col("state") == TransactionState.EMPTY.kafka_name
    used_ms = F.when(~F.col("is_tombstone"), clock_ms("timestamp_ms"))
    begun = (
        coordinator_states.groupBy(*_ID)
        .agg(
            F.min_by(is_empty & (F.col("producer_epoch") == 0), "offset").alias("is_begun"),
            F.count_if(is_empty).alias("initialisations"),
            F.coalesce(F.max("transaction_number"), F.lit(0)).alias("transactions"),
            F.coalesce(F.max_by(F.col("state").isin(_ACTIVE), "offset"), F.lit(False)).alias("is_active"),
            F.min(used_ms).alias("first_ms"),
            F.max(used_ms).alias("last_ms"),
            F.max("offset").alias("offset"),
        )
        .where("is_begun")
        .join(transactional_ids.select(*_ID, "application"), on=list(_ID), how="inner")
        .withColumn("newest_ms", F.max("first_ms").over(windows.ids_of_application()))
    )
    is_once = (F.col("initialisations") == 1) & (F.col("transactions") <= 1) & ~F.col("is_active")
    last = F.max_by(F.struct("coordinator_partition", "offset", "transactional_id"), "last_ms").alias("last")
    return (
        begun.where(is_once & (F.col("last_ms") + LEFT_BEHIND_AFTER_MS <= F.col("newest_ms")))
        .groupBy("application")
        .agg(F.count("*").alias("count"), F.min("first_ms").alias("from_ms"), F.max("last_ms").alias("to_ms"), last)
        .where("count > 1")
        .select("application", "count", "from_ms", "to_ms", "last.*")
    )


#: What is selected here, and the function of the core that makes findings of it.
RULES: Final = (
    (odd_records, of_records),
    (abandoned_ids, of_abandoned_ids),
)
