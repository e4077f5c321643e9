"""The tables of the metadata log against the simulated cluster that wrote it: whole, from a snapshot on, and with holes."""

from __future__ import annotations

import pytest

from tests.support.frames import frame
from tests.support.metadata_history import MetadataHistory
from txnlib.spark.metadata import (
    broker_sessions,
    cluster_settings,
    metadata_log,
    partition_assignments,
    producer_id_blocks,
)
from txnlib.spark.schemas import METADATA_LOG

SEEDS = range(4)
NOW = ("topic", "partition", "topic_id", "leader", "leader_epoch", "isr", "replicas")
STATE = (*NOW, "is_unclean", "since_offset", "until_offset")
SETTING = ("scope", "scope_name", "name", "value", "since_offset", "until_offset")


def read(spark, rows):
    found = metadata_log(frame(spark, METADATA_LOG, *rows))
    return spark.createDataFrame(found.collect(), METADATA_LOG).coalesce(1)


def of(frame, columns):
    return sorted((tuple(row[name] for name in columns) for row in frame.collect()), key=repr)


def expected(rows, columns):
    return sorted((tuple(row[name] for name in columns) for row in rows), key=repr)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_whole_log_gives_the_states_of_the_cluster(spark, seed):
    history = MetadataHistory(seed)
    behind = [row | {"source": "raw:3", "path": "other"} for row in history.rows[: len(history.rows) // 2]]
    log = read(spark, [*history.rows, *behind])
    assert of(partition_assignments(log), STATE) == expected(history.states, STATE)
    assert of(cluster_settings(log), SETTING) == expected(history.settings, SETTING)


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_a_snapshot_stands_for_what_is_before_it(spark, seed):
    history = MetadataHistory(seed)
    # A controller takes no snapshot inside of its transactions.
    ends = ("END_TRANSACTION_RECORD", "ABORT_TRANSACTION_RECORD", "NO_OP_RECORD", "CONFIG_RECORD")
    outside = [row["last_offset"] + 1 for row in history.rows if row["type"] in ends]
    at = outside[len(outside) // 2]
    later = [row for row in history.rows if row["offset"] >= at]
    older = history.snapshot(at // 2, "older")
    broken = history.snapshot(history.end, "broken", is_whole=False)
    log = read(spark, [*older, *history.snapshot(at), *broken, *later])
    now = [row for row in history.states if row["until_offset"] is None]
    current = [row for row in partition_assignments(log).collect() if row["is_current"]]
    assert sorted((tuple(row[name] for name in NOW) for row in current), key=repr) == expected(now, NOW)
    dated = [row for row in history.states if row["since_offset"] >= at]
    found = [row for row in of(partition_assignments(log), STATE) if row[-2] is not None]
    assert found == expected(dated, STATE)


def test_after_a_hole_nothing_counts(spark):
    history = MetadataHistory(3)
    gone = history.rows[len(history.rows) // 2]
    log = read(spark, [row for row in history.rows if row is not gone])
    counted = [row["offset"] for row in log.collect() if row["is_effective"]]
    assert max(counted) < gone["offset"]
    known = [row for row in history.states if row["since_offset"] < gone["offset"]]
    assert [row[-2] for row in of(partition_assignments(log), STATE)] == [row[-2] for row in expected(known, STATE)]


def test_a_snapshot_after_the_hole_counts_again(spark):
    history = MetadataHistory(4)
    gone = history.rows[len(history.rows) // 3]
    at = history.end - 1
    log = read(spark, [*(row for row in history.rows if row is not gone), *history.snapshot(at)])
    now = [row for row in history.states if row["until_offset"] is None]
    current = [row for row in partition_assignments(log).collect() if row["is_current"]]
    assert sorted((tuple(row[name] for name in NOW) for row in current), key=repr) == expected(now, NOW)


def test_what_a_newer_controller_replaced_does_not_count(spark):
    rows = [
        {"source": "raw:1", "path": "a", "offset": n, "last_offset": n, "controller_epoch": 1, "type": "TOPIC_RECORD"}
        | {"timestamp_ms": n, "name": f"old-{n}", "topic_id": f"old-{n}"}
        for n in range(6)
    ]
    newer = [row | {"source": "raw:2", "path": "b"} for row in rows[:3]]
    newer += [
        row | {"source": "raw:2", "path": "b", "controller_epoch": 2, "topic_id": f"new-{row['offset']}"} for row in rows[3:5]
    ]
    log = read(spark, [*rows, *newer])
    counted = sorted((row["offset"], row["topic_id"]) for row in log.collect() if row["is_effective"])
    assert counted == [(0, "old-0"), (1, "old-1"), (2, "old-2"), (3, "new-3"), (4, "new-4")]


def records(*given):
    where = {"source": "raw:1", "path": "log", "position": 0, "controller_epoch": 1, "timestamp_ms": 1_700_000_000_000}
    return [where | {"offset": n, "last_offset": n} | row for n, row in enumerate(given)]


def broker(kind, epoch=9, **flags):
    return {"type": f"{kind}_RECORD", "broker_id": 1, "broker_epoch": epoch, **flags}


def test_the_sessions_of_a_broker(spark):
    log = read(
        spark,
        records(
            broker("REGISTER_BROKER", is_fenced=True, incarnation_id="a"),
            broker("BROKER_REGISTRATION_CHANGE", is_fenced=False),
            broker("BROKER_REGISTRATION_CHANGE", is_in_controlled_shutdown=True),
            broker("FENCE_BROKER", is_fenced=True),
            broker("FENCE_BROKER", is_fenced=True),
            broker("REGISTER_BROKER", 20, is_fenced=True, is_in_controlled_shutdown=False, incarnation_id="b"),
            broker("UNFENCE_BROKER", 20, is_fenced=False),
            broker("UNREGISTER_BROKER", 20),
        ),
    )
    columns = ("broker_epoch", "incarnation_id", "is_fenced", "is_in_controlled_shutdown", "since_offset", "until_offset")
    assert of(broker_sessions(log), columns) == sorted(
        [
            (9, "a", True, False, 0, 1),
            (9, "a", False, False, 1, 2),
            (9, "a", False, True, 2, 3),
            (9, "a", True, True, 3, 5),
            (20, "b", True, False, 5, 6),
            (20, "b", False, False, 6, 7),
        ],
        key=repr,
    )


def test_the_blocks_of_producer_ids(spark):
    def block(broker_id, following):
        return {"type": "PRODUCER_IDS_RECORD", "broker_id": broker_id, "broker_epoch": 1, "next_producer_id": following}

    log = read(spark, records(block(1, 1000), block(2, 2000), block(1, 3000)))
    columns = ("first_producer_id", "last_producer_id", "broker_id", "offset")
    assert of(producer_id_blocks(log), columns) == [(0, 999, 1, 0), (1000, 1999, 2, 1), (2000, 2999, 1, 2)]


def test_features_are_settings_and_a_lowered_one_is_seen(spark):
    levels = [{"type": "FEATURE_LEVEL_RECORD", "name": "transaction.version", "feature_level": level} for level in (2, 2, 1)]
    columns = ("scope", "name", "value", "since_offset", "until_offset")
    found = of(cluster_settings(read(spark, records(*levels))), columns)
    assert found == [("FEATURE", "transaction.version", "1", 2, None), ("FEATURE", "transaction.version", "2", 0, 2)]


def changed(**columns):
    return {"type": "PARTITION_CHANGE_RECORD", "topic_id": "id", "partition_id": 0, "sets_leader": False, **columns}


CREATED = {"type": "PARTITION_RECORD", "topic_id": "id", "partition_id": 0, "sets_leader": True, "leader": 1, "leader_epoch": 0}
NAMED = {"type": "TOPIC_RECORD", "topic_id": "id", "name": "t"}


def test_a_reassignment_that_ends_is_no_unclean_election(spark):
    log = read(
        spark,
        records(
            NAMED,
            CREATED | {"isr": [1], "replicas": [1]},
            changed(replicas=[1, 2], adding_replicas=[2], removing_replicas=[1]),
            changed(replicas=[2], adding_replicas=[], removing_replicas=[], isr=[2], sets_leader=True, leader=2),
        ),
    )
    found = of(partition_assignments(log), ("leader", "leader_epoch", "is_unclean", "since_offset"))
    assert found == [(1, 0, False, 1), (1, 0, False, 2), (2, 1, False, 3)]


@pytest.mark.parametrize(("name", "cleared"), [("t", True), ("", True), (None, True), ("other", False)])
def test_eligible_leader_replicas_are_cleared(spark, name, cleared):
    log = read(
        spark,
        records(
            NAMED,
            CREATED | {"isr": [1, 2], "replicas": [1, 2], "eligible_leader_replicas": [2]},
            {"type": "CLEAR_ELR_RECORD", "name": name},
            changed(isr=[1]),
        ),
    )
    (now,) = [row for row in partition_assignments(log).collect() if row["is_current"]]
    assert (now["isr"], now["eligible_leader_replicas"]) == ([1], None if cleared else [2])
