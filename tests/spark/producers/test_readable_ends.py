"""Groups at a last stable offset, against a read_committed consumer in plain Python."""

from collections.abc import Mapping
from random import Random
from types import MappingProxyType
from typing import NamedTuple

import pytest

from tests.support.audits import made_of
from tests.support.frames import batch_row, empty, frame
from tests.support.log_notation import A, C, N, T
from txnlib.core.kafka.record_batch import RecordBatch
from txnlib.settings import Settings
from txnlib.spark.producers.producer_spans import producer_spans
from txnlib.spark.schemas import TABLES


class Scene(NamedTuple):
    """A partition's log up to its high watermark, and what of its copy was read."""

    log: list[RecordBatch]
    high_watermark: int
    coverage: Mapping[str, int] = MappingProxyType({})

    @property
    def last_stable_offset(self) -> int:
        opened: dict[int, int] = {}
        firsts = []
        for batch in self.log:
            if batch.marker is not None:
                first = opened.pop(batch.producer_id, None)
                if first is not None and batch.base_offset >= self.high_watermark:
                    firsts.append(first)
            elif batch.is_transactional:
                opened.setdefault(batch.producer_id, batch.base_offset)
        return min([*opened.values(), *firsts, self.high_watermark])

    def delivers(self) -> set[int]:
        """Offsets that a read_committed consumer is given."""
        given: set[int] = set()
        pending: dict[int, set[int]] = {}
        for batch in self.log:
            offsets = set(range(batch.base_offset, batch.last_offset + 1))
            if batch.marker is not None:
                ended = pending.pop(batch.producer_id, set())
                given |= ended if batch.marker.control_type else set()  # COMMIT is 1
            elif batch.is_transactional:
                pending.setdefault(batch.producer_id, set()).update(offsets)
            else:
                given |= offsets
        return {offset for offset in given if offset < self.last_stable_offset}

    def waiting(self) -> list[int]:
        """Committed offsets at which a group has nothing more to read until the partition moves on."""
        stable = self.last_stable_offset
        if stable == self.high_watermark:
            return []
        end = max([0, *self.delivers()])
        return [offset for offset in range(stable + 1) if offset > end or (offset == 0 and not self.delivers())]


def blocked(spark, scenes: list[Scene]) -> list[list[int]]:
    """Committed offsets at which groups are found waiting: a group commits at every offset of every partition."""
    rows = [batch_row(batch, "orders", number) for number, scene in enumerate(scenes) for batch in scene.log]
    batches = frame(spark, TABLES["record_batches"], *rows)
    copies = [
        {"topic": "orders", "partition": number, "source": "raw:1", "is_judged": True}
        | {"status": "COMPLETE", "log_start_offset": 0, "first_offset": 0, "read_from_offset": 0}
        | dict(scene.coverage)
        for number, scene in enumerate(scenes)
    ]
    known = {"topic": "__consumer_offsets", "partition": 0, "source": "raw:1", "is_judged": True}
    copies.append(known | {"status": "COMPLETE"})
    coverage = frame(spark, TABLES["coverage"], *copies)
    ends = [
        {"topic": "orders", "partition": number, "high_watermark": scene.high_watermark}
        | {"last_stable_offset": scene.last_stable_offset, "blocking_producer_id": 7, "blocking_transactional_id": "t"}
        for number, scene in enumerate(scenes)
    ]
    commits = [
        {"topic": "__consumer_offsets", "partition": 0, "source": "raw:1", "offset": 1000 * number + offset}
        | {"group_id": str(offset), "committed_topic": "orders", "committed_partition": number, "is_tombstone": False}
        | {"committed_offset": offset, "commit_timestamp_ms": 60_000}
        for number, scene in enumerate(scenes)
        for offset in range(scene.high_watermark + 3)
    ]
    rows = made_of(
        "blocked_groups",
        Settings(cluster="test", as_of_ms=120_000, as_of_basis="given"),
        committed_offsets=frame(spark, TABLES["committed_offsets"], *commits),
        producer_spans=producer_spans(batches, empty(spark, TABLES["producer_snapshots"]), coverage),
        record_batches=batches,
        coverage=coverage,
        partitions=frame(spark, TABLES["partitions"], *ends),
    )
    waiting: list[list[int]] = [[] for _ in scenes]
    for row in rows:
        waiting[row["partition"]].append(row["committed_offset"])
    return [sorted(offsets) for offsets in waiting]


