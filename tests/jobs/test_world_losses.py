"""Losses behind clean elections, and what is younger than the records.

A replica that crashes while it is the only one in sync loses what its disk did not have; a topic that is made anew has
nothing of what was before. What held when the records were written counts, not what a note says of today.
"""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.audits import AuditTables
from tests.support.cluster import HOUR, MINUTE, TXN, Cluster, Copy, Place
from tests.support.metadata_log import MetadataLog
from tests.support.refutations import (
    END,
    NO_COMMIT,
    OF_4_1,
    Kit,
    Open,
    audits,
    cases,
    compacted,
    expect_of,
    kraft,
    left,
    one_leader,
    refuted,
    safe,
    tick,
    unsafe,
    with_metadata,
)
from tests.support.schedules import Expected, Schedule, Schedules, Story, Told

pytestmark = pytest.mark.shares("kits")

LOSSES = Schedules()
#: The answers of today that are not those expected.
OPEN: Open = {}


def brokers_of(s: Story) -> tuple[MetadataLog, int, int]:
    """The metadata log, and two brokers that no other schedule has."""
    log = s.c.metadata
    assert log is not None
    first, second = 100 + s.number, 300 + s.number
    for broker in (first, second):
        log.broker(broker, -6 * HOUR)
    log.block(s.pid + 1_000, -5 * HOUR)
    return log, first, second


def happens(log: MetadataLog, place: Place, brokers: tuple[int, int], what: str, at: int) -> int:
    """How many leader epochs it takes. The first broker leads before and after it."""
    (topic, partition), (first, second) = place, brokers
    if what in ("alone", "together"):
        isr = (first,) if what == "alone" else brokers
        log.change(topic, at, partition=partition, isr=isr)
        return 0
    if what == "without a leader":
        log.elect(topic, -1, at, partition=partition)
        log.elect(topic, first, at + MINUTE, partition=partition)
        return 2
    if what != "registered again":
        log.stop(first, at, is_controlled=what in ("shut down", "handed over"))
    if what in ("handed over", "crashed, followed"):
        log.elect(topic, second, at + 1, partition=partition, isr=(second,))
    else:
        log.elect(topic, -1, at + 1, partition=partition)
    log.start(first, at + MINUTE)
    back = at + MINUTE + 10
    if what in ("handed over", "crashed, followed"):
        log.change(topic, back, partition=partition, isr=brokers)
    log.elect(topic, first, back + 1, partition=partition)
    return 2


# ---- The only replica in sync of a partition


def of_partition(*events: tuple[str, int], replicas: int = 2, committed: bool = False) -> Schedule:
    """A batch at +1 min, and what happens to its partition, by minutes. `committed`: a COMMIT at +2 min has lost its
    marker. Compaction removed all but one record of the id, so nothing else tells."""

    def of(s: Story) -> Expected:
        log, first, second = brokers_of(s)
        log.topic(s.topic, 1, -5 * HOUR, leader=first, replicas=(first, second)[:replicas])
        s.note("Empty", -4 * HOUR, epoch=0)
        s.note("Empty", -3 * HOUR, epoch=1)
        led = 2 * sum(what == "crashed" and minute < 0 for what, minute in events)
        s.beat(0, leader_epoch=led)
        if committed:
            s.note("Ongoing", MINUTE - 5, [s.place], epoch=1)
        s.write(MINUTE, 1, leader_epoch=led)
        if committed:
            s.end(2 * MINUTE, start=MINUTE - 5, epoch=1, lost=[s.place])
        s.note("Empty", 25 * MINUTE, epoch=1)
        compacted(s)
        epoch = sum(happens(log, s.place, (first, second), what, minute * MINUTE) for what, minute in events)
        s.beat(100 * MINUTE, leader_epoch=epoch)
        s.copied(Copy(first, END))
        return unsafe(s, fails=NO_COMMIT) if committed else safe(s)

    return of


