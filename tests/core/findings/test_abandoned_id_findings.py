"""Ids that are used once and abandoned."""

from dataclasses import replace

import pytest

from tests.support.frames import frame
from tests.support.log_notation import TS
from tests.support.rules import selected
from txnlib.core.findings.abandoned_id_findings import (
    ABANDONED_IDS,
    ABANDONED_PRODUCERS,
    FEW,
    LEFT_BEHIND_AFTER_MS,
    MANY_PRODUCER_IDS,
    MANY_TRANSACTIONAL_IDS,
    AbandonedIds,
    AbandonedProducers,
    of_abandoned_ids,
    of_abandoned_producers,
)
from txnlib.spark.schemas import TABLES

HOUR = LEFT_BEHIND_AFTER_MS
ONCE = ("Empty", "Ongoing", "PrepareCommit", "CompleteCommit")
#: Application -> how many ids it makes, one every hour, the states of each one's records, and the epoch of the first.
APPLICATIONS = {
    "churn": (MANY_TRANSACTIONAL_IDS + 1, ONCE, 0),
    "unused": (
        MANY_TRANSACTIONAL_IDS,
        ("Empty",),
        0,
    ),  # one less than many is left behind: nothing newer than the newest
    "few": (MANY_TRANSACTIONAL_IDS // FEW, ONCE, 0),
    "used twice": (MANY_TRANSACTIONAL_IDS + 1, ONCE + ONCE[1:], 0),
    "initialised twice": (MANY_TRANSACTIONAL_IDS + 1, (*ONCE, "Empty"), 0),
    "still open": (MANY_TRANSACTIONAL_IDS + 1, ONCE[:2], 0),
    "known only from later on": (MANY_TRANSACTIONAL_IDS + 1, ONCE[1:], 0),
    "initialised before": (MANY_TRANSACTIONAL_IDS + 1, ONCE, 1),
    "expired": (MANY_TRANSACTIONAL_IDS + 1, (*ONCE, None), 0),
}
STARTED_TOGETHER = "fleet"


def records():
    ids = [
        (app, n, states, epoch, n * HOUR) for app, (count, states, epoch) in APPLICATIONS.items() for n in range(count)
    ]
    ids += [(STARTED_TOGETHER, n, ONCE, 0, n * 1000) for n in range(2 * MANY_TRANSACTIONAL_IDS)]
    for app, n, states, epoch, ms in ids:
        for step, state in enumerate(states):
            yield {
                "transactional_id": f"{app}-{n}", "coordinator_partition": 0, "offset": n * 10 + step,
                "timestamp_ms": TS + ms + (100 * HOUR if state is None else 0), "is_tombstone": state is None,
                "state": state, "producer_epoch": epoch,
                "transaction_number": (step + 2) // 3 if state not in (None, "Empty") else None,
            }  # fmt: skip


#: Partition -> its producer ids, each with the ms of its last batch, the sequence that batch ends at, and its epoch.
PARTITIONS = {
    0: [(n * HOUR, 4, 0) for n in range(MANY_PRODUCER_IDS + 1)],
    1: [(n * HOUR, 4, 0) for n in range(MANY_PRODUCER_IDS // FEW)],  # one less than that is left behind
    2: [(n * HOUR, 9, 0) for n in range(MANY_PRODUCER_IDS + 1)],  # the batch is not the first
    3: [(n * HOUR, 4, 1) for n in range(MANY_PRODUCER_IDS + 1)],  # of another epoch
    4: [(n, 4, 0) for n in range(MANY_PRODUCER_IDS + 1)],  # all at once
}


def spans():
    for partition, producers in PARTITIONS.items():
        for number, (ms, sequence, epoch) in enumerate(producers):
            state = (epoch, sequence, number, 4, None, None, TS + ms)
            yield {
                "topic": "orders",
                "partition": partition,
                "producer_id": number,
                "span": 0,
                "state": state,
                "is_newest": True,
            }


@pytest.fixture(scope="module")
def left(spark):
    """Application -> its row."""
    ids = {record["transactional_id"] for record in records()}
    owned = [
        {"transactional_id": id_, "coordinator_partition": 0, "application": id_.rpartition("-")[0]} for id_ in ids
    ]
    rows = selected(
        ABANDONED_IDS,
        coordinator_states=frame(spark, TABLES["coordinator_states"], *records()),
        transactional_ids=frame(spark, TABLES["transactional_ids"], *owned),
    )
    return {row.application: row for row in rows}


def test_only_ids_that_were_used_once_and_replaced_are_left_behind(left):
    assert {app: row.count for app, row in left.items()} == {
        "churn": MANY_TRANSACTIONAL_IDS,
        "unused": MANY_TRANSACTIONAL_IDS - 1,
        "few": MANY_TRANSACTIONAL_IDS // FEW - 1,
        "expired": MANY_TRANSACTIONAL_IDS,
    }
    newest = MANY_TRANSACTIONAL_IDS - 1
    assert (left["churn"].transactional_id, left["churn"].offset) == (f"churn-{newest}", newest * 10 + 3)
    assert (left["churn"].from_ms, left["churn"].to_ms) == (TS, TS + newest * HOUR)


def test_only_producer_ids_with_one_batch_ever_are_left_behind(spark):
    found = selected(ABANDONED_PRODUCERS, producer_spans=frame(spark, TABLES["producer_spans"], *spans()))
    rows = {row.partition: row for row in found}
    assert {partition: row.count for partition, row in rows.items()} == {
        0: MANY_PRODUCER_IDS,
        1: MANY_PRODUCER_IDS // FEW - 1,
    }
    newest = MANY_PRODUCER_IDS - 1
    assert (rows[0].producer_id, rows[0].offset) == (newest, newest)
    assert (rows[0].from_ms, rows[0].to_ms) == (TS, TS + newest * HOUR)


@pytest.mark.parametrize("divisor", [1, FEW])
def test_abandoned_ids_are_a_warning_from_many_on_and_nothing_while_few(divisor: int) -> None:
    severity = ["WARNING"] if divisor == 1 else ["INFO"]
    ids = AbandonedIds("pay", MANY_TRANSACTIONAL_IDS // divisor, TS, TS + 1_500, 3, 9, "pay-1")
    producers = AbandonedProducers("orders", 0, MANY_PRODUCER_IDS // divisor, TS, TS + 1_500, 7, 9)
    assert [row.severity for row in of_abandoned_ids([ids])] == severity
    assert [row.severity for row in of_abandoned_producers([producers])] == severity
    fewer = ["INFO"] if divisor == 1 else []
    assert [row.severity for row in of_abandoned_ids([replace(ids, count=ids.count - 1)])] == fewer
    assert [row.severity for row in of_abandoned_producers([replace(producers, count=producers.count - 1)])] == fewer


def test_the_evidence_of_abandoned_ids_counts_them() -> None:
    (ids,) = of_abandoned_ids([AbandonedIds("pay", 100, TS, TS + 1_500, 3, 9, "pay-1")])
    assert (
        ids.evidence
        == "100 transactional ids of application pay, each initialised once and used for at most one transaction, "
        "from 2024-03-09 16:00:00.000Z to 2024-03-09 16:00:01.500Z"
    )
    assert (ids.topic, ids.partition, ids.offset, ids.transactional_id) == ("__transaction_state", 3, 9, "pay-1")
    (producers,) = of_abandoned_producers([AbandonedProducers("orders", 0, 1_000, TS, TS, 7, 9)])
    assert (
        producers.evidence
        == "1000 producer ids with one batch each, by their clients' clocks from 2024-03-09 16:00:00.000Z to 2024-03-09"
        " 16:00:00.000Z"
    )
