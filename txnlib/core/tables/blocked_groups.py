"""`blocked_groups`: the groups that wait at a last stable offset."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from txnlib.core.copies import CoverageRow, highest
from txnlib.core.rows import OnPartition, row_of
from txnlib.core.schema import row_class


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
    """A row for each group and partition where it waits: with a commit between two offsets, if the LSO is below the
    high watermark.

        readable end <= committed offset <= LSO (last stable offset)

    The *readable end* is the offset after the last record below the LSO that `read_committed` consumers receive.
    Between the two there are only markers, aborted data, and gaps from compaction. A consumer may or may not have
    passed these when it commits. A group above the LSO reads uncommitted data and is not blocked; a group below the
    readable end still has records to read. A group at the LSO counts whether or not it has a live member, because
    commits do not show that.
    """
    blocked = {
        (each.topic, each.partition): each for each in partitions if each.last_stable_offset < each.high_watermark
    }
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
        if each.committed_offset < min(
            at.last_stable_offset if readable_end is None else readable_end, at.last_stable_offset
        ):
            continue
        lag = at.high_watermark - each.committed_offset
        yield row_of(
            BlockedGroup, each, at, as_of_ms=as_of_ms, lag_offsets=lag, committed_at_ms=each.commit_timestamp_ms
        )
