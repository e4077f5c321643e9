"""The dossiers of all producer ids with an open transaction: one row each, with the fields of
`core.verdicts.dossier.Dossier`.

Here is only what selects rows and sums them up, because logs are large. What follows from the facts is decided in the
core.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame

from txnlib.core.copies import CoverageRow
from txnlib.core.findings.coordinator_findings import WRONG_COORDINATOR_PARTITION
from txnlib.core.findings.copy_findings import COPIES_DISAGREE
from txnlib.core.findings.live_answer_findings import LIVE_OWNER_UNKNOWN
from txnlib.core.findings.metadata_findings import PRODUCER_ID_NEVER_ALLOCATED
from txnlib.core.instants import NO_INSTANT_MS
from txnlib.core.sql_text import BEFORE, IS_OPEN, clock_ms, clock_ms_or_latest, last_of, last_records, struct
from txnlib.core.verdicts.cluster_facts import ALARMING
from txnlib.core.verdicts.dossier import (
    MOST_MARKERS,
    Carried,
    CheckedBatch,
    Claim,
    CoordinatorDecision,
    Dossier,
    EarlierAudit,
    OddStep,
    OpenSpan,
    RepeatedMarker,
    SiblingMarkers,
    WrittenMarker,
)
from txnlib.spark.coordinators.transaction_markers import MARKER, each_marker
from txnlib.spark.core_rows import struct_of
from txnlib.spark.frames import kept, no_rows
from txnlib.spark.joins import broadcast, select
from txnlib.spark.schemas import COPY, PRODUCER, TOPIC_PARTITION
from txnlib.spark.tables.batch_evidence import files_beside, markers_elsewhere, stamps_around, vanished_markers
from txnlib.spark.windows import before_of_id

#: The columns of the `open_transactions` of earlier audits.
_EARLIER: Final = (
    "topic string, partition int, producer_id long, start_offset long, run_id string, as_of timestamp, copied_at"
    " timestamp, topic_id string, first_batch_crc long, reason string,"
    " newest_leader_epoch int, record_offset long,"
    f" carried {struct_of(Carried).simpleString()}, safe_to_abort boolean, safe_from timestamp"
)


def located_transactions(producer_spans: DataFrame, judged_copies: DataFrame) -> DataFrame:
    """One row per open transaction of a producer on a partition, with the judged copy of the partition."""
    opened = select(_OPENED, spans=producer_spans)
    return kept(opened.join(broadcast(judged_copies), on=list(TOPIC_PARTITION), how="left"))


def dossiers(
    located: DataFrame,
    producer_spans: DataFrame,
    record_batches: DataFrame,
    coordinator_states: DataFrame,
    transactions: DataFrame,
    producer_id_owners: DataFrame,
    checked_batches: DataFrame,
    findings: DataFrame,
    producer_snapshots: DataFrame,
    aborted_transactions: DataFrame,
    coverage: Sequence[CoverageRow],
    earlier: DataFrame | None = None,
) -> DataFrame:
    """One row per producer id with an open transaction. Columns: those of Dossier, except what tables of the cluster
    show.

    `located`: `located_transactions`, of all producers or some. `earlier`: the stored `open_transactions` of other runs
    of the cluster.
    """
    opened = located.select(*_OF_OPENED)
    return select(
        GATHERED,
        opened=opened,
        located=located,
        stamps=stamps_around(located, record_batches),
        markers_elsewhere=markers_elsewhere(opened, record_batches, coverage),
        vanished=vanished_markers(opened, record_batches, transactions, coverage),
        files_beside=files_beside(opened, producer_snapshots, aborted_transactions, coverage),
        producer_spans=producer_spans,
        checked_batches=checked_batches,
        transactions=transactions,
        producer_id_owners=producer_id_owners,
        coordinator_states=coordinator_states,
        findings=findings,
        snapshots=producer_snapshots,
        earlier=no_rows(producer_spans.sparkSession, _EARLIER) if earlier is None else earlier,
    )


def judged_copies(coverage: DataFrame) -> DataFrame:
    """The judged copy of each partition. Columns: COPY, log_start_offset, high_watermark, is_whole."""
    is_whole = "coalesce(first_offset = 0 AND gap_offset IS NULL AND damaged_offset IS NULL AND is_decoded, FALSE)"
    judged = coverage.where("is_judged")
    return judged.selectExpr(*COPY, "log_start_offset", "high_watermark", f"{is_whole} AS is_whole")


#: The columns of an open transaction of a producer on a partition, each with its value in a span.
_OF_OPENED: Final = {
    **{name: name for name in PRODUCER},
    "start_offset": "first_offset",
    "first_epoch": "producer_epoch",
    "producer_epoch": "state.producer_epoch",
    "coordinator_epoch": "state.coordinator_epoch",
    "last_timestamp_ms": "state.last_timestamp",
    **{
        name: name
        for name in (
            *("last_offset", "first_timestamp_ms", "is_broker_clock", "is_start_exact", "records", "marker_before"),
        )
    },
    "first_open_offset": "min(first_offset) OVER (PARTITION BY topic, partition)",
}
_OPENED: Final = f"""
SELECT {", ".join(f"{value} AS {name}" for name, value in _OF_OPENED.items())} FROM {{spans}} WHERE {IS_OPEN}
"""


#: The partitions on which the producer has something open; a transaction may have thousands of others.
_AMONG_PLACES: Final = (
    "filter(partitions, place -> exists(places, at -> at.topic = place.topic AND at.partition = place.partition))"
)
_ENDED: Final = ("first_offset", "first_timestamp_ms", "is_broker_clock")
_MARKER_BEFORE: Final = {name: f"marker_before.{name}" for name in MARKER} | dict.fromkeys(_ENDED, "NULL")
#: The condition on findings that forbid an abort of what they name.
ALARMING_FINDINGS: Final = f"(severity IN {ALARMING} OR name = '{WRONG_COORDINATOR_PARTITION.name}')"
_SIBLING: Final = {
    "topic": "of_topic",
    "partition": "of_partition",
    "newest_unexplained_commit_ms": "commit.ms",
    "newest_unexplained_commit_coordinator_epoch": "commit.coordinator_epoch",
    "newest_unexplained_commit_leader_epoch": "commit.leader_epoch",
    "newest_coordinator_epoch": "coordinator_epoch",
}
_EARLIER_AUDIT: Final = {
    "as_of_ms": "unix_millis(as_of)",
    "copied_ms": "unix_millis(copied_at)",
    "safe_to_abort": "coalesce(safe_to_abort, FALSE)",
    "safe_from_ms": "unix_millis(safe_from)",
}
_DECISION: Final = {
    "first_epoch": "producer_epoch",
    "coordinator_epoch": "decided_coordinator_epoch",
    "partitions": _AMONG_PLACES,
    "start_ms": "unix_millis(start)",
    "said_ms": "unix_millis(decided)",
    "prepared_ms": "unix_millis(prepared)",
    "completed_ms": "unix_millis(completed)",
}
#: Most odd steps of an id: the newest.
MOST_ODD_STEPS: Final = 20
_ODD_STEP: Final = {
    "state_before": "before.state",
    "epoch_before": "before.producer_epoch",
    "start_before_ms": "before.start_ms",
    "listed_before": _AMONG_PLACES.replace("partitions", "before.partitions", 1),
    "epoch": "producer_epoch",
}
#: SQL that selects steps that may be odd; the core decides (`core.verdicts.scene`).
_IS_ODD_STEP: Final = """(producer_epoch - before.producer_epoch >= 2
    OR (before.state = 'Ongoing' AND (state = 'Empty' OR is_tombstone))
    OR (before.state = 'Ongoing' AND state LIKE 'Prepare%' AND before.start_ms != start_ms))"""
#: A marker of the part of a log that earlier runs read, or that text does not show as a span of its own.
_LONE_MARKER: Final = f"CASE WHEN marker_before IS NOT NULL THEN array({struct(WrittenMarker, _MARKER_BEFORE)}) END"

#: Whether a record hands out its producer epoch, as SQL.
IS_HANDED_OUT: Final = "(state = 'Empty' OR (client_transaction_version >= 2 AND state != 'Ongoing'))"
_IN_ORDER: Final = "PARTITION BY topic, partition, producer_id ORDER BY marker_offset"
#: Whether a marker equals the one before and ended nothing: then it may have been sent again.
_IS_REPEAT: Final = f"""(first_offset IS NULL AND coalesce(
  lag(struct(marker_type, marker_epoch)) OVER ({_IN_ORDER}) = struct(marker_type, marker_epoch), FALSE))"""
_REPEATED: Final = struct(RepeatedMarker, {"own": "own.marker", "decision": "own.decision"})
_NEWEST_REPEATED: Final = f"slice(sort_array(collect_list(repeated), FALSE), 1, {MOST_MARKERS})"
_OPEN: Final = {"markers": f"coalesce(markers.markers, {_LONE_MARKER})"}

GATHERED: Final = f"""
WITH places AS (
  SELECT producer_id, collect_set(struct(topic, partition)) AS places FROM {{opened}} GROUP BY producer_id
),

