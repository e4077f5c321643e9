"""Facts of forecasts: which rows each rule of the core gets to see."""

import pytest

from tests.support.delta_tables import at
from tests.support.frames import frame
from txnlib.core.findings.forecast_findings import (
    DAY_MS,
    FEW_PRODUCERS,
    FORECAST_FROM_EPOCH,
    HOUR_MS,
    BrokerProducers,
    EarlierEpoch,
    EpochUse,
    HeldId,
    OldClients,
    StillPartition,
)
from txnlib.delta.store import stored_schema
from txnlib.spark.core_rows import rows_of
from txnlib.spark.findings.forecast_findings import (
    earlier_epochs,
    held_ids,
    kept_producers,
    old_clients,
    still_partitions,
    used_epochs,
)
from txnlib.spark.schemas import TABLES

AS_OF = 1_795_226_400_000


def table(spark, name, *rows):
    return frame(spark, TABLES[name], *rows)


def of_runs(spark, name, *rows):
    return frame(spark, stored_schema(name), *rows)


def test_ids_that_have_used_half_of_their_epochs(spark):
    base = {"coordinator_partition": 3, "record_offset": 40, "state": "Ongoing", "is_two_phase_commit": False}
    ids = table(
        spark,
        "transactional_ids",
        base | {"transactional_id": "half", "producer_id": 1, "producer_epoch": FORECAST_FROM_EPOCH},
        base | {"transactional_id": "less", "producer_id": 2, "producer_epoch": FORECAST_FROM_EPOCH - 1},
        base | {"transactional_id": "expired", "producer_id": 3, "producer_epoch": 32_000, "state": None},
        base | {"transactional_id": "text", "producer_id": 4, "producer_epoch": 32_766, "is_two_phase_commit": None},
    )
    place = {"coordinator_partition": 3, "offset": 40}
    assert rows_of(used_epochs(ids), EpochUse) == [
        EpochUse(transactional_id="text", producer_id=4, epoch=32_766, **place),
        EpochUse(transactional_id="half", producer_id=1, epoch=FORECAST_FROM_EPOCH, is_two_phase_commit=False, **place),
    ]


def test_the_oldest_known_epoch_of_a_producer_id(spark):
    states = table(
        spark,
        "coordinator_states",
        {"producer_id": 1, "producer_epoch": 9, "timestamp_ms": 9_000},
        {"producer_id": 1, "producer_epoch": 7, "timestamp_ms": -1},  # no clock shows that
        {"producer_id": 2, "producer_epoch": 3, "timestamp_ms": 3_000},
        {"producer_id": 4, "producer_epoch": 1, "timestamp_ms": 1_000},  # not asked for
    )
    spans = table(
        spark,
        "producer_spans",
        {"producer_id": 1, "marker_epoch": 8, "marker_ms": 8_000},
        {"producer_id": 1, "producer_epoch": 9},  # open
        {"producer_id": 2, "marker_epoch": 5, "marker_ms": 5_000},
    )
    earlier = of_runs(
        spark,
        "transactional_ids",
        {"producer_id": 2, "producer_epoch": 2, "last_update": at(2_000)},
        {"producer_id": 3, "producer_epoch": 6, "last_update": at(6_000)},
    )

    used = spark.createDataFrame([(1,), (2,), (3,)], "producer_id long")

    def oldest(of_runs):
        return set(rows_of(earlier_epochs(used, states, spans, of_runs), EarlierEpoch))

    assert oldest(earlier) == {EarlierEpoch(1, 8, 8_000), EarlierEpoch(2, 2, 2_000), EarlierEpoch(3, 6, 6_000)}
    assert oldest(None) == {EarlierEpoch(1, 8, 8_000), EarlierEpoch(2, 3, 3_000)}


