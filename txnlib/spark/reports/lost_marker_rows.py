"""Rows about partitions without a marker. The rules are in `core.reports.marker_repairs`."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.spark.coverage import broker
from txnlib.spark.instants import clock_ms
from txnlib.spark.joins import broadcast
from txnlib.spark.schemas import PRODUCER


def spans_of_producers(records: DataFrame, producer_spans: DataFrame) -> DataFrame:
    """The newest span of each producer, and those within bounds. Columns: those of `core.reports.marker_repairs.SpanOfProducer`.

    `records`: PRODUCER, began_by_ms, ended_after_ms.
    """
    began_ms, ended_ms = clock_ms("first_timestamp_ms"), clock_ms("marker_ms")
    bounds = records.groupBy(*PRODUCER).agg(
        F.max("began_by_ms").alias("began_by_ms"), F.min("ended_after_ms").alias("ended_after_ms")
    )
    is_last = F.coalesce("is_newest", F.lit(True)) & F.col("state").isNotNull()
    is_within = (began_ms <= F.col("began_by_ms")) & (ended_ms > F.col("ended_after_ms"))
    return (
        producer_spans.join(broadcast(bounds), on=list(PRODUCER), how="inner")
        .where(is_last | is_within)
        .select(
            *PRODUCER,
            "first_offset",
            began_ms.alias("began_ms"),
            "marker_offset",
            "marker_type",
            ended_ms.alias("ended_ms"),
            is_last.alias("is_last"),
            F.col("state.producer_epoch").alias("seen_epoch"),
            F.col("state.coordinator_epoch").alias("seen_coordinator_epoch"),
        )
    )


def copies_with_markers(markers: DataFrame, record_batches: DataFrame) -> DataFrame:
    """The copies that have certain markers. Columns: due (those of `markers`), copy (broker, source, offset).

    `markers`: PRODUCER, producer_epoch, control_type, since_ms.
    """
    due = markers.select(*PRODUCER, "producer_epoch", "control_type", "since_ms", F.struct(*markers.columns).alias("due"))
    return (
        record_batches.where(F.col("control_type").isNotNull())
        .join(broadcast(due), on=[*PRODUCER, "producer_epoch", "control_type"], how="inner")
        .where(clock_ms("max_timestamp_ms") >= F.col("since_ms"))
        .select("due", F.struct(broker().alias("broker"), "source", F.col("base_offset").alias("offset")).alias("copy"))
    )


def coordinator_epochs(coordinators: DataFrame, coordinator_states: DataFrame) -> DataFrame:
    """The newest coordinator epoch in the records of coordinator partitions. Columns: coordinator_partition, coordinator_epoch."""
    records = coordinator_states.join(broadcast(coordinators), on="coordinator_partition", how="left_semi")
    return records.groupBy("coordinator_partition").agg(F.max("coordinator_epoch").alias("coordinator_epoch"))
