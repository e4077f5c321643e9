"""`transaction_outcomes`: each transaction on each of its partitions, with its marker.

The rows of a transaction come from its coordinator's list of partitions, and from the markers that `transactions`
matched with the decision. What only a log shows has a row, too, because compaction removes what coordinators wrote.
State and sentence of each marker are looked up in `core.verdicts.marker_states`.
"""

from __future__ import annotations

from collections.abc import Mapping
from string import Formatter
from typing import Final

from pyspark.sql import DataFrame

from txnlib.core.copies import BEGINS_LATE, SHOWS_MARKERS, UNOPENED
from txnlib.core.findings.marker_findings import ABORTED_WHILE_ONGOING, SPLIT_OUTCOME
from txnlib.core.findings.transaction_findings import MARKER_MISSING
from txnlib.core.kafka.marker_acceptance import MOST_RAISED
from txnlib.core.sql_text import IS_OPEN, clock_ms, instant, quoted, quoted_list
from txnlib.core.verdicts.marker_states import (
    HIDDEN_BY,
    MARKER_STATES,
    SENTENCES,
    DecisionState,
    MarkerEvidence,
    MarkerState,
)
from txnlib.spark.frames import kept
from txnlib.spark.joins import select, with_columns
from txnlib.spark.schemas import TABLES, conform


def transaction_outcomes(
    transactions: DataFrame,
    producer_spans: DataFrame,
    producer_id_owners: DataFrame,
    findings: DataFrame,
    coverage: DataFrame,
    *,
    as_of_ms: int,
) -> DataFrame:
    """One row per transaction and partition that it touched. Columns: TRANSACTION_OUTCOMES."""
    placed = select(PLACED, transactions=transactions)
    found = kept(select(FOUND, placed=placed, producer_spans=producer_spans, findings=findings, coverage=coverage))
    told = select(TOLD, found=found, producer_spans=producer_spans, producer_id_owners=producer_id_owners)
    return conform(with_columns(told, {"as_of": instant(f"{as_of_ms}L")}), TABLES["transaction_outcomes"])


def _case(conditions: Mapping[str, str]) -> str:
    return f"CASE {' '.join(f'WHEN {condition} THEN {value}' for condition, value in conditions.items())} END"


def _sentence(template: str, values: Mapping[str, str]) -> str:
    """A sentence with placeholders, as SQL; NULL if a value is."""
    pieces = [(quoted(text), values[name] if name else "''") for text, name, _, _ in Formatter().parse(template)]
    return f"concat({', '.join(part for pair in pieces for part in pair)})"


_HIDDEN_BY_VALUES: Final = {name: name for name in ("known_until", "from_offset", "gap_offset", "damaged_offset")}
_KEY: Final = "transactional_id, coordinator_partition, transaction_number"
_PRODUCER: Final = "topic, partition, producer_id"
_OF_SPAN: Final = "first_offset, records, bytes, marker_type, marker_epoch, marker_coordinator_epoch, marker_ms"
_ROW: Final = (
    f"{_KEY}, {_PRODUCER}, producer_epoch, known_from, is_two_phase_commit, decided_outcome, decision_state,"
    f" decided_ms, evidence, hidden_by, marker_offset, {_OF_SPAN}"
)
#: Findings about markers that ended records of a transaction against its decision, or before it.
_AGAINST: Final = quoted_list((SPLIT_OUTCOME.name, ABORTED_WHILE_ONGOING.name))
_MISSING: Final = quoted(MARKER_MISSING.name)
_DECISION_STATE: Final = _case(
    {
        "outcome = 'OPEN' AND is_two_phase_commit": quoted(DecisionState.TWO_PHASE),
        "outcome = 'OPEN'": quoted(DecisionState.OPEN),
        "state LIKE 'Complete%'": quoted(DecisionState.COMPLETE),
        "TRUE": quoted(DecisionState.DECIDED),
    }
)
_EVIDENCE: Final = _case(
    {
        "other_offset IS NOT NULL": quoted(MarkerEvidence.DIFFERS),
        "placed.marker_offset IS NOT NULL": quoted(MarkerEvidence.AGREES),
        "is_lost": quoted(MarkerEvidence.ABSENT),
        f"decision_state = {quoted(DecisionState.DECIDED)} AND is_whole AND known_ms >= decided_ms"
        " AND NOT is_followed": quoted(MarkerEvidence.ABSENT),
        "TRUE": quoted(MarkerEvidence.HIDDEN),
    }
)

