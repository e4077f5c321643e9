"""Random segments in which producers take turns, with odd batches."""

from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from tests.support.log_bytes import encode_batch, encode_marker
from tests.support.log_notation import TS
from tests.support.segments import read_batches
from txnlib.core.kafka.constants import MAX_SEQUENCE
from txnlib.core.kafka.record_batch import ControlType, Record, TimestampType
from txnlib.readers import batch_rows
from txnlib.readers.header_columns import ReaderState
from txnlib.readers.segment import Segment

#: Producer id -> what it writes: n without id, d idempotent, t transactional, m both.
PRODUCERS = {-1: "n", 7: "d", 8: "t", 9: "m", 7 + (1 << 16): "t", 11: "t"}


@dataclass
class RandomLog:
    """A log that goes on from segment to segment. `oddity`: the probability of each kind of odd batch."""

    random: Random
    oddity: float = 0.02
    offset: int = 0
    leader_epoch: int = 0
    now: int = TS
    epochs: dict[int, int] = field(default_factory=dict)
    sequences: dict[int, int] = field(default_factory=dict)

    def segment(self, count: int) -> bytes:
        """The bytes of the next batches."""
        return b"".join(self._batch(self.random.choice(list(PRODUCERS))) for _ in range(count))

    def _is_odd(self) -> bool:
        return self.random.random() < self.oddity

    def _batch(self, pid: int) -> bytes:
        random, kind = self.random, PRODUCERS[pid]
        self.now += random.choice((0, 1, 5, 1_000))
        self.leader_epoch += self._is_odd()
        self.offset += random.randrange(1, 9) if self._is_odd() else 0
        at, epoch = self.offset, self.epochs.get(pid, 0)
        where: dict[str, Any] = {"leader_epoch": self.leader_epoch}
        if kind in "tm" and random.random() < 0.12:
            self.offset += 1
            return encode_marker(
                pid, epoch, random.choice((ControlType.COMMIT, ControlType.ABORT)), 0, at=at, ts=self.now, **where
            )
        delta = random.choice((0, 0, 1, 4, 9, 9, 9_000))
        if pid >= 0:
            if self._is_odd():
                epoch = self.epochs[pid] = epoch + random.choice((1, 1, -1)) if epoch else 1
                self.sequences[pid] = 0
            first = self.sequences.get(pid, random.choice((0, MAX_SEQUENCE - 40)))
            first += random.choice((-1, 1, 5)) if self._is_odd() and first > 0 else 0
            self.sequences[pid] = (first + delta + 1) & MAX_SEQUENCE
            where |= {"producer_id": pid, "producer_epoch": epoch, "base_sequence": first & MAX_SEQUENCE}
        is_transactional = kind == "t" or (kind == "m" and random.random() < 0.5)
        is_stamped = random.random() < 0.5 if self._is_odd() else pid in (8, -1)
        time = (
            self.now if not self._is_odd() else random.choice((-1, 0, self.now - 50_000, self.now + 2**32, 2**63 - 1))
        )
        if self._is_odd():
            where["delete_horizon"] = self.now
        if self._is_odd():
            where["codec"] = 4
        records = delta + 1 if not self._is_odd() else random.randrange(delta + 1)
        size = 4_000 if random.random() < 0.95 else 5_000
        self.offset += delta + 1
        return encode_batch(
            [Record(at, time, None, None)] * records, base_offset=at, last_offset=at + delta, base_timestamp=time,
            max_timestamp=time, is_transactional=is_transactional,
            timestamp_type=TimestampType.LOG_APPEND_TIME if is_stamped else TimestampType.CREATE_TIME,
            body=bytes(size // 50), **where,
        )  # fmt: skip


def read_rows(
    content: bytes, *, has_runs: bool, base_offset: int = 0, source: str = "raw:1", partition: int = 0, **start: Any
) -> list[dict[str, Any]]:
    """The rows of `record_batches` of a segment, or of what follows `start`; without runs, a row for each batch."""
    segment = Segment(
        "x.log", source, "orders", partition, base_offset, content, len(content), lambda position: None, **start
    )
    with pytest.MonkeyPatch.context() as patch:
        if not has_runs:
            patch.setattr(batch_rows, "find_runs", lambda block, gaps: None)
        return [row for rows in read_batches("record_batches", segment) for row in rows.to_pylist()]


def read_in_parts(random: Random, content: bytes, **where: Any) -> list[dict[str, Any]]:
    """The rows with runs, if the segment is read in two nights."""
    batches = read_rows(content, has_runs=False, **where)
    before, after = random.choice(list(pairwise(batches)))
    state = ReaderState(after["position"], before["last_offset"], before["partition_leader_epoch"])
    first = read_rows(content[: state.position], has_runs=True, **where)
    return first + read_rows(content, has_runs=True, start=state, **where)