LOSSES |= {
    "the_only_one_in_sync_crashed": of_partition(("alone", 10), ("crashed", 15), committed=True),
    "the_only_one_in_sync_registered_again": of_partition(("alone", 10), ("registered again", 15), committed=True),
    "the_only_replica_crashed": of_partition(("crashed", 15), replicas=1, committed=True),
    "the_only_one_in_sync_crashed_before_its_partner_came_back": of_partition(
        ("alone", 10), ("crashed", 15), ("together", 20), committed=True
    ),
    "the_only_one_in_sync_crashed_and_was_handed_over_later": of_partition(
        ("alone", 10), ("crashed", 15), ("together", 20), ("handed over", 30), committed=True
    ),
    "the_only_one_in_sync_was_shut_down": of_partition(("alone", 10), ("shut down", 15)),
    "the_only_replica_was_shut_down": of_partition(("shut down", 15), replicas=1),
    "one_of_two_in_sync_crashed": of_partition(("crashed, followed", 15)),
    "one_of_two_in_sync_was_shut_down": of_partition(("handed over", 15)),
    "one_that_was_alone_before_crashed": of_partition(("alone", 10), ("together", 12), ("crashed, followed", 15)),
    "the_only_one_in_sync_crashed_before_the_batch": of_partition(("alone", -100), ("crashed", -90), ("together", -80)),
}


# ---- The only replica in sync of a coordinator


def moved(log: MetadataLog, name: str, partition: int, to: tuple[int, ...]) -> None:
    """A reassignment hours ago. It takes one leader epoch."""
    at, before = -4 * HOUR, (1, 2)
    log.change(name, at, partition=partition, replicas=(*before, *to), adding=to)
    log.change(name, at + 1, partition=partition, isr=(*before, *to))
    log.elect(name, to[0], at + 2, partition=partition, isr=to, replicas=to, adding=())


def of_coordinator(*events: tuple[str, int], elected: bool, is_safe: bool = False) -> Schedule:
    """What happens to the coordinator's partition, by minutes. If it is not safe, a transaction of +1 min has lost its
    records, and with them its COMMIT at +2 min. `elected`: leaders followed that of the batch."""

    def of(s: Story) -> Expected:
        log, first, second = brokers_of(s)
        log.topic(s.topic, 1, -5 * HOUR)
        moved(log, TXN, s.number, (first, second))
        s.coordinator(Copy(first, END))
        s.note("Empty", -3 * HOUR, leader_epoch=1)
        s.beat(0)
        s.write(MINUTE)
        number = (TXN, s.number)
        epoch = 1 + sum(happens(log, number, (first, second), what, minute * MINUTE) for what, minute in events)
        s.note("Empty", 25 * MINUTE, epoch=1, leader_epoch=epoch)
        if elected:
            log.elect(s.topic, 2, 90 * MINUTE)
            log.elect(s.topic, 1, 91 * MINUTE)
            s.beat(100 * MINUTE, leader_epoch=2)
        else:
            s.beat(100 * MINUTE)
            one_leader(s)
        return safe(s) if is_safe else refuted(s, fails=NO_COMMIT)

    return of


LOSSES |= {
    "the_only_coordinator_in_sync_crashed": of_coordinator(("alone", 10), ("crashed", 15), elected=True),
    "the_only_coordinator_in_sync_crashed_under_one_leader": of_coordinator(
        ("alone", 10), ("crashed", 15), elected=False
    ),
    "the_only_coordinator_in_sync_registered_again": of_coordinator(
        ("alone", 10), ("registered again", 15), elected=True
    ),
    "the_only_coordinator_in_sync_was_shut_down": of_coordinator(
        ("alone", 10), ("shut down", 15), elected=True, is_safe=True
    ),
    "one_of_two_coordinators_in_sync_crashed": of_coordinator(("crashed, followed", 15), elected=True, is_safe=True),
    "one_of_two_coordinators_in_sync_crashed_under_one_leader": of_coordinator(
        ("crashed, followed", 15), elected=False, is_safe=True
    ),
    "the_only_coordinator_in_sync_crashed_before_the_batch": of_coordinator(
        ("alone", -100), ("crashed", -90), ("together", -80), elected=True, is_safe=True
    ),
}


# ---- A replica that was being added, and was elected

ADDED, RECORDED = Schedules(), Schedules()


