"""Leader epochs in copies, and what newer leaders truncated."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from txnlib.core.coverage.checkpoints import Checkpoints
from txnlib.core.coverage.known import highest, lowest
from txnlib.core.coverage.sources import CopyKey
from txnlib.core.verdicts.dossier import TruncatedEpoch


@dataclass(frozen=True, slots=True)
class EpochOfSegment:
    """A leader epoch in a segment (None: batch formats 0 and 1): its number of batches, its offsets, and its last batch."""

    topic: str
    partition: int
    source: str
    segment_base_offset: int
    epoch: int | None
    batches: int
    begins: int
    ends: int
    base_offset: int
    last_offset: int
    position: int | None
    size: int | None
    offset_gap: int | None

    @property
    def copy(self) -> CopyKey:
        return self.topic, self.partition, self.source


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochsOfCopy:
    """The leader epochs of a copy."""

    leader_epoch: int | None = None
    checkpoint_leader_epoch: int | None = None
    #: The first offset of the newest epoch in the copy's own checkpoint: its log reached it.
    reached_offset: int | None = None
    truncated: tuple[TruncatedEpoch, ...] = ()
    #: The offset after the last batch that was not truncated; None if none was.
    survives_until: int | None = None


@dataclass(frozen=True, slots=True)
class _Range:
    """The offsets of one leader epoch in a copy. The end is None in a checkpoint, which does not show it."""

    epoch: int
    begins: int
    ends: int | None


def epochs_of_copies(epochs: Iterable[EpochOfSegment], checkpoints: Mapping[str, Checkpoints]) -> dict[str, EpochsOfCopy]:
    """Source -> the leader epochs of that copy, of all copies of one partition.

    Leader epochs never fall as offsets rise. So a batch at or above the first offset of a higher epoch, in any copy, did not
    survive. Kafka: `LeaderEpochFileCache`, KIP-101.
    """
    ranges: dict[str, list[_Range]] = defaultdict(list)
    for each in epochs:
        if each.epoch is not None:
            ranges[each.source].append(_Range(each.epoch, each.begins, each.ends))
    merged = {source: _merged(each) for source, each in ranges.items()}
    for source, noted in checkpoints.items():
        merged.setdefault(source, []).extend(_Range(epoch, at, None) for epoch, at in noted.leader_epochs if at is not None)
    above = _begins_above([each for of_copy in merged.values() for each in of_copy])
    return {source: _of_copy(each, above) for source, each in merged.items() if each}


def _merged(ranges: Iterable[_Range]) -> list[_Range]:
    """One range for each epoch in the segments of a copy."""
    by_epoch: dict[int, list[_Range]] = defaultdict(list)
    for each in ranges:
        by_epoch[each.epoch].append(each)
    return [_Range(epoch, min(each.begins for each in of), highest(each.ends for each in of)) for epoch, of in by_epoch.items()]


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
    return EpochsOfCopy(
        leader_epoch=highest(each.epoch for each in ranges),
        checkpoint_leader_epoch=highest(each.epoch for each in noted),
        reached_offset=highest(each.begins for each in noted),
        truncated=tuple(truncated),
        survives_until=highest(_survives_until(each, above[each.epoch]) for each in ranges) if truncated else None,
    )


def _survives_until(each: _Range, begins_above: int | None) -> int | None:
    return lowest((None if each.ends is None else each.ends + 1, begins_above))
