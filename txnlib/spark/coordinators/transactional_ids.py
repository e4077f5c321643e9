"""`transactional_ids`: the last state of each id."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS, TWO_PHASE_COMMIT_TIMEOUTS
from txnlib.core.kafka.transaction_state import PREPARED_STATES
from txnlib.core.schema.rows_of_runs import quoted_list
from txnlib.spark.core_udfs import application_of
from txnlib.spark.instants import clock_ms, instant
from txnlib.spark.joins import select
from txnlib.spark.schemas import TABLES, conform

#: Whether the timeout is one of those that never expire; NULL if it is unknown. SQL.
IS_TWO_PHASE_COMMIT: Final = f"transaction_timeout_ms IN {tuple(TWO_PHASE_COMMIT_TIMEOUTS)}"
_PREPARED: Final = quoted_list(state.kafka_name for state in PREPARED_STATES)


def transactional_ids(
    coordinator_states: DataFrame, producer_spans: DataFrame, *, application_patterns: tuple[str, ...] = ()
) -> DataFrame:
    """One row per transactional id, including expired ones (state NULL). Columns: TRANSACTIONAL_IDS.

    The last record by offset counts, never by time. As in the live description, a prepared id lists only partitions
    whose log does not have the marker of this decision yet. Kafka: `TransactionStateManager.loadTransactionMetadata`.
    """
    described = select(_DESCRIBED, last=last_records(coordinator_states), spans=producer_spans)
    owned = described.withColumn("application", application_of(application_patterns)("transactional_id"))
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


_OF_VALUE: Final = ("producer_id", "producer_epoch", "transaction_timeout_ms", "start_ms", "last_update_ms")
_OF_RECORD: Final = (
    "is_tombstone",
    "partitions",
    "coordinator_epoch",
    "client_transaction_version",
    "is_superseded",
    "hole_ms",
    "hole_offset",
)


def last_records(coordinator_states: DataFrame, *also: str) -> DataFrame:
    """The last record of each id, with its full set of partitions; after a tombstone, the last value without state.

    `also`: aggregates over all records of the id, as SQL.
    """
    fields = [
        *(f"max_by({name}, offset) FILTER (WHERE NOT is_tombstone) AS {name}" for name in _OF_VALUE),
        *(f"max_by({name}, offset) AS {name}" for name in _OF_RECORD),
        # An id whose last record the current copy no longer has, has expired.
        "max_by(if(coalesce(is_superseded, FALSE), NULL, state), offset) AS state",
        "max_by(timestamp_ms, offset) AS record_ms",
        "max(offset) AS record_offset",
    ]
    return coordinator_states.groupBy("transactional_id", "coordinator_partition").agg(*map(F.expr, (*fields, *also)))
