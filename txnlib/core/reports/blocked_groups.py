"""`blocked_groups`: consumer groups that wait at a last stable offset.

A group waits if it has a commit between two offsets of a partition whose last stable offset (LSO) is below its high watermark:

    readable end <= committed offset <= LSO

The *readable end* is the offset after the last record below the LSO that `read_committed` consumers receive. Between the two there
are only markers, aborted data, and gaps from compaction. A consumer may or may not have passed these when it commits. A group above
the LSO reads uncommitted data and is not blocked; a group below the readable end still has records to read. A group at the LSO
counts whether or not it has a live member, because commits do not show that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BlockedPartition:
    """A row of `partitions`."""

    topic: str
    partition: int
    last_stable_offset: int
    high_watermark: int
    blocking_producer_id: int | None
    blocking_transactional_id: str | None


@dataclass(frozen=True, slots=True)
class ConsumedCopy:
    """A row of `coverage`: offsets below which there may be, or may have been, records that were not read."""

    topic: str
    partition: int
    source: str | None
    is_judged: bool
    log_start_offset: int | None
    read_from_offset: int | None
    gap_offset: int | None
    damaged_offset: int | None

    @property
    def unread_end(self) -> int | None:
        offsets = (self.log_start_offset, self.read_from_offset, self.gap_offset, self.damaged_offset)
        return max((offset for offset in offsets if offset is not None), default=None)


@dataclass(frozen=True, slots=True)
class ConsumedPartition:
    """Asked of `committed_offsets`: where groups stand on a partition."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class GroupPosition:
    """Answered: the last commit of a group that took effect."""

    group_id: str
    topic: str
    partition: int
    committed_offset: int
    commit_timestamp_ms: int | None


@dataclass(frozen=True, slots=True)
class StableEnd:
    """Asked of `producer_spans` and `record_batches`: what consumers receive of a copy below an offset."""

    topic: str
    partition: int
    source: str | None
    last_stable_offset: int


@dataclass(frozen=True, slots=True)
class ReadEnd:
    """Answered: the offset after the last record that they receive."""

    topic: str
    partition: int
    read_end: int


@dataclass(frozen=True, slots=True)
class BlockedGroup:
    """A row of `blocked_groups`."""

    as_of_ms: int
    group_id: str
    topic: str
    partition: int
    committed_offset: int
    last_stable_offset: int
    high_watermark: int
    lag_offsets: int
    committed_at_ms: int | None
    blocking_producer_id: int | None
    blocking_transactional_id: str | None


def blocked_groups(
    partitions: Sequence[BlockedPartition],
    coverage: Sequence[ConsumedCopy],
    group_positions: Callable[[Sequence[ConsumedPartition]], Sequence[GroupPosition]],
    read_ends: Callable[[Sequence[StableEnd]], Sequence[ReadEnd]],
    *,
    as_of_ms: int,
) -> Iterator[BlockedGroup]:
    """A row for each group and partition where it waits."""
    blocked = {(each.topic, each.partition): each for each in partitions if each.last_stable_offset < each.high_watermark}
    stands = group_positions([ConsumedPartition(*place) for place in blocked])
    below = [each for each in stands if each.committed_offset <= blocked[each.topic, each.partition].last_stable_offset]
    places = {(each.topic, each.partition) for each in below}
    judged = {(copy.topic, copy.partition): copy for copy in coverage if copy.is_judged and (copy.topic, copy.partition) in places}
    asked = [StableEnd(*place, copy.source, blocked[place].last_stable_offset) for place, copy in judged.items()]
    received = {(end.topic, end.partition): end.read_end for end in read_ends(asked)}
    for each in below:
        place = each.topic, each.partition
        at = blocked[place]
        known = (received.get(place), judged[place].unread_end if place in judged else None)
        readable_end = max((end for end in known if end is not None), default=at.last_stable_offset)
        if each.committed_offset < min(readable_end, at.last_stable_offset):
            continue
        yield BlockedGroup(
            as_of_ms=as_of_ms,
            group_id=each.group_id,
            topic=each.topic,
            partition=each.partition,
            committed_offset=each.committed_offset,
            last_stable_offset=at.last_stable_offset,
            high_watermark=at.high_watermark,
            lag_offsets=at.high_watermark - each.committed_offset,
            committed_at_ms=each.commit_timestamp_ms,
            blocking_producer_id=at.blocking_producer_id,
            blocking_transactional_id=at.blocking_transactional_id,
        )
