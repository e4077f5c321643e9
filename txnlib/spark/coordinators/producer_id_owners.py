"""`producer_id_owners`: the transactional ids of each producer id, from all surviving records."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame

from txnlib.core.kafka.constants import EXHAUSTED_EPOCH
from txnlib.core.kafka.transaction_log import PRODUCER_ID_FIELDS
from txnlib.core.sql_text import instant
from txnlib.core.verdicts.dossier import Owner
from txnlib.spark.joins import select
from txnlib.spark.schemas import TABLES, conform


def producer_id_owners(coordinator_states: DataFrame) -> DataFrame:
    """One row per producer id and transactional id that appear in one record. Columns: PRODUCER_ID_OWNERS.

    Previous and next producer ids of a record count, too (KIP-939; written since 4.3).
    """
    return conform(select(_OWNERS, states=coordinator_states), TABLES["producer_id_owners"])


#: By its place in PRODUCER_ID_FIELDS, the first field that contains a producer id is the plainest one. A next producer
#: id is a future one as long as the id's newest record contains it. Kafka: `TransactionMetadata.isEpochExhausted`.
_OWNERS: Final = f"""
WITH named AS (
  SELECT *, posexplode(array({", ".join(PRODUCER_ID_FIELDS)})) AS (place, named_id)
  FROM {{states}} WHERE NOT is_tombstone
), owners AS (
  SELECT named_id, transactional_id, coordinator_partition, get(array{PRODUCER_ID_FIELDS}, min(place)) AS known_from,
    min(offset) AS first_record_offset, max(offset) AS last_record_offset,
    {instant("min(timestamp_ms)")} AS first_seen, {instant("max(timestamp_ms)")} AS last_seen,
    max(producer_epoch) FILTER (WHERE named_id = producer_id) AS highest_epoch
  FROM named WHERE named_id IS NOT NULL
  GROUP BY named_id, transactional_id, coordinator_partition
), newest AS (
  SELECT transactional_id, coordinator_partition, max_by(is_tombstone, offset) AS is_expired,
    max_by(producer_id, offset) AS producer_id_now, max(offset) AS newest_record_offset,
    max(offset) FILTER (WHERE is_tombstone) AS tombstone_offset
  FROM {{states}} GROUP BY transactional_id, coordinator_partition
), owned AS (
  SELECT *, named_id AS producer_id, CASE
      WHEN is_expired THEN '{Owner.EXPIRED.value}'
      WHEN named_id = producer_id_now THEN '{Owner.CURRENT.value}'
      WHEN known_from = 'next_producer_id' AND last_record_offset = newest_record_offset THEN '{Owner.NEXT.value}'
      ELSE '{Owner.ROTATED.value}'
    END AS owner
  FROM owners LEFT JOIN newest USING (transactional_id, coordinator_partition)
)
SELECT *, CASE
    WHEN owner IN ('{Owner.CURRENT.value}', '{Owner.NEXT.value}') THEN NULL
    WHEN tombstone_offset > last_record_offset THEN 'EXPIRED'
    WHEN highest_epoch >= {EXHAUSTED_EPOCH} THEN 'EPOCHS_EXHAUSTED'
    ELSE 'UNKNOWN'
  END AS given_up
FROM owned
"""
