"""The tails of copies that newer leaders truncated, by their leader epochs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from txnlib.core.batch_runs import BATCHES
from txnlib.core.copies import LeaderEpoch, TruncatedEpoch, highest, is_above, lowest
from txnlib.core.coverage.captured_files import CapturedFile, Checkpoints, CopyKey
from txnlib.core.rows import OfCopy, grouped
from txnlib.core.sql_text import clock_ms


@dataclass(frozen=True, slots=True)
class EpochOfSegment(OfCopy):
    """A leader epoch in a segment (None: batch formats 0 and 1): its number of batches, its offsets, and its last
    batch."""

    #: None for text whose first lines are missing.
    segment_base_offset: int | None
    epoch: int | None
    batches: int
    begins: int
    ends: int
    base_offset: int
    last_offset: int
    position: int | None
    size: int | None
    offset_gap: int | None
    #: The oldest time of a marker: a stamp of the leader of that epoch.
    stamped_ms: int | None = None


#: One row per segment and leader epoch. The last batch of a segment, and a batch that is the only one of its epoch, are
#: always rows of their own.
EPOCHS_OF_SEGMENTS: Final = f"""
SELECT topic, partition, source, segment_base_offset, epoch, batches, begins, ends, stamped_ms,
  last.base_offset, last.last_offset,
  last.position, last.size, last.offset_gap
FROM (
  SELECT topic, partition, source, segment_base_offset, partition_leader_epoch AS epoch, sum({BATCHES}) AS batches,
    min(base_offset) AS begins, max(last_offset) AS ends,
    min(if(is_control AND producer_id IS NOT NULL, {clock_ms("max_timestamp_ms")}, NULL)) AS stamped_ms,
    max(struct(base_offset, last_offset, position, size, offset_gap)) AS last
  FROM {{record_batches}} GROUP BY topic, partition, source, segment_base_offset, partition_leader_epoch
)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochsOfCopy:
    """The leader epochs of a copy."""

    leader_epoch: int | None = None
    checkpoint_leader_epoch: int | None = None
    #: All epochs in its batches and in its checkpoint, in order.
    leader_epochs: tuple[LeaderEpoch, ...] | None = None
    #: The first offset of the newest epoch in the copy's own checkpoint: its log reached it.
    reached_offset: int | None = None
    truncated: tuple[TruncatedEpoch, ...] = ()
    #: The oldest stamp of the leader of the newest epoch.
    stamped_ms: int | None = None
    #: The offset after the last batch that was not truncated; None if none was.
    survives_until: int | None = None
    #: The first offset of any leader epoch above its newest one, in any copy.
    overtaken_from: int | None = None


@dataclass(frozen=True, slots=True)
class _Range:
    """The offsets of one leader epoch in a copy. The end is None in a checkpoint, which does not show it."""

    epoch: int
    begins: int
    ends: int | None
    stamped_ms: int | None = None


def epochs_of_copies(
    epochs: Iterable[EpochOfSegment], checkpoints: Mapping[str, Checkpoints]
) -> dict[str, EpochsOfCopy]:
    """Source -> the leader epochs of that copy, of all copies of one partition.

    Leader epochs never fall as offsets rise. So a batch at or above the first offset of a higher epoch, in any copy,
    did not survive. Kafka: `LeaderEpochFileCache`, KIP-101.
    """
    ranges: dict[str, list[_Range]] = defaultdict(list)
    for each in epochs:
        if each.epoch is not None:
            ranges[each.source].append(_Range(each.epoch, each.begins, each.ends, each.stamped_ms))
    merged = {source: _merged(each) for source, each in ranges.items()}
    for source, noted in checkpoints.items():
        merged.setdefault(source, []).extend(
            _Range(epoch, at, None) for epoch, at in noted.leader_epochs if at is not None
        )
    above = _begins_above([each for of_copy in merged.values() for each in of_copy])
    return {source: _of_copy(each, above) for source, each in merged.items() if each}


def _merged(ranges: Iterable[_Range]) -> list[_Range]:
    """One range for each epoch in the segments of a copy."""
    by_epoch = grouped(ranges, lambda each: each.epoch)
    return [
        _Range(
            epoch,
            min(each.begins for each in of),
            highest(each.ends for each in of),
            lowest(each.stamped_ms for each in of),
        )
        for epoch, of in by_epoch.items()
    ]


def _begins_above(ranges: Iterable[_Range]) -> dict[int, int | None]:
    """Leader epoch -> the first offset of any higher one; None for the highest."""
    begins: dict[int, int] = {}
    for each in ranges:
        begins[each.epoch] = min(each.begins, begins.get(each.epoch, each.begins))
    found: dict[int, int | None] = {}
    lowest_above: int | None = None
    for epoch in sorted(begins, reverse=True):
        found[epoch] = lowest_above
        lowest_above = lowest((lowest_above, begins[epoch]))
    return found


