"""The metrics of each broker."""

from __future__ import annotations

from dataclasses import replace

from txnlib.core.copies import CoverageRow
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.tables.brokers import BrokerMetrics, CoordinatedId, LatePartition, brokers

LED = CoverageRow("orders", 0, broker="1", is_leader=True, is_judged=True, status="COMPLETE")
FOLLOWED = replace(LED, broker="2", is_leader=False, is_judged=False)
COORDINATOR = replace(LED, topic=TRANSACTION_STATE_TOPIC, partition=7)
LATE = LatePartition("orders", 0, is_late=True)
ONGOING = CoordinatedId(7, "Ongoing", 400)


def metrics(
    *copies: CoverageRow, late: tuple[LatePartition, ...] = (), ids: tuple[CoordinatedId, ...] = ()
) -> list[BrokerMetrics]:
    return list(brokers(copies, late, ids, as_of_ms=1000))


def test_only_the_leader_counts_a_late_partition() -> None:
    made = metrics(LED, FOLLOWED, late=(LATE,))
    assert [(each.broker, each.replicas, each.partitions_led) for each in made] == [("1", 1, 1), ("2", 1, 0)]
    assert [each.partitions_with_late_transactions for each in made] == [1, 0]
    assert not any(each.is_leadership_assumed for each in made)


def test_where_leaders_are_not_noted_the_judged_copy_leads() -> None:
    made = metrics(replace(LED, is_leader=None), replace(FOLLOWED, is_leader=None))
    assert [(each.partitions_led, each.is_leadership_assumed) for each in made] == [(1, True), (0, True)]


def test_two_copies_from_one_broker_are_one_replica() -> None:
    (made,) = metrics(LED, replace(LED, is_leader=False, is_judged=False))
    assert (made.replicas, made.partitions_led) == (1, 1)


def test_the_oldest_ongoing_transaction_counts_on_its_leader() -> None:
    younger, decided = replace(ONGOING, transaction_start_ms=900), CoordinatedId(7, "PrepareCommit", 1)
    made = metrics(COORDINATOR, replace(COORDINATOR, broker="2", is_leader=False), ids=(ONGOING, younger, decided))
    assert [each.active_transaction_open_time_max_ms for each in made] == [600, None]
    assert [each.coordinators_led for each in made] == [1, 0]


def test_a_start_in_the_future_is_no_time_open() -> None:
    (made,) = metrics(COORDINATOR, ids=(replace(ONGOING, transaction_start_ms=2000),))
    assert made.active_transaction_open_time_max_ms == 0


def test_missing_partitions_and_copies_without_a_broker_have_no_row() -> None:
    assert not metrics(replace(LED, status="MISSING"), replace(LED, broker=None))
