"""Elections as the metadata log tells them: of eligible leader replicas, of a leader that still recovers, of clocks.

Each schedule hides what the coordinator decided (compaction left one record of the id), so that only the history of the
leaders tells whether a marker was lost; or it hides nothing, and that history is none of its concern.
"""

from collections.abc import Callable

import pytest

from tests.support.audits import AuditTables
from tests.support.cluster import HOUR, MINUTE, TXN, Copy
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
    one_leader,
    refuted,
    safe,
    unsafe,
)
from tests.support.schedules import Expected, Schedule, Schedules, Story, Told

pytestmark = pytest.mark.shares("kits")

ELECTED, BEFORE_3_3 = Schedules(), Schedules()
#: The answers of today that are not those expected.
OPEN: Open = {}
Brokers = tuple[int, int]


def brokers_of(s: Story) -> tuple[MetadataLog, Brokers]:
    """The metadata log, and two brokers that no other schedule has."""
    log, brokers = s.c.metadata, (100 + s.number, 300 + s.number)
    assert log is not None
    for broker in brokers:
        log.broker(broker, -6 * HOUR)
    log.block(s.pid + 1_000, -5 * HOUR)
    return log, brokers


#: What happens to a partition from an instant on, by the broker that leads it in the end: that broker, and how many
#: leader epochs it takes.
Happens = Callable[[MetadataLog, str, Brokers, int], tuple[int, int]]


def hidden(happens: Happens, *, committed: bool, led: int = 0) -> Schedule:
    """A batch at +1 min, in a leader epoch. `committed`: a COMMIT at +2 min has lost its marker by what happens then,
    and every record of it was cleaned."""

    def of(s: Story) -> Expected:
        log, (first, second) = brokers_of(s)
        log.topic(s.topic, 1, -5 * HOUR, leader=first, replicas=(first, second))
        s.note("Empty", -4 * HOUR, epoch=0)
        s.note("Empty", -3 * HOUR, epoch=1)
        s.beat(0, leader_epoch=led)
        if committed:
            s.note("Ongoing", MINUTE - 5, [s.place], epoch=1)
        s.write(MINUTE, 1, leader_epoch=led)
        if committed:
            s.end(2 * MINUTE, start=MINUTE - 5, epoch=1, lost=[s.place])
        s.note("Empty", 25 * MINUTE, epoch=1)
        compacted(s)
        leader, epochs = happens(log, s.topic, (first, second), 10 * MINUTE)
        s.beat(100 * MINUTE, leader_epoch=epochs)
        s.copied(Copy(leader, END))
        return unsafe(s, fails=NO_COMMIT) if committed else safe(s)

    return of


# ---- Eligible leader replicas


def both_shut_down(log: MetadataLog, topic: str, brokers: Brokers, at: int) -> tuple[int, int]:
    """min.insync.replicas is 2: the second one has all that the first one could acknowledge. Kafka:
    `PartitionChangeBuilder.isValidNewLeader`."""
    first, second = brokers
    log.stop(second, at, is_controlled=True)
    log.change(topic, at + 1, isr=(first,), eligible=(second,))
    log.stop(first, at + MINUTE, is_controlled=True)
    log.elect(topic, -1, at + MINUTE + 1, isr=(), eligible=(second, first), last_known=(first,))
    log.start(second, at + 2 * MINUTE)
    log.elect(topic, second, at + 2 * MINUTE + 10, isr=(second,), eligible=(first,), last_known=())
    log.start(first, at + 3 * MINUTE)
    log.change(topic, at + 3 * MINUTE + 10, isr=(second, first), eligible=())
    return second, 2


def power_lost_while_shutting_down(log: MetadataLog, topic: str, brokers: Brokers, at: int) -> tuple[int, int]:
    """The only one in sync began to shut down, and lost its power: it registers without the broker epoch of a clean
    end, so it is no longer eligible, and is elected as the last known leader. Kafka:
    `ReplicationControlManager.handleUncleanBrokerShutdown`, `PartitionChangeBuilder.canElectLastKnownLeader`."""
    first, _ = brokers
    log.change(topic, at, isr=(first,))
    log.stop(first, at + MINUTE, is_controlled=True)
    log.elect(topic, -1, at + MINUTE + 1, isr=(), eligible=(first,), last_known=(first,))
    log.start(first, at + 2 * MINUTE)
    log.change(topic, at + 2 * MINUTE, eligible=())
    log.elect(topic, first, at + 2 * MINUTE + 10, isr=(first,), last_known=(), is_recovering=True)
    return first, 2


