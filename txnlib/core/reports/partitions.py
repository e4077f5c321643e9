"""Last stable offsets of partitions, and groups that wait at them.

The tables `partitions` and `blocked_groups`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from txnlib.core.copies import CoverageRow, highest
from txnlib.core.kafka.producer_state import has_late_transaction, last_stable_offset
from txnlib.core.rows import OfProducer, OnPartition, grouped, row_of
from txnlib.core.schema import row_class
from txnlib.core.verdicts.reason import Verdict


@dataclass(frozen=True, slots=True)
class UnstableOffset(OnPartition):
    """The first offset of a partition whose transaction is open, or ended at or above the high watermark."""

    first_unstable_offset: int


@dataclass(frozen=True, slots=True)
class BlockingTransaction(OfProducer):
    """A row of `open_transactions`."""

    start_offset: int
    transactional_id: str | None
    verdict: str
    last_timestamp_ms: int | None


@dataclass(frozen=True, slots=True)
class AnsweredOffset(OnPartition):
    """A finding LIVE_STABLE_OFFSET_DISAGREES: its leader said that something is open there; which transaction, nothing shows."""

    offset: int


@dataclass(frozen=True, slots=True)
class UnstableRange(OnPartition):
    """Asked of `record_batches`: what lies in a copy from the last stable offset to the high watermark."""

    source: str | None
    last_stable_offset: int
    high_watermark: int


@dataclass(frozen=True, slots=True)
class UnstableBatches(OnPartition):
    """Answered: the bytes of these batches, and the time of the first."""

    lag_bytes: int | None
    stable_ms: int | None


StablePartition: Final = row_class("partitions")


def _is_shown(copy: CoverageRow) -> bool:
    """Whether the partition has a row: by its judged copy, or because its leader told all about it.

    A partition that was never written to has no segment worth copying; its checkpoint contains all facts about it. The same is
    true where the leader said that nothing is open, and the log was not fetched.
    """
    is_told = copy.high_watermark == 0 or (bool(copy.is_nothing_open) and copy.high_watermark is not None)
    return copy.is_judged or (copy.status == "MISSING" and is_told)


def _end(copy: CoverageRow) -> int:
    return (copy.high_watermark or 0) if copy.end_offset is None else copy.end_offset


def _mark(copy: CoverageRow) -> int:
    """The high watermark, else the end. What checkpoints and batches do not show is taken from one another."""
    return _end(copy) if copy.high_watermark is None else copy.high_watermark


def _has_read(copy: CoverageRow, offset: int) -> bool:
    """Whether the batches from an offset on were read: those before a snapshot were not."""
    begin = copy.read_from_offset
    return begin is None or not (copy.log_start_offset or 0) < begin or offset >= begin


def partitions(
    coverage: Sequence[CoverageRow],
    unstable_offsets: Sequence[UnstableOffset],
    open_transactions: Sequence[BlockingTransaction],
    answered_offsets: Sequence[AnsweredOffset],
    unstable_batches: Callable[[Sequence[UnstableRange]], Sequence[UnstableBatches]],
    *,
    as_of_ms: int,
    transaction_max_timeout_ms: int,
) -> Iterator[Any]:
    """A row for each captured partition, by its judged copy.

    Kafka: `UnifiedLog.fetchLastStableOffsetMetadata` (never above the high watermark, never below the log start), and
    `ProducerStateManager.hasLateTransaction` (only the open transaction with the lowest first offset counts).
    """
    unstable = {(each.topic, each.partition): each.first_unstable_offset for each in unstable_offsets}
    answered = {(each.topic, each.partition): each.offset for each in answered_offsets}
    logs = {copy.place: copy for copy in coverage if _is_shown(copy)}
    stable = {}
    for place, log in logs.items():
        first = min((each[place] for each in (unstable, answered) if place in each), default=None)
        stable[place] = last_stable_offset(first, _mark(log), log.log_start_offset or 0)
    # What lies between last stable offset and high watermark, where these differ and it was read.
    ranges = [
        UnstableRange(*place, log.source, stable[place], _mark(log))
        for place, log in logs.items()
        if stable[place] < _mark(log) and _has_read(log, stable[place])
    ]
    lags = {(each.topic, each.partition): each for each in unstable_batches(ranges)}
    in_order = sorted(open_transactions, key=lambda each: (each.start_offset, each.producer_id, each.transactional_id or ""))
    opened = grouped(in_order, lambda each: (each.topic, each.partition))
    for place, log in logs.items():
        blocking, following = (*opened.get(place, ()), None, None)[:2]
        if place in answered:
            blocking = None
        lag = lags.get(place)
        last_ms = None if blocking is None else blocking.last_timestamp_ms
        yield row_of(
            StablePartition,
            log,
            as_of_ms=as_of_ms,
            end_offset=_end(log),
            log_start_offset=log.log_start_offset or 0,
            high_watermark=_mark(log),
            is_high_watermark_assumed=log.high_watermark is None,
            last_stable_offset=stable[place],
            lag_offsets=_mark(log) - stable[place],
            lag_bytes=((lag and lag.lag_bytes) or 0) if _has_read(log, stable[place]) else None,
            lag_ms=None if lag is None or lag.stable_ms is None else max(as_of_ms - lag.stable_ms, 0),
            blocking_producer_id=blocking and blocking.producer_id,
            blocking_transactional_id=blocking and blocking.transactional_id,
            blocking_verdict=Verdict.UNKNOWN if place in answered else blocking and blocking.verdict,
            next_blocking_offset=following and following.start_offset,
            next_blocking_producer_id=following and following.producer_id,
            next_blocking_transactional_id=following and following.transactional_id,
            is_late=has_late_transaction(last_ms, as_of_ms, transaction_max_timeout_ms),
        )


# ---- `blocked_groups`


@dataclass(frozen=True, slots=True)
class BlockedPartition(OnPartition):
    """A row of `partitions`."""

    last_stable_offset: int
    high_watermark: int
    blocking_producer_id: int | None
    blocking_transactional_id: str | None


@dataclass(frozen=True, slots=True)
class GroupPosition:
    """Answered: the last commit of a group that took effect."""

    group_id: str
    topic: str
    partition: int
    committed_offset: int
    commit_timestamp_ms: int | None


@dataclass(frozen=True, slots=True)
class StableEnd(OnPartition):
    """Asked of `producer_spans` and `record_batches`: what consumers receive of a copy below an offset."""

    source: str | None
    last_stable_offset: int


@dataclass(frozen=True, slots=True)
class ReadEnd(OnPartition):
    """Answered: the offset after the last record that they receive."""

    read_end: int


BlockedGroup: Final = row_class("blocked_groups")


def blocked_groups(
    partitions: Sequence[BlockedPartition],
    coverage: Sequence[CoverageRow],
    group_positions: Callable[[Sequence[OnPartition]], Sequence[GroupPosition]],
    read_ends: Callable[[Sequence[StableEnd]], Sequence[ReadEnd]],
    *,
    as_of_ms: int,
) -> Iterator[Any]:
    """A row for each group and partition where it waits: with a commit between two offsets, if the LSO is below the high watermark.

        readable end <= committed offset <= LSO (last stable offset)

    The *readable end* is the offset after the last record below the LSO that `read_committed` consumers receive. Between the two
    there are only markers, aborted data, and gaps from compaction. A consumer may or may not have passed these when it commits. A
    group above the LSO reads uncommitted data and is not blocked; a group below the readable end still has records to read. A group
    at the LSO counts whether or not it has a live member, because commits do not show that.
    """
    blocked = {(each.topic, each.partition): each for each in partitions if each.last_stable_offset < each.high_watermark}
    stands = group_positions([OnPartition(*place) for place in blocked])
    below = [each for each in stands if each.committed_offset <= blocked[each.topic, each.partition].last_stable_offset]
    places = {(each.topic, each.partition) for each in below}
    judged = {copy.place: copy for copy in coverage if copy.is_judged and copy.place in places}
    asked = [StableEnd(*place, copy.source, blocked[place].last_stable_offset) for place, copy in judged.items()]
    received = {(end.topic, end.partition): end.read_end for end in read_ends(asked)}
    for each in below:
        place = each.topic, each.partition
        at = blocked[place]
        # Below these offsets there may be, or may have been, records that were not read.
        copy = judged.get(place, CoverageRow())
        unread = (copy.log_start_offset, copy.read_from_offset, copy.gap_offset, copy.damaged_offset)
        readable_end = highest((received.get(place), *unread))
        if each.committed_offset < min(at.last_stable_offset if readable_end is None else readable_end, at.last_stable_offset):
            continue
        lag = at.high_watermark - each.committed_offset
        yield row_of(BlockedGroup, each, at, as_of_ms=as_of_ms, lag_offsets=lag, committed_at_ms=each.commit_timestamp_ms)
