"""`producer_spans`: each producer's batches on a partition between two of its markers.

One pass of windows over all batches. Several tables read the result, so it is stored. A span ends with a marker, or is
the newest one. The windows at its last batch cover the whole span, so no grouping is needed.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.batch_runs import BATCHES, FIRST_TIMESTAMP_MS, LAST_BATCH_OFFSET, is_divided_at, of_run
from txnlib.core.copies import BEGINS_BY_SCOPE, survives
from txnlib.core.findings.producer_findings import SUSPECTS_KEPT
from txnlib.core.kafka.constants import MAX_INT64, MAX_SEQUENCE, PRODUCER_ID_EXPIRATION_MS
from txnlib.core.sql_text import BEFORE, IS_NEWEST, instant
from txnlib.spark.frames import kept
from txnlib.spark.joins import RUN_BATCHES, broadcast, select, single_batches, with_columns
from txnlib.spark.producers.producer_steps import now, state, sum_until_now, with_states
from txnlib.spark.schemas import BATCH_FIELDS, COPY, MARKER_FIELDS, PRODUCER, TABLES, conform, named
from txnlib.spark.windows import IN_BUCKET, UNTIL_NOW, at_last


def producer_spans(
    record_batches: DataFrame,
    producer_snapshots: DataFrame,
    coverage: DataFrame,
    *,
    producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS,
) -> DataFrame:
    """One row per producer and span of the judged copies, and one per suspect batch. Columns: PRODUCER_SPANS."""
    judged = kept(with_snapshot(coverage, producer_snapshots))
    batches = batches_of(record_batches, producer_snapshots, judged)
    return located_spans(spans_of(with_states(batches, producer_id_expiration_ms=producer_id_expiration_ms)), judged)


def with_snapshot(coverage: DataFrame, producer_snapshots: DataFrame) -> DataFrame:
    """The judged copies, each with the snapshot for the part of the log before its first captured offset.

    This is the oldest snapshot at or above the first offset: it contains the transactions that were open before and
    still are. A snapshot below the first offset is followed by a hole, in which these transactions may have ended. The
    answer of a leader is such a snapshot, too, if it shows a transaction that began before. Source:
    docs/rules/copies.md#snapshots-and-holes.

    begins_at: the offset below which nothing was read. deleted_until: the log start, if batches below it are left.
    shown: the first snapshot from there on, and what it has open.
    """
    return select(_WITH_SNAPSHOT, coverage=coverage, snapshots=producer_snapshots)


#: Whether a row of a snapshot may begin a log: of an answer, which is of a later state, only what began before the log.
_MAY_SEED: Final = "(is_answer IS NULL OR current_txn_first_offset < begins_at)"
_WITH_SNAPSHOT: Final = f"""
WITH judged AS (
  SELECT topic, partition, source, truncated, overlap_offset,
    CASE WHEN {BEGINS_BY_SCOPE} THEN read_from_offset ELSE least(log_start_offset, first_offset) END AS begins_at,
    CASE WHEN log_start_offset > first_offset THEN log_start_offset END AS deleted_until,
    -- At the log start it says nothing: a leader raises it to there.
    CASE WHEN answered_stable_offset > coalesce(log_start_offset, 0) THEN answered_stable_offset END
      AS answered_stable_offset
  FROM {{coverage}} WHERE is_judged
), of_snapshots AS (
  SELECT /*+ BROADCAST(judged) */ topic, partition, source, snapshot_offset, is_answer,
    bool_or(begins_at > 0 AND snapshot_offset >= begins_at AND {_MAY_SEED}) AS may_seed,
    bool_or(is_answer IS NULL AND snapshot_offset >= deleted_until) AS is_behind_deleted,
    collect_set(CASE WHEN snapshot_offset >= deleted_until AND current_txn_first_offset IS NOT NULL
      THEN struct(producer_id, current_txn_first_offset AS first_offset) END) AS open
  FROM {{snapshots}} JOIN judged USING (topic, partition, source)
  GROUP BY topic, partition, source, snapshot_offset, is_answer
)
SELECT topic, partition, source, truncated, overlap_offset, begins_at, deleted_until, answered_stable_offset, shown,
  seed.snapshot_offset, seed.is_answered
