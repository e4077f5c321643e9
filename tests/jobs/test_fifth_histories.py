"""Histories without a metadata log: what a coordinator will still end, what lies beside it, and honest ones."""

from collections.abc import Callable

import pytest

from tests.support.audits import AuditTables
from tests.support.cluster import MINUTE, NOON, SECOND, Copy, id_in
from tests.support.log_bytes import encode_snapshot
from tests.support.refutations import (
    END,
    Kit,
    Open,
    audits,
    cases,
    expect_of,
    other,
    refuted,
    safe,
    tick,
)
from tests.support.schedule_text import schedules_of
from tests.support.schedules import Expected, Schedule, Schedules, Story, Told
from txnlib.core.kafka.producer_state import ProducerState

pytestmark = pytest.mark.shares("kits")

ALL = Schedules()
#: The answers of today that are not those expected.
OPEN: Open = {}


# ---- What its coordinator will end


def by_hand_and_prepared(kind: str, *, after: int, another_clock: bool) -> Schedule:
    """An ABORT by hand, more of the same transaction, and its end, whose marker is not yet written."""

    def of(s: Story) -> Expected:
        if another_clock:
            s.c.leaders[s.place] = 2
            s.copied(Copy(2, END))
        s.note("Empty", 0)
        s.beat(0)
        s.begin(MINUTE)
        s.c.mark(s.place, s.pid, 0, "ABORT", 5 * MINUTE)
        s.write(5 * MINUTE + SECOND)
        s.end(5 * MINUTE + after, kind, start=MINUTE, lost=[s.place], complete=False)
        s.beat(100 * MINUTE)
        return s.expect("STUCK", or_verdict="UNKNOWN")

    return of


ALL |= {
    "by_hand_and_prepared_to_abort": by_hand_and_prepared("ABORT", after=10 * SECOND, another_clock=False),
    "by_hand_and_prepared_to_abort_by_another_clock": by_hand_and_prepared(
        "ABORT", after=10 * SECOND, another_clock=True
    ),
    "by_hand_and_prepared_to_commit": by_hand_and_prepared("COMMIT", after=10 * SECOND, another_clock=True),
}


@ALL
def late_repeat_and_the_next_one_prepared(s: Story) -> Expected:
    """The marker of the first transaction came once more in the second one, which is prepared, and not yet marked."""
    s.c.leaders[s.place] = 2
    s.copied(Copy(2, END))
    s.note("Empty", 0)
    s.beat(0)
    s.transaction(MINUTE)
    s.begin(2 * MINUTE)
    s.c.mark(s.place, s.pid, 0, "COMMIT", 2 * MINUTE + 5 * SECOND)
    s.write(2 * MINUTE + 6 * SECOND)
    s.end(2 * MINUTE + 8 * SECOND, start=2 * MINUTE, lost=[s.place], complete=False)
    s.beat(100 * MINUTE)
    return s.expect("STUCK", or_verdict="UNKNOWN")


@ALL
def repeat_of_an_older_coordinator_and_the_next_one_prepared(s: Story) -> Expected:
    """The same; another coordinator prepared the second one, so its marker has that one's epoch."""
    s.c.leaders[s.place] = 2
    s.copied(Copy(2, END))
    s.note("Empty", 0)
    s.beat(0)
    s.transaction(MINUTE)
    s.begin(2 * MINUTE, leader_epoch=1)
    s.c.mark(s.place, s.pid, 0, "COMMIT", 2 * MINUTE + 5 * SECOND)
    s.write(2 * MINUTE + 6 * SECOND)
    s.end(2 * MINUTE + 4 * SECOND, start=2 * MINUTE, lost=[s.place], complete=False, leader_epoch=1)
    s.beat(100 * MINUTE)
    return s.expect("STUCK", or_verdict="UNKNOWN")


ALL |= schedules_of("""
    # A leftover of epoch 0, and the id, restarted, has a transaction here: its end closes both.
    absorbed_by_a_transaction_of_the_next_epoch:
        Empty 0 | beat 0 | T 1m ABORT | write 3m | Empty 20m epoch=1 | Ongoing 3h-20s epoch=1 |
        write 3h-20s+5ms epoch=1 | beat 100m → LATE or OPEN
""")


# ---- What its coordinator will end, behind what was cleaned