def added(how: str, *, is_safe: bool) -> Schedule:
    """A third replica is added. It is elected because it is in sync, because the reassignment ends, or though it is
    not in sync."""

    def of(s: Story) -> Expected:
        log, first, second = brokers_of(s)
        third, before = 500 + s.number, (first, second)
        log.broker(third, -6 * HOUR)
        log.topic(s.topic, 1, -5 * HOUR, leader=first, replicas=before)
        s.note("Empty", -4 * HOUR, epoch=0)
        s.note("Empty", -3 * HOUR, epoch=1)
        s.beat(0)
        if not is_safe:
            s.note("Ongoing", MINUTE - 5, [s.place], epoch=1)
        s.write(MINUTE, 1)
        if not is_safe:
            s.end(2 * MINUTE, start=MINUTE - 5, epoch=1, lost=[s.place])
        s.note("Empty", 25 * MINUTE, epoch=1)
        compacted(s)
        log.change(s.topic, 10 * MINUTE, replicas=(*before, third), adding=(third,))
        if how == "ended":
            log.change(s.topic, 12 * MINUTE, isr=(*before, third))
            log.elect(s.topic, third, 15 * MINUTE, isr=(third,), replicas=(third,), adding=())
        else:
            log.change(s.topic, 12 * MINUTE, isr=(first, third) if how == "in sync" else (first,))
            log.stop(first, 15 * MINUTE, is_controlled=True)
            recovering = {"is_recovering": True} if how == "recovering" else {}
            log.elect(s.topic, third, 15 * MINUTE + 1, isr=(third,), **recovering)
        s.beat(100 * MINUTE, leader_epoch=1)
        s.copied(Copy(third, END))
        return safe(s) if is_safe else unsafe(s, fails=NO_COMMIT)

    return of


ADDED |= {
    "added_and_elected_out_of_sync_before_recovery_was_recorded": added("out of sync", is_safe=False),
    "added_and_elected_in_sync": added("in sync", is_safe=True),
    "added_and_elected_when_its_reassignment_ended": added("ended", is_safe=True),
}
RECORDED |= {
    "added_and_elected_out_of_sync_which_is_recorded": added("recovering", is_safe=False),
    "added_and_elected_in_sync_where_recovery_is_recorded": added("in sync", is_safe=True),
    "added_when_its_reassignment_ended_where_recovery_is_recorded": added("ended", is_safe=True),
}


# ---- Coordinators whose topic was made anew, half an hour after the batch

ANEW = Schedules()
MADE_ANEW = 30 * MINUTE


def anew(coordinators: int) -> Cluster:
    """All that coordinators had decided before is gone."""
    c = kraft()(coordinators)
    assert c.metadata is not None
    c.metadata.remove(TXN, MADE_ANEW - 1)
    c.metadata.topic(TXN, coordinators, MADE_ANEW)
    return c


def before_coordinators(written: int, *, has_another: bool, is_safe: bool) -> Schedule:
    """Nobody's batch, under one leader; `has_another`: its application has another producer id since."""

    def of(s: Story) -> Expected:
        with_metadata(s)
        pid = s.pid if is_safe else s.pid + 700
        if has_another:
            s.note("Empty", MADE_ANEW + MINUTE)
        tick(s, written - 10, written + 10)
        s.c.write(s.place, pid, 0, written)
        s.beat(70 * MINUTE, 100 * MINUTE)
        one_leader(s)
        return s.expect("HANGING", or_verdict="" if is_safe else "UNKNOWN", is_safe=is_safe, pid=pid)

    return of


ANEW |= {
    "nobodys_batch_older_than_the_coordinators_topic": before_coordinators(MINUTE, has_another=False, is_safe=False),
    "batch_older_than_the_coordinators_topic_and_another_producer_id": before_coordinators(
        MINUTE, has_another=True, is_safe=False
    ),
    "batch_younger_than_the_coordinators_topic": before_coordinators(45 * MINUTE, has_another=True, is_safe=True),
}


