"""What became of each partition of a capture."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from txnlib.wire_capture.cluster import Partition


@dataclass(slots=True)
class Taken:
    """What became of one partition.

    `problem` is why it is missing or not whole; None if all of its scope is there. `is_lasting`: another call alone will not help.
    """

    partition: Partition
    log_start: int | None = None
    high_watermark: int | None = None
    last_stable: int | None = None
    #: The high watermark just before the last stable offset was asked for.
    mark_before: int | None = None
    captured_at_ms: int | None = None
    first_captured_at_ms: int | None = None
    fetched_from: int | None = None
    end_offset: int | None = None
    bytes: int = 0
    #: What the leader said about producers, and its high watermark just before.
    producers: list[dict[str, Any]] | None = None
    asked_mark: int | None = None
    answered_at_ms: int | None = None
    problem: str | None = None
    is_lasting: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def is_open(self) -> bool | None:
        """Whether something is open, by the leader's word; None if it did not say."""
        if self.last_stable is None or self.high_watermark is None:
            return None
        if any(each["current_transaction_start_offset"] is not None for each in self.producers or ()):
            return True
        return self.last_stable < self.high_watermark

    @property
    def may_be_open(self) -> bool:
        """Whether something is open, or may be without delaying any record: the leader raises what is stable to the log start."""
        is_emptied = self.last_stable is not None and self.last_stable == self.log_start == self.high_watermark
        return bool(self.is_open) or (is_emptied and bool(self.log_start))


def described_producers(taken: Taken) -> dict[str, Any]:
    """What its leader said about producers, as a line of describe-producers.jsonl."""
    return {
        "topic": taken.partition.topic,
        "partition": taken.partition.partition,
        "asked_at_ms": taken.answered_at_ms,
        "last_stable_offset": taken.last_stable,
        "high_watermark": taken.asked_mark,
        "producers": taken.producers,
    }


def noted(taken: Taken) -> dict[str, Any]:
    """What capture.json says of a partition."""
    known = {
        "leader": taken.partition.leader,
        "leader_epoch": taken.partition.leader_epoch,
        # Not `replicas`: with checkpoints of leaders only, they would prove topics deleted that this user cannot see.
        "assigned_replicas": list(taken.partition.replicas),
        "in_sync": list(taken.partition.in_sync),
        "log_start_offset": taken.log_start,
        "last_stable_offset": taken.last_stable,
        "high_watermark": taken.high_watermark,
        "high_watermark_before": taken.mark_before,
        "answered_at_ms": taken.answered_at_ms,
        "fetched_from": taken.fetched_from,
        "problem": taken.problem,
        "notes": taken.notes or None,
    }
    return {name: value for name, value in known.items() if value is not None}
