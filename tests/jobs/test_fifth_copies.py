"""COMMITs of other partitions that only another copy has.

An election truncated it, a follower has it, or its topic was made again since. More of
tests/jobs/test_world_histories.py.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.support.audits import AuditTables
from tests.support.cluster import MINUTE, NOON, SECOND, Copy, Entry
from tests.support.refutations import END, Kit, Open, audits, cases, expect_of, other, refuted, safe, tick
from tests.support.schedules import Expected, Schedule, Schedules, Story, Told
from txnlib.core.kafka.transaction_log import TransactionLogEntry
from txnlib.core.kafka.transaction_state import TransactionState
from txnlib.core.rows import TopicPartition

pytestmark = pytest.mark.shares("kits")

ALL = Schedules()
#: The answers of today that are not those expected.
OPEN: Open = {}


OLD, NEW = "AAAAAAAAAAAAAAAAAAAAAA", "BBBBBBBBBBBBBBBBBBBBBB"


def commit_in_another_copy(how: str, *, is_safe: bool = False) -> Schedule:
    """The coordinator lost its tail: a transaction, with its COMMIT. That reached the other partition, of which the
    leader's copy does not show it: an election truncated it, or the copy is older than that of a follower."""

    def of(s: Story) -> Expected:
        elsewhere = (s.topic, 1)
        s.note("Empty", 0)
        s.beat(0)
        s.beat(0, partition=1)
        s.write(MINUTE)
        s.c.write(elsewhere, s.pid, 0, MINUTE)
        held = len(s.c.logs[elsewhere])
        mark = Entry(at=2 * MINUTE, producer_id=s.pid, producer_epoch=0, marker="COMMIT", stamp=2 * MINUTE)
        mark = replace(mark, offset=held)
        s.c.note(other(s), "Empty", 900_000 + s.number, 0, (), 12 * MINUTE, leader_epoch=1)
        s.beat(100 * MINUTE, leader_epoch=1)
        own = () if is_safe else (mark,)
        if how == "truncated":
            s.beat(100 * MINUTE, partition=1, leader_epoch=1)
        s.c.copies[elsewhere] = [Copy(1, END), Copy(3, 2 * MINUTE, own=own, high_watermark=held, taken=END)]
        if how == "longer":
            s.c.leaders[elsewhere] = None
        if how == "made again":
            older, newer = s.c.copies[elsewhere][1], Copy(1, END, keep=lambda e: False, high_watermark=0)
            s.c.copies[elsewhere] = [replace(newer, topic_id=NEW), replace(older, topic_id=OLD)]
        return safe(s) if is_safe else refuted(s)

    return of


ALL |= {
    "commit_elsewhere_that_an_election_truncated": commit_in_another_copy("truncated"),
    "commit_elsewhere_in_the_longer_copy_of_a_follower": commit_in_another_copy("longer"),
    "commit_elsewhere_in_a_topic_that_was_made_again": commit_in_another_copy("made again"),
    "no_commit_elsewhere_in_a_topic_that_was_made_again": commit_in_another_copy("made again", is_safe=True),
    "no_commit_elsewhere_in_a_copy_that_was_truncated": commit_in_another_copy("truncated", is_safe=True),
}


def commit_of_another_id(*, is_safe: bool) -> Schedule:
    """The same, of another id of the coordinator: its transaction and its COMMIT are lost."""

    def of(s: Story) -> Expected:
        elsewhere, pid = (s.topic, 1), 930_000 + s.number
        s.note("Empty", 0)
        s.c.note(other(s, "lost"), "Empty", pid, 0, (), 1)
        s.beat(0)
        s.beat(0, partition=1)
        s.write(MINUTE)
        s.c.write(elsewhere, pid, 0, MINUTE)
        held = len(s.c.logs[elsewhere])
        mark = Entry(at=2 * MINUTE, offset=held, producer_id=pid, producer_epoch=0, marker="COMMIT", stamp=2 * MINUTE)
        s.c.note(other(s), "Empty", 900_000 + s.number, 0, (), 12 * MINUTE, leader_epoch=1)
        s.beat(100 * MINUTE, leader_epoch=1)
        s.beat(100 * MINUTE, partition=1, leader_epoch=1)
        own = () if is_safe else (mark,)
        s.c.copies[elsewhere] = [Copy(1, END), Copy(3, 2 * MINUTE, own=own, high_watermark=held, taken=END)]
        return safe(s) if is_safe else refuted(s)

    return of


ALL |= {
    "commit_of_another_id_that_an_election_truncated": commit_of_another_id(is_safe=False),
    "no_commit_of_another_id_in_a_copy_that_was_truncated": commit_of_another_id(is_safe=True),
}


