"""Copies of partitions as rows of the core."""

from collections.abc import Mapping
from typing import Any

from txnlib.core.cluster_metadata import PartitionAssignment
from txnlib.core.copies import CoverageRow
from txnlib.core.coverage.capture_instants import CaptureInstants
from txnlib.core.coverage.captured_files import CapturedFile, CheckpointEntry, UnreadableBytes
from txnlib.core.coverage.coverage import coverage
from txnlib.core.coverage.judged_copy import LeaderProof
from txnlib.core.coverage.leaders import NotedPartition, leaders
from txnlib.core.coverage.truncated_tails import EpochOfSegment

NOW = 1_700_000_000_000


def captured(
    topic: str = "t", source: str = "raw:1", end: int | None = 20, base: int | None = 0, **changes: Any
) -> CapturedFile:
    """A segment of a copy, read to its end."""
    row = {
        "topic": topic,
        "partition": 0,
        "source": source,
        "path": f"{source}/{topic}/{base}",
        "kind": source.partition(":")[0],
    }
    row |= {
        "segment_base_offset": base,
        "first_offset": base,
        "end_offset": end,
        "last_gap_offset": None,
        "bytes": 1,
        "batches": 1,
    }
    row |= {"tail": "CLEAN", "is_decoded": True, "newest_broker_ms": None, "unreadable": ()}
    return CapturedFile(**row | changes)


def unreadable(next_offset: int | None = None, *, reason: str = "CORRUPT_BATCH", length: int = 9) -> UnreadableBytes:
    return UnreadableBytes(61, length, reason, None, next_offset)


def checkpoint(
    name: str, value: Any, topic: str = "t", source: str = "raw:1", start: int | None = None
) -> CheckpointEntry:
    """An entry of a checkpoint; of `topic_id`, the value is the id."""
    is_id = name == "topic_id"
    return CheckpointEntry(topic, 0, source, name, None if is_id else value, start, value if is_id else None)


def epoch(
    number: int | None, begins: int, ends: int, topic: str = "t", source: str = "raw:1", **changes: Any
) -> EpochOfSegment:
    """The batches of a leader epoch in the first segment of a copy."""
    row = {"topic": topic, "partition": 0, "source": source, "segment_base_offset": 0, "epoch": number, "batches": 2}
    row |= {
        "begins": begins,
        "ends": ends,
        "base_offset": ends,
        "last_offset": ends,
        "position": 100 * ends,
        "size": 100,
    }
    return EpochOfSegment(**row | {"offset_gap": 0} | changes)


def noted(
    topic: str = "t", leader: int | None = None, replicas: list[int] | None = None, **answers: Any
) -> NotedPartition:
    """What capture.json notes of a partition."""
    name = None if leader is None else str(leader)
    return NotedPartition(topic=topic, partition=0, leader=name, replicas=tuple(map(str, replicas or ())), **answers)


def assigned(
    topic: str, leader: int | None, since_ms: int | None = None, topic_id: str = "id", **changes: Any
) -> PartitionAssignment:
    """The state of a partition in the metadata log; a leader of -1 is none."""
    row = {
        "topic": topic,
        "partition": 0,
        "topic_id": topic_id,
        "leader": None if leader == -1 else leader,
        "leader_epoch": 0,
    }
    row |= {"isr": (2,), "replicas": (2, 3), "eligible_leader_replicas": (3,), "since_ms": since_ms, "is_current": True}
    return PartitionAssignment(**row | changes)


def covered(*segments: CapturedFile, captured_at_ms: int | None = NOW, **given: Any) -> list[CoverageRow]:
    """`coverage` of some segments. Without `leaders`, those that the notes name."""
    notes = given.get("partition_notes", ())
    nothing: Mapping[str, Any] = {
        "checkpoints": (), "epochs": (), "newest_snapshots": (), "partition_notes": (),
        "leaders": leaders(notes, (), None, None),
        "instants": CaptureInstants(captured_at_ms), "expected": (), "deleted_copies": (),
        "leader_proof": LeaderProof(), "whole_metadata_ms": None,
    }  # fmt: skip
    return list(coverage(segments, **{**nothing, **given}))