@ANEW
def nobodys_older_than_the_coordinators_topic_behind_its_own_marker(s: Story) -> Expected:
    """A late write behind a COMMIT: what else its coordinator had decided is gone."""
    with_metadata(s)
    pid = s.pid + 700
    tick(s, 0)
    s.c.write(s.place, pid, 0, MINUTE)
    s.c.mark(s.place, pid, 0, "COMMIT", 2 * MINUTE)
    s.c.write(s.place, pid, 0, 3 * MINUTE)
    s.beat(70 * MINUTE, 100 * MINUTE)
    one_leader(s)
    return s.expect("HANGING", or_verdict="UNKNOWN", pid=pid)


# ---- Notes of today about yesterday


def nobodys(*, is_safe: bool) -> Schedule:
    """A batch that no coordinator knows, under one leader."""

    def of(s: Story) -> Expected:
        with_metadata(s)
        s.beat(0, 100 * MINUTE)
        s.c.write(s.place, s.pid + 700, 0, MINUTE)
        one_leader(s)
        return s.expect("HANGING", or_verdict="" if is_safe else "UNKNOWN", is_safe=is_safe, pid=s.pid + 700)

    return of


#: Brokers from 4.2 on complete a transaction without the marker of a partition that has no leader.
LEADERLESS = ("without a leader", 20)
NOTE_OF_3_9 = Schedules(
    {
        "older_epoch_under_a_note_of_3_9_beside_a_recorded_level_2": left(3, 9, is_safe=False),
        "same_epoch_under_a_note_of_3_9_beside_a_recorded_level_2": left(9, 9, is_safe=True),
        "nobodys_under_a_note_of_3_9_beside_a_recorded_level_2": nobodys(is_safe=False),
        "without_a_leader_under_a_note_of_3_9_beside_a_recorded_level_2": of_partition(LEADERLESS, committed=True),
    }
)
LOWERED = Schedules(
    {
        "older_epoch_under_a_note_of_3_9_beside_a_level_lowered_since": left(3, 9, is_safe=False),
        "nobodys_under_a_note_of_3_9_beside_a_level_lowered_since": nobodys(is_safe=False),
        "without_a_leader_under_a_note_of_3_9_beside_a_level_lowered_since": of_partition(LEADERLESS, committed=True),
    }
)
LEVEL_OF_TODAY = Schedules(
    {
        "older_epoch_under_a_note_of_the_level_of_today": left(3, 9, is_safe=False),
        "nobodys_under_a_note_of_the_level_of_today": nobodys(is_safe=False),
        "same_epoch_under_a_note_of_the_level_of_today": left(9, 9, is_safe=True),
    }
)
ALWAYS_BELOW = Schedules(
    {
        "older_epoch_under_a_level_that_was_always_below_2": left(3, 9, is_safe=True),
        "nobodys_under_a_level_that_was_always_below_2": nobodys(is_safe=True),
        "without_a_leader_under_brokers_of_4_1": of_partition(LEADERLESS),
    }
)
OF_TODAY: dict[str, Any] = OF_4_1 | {"transaction_version": 1}

KITS = {
    "losses": Kit(LOSSES, notes=OF_4_1, cluster=kraft()),
    "added": Kit(ADDED, cluster=kraft((), None)),
    "recorded": Kit(RECORDED, notes=OF_4_1, cluster=kraft()),
    "anew": Kit(ANEW, notes=OF_4_1, cluster=anew),
    "note of 3.9": Kit(NOTE_OF_3_9, cluster=kraft(((2, -5 * HOUR),))),
    "note of 3.9, lowered": Kit(LOWERED, cluster=kraft(((2, -5 * HOUR), (1, 10 * MINUTE)))),
    "level of today": Kit(LEVEL_OF_TODAY, notes=OF_TODAY),
    "always below": Kit(ALWAYS_BELOW, notes=OF_TODAY, cluster=kraft()),
}


@pytest.fixture(scope="session")
def audit_of(tmp_path_factory) -> Callable[[str], tuple[AuditTables, Told]]:
    return audits(KITS, tmp_path_factory)


@pytest.mark.parametrize(("kit", "name"), cases(KITS))
def test_what_may_be_lost_or_never_was_there_proves_nothing(audit_of, kit, name):
    tables, told = audit_of(kit)
    expect_of(tables, told, name, OPEN)