-- The newest markers of each producer on the partitions where it has something open.
markers AS (
  SELECT topic, partition, producer_id, sort_array(collect_list({struct(WrittenMarker, MARKER)})) AS markers
  FROM (
    SELECT *, row_number() OVER (PARTITION BY topic, partition, producer_id ORDER BY marker_offset DESC) AS rank
    FROM {{producer_spans}} LEFT SEMI JOIN {{opened}} USING (topic, partition, producer_id)
    WHERE marker_offset IS NOT NULL
  )
  WHERE rank <= {MOST_MARKERS}
  GROUP BY topic, partition, producer_id
),
checks AS (
  SELECT topic, partition, producer_id, start_offset, collect_list({struct(CheckedBatch)}) AS checks
  FROM {{checked_batches}} LEFT SEMI JOIN {{located}} USING (topic, partition, producer_id, start_offset, source)
  GROUP BY topic, partition, producer_id, start_offset
),

-- The newest snapshots in front that have nothing open of the producer.
closed AS (
  SELECT topic, partition, producer_id, start_offset, max(snapshot_offset) AS closed_offset
  FROM {{located}}
  JOIN (
    SELECT topic, partition, source, snapshot_offset,
      collect_set(CASE WHEN current_txn_first_offset IS NOT NULL THEN producer_id END) AS open
    FROM {{snapshots}} WHERE is_answer IS NULL GROUP BY topic, partition, source, snapshot_offset
  ) USING (topic, partition, source)
  WHERE snapshot_offset <= start_offset AND NOT array_contains(open, producer_id)
  GROUP BY topic, partition, producer_id, start_offset
),