FROM judged LEFT JOIN (
  SELECT topic, partition, source,
    min(CASE WHEN may_seed THEN struct(snapshot_offset, is_answer AS is_answered) END) AS seed,
    min_by(struct(snapshot_offset AS at, open), snapshot_offset) FILTER (WHERE is_behind_deleted) AS shown
  FROM of_snapshots GROUP BY topic, partition, source
) USING (topic, partition, source)
"""


def batches_of(record_batches: DataFrame, producer_snapshots: DataFrame, judged: DataFrame) -> DataFrame:
    """The input of the windows: one row per batch of a producer in these judged copies, and per producer of their
    snapshots."""
    seeds = select(_SEEDS, snapshots=producer_snapshots, judged=judged)
    return seeds.unionByName(read_batches_of(record_batches, judged))


#: One synthetic batch per producer of the snapshot before the log. Appending it results in the snapshot's state. An
#: answer is of a state behind any batch.
_SEEDS: Final = f"""
SELECT /*+ BROADCAST(judged) */ topic, partition, producer_id, begins_at - 1 AS base_offset, last_offset,
  producer_epoch,
  last_sequence AS base_sequence, last_sequence, last_timestamp_ms AS max_timestamp_ms,
  current_txn_first_offset IS NOT NULL AS is_transactional, FALSE AS is_marker, CAST(NULL AS STRING) AS control_type,
  coordinator_epoch, CAST(NULL AS BIGINT) AS records, CAST(NULL AS BIGINT) AS bytes, FALSE AS is_broker_clock,
  current_txn_first_offset AS opens_at, TRUE AS is_seed, if(is_answer, {MAX_INT64}, snapshot_offset) AS snapshot_offset,
  1 AS batches, begins_at - 1 AS last_batch_offset, last_timestamp_ms AS first_timestamp_ms,
  last_offset AS first_batch_end,
  CAST(NULL AS {RUN_BATCHES}) AS run_batches, CAST(NULL AS INT) AS leader_epoch
FROM {{snapshots}} JOIN {{judged}} AS judged USING (topic, partition, source, snapshot_offset)
WHERE producer_id IS NOT NULL AND is_answer <=> is_answered AND {_MAY_SEED}
"""


def read_batches_of(record_batches: DataFrame, judged: DataFrame) -> DataFrame:
    """The batches of producers: not those without a producer id, and not control batches without a marker.

    A row is a run of batches, if `record_batches` has runs. Runs are divided where a newer leader truncated a part of
    them, and where segments overlap: there, the same batch may be in two runs, and only single batches show that.
    """
    has_marker = "control_type IS NOT NULL OR (source NOT LIKE 'raw:%' AND coalesce(records_count, 1) > 0)"
    own = record_batches.where(f"producer_id IS NOT NULL AND (NOT is_control OR {has_marker})")
    joined = own.select(*TABLES["record_batches"].names).join(broadcast(judged), on=list(COPY))
    is_truncated_within = f"exists(truncated, cut -> {is_divided_at('cut.from_offset')})"
    is_divided = f"(coalesce(last_offset >= overlap_offset, FALSE) OR coalesce({is_truncated_within}, FALSE))"
    return select(_READ, batches=single_batches(joined, is_divided))


_READ: Final = f"""
SELECT topic, partition, producer_id, base_offset, last_offset, producer_epoch, base_sequence, last_sequence,
  max_timestamp_ms,
  is_transactional, is_control AS is_marker, control_type, coordinator_epoch, CAST(records_count AS BIGINT) AS records,
  CAST(size AS BIGINT) AS bytes, timestamp_type = 'LOG_APPEND_TIME' AS is_broker_clock,
  CASE WHEN is_transactional AND NOT is_control THEN base_offset END AS opens_at, FALSE AS is_seed,
  CAST(NULL AS BIGINT) AS snapshot_offset, {BATCHES} AS batches, {LAST_BATCH_OFFSET} AS last_batch_offset,
  {FIRST_TIMESTAMP_MS} AS first_timestamp_ms,
  CASE WHEN {BATCHES} > 1 THEN base_offset + {of_run("offset_delta", 0)} ELSE last_offset END AS first_batch_end,
  -- Only batches outside of a transaction can all be suspect (`producer_steps`).
  CASE WHEN NOT is_transactional THEN run_batches END AS run_batches, partition_leader_epoch AS leader_epoch