def prepared_behind_what_was_cleaned(kind: str, *, is_compared: bool) -> Schedule:
    """A whole transaction, of which every record was cleaned, and the next one, which is prepared: the marker here is
    that of the first. `is_compared`: whether pairs show the difference of the two clocks."""

    def of(s: Story) -> Expected:
        broker = 100 + s.number
        s.c.leaders[s.place] = broker
        s.note("Empty", 0)
        tick(s, 0)
        s.transaction(MINUTE, kind)
        if is_compared:
            s.beat(50 * SECOND, 80 * SECOND)
        s.begin(90 * SECOND)
        for at in (110, 130):
            s.c.note(other(s), "Empty", 900_000 + s.number, at, (), at * SECOND)
        s.end(3 * MINUTE, kind, start=90 * SECOND, lost=[s.place], complete=False)
        tick(s, 100 * MINUTE)
        s.copied(Copy(broker, END))
        s.coordinator(Copy(1, END, keep=lambda entry: entry.key != s.id or entry.at >= 90 * SECOND))
        return s.expect("STUCK", or_verdict="UNKNOWN")

    return of


ALL |= {
    "prepared_to_commit_behind_a_commit_that_was_cleaned": prepared_behind_what_was_cleaned(
        "COMMIT", is_compared=False
    ),
    "prepared_to_abort_behind_an_abort_that_was_cleaned": prepared_behind_what_was_cleaned("ABORT", is_compared=False),
    "prepared_to_commit_behind_a_commit_that_was_cleaned_by_compared_clocks": prepared_behind_what_was_cleaned(
        "COMMIT", is_compared=True
    ),
}


# ---- What lies beside


def state(epoch: int, coordinator_epoch: int, at: int) -> ProducerState:
    return ProducerState(
        producer_epoch=epoch, last_sequence=-1, last_offset=-1, offset_delta=0, last_timestamp=NOON + at,
        coordinator_epoch=coordinator_epoch, current_txn_first_offset=None,
    )  # fmt: skip


def snapshot_elsewhere(epoch: int, coordinator_epoch: int, *, is_safe: bool = False) -> Schedule:
    """The coordinator lost a transaction of another partition and of this one, with its leader epoch. Of the other
    one only a producer snapshot was captured: its marker is in it."""

    def of(s: Story) -> Expected:
        s.note("Empty", 0)
        s.beat(0)
        s.write(MINUTE)
        s.c.note(other(s), "Empty", 900_000 + s.number, 0, (), 12 * MINUTE, leader_epoch=2)
        s.beat(100 * MINUTE, leader_epoch=1)
        s.c.write((s.topic, 1), s.pid, 0, MINUTE)
        snapshots = {3: encode_snapshot({s.pid: state(epoch, coordinator_epoch, 2 * MINUTE)})}
        s.c.copies[s.topic, 1] = [Copy(1, END, has_log=False, is_checkpointed=False, snapshots=snapshots)]
        return safe(s) if is_safe else refuted(s)

    return of


ALL |= {
    "snapshot_elsewhere_with_a_coordinator_epoch_that_the_log_lacks": snapshot_elsewhere(0, 1),
    "snapshot_elsewhere_with_a_producer_epoch_that_no_record_has": snapshot_elsewhere(1, 0),
    "snapshot_elsewhere_that_agrees": snapshot_elsewhere(0, -1, is_safe=True),
}


def followers_epochs(*epochs: tuple[int, int], is_safe: bool = False) -> Schedule:
    """A follower's leader-epoch-checkpoint of the coordinator: leader epoch 1 wrote what no log has any more."""

    def of(s: Story) -> Expected:
        s.note("Empty", 0)
        s.beat(0)
        s.write(MINUTE)
        for at, led in ((10, 0), (12, 0), (20, 2), (21, 2)):
            s.c.note(other(s), "Empty", 900_000 + s.number, at, (), at * MINUTE, leader_epoch=led)
        beside = Copy(2, END, has_log=False, is_checkpointed=False, leader_epochs=epochs)
        s.coordinator(Copy(1, END, leader_epochs=((0, 0), (2, 3))), beside)
        s.beat(100 * MINUTE, leader_epoch=1)
        return safe(s) if is_safe else refuted(s)

    return of


ALL |= {
    "coordinators_epoch_of_a_follower_that_its_log_lacks": followers_epochs((0, 0), (1, 2)),
    "coordinators_epochs_of_a_follower_that_agree": followers_epochs((0, 0), (2, 3), is_safe=True),
}


# ---- Honest ones


def honest(of: Schedule) -> Schedule:
    """Open since an hour and more, between honest clocks; the coordinator's log is whole."""

    def schedule(s: Story) -> Expected:
        s.note("Empty", 0)
        s.beat(0)
        told = of(s)
        s.beat(100 * MINUTE)
        return told or safe(s)

    ALL[of.__name__] = schedule
    return schedule


