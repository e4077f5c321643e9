"""What the tables of the cluster show about partitions, coordinators and producer ids."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.support.dossier_samples import COPY, DOSSIER, FACTS, SPAN
from txnlib.core.cluster_metadata import (
    BrokerSession,
    ClusterSetting,
    Election,
    FencedBroker,
    LoweredFeature,
    PartitionAssignment,
    ProducerIdBlock,
)
from txnlib.core.copies import TruncatedEpoch
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.verdicts.case import Case
from txnlib.core.verdicts.cluster_facts import MOST_EVENTS, ClusterFacts, PartitionAlarm, cluster_facts
from txnlib.core.verdicts.coordinators import CoordinatorLog, PartitionFacts

STATE = PartitionAssignment(topic="foo", partition=5, topic_id="AAAA", leader=1, leader_epoch=0, is_unclean=False)
FENCED = BrokerSession(broker_id=1, is_fenced=True, since_offset=9, since_ms=90)
LEVEL = ClusterSetting(scope="FEATURE", name="transaction.version", value="2", since_offset=None, since_ms=None)


def facts(copies=(), logs=(), alarms=(), states=(), sessions=(), settings=(), blocks=()) -> ClusterFacts:
    return cluster_facts(
        ClusterFacts(thresholds=FACTS.thresholds), copies, logs, alarms, states, sessions, settings, blocks
    )


def elections(*states: PartitionAssignment) -> list[Election]:
    return list(facts(states=states).partitions["foo", 5].elections)


def test_only_another_leader_or_leader_epoch_is_an_election() -> None:
    same = replace(STATE, since_offset=4, since_ms=40)
    lost = replace(STATE, since_offset=6, since_ms=60, leader=None)
    found = elections(lost, same, STATE)
    assert [(each.offset, each.leader, each.is_first) for each in found] == [(None, 1, True), (6, None, False)]
    assert [each.until_ms for each in found] == [60, None]


def test_a_state_ends_with_the_next_one_else_when_its_row_says() -> None:
    after = replace(STATE, since_offset=6, since_ms=60, leader=2, until_ms=90)
    assert [each.until_ms for each in elections(replace(STATE, until_ms=50), after)] == [60, 90]


def test_a_topic_that_was_created_again_has_a_first_leader_again() -> None:
    again = replace(STATE, topic_id="BBBB", since_offset=6, since_ms=60)
    assert [(each.topic_id, each.is_first) for each in elections(STATE, again)] == [("AAAA", True), ("BBBB", True)]


def test_the_newest_elections_are_kept_in_order_whatever_the_order_of_rows() -> None:
    states = [replace(STATE, since_offset=number, leader_epoch=number) for number in range(MOST_EVENTS + 20)]
    Random(3).shuffle(states)
    assert [each.offset for each in elections(*states)] == [0, *range(20, MOST_EVENTS + 20)]


def test_an_unclean_election_is_kept_however_old_it_is() -> None:
    states = [
        replace(STATE, since_offset=number, leader_epoch=number, is_unclean=number == 7)
        for number in range(MOST_EVENTS + 20)
    ]
    assert [each.offset for each in elections(*states)] == [0, 7, *range(20, MOST_EVENTS + 20)]


def test_a_broker_is_fenced_if_it_was_not_before() -> None:
    alive, again = replace(FENCED, is_fenced=False, since_offset=3), replace(FENCED, since_offset=12)
    assert facts(sessions=[again, FENCED, alive]).fenced == (FencedBroker(offset=9, at_ms=90, broker=1),)
    assert facts(sessions=[FENCED, replace(alive, broker_id=2)]).fenced == ()
    assert facts(sessions=[replace(alive, is_fenced=None), FENCED]).fenced == ()


def test_a_feature_is_lowered_if_its_level_was_higher_before() -> None:
    lowered, raised = (
        replace(LEVEL, value=level, since_offset=offset, since_ms=70) for level, offset in (("1", 7), ("2", 8))
    )
    assert facts(settings=[raised, lowered, LEVEL]).lowered == (
        LoweredFeature(offset=7, at_ms=70, level_before=2, level=1),
    )
    assert facts(settings=[LEVEL, replace(lowered, name="group.version")]).lowered == ()


def test_copies_of_deleted_topics_show_nothing() -> None:
    known = facts(copies=[COPY, replace(COPY, source="raw:2", is_deleted=True)])
    assert known.partitions == {("foo", 5): PartitionFacts(copies=(COPY,))}


def test_a_coordinator_has_its_copies_its_log_and_its_alarms() -> None:
    copy = replace(COPY, topic=TRANSACTION_STATE_TOPIC, partition=7)
    log = CoordinatorLog(partition=7, newest_coordinator_epoch=3, last_offset=80)
    alarms = [PartitionAlarm(name=name, topic=TRANSACTION_STATE_TOPIC, partition=7) for name in ("B", "A", "B")]
    (found,) = facts(copies=[copy, COPY], logs=[log, CoordinatorLog(partition=8)], alarms=alarms).coordinators
    assert (found.partition, found.copies, found.newest_coordinator_epoch, found.alarms) == (7, (copy,), 3, ("A", "B"))


def test_a_case_has_the_facts_of_its_partition_and_the_newest_block_of_its_producer_id() -> None:
    producer_id = DOSSIER.producer_id
    old = ProducerIdBlock(offset=3, allocated_at_ms=30, first_producer_id=0, last_producer_id=producer_id, broker_id=1)
    new = replace(old, offset=5, first_producer_id=producer_id, broker_id=2)
    other = replace(old, offset=9, first_producer_id=producer_id + 1, last_producer_id=producer_id + 9)
    known = facts(copies=[COPY], blocks=[other, new, old])
    spans = (SPAN, replace(SPAN, partition=6))
    here, elsewhere = (Case(dossier=DOSSIER, span=span, facts=known) for span in spans)
    assert (here.place.copies, here.block) == ((COPY,), new)
    assert (elsewhere.place.copies, elsewhere.block) == ((), new)


def test_the_lowest_truncated_offset_of_a_copy_counts() -> None:
    cut = tuple(TruncatedEpoch(leader_epoch=epoch, from_offset=offset) for epoch, offset in ((3, 60), (2, 40)))
    assert [replace(COPY, truncated=each).truncated_from for each in (cut, (), None)] == [40, None, None]
