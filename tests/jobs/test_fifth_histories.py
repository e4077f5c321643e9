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
    compacted,
    expect_of,
    one_leader,
    other,
    refuted,
    safe,
    tick,
)
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


@ALL
def absorbed_by_a_transaction_of_the_next_epoch(s: Story) -> Expected:
    """A leftover of epoch 0, and the id, restarted, has a transaction here: its end closes both."""
    s.note("Empty", 0)
    s.beat(0)
    s.late_write(3 * MINUTE, "ABORT")
    s.note("Empty", 20 * MINUTE, epoch=1)
    s.note("Ongoing", END - 20 * SECOND, [s.place], epoch=1)
    s.write(END - 20 * SECOND + 5, 1)
    s.beat(100 * MINUTE)
    return s.expect("LATE", or_verdict="OPEN")


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


@honest
def zombie_of_an_older_epoch(s: Story) -> None:
    """The application restarted three times; the oldest instance wrote once more, where no marker had fenced it."""
    for epoch in (1, 2, 3):
        s.note("Empty", epoch * MINUTE, epoch=epoch)
    s.write(10 * MINUTE, 0)


@honest
def never_added(s: Story) -> None:
    """A client that wrote to a partition that it had not added."""
    elsewhere = (s.topic, 1)
    s.begin(MINUTE, [elsewhere])
    s.write(MINUTE + 10)
    s.end(2 * MINUTE, start=MINUTE, places=[elsewhere])


@honest
def never_added_and_timed_out(s: Story) -> None:
    elsewhere = (s.topic, 1)
    s.begin(MINUTE, [elsewhere])
    s.write(MINUTE + 10)
    s.end(3 * MINUTE, "ABORT", start=MINUTE, places=[elsewhere], marker_epoch=1)


@honest
def by_hand_before_and_late_again(s: Story) -> None:
    s.transaction(MINUTE, "ABORT")
    s.write(3 * MINUTE)
    s.c.mark(s.place, s.pid, 0, "ABORT", 20 * MINUTE)
    s.write(30 * MINUTE)
    one_leader(s)


@honest
def completed_by_the_next_coordinator(s: Story) -> None:
    """A failover between the decision and its completion: all markers were sent again. Then a late write."""
    s.begin(MINUTE)
    s.note("PrepareCommit", 2 * MINUTE, [s.place], start=MINUTE)
    s.c.mark(s.place, s.pid, 0, "COMMIT", 2 * MINUTE + 10)
    s.c.mark(s.place, s.pid, 0, "COMMIT", 2 * MINUTE + 5 * SECOND, coordinator_epoch=1)
    s.note("CompleteCommit", 2 * MINUTE + 5 * SECOND + 20, start=MINUTE, leader_epoch=1)
    s.write(3 * MINUTE)


@honest
def prepared_twice_and_completed_twice(s: Story) -> None:
    """Appends that timed out, and were repeated."""
    s.begin(MINUTE)
    s.note("PrepareCommit", 2 * MINUTE, [s.place], start=MINUTE)
    s.note("PrepareCommit", 2 * MINUTE + 2 * SECOND, [s.place], start=MINUTE)
    s.c.mark(s.place, s.pid, 0, "COMMIT", 2 * MINUTE + 2 * SECOND + 10)
    s.note("CompleteCommit", 2 * MINUTE + 2 * SECOND + 20, start=MINUTE)
    s.note("CompleteCommit", 2 * MINUTE + 2 * SECOND + 90, start=MINUTE)
    s.write(3 * MINUTE)


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


@honest
def two_late_writes_of_one_producer(s: Story) -> None:
    elsewhere = (s.topic, 1)
    s.begin(MINUTE, [s.place, elsewhere])
    s.end(2 * MINUTE, "ABORT", start=MINUTE, places=[s.place, elsewhere])
    s.write(3 * MINUTE)
    s.c.write(elsewhere, s.pid, 0, 3 * MINUTE)
    s.beat(0, 100 * MINUTE, partition=1)


@honest
def moved_on_to_another_producer_id(s: Story) -> None:
    s.transaction(MINUTE, "ABORT")
    s.write(3 * MINUTE)
    s.c.note(s.id, "Empty", s.pid + 1, 0, (), 20 * MINUTE)
    s.c.transaction(s.id, s.pid + 1, 0, [s.place], 30 * MINUTE)


@honest
def behind_a_hole(s: Story) -> None:
    """What compaction removed is older than the batch, by a stamp in front of it."""
    s.transaction(MINUTE, "ABORT")
    s.note("Empty", 12 * MINUTE, epoch=1)
    compacted(s, 30 * MINUTE)
    s.beat(38 * MINUTE)
    s.write(40 * MINUTE, 1)


@honest
def commit_by_a_coordinator_that_moved(s: Story) -> None:
    """Every record is there, also those of the next coordinator."""
    s.transaction(MINUTE, "ABORT")
    s.begin(2 * MINUTE, leader_epoch=1)
    s.note("PrepareCommit", 3 * MINUTE, [s.place], start=2 * MINUTE, leader_epoch=1)
    s.c.mark(s.place, s.pid, 0, "COMMIT", 3 * MINUTE + 10, coordinator_epoch=1)
    s.note("CompleteCommit", 3 * MINUTE + 20, start=2 * MINUTE, leader_epoch=1)
    s.write(4 * MINUTE)


@honest
def abort_whose_marker_was_lost(s: Story) -> None:
    """Its decision is known, and no other: an abort repairs it."""
    s.begin(MINUTE)
    s.end(2 * MINUTE, "ABORT", start=MINUTE, lost=[s.place])


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