ALL |= schedules_of("""
    # The application restarted three times; the oldest instance wrote once more, where no marker had fenced it.
    zombie_of_an_older_epoch:
        Empty 0 | beat 0 | Empty 1m epoch=1 | Empty 2m epoch=2 | Empty 3m epoch=3 | write 10m | beat 100m → safe

    # A client that wrote to a partition that it had not added.
    never_added:
        Empty 0 | beat 0 | begin 1m on 1 | write 1m+10ms | end 2m on 1 | beat 100m → safe
    never_added_and_timed_out:
        Empty 0 | beat 0 | begin 1m on 1 | write 1m+10ms | end 3m ABORT on 1 marker_epoch=1 | beat 100m → safe

    by_hand_before_and_late_again:
        Empty 0 | beat 0 | T 1m ABORT | write 3m | ABORT 20m | write 30m | one leader | beat 100m → safe

    # A failover between the decision and its completion: all markers were sent again. Then a late write.
    completed_by_the_next_coordinator:
        Empty 0 | beat 0 | begin 1m | PrepareCommit 2m | COMMIT 2m+10ms | COMMIT 125s coordinator_epoch=1 |
        CompleteCommit 125s+20ms leader_epoch=1 | write 3m | beat 100m → safe

    # Appends that timed out, and were repeated.
    prepared_twice_and_completed_twice:
        Empty 0 | beat 0 | begin 1m | PrepareCommit 2m | PrepareCommit 122s | COMMIT 122s+10ms |
        CompleteCommit 122s+20ms | CompleteCommit 122s+90ms | write 3m | beat 100m → safe
""")


@honest
def with_a_partition_of_a_deleted_topic(s: Story) -> None:
    gone = (f"gone-{s.topic}", 0)
    s.note("Ongoing", MINUTE, [gone])
    s.note("Ongoing", MINUTE + 10, [gone, s.place], start=MINUTE)
    s.write(MINUTE + 20)
    s.end(2 * MINUTE, start=MINUTE, places=[gone, s.place], lost=[gone])
    s.write(3 * MINUTE)


@honest
def thirty_transactions(s: Story) -> None:
    for n in range(30):
        s.transaction(MINUTE + n * 5 * SECOND, "ABORT" if n % 3 else "COMMIT")
    s.write(10 * MINUTE)


ALL |= schedules_of("""
    two_late_writes_of_one_producer:
        Empty 0 | beat 0 | begin 1m on 0,1 | end 2m ABORT on 0,1 | write 3m | write 3m on 1 | beat 0 100m on 1 |
        beat 100m → safe
""")


@honest
def moved_on_to_another_producer_id(s: Story) -> None:
    s.transaction(MINUTE, "ABORT")
    s.write(3 * MINUTE)
    s.c.note(s.id, "Empty", s.pid + 1, 0, (), 20 * MINUTE)
    s.c.transaction(s.id, s.pid + 1, 0, [s.place], 30 * MINUTE)


ALL |= schedules_of("""
    # What compaction removed is older than the batch, by a stamp in front of it.
    behind_a_hole:
        Empty 0 | beat 0 | T 1m ABORT | Empty 12m epoch=1 | compacted | beat 38m | write 40m epoch=1 | beat 100m → safe

    # Every record is there, also those of the next coordinator.
    commit_by_a_coordinator_that_moved:
        Empty 0 | beat 0 | T 1m ABORT | begin 2m leader_epoch=1 | PrepareCommit 3m leader_epoch=1 |
        COMMIT 3m+10ms coordinator_epoch=1 | CompleteCommit 3m+20ms leader_epoch=1 | write 4m | beat 100m → safe

    # Its decision is known, and no other: an abort repairs it.
    abort_whose_marker_was_lost:
        Empty 0 | beat 0 | begin 1m | end 2m ABORT lost | beat 100m → safe
""")


@honest
def late_writes_of_a_group(s: Story) -> Expected:
    """KAFKA-15784: an offset commit behind the marker."""
    place = ("__consumer_offsets", 7)
    s.begin(MINUTE, [s.place, place])
    s.end(2 * MINUTE, "ABORT", start=MINUTE, places=[s.place, place])
    s.c.write(place, s.pid, 0, 3 * MINUTE, sequence=-1)
    for at in (0, 100 * MINUTE):
        s.c.transaction(id_in(48, f"group-{s.number}"), 890_000, 0, [place], at)
    return safe(s, place=place)


KITS = {"all": Kit(ALL, beside="whole coordinators")}


@pytest.fixture(scope="session")
def audit_of(tmp_path_factory) -> Callable[[str], tuple[AuditTables, Told]]:
    return audits(KITS, tmp_path_factory)


@pytest.mark.parametrize(("kit", "name"), cases(KITS))
def test_what_holds_is_said(audit_of, kit, name):
    tables, told = audit_of(kit)
    expect_of(tables, told, name, OPEN)
