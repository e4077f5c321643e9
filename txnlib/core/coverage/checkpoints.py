"""What the checkpoint files of each log directory contain. Kafka: `CheckpointFile`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from txnlib.core.coverage.known import highest
from txnlib.core.coverage.sources import CopyKey


@dataclass(frozen=True, slots=True)
class CheckpointEntry:
    """A row of `checkpoints`."""

    topic: str | None
    partition: int | None
    source: str
    name: str
    value: int | None
    start_offset: int | None
    topic_id: str | None


@dataclass(slots=True)
class Checkpoints:
    """The checkpoints about one copy. If files differ, the highest value counts."""

    high_watermark: int | None = None
    log_start_offset: int | None = None
    recovery_point: int | None = None
    topic_id: str | None = None
    #: Leader epochs, each with its first offset; None if the file does not show it.
    leader_epochs: list[tuple[int, int | None]] = field(default_factory=list)

    @property
    def highest_epoch(self) -> int | None:
        return highest(epoch for epoch, _ in self.leader_epochs)


def of_copies(checkpoints: Iterable[CheckpointEntry]) -> dict[CopyKey, Checkpoints]:
    """The checkpoints about each copy. A broker also notes partitions whose segments were not captured."""
    found: dict[CopyKey, Checkpoints] = {}
    for copy, entry in _of_partitions(checkpoints):
        noted = found.setdefault(copy, Checkpoints())
        match entry.name:
            case "high_watermark":
                noted.high_watermark = highest((noted.high_watermark, entry.value))
            case "log_start_offset":
                noted.log_start_offset = highest((noted.log_start_offset, entry.value))
            case "recovery_point":
                noted.recovery_point = highest((noted.recovery_point, entry.value))
            case "topic_id":
                noted.topic_id = max(filter(None, (noted.topic_id, entry.topic_id)), default=None)
            case "leader_epoch" if entry.value is not None:
                noted.leader_epochs.append((entry.value, entry.start_offset))
    return found


def _of_partitions(checkpoints: Iterable[CheckpointEntry]) -> Iterator[tuple[CopyKey, CheckpointEntry]]:
    for entry in checkpoints:
        if entry.topic is not None and entry.partition is not None:
            yield (entry.topic, entry.partition, entry.source), entry
