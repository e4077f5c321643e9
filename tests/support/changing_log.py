"""Partitions on two brokers, as they change from night to night.

The log grows, rolls, is cut by an election, loses its front, is compacted, is created again. What a night shows may
lack a broker or a segment, and be damaged.
"""

from __future__ import annotations

import random
from pathlib import Path

from tests.support.crc32c import crc32c
from tests.support.log_bytes import (
    encode_batch,
    encode_offset_commit_key,
    encode_offset_commit_value,
    encode_transaction_log_batch,
    to_bytes,
)
from tests.support.log_notation import TS, C, N, T, rec
from txnlib.core.kafka.record_batch import DELETE_HORIZON_FLAG, Record
from txnlib.core.kafka.transaction_log import OffsetCommit, OffsetCommitKey

CHANGES = ("grow", "grow", "grow", "other", "same", "front", "compacted", "again", "nothing")


class ChangingLog:
    """The copies of `orders-0`: broker -> segments by base offset, each a list of batches as bytes."""

    folder = "orders-0"

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        #: Number of bytes of each copy's segment that some night has shown.
        self.shown: dict[tuple[int, int], int] = {}
        self.create()

    def create(self) -> None:
        self.end, self.epoch = 0, 0
        #: Below it, the cleaner has changed what is committed: no election cuts that.
        self.uncleanable = 0
        self.copies: dict[int, dict[int, list[bytes]]] = {1: {0: []}, 2: {0: []}}
        self.grow()

    def batch(self) -> bytes:
        at, epoch, kind = self.end, self.epoch, self.chance.random()
        if kind < 0.2:
            self.end += 1
            return to_bytes(C(7, 0, 3, at=at, ts=TS + at, partition_leader_epoch=epoch))
        if kind < 0.4:
            self.end += 1
            return to_bytes(N(at=at, ts=TS + at, partition_leader_epoch=epoch))
        self.end += 2
        return to_bytes(T(7, 0, at, at + 1, at=at, ts=TS + at, partition_leader_epoch=epoch))

    def cleaned(self, batch: bytes) -> bytes:
        """A batch that the cleaner keeps."""
        return batch

    def grow(self) -> None:
        self.append([self.batch() for _ in range(self.chance.randint(1, 4))])

    def append(self, batches: list[bytes]) -> None:
        for copy in self.copies.values():
            if copy[max(copy)] and self.chance.random() < 0.5:
                copy[offset_of(batches[0])] = []
            copy[max(copy)] += batches

    def cut(self) -> list[bytes]:
        """An election cuts the tail of both copies. Returns what was cut."""
        lost: dict[bytes, None] = {}
        bound = max(self.end - self.chance.randint(1, 6), self.uncleanable)
        for copy in self.copies.values():
            for base in sorted(copy, reverse=True):
                cut = [batch for batch in copy[base] if offset_of(batch) >= bound]
                copy[base] = [batch for batch in copy[base] if batch not in cut]
                lost |= dict.fromkeys(reversed(cut))
                if base > bound and not copy[base] and base != min(copy):
                    del copy[base]
        batches = sorted(lost, key=offset_of)
        self.epoch += 1
        self.end = offset_of(batches[0]) if batches else self.end
        return batches

    def change(self) -> str:
        """Something that brokers do in a day."""
        match change := self.chance.choice(CHANGES):
            case "grow":
                self.grow()
            case "other":
                self.cut()
                self.grow()
            case "same":  # the producers' retries: the same bytes, but for the epoch of the leader, which no CRC covers
                if batches := self.cut():
                    self.end = offset_of(batches[-1]) + 2
                    self.append([batch[:12] + self.epoch.to_bytes(4, "big") + batch[16:] for batch in batches])
            case "front":
                for copy in self.copies.values():
                    if len(copy) > 1:
                        del copy[min(copy)]
            case "compacted":  # each broker by itself, and never the newest segment
                for copy in self.copies.values():
                    for base in sorted(copy)[:-1]:
                        kept = [self.cleaned(batch) for batch in copy[base][:-1] if self.chance.random() < 0.6]
                        copy[base] = [*kept, *copy[base][-1:]]
            case "again":
                self.create()
        return change

    def capture(self, folder: Path) -> None:
        """Writes what a night shows: perhaps without a broker or a segment, whose index may stay, perhaps damaged,
        perhaps with a preallocated or a torn end."""
        hidden_broker, is_front_away = self.chance.choice([None, None, None, None, 1, 2]), self.chance.random() < 0.2
        for broker, copy in self.copies.items():
            for base, batches in copy.items():
                content = b"".join(batches)
                is_away = self.chance.random() < 0.05 or (is_front_away and base == min(copy))
                path = folder / str(broker) / self.folder / f"{base:020}.log"
                path.parent.mkdir(parents=True, exist_ok=True)
                if self.chance.random() < 0.5 or (base == max(copy) and self.uncleanable):
                    path.with_suffix(".index").touch()
                if broker == hidden_broker or (len(copy) > 1 and is_away):
                    continue
                if base == max(copy) and self.chance.random() < 0.3:
                    content += bytes(self.chance.randint(1, 500))
                elif base == max(copy) and self.chance.random() < 0.3:
                    content += batches[-1][: self.chance.randint(1, 60)] if batches else b""
                if batches and self.chance.random() < 0.1:
                    content = self._damaged(broker, base, content)
                self.shown[broker, base] = max(self.shown.get((broker, base), 0), len(content))
                path.write_bytes(content)

    def _damaged(self, broker: int, base: int, content: bytes) -> bytes:
        """Content with a flipped bit where no night has shown it yet.

        A bit that flips where an audit has read it goes unnoticed: docs/operations.md says so.
        """
        begin = self.shown.get((broker, base), 0)
        if begin >= len(content):
            return content
        at = self.chance.randrange(begin, len(content))
        return content[:at] + bytes([content[at] ^ 1 << self.chance.randrange(8)]) + content[at + 1 :]