FROM {{batches}} WHERE {survives("partition_leader_epoch", "base_offset")}
"""


def located_spans(spans: DataFrame, judged: DataFrame) -> DataFrame:
    """The spans, each with whether its start offset is exact. Columns: PRODUCER_SPANS.

    What began below the log start is not open if the next snapshot does not have it: the broker has started since, and
    read nothing below the log start. Kafka: `UnifiedLog.rebuildProducerState`.
    """
    located = select(_LOCATED, spans=spans, judged=judged)
    kept = with_columns(located, {name: f"if(is_forgotten, NULL, {name})" for name in _OF_DATA})
    start = F.expr("if(is_forgotten, NULL, state.current_txn_first_offset)")
    return conform(
        kept.withColumn("state", F.col("state").withField("current_txn_first_offset", start)), TABLES["producer_spans"]
    )


_COLUMNS: Final = ", ".join(name for name in TABLES["producer_spans"].names if name != "is_start_exact")
#: A log that was captured from its middle may hide where a transaction began. But what began before the copy and is
#: still open was open when the leader said that nothing below its last stable offset was.
_LOCATED: Final = f"""
SELECT /*+ BROADCAST(judged) */ {_COLUMNS},
  span > 0 OR NOT coalesce(begins_at > 0 AND snapshot_offset IS NULL, FALSE)
    OR coalesce(marker_offset IS NULL AND begins_at <= answered_stable_offset, FALSE) AS is_start_exact,
  coalesce(marker_offset IS NULL AND last_offset < deleted_until AND first_offset < shown.at
    AND NOT exists(shown.open, known -> known.producer_id = spans.producer_id
      AND known.first_offset = spans.first_offset),
    FALSE) AS is_forgotten
