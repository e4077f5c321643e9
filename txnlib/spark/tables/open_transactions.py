"""`open_transactions`: the open transactions, who would end each, and the verdict.

Spark gathers a dossier for each producer id (`dossiers`), the core judges it in Python tasks
(`core.tables.judged_transactions`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.application import compiled
from txnlib.core.cluster_metadata import BrokerSession, ClusterSetting, PartitionAssignment, ProducerIdBlock
from txnlib.core.copies import CoverageRow, survives
from txnlib.core.findings.marker_findings import MARKER_WITHOUT_DECISION
from txnlib.core.findings.metadata_findings import PRODUCER_ID_NEVER_ALLOCATED
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC, UNKNOWN_CLOCKS_DIFFER_MS
from txnlib.core.kafka.coordinator_partition import CountBasis
from txnlib.core.sql_text import IS_OPEN, clock_ms, clock_ms_or_latest
from txnlib.core.tables.judged_transactions import judge_dossier
from txnlib.core.verdicts.clock_bounds import ClockBounds
from txnlib.core.verdicts.cluster_facts import (
    ClusterFacts,
    NewestMade,
    PartitionAlarm,
    Thresholds,
    cluster_clocks,
    cluster_facts,
)
from txnlib.core.verdicts.coordinators import CoordinatorLog, ReadBefore
from txnlib.core.verdicts.dossier import Dossier
from txnlib.core.verdicts.reason import Verdict
from txnlib.core.verdicts.whose_clock import MeasuredClocks
from txnlib.readers.typed_rows import arrow_rows, plain, typed
from txnlib.spark.coordinators.clock_pairs import clock_pairs
from txnlib.spark.coordinators.transaction_markers import each_marker
from txnlib.spark.core_rows import rows_of, struct_of
from txnlib.spark.frames import arrow_of, by_parts, local_rows
from txnlib.spark.joins import select, with_columns
from txnlib.spark.python_tasks import by_python
from txnlib.spark.schemas import OPEN_TRANSACTION, TABLES, TOPIC_PARTITION, TRUNCATED
from txnlib.spark.tables.batch_evidence import vanished_commits
from txnlib.spark.tables.dossiers import ALARMING_FINDINGS, IS_HANDED_OUT, dossiers, located_transactions


def open_transactions(
    producer_spans: DataFrame,
    record_batches: DataFrame,
    coordinator_states: DataFrame,
    transaction_log: DataFrame,
    transactions: DataFrame,
    producer_id_owners: DataFrame,
    coverage: Sequence[CoverageRow],
    checked_batches: DataFrame,
    findings: DataFrame,
    judged_copies: DataFrame,
    producer_snapshots: DataFrame,
    aborted_transactions: DataFrame,
    partition_assignments: Sequence[PartitionAssignment],
    broker_sessions: Sequence[BrokerSession],
    cluster_settings: Sequence[ClusterSetting],
    producer_id_blocks: Sequence[ProducerIdBlock],
    measured_clocks: Sequence[MeasuredClocks],
    *,
    thresholds: Thresholds,
    kafka_version: str | None,
    transaction_version: int | None = None,
    coordinator_partitions_basis: str = "GIVEN",
    is_metadata_confirmed: bool = False,
    hides_elections: bool = False,
    application_patterns: tuple[str, ...] = (),
    earlier: DataFrame | None = None,
    earlier_coverage: DataFrame | None = None,
) -> DataFrame | pa.Table:
    """One row per open transaction on a partition, judged. Columns: OPEN_TRANSACTIONS.

    `earlier`: the stored table of other runs of the cluster. A transaction in it was open when that run's copies were
    taken. `earlier_coverage`: their coverage. Kafka: `TransactionsCommand.FindHangingTransactionsCommand`, KIP-664.
    """
    if producer_spans.where(IS_OPEN).isEmpty():
        return arrow_rows("open_transactions", ())
    # A producer id of another cluster says nothing of the other producers of a partition.
    of_partitions = findings.where(f"{ALARMING_FINDINGS} AND name != '{PRODUCER_ID_NEVER_ALLOCATED.name}'")
    alarms = of_partitions.select("name", *TOPIC_PARTITION).distinct()
    known = ClusterFacts(
        thresholds=thresholds,
        kafka_version=kafka_version,
        transaction_version=transaction_version,
        count_basis=CountBasis(coordinator_partitions_basis),
        is_metadata_confirmed=is_metadata_confirmed,
        hides_elections=hides_elections,
    )
    logs = rows_of(
        select(
            _COORDINATOR_LOGS,
            states=coordinator_states,
            spans=producer_spans,
            snapshots=producer_snapshots,
            owners=producer_id_owners,
            transactions=transactions,
            findings=findings,
            vanished=vanished_commits(record_batches, coverage),
        ),
        CoordinatorLog,
    )
    if any(copy.is_console_text for copy in coverage):
        found = arrow_of(select(_LOST_PRINTED, states=coordinator_states, log=transaction_log)).to_pylist()
        printed = {each["partition"]: each["printed"] for each in found}
        logs = [replace(each, lost_printed=printed.get(each.partition)) for each in logs]
    cut = [copy for copy in coverage if copy.topic == TRANSACTION_STATE_TOPIC and copy.truncated]
    if cut:
        rows = [(copy.partition, copy.source, [plain(each) for each in copy.truncated or ()]) for copy in cut]
        ddl = f"partition int, source string, truncated {TRUNCATED.simpleString()}"
        others = local_rows(transaction_log.sparkSession, rows, ddl)
        found = arrow_of(select(_TRUNCATED_IDS, log=transaction_log, others=others)).to_pylist()
        tails = {each.pop("partition"): each for each in found}
        logs = [replace(each, **tails.get(each.partition, {})) for each in logs]
    facts = cluster_facts(
        known,
        coverage,
        logs,
        rows_of(alarms, PartitionAlarm),
        partition_assignments,
        broker_sessions,
        cluster_settings,
        producer_id_blocks,
        () if earlier_coverage is None else rows_of(select(_READ_BEFORE, coverage=earlier_coverage), ReadBefore),
    )
    clocks = cluster_clocks(coverage, partition_assignments, measured_clocks)
    bounds = rows_of(clock_pairs(transactions, producer_spans, clocks.named), ClockBounds)
    made = rows_of(select(_NEWEST_MADE, spans=producer_spans, states=coordinator_states), NewestMade)
    is_v2_known = facts.shows_v2 or (transaction_version or 0) >= 2
    facts = replace(
        facts,
        clocks=replace(clocks, bounds=bounds, behind=facts.clocks_behind(made, clocks)),
        has_v2_markers=not is_v2_known
        and arrow_of(select(_V2_MARKERS, spans=producer_spans, transactions=transactions)).num_rows > 0,
    )

    def judged(located: DataFrame) -> DataFrame:
        gathered = dossiers(
            located,
            producer_spans,
            record_batches,
            coordinator_states,
            transactions,
            producer_id_owners,
            checked_batches,
            findings,
            producer_snapshots,
            aborted_transactions,
            coverage,
            earlier,
        )
        return judged_rows(gathered, facts, application_patterns)

    return by_parts(located_transactions(producer_spans, judged_copies), judged, "producer_id", GATHERED_AT_ONCE)


#: One row per coordinator partition with records. Columns: those of CoordinatorLog.
#:
#: A coordinator that sends markers again may fail before it writes a record: then a decision explains the marker.
#: `lost_commit_since_ms`: if a decision is lost, all later records of its leader epoch are. So surviving records of
#: leader epochs up to that of its marker were written before it.
_COORDINATOR_LOGS: Final = f"""
WITH logs AS (
  SELECT coordinator_partition, max(coordinator_epoch) AS newest_coordinator_epoch, max(offset) AS last_offset,
    max_by({clock_ms("timestamp_ms")}, offset) AS last_ms,
    max(hole_offset) AS hole_offset, max({clock_ms_or_latest("hole_ms")}) AS hole_ms,
    max(if(offset = hole_offset, coordinator_epoch, NULL)) AS hole_epoch,
    max(client_transaction_version) AS highest_transaction_version
  FROM {{states}} GROUP BY coordinator_partition
), leaps AS (
  SELECT coordinator_partition, epoch_before, ms_before, coordinator_epoch AS epoch_behind
  FROM (
    SELECT coordinator_partition, coordinator_epoch, offset, hole_offset,
      lag(coordinator_epoch) OVER (PARTITION BY coordinator_partition ORDER BY offset) AS epoch_before,
      lag({clock_ms("timestamp_ms")}) OVER (PARTITION BY coordinator_partition ORDER BY offset) AS ms_before
    FROM {{states}}
  )
  WHERE coordinator_epoch > epoch_before + 1 AND NOT (hole_offset <=> offset)
), owned AS (
  SELECT DISTINCT producer_id, coordinator_partition FROM {{owners}}
), named AS (
  SELECT coordinator_partition, max(newest_epoch) AS newest_marker_epoch
  FROM (
    SELECT producer_id, max(marker_coordinator_epoch) AS newest_epoch
    FROM {{spans}} WHERE marker_offset IS NOT NULL GROUP BY producer_id
    UNION ALL SELECT producer_id, max(coordinator_epoch) FROM {{snapshots}} GROUP BY producer_id
  )
  JOIN owned USING (producer_id) GROUP BY coordinator_partition
), leapt AS (
  SELECT coordinator_partition, producer_id, topic, partition, marker_offset, marker_coordinator_epoch, ms_before
  FROM {{spans}} JOIN (SELECT * FROM leaps JOIN owned USING (coordinator_partition)) USING (producer_id)
  WHERE first_offset IS NOT NULL AND marker_coordinator_epoch > epoch_before
    AND marker_coordinator_epoch < epoch_behind
), lacked AS (
  SELECT coordinator_partition, max(lacked_epoch) AS lacked_epoch, min(ms_before) AS lacked_since_ms
  FROM (
    SELECT coordinator_partition, marker_coordinator_epoch AS lacked_epoch, ms_before
    FROM leapt LEFT ANTI JOIN (
      SELECT producer_id, topic, partition, {each_marker()}
      FROM (SELECT producer_id, inline(markers) FROM {{transactions}})
    ) USING (producer_id, topic, partition, marker_offset)
    UNION ALL
    -- A snapshot has the epoch of a marker whose log was not captured.
    SELECT coordinator_partition, snapshots.coordinator_epoch, ms_before
    FROM {{snapshots}} AS snapshots LEFT ANTI JOIN {{spans}} AS spans
      ON spans.producer_id = snapshots.producer_id AND spans.topic = snapshots.topic
        AND spans.partition = snapshots.partition AND marker_coordinator_epoch = snapshots.coordinator_epoch
    JOIN (SELECT * FROM leaps JOIN owned USING (coordinator_partition)) AS leaps
      ON leaps.producer_id = snapshots.producer_id
    WHERE snapshots.coordinator_epoch > epoch_before AND snapshots.coordinator_epoch < epoch_behind
  )
  GROUP BY coordinator_partition
), committed AS (
  SELECT coordinator_partition, producer_id, topic, partition, marker_offset, marker_offset AS own_offset, marker_epoch,
    marker_coordinator_epoch AS sent_epoch, {clock_ms("marker_ms")} AS at_ms, hole_offset IS NULL AS is_whole
  FROM {{spans}} JOIN owned USING (producer_id) JOIN logs USING (coordinator_partition)
  WHERE marker_type = 'COMMIT' AND first_offset IS NOT NULL
  UNION ALL
  -- An offset of another history is no decision's.
  SELECT coordinator_partition, producer_id, topic, partition, marker_offset, NULL, marker_epoch, NULL, at_ms,
    hole_offset IS NULL
  FROM {{vanished}} JOIN owned USING (producer_id) JOIN logs USING (coordinator_partition)
), decided AS (
  SELECT producer_id, coalesce(decided_epoch, producer_epoch) AS decision_epoch, inline(markers),
    unix_millis(coalesce(decided, start)) - {UNKNOWN_CLOCKS_DIFFER_MS} AS since_ms,
    unix_millis(completed) + {UNKNOWN_CLOCKS_DIFFER_MS} AS until_ms
  FROM {{transactions}} WHERE outcome = 'COMMIT'
), found AS (
  SELECT producer_id, topic, partition, offset AS marker_offset
  FROM {{findings}} WHERE name = '{MARKER_WITHOUT_DECISION.name}'
), unexplained AS (
  SELECT coordinator_partition, min(at_ms) AS lost_commit_ms,
    min_by(concat('offset ', marker_offset, ' of ', topic, '-', partition), at_ms) AS lost_commit,
    if(count(sent_epoch) = count(*), min(sent_epoch), NULL) AS sent_epoch
  FROM (
    SELECT coordinator_partition, topic, partition, marker_offset, sent_epoch, at_ms
    FROM (SELECT * FROM committed WHERE own_offset IS NOT NULL)
    LEFT SEMI JOIN found USING (producer_id, topic, partition, marker_offset)
    UNION ALL
    SELECT coordinator_partition, topic, partition, marker_offset, sent_epoch, at_ms
    FROM (SELECT * FROM committed WHERE is_whole) AS committed
    LEFT ANTI JOIN decided ON decided.producer_id = committed.producer_id AND decided.topic = committed.topic
      AND decided.partition = committed.partition
      AND (coalesce(decided.marker_offset = committed.own_offset, FALSE) OR (
        decided.decision_epoch = committed.marker_epoch
        AND coalesce(at_ms >= since_ms, TRUE) AND coalesce(at_ms <= until_ms, TRUE)))
  )
  GROUP BY coordinator_partition
), older AS (
  SELECT coordinator_partition, max_by({clock_ms("timestamp_ms")}, offset) AS lost_commit_since_ms
  FROM {{states}} JOIN unexplained USING (coordinator_partition)
  WHERE coordinator_epoch <= sent_epoch
  GROUP BY coordinator_partition
)
SELECT coordinator_partition AS partition, newest_coordinator_epoch, last_offset, last_ms, hole_offset, hole_ms,
  hole_epoch, highest_transaction_version, newest_marker_epoch, lacked_epoch, lacked_since_ms, lost_commit,
  lost_commit_ms, lost_commit_since_ms, CAST(NULL AS STRING) AS lost_printed,
  CAST(NULL AS ARRAY<BIGINT>) AS truncated_ids, CAST(NULL AS BOOLEAN) AS truncates_decisions
