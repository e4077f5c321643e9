"""Findings in the coordinators' logs.

Spark selects what may be odd, the core judges it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from pyspark.sql import DataFrame

from txnlib.core.cluster_metadata import PartitionAssignment, ProducerIdBlock
from txnlib.core.copies import CoverageRow
from txnlib.core.findings.abandoned_id_findings import LEFT_BEHIND_AFTER_MS, of_abandoned_ids
from txnlib.core.findings.coordinator_findings import (
    ClaimedProducerId,
    LoggedId,
    UnfinishedTransaction,
    deleted_partitions,
    of_ids,
    of_owners,
    of_records,
    of_unfinished,
)
from txnlib.core.findings.metadata_findings import highest_producer_id
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.kafka.transaction_state import ACTIVE_STATES
from txnlib.core.schema.rows_of_runs import quoted_list
from txnlib.spark.coordinators.transactional_ids import IS_TWO_PHASE_COMMIT, last_records
from txnlib.spark.core_rows import Suspects
from txnlib.spark.instants import clock_ms
from txnlib.spark.joins import select, with_columns

_ACTIVE: Final = quoted_list(state.kafka_name for state in ACTIVE_STATES)


def odd_records(coordinator_states: DataFrame) -> DataFrame:
    """The records that may be odd, or that a step leads to which may be."""
    return coordinator_states.where("suspect IS NOT NULL")


def id_findings(
    coordinator_states: DataFrame,
    coverage: Sequence[CoverageRow],
    partition_assignments: Sequence[PartitionAssignment],
    *,
    coordinator_partitions: int,
    transaction_max_timeout_ms: int,
) -> Suspects:
    """The last record of each transactional id: of all of them, because the core computes their hashes."""
    is_refused = (
        f"NOT {IS_TWO_PHASE_COMMIT} AND (transaction_timeout_ms <= 0 OR transaction_timeout_ms >"
        f" {transaction_max_timeout_ms})"
    )
    refused = f"max(struct(offset, producer_id, transaction_timeout_ms)) FILTER (WHERE {is_refused}) AS refused"
    logged = last_records(coordinator_states, refused).withColumnRenamed("record_offset", "offset")
    deleted = deleted_partitions(coverage, partition_assignments)
    judge = partial(of_ids, coordinator_partitions=coordinator_partitions, deleted=deleted)
    listed = {"partitions": f"if(state IN {_ACTIVE}, partitions, NULL)"}
    return Suspects(with_columns(logged, listed), LoggedId, judge)


def owner_findings(
    producer_id_owners: DataFrame, producer_id_blocks: Sequence[ProducerIdBlock], *, whole_metadata_ms: int | None
) -> Suspects:
    """The producer ids with several owners, and those above the highest that was handed out, if that is known."""
    highest = highest_producer_id(producer_id_blocks, whole_metadata_ms)
    judge = partial(of_owners, highest=highest, whole_metadata_ms=whole_metadata_ms)
    text = f"""
    SELECT producer_id,
      collect_list(struct(producer_id, transactional_id, coordinator_partition, last_record_offset, last_seen))
        AS claims
    FROM {{owners}} GROUP BY producer_id
    HAVING size(collect_set(transactional_id)) > 1 OR producer_id > {"NULL" if highest is None else highest}
    """
    return Suspects(select(text, owners=producer_id_owners), ClaimedProducerId, judge)


def abandoned_ids(coordinator_states: DataFrame, transactional_ids: DataFrame) -> DataFrame:
    """The applications with several ids that were initialised only once.

    Only ids whose records begin with their first initialisation count, so that no earlier record is missing.
    """
    used_ms = f"if(NOT is_tombstone, {clock_ms('timestamp_ms')}, NULL)"
    text = f"""
    SELECT application, count, from_ms, to_ms, newest.coordinator_partition, newest.offset, newest.transactional_id
    FROM (
    SELECT application, count(*) AS count, min(first_ms) AS from_ms, max(last_ms) AS to_ms,
      max_by(struct(coordinator_partition, last_offset AS offset, transactional_id), last_ms) AS newest
    FROM (
      SELECT *, max(first_ms) OVER (PARTITION BY application) AS newest_ms
      FROM (
        SELECT transactional_id, coordinator_partition, min({used_ms}) AS first_ms, max({used_ms}) AS last_ms,
          max(offset) AS last_offset, count_if(state = 'Empty') AS initialisations,
          coalesce(max(transaction_number), 0) AS transactions,
          coalesce(max_by(state IN {_ACTIVE}, offset), FALSE) AS is_active
        FROM {{states}} GROUP BY transactional_id, coordinator_partition
        HAVING min_by(state = 'Empty' AND producer_epoch = 0, offset)
      )
      JOIN (SELECT transactional_id, coordinator_partition, application FROM {{ids}})
      USING (transactional_id, coordinator_partition)
    )
    WHERE initialisations = 1 AND transactions <= 1 AND NOT is_active AND last_ms + {LEFT_BEHIND_AFTER_MS} <= newest_ms
    GROUP BY application
    )
    WHERE count > 1
    """
    return select(text, states=coordinator_states, ids=transactional_ids)


def unfinished_transactions(
    transactions: DataFrame, coverage: DataFrame, *, as_of_ms: int, stuck_after_ms: int
) -> Suspects:
    """The decided transactions that have a marker on some partition, and lack none on a captured one."""
    text = f"""
    WITH judged AS (
      SELECT topic, partition, unix_millis(known_until) AS known_until_ms FROM {{coverage}} WHERE is_judged
    ), coordinators AS (
      SELECT partition AS coordinator_partition, known_until_ms FROM judged WHERE topic = '{TRANSACTION_STATE_TOPIC}'
    )
    SELECT transactional_id, coordinator_partition, offset, producer_id, state, decided_ms, markers,
      least(known_until_ms, {as_of_ms}) AS known_until_ms
    FROM (
      SELECT transactional_id, coordinator_partition, offset, producer_id, state, decided_ms,
        count(marker_offset) AS markers,
        count_if(marker_offset IS NULL AND judged.topic IS NOT NULL) AS missing
      FROM (
        SELECT transactional_id, coordinator_partition, last_record_offset AS offset, producer_id, state,
          unix_millis(decided) AS decided_ms, inline(markers)
        FROM {{transactions}} WHERE state LIKE 'Prepare%' AND completed IS NULL AND decided IS NOT NULL
      ) AS placed
      LEFT JOIN judged ON judged.topic = placed.topic AND judged.partition = placed.partition
      GROUP BY transactional_id, coordinator_partition, offset, producer_id, state, decided_ms
    )
    JOIN coordinators USING (coordinator_partition)
    WHERE markers > 0 AND missing = 0
    """
    judge = partial(of_unfinished, overdue_after_ms=stuck_after_ms)
    return Suspects(select(text, transactions=transactions, coverage=coverage), UnfinishedTransaction, judge)


#: What is selected here, and the function of the core that makes findings of it.
RULES: Final = ((odd_records, of_records), (abandoned_ids, of_abandoned_ids))