FROM {{spans}} AS spans LEFT JOIN {{judged}} AS judged USING (topic, partition)
"""


def spans_of(steps: DataFrame) -> DataFrame:
    """The last batch of each span, with the sums of the span, and each suspect batch. All other batches are dropped."""
    kept = with_columns(steps, {"is_end": "is_marker OR is_newest"}).where("is_end OR is_suspect")
    counted = with_columns(
        kept,
        {
            "suspects_of_bucket": f"sum(suspects) OVER ({IN_BUCKET} {UNTIL_NOW})",
            "is_first": f"NOT coalesce(lag(begins) OVER ({IN_BUCKET}) = begins, FALSE)",
        },
    )
    numbered = with_columns(
        counted,
        {
            "marker_before": f"if(max({_AT}) {_SO_FAR} >= begins, max_by({_MARKER}, {_AT}) {_SO_FAR}, NULL)",
            "suspects_until_now": f"suspects_of_bucket - {at_last('suspects_of_bucket - suspects', 'is_first')}",
        },
    )
    is_shown = f"is_suspect AND suspect_number <= {SUSPECTS_KEPT}"
    batch = f"{named(BATCH_FIELDS, BATCH_FIELDS.names)} AS batch"
    return (
        _with_single_suspects(numbered)
        .where(f"is_end OR ({is_shown})")
        .selectExpr(
            *(*PRODUCER, "span", "is_newest", "if(is_newest, suspects_until_now, NULL) AS suspects_count"),
            *[f"if(is_end, {value}, NULL) AS {name}" for name, value in _END.items()],
            f"if({is_shown}, struct(before, {batch}), NULL) AS suspect",
        )
    )


_AT: Final = "if(is_marker, row, NULL)"
_SO_FAR: Final = f"OVER ({IN_BUCKET} {BEFORE})"
_MARKER: Final = named(
    MARKER_FIELDS,
    ("base_offset", "control_type", "producer_epoch", "coordinator_epoch", "max_timestamp_ms", "leader_epoch"),
)


def _with_single_suspects(rows: DataFrame) -> DataFrame:
    """The rows, with the single batches of runs that have a suspect batch, and `suspect_number`. Only the last one can
    end a span.

    The state before a batch, other than the first, is that before the run, but for what the batch before it changed.
    """
    each = with_columns(rows, {"index": f"explode(sequence(0, if({_IS_RUN}, batches - 1, 0)))"})
    number = {
        "suspect_number": "suspects_until_now - suspects + index + 1",
        "is_suspect": "is_suspect AND index < suspects",
    }
    is_last = f"index = if({_IS_RUN}, batches - 1, 0)"
    ends = {name: f"{name} AND {is_last}" for name in ("is_end", "is_newest")}
    own = {name: f"CASE WHEN {_IS_RUN} THEN {value} ELSE {name} END" for name, value in _OF_BATCH.items()}
    return with_columns(each, own | number | ends).where("is_end OR is_suspect")


_IS_RUN: Final = "(is_suspect AND batches > 1)"


def _sequence(index: str) -> str:
    return f"CAST(base_sequence AS BIGINT) + {of_run('sequence', index)}"


_DELTA_BEFORE: Final = of_run("offset_delta", "index - 1")
_STATE_BEFORE: Final = state(
    "producer_epoch",
    f"({_sequence('index - 1')} + {_DELTA_BEFORE}) & {MAX_SEQUENCE}",
    f"base_offset + {of_run('offset', 'index - 1')} + {_DELTA_BEFORE}",
    _DELTA_BEFORE,
    *("coordinator_before", "start_before"),
    f"first_timestamp_ms + {of_run('timestamp', 'index - 1')}",
)
_BEGINS: Final = f"base_offset + {of_run('offset', 'index')}"
#: Column -> its value for a batch of a run.
_OF_BATCH: Final = {
    "base_offset": f"if(index = 0, base_offset, {_BEGINS})",
    "last_offset": f"if(index = 0, first_batch_end, {_BEGINS} + {of_run('offset_delta', 'index')})",
    "base_sequence": f"if(index = 0, base_sequence, CAST(({_sequence('index')}) & {MAX_SEQUENCE} AS INT))",
    "max_timestamp_ms": f"if(index = 0, first_timestamp_ms, first_timestamp_ms + {of_run('timestamp', 'index')})",
    "before": f"if(index = 0, before, {_STATE_BEFORE})",
}
#: Columns that describe the transaction of a span.
_OF_DATA: Final = (
    "first_offset",
    "last_offset",
    "records",
    "bytes",
    "first_timestamp_ms",
    "last_timestamp_ms",
    "is_broker_clock",
)
#: Sums over a span.
SUMS: Final = ("batches", "records", "uncounted", "bytes", "client_clocks")
_OF_SPAN: Final = {name: sum_until_now(name) for name in SUMS}
_START: Final = f"if(is_marker, start_before, {now('start')})"
#: The columns of a span, at its last batch.
_END: Final = {
    "producer_epoch": now("first_epoch"),
    "newest_epoch": "if(is_marker, epoch_before, producer_epoch)",
    "first_offset": _START,
    "last_offset": f"CASE WHEN {now('newest_offset')} >= {_START} THEN {now('newest_offset')} END",
    "marker_offset": "if(is_marker, base_offset, NULL)",
    "marker_type": "if(is_marker, control_type, NULL)",
    "marker_epoch": "if(is_marker, producer_epoch, NULL)",
    "marker_coordinator_epoch": "if(is_marker, coordinator_epoch, NULL)",
    "marker_ms": "if(is_marker, max_timestamp_ms, NULL)",
    "marker_leader_epoch": "if(is_marker, leader_epoch, NULL)",
    "marker_before": "if(is_marker, NULL, marker_before)",
    "batches": _OF_SPAN["batches"],
    "records": f"if({_START} IS NOT NULL AND {_OF_SPAN['uncounted']} = 0, {_OF_SPAN['records']}, NULL)",
    "bytes": f"if({_START} IS NOT NULL, {_OF_SPAN['bytes']}, NULL)",
    "first_timestamp_ms": f"if({_START} IS NOT NULL, {now('first_timestamp')}, NULL)",
    "last_timestamp_ms": f"if({_START} IS NOT NULL, {now('newest_timestamp')}, NULL)",
    "is_broker_clock": f"if({_START} IS NOT NULL, {_OF_SPAN['client_clocks']} = 0, NULL)",
    "state": "if(is_newest, after, NULL)",
}


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


def partition_transactions(producer_spans: DataFrame) -> DataFrame:
    """One row per transaction on a partition, and how it ended. Columns: PARTITION_TRANSACTIONS.

    Markers that ended nothing are no transactions (2.8 and later). Kafka: `ProducerAppendInfo.appendEndTxnMarker`.
    """
    text = f"""
    SELECT *, if(marker_offset IS NULL, 'OPEN', marker_type) AS outcome, marker_coordinator_epoch AS coordinator_epoch,
      {instant("marker_ms")} AS completed, {instant("first_timestamp_ms")} AS first_timestamp,
      {instant("last_timestamp_ms")} AS last_timestamp
    FROM {{spans}} WHERE first_offset IS NOT NULL AND (marker_offset IS NOT NULL OR ({IS_NEWEST}))
    """
    return conform(select(text, spans=producer_spans), TABLES["partition_transactions"])