def test_ids_that_may_expire_and_hold_something(spark):
    names = ("CompleteAbort", "Empty", "Ongoing", None)
    ids = table(
        spark,
        "transactional_ids",
        *[
            {
                "transactional_id": f"id-{number}",
                "coordinator_partition": 1,
                "producer_id": number,
                "state": state,
                "last_update": at(AS_OF - number),
                "record_offset": 70 + number,
            }
            for number, state in enumerate(names)
        ],
    )
    opened = {"coordinator_partition": 1, "topic": "orders", "start_offset": 5}
    rows = [
        opened
        | {
            "producer_id": n,
            "transactional_id": f"id-{n}",
            "partition": p,
            "coordinator_state": names[n],
            "verdict": "HANGING",
        }
        for n in range(4)
        for p in (8, 7)
    ]
    rotated = opened | {"producer_id": 90, "transactional_id": "id-1", "partition": 7, "coordinator_state": "Empty"}
    unsure = rows[2] | {"partition": 6, "verdict": "UNKNOWN"}
    found = held_ids(ids, table(spark, "open_transactions", *rows, rotated | {"verdict": "HANGING"}, unsure))
    held = {"coordinator_partition": 1, "partitions": 2, "first": "orders-7"}
    assert rows_of(found, HeldId) == [
        HeldId(transactional_id="id-1", offset=71, producer_id=1, last_update_ms=AS_OF - 1, **held),
        HeldId(transactional_id="id-0", offset=70, producer_id=0, last_update_ms=AS_OF, **held),
    ]


#: id -> application, and its transactions: minute, version, outcome, who ended it, level of the cluster.
CLIENTS = {
    "new-1": ("new", [(1, 0, "COMMIT", "CLIENT", None), (9, 2, "COMMIT", "CLIENT", None)]),
    "old-1": (
        "old",
        [(3, 0, "COMMIT", "CLIENT", None), (6, 0, "COMMIT", "CLIENT", None), (7, 1, "ABORT", "CLIENT", None)],
    ),
    "old-2": ("old", [(6, 0, "COMMIT", "CLIENT", None), (7, 2, "COMMIT", "CLIENT", None)]),  # upgraded
    "old-3": ("old", [(3, 0, "COMMIT", "CLIENT", None)]),  # unused since
    "aborted-1": (
        "aborted",
        [(6, 0, "COMMIT", "CLIENT", None), (7, 2, "ABORT", "TIMEOUT", None)],
    ),  # version of the cluster
    "open-1": ("open", [(6, 0, "OPEN", None, None)]),
    "text-1": ("text", [(6, None, "COMMIT", "CLIENT", None)]),
    "lowered-1": ("lowered", [(6, 0, "COMMIT", "CLIENT", 1)]),
    "first": (None, [(5, 2, "ABORT", "NEW_PRODUCER", None)]),  # shows that the feature was raised
    "lonely": (None, [(8, 0, "COMMIT", "CLIENT", 2)]),
}


def clients(spark, names):
    rows = [
        {"transactional_id": name, "coordinator_partition": 2, "producer_id": 7, "outcome": outcome, "ended_by": by}
        | {"transaction_version": version, "cluster_transaction_version": level, "last_record_offset": minute}
        | {"prepared": None if outcome == "OPEN" else at(minute * 60_000)}
        for name in names
        for minute, version, outcome, by, level in CLIENTS[name][1]
    ]
    ids = [{"transactional_id": name, "coordinator_partition": 2, "application": CLIENTS[name][0]} for name in names]
    return rows_of(
        old_clients(table(spark, "transactions", *rows), table(spark, "transactional_ids", *ids)), OldClients
    )


def test_applications_whose_newest_transaction_is_old(spark):
    every = {"coordinator_partition": 2, "producer_id": 7, "raised_ms": 300_000, "ids_behind": 1}
    old = {"transactional_id": "old-1", "offset": 7, "ids": 2, "transactions": 2, "newest_ms": 420_000}
    aborted = {"transactional_id": "aborted-1", "offset": 6, "ids": 1, "transactions": 1, "newest_ms": 360_000}
    lonely = {"transactional_id": "lonely", "offset": 8, "ids": 1, "transactions": 1, "newest_ms": 480_000}
    assert clients(spark, CLIENTS) == [
        OldClients(application=name, **each, **every)
        for name, each in (("old", old), ("aborted", aborted), ("lonely", lonely))
    ]


def test_nobody_is_behind_where_version_2_was_never_seen(spark):
    assert clients(spark, ["old-3", "text-1", "open-1"]) == []


