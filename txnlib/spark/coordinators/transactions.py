"""`transactions`: how each transaction ended, by whom, and its markers."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.core.findings.ended_by import REINITIALIZED_WITHIN_MS, EndedBy
from txnlib.core.kafka.constants import TRANSACTION_VERSION
from txnlib.core.kafka.transaction_state import ACTIVE_STATES, COMPLETE_STATES, PREPARED_STATES, TransactionState
from txnlib.spark import windows
from txnlib.spark.coordinators.transaction_markers import decision_markers
from txnlib.spark.coordinators.transactional_ids import is_two_phase_commit
from txnlib.spark.core_udfs import ended_by
from txnlib.spark.instants import clock_ms, instant, is_shown
from txnlib.spark.joins import broadcast
from txnlib.spark.local_rows import settled
from txnlib.spark.schemas import TRANSACTIONS, conform

_ONGOING: Final = TransactionState.ONGOING.kafka_name
_INSTANCE: Final = ("transactional_id", "coordinator_partition", "transaction_number")
#: When a row was decided, in ms: the time in its Prepare record, else the append time of that record. SQL.
DECIDED_MS: Final = "coalesce(unix_millis(start) + time_to_decide_ms, unix_millis(prepared))"


def transactions(
    coordinator_states: DataFrame,
    producer_spans: DataFrame,
    coverage: DataFrame,
    cluster_settings: DataFrame,
    *,
    transaction_version: int | None = None,
) -> DataFrame:
    """One row per transaction of a transactional id, from its surviving records. Columns: TRANSACTIONS.

    Its identity is (id, first record), because many transactions share an epoch in transactions v0 and v1. The update time of a
    Complete record is when its Prepare was acknowledged, so `completed` is the append time of the record
    (docs/rules/transactions.md#times-in-coordinator-records).
    `transaction_version`: the level of that feature now; the metadata log shows earlier ones.
    """
    ended = settled(_with_level(_with_ending(_instances(coordinator_states)), cluster_settings, transaction_version))
    with_transactions = coordinator_states.where(F.col("transaction_number").isNotNull()).select("producer_id")
    markers = decision_markers(ended, producer_spans.join(with_transactions, on="producer_id", how="left_semi"), coverage)
    return conform(ended.join(markers, on=list(_INSTANCE), how="left"), TRANSACTIONS)


def _with_level(transactions: DataFrame, cluster_settings: DataFrame, now: int | None) -> DataFrame:
    """The transactions with the level of `transaction.version` at the end of each."""
    levels = cluster_settings.where((F.col("scope") == "FEATURE") & (F.col("name") == TRANSACTION_VERSION)).agg(
        F.collect_list(F.struct("since", "until", F.col("value").cast("int").alias("level"))).alias("levels")
    )
    ended = F.coalesce("prepared", "completed")

    def applies(level: Column) -> Column:
        has_begun = F.coalesce(level["since"] <= ended, level["since"].isNull())
        return has_begun & F.coalesce(ended < level["until"], level["until"].isNull())

    then = F.try_element_at(F.filter("levels", applies), F.lit(1))["level"]
    level = F.coalesce(F.when(ended.isNotNull(), then), F.lit(now).cast("int"))
    return transactions.join(broadcast(levels), how="left").withColumn("cluster_transaction_version", level)


def _instances(coordinator_states: DataFrame) -> DataFrame:
    """The records of each transaction as one row."""
    following = F.lead(F.struct("state", "last_update_ms")).over(windows.records_of_id())
    records = coordinator_states.withColumn("next", following).where(F.col("transaction_number").isNotNull())
    is_ongoing = F.col("state") == _ONGOING
    is_prepared = F.col("state").isin([s.kafka_name for s in PREPARED_STATES])
    is_complete = F.col("state").isin([s.kafka_name for s in COMPLETE_STATES])
    is_active = F.col("state").isin([s.kafka_name for s in ACTIVE_STATES])
    ongoing_offset, prepared_offset = F.when(is_ongoing, F.col("offset")), F.when(is_prepared, F.col("offset"))
    # A value of version 1 omits a client version of 0; older text prints neither.
    client_version = F.when(F.col("value_version").isNotNull(), F.coalesce("client_transaction_version", F.lit(0)))
    # A record contains the time of the decision; if no clock shows that time, its append time counts.
    decided_ms = F.when(~is_shown("last_update_ms"), clock_ms("timestamp_ms")).otherwise(F.col("last_update_ms"))
    return records.groupBy(*_INSTANCE).agg(
        F.min_by("producer_id", "offset").alias("producer_id"),
        F.min_by("producer_epoch", "offset").alias("producer_epoch"),
        F.max_by("state", "offset").alias("state"),
        F.min(clock_ms("start_ms")).alias("start_ms"),
        F.max(F.when(is_prepared, clock_ms("timestamp_ms"))).alias("prepared_ms"),
        F.min(F.when(is_prepared, decided_ms)).alias("decided_ms"),
        F.min(F.when(is_complete, clock_ms("last_update_ms"))).alias("acknowledged_ms"),
        F.max(F.when(is_complete, clock_ms("timestamp_ms"))).alias("completed_ms"),
        F.max_by("partitions", F.when(is_active, F.col("offset"))).alias("partitions"),
        F.max_by("transaction_timeout_ms", "offset").alias("transaction_timeout_ms"),
        F.max("client_transaction_version").alias("transaction_version"),
        F.min("offset").alias("first_record_offset"),
        F.max("offset").alias("last_record_offset"),
        F.max_by("producer_epoch", ongoing_offset).alias("ongoing_epoch"),
        # An Ongoing record that adds offsets may contain 0 although the client uses version 2.
        F.max(F.when(is_ongoing, client_version)).alias("client_version"),
        F.max_by("producer_id", prepared_offset).alias("decided_producer_id"),
        F.max_by("producer_epoch", prepared_offset).alias("decided_epoch"),
        F.max_by("coordinator_epoch", prepared_offset).alias("decided_coordinator_epoch"),
        F.bool_or(is_prepared & (F.col("legality") == "TRANSACTIONS_V2")).alias("is_without_ongoing"),
        clock_ms(F.max_by("timestamp_ms", "offset")).alias("last_ms"),
        F.max_by("next", "offset").alias("next"),
    )


def _with_ending(instances: DataFrame) -> DataFrame:
    decision = F.when(F.col("state").endswith("Commit"), "COMMIT").when(F.col("state").endswith("Abort"), "ABORT").otherwise("OPEN")
    follows_ms = clock_ms("next.last_update_ms") - F.col("last_ms")
    is_reinitialized = (F.col("next.state") == TransactionState.EMPTY.kafka_name) & (follows_ms <= REINITIALIZED_WITHIN_MS)
    aborted_by = ended_by()(
        F.struct(
            F.lit(False).alias("is_commit"),
            "ongoing_epoch",
            F.col("decided_epoch").alias("prepared_epoch"),
            "client_version",
            F.coalesce("is_without_ongoing", F.lit(False)).alias("is_without_ongoing"),
            (F.col("decided_ms") - F.col("start_ms")).alias("open_ms"),
            F.col("transaction_timeout_ms").alias("timeout_ms"),
            F.coalesce(is_reinitialized, F.lit(False)).alias("is_reinitialized"),
        )
    )
    return instances.withColumn("outcome", decision).withColumns(
        {
            "start": instant("start_ms"),
            "prepared": instant("prepared_ms"),
            "completed": instant("completed_ms"),
            "decided": instant(F.coalesce("decided_ms", "acknowledged_ms")),
            "ended_by": F.when(F.col("outcome") == "COMMIT", EndedBy.CLIENT.value).when(F.col("outcome") == "ABORT", aborted_by),
            "time_to_decide_ms": F.col("decided_ms") - F.col("start_ms"),
            "time_to_write_markers_ms": F.col("completed_ms") - F.col("decided_ms"),
            "is_two_phase_commit": is_two_phase_commit(),
        }
    )
