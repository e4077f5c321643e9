"""`quarantine`: what could not be read, or was refuted, and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from txnlib.core.copies import CoverageRow, highest
from txnlib.core.coverage.captured_files import PRINTED, RAW, TEXT, CapturedFile, CheckpointEntry, CopyKey, of_copies
from txnlib.core.coverage.truncated_tails import EpochOfSegment, contradicted_batches
from txnlib.core.rows import OfCopy
from txnlib.core.schema import row_class

_BY_CRC: Final = "CORRUPT_BATCH: its CRC does not fit"
_REFUTED: Final = "a batch whose CRC does not fit"


@dataclass(frozen=True, slots=True)
class RefutedBatch(OfCopy):
    """A row of `checked_batches` whose CRC does not fit."""

    path: str | None
    position: int
    size: int
    base_offset: int
    last_offset: int


Quarantined: Final = row_class("quarantine")


def quarantine(
    segments: Sequence[CapturedFile],
    checkpoints: Sequence[CheckpointEntry],
    epochs: Sequence[EpochOfSegment],
    refuted: Sequence[RefutedBatch],
) -> Iterator[Any]:
    """A row for each unreadable range of bytes or text, and for each batch that its CRC or its surroundings refuted.

    `epochs`: of `record_batches`, or none if no copy is damaged, because then no batch is contradicted.
    """
    for file in segments:
        for each in file.unreadable or () if file.kind != PRINTED else ():
            where = file.topic, file.partition, file.source, file.path
            yield Quarantined(*where, each.position, each.length, each.reason, each.sample, each.next_offset)
    paths = _paths_of_segments(segments) if epochs else {}
    contradicted = [
        _of_batch(batch, paths.get((batch.copy, batch.segment_base_offset)), reason)
        for batch, reason in contradicted_batches(epochs, segments, of_copies(checkpoints))
    ]
    by_crc = [_of_batch(batch, batch.path, _BY_CRC) for batch in refuted]
    yield from dict.fromkeys((*contradicted, *by_crc))


def _of_batch(batch: EpochOfSegment | RefutedBatch, path: str | None, reason: str) -> Any:
    return Quarantined(*batch.copy, path, batch.position, batch.size, reason, None, batch.last_offset + 1)


def _paths_of_segments(segments: Iterable[CapturedFile]) -> dict[tuple[CopyKey, int | None], str]:
    """The file of each segment; of several, the longest."""
    longest: dict[tuple[CopyKey, int | None], tuple[int, str]] = {}
    for file in segments:
        if file.copy is not None and file.kind in (RAW, TEXT):
            key, found = (file.copy, file.segment_base_offset), (file.bytes or 0, file.path)
            longest[key] = max(found, longest.get(key, found))
    return {key: path for key, (_, path) in longest.items()}


def lowered(coverage: Iterable[CoverageRow], refuted: Collection[RefutedBatch]) -> Iterator[CoverageRow]:
    """The coverage, reduced by batches whose CRC was found wrong after they were read. Idempotent."""
    of_copies: dict[tuple[str, int, str | None], set[tuple[int, int, int]]] = defaultdict(set)
    for each in refuted:
        of_copies[each.copy].add((each.base_offset, each.last_offset, each.size))
    for row in coverage:
        batches = of_copies.get((row.topic, row.partition, row.source))
        if not batches or _REFUTED in (row.detail or ""):
            yield row
            continue
        yield replace(
            row,
            status="DAMAGED",
            detail=f"{row.detail}; {_REFUTED}" if row.detail else _REFUTED,
            damaged_offset=highest((row.damaged_offset, *(last + 1 for _, last, _ in batches))),
            unreadable_bytes=(row.unreadable_bytes or 0) + sum(size for *_, size in batches),
        )
