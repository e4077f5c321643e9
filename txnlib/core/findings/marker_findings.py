"""Findings about markers and decisions that do not match."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from txnlib.core.display import precise_time
from txnlib.core.finding_catalogue import Finding, Severity
from txnlib.core.findings.finding_row import FindingRow, OfTransaction, as_json, found, known
from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS, UNKNOWN_CLOCKS_DIFFER_MS, is_ahead


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
    if (
        before is not None
        and _is_within(marker, before)
        and marker.type not in (None, before.type)
        and _is_about(marker, before)
    ):
        return Finding.SPLIT_OUTCOME
    if _is_inside_live(marker):
        return Finding.SPLIT_OUTCOME
    return Finding.MARKER_WITHOUT_DECISION if _is_history_complete(marker) else None


def _carries(marker: Marker, decision: Decision) -> bool:
    return marker.type in (None, decision.type) and marker.epoch == decision.epoch


def _of_carried(marker: Marker, before: Decision) -> Finding | None:
    """The finding about a marker that matches a decision.

    The first such marker carries the decision out. For others, only the time distinguishes a repetition, as after a
    failover of the coordinator, from a manual marker.
    """
    if marker.is_first:
        is_old = is_ahead(before.coordinator_epoch, marker.coordinator_epoch)
        return Finding.MARKER_OF_DEPOSED_COORDINATOR if is_old else None
    if _is_inside_live(marker):
        return Finding.SPLIT_OUTCOME
    is_alone = marker.ends_data and _is_apart(marker, before) and _is_history_complete(marker)
    return Finding.MARKER_WITHOUT_DECISION if is_alone else None


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


# ---- Findings about markers


@dataclass(frozen=True, slots=True)
class OddMarker(OfTransaction):
    """A marker other than the first one that carries out a decision."""

    offset: int
    #: First offset of the records that it ended; None if it ended nothing.
    first_offset: int | None
    marker: Marker


def of_markers(markers: Iterable[OddMarker]) -> Iterator[FindingRow]:
    """The finding about each marker, unless a decision explains it: `core.findings.marker_findings`."""
    for each in markers:
        if (finding := marker_finding(each.marker)) is not None:
            yield found(finding, _shown(each), each)


def _shown(each: OddMarker) -> str:
    marker = each.marker
    ended = "nothing" if each.first_offset is None else f"the records from offset {each.first_offset}"
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


@dataclass(frozen=True, slots=True)
class UndecidedAbort(OfTransaction):
    """An ABORT marker of no captured decision, of a producer with an Ongoing transaction that lists the partition."""

    marker_offset: int
    marker_epoch: int | None
    marker_ms: int | None
    #: First offset that it ended.
    first_offset: int
    #: Of the Ongoing transaction.
    producer_epoch: int | None
    start_ms: int
    #: Up to when its coordinator's log is known.
    known_until_ms: int | None
    #: The clocks of the partition's leader and of the coordinator; as compared, where they were.
    clock: str | None
    coordinator_clock: str | None
    clock_offset_ms: int | None
    clocks_differ_ms: int | None


def of_undecided_aborts(markers: Iterable[UndecidedAbort]) -> Iterator[FindingRow]:
    """The finding about an ABORT marker inside a transaction that is still Ongoing: no coordinator decided it."""
    for each in markers:
        if each.marker_epoch == each.producer_epoch and _is_inside(each):
            yield found(
                Finding.ABORTED_WHILE_ONGOING,
                f"ended the records from offset {each.first_offset}; the transaction began at"
                f" {precise_time(each.start_ms)} and is Ongoing: stop its application before it commits, so that the"
                " coordinator aborts the rest",
                each,
                offset=each.marker_offset,
            )


def _is_inside(each: UndecidedAbort) -> bool:
    """Whether a marker is younger than the start of the transaction, and older than what is known of its
    coordinator."""
    differ_ms = each.clocks_differ_ms
    if differ_ms is None:
        is_one_clock = each.clock is not None and each.clock == each.coordinator_clock
        differ_ms = CLOCKS_DIFFER_MS if is_one_clock else UNKNOWN_CLOCKS_DIFFER_MS
    stamped_ms = clock_ms(each.marker_ms)
    if stamped_ms is None or each.known_until_ms is None:
        return False
    at_ms = stamped_ms - (each.clock_offset_ms or 0)
    return each.start_ms + differ_ms < at_ms < each.known_until_ms - differ_ms