-- What the markers of each producer on each other partition show. A marker is explained if a coordinator's transaction
-- has it, or may have it.
explained AS (
  SELECT producer_id, topic, partition, marker_offset,
    min_by({struct(CoordinatorDecision, _DECISION | {"partitions": "NULL"})}, last_record_offset) AS decision
  FROM (
    SELECT *, marker.topic AS topic, marker.partition AS partition, {each_marker("marker.")}
    FROM (SELECT *, explode(markers) AS marker FROM {{transactions}} LEFT SEMI JOIN {{opened}} USING (producer_id))
  )
  WHERE marker_offset IS NOT NULL
  GROUP BY producer_id, topic, partition, marker_offset
),
marked AS (
  SELECT producer_id, topic AS of_topic, partition AS of_partition, marker, is_unexplained,
    CASE WHEN is_unexplained AND is_repeat THEN {_REPEATED} END AS repeated
  FROM (
    SELECT *, {last_of("explained", "marker_offset", f"{_IN_ORDER} {BEFORE}")} AS own
    FROM (
      SELECT producer_id, topic, partition, marker_offset, marker, decision IS NULL AS is_unexplained, is_repeat,
        CASE WHEN decision IS NOT NULL THEN struct(marker, decision) END AS explained
      FROM (
        SELECT producer_id, topic, partition, marker_offset, {struct(WrittenMarker, MARKER)} AS marker,
          {_IS_REPEAT} AS is_repeat
        FROM {{producer_spans}} LEFT SEMI JOIN {{opened}} USING (producer_id)
        WHERE marker_offset IS NOT NULL
      )
      LEFT JOIN explained USING (producer_id, topic, partition, marker_offset)
    )
  )
),
elsewhere AS (
  SELECT opened.topic, opened.partition, producer_id, opened.start_offset, of_topic, of_partition,
    marker.type = 'COMMIT' AS is_commit, marker.coordinator_epoch, marker.leader_epoch, repeated,
    is_unexplained AND repeated IS NULL AS is_unexplained,
    {clock_ms_or_latest("marker.ms")} AS ms, coalesce({clock_ms("marker.ms")}, {NO_INSTANT_MS}) AS committed_ms,
    repeated IS NULL AND marker.type = 'COMMIT' AND marker.epoch >= opened.producer_epoch
      AND (of_topic != opened.topic OR of_partition != opened.partition) AS is_committed
  FROM marked JOIN {{opened}} AS opened USING (producer_id)
  UNION ALL
  SELECT opened.topic, opened.partition, producer_id, opened.start_offset, vanished.topic, vanished.partition,
    TRUE, NULL, vanished.leader_epoch, NULL, TRUE, {clock_ms_or_latest("ms")},
    coalesce({clock_ms("ms")}, {NO_INSTANT_MS}), FALSE
  FROM {{vanished}} AS vanished JOIN {{opened}} AS opened USING (producer_id)
  WHERE vanished.topic != opened.topic OR vanished.partition != opened.partition
),
siblings AS (
  SELECT topic, partition, producer_id, start_offset, collect_list({struct(SiblingMarkers, _SIBLING)}) AS siblings
  FROM (
    SELECT topic, partition, producer_id, start_offset, of_topic, of_partition,
      max(CASE WHEN is_unexplained THEN ms END) AS newest_unexplained_ms,
      max(CASE WHEN is_unexplained AND is_commit THEN struct(ms, coordinator_epoch, leader_epoch) END) AS commit,
      bool_or(is_committed) AS is_committed, max(CASE WHEN is_committed THEN committed_ms END) AS committed_ms,
      max(coordinator_epoch) AS coordinator_epoch, {_NEWEST_REPEATED} AS repeated
    FROM elsewhere
    GROUP BY topic, partition, producer_id, start_offset, of_topic, of_partition
  )
  GROUP BY topic, partition, producer_id, start_offset
),