def test_partitions_with_the_same_last_stable_offset_in_three_runs(spark):
    base = {
        "topic": "orders",
        "last_stable_offset": 5,
        "high_watermark": 9,
        "lag_offsets": 4,
        "blocking_producer_id": 1,
    }
    base |= {"blocking_verdict": "OPEN", "blocking_transactional_id": "billing-0"}
    # 2 is not blocked now, 3 moved once, 4 was not blocked then, 6 was seen twice only.
    changes = {number: {} for number in range(7)} | {1: {"blocking_verdict": "LATE"}, 2: {"high_watermark": 5}}
    changes[5] = {"blocking_verdict": None, "blocking_producer_id": None, "blocking_transactional_id": None}
    then = {3: {"last_stable_offset": 4}, 4: {"high_watermark": 5}}
    now = table(spark, "partitions", *[base | {"partition": number} | change for number, change in changes.items()])
    earlier = [
        base | {"partition": number, "as_of": at(AS_OF - night * DAY_MS), "run_id": f"{night}"} | then.get(number, {})
        for number in changes
        for night in (1, 2, 3)
        if night == 1 or number != 6
    ]
    opened = {
        "topic": "orders",
        "partition": 0,
        "producer_id": 1,
        "is_two_phase_commit": False,
        "transaction_start": at(AS_OF),
    }
    opened |= {"transaction_timeout_ms": 60_000, "last_timestamp": at(AS_OF + 1)}
    found = still_partitions(now, table(spark, "open_transactions", opened), of_runs(spark, "partitions", *earlier))
    seen = {"topic": "orders", "offset": 5, "lag_offsets": 4, "runs": 4, "since_ms": AS_OF - 3 * DAY_MS}
    blocker = {"verdict": "OPEN", "transactional_id": "billing-0", "producer_id": 1}
    times = {"is_two_phase_commit": False, "start_ms": AS_OF, "timeout_ms": 60_000, "last_timestamp_ms": AS_OF + 1}
    assert rows_of(found, StillPartition) == [
        StillPartition(partition=0, **seen, **blocker, **times),
        StillPartition(partition=5, **seen),
    ]


@pytest.mark.parametrize("has_earlier", [False, True])
def test_brokers_that_keep_many_producers(spark, has_earlier):
    def states(**kept):
        rows = None
        for partition, (first, last) in kept.items():
            of = spark.range(first, last).selectExpr("'orders' topic", f"{partition[1:]} `partition`", "id producer_id")
            rows = of if rows is None else rows.unionByName(of)
        return rows

    def copies(*partitions):
        base = {"topic": "orders", "status": "COMPLETE"}
        return table(
            spark, "coverage", *[base | {"partition": p, "broker": broker} for p in partitions for broker in ("1", "2")]
        )

    missing = {"topic": "orders", "partition": 0, "status": "MISSING", "broker": "3"}
    deleted = {"topic": "orders", "partition": 0, "status": "COMPLETE", "broker": "4", "is_deleted": True}
    few = {"topic": "orders", "partition": 1, "status": "COMPLETE", "broker": "5"}
    now = copies(0, 1, 2).unionByName(table(spark, "coverage", missing, deleted, few))
    blocks = table(
        spark,
        "producer_id_blocks",
        *[
            {
                "first_producer_id": n * 1000,
                "last_producer_id": n * 1000 + 999,
                "allocated_at": at(AS_OF - (5 - n) * HOUR_MS),
            }
            for n in range(5)
        ],
        {"first_producer_id": 0, "last_producer_id": 9},
    )
    producers = states(p0=(0, FEW_PRODUCERS), p1=(0, 100), p2=(50, 100))
    earlier = None
    if has_earlier:
        # orders-2 was not captured then, and all producers of orders-3 are gone.
        earlier = (states(p0=(0, 40), p1=(0, 300), p3=(0, 5)), copies(0, 1, 3), AS_OF - DAY_MS)
    found = rows_of(kept_producers(producers, now, blocks, earlier), BrokerProducers)
    of_broker = {
        "kept": FEW_PRODUCERS + 150, "producer_ids": FEW_PRODUCERS, "allocated": 4_000, "allocated_ms": AS_OF - 5 * HOUR_MS,
    }  # fmt: skip
    growth = {"grown": FEW_PRODUCERS - 40 - 200, "earlier_ms": AS_OF - DAY_MS} if has_earlier else {}
    assert found == [BrokerProducers(broker=broker, **of_broker, **growth) for broker in ("1", "2")]