FROM logs
LEFT JOIN named USING (coordinator_partition)
LEFT JOIN lacked USING (coordinator_partition)
LEFT JOIN unexplained USING (coordinator_partition)
LEFT JOIN older USING (coordinator_partition)
"""

#: Per coordinator partition, a record of console text that is newer than every record of its id in the log. Such text
#: has no offsets, and there is another copy. The id has not expired: compaction keeps the newest record of an id.
_LOST_PRINTED: Final = """
SELECT partition, max(concat(transactional_id, ' in ', newest.state)) AS printed
FROM (
  SELECT partition, transactional_id, max(struct(last_update_ms, state)) AS newest
  FROM {log} WHERE offset IS NULL AND last_update_ms IS NOT NULL GROUP BY partition, transactional_id
)
JOIN (
  SELECT coordinator_partition AS partition, transactional_id, max(last_update_ms) AS known_ms
  FROM {states} GROUP BY coordinator_partition, transactional_id HAVING NOT max_by(is_tombstone, offset)
) USING (partition, transactional_id)
WHERE newest.last_update_ms > known_ms GROUP BY partition
"""
#: Per coordinator partition, the producer ids in records that a newer leader truncated, and whether it truncated
#: decisions.
_TRUNCATED_IDS: Final = f"""
SELECT partition, collect_set(producer_id) AS truncated_ids, bool_or(state LIKE 'Prepare%') AS truncates_decisions
FROM {{log}} JOIN {{others}} AS others USING (partition, source)
WHERE producer_id IS NOT NULL AND offset IS NOT NULL AND NOT ({survives("coordinator_epoch", "offset")})
GROUP BY partition
"""
#: What earlier audits read of each coordinator partition, below its high watermark. Columns: those of ReadBefore.
_READ_BEFORE: Final = f"""
SELECT partition, topic_id, leader_epoch, max(least(end_offset, high_watermark)) AS end_offset
FROM {{coverage}}
WHERE topic = '{TRANSACTION_STATE_TOPIC}' AND NOT coalesce(is_deleted, FALSE)
  AND end_offset IS NOT NULL AND high_watermark IS NOT NULL AND leader_epoch IS NOT NULL
