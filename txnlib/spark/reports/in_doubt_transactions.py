"""`in_doubt_transactions`: undecided transactions of two-phase commit, and what they hold."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.spark.core_udfs import application_of, kept_identity
from txnlib.spark.instants import clock_ms, instant
from txnlib.spark.joins import broadcast
from txnlib.spark.local_rows import settled
from txnlib.spark.schemas import IN_DOUBT_TRANSACTIONS, conform

_KEY: Final = ("transactional_id", "coordinator_partition", "transaction_number")
_SAME: Final = ("transactional_id", "producer_id", "producer_epoch", "open_since")


def undecided(transactions: DataFrame) -> DataFrame:
    """The transactions of two-phase commit that are not decided."""
    return transactions.where(F.col("is_two_phase_commit") & (F.col("outcome") == "OPEN"))


def in_doubt_transactions(
    transactions: DataFrame,
    transaction_outcomes: DataFrame,
    transaction_log: DataFrame,
    *,
    as_of_ms: int,
    in_doubt_after_ms: int,
    application_patterns: tuple[str, ...] = (),
    earlier_in_doubt: DataFrame | None = None,
) -> DataFrame:
    """One row per undecided two-phase commit. Columns: IN_DOUBT_TRANSACTIONS.

    `earlier_in_doubt`: the stored table of other runs of the cluster. Source: KIP-939.
    """
    opened = settled(undecided(transactions).drop("markers"))
    # Copies of a record may be several; text of some tools omits tagged fields.
    records = (
        transaction_log.where(F.col("topic") == TRANSACTION_STATE_TOPIC)
        .select(
            "transactional_id",
            F.col("partition").alias("coordinator_partition"),
            F.col("offset").alias("last_record_offset"),
            "next_producer_id",
            "next_producer_epoch",
            "last_update_ms",
        )
        .join(
            broadcast(opened.select("transactional_id", "coordinator_partition", "last_record_offset")),
            on=["transactional_id", "coordinator_partition", "last_record_offset"],
            how="left_semi",
        )
        .groupBy("transactional_id", "coordinator_partition")
        .agg(
            F.max("next_producer_id").alias("next_producer_id"),
            F.max("next_producer_epoch").alias("next_producer_epoch"),
            F.max("last_update_ms").alias("last_update_ms"),
        )
    )
    held = (
        transaction_outcomes.join(broadcast(opened.select(*_KEY)), on=list(_KEY), how="left_semi")
        .groupBy(*_KEY)
        .agg(F.sum("records").alias("records"), F.sum("bytes").alias("bytes"))
    )
    joined = (
        opened.join(records, on=["transactional_id", "coordinator_partition"], how="left")
        .join(held, on=list(_KEY), how="left")
        .withColumn("open_since", F.col("start"))
    )
    if earlier_in_doubt is None:
        joined = joined.withColumns({"earliest": F.lit(None).cast("timestamp"), "earlier_runs": F.lit(0)})
    else:
        seen = earlier_in_doubt.groupBy(*_SAME).agg(
            F.min("as_of").alias("earliest"), F.count_distinct("run_id").cast("int").alias("earlier_runs")
        )
        joined = joined.join(broadcast(seen), on=list(_SAME), how="left")
    as_of = instant(F.lit(as_of_ms))
    open_ms = F.greatest(F.lit(as_of_ms) - F.unix_millis("start"), F.lit(0))
    kept = kept_identity()("producer_id", "producer_epoch", "next_producer_id", "next_producer_epoch")
    shown = {
        "as_of": as_of,
        "last_update": instant(clock_ms("last_update_ms")),
        "open_ms": open_ms,
        "is_overdue": F.coalesce(open_ms > in_doubt_after_ms, F.lit(True)),
        "is_kept": F.col("next_producer_epoch") >= 0,
        "kept": kept,
        "application": application_of(application_patterns)("transactional_id"),
        "first_seen": F.coalesce("earliest", as_of),
        "runs_seen": (F.lit(1) + F.coalesce("earlier_runs", F.lit(0))).cast("int"),
    }
    identity = {"kept_producer_id": F.col("kept.producer_id"), "kept_producer_epoch": F.col("kept.producer_epoch")}
    return conform(joined.withColumns(shown).withColumns(identity), IN_DOUBT_TRANSACTIONS)
