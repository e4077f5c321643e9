"""Findings about markers and decisions that do not match."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from txnlib.core.display import precise_time
from txnlib.core.finding_catalogue import Finding, Severity
from txnlib.core.findings.finding_row import FindingRow, OfTransaction, as_json, found, known
from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS, is_ahead


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
    """A marker that the matcher gave to no decision (`core.verdicts.match`), with the decisions before and after it.

    None if a dump does not show it.
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
    #: The transaction of the producer that lists the partition and is not decided yet.
    ongoing: Decision | None = None
    #: No record of the coordinator's log is missing between these two instants.
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
        return Finding.ABORTED_WHILE_ONGOING
    if after is not None and _carries(marker, after) and after.decided_ms - marker.ms <= marker.clocks_differ_ms:
        return None
    carried = before if before is not None and _carries(marker, before) else None
    if carried is not None and marker.is_first:
        is_old = is_ahead(carried.coordinator_epoch, marker.coordinator_epoch)
        return Finding.MARKER_OF_DEPOSED_COORDINATOR if is_old else None
    if _is_against(marker, before) or _is_inside_live(marker):
        return Finding.SPLIT_OUTCOME
    if carried is not None and not (marker.ends_data and _is_apart(marker, carried)):
        return None
    return Finding.MARKER_WITHOUT_DECISION if _is_history_complete(marker) else None


def contradicted(marker: Marker, finding: Finding) -> Decision | None:
    """The decision that a marker contradicts, by its finding; None if it contradicts none."""
    if finding is Finding.ABORTED_WHILE_ONGOING:
        return marker.ongoing
    if finding is not Finding.SPLIT_OUTCOME:
        return None
    return marker.before if _is_against(marker, marker.before) else marker.after


def _carries(marker: Marker, decision: Decision) -> bool:
    return marker.type in (None, decision.type) and marker.epoch == decision.epoch


def _is_against(marker: Marker, decision: Decision | None) -> bool:
    """Whether a marker contradicts a decision whose markers the coordinator was writing at that time."""
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
    """Whether no coordinator ever had the epoch of the marker."""
    return is_ahead(marker.coordinator_epoch, marker.newest_coordinator_epoch)


def _margin(marker: Marker) -> int:
    """The margin for a clock that was never compared. A compared clock drifts less than that within a transaction."""
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
    """Whether the producer id was idle at that time, by more than the difference of the clocks."""
    after = marker.after
    is_over = before.completed_ms is not None and marker.ms > before.completed_ms + marker.clocks_differ_ms
    return is_over and (after is None or after.start_ms is None or marker.ms < after.start_ms - marker.clocks_differ_ms)


def _is_history_complete(marker: Marker) -> bool:
    """Whether no record that is missing can have decided the marker."""
    if _is_by_hand(marker):
        return True
    since, until = marker.complete_since_ms, marker.known_until_ms
    if since is None or until is None:
        return False
    return since + marker.clocks_differ_ms <= marker.ms <= until - marker.clocks_differ_ms


# ---- Findings about markers


@dataclass(frozen=True, slots=True)
class OddMarker(OfTransaction):
    """A marker of a producer with decisions that is of none of these."""

    offset: int
    #: First offset of the records that it ended; None if it ended nothing.
    first_offset: int | None
    marker: Marker


_TRANSACTION: Final = ("transactional_id", "transaction_number")


def of_markers(markers: Iterable[OddMarker]) -> Iterator[FindingRow]:
    """The finding about each marker, unless a decision explains it: `core.findings.marker_findings`."""
    for each in markers:
        if (finding := marker_finding(each.marker)) is not None:
            of = contradicted(each.marker, finding)
            place = {} if of is None else {name: getattr(of, name) for name in _TRANSACTION}
            # An ABORT may be one by hand. Of a COMMIT, its coordinator has lost the decision, and maybe others.
            is_lost = finding is Finding.MARKER_WITHOUT_DECISION and each.marker.type == "COMMIT"
            yield found(finding, _shown(each, finding), each, severity=Severity.ERROR if is_lost else None, **place)


def _shown(each: OddMarker, finding: Finding) -> str:
    marker = each.marker
    ended = "nothing" if each.first_offset is None else f"the records from offset {each.first_offset}"
    if finding is Finding.ABORTED_WHILE_ONGOING and marker.ongoing is not None and marker.ongoing.start_ms is not None:
        return (
            f"ended {ended}; the transaction began at {precise_time(marker.ongoing.start_ms)} and is Ongoing: stop its"
            " application before it commits, so that the coordinator aborts the rest"
        )
    beside = {"before": marker.before, "after": marker.after}
    decisions = [
        f"; the decision {side}: {as_json(decision)}" for side, decision in beside.items() if decision is not None
    ]
    return f"{marker.type or 'a'} marker of epoch {known(marker.epoch)} ended {ended}{''.join(decisions)}"


@dataclass(frozen=True, slots=True)
class UnmarkedPartition(OfTransaction):
    """A partition of a completed transaction without a marker, in a log in which it could not have been overlooked."""

    outcome: str
    completed_ms: int


def of_unmarked(partitions: Iterable[UnmarkedPartition]) -> Iterator[FindingRow]:
    """The finding about each partition."""
    for each in partitions:
        yield found(
            Finding.MARKER_MISSING,
            f"Complete{each.outcome.capitalize()} at {precise_time(each.completed_ms)}, no marker",
            each,
            # A manual abort repairs a lost ABORT marker, but destroys data after a lost COMMIT marker.
            severity=Severity.WARNING if each.outcome == "ABORT" else None,
        )


@dataclass(frozen=True, slots=True)
class EarlyWrite(OfTransaction):
    """Records of a transaction on a partition whose first batch may be older than the transaction."""

    first_offset: int
    first_timestamp_ms: int
    is_broker_clock: bool | None
    #: The oldest time of a marker from the first batch on, up to the marker that ended it.
    stamp_ms: int | None
    began_ms: int
    #: The same on the partition's clock, as far as the two were compared.
    start_ms: int


def of_early_writes(writes: Iterable[EarlyWrite]) -> Iterator[FindingRow]:
    """The finding about records that are older, by a broker's clock, than the transaction that ended them.

    If a marker after the first batch is older than the transaction, the batch is older still.
    """
    for each in writes:
        proof_ms = clock_ms(each.first_timestamp_ms) if each.is_broker_clock else each.stamp_ms
        if proof_ms is not None and proof_ms < each.start_ms:
            began = precise_time(each.began_ms)
            says = f"written before {precise_time(proof_ms)} by the broker's clock; the transaction began at {began}"
            yield found(Finding.WRITTEN_BEFORE_TRANSACTION, says, each, offset=each.first_offset)
