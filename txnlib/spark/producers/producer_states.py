"""`producer_states`: each producer at the end of a log."""

from __future__ import annotations

from pyspark.sql import DataFrame

from txnlib.core.sql_text import IS_NEWEST, instant
from txnlib.spark.joins import select
from txnlib.spark.schemas import TABLES, conform


def producer_states(producer_spans: DataFrame, *, as_of_ms: int, producer_id_expiration_ms: int) -> DataFrame:
    """One row per producer of a partition that its broker still has in memory. Columns: PRODUCER_STATES.

    A broker removes a producer without an open transaction `producer_id_expiration_ms` after its last write. It never
    removes one with an open transaction. Kafka: `ProducerStateManager.removeExpiredProducers`.
    """
    # A difference beyond int64 overflows in a broker, so that such a producer is younger than any limit.
    text = f"""
    SELECT topic, partition, producer_id, state.producer_epoch, state.coordinator_epoch, state.last_sequence,
      {instant("state.last_timestamp")} AS last_timestamp, state.last_timestamp AS last_timestamp_ms,
      state.current_txn_first_offset AS current_transaction_start_offset
    FROM {{spans}}
    WHERE {IS_NEWEST} AND (state.current_txn_first_offset IS NOT NULL
      OR coalesce(try_subtract({as_of_ms}, coalesce(state.last_timestamp, -1)) < {producer_id_expiration_ms}, TRUE))
    """
    return conform(select(text, spans=producer_spans), TABLES["producer_states"])
