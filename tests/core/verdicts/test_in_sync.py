"""Which partitions have too few replicas in sync to be written to."""

from __future__ import annotations

import pytest

from txnlib.core.cluster_metadata import ClusterSetting, PartitionAssignment
from txnlib.core.verdicts.in_sync import minimums, too_few_in_sync

NEEDED = {"orders": 2, None: 3}


def state(isr, offset, *, topic="orders", leader=1, is_current=False):
    return PartitionAssignment(
        topic=topic,
        leader=leader,
        isr=isr,
        replicas=(1, 2, 3),
        since_offset=offset,
        since_ms=offset * 1_000,
        is_current=is_current,
    )


@pytest.mark.parametrize(
    ("isr", "topic", "leader", "away"),
    [
        ((1,), "orders", 1, (2, 3)),
        ((1, 2), "orders", 1, None),
        ((1, 2, 3), "orders", 1, None),
        ((1, 2), "other", 1, (3,)),
        ((1,), "orders", None, None),
        (None, "orders", 1, None),
    ],
)
def test_a_partition_with_a_leader_needs_its_minimum(isr, topic, leader, away):
    found = too_few_in_sync([state(isr, 5, topic=topic, leader=leader, is_current=True)], NEEDED)
    assert (None if found is None else found.away) == away


def test_it_is_so_since_the_first_state_that_was_never_better():
    states = [state((1,), 1), state((1, 2), 2), state((2,), 3), state((1,), 4, is_current=True)]
    found = too_few_in_sync(states, NEEDED)
    assert (found.since_offset, found.in_sync, found.away) == (3, (1,), (2, 3))
    assert "1970-01-01T00:00:03Z: orders-0 has 1 replica in sync, min.insync.replicas is 2" in found.says
    assert found.remedy.startswith("bring brokers 2 and 3 back, until 2 replicas of orders-0 are in sync")


def test_a_setting_that_is_not_known_refuses_nothing():
    assert too_few_in_sync([state((1,), 1, is_current=True)], {}) is None
    assert too_few_in_sync([], NEEDED) is None
    assert too_few_in_sync([state((1,), 1)], NEEDED) is None  # the topic was deleted


def test_a_topics_own_setting_comes_before_that_of_all_brokers():
    def setting(scope, name, value, *, is_current=True):
        return ClusterSetting(
            scope=scope, scope_name=name, name="min.insync.replicas", value=value, is_current=is_current
        )

    given = [
        setting("TOPIC", "orders", "2"),
        setting("TOPIC", "late", "3", is_current=False),
        setting("BROKER", None, "1"),
        setting("BROKER", "7", "3"),
        setting("TOPIC", "odd", "[hidden]"),
    ]
    assert minimums(given) == {None: 1, "orders": 2}
