"""Findings about the producers of partitions.

Spark selects those that may be odd, the core judges them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from functools import partial
from typing import Final

from pyspark.sql import DataFrame

from txnlib.core.cluster_metadata import ProducerIdBlock
from txnlib.core.copies import CoverageRow
from txnlib.core.findings.abandoned_id_findings import LEFT_BEHIND_AFTER_MS, of_abandoned_producers
from txnlib.core.findings.live_answer_findings import LiveProducer, answers_of
from txnlib.core.findings.metadata_findings import highest_producer_id
from txnlib.core.findings.producer_findings import (
    SUSPECTS_KEPT,
    CorruptBatch,
    NewestSpan,
    OddProducer,
    ProducerChecks,
    of_corrupt_batches,
    of_producers,
)
from txnlib.readers.typed_rows import hints_of
from txnlib.spark.core_rows import Suspects
from txnlib.spark.frames import local_rows
from txnlib.spark.instants import clock_ms, is_shown
from txnlib.spark.joins import select
from txnlib.spark.producers.producer_spans import IS_NEWEST


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
) -> Suspects:
    """The producers with suspect batches, or whose newest span may be odd."""
    checks = ProducerChecks(
        as_of_ms=as_of_ms,
        clock_tolerance_ms=clock_tolerance_ms,
        producer_id_expiration_ms=producer_id_expiration_ms,
        whole_metadata_ms=whole_metadata_ms,
        highest=highest_producer_id(producer_id_blocks, whole_metadata_ms),
        answers=answers_of(live_producers, coverage),
    )
    return Suspects(odd_producers(producer_spans, checks), OddProducer, partial(of_producers, checks=checks))


def odd_producers(producer_spans: DataFrame, checks: ProducerChecks) -> DataFrame:
    """The producers that may have a finding. Rows that cannot matter are cleared; the core judges all others."""
    is_open = "first_offset IS NOT NULL AND marker_offset IS NULL"
    may_be_odd = [
        f"{is_open} AND state.last_timestamp > {checks.as_of_ms + checks.clock_tolerance_ms}",
        f"NOT {is_shown('state.last_timestamp')}",
        f"state.current_txn_first_offset IS NOT NULL AND NOT {is_shown('first_timestamp_ms')}",
        f"producer_id > {'NULL' if checks.highest is None else checks.highest}",
        f"{is_open} AND is_answered",
    ]
    answered = [(*place, True) for place in checks.answers]
    text = f"""
    SELECT topic, partition, producer_id, collect_list(suspect) AS suspects,
      max(suspects_count) FILTER (WHERE is_last) AS suspects_count,
      first(struct({", ".join(field.name for field in fields(NewestSpan))}))
        FILTER (WHERE is_last AND may_be_odd) AS newest
    FROM (
      SELECT /*+ BROADCAST(answered) */ *, {IS_NEWEST} AS is_last,
        {" OR ".join(f"({odd})" for odd in may_be_odd)} AS may_be_odd
      FROM {{spans}} LEFT JOIN {{answered}} AS answered USING (topic, partition)
    )
    WHERE suspect IS NOT NULL OR (is_last AND (may_be_odd OR suspects_count > {SUSPECTS_KEPT}))
    GROUP BY topic, partition, producer_id
    """
    places = local_rows(producer_spans.sparkSession, answered, "topic string, partition int, is_answered boolean")
    return select(text, spans=producer_spans, answered=places)


def abandoned_producers(producer_spans: DataFrame) -> DataFrame:
    """The partitions with such producer ids: outside of transactions, with one batch, of epoch 0, from sequence 0
    on."""
    text = f"""
    SELECT topic, partition, count(*) AS count, min(at_ms) AS from_ms, max(at_ms) AS to_ms,
      max_by(producer_id, at_ms) AS producer_id, max_by(offset, at_ms) AS offset
    FROM (
      SELECT *, max(at_ms) OVER (PARTITION BY topic, partition) AS newest_ms
      FROM (
        SELECT topic, partition, producer_id, state.last_offset AS offset, {clock_ms("state.last_timestamp")} AS at_ms
        FROM {{spans}}
        WHERE {IS_NEWEST} AND state.producer_epoch = 0 AND state.last_sequence = state.offset_delta
          AND marker_offset IS NULL AND first_offset IS NULL AND span = 0
      )
    )
    WHERE at_ms + {LEFT_BEHIND_AFTER_MS} <= newest_ms
    GROUP BY topic, partition
    """
    return select(text, spans=producer_spans)


def corrupt_batches(checked_batches: DataFrame) -> DataFrame:
    """The batches whose CRC does not match."""
    return checked_batches.where("NOT is_crc_valid").select(*hints_of(CorruptBatch)).distinct()


#: What is selected here, and the function of the core that makes findings of it.
RULES: Final = ((abandoned_producers, of_abandoned_producers), (corrupt_batches, of_corrupt_batches))
