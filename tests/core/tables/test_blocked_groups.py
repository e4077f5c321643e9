"""Groups that have read everything below a last stable offset. `tests/jobs/test_waiting_groups.py` has whole audits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from tests.support.frames import frame
from txnlib.core.copies import CoverageRow
from txnlib.core.rows import OnPartition
from txnlib.core.tables.blocked_groups import (
    GROUP_POSITIONS,
    BlockedGroup,
    BlockedPartition,
    GroupPosition,
    ReadEnd,
    StableEnd,
    blocked_groups,
)
from txnlib.spark.frames import local_rows
from txnlib.spark.joins import select
from txnlib.spark.schemas import TABLES

PLACE = ("orders", 0)
BLOCKED = BlockedPartition(
    *PLACE, last_stable_offset=8, high_watermark=13, blocking_producer_id=7, blocking_transactional_id="t"
)
COPY = CoverageRow(
    *PLACE, source="raw:1", is_judged=True, log_start_offset=0, read_from_offset=0, gap_offset=None, damaged_offset=None
)


def waiting(
    partition: BlockedPartition, *copies: CoverageRow, read_end: int | None = 5, asked: list[Any] | None = None
) -> list[BlockedGroup]:
    """The groups that wait, of which one stands at every offset."""

    def positions(places: Sequence[OnPartition]) -> Sequence[GroupPosition]:
        asked.extend(places) if asked is not None else None
        return [GroupPosition(f"group-{at}", *PLACE, at, 60_000) for at in range(15)] if places else []

    def ends(ranges: Sequence[StableEnd]) -> Sequence[ReadEnd]:
        asked.extend(ranges) if asked is not None else None
        return [ReadEnd(*PLACE, read_end)] if ranges and read_end is not None else []

    return list(blocked_groups([partition], copies, positions, ends, as_of_ms=120_000))


def test_a_group_waits_from_the_readable_end_to_the_last_stable_offset() -> None:
    asked: list[Any] = []
    rows = waiting(BLOCKED, COPY, asked=asked)
    assert [row.committed_offset for row in rows] == [5, 6, 7, 8]
    assert asked == [OnPartition(*PLACE), StableEnd(*PLACE, "raw:1", 8)]
    assert rows[0] == BlockedGroup(120_000, "group-5", *PLACE, 5, 8, 13, 8, 60_000, 7, "t")


@pytest.mark.parametrize(
    ("change", "first"),
    [
        ({"damaged_offset": 7}, 7),
        ({"damaged_offset": 9}, 8),
        ({"gap_offset": 7}, 7),
        ({"read_from_offset": 6}, 6),
        ({"log_start_offset": 6}, 6),
        ({"log_start_offset": 3}, 5),
    ],
)
def test_below_what_was_not_read_a_group_may_have_records_to_read(change: dict[str, int], first: int) -> None:
    rows = waiting(BLOCKED, replace(COPY, **change))  # type: ignore[arg-type]
    assert [row.committed_offset for row in rows] == list(range(first, 9))


def test_nothing_to_read_lets_every_group_wait() -> None:
    assert len(waiting(BLOCKED, COPY, read_end=None)) == 9


def test_where_it_is_not_known_what_can_be_read_only_a_group_at_the_last_stable_offset_waits() -> None:
    assert [row.committed_offset for row in waiting(BLOCKED, replace(COPY, is_judged=False))] == [8]
    empty = replace(COPY, log_start_offset=None, read_from_offset=None)
    assert [row.committed_offset for row in waiting(BLOCKED, empty, read_end=None)] == [8]


def test_where_nothing_is_blocked_nothing_is_asked() -> None:
    asked: list[Any] = []
    assert waiting(replace(BLOCKED, high_watermark=8), COPY, asked=asked) == []
    assert asked == []


# Where groups stand.

TOPIC = "__consumer_offsets"
#: What a log of one partition holds, offset by offset: (what, producer or None, group, committed offset or marker
#: type).
Log = list[tuple[str, int | None, str | None, object]]


def commit(group: str, offset: int | None, producer: int | None = None) -> tuple[str, int | None, str | None, object]:
    """A commit of a group, or, without an offset, a tombstone; with a producer, inside its transaction."""
    return "commit", producer, group, offset


def marker(producer: int, how: str) -> tuple[str, int | None, str | None, object]:
    return "marker", producer, None, how


def replayed(log: Log) -> dict[str, int]:
    """Kafka: `OffsetMetadataManager.replay`, `replayEndTransactionMarker`: the offset a group is answered."""
    stands: dict[str, tuple[int, int]] = {}
    pending: dict[int, dict[str, tuple[int, int]]] = {}
    for offset, (what, producer, group, said) in enumerate(log):
        if what == "marker":
            for name, found in pending.pop(producer, {}).items():
                if said == "COMMIT" and (name not in stands or found[0] > stands[name][0]):
                    stands[name] = found
        elif said is None:
            stands.pop(group, None)
            for commits in pending.values():
                commits.pop(group, None)
        elif producer is None:
            stands[group] = (offset, said)
        else:
            pending.setdefault(producer, {})[group] = (offset, said)
    return {group: offset for group, (_, offset) in stands.items()}


def found(spark, logs: list[Log], judged: str = "raw:1") -> list[dict[str, int]]:
    """Where each log's groups stand by Spark; every log is a partition of `__consumer_offsets`."""
    where = {"topic": TOPIC, "source": "raw:1", "committed_topic": "orders", "committed_partition": 0}
    commits = [
        where
        | {"partition": number, "offset": at, "producer_id": producer, "group_id": f"{number}/{group}"}
        | {"is_tombstone": offset is None, "committed_offset": offset}
        for number, log in enumerate(logs)
        for at, (what, producer, group, offset) in enumerate(log)
        if what == "commit"
    ]
    commits += [commit | {"committed_partition": 1, "committed_offset": 1} for commit in commits]  # not asked for
    spans = [
        {"topic": TOPIC, "partition": number, "producer_id": producer, "marker_offset": at, "marker_type": how}
        for number, log in enumerate(logs)
        for at, (what, producer, _, how) in enumerate(log)
        if what == "marker"
    ]
    coverage = [
        {"topic": TOPIC, "partition": number, "source": judged, "is_judged": True} for number in range(len(logs))
    ]
    answers = select(
        GROUP_POSITIONS,
        asked=local_rows(spark, [("orders", 0)], "topic string, partition long"),
        committed_offsets=frame(spark, TABLES["committed_offsets"], *commits),
        producer_spans=frame(spark, TABLES["producer_spans"], *spans),
        coverage=frame(spark, TABLES["coverage"], *coverage),
    ).collect()
    stands: list[dict[str, int]] = [{} for _ in logs]
    for row in answers:
        number, _, group = row["group_id"].partition("/")
        assert group not in stands[int(number)], "one row a group and partition"
        stands[int(number)][group] = row["committed_offset"]
    return stands


