"""`transactions`: how each transaction ended, by whom, and its markers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.cluster_metadata import ClusterSetting, PartitionAssignment
from txnlib.core.copies import CoverageRow
from txnlib.core.ended_by import REINITIALIZED_WITHIN_MS, Ending
from txnlib.core.instants import FIRST_MS, NO_INSTANT_MS
from txnlib.core.kafka.constants import TRANSACTION_VERSION
from txnlib.core.kafka.transaction_state import ACTIVE_STATES, COMPLETE_STATES, PREPARED_STATES
from txnlib.core.sql_text import IS_TWO_PHASE_COMMIT, clock_ms, instant, is_shown, quoted_list, struct
from txnlib.core.verdicts.cluster_facts import cluster_clocks
from txnlib.core.verdicts.whose_clock import MeasuredClocks
from txnlib.spark.coordinators.transaction_markers import decision_markers
from txnlib.spark.core_udfs import ended_by
from txnlib.spark.frames import by_parts, kept
from txnlib.spark.joins import select, with_columns
from txnlib.spark.schemas import TABLES, conform
from txnlib.spark.windows import next_of_id


def transactions(
    coordinator_states: DataFrame,
    producer_spans: DataFrame,
    measured_clocks: Sequence[MeasuredClocks],
    coverage: Sequence[CoverageRow],
    cluster_settings: Sequence[ClusterSetting],
    partition_assignments: Sequence[PartitionAssignment],
    *,
    transaction_version: int | None = None,
) -> DataFrame:
    """One row per transaction of a transactional id, from its surviving records. Columns: TRANSACTIONS.

    Its identity is (id, first record), because many transactions share an epoch in transactions v0 and v1. The update
    time of a Complete record is when its Prepare was acknowledged, so `completed` is the append time of the record
    (docs/rules/transactions.md#times-in-coordinator-records).
    `transaction_version`: the level of that feature now; the metadata log shows earlier ones.
    """
    instances = ended_instances(coordinator_states)
    level = _level_at_end(cluster_settings, transaction_version)
    decided_by = F.when(F.col("outcome") != "OPEN", ended_by()(F.expr(struct(Ending, _ENDING))))
    ended = kept(instances.withColumns({"ended_by": decided_by, "cluster_transaction_version": F.expr(level)}))
    on = ["transactional_id", "coordinator_partition", "transaction_number"]
    clocks = cluster_clocks(coverage, partition_assignments, measured_clocks)

    def with_markers(some: DataFrame) -> DataFrame:
        producers = some.where("outcome != 'OPEN'").selectExpr(f"{_DECIDED_FOR} AS producer_id")
        own = producer_spans.join(producers, on="producer_id", how="left_semi")
        return some.join(decision_markers(some, own, clocks), on=on, how="left")

    return conform(by_parts(ended, with_markers, _DECIDED_FOR, MATCHED_AT_ONCE), TABLES["transactions"])


def ended_instances(coordinator_states: DataFrame) -> DataFrame:
    """The transactions, without who ended them and without their markers."""

    def summed(states: DataFrame) -> DataFrame:
        return with_columns(select(_INSTANCES, states=states), _OF_ENDING)

    return by_parts(coordinator_states, summed, "transactional_id", SUMMED_AT_ONCE)


#: Most transactions that the embedded engine matches with their markers at a time: each takes 10 KB meanwhile. Most
#: records that it sums up to transactions.
MATCHED_AT_ONCE: Final = 100_000
SUMMED_AT_ONCE: Final = 1_000_000
_DECIDED_FOR: Final = "coalesce(decided_producer_id, producer_id)"


def _level_at_end(cluster_settings: Sequence[ClusterSetting], now: int | None) -> str:
    """The level of `transaction.version` at the end of a transaction, as SQL."""
    ended, present = "coalesce(prepared_ms, completed_ms)", "CAST(NULL AS INT)" if now is None else f"{now}"
    applied = [
        f"WHEN {ended} >= {each.since_ms or FIRST_MS} AND {ended} < {each.until_ms or NO_INSTANT_MS} THEN {each.value}"
        for each in cluster_settings
        if each.scope == "FEATURE" and each.name == TRANSACTION_VERSION and each.value is not None
    ]
    return f"CASE {' '.join(applied)} ELSE {present} END" if applied else present


_IS_PREPARED, _IS_COMPLETE, _IS_ACTIVE = (
    f"state IN {quoted_list(state.kafka_name for state in states)}"
    for states in (PREPARED_STATES, COMPLETE_STATES, ACTIVE_STATES)
)
#: The records of each transaction as one row. A record contains the time of the decision; if no clock shows that time,
#: its append time counts. A value of version 1 omits a client version of 0; older text prints neither. An Ongoing
#: record that adds offsets may contain 0 although the client uses version 2.
_INSTANCES: Final = f"""
SELECT transactional_id, coordinator_partition, transaction_number,
  min_by(producer_id, offset) AS producer_id,
  min_by(producer_epoch, offset) AS producer_epoch,
  max_by(state, offset) AS state,
  min({clock_ms("start_ms")}) AS start_ms,
  max({clock_ms("timestamp_ms")}) FILTER (WHERE {_IS_PREPARED}) AS prepared_ms,
  min(if(NOT {is_shown("last_update_ms")}, {clock_ms("timestamp_ms")}, last_update_ms)) FILTER (WHERE {_IS_PREPARED})
    AS decided_ms,
  min({clock_ms("last_update_ms")}) FILTER (WHERE {_IS_COMPLETE}) AS acknowledged_ms,
  max({clock_ms("timestamp_ms")}) FILTER (WHERE {_IS_COMPLETE}) AS completed_ms,
  max_by(partitions, offset) FILTER (WHERE {_IS_ACTIVE}) AS partitions,
  max_by(transaction_timeout_ms, offset) AS transaction_timeout_ms,
  max(client_transaction_version) AS transaction_version,
  min(offset) AS first_record_offset,
  max(offset) AS last_record_offset,
  max_by(producer_epoch, offset) FILTER (WHERE state = 'Ongoing') AS ongoing_epoch,
  max(coalesce(client_transaction_version, 0))
    FILTER (WHERE state = 'Ongoing' AND value_version IS NOT NULL) AS client_version,
  max_by(producer_id, offset) FILTER (WHERE {_IS_PREPARED}) AS decided_producer_id,
  max_by(producer_epoch, offset) FILTER (WHERE {_IS_PREPARED}) AS decided_epoch,
  max_by(coordinator_epoch, offset) FILTER (WHERE {_IS_PREPARED}) AS decided_coordinator_epoch,
  max_by(coordinator_epoch, offset) AS stamped_epoch,
  bool_or({_IS_PREPARED} AND legality = 'TRANSACTIONS_V2') AS is_without_ongoing,
  max_by(timestamp_ms, offset) AS last_ms,
  max_by(next, offset) AS next
FROM (SELECT *, {next_of_id("state", "last_update_ms")} AS next FROM {{states}})
WHERE transaction_number IS NOT NULL
GROUP BY transactional_id, coordinator_partition, transaction_number
"""
_OF_ENDING: Final = {
    "outcome": "CASE WHEN state LIKE '%Commit' THEN 'COMMIT' WHEN state LIKE '%Abort' THEN 'ABORT' ELSE 'OPEN' END",
    "start": instant("start_ms"),
    "prepared": instant("prepared_ms"),
    "completed": instant("completed_ms"),
    "decided": instant("coalesce(decided_ms, acknowledged_ms)"),
    "time_to_decide_ms": "decided_ms - start_ms",
    "time_to_write_markers_ms": "completed_ms - decided_ms",
    "is_two_phase_commit": IS_TWO_PHASE_COMMIT,
    "client_transaction_version": "client_version",
}
_FOLLOWS_MS: Final = f"{clock_ms('next.last_update_ms')} - {clock_ms('last_ms')}"
_ENDING: Final = {
    "is_commit": "outcome = 'COMMIT'",
    "prepared_epoch": "decided_epoch",
    "is_without_ongoing": "coalesce(is_without_ongoing, FALSE)",
    "open_ms": "decided_ms - start_ms",
    "timeout_ms": "transaction_timeout_ms",
    "is_reinitialized": f"coalesce(next.state = 'Empty' AND {_FOLLOWS_MS} <= {REINITIALIZED_WITHIN_MS}, FALSE)",
}
