"""`partitions`: the last stable offset of each, and what blocks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from txnlib.core.batch_runs import FIRST_TIMESTAMP_MS, is_divided_at, single_batches_of
from txnlib.core.copies import CoverageRow
from txnlib.core.kafka.producer_state import has_late_transaction, last_stable_offset
from txnlib.core.rows import OfProducer, OnPartition, grouped, row_of
from txnlib.core.schema import row_class
from txnlib.core.sql_text import clock_ms
from txnlib.core.verdicts.reason import Verdict


@dataclass(frozen=True, slots=True)
class UnstableOffset(OnPartition):
    """The lowest first offset of the transactions on a partition that are open, or ended at or above the high
    watermark."""

    first_unstable_offset: int


#: Unstable are open transactions, and those ended by a marker at or above the high watermark.
UNSTABLE_OFFSETS: Final = """
SELECT /*+ BROADCAST(marks) */ topic, partition, min(first_offset) AS first_unstable_offset
FROM {producer_spans} JOIN (
  SELECT topic, partition, coalesce(high_watermark, end_offset, 0) AS mark FROM {coverage} WHERE is_judged
) AS marks USING (topic, partition)
WHERE first_offset IS NOT NULL AND (marker_offset IS NULL OR marker_offset >= mark)
GROUP BY topic, partition
"""


@dataclass(frozen=True, slots=True)
class BlockingTransaction(OfProducer):
    """A row of `open_transactions`."""

    start_offset: int
    transactional_id: str | None
    verdict: str
    last_timestamp_ms: int | None


@dataclass(frozen=True, slots=True)
class AnsweredOffset(OnPartition):
    """A finding LIVE_STABLE_OFFSET_DISAGREES: the leader said that something is open at this offset, but no record
    shows which transaction."""

    offset: int


@dataclass(frozen=True, slots=True)
class UnstableRange(OnPartition):
    """Asked of `record_batches`: the range of a copy from the last stable offset to the high watermark."""

    source: str | None
    last_stable_offset: int
    high_watermark: int


@dataclass(frozen=True, slots=True)
class UnstableBatches(OnPartition):
    """The answer: the bytes of the batches in that range, and the time of the first one."""

    lag_bytes: int | None
    stable_ms: int | None


StablePartition: Final = row_class("partitions")


_RANGES: Final = """(
  SELECT /*+ BROADCAST(ranges) */ *
  FROM {record_batches} JOIN {asked} AS ranges USING (topic, partition, source)
  WHERE last_offset >= last_stable_offset AND base_offset < high_watermark
)"""
_IN_RANGES: Final = single_batches_of(
    _RANGES,
    f"{is_divided_at('last_stable_offset')} OR {is_divided_at('high_watermark')}",
    (
        *("topic", "partition", "base_offset", "last_offset", "size", "batches_count"),
        *("first_timestamp_ms", "max_timestamp_ms", "last_stable_offset", "high_watermark"),
    ),
)
UNSTABLE_BATCHES: Final = f"""
SELECT topic, partition, sum(CAST(size AS BIGINT)) AS lag_bytes,
  {clock_ms(f"min_by({FIRST_TIMESTAMP_MS}, base_offset)")} AS stable_ms
FROM ({_IN_RANGES})
WHERE last_offset >= last_stable_offset AND base_offset < high_watermark
GROUP BY topic, partition
"""


def _is_shown(copy: CoverageRow) -> bool:
    """Whether the partition gets a row: it has a judged copy, or its checkpoint or leader says all about it.

    A partition that was never written to has no segment worth copying; its checkpoint contains all facts about it. The
    same is true where the leader said that nothing is open, and the log was not fetched.
    """
    is_told = copy.high_watermark == 0 or (bool(copy.is_nothing_open) and copy.high_watermark is not None)
    return copy.is_judged or (copy.status == "MISSING" and is_told)


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
        stable[place] = last_stable_offset(first, log.high_watermark_or_end, log.log_start_offset or 0)
    # What lies between last stable offset and high watermark, where these differ and it was read.
    ranges = [
        UnstableRange(*place, log.source, stable[place], log.high_watermark_or_end)
        for place, log in logs.items()
        if stable[place] < log.high_watermark_or_end and log.has_read(stable[place])
    ]
    lags = {(each.topic, each.partition): each for each in unstable_batches(ranges)}
    in_order = sorted(
        open_transactions, key=lambda each: (each.start_offset, each.producer_id, each.transactional_id or "")
    )
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
            end_offset=(log.high_watermark or 0) if log.end_offset is None else log.end_offset,
            log_start_offset=log.log_start_offset or 0,
            high_watermark=log.high_watermark_or_end,
            is_high_watermark_assumed=log.high_watermark is None,
            last_stable_offset=stable[place],
            lag_offsets=log.high_watermark_or_end - stable[place],
            lag_bytes=((lag and lag.lag_bytes) or 0) if log.has_read(stable[place]) else None,
            lag_ms=None if lag is None or lag.stable_ms is None else max(as_of_ms - lag.stable_ms, 0),
            blocking_producer_id=blocking and blocking.producer_id,
            blocking_transactional_id=blocking and blocking.transactional_id,
            blocking_verdict=Verdict.UNKNOWN if place in answered else blocking and blocking.verdict,
            next_blocking_offset=following and following.start_offset,
            next_blocking_producer_id=following and following.producer_id,
            next_blocking_transactional_id=following and following.transactional_id,
            is_late=has_late_transaction(last_ms, as_of_ms, transaction_max_timeout_ms),
        )
