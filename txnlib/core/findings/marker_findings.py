"""Findings about markers and decisions that do not match."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from txnlib.core.display import precise_time
from txnlib.core.finding import Finding, Severity, Topic
from txnlib.core.findings.rule import FindingRow, OfTransaction, QueryStep, Rule, as_json, found, known
from txnlib.core.kafka.constants import (
    CLOCKS_DIFFER_MS,
    TRANSACTION_STATE_TOPIC,
    UNKNOWN_CLOCKS_DIFFER_MS,
    is_ahead,
)
from txnlib.core.kafka.producer_state import TWO_COORDINATORS
from txnlib.core.sql_text import BEFORE, clock_ms, last_of, next_of, sql_type, struct

SPLIT_OUTCOME: Final = Finding(
    name="SPLIT_OUTCOME",
    severity=Severity.CRITICAL,
    topic=Topic.OUTCOME,
    meaning=(
        "A marker contradicts the coordinator's decision: the transaction is committed in one place and aborted in"
        " another."
    ),
    advice=(
        "the transaction is committed in one place and aborted in another. Stop the consumers of the named"
        " partitions, compare the partitions with the decision in `transactions`, and repair the data with the"
        " application's own tools. If an abort by hand caused the split, find out who ran it."
    ),
)
MARKER_WITHOUT_DECISION: Final = Finding(
    name="MARKER_WITHOUT_DECISION",
    severity=Severity.WARNING,
    topic=Topic.OUTCOME,
    meaning=(
        "No captured decision explains a marker. An ABORT may have been written by hand (kafka-transactions.sh"
        " abort). No Kafka tool writes a COMMIT, so its coordinator has lost the decision: the severity is ERROR."
    ),
    advice=(
        "if the marker is an ABORT, someone aborted by hand. This is expected after an abort plan; otherwise ask"
        " who did it. If it is a COMMIT, the coordinator's records are missing."
    ),
)
MARKER_OF_DEPOSED_COORDINATOR: Final = Finding(
    name="MARKER_OF_DEPOSED_COORDINATOR",
    severity=Severity.ERROR,
    topic=Topic.OUTCOME,
    meaning="A marker has an older coordinator epoch than the decision: a deposed coordinator wrote it.",
    advice=TWO_COORDINATORS,
)
ABORTED_WHILE_ONGOING: Final = Finding(
    name="ABORTED_WHILE_ONGOING",
    severity=Severity.ERROR,
    topic=Topic.OUTCOME,
    meaning=(
        "An ABORT marker was written to a partition of a transaction that is still Ongoing. If the transaction"
        " commits, its outcome is split. Stop its application before it commits."
    ),
    advice=(
        "someone aborted one partition of a transaction that is still open. Stop its application before it commits."
        " The coordinator then aborts the other partitions at the timeout, and the outcome is not split."
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A coordinator's decision on one producer id and a partition. Times are by its clock; None means "unknown"."""

    transactional_id: str | None = None
    transaction_number: int | None = None
    type: str
    epoch: int | None
    start_ms: int | None
    decided_ms: int
    completed_ms: int | None
    coordinator_epoch: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """A marker that the matcher assigned to no decision (`core.verdicts.match`), and the decisions before and after it.

    A field is None if a dump does not print it, or if there is no such decision.
    """

    type: str | None
    epoch: int
    coordinator_epoch: int | None
    ms: int
    ends_data: bool
    before: Decision | None
    after: Decision | None
    #: Whether the decision before it has no marker.
    is_first: bool
    #: The undecided transaction of the producer that lists the partition.
    ongoing: Decision | None = None
    #: The instants between which no record of the coordinator's log is missing.
    complete_since_ms: int | None
    known_until_ms: int | None
    #: The newest leader epoch of the coordinator that its log shows.
    newest_coordinator_epoch: int | None = None
    #: How far the clock of the partition's leader and that of the coordinator may differ.
    clocks_differ_ms: int = CLOCKS_DIFFER_MS


def marker_finding(marker: Marker) -> Finding | None:
    """The finding about a marker; None if it repeats a marker of a decision, or if missing records may explain it.

    If the decision before it has no other marker, this one may carry it out. Else, only the time distinguishes a
    repetition, as after a failover of the coordinator, from a manual marker.
    """
    before, after = marker.before, marker.after
    if _is_inside_ongoing(marker):
        return ABORTED_WHILE_ONGOING
    if after is not None and _carries(marker, after) and after.decided_ms - marker.ms <= marker.clocks_differ_ms:
        return None
    carried = before if before is not None and _carries(marker, before) else None
    if carried is not None and marker.is_first:
        is_old = is_ahead(carried.coordinator_epoch, marker.coordinator_epoch)
        return MARKER_OF_DEPOSED_COORDINATOR if is_old else None
    if _is_against(marker, before) or _is_inside_live(marker):
        return SPLIT_OUTCOME
    if carried is not None and not (marker.ends_data and _is_apart(marker, carried)):
        return None
    return MARKER_WITHOUT_DECISION if _is_history_complete(marker) else None