def _of_copy(ranges: Sequence[_Range], above: Mapping[int, int | None]) -> EpochsOfCopy:
    noted = [each for each in ranges if each.ends is None]
    truncated = [
        TruncatedEpoch(leader_epoch=each.epoch, from_offset=begins)
        for each in sorted(ranges, key=lambda each: each.epoch)
        if each.ends is not None and (begins := above[each.epoch]) is not None and each.ends >= begins
    ]
    newest = highest(each.epoch for each in ranges)
    return EpochsOfCopy(
        leader_epoch=newest,
        stamped_ms=lowest(each.stamped_ms for each in ranges if each.epoch == newest),
        checkpoint_leader_epoch=highest(each.epoch for each in noted),
        leader_epochs=tuple(
            LeaderEpoch(leader_epoch=epoch, from_offset=min(each.begins for each in of))
            for epoch, of in sorted(grouped(ranges, lambda each: each.epoch).items())
        ),
        reached_offset=highest(each.begins for each in noted),
        overtaken_from=None if newest is None else above[newest],
        truncated=tuple(truncated),
        survives_until=highest(
            lowest((None if each.ends is None else each.ends + 1, above[each.epoch])) for each in ranges
        )
        if truncated
        else None,
    )


# ---- Last batches of segments whose offset or leader epoch contradicts their surroundings


EPOCH: Final = "CORRUPT_BATCH: its leader epoch contradicts those of its neighbours"
UNLISTED_EPOCH: Final = "CORRUPT_BATCH: its leader epoch is above those in the leader epoch checkpoint"
OVERLAP: Final = "CORRUPT_BATCH: it reaches into the next segment"
GAP: Final = "CORRUPT_BATCH: offsets are missing before it, and no high watermark shows that it was there"


class Contradicted(NamedTuple):
    """A contradicted batch, which is the last one of its leader epoch in its segment."""

    batch: EpochOfSegment
    reason: str


def contradicted_batches(
    epochs: Iterable[EpochOfSegment], segments: Iterable[CapturedFile], checkpoints: Mapping[CopyKey, Checkpoints]
) -> list[Contradicted]:
    """The contradicted batches, usually none."""
    damaged = {file.copy for file in segments if file.unreadable}
    found: list[Contradicted] = []
    for copy, of_copy in grouped(epochs, lambda each: each.copy).items():
        noted = checkpoints.get(copy, Checkpoints())
        found += _by_epoch(of_copy, noted.highest_epoch)
        found += _by_offset(of_copy, noted.high_watermark, is_damaged=copy in damaged)
    return found


def _by_epoch(epochs: Iterable[EpochOfSegment], highest_listed: int | None) -> Iterator[Contradicted]:
    """Batches that are the only ones of their leader epoch, if their neighbours or the checkpoint contradict this
    epoch."""
    numbered = [(each.epoch, each) for each in epochs if each.epoch is not None]
    numbered.sort(key=lambda each: (_base_offset(each[1]), each[1].begins))
    numbers = [epoch for epoch, _ in numbered]
    follows_raised = False
    for (epoch, each), before, after in zip(numbered, [None, *numbers], [*numbers[1:], None], strict=False):
        is_alone = each.batches == 1
        is_raised = is_alone and after is not None and (after if before is None else before) <= after < epoch
        is_lowered = (
            is_alone
            and not follows_raised
            and before is not None
            and epoch < before <= (before if after is None else after)
        )
        if is_raised or is_lowered:
            yield Contradicted(each, EPOCH)
        # An election while the files are copied may look the same, until the new leader appends a second batch.
        elif is_alone and after is None and is_above(epoch, highest_listed):
            yield Contradicted(each, UNLISTED_EPOCH)
        follows_raised = is_raised


def _base_offset(each: EpochOfSegment) -> int:
    return each.begins if each.segment_base_offset is None else each.segment_base_offset


def _by_offset(
    epochs: Iterable[EpochOfSegment], high_watermark: int | None, *, is_damaged: bool
) -> Iterator[Contradicted]:
    """Last batches of segments, if the next segment or the high watermark contradicts their offset."""
    last_of: dict[int, EpochOfSegment] = {}
    for each in epochs:
        base = each.segment_base_offset
        if base is not None:
            last_of[base] = max(last_of.get(base, each), each, key=_order)
    bases: Sequence[int] = sorted(last_of)
    for base, following in zip(bases, [*bases, None][1:], strict=True):
        last = last_of[base]
        gap = last.offset_gap
        if following is not None:
            before = base if gap is None else last.base_offset - gap - 1
            if last.last_offset >= following > before:
                yield Contradicted(last, OVERLAP)
        # The cleaner never cleans the last segment, so only a follower of a compacted topic has a gap there, and its
        # high watermark soon shows it.
        elif gap is not None and gap > 0 and not is_damaged and not is_above(high_watermark, last.base_offset):
            yield Contradicted(last, GAP)


def _order(each: EpochOfSegment) -> tuple[int, int, int]:
    return each.base_offset, each.last_offset, each.position or 0
