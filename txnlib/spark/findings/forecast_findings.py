"""What each forecast is about: the few rows that the rules of `core.findings.forecast_findings` judge.

Native predicates clear what a rule says nothing about.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame

from txnlib.core.ended_by import EndedBy
from txnlib.core.findings.forecast_findings import CALLED, FEW_PRODUCERS, FORECAST_FROM_EPOCH, STILL_RUNS, UNENDED
from txnlib.core.kafka.transaction_state import EXPIRATION_ALLOWED_STATES
from txnlib.core.schema.rows_of_runs import quoted, quoted_list
from txnlib.spark.instants import clock_ms
from txnlib.spark.joins import select
from txnlib.spark.local_rows import no_rows
from txnlib.spark.schemas import TABLES

#: Most forecasts of one name, the most urgent ones. More are one problem, and these rows are in the driver.
MOST: Final = 1_000
_EXPIRABLE: Final = quoted_list(state.kafka_name for state in EXPIRATION_ALLOWED_STATES)


def used_epochs(transactional_ids: DataFrame) -> DataFrame:
    """The ids that have used many epochs. Columns: EpochUse."""
    text = f"""
    SELECT transactional_id, coordinator_partition, record_offset AS offset, producer_id, producer_epoch AS epoch,
      is_two_phase_commit
    FROM {{ids}}
    WHERE state IS NOT NULL AND producer_epoch >= {FORECAST_FROM_EPOCH}
    ORDER BY producer_epoch DESC, transactional_id LIMIT {MOST}
    """
    return select(text, ids=transactional_ids)


def earlier_epochs(
    used: DataFrame, coordinator_states: DataFrame, producer_spans: DataFrame, earlier_ids: DataFrame | None
) -> DataFrame:
    """The oldest known epoch of each producer id that is asked for. Columns: EarlierEpoch.

    A compacted log has only the newest record of an id, so markers and `transactional_ids` of earlier runs count, too.
    `earlier_ids`: these; None if there is no such run.
    """
    text = f"""
    SELECT producer_id, min_by(epoch, (ms, epoch)) AS epoch, min(ms) AS ms
    FROM (
      SELECT producer_id, producer_epoch AS epoch, timestamp_ms AS ms FROM {{states}}
      UNION ALL SELECT producer_id, marker_epoch, marker_ms FROM {{spans}}
      UNION ALL SELECT producer_id, producer_epoch, unix_millis(last_update) FROM {{ids}}
    ) LEFT SEMI JOIN {{used}} USING (producer_id)
    WHERE epoch IS NOT NULL AND {clock_ms("ms")} IS NOT NULL
    GROUP BY producer_id
    """
    ids = no_rows(used.sparkSession, TABLES["transactional_ids"]) if earlier_ids is None else earlier_ids
    return select(text, used=used, states=coordinator_states, spans=producer_spans, ids=ids)


def held_ids(transactional_ids: DataFrame, open_transactions: DataFrame) -> DataFrame:
    """The ids that may expire and whose producer id has open transactions that no coordinator will end. Columns:
    HeldId."""
    text = f"""
    SELECT /*+ BROADCAST(held) */
      transactional_id, coordinator_partition, id.record_offset AS offset, producer_id,
      unix_millis(id.last_update) AS last_update_ms, held.partitions,
      concat_ws('-', held.first.topic, held.first.partition) AS first
    FROM {{ids}} AS id
    JOIN (
      SELECT transactional_id, coordinator_partition, producer_id, count(*) AS partitions, min((topic, partition)) AS first
      FROM {{open}}
      WHERE verdict IN {quoted_list(UNENDED)} AND coordinator_state IN {_EXPIRABLE}
      GROUP BY transactional_id, coordinator_partition, producer_id
    ) AS held USING (transactional_id, coordinator_partition, producer_id)
    WHERE id.state IN {_EXPIRABLE} AND id.last_update IS NOT NULL
    ORDER BY id.last_update, transactional_id LIMIT {MOST}
    """
    return select(text, ids=transactional_ids, open=open_transactions)


def old_clients(transactions: DataFrame, transactional_ids: DataFrame) -> DataFrame:
    """The applications with ids whose newest transaction is of version 0 or 1 after version 2 applied. Columns:
    OldClients.

    A record of version 2 proves that the feature was raised: a client's, or that of a coordinator's own abort, which
    has the version of the cluster. So only what a client ended shows the version of the client. Each id counts, because
    clients are upgraded one by one.
    """
    text = f"""
    WITH ended AS (
      SELECT *, unix_millis(coalesce(prepared, completed)) AS ended_ms
      FROM {{transactions}} WHERE outcome != 'OPEN' AND coalesce(prepared, completed) IS NOT NULL
    ), raised AS (
      SELECT min(ended_ms) AS raised_ms FROM ended WHERE transaction_version >= 2 OR cluster_transaction_version >= 2
    ), of_ids AS (
      SELECT /*+ BROADCAST(raised) */
        transactional_id, coordinator_partition, first(raised_ms) AS raised_ms,
        max_by((transaction_version AS version, ended_ms, last_record_offset, producer_id), last_record_offset) AS newest,
        count_if(transaction_version < 2) AS transactions
      FROM ended CROSS JOIN raised
      WHERE (outcome = 'COMMIT' OR ended_by = {quoted(EndedBy.CLIENT.value)}) AND transaction_version IS NOT NULL
        AND ended_ms >= raised_ms AND coalesce(cluster_transaction_version, 2) >= 2
      GROUP BY transactional_id, coordinator_partition
    ), of_applications AS (
      SELECT coalesce(application, transactional_id) AS application, count(*) AS ids, min(raised_ms) AS raised_ms,
        count_if(newest.version < 2) AS ids_behind,
        sum(transactions) FILTER (WHERE newest.version < 2) AS transactions,
        max_by((transactional_id, coordinator_partition, newest), newest.ended_ms) FILTER (WHERE newest.version < 2) AS last
      FROM of_ids LEFT JOIN {{ids}} USING (transactional_id, coordinator_partition)
      GROUP BY coalesce(application, transactional_id)
    )
    SELECT last.transactional_id, last.coordinator_partition, last.newest.last_record_offset AS offset, last.newest.producer_id,
      application, ids, ids_behind, transactions, last.newest.ended_ms AS newest_ms, raised_ms
    FROM of_applications WHERE ids_behind > 0
    ORDER BY transactions DESC, application LIMIT {MOST}
    """
    return select(text, transactions=transactions, ids=transactional_ids)


def still_partitions(partitions: DataFrame, open_transactions: DataFrame, earlier_partitions: DataFrame) -> DataFrame:
    """The blocked partitions whose last stable offset was the same in earlier runs. Columns: StillPartition.

    A last stable offset only moves forward, so it was the same in all runs between two that have it.
    `earlier_partitions`: of finished runs.
    """
    text = f"""
    WITH blocked AS (
      SELECT *, blocking_producer_id AS producer_id FROM {{partitions}}
      WHERE last_stable_offset < high_watermark AND NOT coalesce(blocking_verdict IN {quoted_list(CALLED)}, FALSE)
    ), still AS (
      SELECT /*+ BROADCAST(blocked) */
        topic, partition, last_stable_offset, count(DISTINCT as_of) + 1 AS runs, unix_millis(min(as_of)) AS since_ms
      FROM {{earlier}} LEFT SEMI JOIN blocked USING (topic, partition, last_stable_offset)
      WHERE last_stable_offset < high_watermark
      GROUP BY topic, partition, last_stable_offset
    )
    SELECT /*+ BROADCAST(still) */
      topic, partition, last_stable_offset AS offset, blocked.lag_offsets, still.runs, still.since_ms,
      blocked.blocking_verdict AS verdict, blocked.blocking_transactional_id AS transactional_id,
      producer_id, open.is_two_phase_commit, unix_millis(open.transaction_start) AS start_ms,
      open.transaction_timeout_ms AS timeout_ms, unix_millis(open.last_timestamp) AS last_timestamp_ms
    FROM blocked JOIN still USING (topic, partition, last_stable_offset)
    LEFT JOIN {{open}} AS open USING (topic, partition, producer_id)
    WHERE still.runs >= {STILL_RUNS}
    ORDER BY since_ms, topic, partition LIMIT {MOST}
    """
    return select(text, partitions=partitions, open=open_transactions, earlier=earlier_partitions)


def kept_producers(
    producer_states: DataFrame,
    coverage: DataFrame,
    producer_id_blocks: DataFrame,
    earlier: tuple[DataFrame, DataFrame, int] | None,
) -> DataFrame:
    """The brokers that keep many producers. Columns: BrokerProducers.

    Every replica keeps the producers of its partition. Growth counts only on partitions that both runs captured. What
    was handed out before the first known block is not known, and neither is when that one began to be used. `earlier`:
    `producer_states` and `coverage` of an earlier run, and its instant in ms.
    """
    states_then, coverage_then, then_ms = earlier or (producer_states, coverage.where("FALSE"), "CAST(NULL AS BIGINT)")
    is_there = "status != 'MISSING' AND broker IS NOT NULL AND NOT coalesce(is_deleted, FALSE)"
    text = f"""
    WITH copies AS (
      SELECT DISTINCT topic, partition, broker FROM {{coverage}} WHERE {is_there}
    ), copies_then AS (
      SELECT DISTINCT topic, partition, TRUE AS is_in_both FROM {{coverage_then}} WHERE {is_there}
    ), states_now AS (SELECT topic, partition, count(*) AS kept FROM {{states}} GROUP BY topic, partition),
    states_then AS (SELECT topic, partition, count(*) AS kept FROM {{states_then}} GROUP BY topic, partition),
    of_brokers AS (
      SELECT broker, sum(coalesce(states_now.kept, 0)) AS kept,
        sum(CASE WHEN is_in_both THEN coalesce(states_now.kept, 0) - coalesce(states_then.kept, 0) END) AS grown
      FROM copies LEFT JOIN states_now USING (topic, partition)
      LEFT JOIN states_then USING (topic, partition) LEFT JOIN copies_then USING (topic, partition)
      GROUP BY broker
    ), ids AS (SELECT count(DISTINCT producer_id) AS producer_ids FROM {{states}}),
    sizes AS (
      SELECT last_producer_id - first_producer_id + 1 AS size, allocated_at FROM {{blocks}} WHERE allocated_at IS NOT NULL
    ), blocks AS (
      SELECT sum(size) - min_by(size, allocated_at) AS allocated, unix_millis(min(allocated_at)) AS allocated_ms FROM sizes
    )
    SELECT /*+ BROADCAST(ids, blocks) */
      broker, kept, grown, producer_ids, allocated, allocated_ms, {then_ms} AS earlier_ms
    FROM of_brokers CROSS JOIN ids CROSS JOIN blocks
    WHERE kept >= {FEW_PRODUCERS}
    ORDER BY kept DESC, broker LIMIT {MOST}
    """
    return select(
        text,
        states=producer_states,
        coverage=coverage,
        blocks=producer_id_blocks,
        states_then=states_then,
        coverage_then=coverage_then,
    )