-- The earlier audits that saw each transaction.
seen AS (
  SELECT topic, partition, producer_id, start_offset,
    collect_list({struct(EarlierAudit, _EARLIER_AUDIT)}) AS earlier
  FROM {{earlier}} LEFT SEMI JOIN {{opened}} USING (topic, partition, producer_id, start_offset)
  GROUP BY topic, partition, producer_id, start_offset
),

-- The transactional ids of each producer id, with their last records.
claimed AS (
  SELECT *
  FROM (
    SELECT producer_id, transactional_id, coordinator_partition, owner, first_record_offset, last_record_offset
    FROM {{producer_id_owners}}
  )
  JOIN places USING (producer_id)
),
-- Records of these ids that do not follow from the one before, though none is missing between the two.
odd_steps AS (
  SELECT transactional_id, coordinator_partition, producer_id,
    slice(sort_array(collect_list({struct(OddStep, _ODD_STEP)}), FALSE), 1, {MOST_ODD_STEPS}) AS odd_steps
  FROM (
    SELECT transactional_id, coordinator_partition, coalesce(producer_id, before.producer_id) AS producer_id,
      producer_epoch, offset, state, is_tombstone, start_ms, is_consecutive, before
    FROM (
      SELECT *, {before_of_id("state", "producer_id", "producer_epoch", "start_ms", "partitions")} AS before
      FROM {{coordinator_states}}
      LEFT SEMI JOIN claimed USING (transactional_id, coordinator_partition)
    )
  )
  JOIN places USING (producer_id)
  WHERE is_consecutive AND before.producer_id = producer_id AND {_IS_ODD_STEP}
  GROUP BY transactional_id, coordinator_partition, producer_id
),
claims AS (
  SELECT producer_id, collect_list({struct(Claim, {"partitions": _AMONG_PLACES})}) AS claims
  FROM claimed
  LEFT JOIN (
    SELECT transactional_id, coordinator_partition, producer_id, max(producer_epoch) AS highest_epoch,
      min_by(state = 'Empty' AND producer_epoch = 0, offset) AS is_first_assigned,
      min_by({clock_ms("timestamp_ms")}, offset) AS created_ms
    FROM {{coordinator_states}} LEFT SEMI JOIN places USING (producer_id)
    GROUP BY transactional_id, coordinator_partition, producer_id
  ) USING (transactional_id, coordinator_partition, producer_id)
  LEFT JOIN (
    SELECT transactional_id, coordinator_partition, recorded_state AS state, producer_epoch, transaction_timeout_ms,
      start_ms, last_update_ms,
      record_ms, coordinator_epoch AS record_coordinator_epoch, record_offset, is_superseded, hole_ms,
      coalesce(hole_offset, 0L) AS complete_from,
      client_transaction_version, partitions
    FROM ({last_records("{coordinator_states}", "max_by(state, offset) AS recorded_state")})
  ) USING (transactional_id, coordinator_partition)
  LEFT JOIN odd_steps USING (transactional_id, coordinator_partition, producer_id)
  GROUP BY producer_id
),

