"""What the checkpoint files of each log directory contain. Kafka: `CheckpointFile`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from txnlib.core.coverage.sources import CopyKey, highest


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

    def add(self, entry: CheckpointEntry) -> None:
        if entry.name in ("high_watermark", "log_start_offset", "recovery_point"):
            setattr(self, entry.name, highest((getattr(self, entry.name), entry.value)))
        elif entry.name == "topic_id" and entry.topic_id is not None:
            self.topic_id = max(self.topic_id or "", entry.topic_id)
        elif entry.name == "leader_epoch" and entry.value is not None:
            self.leader_epochs.append((entry.value, entry.start_offset))


def of_copies(checkpoints: Iterable[CheckpointEntry]) -> dict[CopyKey, Checkpoints]:
    """The checkpoints about each copy. A broker also notes partitions whose segments were not captured."""
    found: dict[CopyKey, Checkpoints] = defaultdict(Checkpoints)
    for entry in checkpoints:
        if entry.topic is not None and entry.partition is not None:
            found[entry.topic, entry.partition, entry.source].add(entry)
    return dict(found)