@ALL
def commit_elsewhere_in_a_topic_that_was_made_again_and_its_record(s: Story) -> Expected:
    """Its decision is there."""
    elsewhere = (s.topic, 1)
    s.note("Empty", 0)
    s.beat(0)
    s.begin(MINUTE, [s.place, elsewhere])
    s.end(2 * MINUTE, start=MINUTE, places=[s.place, elsewhere])
    s.write(3 * MINUTE)
    s.beat(100 * MINUTE)
    newer = Copy(1, END, keep=lambda e: False, high_watermark=0, topic_id=NEW)
    s.c.copies[elsewhere] = [newer, Copy(3, 2 * MINUTE + SECOND, taken=END, topic_id=OLD)]
    return safe(s)


@ALL
def commit_elsewhere_that_was_sent_again_to_the_next_leader(s: Story) -> Expected:
    """Its leader died before a follower had the marker: nothing was acknowledged, and nothing is lost."""
    elsewhere = (s.topic, 1)
    s.note("Empty", 0)
    s.beat(0)
    s.beat(0, partition=1)
    s.begin(MINUTE, [s.place, elsewhere])
    held = len(s.c.logs[elsewhere])
    s.note("PrepareCommit", 2 * MINUTE, [s.place, elsewhere], start=MINUTE)
    s.c.mark(s.place, s.pid, 0, "COMMIT", 2 * MINUTE + 10)
    at = 2 * MINUTE + 10
    mark = Entry(at=at, offset=held, producer_id=s.pid, producer_epoch=0, marker="COMMIT", stamp=at)
    s.c.mark(elsewhere, s.pid, 0, "COMMIT", 2 * MINUTE + 20 * SECOND, leader_epoch=1)
    s.note("CompleteCommit", 2 * MINUTE + 20 * SECOND + 10, start=MINUTE)
    s.write(3 * MINUTE)
    s.beat(100 * MINUTE, partition=1, leader_epoch=1)
    s.beat(100 * MINUTE)
    s.c.copies[elsewhere] = [Copy(1, END), Copy(3, 2 * MINUTE, own=(mark,), high_watermark=held, taken=END)]
    return safe(s)


# ---- What a coordinator wrote in its last seconds


def prepared_and_died(*, seconds: int, is_safe: bool, another: bool = False, is_decided: bool = True) -> Schedule:
    """The coordinator prepared a COMMIT, alone in sync, told its client, and died some seconds later; an uncleanly
    elected one follows. A broker notes high watermarks every five seconds only: that of its disk may be older than the
    decision. Kafka: `ReplicaManager.checkpointHighWatermarks`, replica.high.watermark.checkpoint.interval.ms."""

    def of(s: Story) -> Expected:
        s.note("Empty", 0)
        s.beat(0)
        s.beat(0, partition=1)
        s.write(MINUTE)
        s.c.note(other(s), "Empty", 900_000 + s.number, 0, (), 12 * MINUTE, leader_epoch=1)
        s.beat(100 * MINUTE, leader_epoch=1)
        at, key, pid = 2 * MINUTE, s.id, s.pid
        if another:
            key, pid = other(s, "died"), 930_000 + s.number
        own = tuple(
            Entry(at=at, offset=1 + n, key=key, value=value_of(s, key, pid, state, at), stamp=at)
            for n, state in enumerate((TransactionState.ONGOING, TransactionState.PREPARE_COMMIT)[: 1 + is_decided])
        )
        broker, died = 100 + s.number, at + seconds * SECOND
        # Another partition of its broker shows until when it lived.
        tick(s, died, partition=1)
        s.c.copies[s.topic, 1] = [Copy(1, END), Copy(broker, died + 1, taken=END)]
        s.coordinator(Copy(1, END), Copy(broker, died, taken=END, own=own, high_watermark=1))
        return safe(s) if is_safe else refuted(s)

    return of


def value_of(s: Story, key: str, pid: int, state: TransactionState, at: int) -> TransactionLogEntry:
    return TransactionLogEntry(
        transactional_id=key, producer_id=pid, producer_epoch=0, transaction_state=state, version=0,
        transaction_partitions=(TopicPartition(*s.place),), transaction_timeout_ms=60_000,
        last_update_timestamp_ms=NOON + at, start_timestamp_ms=NOON + MINUTE - 5,
    )  # fmt: skip


ALL |= {
    "prepared_a_second_before_its_broker_died": prepared_and_died(seconds=1, is_safe=False),
    "prepared_by_another_id_a_second_before_its_broker_died": prepared_and_died(seconds=1, another=True, is_safe=False),
    "begun_by_another_id_a_second_before_its_broker_died": prepared_and_died(
        seconds=1, another=True, is_decided=False, is_safe=True
    ),
    "prepared_minutes_before_its_broker_died": prepared_and_died(seconds=300, is_safe=True),
}


KITS = {"all": Kit(ALL)}


@pytest.fixture(scope="session")
def audit_of(tmp_path_factory) -> Callable[[str], tuple[AuditTables, Told]]:
    return audits(KITS, tmp_path_factory)


@pytest.mark.parametrize(("kit", "name"), cases(KITS))
def test_a_commit_is_heard_wherever_it_is(audit_of, kit, name):
    tables, told = audit_of(kit)
    expect_of(tables, told, name, OPEN)
