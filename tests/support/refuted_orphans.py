"""Schedules: producer ids of nobody, and transactions v2, under records that refute a proof."""

from tests.support.cluster import HOUR, MINUTE, SECOND, TXN, Cluster, Copy, id_in
from tests.support.refutations import (
    END,
    NO_COMMIT,
    OF_V2,
    compacted,
    elected_since,
    left,
    one_leader,
    refuted,
    safe,
    tick,
    unsafe,
    with_metadata,
)
from tests.support.schedule_text import schedules_of
from tests.support.schedules import Expected, Schedule, Schedules, Story

# ---- Nobody's producer ids

ORPHANS = Schedules()


def orphan(s: Story) -> None:
    """Under one leader."""
    s.beat(0)
    s.write(MINUTE)
    s.beat(100 * MINUTE)
    one_leader(s)


@ORPHANS
def nobodys_under_one_leader_beside_alarms_of_others(s: Story) -> Expected:
    """Another id's transaction was aborted by hand while it is Ongoing, and another COMMIT lost its marker."""
    orphan(s)
    for number, kind in ((47, "by-hand"), (48, "lost")):
        id_, place = id_in(number, kind), (f"other-{kind}", 0)
        s.c.note(id_, "Empty", 800_000 + number, 0, (), 0)
        s.c.begin(id_, 800_000 + number, 0, [place], 100 * MINUTE, transaction_timeout_ms=3 * HOUR)
        if kind == "lost":
            s.c.end(id_, 800_000 + number, 0, [place], 101 * MINUTE, start=100 * MINUTE, lost=[place])
        else:
            s.c.mark(place, 800_000 + number, 0, "ABORT", 101 * MINUTE)
        s.c.beat(place, (99 * MINUTE, 110 * MINUTE), 810_000 + number)
    return safe(s)


@ORPHANS
def nobodys_with_an_election_since(s: Story) -> Expected:
    """Nothing shows what its coordinator decided, and its marker may be lost."""
    s.beat(0)
    s.write(MINUTE)
    elected_since(s)
    return unsafe(s, fails=NO_COMMIT, never_says=("a log was lost", "compaction removed its tombstone"))


ORPHANS |= schedules_of("""
    # Its own marker has coordinator epoch 44, and every coordinator here is at 0.
    nobodys_in_a_folder_mirrored_from_another_cluster:
        write 30s | COMMIT 40s coordinator_epoch=44 | beat 0 | write 1m | beat 100m | one leader → refuted

    # Its id has expired since: after seven days.
    nobodys_with_a_marker_of_a_coordinator_of_this_cluster:
        write -216h+30s | COMMIT -216h+40s | beat 0 | write 1m | beat 100m | one leader → safe
""")


BESIDE_AN_ALARM, BESIDE_A_LOSS = Schedules(), Schedules()


@BESIDE_AN_ALARM
def nobodys_beside_a_record_of_another_id_that_no_coordinator_writes(s: Story) -> Expected:
    """PrepareEpochFence is never written; the log has no gap and one leader, so it lost nothing."""
    orphan(s)
    id_, places = id_in(46, "illegal"), [("illegal", 0)]
    s.c.note(id_, "Empty", 846_000, 0, (), 0)
    s.c.note(id_, "Ongoing", 846_000, 0, places, 20 * MINUTE)
    s.c.note(id_, "PrepareEpochFence", 846_000, 1, places, 21 * MINUTE, start=20 * MINUTE)
    s.c.note(id_, "PrepareAbort", 846_000, 1, places, 21 * MINUTE + 1, start=20 * MINUTE)
    s.c.mark(places[0], 846_000, 1, "ABORT", 21 * MINUTE + 5)
    s.c.note(id_, "CompleteAbort", 846_000, 1, (), 21 * MINUTE + 9, start=20 * MINUTE)
    return safe(s)


@BESIDE_A_LOSS
def nobodys_beside_a_coordinator_that_was_elected_uncleanly(s: Story) -> Expected:
    log = with_metadata(s)
    assert log is not None
    orphan(s)
    for leader, at in ((1, 0), (2, MINUTE), (1, 2 * MINUTE)):
        log.elect(TXN, leader, 20 * MINUTE + at, partition=46, isr=(leader,))
    return refuted(s)


#: Every coordinator's log has a hole that is ten days old.
HOLES, HOLES_AND_A_NEW_LOG = Schedules(), Schedules()


def ten_days_ago(c: Cluster, *, new: int | None) -> None:
    """Each coordinator lost older records to compaction; `new`: the one whose log begins later, in leader epoch 5."""
    old = -10 * 24 * HOUR
    for number in range(c.coordinators):
        log = c.logs[TXN, number]
        if number == new:
            log[:] = [e for e in log if e.at >= 70 * MINUTE]
            c.note(id_in(number, "new"), "Empty", 700_000 + number, 0, (), 70 * MINUTE, leader_epoch=5)
            continue
        for at in (old - 2, old - 1, old):
            c.note(id_in(number, "old"), "Empty", 700_000 + number, 0, (), at)
        c.copies[TXN, number] = [Copy(1, END, is_compacted_until=old)]


HOLES_AND_A_NEW_LOG |= schedules_of("""
    nobodys_beside_a_coordinator_that_begins_in_leader_epoch_5:
        beat 0 | write 1m | elected → unsafe NO_COMMIT
""")
HOLES |= schedules_of("""
    nobodys_beside_old_holes_with_an_election_since:
        beat 0 | write 1m | elected → unsafe NO_COMMIT
    nobodys_beside_old_holes_under_one_leader:
        beat 0 | write 1m | beat 100m | one leader → safe
""")