#: An undecided transaction may have any of these epochs.
_MOST_RAISED: Final = f"CASE outcome WHEN 'COMMIT' THEN {MOST_RAISED['COMMIT']} ELSE {MOST_RAISED['ABORT']} END"

#: Each transaction on each partition that its coordinator lists, or where its marker is, with what the coordinator's
#: records say. If only its Complete record is left, its partitions are lost, too. Then its markers tell them.
PLACED: Final = f"""
SELECT {_KEY}, producer_id, producer_epoch, is_two_phase_commit, outcome AS decided_outcome,
  {_DECISION_STATE} AS decision_state, coalesce(decided_epoch, producer_epoch) - {_MOST_RAISED} AS records_from,
  coalesce(decided_epoch, producer_epoch) - CASE WHEN outcome != 'OPEN' AND transaction_version >= 2 THEN 1 ELSE 0 END
    AS records_until,
  unix_millis(start) AS start_ms, unix_millis(decided) AS decided_ms, unix_millis(completed) AS completed_ms,
  topic, partition, if(partitions IS NULL, 'MARKER', 'COORDINATOR') AS known_from, marker_offset, is_followed
FROM (SELECT *, inline(markers) FROM {{transactions}})
WHERE partitions IS NOT NULL OR marker_offset IS NOT NULL
"""

#: What transactions wrote: with the marker that ended it, or with none yet.
_SPANS: Final = f"""spans AS (
  SELECT {_PRODUCER}, producer_epoch, if(marker_offset IS NULL, state.producer_epoch, NULL) AS newest_epoch,
    marker_offset,
    first_timestamp_ms, {_OF_SPAN}
  FROM {{producer_spans}} WHERE marker_offset IS NOT NULL OR ({IS_OPEN})
)"""

#: Open records can belong only to a transaction whose epochs include theirs:
#: `core.kafka.marker_acceptance.record_epochs`. The rows of PLACED, with what the copies show of
#: the marker, or why they show nothing, and with what the transaction wrote: the span that its marker ended, else the
#: open one. If the transaction is complete, the open records may be of a later one.
FOUND: Final = f"""
WITH {_SPANS},
told AS (
  SELECT transactional_id, transaction_number, topic, partition,
    max(if(name IN {_AGAINST}, offset, NULL)) AS other_offset, bool_or(name = {_MISSING}) AS is_lost
  FROM {{findings}} WHERE transaction_number IS NOT NULL
  GROUP BY transactional_id, transaction_number, topic, partition
), of_copy AS (
  SELECT topic, partition, unix_millis(known_until) AS known_ms,
    coalesce(tail, '') = '{UNOPENED}' AND first_offset IS NULL AS is_unopened,
    {SHOWS_MARKERS} AS is_whole, gap_offset, damaged_offset, is_decoded, {BEGINS_LATE} AS begins_late,
    greatest(read_from_offset, log_start_offset) AS from_offset, TRUE AS is_captured
  FROM {{coverage}} WHERE is_judged
), gone AS (
  SELECT DISTINCT topic, partition, TRUE AS is_gone FROM {{coverage}} WHERE is_gone
), proven AS (
  SELECT /*+ BROADCAST(of_copy, gone, told) */ {_KEY}, topic, partition,
    producer_id, producer_epoch, is_two_phase_commit, decided_outcome, decision_state,
    records_from, records_until, start_ms,
    decided_ms, completed_ms, known_from, is_followed,
    coalesce(other_offset, placed.marker_offset) AS marker_offset, {_EVIDENCE} AS evidence, is_gone, is_captured,
    is_captured IS NULL AS is_not_captured, gap_offset IS NOT NULL AS has_hole,
    damaged_offset IS NOT NULL AS is_damaged,
    coalesce(is_unopened, FALSE) AS is_not_opened, NOT is_decoded AS is_not_decoded,
    gap_offset, damaged_offset, begins_late, from_offset,
    NOT coalesce(known_ms > coalesce(completed_ms, decided_ms), FALSE) AS is_not_known_to_the_end,
    coalesce(date_format({instant("known_ms")}, "yyyy-MM-dd'T'HH:mm:ss'Z'"), 'an unknown instant')
      AS known_until
  FROM {{placed}} AS placed
  LEFT JOIN of_copy USING (topic, partition)
  LEFT JOIN gone USING (topic, partition)
  LEFT JOIN told USING (transactional_id, transaction_number, topic, partition)
), own AS (
  SELECT {_KEY}, proven.topic, proven.partition, proven.producer_id, proven.producer_epoch, is_two_phase_commit,
    decided_outcome, decision_state, decided_ms, known_from, proven.marker_offset, evidence, is_gone, is_captured,
    is_not_captured, has_hole, is_damaged, is_not_opened, is_not_decoded, gap_offset, damaged_offset, begins_late,
    from_offset, is_not_known_to_the_end, is_followed, known_until, {_OF_SPAN},
    proven.marker_offset IS NOT NULL OR (
      coalesce(newest_epoch >= records_from AND spans.producer_epoch <= records_until, TRUE)
      AND (decision_state != {quoted(DecisionState.COMPLETE)}
        OR (evidence = {quoted(MarkerEvidence.ABSENT)} AND {clock_ms("first_timestamp_ms")} <= completed_ms))
    ) AS is_own
  FROM proven LEFT JOIN spans ON proven.topic = spans.topic AND proven.partition = spans.partition
    AND proven.producer_id = spans.producer_id AND proven.marker_offset <=> spans.marker_offset
)
SELECT {_KEY}, {_PRODUCER}, producer_epoch, known_from, is_two_phase_commit, decided_outcome, decision_state,
  decided_ms,
  evidence, marker_offset, {", ".join(f"CASE WHEN is_own THEN {name} END AS {name}" for name in _OF_SPAN.split(", "))},
  {_case({fact: _sentence(text, _HIDDEN_BY_VALUES) for fact, text in HIDDEN_BY.items()})}
    AS hidden_by
FROM own
"""

