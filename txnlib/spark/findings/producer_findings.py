"""Findings about the producers of partitions.

Spark selects those that may be odd, the core judges them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.core.copies import CoverageRow
from txnlib.core.findings.contradictions import highest_producer_id
from txnlib.core.findings.coordinator_records import LEFT_BEHIND_AFTER_MS, of_abandoned_producers
from txnlib.core.findings.live_answers import LiveProducer, answers_of
from txnlib.core.findings.producer_batches import (
    SUSPECTS_KEPT,
    CorruptBatch,
    NewestSpan,
    OddProducer,
    ProducerChecks,
    of_corrupt_batches,
    of_producers,
)
from txnlib.core.metadata import ProducerIdBlock
from txnlib.readers.typed_rows import columns_read
from txnlib.spark.core_rows import rows_by_core
from txnlib.spark.instants import clock_ms, is_shown
from txnlib.spark.joins import broadcast
from txnlib.spark.local_rows import local_rows
from txnlib.spark.producers.producer_spans import newest_spans
from txnlib.spark.schemas import PRODUCER, TOPIC_PARTITION


def producer_findings(
    producer_spans: DataFrame,
    producer_id_blocks: Sequence[ProducerIdBlock],
    live_producers: Sequence[LiveProducer],
    coverage: Sequence[CoverageRow],
    *,
    producer_id_expiration_ms: int,
    as_of_ms: int,
    clock_tolerance_ms: int,
    whole_metadata_ms: int | None,
) -> DataFrame | pa.Table:
    """Findings about suspect batches, and about the newest span of each producer."""
    checks = ProducerChecks(
        as_of_ms=as_of_ms,
        clock_tolerance_ms=clock_tolerance_ms,
        producer_id_expiration_ms=producer_id_expiration_ms,
        whole_metadata_ms=whole_metadata_ms,
        highest=highest_producer_id(producer_id_blocks, whole_metadata_ms),
        answers=answers_of(live_producers, coverage),
    )
    return rows_by_core("findings", odd_producers(producer_spans, checks), OddProducer, partial(of_producers, checks=checks))


def odd_producers(producer_spans: DataFrame, checks: ProducerChecks) -> DataFrame:
    """The producers that may have a finding. Rows that cannot matter are cleared; the core judges all others."""
    is_newest = F.coalesce("is_newest", F.lit(True)) & F.col("state").isNotNull()
    may_be_odd = is_newest & _may_be_odd(checks)
    spans = producer_spans
    if checks.answers:
        schema = "topic string, partition int, is_answered boolean"
        answered = local_rows(spans.sparkSession, [(*place, True) for place in checks.answers], schema)
        spans = spans.join(broadcast(answered), on=list(TOPIC_PARTITION), how="left")
    count = F.when(is_newest, F.col("suspects_count"))
    newest = F.struct(*[field.name for field in fields(NewestSpan)])
    return (
        spans.where(F.col("suspect").isNotNull() | may_be_odd | (count > SUSPECTS_KEPT))
        .groupBy(*PRODUCER)
        .agg(
            F.collect_list("suspect").alias("suspects"),
            F.max(count).alias("suspects_count"),
            F.first(F.when(may_be_odd, newest), ignorenulls=True).alias("newest"),
        )
    )


def _may_be_odd(checks: ProducerChecks) -> Column:
    """Whether a newest span may have a finding."""
    last_ms = F.col("state.last_timestamp")
    is_open = F.col("first_offset").isNotNull() & F.col("marker_offset").isNull()
    is_odd = (
        (is_open & (last_ms > checks.as_of_ms + checks.clock_tolerance_ms))
        | ~is_shown(last_ms)
        | (F.col("state.current_txn_first_offset").isNotNull() & ~is_shown("first_timestamp_ms"))
    )
    if checks.highest is not None:
        is_odd = is_odd | (F.col("producer_id") > checks.highest)
    return is_odd | (is_open & F.col("is_answered")) if checks.answers else is_odd


def abandoned_producers(producer_spans: DataFrame) -> DataFrame:
    """The partitions with such producer ids: outside of transactions, with one batch, of epoch 0, from sequence 0 on."""
    state = F.col("state")
    is_first_batch = (state["producer_epoch"] == 0) & (state["last_sequence"] == state["offset_delta"])
    is_plain = F.expr("marker_offset IS NULL AND first_offset IS NULL AND span = 0")
    once = (
        newest_spans(producer_spans)
        .where(is_first_batch & is_plain)
        .select(*PRODUCER, state["last_offset"].alias("offset"), clock_ms(state["last_timestamp"]).alias("at_ms"))
    )
    newest = once.groupBy(*TOPIC_PARTITION).agg(F.max("at_ms").alias("newest_ms"))
    return (
        once.join(broadcast(newest), on=list(TOPIC_PARTITION), how="inner")
        .where(F.col("at_ms") + LEFT_BEHIND_AFTER_MS <= F.col("newest_ms"))
        .groupBy(*TOPIC_PARTITION)
        .agg(
            F.count("*").alias("count"),
            F.min("at_ms").alias("from_ms"),
            F.max("at_ms").alias("to_ms"),
            F.max_by("producer_id", "at_ms").alias("producer_id"),
            F.max_by("offset", "at_ms").alias("offset"),
        )
    )


def corrupt_batches(checked_batches: DataFrame) -> DataFrame:
    """The batches whose CRC does not match."""
    corrupt = checked_batches.where(~F.col("is_crc_valid"))
    return corrupt.select(*columns_read(CorruptBatch, corrupt.columns)).distinct()


#: What is selected here, and the function of the core that makes findings of it.
RULES: Final = (
    (abandoned_producers, of_abandoned_producers),
    (corrupt_batches, of_corrupt_batches),
)