def contradicted(marker: Marker, finding: Finding) -> Decision | None:
    """The decision (or the undecided transaction) that a marker with this finding contradicts; None if it contradicts
    none."""
    if finding is ABORTED_WHILE_ONGOING:
        return marker.ongoing
    if finding is not SPLIT_OUTCOME:
        return None
    return marker.before if _is_against(marker, marker.before) else marker.after


def _carries(marker: Marker, decision: Decision) -> bool:
    return marker.type in (None, decision.type) and marker.epoch == decision.epoch


def _is_against(marker: Marker, decision: Decision | None) -> bool:
    """Whether a marker contradicts a decision while the coordinator was still writing the markers of that decision."""
    if decision is None or not _opposes(marker, decision):
        return False
    is_after = marker.ms >= decision.decided_ms + _margin(marker)
    return is_after and (decision.completed_ms is None or marker.ms <= decision.completed_ms)


def _opposes(marker: Marker, decision: Decision) -> bool:
    """Whether a marker may belong to the transaction of a decision, and contradicts it.

    A manual marker has the epoch of the data. Under transactions v2, the decision has the next epoch.
    """
    is_about = decision.epoch is None or marker.epoch in (decision.epoch, decision.epoch - 1)
    return is_about and marker.type not in (None, decision.type)


def _is_by_hand(marker: Marker) -> bool:
    """Whether the marker was written by hand: its coordinator epoch is above every one that the coordinator ever
    had."""
    return is_ahead(marker.coordinator_epoch, marker.newest_coordinator_epoch)


def _margin(marker: Marker) -> int:
    """How far the clocks may differ, in ms; 0 for a marker by hand, or if the clocks were compared: then they drift
    less than that within a transaction."""
    return 0 if marker.clocks_differ_ms <= CLOCKS_DIFFER_MS or _is_by_hand(marker) else marker.clocks_differ_ms


def _is_inside_live(marker: Marker) -> bool:
    """Whether the marker ended records of an Ongoing transaction that was later decided differently."""
    after = marker.after
    if after is None or after.start_ms is None or not marker.ends_data or not _opposes(marker, after):
        return False
    # A marker of an earlier transaction, whose records are lost, cannot be that late.
    margin = _margin(marker) if _is_history_complete(marker) else marker.clocks_differ_ms
    return after.start_ms + margin <= marker.ms


def _is_inside_ongoing(marker: Marker) -> bool:
    """Whether an ABORT ended records of a transaction that is still Ongoing: no coordinator decided it."""
    ongoing, until = marker.ongoing, marker.known_until_ms
    if ongoing is None or ongoing.start_ms is None or until is None:
        return False
    is_about = marker.type == "ABORT" and marker.ends_data and marker.epoch == ongoing.epoch
    return is_about and ongoing.start_ms + marker.clocks_differ_ms < marker.ms < until - marker.clocks_differ_ms


def _is_apart(marker: Marker, before: Decision) -> bool:
    """Whether the marker was written while the producer id had no transaction, even if the clocks differ as far as they
    may."""
    after = marker.after
    is_over = before.completed_ms is not None and marker.ms > before.completed_ms + marker.clocks_differ_ms
    return is_over and (after is None or after.start_ms is None or marker.ms < after.start_ms - marker.clocks_differ_ms)


def _is_history_complete(marker: Marker) -> bool:
    """Whether the log has every record that can have decided the marker."""
    if _is_by_hand(marker):
        return True
    since, until = marker.complete_since_ms, marker.known_until_ms
    if since is None or until is None:
        return False
    return since + marker.clocks_differ_ms <= marker.ms <= until - marker.clocks_differ_ms


# ---- Findings about markers


@dataclass(frozen=True, slots=True)
class OddMarker(OfTransaction):
    """A marker that belongs to none of the decisions about its producer."""

    offset: int
    #: First offset of the records that it ended; None if it ended nothing.
    first_offset: int | None
    marker: Marker


_TRANSACTION: Final = ("transactional_id", "transaction_number")


