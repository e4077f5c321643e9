"""Selections for reports: markers that ended and were decided, where groups stand."""

from random import Random

import pytest

from tests.support.frames import assert_rows, frame
from txnlib.spark.frames import local_rows
from txnlib.spark.schemas import TABLES
from txnlib.spark.tables.selections import decided_markers, first_markers, group_positions

PLACE = {"topic": "orders", "partition": 0, "producer_id": 1}


def test_the_first_marker_after_the_start_ended_a_transaction(spark):
    spans = [
        # The transaction may have begun where nothing was read: only its marker counts.
        PLACE | {"first_offset": 102, "marker_offset": 201, "marker_type": "COMMIT", "marker_ms": 7},
        PLACE | {"first_offset": 90, "marker_offset": 95, "marker_type": "ABORT", "marker_ms": 4},
        PLACE | {"first_offset": 250, "marker_offset": 260, "marker_type": "ABORT", "marker_ms": 9},
        PLACE | {"first_offset": 300},
        PLACE | {"producer_id": 2, "marker_offset": 150, "marker_type": "ABORT"},
    ]
    opened = local_rows(
        spark,
        [("orders", 0, 1, 101), ("orders", 0, 1, 300), ("orders", 1, 1, 5)],
        "topic string, partition long, producer_id long, start_offset long",
    )
    assert_rows(
        first_markers(opened, frame(spark, TABLES["producer_spans"], *spans)), [("orders", 0, 1, 101, 201, "COMMIT", 7)]
    )


def test_a_marker_that_a_decision_explains_is_decided(spark):
    fields = TABLES["transactions"]["markers"].dataType.elementType
    marked = [
        tuple((PLACE | {"marker_offset": offset}).get(field.name) for field in fields) for offset in (201, 95, None)
    ]
    transactions = frame(spark, TABLES["transactions"], {"producer_id": 1, "markers": marked}, {"producer_id": 2})
    markers = local_rows(
        spark,
        [("orders", 0, 1, 201), ("orders", 0, 1, 202), ("orders", 0, 2, 95)],
        "topic string, partition long, producer_id long, marker_offset long",
    )
    assert_rows(decided_markers(markers, transactions), [("orders", 0, 1, 201)])


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
    answers = group_positions(
        local_rows(spark, [("orders", 0)], "topic string, partition long"),
        frame(spark, TABLES["committed_offsets"], *commits),
        frame(spark, TABLES["producer_spans"], *spans),
        frame(spark, TABLES["coverage"], *coverage),
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