_STATE: Final = _case(
    {
        f"decision_state = {quoted(decision)} AND evidence = {quoted(seen)}": quoted(state)
        for (decision, seen), state in MARKER_STATES.items()
    }
)
_WORDS: Final = {
    "marker": "CASE WHEN marker_type = 'ABORT' THEN 'an ABORT' ELSE 'a COMMIT' END",
    "marker_offset": "marker_offset",
    "decision": "decided_outcome",
    "hidden_by": "hidden_by",
}
#: The rows of FOUND, and transactions that no record of a coordinator explains, with the only owner of their producer
#: id.
TOLD: Final = f"""
WITH {_SPANS},
owners AS (
  SELECT producer_id, inline(owners)
  FROM (
    SELECT producer_id, collect_set(struct(transactional_id, coordinator_partition)) AS owners
    FROM {{producer_id_owners}} GROUP BY producer_id
  )
  WHERE size(owners) = 1
), unlisted AS (
  SELECT transactional_id, coordinator_partition, CAST(NULL AS BIGINT) AS transaction_number, 'PARTITION' AS known_from,
    CAST(NULL AS BOOLEAN) AS is_two_phase_commit, CAST(NULL AS STRING) AS decided_outcome,
    CAST(NULL AS BIGINT) AS decided_ms,
    {quoted(DecisionState.NOT_KNOWN)} AS decision_state, CAST(NULL AS STRING) AS hidden_by,
    {_PRODUCER}, producer_epoch, marker_offset, {_OF_SPAN},
    CASE WHEN marker_offset IS NULL THEN {quoted(MarkerEvidence.ABSENT)} ELSE {quoted(MarkerEvidence.AGREES)} END
      AS evidence
  FROM (SELECT * FROM spans WHERE first_offset IS NOT NULL) AS spans
  LEFT ANTI JOIN (SELECT {_PRODUCER}, first_offset FROM {{found}} WHERE first_offset IS NOT NULL)
    USING ({_PRODUCER}, first_offset)
  LEFT JOIN owners USING (producer_id)
), stated AS (
  SELECT *, {_STATE} AS marker FROM (SELECT {_ROW} FROM {{found}} UNION ALL SELECT {_ROW} FROM unlisted)
)
SELECT *, {instant("decided_ms")} AS decided,
  {instant("marker_ms")} AS marked,
  CASE
    WHEN marker_offset IS NOT NULL
      THEN coalesce(marker_type, CASE WHEN marker = {quoted(MarkerState.FOUND)} THEN decided_outcome END)
    WHEN marker != {quoted(MarkerState.UNKNOWN)} THEN 'OPEN'
  END AS outcome,
  {_case({f"marker = {quoted(state)}": _sentence(text, _WORDS) for state, text in SENTENCES.items()})} AS says
FROM stated
"""
