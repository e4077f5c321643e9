"""The evidence on the partition of an open transaction, from its dossier."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS, MAX_SEQUENCE, UNKNOWN_CLOCKS_DIFFER_MS
from txnlib.core.verdicts.coordinator_copies import NO_LEADER, has_leader
from txnlib.core.verdicts.copies import End, LeaderBasis, Role
from txnlib.core.verdicts.dossier import (
    CapturedCopy,
    CheckedBatch,
    Claim,
    ClusterFacts,
    Dossier,
    EarlierAudit,
    EpochStamps,
    OpenSpan,
    SiblingMarkers,
)
from txnlib.core.verdicts.evidence import CoordinatorSide, Crc, PartitionSide
from txnlib.core.verdicts.marker_matching import Clocks, Match


def newest_ms(times: Iterable[int | None]) -> int | None:
    """The newest of some broker-stamped times, those that a clock can show; None if there is none."""
    return max((ms for ms in map(clock_ms, times) if ms is not None), default=None)


def latest_bound_ms(behind: Iterable[int | None], floor_ms: int | None, lag_ms: int | None) -> int | None:
    """The latest time at which something was written that stands before all of these stamps; None if they prove nothing.

    `floor_ms`: it was not written before. A stamp that is older proves nothing, unless clocks may differ that much. `lag_ms`: how
    far the clock is from its coordinators', negative if it is behind; nothing is corrected downwards.
    """
    bounds = [bound for ms in behind if (bound := _bound(clock_ms(ms), floor_ms, lag_ms)) is not None]
    return min(bounds, default=None)


def _bound(ms: int | None, floor_ms: int | None, lag_ms: int | None) -> int | None:
    if ms is None:
        return None
    if lag_ms is not None and lag_ms < -CLOCKS_DIFFER_MS:
        ms -= lag_ms
    if floor_ms is None:
        return ms
    return None if ms < floor_ms - UNKNOWN_CLOCKS_DIFFER_MS else max(ms, floor_ms)


def before_first_ms(stamps: Iterable[EpochStamps]) -> int | None:
    """The newest stamp before the first batch."""
    return newest_ms(each.before_ms for each in stamps)


# ---- The partition of one open transaction


#: Findings about partitions of `__transaction_state` that cast doubt on every record in them.
OF_WHOLE_COORDINATOR: Final = ("COORDINATOR_EPOCH_WENT_BACK", "COPIES_DISAGREE")


def partition_side(
    dossier: Dossier,
    span: OpenSpan,
    copy: CapturedCopy,
    claim: Claim | None,
    clocks: Clocks,
    matches: Sequence[Match],
    coordinator: CoordinatorSide,
    facts: ClusterFacts,
) -> PartitionSide:
    marker = span.markers[-1] if span.markers else None
    first = span.first_check
    stamped_before = floor = before_first_ms(span.stamps)
    lag = min(span.clock_lag_ms or 0, clocks.offset_ms)
    stamped_after = latest_bound_ms((each.behind_ms for each in span.stamps), floor, lag)
    last_offset = span.start_offset if span.last_offset is None else span.last_offset
    before_last = newest_ms(each.before_last_ms for each in span.stamps)
    floor_last = newest_ms([before_last, floor])
    copied = coordinator.earliest_copy_ms if coordinator.earliest_copy_ms is not None else coordinator.known_until_ms
    last_write = clock_ms(span.last_timestamp_ms)
    newest_write = newest_ms([before_last, last_write])
    snapshot_from = copy.read_from_offset if (copy.read_from_offset or 0) > (copy.log_start_offset or 0) else None
    is_begin_gone = first is None and span.start_offset < max(copy.log_start_offset or 0, copy.read_from_offset or 0)
    commit = max(
        span.siblings,
        key=lambda each: each.newest_unexplained_commit_ms if each.newest_unexplained_commit_ms is not None else -1,
        default=None,
    )
    living = [each for each in span.copies if each.status != "MISSING"]
    epochs = [each.leader_epoch for each in living] + [
        each.leader_epoch for each in span.elections if each.leader_epoch is not None
    ]
    return PartitionSide(
        topic=span.topic,
        partition=span.partition,
        producer_id=dossier.producer_id,
        producer_epoch=span.producer_epoch,
        coordinator_epoch=span.coordinator_epoch,
        start_offset=span.start_offset,
        last_timestamp_ms=span.last_timestamp_ms,
        is_broker_clock=span.is_broker_clock,
        first_timestamp_ms=_first_timestamp(span, floor, lag),
        is_start_exact=span.is_start_exact and (is_begin_gone or is_start_proven(span.checks, copy)),
        stamped_before_ms=stamped_before,
        stamped_after_ms=stamped_after,
        hides_stamps=snapshot_from is not None and stamped_before is None,
        checkpointed_ms=copy.checkpointed_at_ms if _is_above(copy.high_watermark, span.start_offset) else None,
        gap_offset=copy.gap_offset if _is_above(copy.gap_offset, span.start_offset) else None,
        known_until_ms=copy.known_until_ms,
        captured_at_ms=_captured_by(copy),
        is_capture_instant_assumed=copy.is_instant_assumed,
        role=Role(copy.role) if copy.role else Role.OTHER,
        end=End(copy.ends) if copy.ends else End.TORN,
        has_leader=has_leader(copy),
        is_leader_hidden=copy.leader_basis == LeaderBasis.METADATA_LOG_DAMAGED,
        leader=None if copy.leader == NO_LEADER else copy.leader,
        is_tail_lost=_is_above(copy.damaged_offset, span.start_offset),
        is_disputed="COPIES_DISAGREE" in span.alarms and copy.role != Role.LEADER.value,
        is_start_committed=None if copy.high_watermark is None else span.start_offset < copy.high_watermark,
        crc=_crc(span.checks),
        first_seen_ms=_seen_ms(span.earlier, copy, first, floor),
        sibling_commit_ms=_sibling_commit_ms(span.siblings, stamped_before),
        newest_marker_ms=max((e.newest_unexplained_ms for e in span.siblings if e.newest_unexplained_ms is not None), default=None),
        newest_commit_ms=commit.newest_unexplained_commit_ms if commit else None,
        newest_commit_coordinator_epoch=commit.newest_unexplained_commit_coordinator_epoch if commit else None,
        clocks_differ_ms=max(CLOCKS_DIFFER_MS, clocks.differ_ms) if matches else CLOCKS_DIFFER_MS,
        written_after_ms=before_last,
        written_checkpointed_ms=copy.checkpointed_at_ms if _is_above(copy.high_watermark, last_offset) else None,
        is_written_again=last_offset > span.start_offset,
        written_before_ms=latest_bound_ms((each.behind_last_ms for each in span.stamps), floor_last, lag),
        is_written_after_coordinator=_is_between(newest_write, copied, _captured_by(copy)),
        answered_stable_offset=copy.answered_stable_offset,
        answered_ms=copy.answered_at_ms,
        is_stable_offset_raised=not _is_above(copy.answered_stable_offset, copy.log_start_offset or 0),
        first_leader_epoch=first.partition_leader_epoch if first else None,
        newest_leader_epoch=max((epoch for epoch in epochs if epoch is not None), default=None),
        checkpoint_leader_epoch=copy.checkpoint_leader_epoch,
        lacks_epoch_checkpoint=facts.has_epoch_checkpoints and copy.checkpoint_leader_epoch is None,
        is_begin_gone=is_begin_gone,
        topic_id=copy.topic_id,
        first_batch_crc=first.crc if first else None,
        truncated_markers=tuple(
            f"{each.type} marker at offset {each.offset} of broker {each.broker}" for each in span.truncated_markers
        ),
        truncated_from=min((e.truncated_from for e in living if e.truncated_from is not None), default=None),
        truncated_until=max(
            (e.end_offset - 1 for e in living if e.truncated_from is not None and e.end_offset is not None), default=None
        ),
        alarms=_alarms(dossier, span, claim, facts),
        marker_offset=None if marker is None else marker.offset,
        marker_type=None if marker is None else marker.type,
        marker_epoch=None if marker is None else marker.epoch,
        marker_coordinator_epoch=None if marker is None else marker.coordinator_epoch,
        marker_ms=None if marker is None else marker.ms,
    )


def _is_above(offset: int | None, other: int) -> bool:
    return offset is not None and offset > other


def _is_between(written: int | None, copied: int | None, captured: int | None) -> bool:
    """Whether something was written after the coordinator's copy. A time after the partition's own copy is a client's invention."""
    if written is None or copied is None or captured is None or captured <= copied:
        return False
    return copied + CLOCKS_DIFFER_MS < written <= captured + UNKNOWN_CLOCKS_DIFFER_MS