class ChangingCoordinator(ChangingLog):
    """The same of `__transaction_state-0`, whose records are decoded. The cleaner changes batches where they are."""

    folder = "__transaction_state-0"

    def batch(self) -> bytes:
        at, name = self.end, self.chance.choice(["billing", "shipping"])
        state, self.end = self.chance.choice(["O", "PC", "CC", "E"]), self.end + 2
        records = [rec(state, 70, 0, {"payments-0"}, id=name, update=TS + at), self.chance.choice([name, "gone"])]
        return encode_transaction_log_batch(records, at=at, ts=TS + at, leader_epoch=self.epoch)

    def cleaned(self, batch: bytes) -> bytes:
        """The batch, perhaps with a delete horizon."""
        self.uncleanable = max(max(copy) for copy in self.copies.values())
        if self.chance.random() < 0.5:
            return batch
        rest = (batch[22] | DELETE_HORIZON_FLAG).to_bytes(1, "big") + batch[23:]
        return batch[:17] + crc32c(batch[21:22] + rest).to_bytes(4, "big") + batch[21:22] + rest


class ChangingGroups(ChangingCoordinator):
    """The same of `__consumer_offsets-0`. No version of the reader knows some of the commits."""

    folder = "__consumer_offsets-0"

    def batch(self) -> bytes:
        at, group = self.end, self.chance.choice(["audit", "billing"])
        self.end += 1
        value = encode_offset_commit_value(
            OffsetCommit(version=3, offset=at, metadata=b"", commit_timestamp_ms=TS + at)
        )
        key = encode_offset_commit_key(OffsetCommitKey(group, "orders", 0))
        content = self.chance.choice([value, value, value, None, b"\x7f\xff"])
        return encode_batch([Record(at, TS + at, key, content)], leader_epoch=self.epoch)


def offset_of(batch: bytes) -> int:
    return int.from_bytes(batch[:8], "big")
