"""The tables of the metadata log against the simulated cluster that wrote it: whole, from a snapshot on, and with
holes."""

from dataclasses import fields

import pytest

from tests.support.metadata_history import T0, MetadataHistory
from txnlib.core.cluster_metadata import (
    MetadataChange,
    broker_sessions,
    cluster_settings,
    partition_assignments,
    producer_id_blocks,
)

SEEDS = range(30)
NOW = ("topic", "partition", "topic_id", "leader", "leader_epoch", "isr", "replicas")
STATE = (*NOW, "is_unclean", "since_offset", "until_offset")
SETTING = ("scope", "scope_name", "name", "value", "since_offset", "until_offset")


def read(make, of, rows):
    """The rows that a function makes of rows of metadata_log, in the order in which they were read."""
    known = {field.name for field in fields(of)}
    records = [
        of(**{name: tuple(value) if isinstance(value, list) else value for name, value in row.items() if name in known})
        for row in rows
    ]
    return list(make(records))


def assignments(rows):
    kinds = ("TOPIC", "REMOVE_TOPIC", "PARTITION", "PARTITION_CHANGE", "CLEAR_ELR", "FEATURE_LEVEL")
    return read(partition_assignments, MetadataChange, of_types(rows, *kinds))


def settings(rows):
    return read(cluster_settings, MetadataChange, of_types(rows, "FEATURE_LEVEL", "CONFIG", "TOPIC", "REMOVE_TOPIC"))


def of_types(rows, *kinds):
    return [row for row in rows if row["type"].removesuffix("_RECORD") in kinds]


def of(rows, columns):
    return sorted((tuple(getattr(row, name) for name in columns) for row in rows), key=repr)


def expected(rows, columns):
    return sorted((tuple(plain(row[name]) for name in columns) for row in rows), key=repr)


def plain(value):
    return tuple(value) if isinstance(value, list) else value