def power_lost_while_recovering(log: MetadataLog, topic: str, brokers: Brokers, at: int) -> tuple[int, int]:
    """The same, of a partition that still recovers: its election does not say so again. Kafka:
    `PartitionChangeBuilder.tryElection`."""
    first, _ = brokers
    log.elect(topic, first, -4 * HOUR, isr=(first,), is_recovering=True)
    log.stop(first, at + MINUTE, is_controlled=True)
    log.elect(topic, -1, at + MINUTE + 1, isr=(), eligible=(first,), last_known=(first,))
    log.start(first, at + 2 * MINUTE)
    log.change(topic, at + 2 * MINUTE, eligible=())
    log.elect(topic, first, at + 2 * MINUTE + 10, isr=(first,), last_known=())
    return first, 3


def eligible_and_back(log: MetadataLog, topic: str, brokers: Brokers, at: int) -> tuple[int, int]:
    """The only one in sync shut down, stayed eligible, and leads again."""
    first, second = brokers
    log.change(topic, at, isr=(first,))
    log.stop(first, at + MINUTE, is_controlled=True)
    log.elect(topic, -1, at + MINUTE + 1, isr=(), eligible=(first,), last_known=(first,))
    log.start(first, at + 2 * MINUTE)
    log.elect(topic, first, at + 2 * MINUTE + 10, isr=(first,), eligible=(), last_known=())
    log.change(topic, at + 3 * MINUTE, isr=(first, second))
    return first, 2


# ---- A leader that still recovers, and another unclean election


def unclean_twice(log: MetadataLog, topic: str, brokers: Brokers, at: int) -> tuple[int, int]:
    """The second partner came back, and was not in sync yet when the leader of an unclean election shut down. What is
    recovering is not marked so again. Kafka: `PartitionChangeBuilder.tryElection`."""
    first, second = brokers
    log.elect(topic, first, -4 * HOUR, isr=(first,), is_recovering=True)
    log.stop(first, at, is_controlled=True)
    log.elect(topic, second, at + 1, isr=(second,))
    return second, 2


def unclean_and_recovered(log: MetadataLog, topic: str, brokers: Brokers, at: int) -> tuple[int, int]:
    """Its partner was in sync before the leader shut down: the leader told so, and that it recovered. Kafka:
    `Partition.makeLeader`, `ReplicationControlManager.alterPartition`."""
    first, second = brokers
    log.elect(topic, first, -4 * HOUR, isr=(first,), is_recovering=True)
    log.change(topic, -3 * HOUR, isr=(first, second), is_recovering=False)
    log.stop(first, at, is_controlled=True)
    log.elect(topic, second, at + 1, isr=(second,))
    return second, 2


# ---- Nothing is lost


def shrunk(log: MetadataLog, topic: str, brokers: Brokers, at: int) -> tuple[int, int]:
    """Before metadata.version 3.6, the leader epoch rises whenever a follower leaves. Kafka:
    `PartitionChangeBuilder.triggerLeaderEpochBumpForIsrShrinkIfNeeded`."""
    first, second = brokers
    for minute in (0, 2, 4):
        log.elect(topic, first, at + minute * MINUTE, isr=(first,))
        log.change(topic, at + (minute + 1) * MINUTE, isr=(first, second))
    return first, 3


def restarted_in_turn(log: MetadataLog, topic: str, brokers: Brokers, at: int) -> tuple[int, int]:
    """A rolling restart, and the preferred leader again."""
    first, second = brokers
    for n, (stops, stays) in enumerate(((first, second), (second, first))):
        when = at + 4 * n * MINUTE
        log.stop(stops, when, is_controlled=True)
        log.elect(topic, stays, when + 1, isr=(stays,))
        log.start(stops, when + MINUTE)
        log.change(topic, when + 2 * MINUTE, isr=(first, second))
    return first, 2


ELECTED |= {
    "elected_from_the_eligible": hidden(both_shut_down, committed=False),
    "eligible_and_leader_again": hidden(eligible_and_back, committed=False),
    "last_known_leader_whose_shutdown_lost_its_power": hidden(power_lost_while_shutting_down, committed=True),
    "last_known_leader_of_a_partition_that_still_recovers": hidden(power_lost_while_recovering, committed=True, led=1),
    "unclean_while_it_still_recovers": hidden(unclean_twice, committed=True, led=1),
    "clean_since_it_recovered": hidden(unclean_and_recovered, committed=False, led=1),
    "epochs_of_followers_that_left": hidden(shrunk, committed=False),
    "rolling_restart": hidden(restarted_in_turn, committed=False),
}


# ---- Fenced as before metadata.version 3.3