-- The newest decisions of each producer id that list, or may list, a partition where it has something open.
decisions AS (
  SELECT producer_id, collect_list({struct(CoordinatorDecision, _DECISION)}) AS decisions
  FROM (
    SELECT *, row_number() OVER (PARTITION BY producer_id ORDER BY last_record_offset DESC, transactional_id) AS rank
    FROM {{transactions}} JOIN places USING (producer_id)
    WHERE outcome != 'OPEN' AND coalesce(size({_AMONG_PLACES}) > 0, true)
  )
  WHERE rank <= {MOST_MARKERS}
  GROUP BY producer_id
),

epochs AS (
  SELECT producer_id, max(epoch) AS newest_epoch
  FROM (
    SELECT producer_id, greatest(producer_epoch, state.producer_epoch, marker_epoch) AS epoch FROM {{producer_spans}}
    UNION ALL SELECT producer_id, producer_epoch FROM {{snapshots}}
  )
  LEFT SEMI JOIN places USING (producer_id)
  GROUP BY producer_id
),

-- When each producer epoch was handed out: with Empty, or by an end under transactions v2.
handed_out AS (
  SELECT producer_id, producer_epoch AS first_epoch, min({clock_ms("timestamp_ms")}) AS epoch_since_ms
  FROM {{coordinator_states}} LEFT SEMI JOIN places USING (producer_id)
  WHERE {IS_HANDED_OUT}
  GROUP BY producer_id, producer_epoch
),

-- What findings say of each producer id, or of its ids. Where copies disagree concerns only that place.
told AS (
  SELECT name, {ALARMING_FINDINGS} AS is_alarming, producer_id AS of_producer, transactional_id
  FROM {{findings}}
  WHERE ({ALARMING_FINDINGS} AND name != '{COPIES_DISAGREE.name}')
    OR name IN ('{PRODUCER_ID_NEVER_ALLOCATED.name}', '{LIVE_OWNER_UNKNOWN.name}')
),
named AS (
  SELECT producer_id,
    sort_array(collect_set(CASE WHEN is_alarming THEN name END)) AS alarms,
    bool_or(name = '{PRODUCER_ID_NEVER_ALLOCATED.name}' AND of_producer <=> producer_id) AS is_never_allocated,
    sort_array(collect_set(CASE WHEN name = '{LIVE_OWNER_UNKNOWN.name}' AND of_producer <=> producer_id
      THEN transactional_id END)) AS answered_owners
  FROM (
    SELECT places.producer_id, told.* FROM told JOIN places ON of_producer = places.producer_id
    UNION ALL
    SELECT claimed.producer_id, told.* FROM told JOIN claimed ON told.transactional_id = claimed.transactional_id
  )
  GROUP BY producer_id
),

-- The oldest marker on each partition that a coordinator's transaction has.
decided_here AS (
  SELECT topic, partition, min(marker_offset) AS oldest_decided_offset
  FROM (SELECT topic, partition, {each_marker()} FROM (SELECT inline(markers) FROM {{transactions}}))
  LEFT SEMI JOIN {{opened}} USING (topic, partition)
  WHERE marker_offset IS NOT NULL GROUP BY topic, partition
),

spans AS (
  SELECT
    producer_id, collect_list({struct(OpenSpan, _OPEN)}) AS open
  FROM {{opened}}
  LEFT JOIN markers USING (topic, partition, producer_id)
  LEFT JOIN checks USING (topic, partition, producer_id, start_offset)
  LEFT JOIN {{stamps}} AS stamps USING (topic, partition, producer_id, start_offset)
  LEFT JOIN {{markers_elsewhere}} AS markers_elsewhere USING (topic, partition, producer_id, start_offset)
  LEFT JOIN {{files_beside}} AS files_beside USING (topic, partition, producer_id, start_offset)
  LEFT JOIN siblings USING (topic, partition, producer_id, start_offset)
  LEFT JOIN seen USING (topic, partition, producer_id, start_offset)
  LEFT JOIN closed USING (topic, partition, producer_id, start_offset)
  LEFT JOIN handed_out USING (producer_id, first_epoch)
  LEFT JOIN decided_here USING (topic, partition)
  GROUP BY producer_id
)
SELECT dossier.*
FROM (
  SELECT {struct(Dossier)} AS dossier
  FROM spans
  LEFT JOIN claims USING (producer_id)
  LEFT JOIN decisions USING (producer_id)
  LEFT JOIN epochs USING (producer_id)
  LEFT JOIN named USING (producer_id)
)
"""