DATA, COMMITTED, ABORTED = [N(at=0, to=3)], [T(1, 0, 0, at=4), C(1, 0, at=5)], [T(2, 0, 0, at=6), A(2, 0, at=7)]
OPEN = T(7, 0, 0, 4, at=8)
#: What lies below the open transaction at 8 -> the scene, and where groups wait.
TOLD = {
    "a marker: behind it, or before it": (Scene([*DATA, *COMMITTED, T(7, 0, 0, 4, at=6)], 11), [5, 6]),
    "aborted data: anywhere in it": (Scene([*DATA, *COMMITTED, *ABORTED, OPEN], 13), [5, 6, 7, 8]),
    "both of one producer": (Scene([*DATA, *COMMITTED, T(1, 0, 1, at=6), A(1, 0, at=7), OPEN], 13), [5, 6, 7, 8]),
    "a control batch of no producer": (Scene([*DATA, N(at=4, to=7, is_control=True), OPEN], 13), [4, 5, 6, 7, 8]),
    "data: behind its end only": (Scene([N(at=0, to=7), OPEN], 13), [8]),
    "nothing at all": (Scene([T(7, 0, 0, 4, at=0)], 5), [0]),
    "nothing is open": (Scene([*DATA, *COMMITTED], 6), []),
    "a header that compaction emptied": (Scene([*DATA, N(at=4, to=7, records_count=0), OPEN], 13), [4, 5, 6, 7, 8]),
    "a committed transaction that reaches beyond": (
        Scene([*DATA, T(1, 0, 0, at=4), *ABORTED, OPEN, T(1, 0, 1, at=13), C(1, 0, at=14)], 15),
        [5, 6, 7, 8],
    ),
    "its marker is above the high watermark": (Scene([*DATA, *COMMITTED], 5), [4]),
    "damage below": (Scene([*DATA, *COMMITTED, *ABORTED, OPEN], 13, {"damaged_offset": 7}), [7, 8]),
    "damage above": (Scene([*DATA, *COMMITTED, *ABORTED, OPEN], 13, {"damaged_offset": 9}), [8]),
    "a hole": (
        Scene([*DATA, *COMMITTED, T(2, 0, 0, at=7), A(2, 0, at=8), T(7, 0, 0, at=9)], 10, {"gap_offset": 7}),
        [7, 8, 9],
    ),
    "read from a snapshot on": (Scene([*ABORTED, OPEN], 13, {"read_from_offset": 6, "first_offset": 6}), [6, 7, 8]),
    "the log begins there": (Scene([*ABORTED, OPEN], 13, {"log_start_offset": 6, "first_offset": 6}), [6, 7, 8]),
}


def random_scene(random: Random) -> Scene:
    log: list[RecordBatch] = []
    at = 0
    for _ in range(random.randrange(1, 14)):
        pid, to = random.randrange(4), at + random.randrange(3)
        log.append(
            random.choice(
                [
                    T(pid, 0, 0, to - at, at=at),
                    T(pid, 0, 0, to - at, at=at),
                    N(at=at, to=to),
                    C(pid, 0, at=at),
                    A(pid, 0, at=at),
                ]
            )
        )
        at = log[-1].last_offset + 1
    return Scene(log, random.choice([at, at, at, log[-1].base_offset]))


RANDOM = [random_scene(Random(seed)) for seed in range(60)]


@pytest.fixture(scope="module")
def waiting(spark):
    return blocked(spark, [scene for scene, _ in TOLD.values()] + RANDOM)


def test_a_group_waits_where_nothing_is_left_to_read_below_the_last_stable_offset(waiting):
    assert dict(zip(TOLD, waiting, strict=False)) == {name: offsets for name, (_, offsets) in TOLD.items()}


def test_a_consumer_of_random_logs_waits_at_the_same_offsets(waiting):
    assert sum(map(bool, waiting[len(TOLD) :])) > 20, "the logs block somebody"
    assert waiting[len(TOLD) :] == [scene.waiting() for scene in RANDOM]