def fenced(*, alone: bool) -> Happens:
    def of(log: MetadataLog, topic: str, brokers: Brokers, at: int) -> tuple[int, int]:
        first, second = brokers
        if alone:
            log.change(topic, at, isr=(first,))
        log.fence(first, at + MINUTE)
        log.elect(topic, -1 if alone else second, at + MINUTE + 1, isr=None if alone else (second,))
        log.broker(first, at + 2 * MINUTE, is_fenced=True)
        log.fence(first, at + 2 * MINUTE + 1, is_over=True)
        if not alone:
            log.change(topic, at + 3 * MINUTE, isr=brokers)
        log.elect(topic, first, at + 3 * MINUTE + 1)
        return first, 2

    return of


BEFORE_3_3 |= {
    "the_only_one_in_sync_was_fenced": hidden(fenced(alone=True), committed=True),
    "one_of_two_in_sync_was_fenced": hidden(fenced(alone=False), committed=False),
}


# ---- The controller's clock


def coordinator_elected(at: int, *, is_safe: bool) -> Schedule:
    """An unclean election of the coordinator, by the controller's clock. Clocks that nothing compares may differ by
    five minutes."""

    def of(s: Story) -> Expected:
        log, _ = brokers_of(s)
        log.topic(s.topic, 1, -5 * HOUR)
        s.note("Empty", -3 * HOUR)
        s.beat(0)
        s.write(MINUTE)
        log.elect(TXN, 2, at, partition=s.number, isr=(2,), is_recovering=True)
        s.coordinator(Copy(2, END))
        s.note("Empty", 25 * MINUTE, epoch=1, leader_epoch=1)
        s.beat(100 * MINUTE)
        one_leader(s)
        return safe(s) if is_safe else refuted(s, fails=NO_COMMIT)

    return of


ELECTED |= {
    "coordinator_elected_two_minutes_before_the_batch": coordinator_elected(-1 * MINUTE, is_safe=False),
    "coordinator_elected_half_an_hour_before_the_batch": coordinator_elected(-30 * MINUTE, is_safe=True),
}


@ELECTED
def unclean_elections_of_others(s: Story) -> Expected:
    """Of the topic's other partition, and of another coordinator."""
    log, (first, second) = brokers_of(s)
    log.topic(s.topic, 2, -5 * HOUR, leader=first, replicas=(first, second))
    log.elect(s.topic, second, 12 * MINUTE, partition=1, isr=(second,), is_recovering=True)
    log.elect(TXN, 2, 12 * MINUTE, partition=48, isr=(2,), is_recovering=True)
    s.note("Empty", -3 * HOUR)
    s.beat(0)
    s.late_write(3 * MINUTE, "ABORT")
    s.beat(100 * MINUTE)
    s.copied(Copy(first, END, leader_epochs=((0, 0),)))
    s.c.copies[TXN, 48] = [Copy(2, END)]
    return safe(s)


# ---- A disk

DISKS = Schedules()


@DISKS
def disk_of_a_coordinator_that_was_alone_in_sync(s: Story) -> Expected:
    """The disk of the only one in sync fails, while its broker goes on; it restarts with a new disk, and leads an empty
    log. What was prepared at +2 min is gone. Kafka since 3.7: `ReplicationControlManager.handleDirectoriesOffline`,
    `LogManager.getOrCreateLog`."""
    log, brokers = brokers_of(s)
    first, _ = brokers
    number = s.number
    log.topic(s.topic, 1, -5 * HOUR)
    log.change(TXN, -4 * HOUR, partition=number, replicas=brokers, isr=brokers)
    log.elect(TXN, first, -4 * HOUR + 1, partition=number, isr=(first,))
    s.beat(0)
    s.write(MINUTE)
    failed = 2 * MINUTE + 10
    log.loses_directory(first, failed)
    log.elect(TXN, -1, failed + 1, partition=number)
    log.stop(first, 20 * MINUTE, is_controlled=True)
    log.start(first, 21 * MINUTE)
    log.elect(TXN, first, 22 * MINUTE, partition=number)
    s.c.note(s.id, "Empty", s.pid + 1, 0, (), 26 * MINUTE, leader_epoch=3)
    s.coordinator(Copy(first, END, leader_epochs=((3, 0),)))
    s.beat(100 * MINUTE)
    one_leader(s)
    return refuted(s)


KITS = {
    "elected": Kit(ELECTED, notes=OF_4_1, cluster=kraft()),
    "disks": Kit(DISKS, notes=OF_4_1, cluster=kraft(), beside="no other loss"),
    "before 3.3": Kit(BEFORE_3_3, notes={"kafka_version": "3.2.3"}, cluster=kraft((), None)),
}


@pytest.fixture(scope="session")
def audit_of(tmp_path_factory) -> Callable[[str], tuple[AuditTables, Told]]:
    return audits(KITS, tmp_path_factory)


@pytest.mark.parametrize(("kit", "name"), cases(KITS))
def test_an_election_loses_what_its_leader_lacked(audit_of, kit, name):
    tables, told = audit_of(kit)
    expect_of(tables, told, name, OPEN)
