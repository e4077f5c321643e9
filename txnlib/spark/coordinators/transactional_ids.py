"""`transactional_ids`: the last state of each id. `producer_id_owners`: the ids of each producer id, from all surviving
records."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame

from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS, EXHAUSTED_EPOCH
from txnlib.core.kafka.transaction_log import PRODUCER_ID_FIELDS
from txnlib.core.kafka.transaction_state import PREPARED_STATES
from txnlib.core.sql_text import IS_TWO_PHASE_COMMIT, clock_ms, instant, last_records, quoted_list
from txnlib.core.verdicts.dossier import Owner
from txnlib.spark.coordinators.transactions import SUMMED_AT_ONCE
from txnlib.spark.core_udfs import application_of
from txnlib.spark.frames import by_parts
from txnlib.spark.joins import select
from txnlib.spark.schemas import TABLES, conform

_PREPARED: Final = quoted_list(state.kafka_name for state in PREPARED_STATES)


def transactional_ids(
    coordinator_states: DataFrame, producer_spans: DataFrame, *, application_patterns: tuple[str, ...] = ()
) -> DataFrame:
    """One row per transactional id, including expired ones (state NULL). Columns: TRANSACTIONAL_IDS.

    The last record by offset counts, never by time. As in the live description, a prepared id lists only partitions
    whose log does not have the marker of this decision yet. Kafka: `TransactionStateManager.loadTransactionMetadata`.
    """

    def described(states: DataFrame) -> DataFrame:
        return select(_DESCRIBED, last=select(last_records("{states}"), states=states), spans=producer_spans)

    found = by_parts(coordinator_states, described, "transactional_id", SUMMED_AT_ONCE)
    owned = found.withColumn("application", application_of(application_patterns)("transactional_id"))
    return conform(owned, TABLES["transactional_ids"])


#: A log has many markers, and few of producers of prepared ids. Whether one is the decision's is
#: `core.verdicts.reason.is_decision_marker` in SQL: type, epoch, coordinator epoch and time match the Prepare record.
_DESCRIBED: Final = f"""
WITH prepared AS (
  SELECT transactional_id, coordinator_partition, producer_id, inline(partitions), producer_epoch, coordinator_epoch,
    last_update_ms, if(state = 'PrepareCommit', 'COMMIT', 'ABORT') AS decision
  FROM {{last}} WHERE state IN {_PREPARED}
), markers AS (
  SELECT /*+ BROADCAST(prepared) */ *
  FROM {{spans}} LEFT SEMI JOIN prepared USING (producer_id) WHERE marker_offset IS NOT NULL
), unmarked AS (
  SELECT transactional_id, coordinator_partition, sort_array(collect_set(struct(topic, partition))) AS unmarked
  FROM prepared LEFT ANTI JOIN markers
  ON prepared.topic = markers.topic AND prepared.partition = markers.partition
    AND prepared.producer_id = markers.producer_id
    AND coalesce(marker_type = decision, TRUE) AND marker_epoch = prepared.producer_epoch
    AND coalesce(marker_coordinator_epoch >= coordinator_epoch, TRUE)
    AND coalesce({clock_ms("marker_ms")} >= {clock_ms("last_update_ms")} - {CLOCKS_DIFFER_MS}, TRUE)
  GROUP BY transactional_id, coordinator_partition
)
SELECT transactional_id, coordinator_partition, producer_id, producer_epoch, state, transaction_timeout_ms,
  record_offset,
  coordinator_epoch, {instant("if(state != 'Empty', start_ms, NULL)")} AS transaction_start,
  {instant("last_update_ms")} AS last_update,
  coalesce(if(state IN {_PREPARED}, unmarked, partitions), array()) AS partitions,
  {instant("record_ms")} AS record_timestamp, {IS_TWO_PHASE_COMMIT} AS is_two_phase_commit
FROM {{last}} LEFT JOIN unmarked USING (transactional_id, coordinator_partition)
"""


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