def _captured_by(copy: CapturedCopy) -> int | None:
    """The latest instant at which a copy can have been taken: it is not older than its newest broker stamp."""
    stamp = clock_ms(copy.newest_stamp_ms)
    if copy.captured_at_ms is None or stamp is None or stamp <= copy.captured_at_ms + CLOCKS_DIFFER_MS:
        return copy.captured_at_ms
    return stamp


def _first_timestamp(span: OpenSpan, floor: int | None, lag: int) -> int | None:
    """Time of the first batch; one by a broker's clock that contradicts the stamps around it proves nothing."""
    written = span.first_timestamp_ms if span.first_timestamp_ms is not None else span.last_timestamp_ms
    return latest_bound_ms([written], floor, lag) if span.is_broker_clock else written


def _crc(checks: Sequence[CheckedBatch]) -> Crc:
    if any(check.is_crc_valid is False for check in checks):
        return Crc.INVALID
    return Crc.VALID if checks and all(check.is_crc_valid for check in checks) else Crc.NOT_CHECKED


def is_start_proven(checks: Sequence[CheckedBatch], copy: CapturedCopy) -> bool:
    """Whether no batch of the producer can be missing below its first one.

    The sequences of a producer are consecutive within an epoch, starting at 0. If they are not, or if there are none and the copy
    has holes or damage, an earlier batch of the transaction may be missing.
    """
    of = {check.place: check for check in sorted(checks, key=lambda check: check.place)}
    before, first = of.get("before"), of.get("first")
    has_holes = copy.gap_offset is not None or copy.damaged_offset is not None
    if first is None or first.base_sequence is None:
        return not has_holes
    if before is None:
        # If the log begins late, its snapshot shows what came before.
        begins_late = (copy.read_from_offset or copy.log_start_offset or 0) > 0
        return begins_late or first.base_sequence == 0
    if before.producer_epoch != first.producer_epoch:
        return first.base_sequence == 0
    if before.last_sequence is None:
        return not has_holes
    return first.base_sequence == (0 if before.last_sequence == MAX_SEQUENCE else before.last_sequence + 1)


