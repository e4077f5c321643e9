"""The check of a marker against its coordinator's decisions: from a marker between two decisions to a finding.

A manual marker (`kafka-transactions.sh abort`) is written without the coordinator. It is correct for an orphaned transaction;
inside a live transaction it splits the outcome. Source: docs/rules/transactions.md#manual-aborts.
"""

from __future__ import annotations

from dataclasses import dataclass

from txnlib.core.finding_catalogue import Finding
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A coordinator's decision on one producer id and a partition. Times are by its clock; None means "unknown"."""

    type: str
    epoch: int | None
    start_ms: int | None
    decided_ms: int
    completed_ms: int | None
    coordinator_epoch: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """A marker on a partition, with the decisions before and after it; None if a dump does not show it."""

    type: str | None
    epoch: int
    coordinator_epoch: int | None
    ms: int
    ends_data: bool
    before: Decision | None
    after: Decision | None
    #: Whether it is the only marker of the producer on the partition since the decision before it.
    is_first: bool
    #: No record of the coordinator's log is missing between these two instants.
    complete_since_ms: int | None
    known_until_ms: int | None
    #: How far the clock of the partition's leader and that of the coordinator may differ.
    clocks_differ_ms: int = CLOCKS_DIFFER_MS


def marker_finding(marker: Marker) -> Finding | None:
    """The finding about a marker; None if it carries out a decision, or if missing records may explain it."""
    before, after = marker.before, marker.after
    if after is not None and _carries(marker, after) and after.decided_ms - marker.ms <= marker.clocks_differ_ms:
        return None
    if before is not None and _carries(marker, before):
        return _of_carried(marker, before)
    if before is not None and _is_within(marker, before) and marker.type not in (None, before.type) and _is_about(marker, before):
        return Finding.SPLIT_OUTCOME
    if _is_inside_live(marker):
        return Finding.SPLIT_OUTCOME
    return Finding.MARKER_WITHOUT_DECISION if _is_history_complete(marker) else None


def _carries(marker: Marker, decision: Decision) -> bool:
    return marker.type in (None, decision.type) and marker.epoch == decision.epoch


def _of_carried(marker: Marker, before: Decision) -> Finding | None:
    """The finding about a marker that matches a decision.

    The first such marker carries the decision out. For others, only the time distinguishes a repetition from a manual marker.
    """
    if marker.is_first:
        is_old = None not in (marker.coordinator_epoch, before.coordinator_epoch)
        return Finding.MARKER_OF_DEPOSED_COORDINATOR if is_old and _precedes(marker, before) else None
    if not marker.ends_data:
        return Finding.DUPLICATE_MARKER
    if _is_inside_live(marker):
        return Finding.SPLIT_OUTCOME
    return Finding.MARKER_WITHOUT_DECISION if _is_apart(marker, before) and _is_history_complete(marker) else None


def _precedes(marker: Marker, before: Decision) -> bool:
    return (marker.coordinator_epoch or 0) < (before.coordinator_epoch or 0)


def _is_within(marker: Marker, decision: Decision) -> bool:
    """Whether the coordinator was writing the markers of the decision at that time."""
    is_after = marker.ms >= decision.decided_ms + _margin(marker)
    return is_after and (decision.completed_ms is None or marker.ms <= decision.completed_ms)


def _is_about(marker: Marker, decision: Decision) -> bool:
    """Whether a marker may belong to the transaction of a decision.

    A manual marker has the epoch of the data. Under transactions v2, the decision has the next epoch.
    """
    return decision.epoch is None or marker.epoch in (decision.epoch, decision.epoch - 1)


def _margin(marker: Marker) -> int:
    """The margin for a clock that was never compared. A compared clock drifts less than that within a transaction."""
    return 0 if marker.clocks_differ_ms <= CLOCKS_DIFFER_MS else marker.clocks_differ_ms


def _is_inside_live(marker: Marker) -> bool:
    """Whether the marker ended records of an Ongoing transaction that was later decided differently."""
    after = marker.after
    if after is None or after.start_ms is None or not marker.ends_data or marker.type in (None, after.type):
        return False
    if not _is_about(marker, after):
        return False
    # A marker of an earlier transaction, whose records are lost, cannot be that late.
    margin = _margin(marker) if _is_history_complete(marker) else marker.clocks_differ_ms
    return after.start_ms + margin <= marker.ms


def _is_apart(marker: Marker, before: Decision) -> bool:
    """Whether the producer id was idle at that time, by more than the difference of the clocks."""
    after = marker.after
    is_over = before.completed_ms is not None and marker.ms > before.completed_ms + marker.clocks_differ_ms
    return is_over and (after is None or after.start_ms is None or marker.ms < after.start_ms - marker.clocks_differ_ms)


def _is_history_complete(marker: Marker) -> bool:
    since, until = marker.complete_since_ms, marker.known_until_ms
    if since is None or until is None:
        return False
    return since + marker.clocks_differ_ms <= marker.ms <= until - marker.clocks_differ_ms