#: What happened -> the log, and where the groups stand.
TOLD = {
    "the last of several commits counts": ([commit("g", 9), commit("g", 5)], {"g": 5}),
    "a commit in a transaction counts when that commits": ([commit("g", 5, 1), marker(1, "COMMIT")], {"g": 5}),
    "a pending one does not count": ([commit("g", 5), commit("g", 9, 1)], {"g": 5}),
    "an aborted one never does": ([commit("g", 5), commit("g", 9, 1), marker(1, "ABORT")], {"g": 5}),
    "another producer's marker decides nothing": ([commit("g", 9, 1), marker(2, "COMMIT")], {}),
    "only the next marker decides": ([commit("g", 9, 1), marker(1, "ABORT"), marker(1, "COMMIT")], {}),
    "a commit counts as of its own offset": ([commit("g", 9, 1), commit("g", 5), marker(1, "COMMIT")], {"g": 5}),
    "a tombstone takes away what was": ([commit("g", 5), commit("g", None)], {}),
    "a tombstone takes away what is pending": ([commit("g", 9, 1), commit("g", None), marker(1, "COMMIT")], {}),
    "a commit after a tombstone counts": ([commit("g", None), commit("g", 5)], {"g": 5}),
    "groups do not mix": ([commit("g", 5), commit("h", 6), commit("h", None)], {"g": 5}),
    "a marker whose type was not printed commits nothing": ([commit("g", 9, 1), marker(1, None)], {}),
    "and ends the transaction": ([commit("g", 9, 1), marker(1, None), marker(1, "COMMIT")], {}),
}


def random_log(random: Random) -> Log:
    log: Log = []
    for _ in range(random.randrange(40)):
        group, producer = random.choice("gh"), random.randrange(3)
        log.append(
            random.choice(
                [
                    commit(group, random.randrange(99)),
                    commit(group, random.randrange(99), producer),
                    commit(group, random.randrange(99), producer),
                    commit(group, None, random.choice([None, producer])),
                    marker(producer, random.choice(["COMMIT", "ABORT"])),
                ]
            )
        )
    return log


RANDOM = [random_log(Random(seed)) for seed in range(80)]


@pytest.fixture(scope="module")
def stands(spark):
    return found(spark, [log for log, _ in TOLD.values()] + RANDOM)


def test_a_group_stands_at_its_last_commit_that_took_effect(stands):
    assert dict(zip(TOLD, stands, strict=False)) == {name: expected for name, (_, expected) in TOLD.items()}


def test_the_replay_of_these_tests_says_the_same():
    assert {name: replayed(log) for name, (log, _) in TOLD.items()} == {
        name: expected for name, (_, expected) in TOLD.items()
    }


def test_random_logs_are_replayed_as_kafka_does(stands):
    assert stands[len(TOLD) :] == [replayed(log) for log in RANDOM]


def test_a_copy_that_is_not_judged_tells_nothing(spark):
    assert found(spark, [[commit("g", 5)]], judged="raw:2") == [{}]