@pytest.mark.parametrize("seed", SEEDS)
def test_a_whole_log_gives_the_states_of_the_cluster(seed):
    history = MetadataHistory(seed)
    shuffled = history.random.sample(history.counted, len(history.counted))
    assert of(assignments(shuffled), STATE) == expected(history.states, STATE)
    assert of(settings(shuffled), SETTING) == expected(history.settings, SETTING)
    for row in assignments(shuffled):
        assert row.since_ms == history.at(row.since_offset)
        assert row.until_ms == (None if row.until_offset is None else history.at(row.until_offset))
        assert row.is_current == (row.until_offset is None)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_snapshot_stands_for_what_is_before_it(seed):
    history = MetadataHistory(seed)
    # A controller takes no snapshot inside of its transactions.
    ends = ("END_TRANSACTION_RECORD", "ABORT_TRANSACTION_RECORD", "NO_OP_RECORD", "CONFIG_RECORD")
    outside = [row["last_offset"] + 1 for row in history.rows if row["type"] in ends]
    at = outside[len(outside) // 2]
    log = [*(row for row in history.counted if row["offset"] >= at), *history.snapshot(at)]
    now = [row for row in history.states if row["until_offset"] is None]
    assert of([row for row in assignments(log) if row.is_current], NOW) == expected(now, NOW)
    dated = [row for row in history.states if row["since_offset"] >= at]
    assert of([row for row in assignments(log) if row.since_offset is not None], STATE) == expected(dated, STATE)
    assert all(row.since_ms is None for row in assignments(log) if row.since_offset is None)
    values = [row for row in history.settings if row["since_offset"] >= at]
    assert of([row for row in settings(log) if row.since_offset is not None], SETTING) == expected(values, SETTING)


def records(*given):
    return [{"timestamp_ms": T0, "offset": n} | row for n, row in enumerate(given)]


def broker(kind, epoch=9, **flags):
    return {"type": f"{kind}_RECORD", "broker_id": 1, "broker_epoch": epoch, **flags}


def test_the_sessions_of_a_broker():
    log = records(
        broker("REGISTER_BROKER", is_fenced=True, incarnation_id="a"),
        broker("BROKER_REGISTRATION_CHANGE", is_fenced=False),
        broker("BROKER_REGISTRATION_CHANGE", is_in_controlled_shutdown=True),
        broker("FENCE_BROKER", is_fenced=True),
        broker("FENCE_BROKER", is_fenced=True),
        broker("REGISTER_BROKER", 20, is_fenced=True, is_in_controlled_shutdown=False, incarnation_id="b"),
        broker("UNFENCE_BROKER", 20, is_fenced=False),
        broker("UNREGISTER_BROKER", 20),
    )
    columns = (
        "broker_epoch",
        "incarnation_id",
        "is_fenced",
        "is_in_controlled_shutdown",
        "since_offset",
        "until_offset",
    )
    assert of(read(broker_sessions, MetadataChange, log), columns) == sorted(
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


def test_the_blocks_of_producer_ids():
    def block(broker_id, following):
        return {"type": "PRODUCER_IDS_RECORD", "broker_id": broker_id, "broker_epoch": 1, "next_producer_id": following}

    def blocks(*rows):
        columns = ("first_producer_id", "last_producer_id", "broker_id", "offset", "allocated_at_ms")
        return of(read(producer_id_blocks, MetadataChange, rows), columns)

    log = records(block(1, 1000), block(2, 2000), block(1, 3000))
    given = [(0, 999, 1, 0, T0), (1000, 1999, 2, 1, T0), (2000, 2999, 1, 2, T0)]
    assert blocks(*log) == blocks(*reversed(log)) == given
    in_snapshot = {"snapshot_offset": 9, "offset": 5, "timestamp_ms": T0} | block(3, 5500)
    assert blocks(in_snapshot) == [(4500, 5499, 3, None, None)]
    assert blocks(*records(block(1, 1000), block(1, 900))) == [(0, 999, 1, 0, T0)], (
        "a block of ids that were given already"
    )


def test_features_are_settings_and_a_lowered_one_is_seen():
    levels = [
        {"type": "FEATURE_LEVEL_RECORD", "name": "transaction.version", "feature_level": level} for level in (2, 2, 1)
    ]
    columns = ("scope", "name", "value", "since_offset", "until_offset")
    found = of(settings(records(*levels)), columns)
    assert found == [("FEATURE", "transaction.version", "1", 2, None), ("FEATURE", "transaction.version", "2", 0, 2)]


def changed(**columns):
    return {"type": "PARTITION_CHANGE_RECORD", "topic_id": "id", "partition_id": 0, "sets_leader": False, **columns}


CREATED = {
    "type": "PARTITION_RECORD",
    "topic_id": "id",
    "partition_id": 0,
    "sets_leader": True,
    "leader": 1,
    "leader_epoch": 0,
}
NAMED = {"type": "TOPIC_RECORD", "topic_id": "id", "name": "t"}


@pytest.mark.parametrize(
    ("first", "is_unclean"),
    [
        ({"type": "FEATURE_LEVEL_RECORD", "name": "metadata.version", "feature_level": 3}, False),
        ({"type": "FEATURE_LEVEL_RECORD", "name": "metadata.version", "feature_level": 2}, True),
        ({"type": "FEATURE_LEVEL_RECORD", "name": "transaction.version", "feature_level": 3}, True),
    ],
)
def test_a_reassignment_that_ends_is_no_unclean_election_where_records_say_what_is(first, is_unclean):
    """Before metadata.version 3.2, nothing distinguishes it from the election of a replica that is being added."""
    log = records(
        first,
        NAMED,
        CREATED | {"isr": [1], "replicas": [1]},
        changed(replicas=[1, 2], adding_replicas=[2], removing_replicas=[1]),
        changed(replicas=[2], adding_replicas=[], removing_replicas=[], isr=[2], sets_leader=True, leader=2),
    )
    found = of(assignments(log), ("leader", "leader_epoch", "is_unclean", "since_offset"))
    assert found == [(1, 0, False, 2), (1, 0, False, 3), (2, 1, is_unclean, 4)]


def test_a_leader_that_recovers_was_elected_uncleanly():
    log = records(
        NAMED,
        CREATED | {"isr": [1, 2], "replicas": [1, 2], "leader_recovery_state": 0},
        changed(sets_leader=True, leader=2, leader_recovery_state=1),
        changed(sets_leader=True, leader=1, leader_recovery_state=0),
    )
    assert of(assignments(log), ("since_offset", "is_unclean")) == [(1, False), (2, True), (3, False)]


@pytest.mark.parametrize(("name", "cleared"), [("t", True), ("", True), (None, True), ("other", False)])
def test_eligible_leader_replicas_are_cleared(name, cleared):
    log = records(
        NAMED,
        CREATED | {"isr": [1, 2], "replicas": [1, 2], "eligible_leader_replicas": [2]},
        {"type": "CLEAR_ELR_RECORD", "name": name},
        changed(isr=[1]),
    )
    (now,) = [row for row in assignments(log) if row.is_current]
    assert (now.isr, now.eligible_leader_replicas) == ((1,), None if cleared else (2,))


def test_what_changes_an_unknown_partition_or_topic_is_no_state():
    assert assignments(records(NAMED, changed(isr=[1], sets_leader=True, leader=1))) == []
    assert assignments(records(CREATED | {"isr": [1], "replicas": [1]})) == []


def test_a_removed_topic_takes_its_own_settings_with_it():
    def config(scope, name):
        return {"type": "CONFIG_RECORD", "resource_type": scope, "resource_name": name, "name": "n", "value": "1"}

    removed = {"type": "REMOVE_TOPIC_RECORD", "topic_id": "id"}
    log = records(
        NAMED, config("TOPIC", "t"), config("TOPIC", "u"), config("BROKER", "t"), config("TOPIC", ""), removed
    )
    found = of(settings(log), ("scope", "scope_name", "until_offset"))
    assert found == [("BROKER", "t", None), ("TOPIC", "t", 5), ("TOPIC", "u", None), ("TOPIC", None, None)]
    assert of(settings([*log[1:]]), ("until_offset",)) == [(None,)] * 4, "a topic that no record names"
