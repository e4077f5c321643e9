"""Last batches of segments whose offset or leader epoch contradicts their surroundings.

No CRC covers a batch's base offset and leader epoch. Inside a segment, the reader compares them with those of the batches before
and after (`readers.batch_headers`). The last batch of a segment has none after it, so it is compared here with the next segment and
with the checkpoints of its own copy. Kafka: `LeaderEpochFileCache`; `UnifiedLog.roll` names a segment after its first offset.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from txnlib.core.coverage.checkpoints import Checkpoints
from txnlib.core.coverage.known import is_above
from txnlib.core.coverage.leader_epochs import EpochOfSegment
from txnlib.core.coverage.segments import CapturedFile
from txnlib.core.coverage.sources import CopyKey

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
    of_copies: dict[CopyKey, list[EpochOfSegment]] = defaultdict(list)
    for each in epochs:
        of_copies[each.copy].append(each)
    found: list[Contradicted] = []
    for copy, of_copy in of_copies.items():
        noted = checkpoints.get(copy, Checkpoints())
        found += _by_epoch(of_copy, noted.highest_epoch)
        found += _by_offset(of_copy, noted.high_watermark, is_damaged=copy in damaged)
    return found


def _by_epoch(epochs: Iterable[EpochOfSegment], highest_listed: int | None) -> Iterator[Contradicted]:
    """The only batches of an epoch that their neighbours, or the checkpoint, contradict."""
    numbered = [(each.epoch, each) for each in epochs if each.epoch is not None]
    numbered.sort(key=lambda each: (each[1].segment_base_offset, each[1].begins))
    numbers = [epoch for epoch, _ in numbered]
    follows_raised = False
    for (epoch, each), before, after in zip(numbered, [None, *numbers], [*numbers[1:], None], strict=False):
        is_alone = each.batches == 1
        is_raised = is_alone and after is not None and (after if before is None else before) <= after < epoch
        is_lowered = (
            is_alone and not follows_raised and before is not None and epoch < before <= (before if after is None else after)
        )
        if is_raised or is_lowered:
            yield Contradicted(each, EPOCH)
        # An election while the files are copied may look the same, until the new leader appends a second batch.
        elif is_alone and after is None and is_above(epoch, highest_listed):
            yield Contradicted(each, UNLISTED_EPOCH)
        follows_raised = is_raised


def _by_offset(epochs: Iterable[EpochOfSegment], high_watermark: int | None, *, is_damaged: bool) -> Iterator[Contradicted]:
    """The last batches of segments whose offset the next segment, or the high watermark, contradicts."""
    last_of: dict[int, EpochOfSegment] = {}
    for each in epochs:
        base = each.segment_base_offset
        last_of[base] = max(last_of.get(base, each), each, key=_order)
    bases: Sequence[int] = sorted(last_of)
    for base, following in zip(bases, [*bases[1:], None], strict=True):
        last = last_of[base]
        gap = last.offset_gap
        if following is not None:
            before = base if gap is None else last.base_offset - gap - 1
            if last.last_offset >= following > before:
                yield Contradicted(last, OVERLAP)
        # The cleaner never cleans the last segment, so only a follower of a compacted topic has a gap there, and its high watermark
        # soon shows it.
        elif gap is not None and gap > 0 and not is_damaged and not is_above(high_watermark, last.base_offset):
            yield Contradicted(last, GAP)


def _order(each: EpochOfSegment) -> tuple[int, int, int]:
    return each.base_offset, each.last_offset, each.position or 0