# ---- Transactions v2

V2 = Schedules()


def abort_of_the_last_batch(first_epoch: int, *, is_safe: bool) -> Schedule:
    """Two open batches; the coordinator aborted the epoch of the second."""

    def of(s: Story) -> Expected:
        tick(s, 0)
        s.write(MINUTE, first_epoch)
        s.write(2 * MINUTE, 4, leader_epoch=2)
        s.note("Empty", 30 * SECOND, epoch=3, **OF_V2)
        s.note("Ongoing", 2 * MINUTE - 5, [s.place], epoch=4, **OF_V2)
        s.note("PrepareAbort", 3 * MINUTE, [s.place], epoch=5, start=2 * MINUTE - 5, **OF_V2)
        s.note("CompleteAbort", 3 * MINUTE + 20, (), epoch=5, start=2 * MINUTE - 5, **OF_V2)
        tick(s, 10 * MINUTE, 100 * MINUTE, leader_epoch=3)
        log, kept = (TXN, s.number), {"Ongoing", "PrepareAbort", "CompleteAbort"}
        s.c.note(id_in(s.number, f"other-{s.number}"), "Empty", 900_000 + s.number, 0, (), 31 * SECOND)
        s.c.copies[log] = [
            Copy(1, END, keep=lambda e: e.key != s.id or (e.value and e.value.transaction_state.kafka_name in kept))
        ]
        return safe(s) if is_safe else unsafe(s, fails=NO_COMMIT)

    return of


V2 |= {
    "abort_of_the_last_batch_only": abort_of_the_last_batch(3, is_safe=False),
    "abort_of_every_batch": abort_of_the_last_batch(4, is_safe=True),
}


@V2
def nobodys_under_transactions_v2(s: Story) -> Expected:
    """Open means lost or never registered, and nothing tells which; but there is no coordinator that is beyond it."""
    orphan(s)
    lies = ("a log was lost", "than the coordinator's", "its coordinator decided")
    return unsafe(s, fails=NO_COMMIT, never_says=lies)


def left_of_v2(data: int, left: int, *, is_safe: bool) -> Schedule:
    """Compaction left one record of the id; one leader."""

    def of(s: Story) -> Expected:
        s.note("Empty", 10 * SECOND, epoch=0, **OF_V2)
        s.beat(0)
        s.write(MINUTE, data)
        s.note("Empty", 20 * MINUTE, epoch=left, **OF_V2)
        s.beat(100 * MINUTE)
        one_leader(s)
        s.c.note(id_in(s.number, f"other-{s.number}"), "Empty", 900_000 + s.number, 0, (), 19 * MINUTE)
        compacted(s)
        return safe(s) if is_safe else unsafe(s, fails=NO_COMMIT)

    return of


V2 |= {
    "v2_with_a_coordinator_beyond_its_epoch": left_of_v2(3, 9, is_safe=False),
    "v2_with_a_coordinator_at_its_epoch": left_of_v2(9, 9, is_safe=True),
}


V2 |= schedules_of("""
    # Two COMMITs, which raise the epoch to 1 and to 2; the epochs of the markers that are here, then an open batch.
    first_marker_of_v2_again_instead_of_the_second:
        Empty 0 v2 | beat 0 | Ongoing 1m v2 | write 1m+5ms | PrepareCommit 61s epoch=1 v2 | COMMIT 61s+10ms epoch=1 |
        CompleteCommit 61s+20ms epoch=1 v2 | Ongoing 3m epoch=1 v2 | write 3m+5ms epoch=1 |
        PrepareCommit 3m+1s epoch=2 v2 | COMMIT 3m+1s+10ms epoch=1 | CompleteCommit 3m+1s+20ms epoch=2 v2 |
        write 4m epoch=1 | elected → unsafe NO_COMMIT
    both_markers_of_v2:
        Empty 0 v2 | beat 0 | Ongoing 1m v2 | write 1m+5ms | PrepareCommit 61s epoch=1 v2 | COMMIT 61s+10ms epoch=1 |
        CompleteCommit 61s+20ms epoch=1 v2 | Ongoing 3m epoch=1 v2 | write 3m+5ms epoch=1 |
        PrepareCommit 3m+1s epoch=2 v2 | COMMIT 3m+1s+10ms epoch=2 | CompleteCommit 3m+1s+20ms epoch=2 v2 |
        write 4m epoch=2 | elected → safe

    # 5.4.2: an id that will own the producer id may come to include the partition.
    next_producer_id_of_an_id_in_prepare:
        write 1m | beat 0 100m | one leader |
        PrepareCommit 30m on 1 start=29m pid=+100 epoch=32767 next_pid=+0 v2 → refuted NO_COORDINATOR
""")


LOWERED = Schedules({"data_older_than_the_lowered_level": left(3, 9, is_safe=False)})
LOWERED["data_at_the_coordinators_epoch_under_a_lowered_level"] = left(9, 9, is_safe=True)
NEVER_V2 = Schedules({"data_of_a_level_that_was_never_above_1": left(3, 9, is_safe=True)})
#: Another id's records are of version 2, under a note of 3.9.1.
NOTED = Schedules({"older_epoch_under_a_note_that_records_refute": left(3, 9, is_safe=False)})
NOTED["same_epoch_under_a_note_that_records_refute"] = left(9, 9, is_safe=True)
NOT_REFUTED = Schedules({"older_epoch_under_a_note_that_nothing_refutes": left(3, 9, is_safe=True)})