def is_same_transaction(earlier: EarlierAudit, copy: CapturedCopy, first: CheckedBatch | None) -> bool | None:
    """Whether an earlier audit saw this transaction: the same topic id and the same first batch; None if nothing tells."""
    pairs = ((earlier.topic_id, copy.topic_id), (earlier.first_batch_crc, first.crc if first else None))
    known = [left == right for left, right in pairs if left is not None and right is not None]
    if not all(known):
        return False
    return True if known else None


def _seen_ms(earlier: Sequence[EarlierAudit], copy: CapturedCopy, first: CheckedBatch | None, floor: int | None) -> int | None:
    """The oldest instant at which an earlier audit's copy shows the transaction open."""
    seen = (each.copied_ms for each in earlier if is_same_transaction(each, copy, first))
    return latest_bound_ms(seen, floor, None)


def _sibling_commit_ms(siblings: Sequence[SiblingMarkers], stamped_before: int | None) -> int | None:
    """Time of the newest unexplained COMMIT marker elsewhere, since the open records may have begun."""
    newest = max((e.unexplained_commit_ms for e in siblings if e.unexplained_commit_ms is not None), default=None)
    is_since = stamped_before is None or newest is None or newest >= stamped_before - UNKNOWN_CLOCKS_DIFFER_MS
    return newest if is_since else None


def committed_siblings(span: OpenSpan) -> tuple[str, ...]:
    """Names of the other partitions with a COMMIT marker since the open records may have begun."""
    before = before_first_ms(span.stamps)
    since = None if before is None else before - UNKNOWN_CLOCKS_DIFFER_MS
    return tuple(
        sorted(
            f"{each.topic}-{each.partition}"
            for each in span.siblings
            if each.is_committed and (since is None or each.committed_ms is None or each.committed_ms >= since)
        )
    )


def _alarms(dossier: Dossier, span: OpenSpan, claim: Claim | None, facts: ClusterFacts) -> tuple[str, ...]:
    """Names of findings that forbid an abort: about the partition, the producer id, its ids, and the coordinators it rests on."""
    wanted = {each.coordinator_partition for each in dossier.claims}
    of_coordinators = [
        name
        for each in facts.coordinators
        for name in each.alarms
        if (each.partition in wanted and name in OF_WHOLE_COORDINATOR) or claim is None
    ]
    return tuple(sorted({*span.alarms, *dossier.alarms, *of_coordinators}))