def of_markers(markers: Iterable[OddMarker]) -> Iterator[FindingRow]:
    """A finding for each marker that nothing explains."""
    for each in markers:
        if (finding := marker_finding(each.marker)) is not None:
            of = contradicted(each.marker, finding)
            place = {} if of is None else {name: getattr(of, name) for name in _TRANSACTION}
            # An ABORT may have been written by hand. A COMMIT shows that its coordinator has lost a decision, and maybe
            # others.
            is_lost = finding is MARKER_WITHOUT_DECISION and each.marker.type == "COMMIT"
            yield found(finding, _shown(each, finding), each, severity=Severity.ERROR if is_lost else None, **place)


def _shown(each: OddMarker, finding: Finding) -> str:
    marker = each.marker
    ended = "nothing" if each.first_offset is None else f"the records from offset {each.first_offset}"
    if finding is ABORTED_WHILE_ONGOING and marker.ongoing is not None and marker.ongoing.start_ms is not None:
        return (
            f"ended {ended}; the transaction began at {precise_time(marker.ongoing.start_ms)} and is Ongoing: stop its"
            " application before it commits, so that the coordinator aborts the rest"
        )
    beside = {"before": marker.before, "after": marker.after}
    decisions = [
        f"; the decision {side}: {as_json(decision)}" for side, decision in beside.items() if decision is not None
    ]
    return f"{marker.type or 'a'} marker of epoch {known(marker.epoch)} ended {ended}{''.join(decisions)}"