GROUP BY partition, topic_id, leader_epoch
"""
#: One row per partition with something open, if a record shows when the epoch of it was handed out. Columns: those of
#: NewestMade.
_NEWEST_MADE: Final = f"""
SELECT topic, partition, max(made_ms) AS made_ms, max_by(coordinator_partition, made_ms) AS coordinator_partition,
  max_by(coordinator_epoch, made_ms) AS coordinator_epoch
FROM (SELECT topic, partition, producer_id, producer_epoch FROM {{spans}} WHERE {IS_OPEN})
JOIN (
  SELECT producer_id, producer_epoch, min({clock_ms("timestamp_ms")}) AS made_ms, coordinator_partition,
    min(coordinator_epoch) AS coordinator_epoch
  FROM {{states}} WHERE {IS_HANDED_OUT} GROUP BY producer_id, producer_epoch, coordinator_partition
) USING (producer_id, producer_epoch)
WHERE made_ms IS NOT NULL GROUP BY topic, partition
"""
#: One row if a COMMIT marker has a higher epoch than all records that it ends. Without transactions v2, that is so
#: where these are only a fenced producer's late writes: then a coordinator decided it at its own epoch.
_V2_MARKERS: Final = """
SELECT marker_offset
FROM {spans}
LEFT ANTI JOIN (
  SELECT producer_id, decided_epoch AS marker_epoch FROM {transactions}
  WHERE outcome = 'COMMIT' AND producer_epoch = decided_epoch
) USING (producer_id, marker_epoch)
WHERE marker_type = 'COMMIT' AND first_offset IS NOT NULL AND marker_epoch = coalesce(newest_epoch, producer_epoch) + 1
LIMIT 1
"""


#: Most open transactions whose dossiers the embedded engine gathers at a time: each takes 20 KB meanwhile.
GATHERED_AT_ONCE: Final = 50_000


def judged_rows(gathered: DataFrame, facts: ClusterFacts, application_patterns: tuple[str, ...] = ()) -> DataFrame:
    """The dossiers, judged in tasks. Columns: OPEN_TRANSACTIONS."""

    patterns = compiled(application_patterns)

    def judge(batch: pa.RecordBatch) -> list[pa.RecordBatch]:
        dossiers = [typed(Dossier, row) for row in batch.to_pylist()]
        rows = [each for dossier in dossiers for each in judge_dossier(dossier, facts, patterns)]
        return list(arrow_rows("open_transactions", rows).to_batches())

    return by_python(gathered, struct_of(Dossier), judge, TABLES["open_transactions"])


#: Most open transactions, besides the first ones of partitions, that a plan orders. Nobody takes more steps before the
#: next audit.
MOST_IN_PLAN: Final = 100_000
#: Verdicts that ask nobody to act before the next audit.
_NO_ACTION: Final = (Verdict.OPEN.value, Verdict.SUSPECT.value, Verdict.UNKNOWN.value)


def foremost(open_transactions: DataFrame, *, most: int = MOST_IN_PLAN) -> DataFrame:
    """The open transactions that count, if there are more than a driver should judge together. Columns:
    OPEN_TRANSACTIONS.

    These are the first two of each partition, which determine its last stable offset, and at most `most` others: first
    those with a verdict that asks somebody to act, then those that block most.
    """
    in_order = "PARTITION BY topic, partition ORDER BY start_offset, producer_id, transactional_id"
    ranked = with_columns(open_transactions, {"rank": f"row_number() OVER ({in_order})"})
    order = (F.col("verdict").isin(*_NO_ACTION), F.desc_nulls_last("blocked_offsets"), *OPEN_TRANSACTION)
    others = ranked.where("rank > 2").orderBy(*order)
    return ranked.where("rank <= 2").unionByName(others.limit(most)).drop("rank")
