"""`coverage`: what each copy contains and proves.

The table in `core.copies` decides what a copy proves; here are its inputs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from txnlib.core.copies import (
    CopyBeside,
    CoverageRow,
    End,
    Role,
    highest,
    is_above,
    is_current,
    known_until_ms,
    lowest,
)
from txnlib.core.coverage.capture_instants import CaptureInstants
from txnlib.core.coverage.captured_files import (
    CapturedFile,
    CheckpointEntry,
    Checkpoints,
    CopyKey,
    Extent,
    Place,
    broker_of,
    extents,
    of_copies,
)
from txnlib.core.coverage.copy_facts import CopyFacts, begin_by_choice, problems_of
from txnlib.core.coverage.judged_copy import CheckpointOnly, CopyRole, LeaderProof, order_to_judge, roles
from txnlib.core.coverage.leaders import NotedPartition, PartitionLeader, TopicProof, absence, topic_proof
from txnlib.core.coverage.truncated_tails import EpochOfSegment, EpochsOfCopy, contradicted_batches, epochs_of_copies
from txnlib.core.rows import OfCopy, row_of

#: Detail of a copy that is not judged, because its topic id is that of a deleted topic.
OF_DELETED_TOPIC: Final = "of a deleted topic, or of an earlier topic of the same name"


@dataclass(frozen=True, slots=True)
class NewestSnapshot(OfCopy):
    """The newest producer snapshot of a copy."""

    snapshot_offset: int


NEWEST_SNAPSHOTS: Final = """
SELECT topic, partition, source, max(snapshot_offset) AS snapshot_offset FROM {producer_snapshots}
WHERE is_answer IS NULL GROUP BY topic, partition, source
"""


@dataclass(slots=True)
class _Partition:
    """What was captured of one partition: source -> what that copy or its checkpoints show. Deleted copies are left
    out."""

    extents: dict[str, Extent] = field(default_factory=dict)
    checkpoints: dict[str, Checkpoints] = field(default_factory=dict)
    epochs: list[EpochOfSegment] = field(default_factory=list)
    contradicted: list[EpochOfSegment] = field(default_factory=list)
    #: Source -> offset of its newest producer snapshot.
    snapshots: dict[str, int] = field(default_factory=dict)

    @property
    def high_watermarks(self) -> dict[str, int]:
        """Source -> the high watermark in its checkpoint."""
        marks = {source: noted.high_watermark for source, noted in self.checkpoints.items()}
        return {source: mark for source, mark in marks.items() if mark is not None}


def coverage(
    segments: Sequence[CapturedFile],
    checkpoints: Sequence[CheckpointEntry],
    epochs: Sequence[EpochOfSegment],
    newest_snapshots: Sequence[NewestSnapshot],
    partition_notes: Sequence[NotedPartition],
    leaders: Mapping[Place, PartitionLeader],
    instants: CaptureInstants,
    expected: Iterable[Place],
    deleted_copies: Collection[CopyKey],
    *,
    leader_proof: LeaderProof,
    whole_metadata_ms: int | None,
) -> Iterator[CoverageRow]:
    """A row for each copy of a partition, and one with status MISSING for each partition that is known but has no copy.

    `epochs`: of `record_batches`. `expected`: the partitions that should have been captured. `deleted_copies`: copies
    of deleted topics, which are not judged. `whole_metadata_ms`: up to when the metadata log is known to name every
    partition; None if it is not.
    """
    extents_of, checkpoints_of = extents(segments), of_copies(checkpoints)
    for copy in deleted_copies:
        extent, of_copy = extents_of.pop(copy, None), checkpoints_of.pop(copy, Checkpoints())
        if extent is not None:
            yield _of_deleted(copy, extent, of_copy, instants)
    living = [each for each in epochs if each.copy not in deleted_copies]
    partitions: dict[Place, _Partition] = defaultdict(_Partition)
    for (topic, partition, source), extent in extents_of.items():
        partitions[topic, partition].extents[source] = extent
    for (topic, partition, source), of_copy in checkpoints_of.items():
        partitions[topic, partition].checkpoints[source] = of_copy
    for each in living:
        partitions[each.topic, each.partition].epochs.append(each)
    for each, _ in contradicted_batches(living, segments, checkpoints_of):
        partitions[each.topic, each.partition].contradicted.append(each)
    for snapshot in newest_snapshots:
        if snapshot.copy not in deleted_copies:
            partitions[snapshot.topic, snapshot.partition].snapshots[snapshot.source] = snapshot.snapshot_offset
    notes = {each.place: each for each in partition_notes}
    marks_captured_at_ms = instants.of_high_watermarks()
    for place, found in partitions.items():
        noted, leader = notes.get(place, _nothing_noted(place)), leaders.get(place, PartitionLeader())
        yield from _of_copies(place, found, noted, leader, leader_proof, instants, marks_captured_at_ms)
    marks = {place: found.high_watermarks for place, found in partitions.items()}
    listed = {(place, broker_of(source)) for place, of_place in marks.items() for source in of_place}
    topics = topic_proof(listed, partition_notes, instants.default_ms, whole_metadata_ms)
    for place in dict.fromkeys((*expected, *(place for place, of_place in marks.items() if of_place))):
        if place not in partitions or not partitions[place].extents:
            noted, leader = notes.get(place, _nothing_noted(place)), leaders.get(place, PartitionLeader())
            yield _of_missing(place, noted, leader, topics, highest(marks.get(place, {}).values()))


def _nothing_noted(place: Place) -> NotedPartition:
    topic, partition = place
    return NotedPartition(topic=topic, partition=partition)


def _of_deleted(copy: CopyKey, extent: Extent, noted: Checkpoints, instants: CaptureInstants) -> CoverageRow:
    topic, partition, source = copy
    return row_of(
        CoverageRow,
        extent,
        topic=topic,
        partition=partition,
        source=source,
        broker=broker_of(source),
        topic_id=noted.topic_id,
        is_deleted=True,
        role=Role.OTHER,
        ends=End.TORN,
        is_current=False,
        log_start_offset=highest((noted.log_start_offset, extent.read_from_offset)),
        high_watermark=noted.high_watermark,
        captured_at_ms=instants.of_copy(source, topic, partition),
        status="PARTIAL",
        detail=OF_DELETED_TOPIC,
    )


def _of_missing(
    place: Place, noted: NotedPartition, leader: PartitionLeader, topics: TopicProof, high_watermark: int | None
) -> CoverageRow:
    is_gone, proven_ms = topics.is_gone(place, leader)
    return row_of(
        CoverageRow,
        leader,
        noted,
        high_watermark=high_watermark,
        log_start_offset=None,
        checkpointed_at_ms=proven_ms,
        status="MISSING",
        detail=absence(leader, noted, is_gone=is_gone),
        is_gone=is_gone or None,
        is_nothing_open=noted.is_nothing_open or None,
    )


def _of_copies(
    place: Place,
    found: _Partition,
    noted: NotedPartition,
    named: PartitionLeader,
    leader_proof: LeaderProof,
    instants: CaptureInstants,
    marks_captured_at_ms: Mapping[str, int],
) -> list[CoverageRow]:
    """A row for each copy of one partition. `marks_captured_at_ms`: broker -> when its high watermarks were copied."""
    # A leader epoch that only a contradicted batch has proves nothing.
    refuted = {
        (each.copy, each.segment_base_offset, each.epoch)
        for each in found.contradicted
        if each.begins == each.base_offset
    }
    believed = [each for each in found.epochs if (each.copy, each.segment_base_offset, each.epoch) not in refuted]
    epochs = epochs_of_copies(believed, found.checkpoints)
    marks = {
        **_noted_high_watermarks(found, epochs, instants.default_ms, marks_captured_at_ms),
        "answered": (noted.answered_at_ms, noted.answered_high_watermark),
    }
    copies = []
    for source, extent in found.extents.items():
        captured_at_ms = instants.of_copy(source, *place)
        contradicted = [each for each in found.contradicted if each.source == source]
        if contradicted:
            extent = replace(
                extent,
                damaged_offset=highest((extent.damaged_offset, *(each.last_offset + 1 for each in contradicted))),
                unreadable_bytes=extent.unreadable_bytes + sum(each.size or 0 for each in contradicted),
                harm=extent.harm + len(contradicted),
            )
        checkpoints_ms = instants.of_checkpoint(broker_of(source))
        copies.append(
            CopyFacts(
                source,
                extent,
                found.checkpoints.get(source, Checkpoints()),
                epochs.get(source, EpochsOfCopy()),
                noted,
                captured_at_ms,
                highest(mark for ms, mark in marks.values() if not is_above(ms, captured_at_ms)),
                found.snapshots.get(source),
                captured_at_ms is None or checkpoints_ms is None or checkpoints_ms < captured_at_ms,
            )
        )
    beside = tuple(_copies_beside(found, epochs))
    without_logs = [
        CheckpointOnly(each.broker, instants.of_copy(each.source, *place), (each.leader_epoch, each.from_offset or 0))
        for each in beside
        if each.leader_epoch is not None
    ]
    judged = list(zip(copies, roles(copies, without_logs, named, leader_proof), strict=True)) if copies else []
    best = min(judged, key=lambda each: order_to_judge(*each), default=None)
    return [
        _of_copy(place, each, noted, named, instants, beside if each is best else (), is_judged=each is best)
        for each in judged
    ]


def _noted_high_watermarks(
    found: _Partition,
    epochs: Mapping[str, EpochsOfCopy],
    default_ms: int | None,
    captured_at_ms: Mapping[str, int],
) -> dict[str, tuple[int | None, int | None]]:
    """Source -> when its high watermark was copied, and that. It counts only up to the first truncated offset of its
    copy."""
    cuts = {source: lowest(cut.from_offset for cut in each.truncated) for source, each in epochs.items()}
    return {
        source: (captured_at_ms.get(broker_of(source) or "", default_ms), lowest((mark, cuts.get(source))))
        for source, mark in found.high_watermarks.items()
    }


def _copies_beside(found: _Partition, epochs: Mapping[str, EpochsOfCopy]) -> Iterator[CopyBeside]:
    """The copies of which only files beside the log were captured. Those of another topic id are left out."""
    ids = {noted.topic_id for source, noted in found.checkpoints.items() if source in found.extents} - {None}
    for source in dict.fromkeys((*found.checkpoints, *found.snapshots)):
        noted, of_copy = found.checkpoints.get(source, Checkpoints()), epochs.get(source, EpochsOfCopy())
        has_files = source in found.snapshots or of_copy.leader_epoch is not None
        if source not in found.extents and has_files and (not ids or noted.topic_id in (None, *ids)):
            named = broker_of(source)
            yield CopyBeside(source, named, of_copy.leader_epoch, of_copy.reached_offset, of_copy.overtaken_from)


def _of_copy(
    place: Place,
    judged: tuple[CopyFacts, CopyRole],
    noted: NotedPartition,
    named: PartitionLeader,
    instants: CaptureInstants,
    beside: tuple[CopyBeside, ...],
    *,
    is_judged: bool,
) -> CoverageRow:
    copy, role = judged
    is_known = is_current(role.role, copy.end)
    problems = "; ".join(problems_of(copy))
    return row_of(
        CoverageRow,
        role,
        copy,
        copy.extent,
        copy.epochs,
        copy.checkpoints,
        named,
        noted,
        is_judged=is_judged,
        is_deleted=False,
        is_current=is_known,
        truncated=copy.epochs.truncated or None,
        copies_beside=beside or None,
        checkpoint_leader_epoch=highest(
            (copy.epochs.checkpoint_leader_epoch, noted.noted_leader_epoch if role.role == Role.LEADER else None)
        ),
        ends=copy.end,
        high_watermark=copy.checkpoints.high_watermark,
        checkpointed_at_ms=None if copy.checkpoints.high_watermark is None else instants.of_checkpoint(copy.broker),
        newest_stamp_ms=copy.extent.newest_broker_ms,
        known_until_ms=known_until_ms(role.role, copy.end, copy.captured_at_ms, copy.extent.newest_broker_ms),
        is_instant_assumed=copy.captured_at_ms is None or not is_known,
        status="DAMAGED" if copy.has_damage else "PARTIAL" if problems else "COMPLETE",
        detail="; ".join(filter(None, (begin_by_choice(copy), problems))) or None,
        is_nothing_open=None,
    )