_PRODUCER: Final = "producer_id, topic, partition"
#: How far the clock of the partition is ahead of the coordinator's, and how far the two may differ.
_OFFSET_MS: Final = "coalesce(offset_ms, 0L)"
_DIFFER_MS: Final = f"coalesce(differ_ms, {UNKNOWN_CLOCKS_DIFFER_MS}L)"
#: From when on the log is complete. If no decision lists the partition, compaction may have removed the only one that
#: did.
_SINCE_MS: Final = "if(is_listed, complete_since_ms, whole_since_ms)"
_DECISION: Final = {
    "type": "outcome",
    "decided_ms": "coalesce(at_ms, start_ms)",
    "completed_ms": "unix_millis(completed)",
    "coordinator_epoch": "decided_coordinator_epoch",
}
#: The decisions of each producer on each partition.
_LISTED: Final = f"""listed AS (
  SELECT {_PRODUCER}, at_ms, marker_offset, possible_offsets, start_ms,
    struct(transactional_id, coordinator_partition) AS owner,
    {struct(Decision, _DECISION)} AS decision
  FROM (
    SELECT *, coalesce(unix_millis(decided), unix_millis(prepared)) AS at_ms, unix_millis(start) AS start_ms,
      coalesce(decided_epoch, if(first_record_offset = last_record_offset, producer_epoch, NULL)) AS epoch,
      inline(markers)
    FROM {{transactions}}
  )
  WHERE coalesce(at_ms, start_ms) IS NOT NULL
)"""
#: Markers, of producers with a transactional id, that belong to no decision.
_ODD: Final = f"""
WITH markers AS (
  SELECT {_PRODUCER}, {clock_ms("marker_ms")} AS at_ms, marker_offset, marker_type AS type, marker_epoch AS epoch,
    marker_coordinator_epoch AS coordinator_epoch, coalesce(marker_leader_epoch, -1L) AS leader_epoch, first_offset
  FROM {{producer_spans}} WHERE marker_offset IS NOT NULL
), clocks AS (
  -- As transactions list them. A decision without a marker was compared with the clock of today's leader.
  SELECT coordinator_partition, topic, partition,
    coalesce(if(marker_offset IS NULL, newest_epoch, marker_leader_epoch), -1) AS leader_epoch,
    max(clock_offset_ms) AS offset_ms, max(clocks_differ_ms) AS differ_ms
  FROM (SELECT coordinator_partition, inline(markers) FROM {{transactions}})
  LEFT JOIN (
    SELECT topic, partition, max(leader_epoch) AS newest_epoch FROM {{coverage}} GROUP BY topic, partition
  ) USING (topic, partition)
  GROUP BY coordinator_partition, topic, partition, leader_epoch
), logs AS (
  SELECT partition AS coordinator_partition, unix_millis(known_until) AS known_until_ms, leader_epoch,
    checkpoint_leader_epoch, coalesce(greatest(gap_offset, damaged_offset), 0L) AS from_offset
  FROM {{coverage}} WHERE topic = '{TRANSACTION_STATE_TOPIC}' AND is_judged
), history AS (
  -- The instants between which no record of each coordinator partition is missing. `whole_since_ms`: of a log that
  -- compaction has not touched, either.
  SELECT /*+ BROADCAST(logs) */ coordinator_partition, min({clock_ms("timestamp_ms")}) AS complete_since_ms,
    if(min(offset) = 0 AND max(hole_offset) IS NULL, 0L, NULL) AS whole_since_ms,
    first(known_until_ms) AS known_until_ms,
    greatest(max(coordinator_epoch), max(leader_epoch), max(checkpoint_leader_epoch)) AS newest_coordinator_epoch
  FROM {{coordinator_states}} JOIN logs USING (coordinator_partition)
  WHERE offset >= from_offset
  GROUP BY coordinator_partition
), owned AS (
  SELECT producer_id, max(struct(transactional_id, coordinator_partition)) AS owner
  FROM {{coordinator_states}} WHERE producer_id IS NOT NULL GROUP BY producer_id
), {_LISTED}, producers AS (
  SELECT {_PRODUCER}, max(owner) AS listed_owner, min(coalesce(start_ms, at_ms)) AS began_ms,
    max(if(at_ms IS NULL, decision, NULL)) AS ongoing
  FROM listed GROUP BY {_PRODUCER}
), decided AS (
  SELECT {_PRODUCER}, explode(coalesce(possible_offsets, array(marker_offset))) AS marker_offset FROM listed
), placed AS (
  -- On a partition that no decision lists, an ABORT may be one by hand.
  SELECT {_PRODUCER}, at_ms, marker_offset, type, epoch, coordinator_epoch, leader_epoch, first_offset, began_ms,
    ongoing, listed_owner IS NOT NULL AS is_listed, coalesce(listed_owner, owner).transactional_id AS transactional_id,
    coalesce(listed_owner, owner).coordinator_partition AS coordinator_partition
  FROM markers LEFT JOIN producers USING ({_PRODUCER}) LEFT JOIN owned USING (producer_id)
  WHERE listed_owner IS NOT NULL OR (owner IS NOT NULL AND type = 'COMMIT')
)
-- Missing records may have decided a marker that is older than all that is known.
SELECT {_PRODUCER}, at_ms - {_OFFSET_MS} AS at_ms, transactional_id, marker_offset AS offset, first_offset, type, epoch,
  coordinator_epoch, ongoing, {_SINCE_MS} AS complete_since_ms, known_until_ms, newest_coordinator_epoch,
  {_DIFFER_MS} AS clocks_differ_ms
FROM placed
LEFT ANTI JOIN decided USING ({_PRODUCER}, marker_offset)
LEFT JOIN history USING (coordinator_partition)
LEFT JOIN clocks USING (coordinator_partition, topic, partition, leader_epoch)
WHERE at_ms - {_OFFSET_MS} + {_DIFFER_MS} >= least(began_ms, {_SINCE_MS})
"""
#: In time order. At the same instant, the decision comes first.
_IN_TIME: Final = f"PARTITION BY {_PRODUCER} ORDER BY at_ms, offset NULLS FIRST {BEFORE}"
_BACK_IN_TIME: Final = f"PARTITION BY {_PRODUCER} ORDER BY at_ms DESC, offset DESC NULLS LAST {BEFORE}"
_DECIDED: Final = "if(decision IS NOT NULL, struct(decision, marker_offset IS NULL AS is_unmarked), NULL)"
_BESIDE: Final = {
    "ms": "at_ms",
    "ends_data": "first_offset IS NOT NULL",
    "before": "before.decision",
    "is_first": "coalesce(before.is_unmarked, TRUE)",
}
#: The odd markers, each with the decisions before and after it.
ODD_MARKERS: Final = Rule(
    of="producer_spans",
    steps=(QueryStep("odd", _ODD, are_few=False),),
    query=f"""
    WITH {_LISTED}, timed AS (
      SELECT {_PRODUCER}, at_ms, decision, marker_offset, CAST(NULL AS BIGINT) AS offset
      FROM listed LEFT SEMI JOIN {{odd}} AS odd USING ({_PRODUCER}) WHERE at_ms IS NOT NULL
      UNION ALL
      SELECT {_PRODUCER}, at_ms, CAST(NULL AS {sql_type(Decision)}), CAST(NULL AS BIGINT), offset FROM {{odd}}
    ), beside AS (
      SELECT {_PRODUCER}, offset, {last_of(_DECIDED, "at_ms", _IN_TIME)} AS before,
        {next_of("decision", "at_ms", _BACK_IN_TIME)} AS after
      FROM timed
    )
    SELECT topic, partition, producer_id, transactional_id, CAST(NULL AS BIGINT) AS transaction_number, offset,
      first_offset, {struct(Marker, _BESIDE)} AS marker
    FROM {{odd}} JOIN (SELECT * FROM beside WHERE offset IS NOT NULL) USING ({_PRODUCER}, offset)
    """,
    judge=of_markers,
)
