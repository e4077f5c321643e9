"""What became of the open transactions that an earlier audit warned of, and that are open no longer?"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.spark.schemas import ENDED_TRANSACTIONS, PRODUCER, TOPIC_PARTITION, conform

_IDENTITY: Final = (*PRODUCER, "start_offset")
#: What is told of the run that saw it last.
_THEN: Final = {"transactional_id": "transactional_id", "verdict": "verdict", "reason": "reason", "run_id": "run_id_then"}


def ended_transactions(
    earlier: DataFrame,
    open_transactions: DataFrame,
    producer_spans: DataFrame,
    transactions: DataFrame,
    coverage: DataFrame,
    *,
    as_of_ms: int,
) -> DataFrame:
    """One row per transaction that the run before called anything but OPEN, and that is not open now. Columns: ENDED_TRANSACTIONS.

    `earlier` is the stored `open_transactions` of earlier runs of the cluster, with `run_id`; the newest of them counts. A
    marker that no decision accounts for is one by hand: an abort that took effect.
    """
    newest = earlier.agg(F.max("as_of").alias("as_of"))
    warned = (
        earlier.join(F.broadcast(newest), on="as_of", how="left_semi")
        .where(F.col("verdict") != "OPEN")
        .select(*_IDENTITY, *[F.col(name).alias(alias) for name, alias in _THEN.items()], F.col("as_of").alias("last_seen"))
    )
    gone = warned.join(open_transactions.select(*_IDENTITY), on=list(_IDENTITY), how="left_anti")
    spans = producer_spans.where(F.col("marker_offset").isNotNull()).select(
        *PRODUCER, F.col("first_offset").alias("start_offset"), "marker_offset", "marker_type", "marker_ms"
    )
    decided = transactions.select("producer_id", F.inline("markers")).where(F.col("marker_offset").isNotNull())
    decided = decided.select(*PRODUCER, "marker_offset", F.lit(True).alias("is_decided")).distinct()
    judged = coverage.where("is_judged").select(*TOPIC_PARTITION, "log_start_offset", "end_offset")
    told = (
        gone.join(spans, on=list(_IDENTITY), how="left")
        .join(decided, on=[*PRODUCER, "marker_offset"], how="left")
        .join(F.broadcast(judged), on=list(TOPIC_PARTITION), how="left")
        .withColumn("how", _how())
    )
    return conform(
        told.withColumns(
            {
                "as_of": F.timestamp_millis(F.lit(as_of_ms)),
                "ended_at": F.timestamp_millis("marker_ms"),
                "outcome": F.col("marker_type"),
                "says": _says(),
            }
        ),
        ENDED_TRANSACTIONS,
    )


def _how() -> Column:
    return (
        F.when(F.col("is_decided"), "DECIDED")
        .when(F.col("marker_offset").isNotNull(), "BY_HAND")
        .when(F.col("end_offset").isNull(), "NOT_CAPTURED")
        .when(F.col("start_offset") < F.col("log_start_offset"), "LOG_START_MOVED")
        .otherwise("GONE")
    )


def _says() -> Column:
    """How it ended, as a sentence."""
    marker = F.concat(F.col("marker_type"), F.lit(" marker at offset "), F.col("marker_offset"))
    texts = {
        "DECIDED": F.concat(F.lit("ended by its coordinator's "), marker),
        "BY_HAND": F.concat(F.lit("ended by hand: "), marker, F.lit(", which no coordinator decided")),
        "NOT_CAPTURED": F.lit("its partition was not captured this time"),
        "LOG_START_MOVED": F.lit("the log now begins behind it, and no snapshot remembers it"),
        "GONE": F.lit("no batch of it is in the log any more: truncated, or the topic was created again"),
    }
    found = F.lit(None).cast("string")
    for name, text in texts.items():
        found = F.when(F.col("how") == name, F.coalesce(text, F.lit("ended by a marker"))).otherwise(found)
    return found
