"""Proofs that another record refutes, beside controls that nothing refutes.

Every schedule that is not safe has a witness for all five statements of docs/rules/abort.md, and a record that
contradicts one of them. Every control differs in that record alone, so over-caution is seen, too. Times are relative to
an instant t, and the capture is taken hours later.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from tests.support.audits import AuditTables, audited, audited_anew
from tests.support.cluster import COORDINATORS, HOUR, MINUTE, NOON, SECOND, TXN, Cluster, Copy, Entry, id_in
from tests.support.log_bytes import encode_offset_commit_key, encode_offset_commit_value, encode_snapshot
from tests.support.refutations import (
    END,
    NO_COMMIT,
    NOTHING_ELSE,
    OF_4_1,
    OF_V2,
    OLD_ENOUGH,
    Kit,
    T,
    audits,
    cases,
    compacted,
    elected_since,
    kraft,
    led_by_another,
    left,
    nothing_open,
    one_leader,
    refuted,
    safe,
    tick,
    unsafe,
    with_an_id_of_v2,
    with_metadata,
)
from tests.support.schedule_text import schedules_of
from tests.support.schedules import Expected, Schedule, Schedules, Story, Told, built, wrong
from txnlib.core.kafka.transaction_log import OffsetCommit, OffsetCommitKey, TransactionLogEntry
from txnlib.core.kafka.transaction_state import TransactionState
from txnlib.core.rows import TopicPartition

pytestmark = pytest.mark.shares("kits")

#: Of brokers of 3.9.1, whose ids are all of transactions v0.
OWNED = Schedules()


# ---- A whole history that the partition refutes

OWNED |= schedules_of("""
    # A marker of a coordinator epoch, with or without a decision of that leader epoch.
    marker_of_a_coordinator_epoch_that_no_record_has:
        Empty 0 | beat 0 | T 1m | write 2m | COMMIT 31m coordinator_epoch=12 | write 1h | elected → refuted
    marker_that_no_decision_explains:
        Empty 0 | beat 0 | T 1m | write 2m | COMMIT 31m | write 1h | elected → refuted
    marker_of_a_later_coordinator_whose_decision_is_there:
        Empty 0 | beat 0 | T 1m | write 2m | Ongoing 2m-5ms leader_epoch=12 | PrepareCommit 31m-10ms leader_epoch=12 |
        CompleteCommit 31m+10ms leader_epoch=12 | COMMIT 31m coordinator_epoch=12 | write 1h | elected → safe

    # The id's gap-free log has the epochs 0 and 1; the open records have another.
    eight_epochs_ahead_of_a_gap_free_log:
        Empty 0 | beat 0 | T 1m | Empty 20m epoch=1 | write 30m epoch=9 | elected → refuted
    eight_epochs_ahead_under_one_leader:
        Empty 0 | beat 0 | T 1m | Empty 20m epoch=1 | write 30m epoch=9 | beat 100m | one leader → refuted
    one_epoch_ahead_of_a_gap_free_log:
        Empty 0 | beat 0 | T 1m | Empty 20m epoch=1 | write 30m epoch=2 | elected → refuted
    at_the_epoch_of_a_gap_free_log:
        Empty 0 | beat 0 | T 1m | Empty 20m epoch=1 | write 30m epoch=1 | elected → safe

    # A COMMIT of the same epoch on another partition, of which a record tells or not; then the producer restarts.
    commit_on_a_sibling_that_no_record_explains:
        Empty 0 | beat 0 | write 1m | write 1m on 1 | COMMIT 2m on 1 | Empty 20m epoch=1 | beat 100m on 1 |
        elected → refuted
    commit_on_a_sibling_that_a_record_explains:
        Empty 0 | beat 0 | write 1m | write 1m on 1 | Ongoing 1m-5ms on 1 | end 2m on 1 | Empty 20m epoch=1 |
        beat 100m on 1 | elected → safe

    # All markers have coordinator epoch 44, and every coordinator here is at 0.
    folder_mirrored_from_a_cluster_of_later_coordinators:
        Empty 0 | write 1m | COMMIT 2m coordinator_epoch=44 | write 3m | beat 0 | elected → refuted

    # The record that created the producer id, after a marker here that no record explains, or before a whole
    # transaction.
    marker_a_day_older_than_its_producer_id:
        Empty 0 | tick -25h | write -24h | COMMIT -24h+1m | write 1m | elected → refuted
    marker_younger_than_its_producer_id:
        Empty -25h | tick -25h | T -24h | write 1m | elected → safe
""")


# ---- As many markers as decisions

OWNED |= schedules_of("""
    # The first COMMIT's marker is sent again and ends a late write; the second COMMIT's marker is lost, or there.
    as_many_markers_as_decisions:
        led by another | beat 0 5m 10m | Empty 1m | Ongoing 20m-100ms | write 20m-90ms | PrepareCommit 20m |
        COMMIT 20m+5ms | write 20m+6ms | COMMIT 20m+70ms | CompleteCommit 20m+80ms | Ongoing 20m+100ms |
        write 20m+120ms | PrepareCommit 20m+200ms | CompleteCommit 20m+230ms | elected |
        beat 110m leader_epoch=3 → unsafe NO_COMMIT
    as_many_markers_as_decisions_after_a_failover:
        led by another | tick 0 5m | Empty 1m | Ongoing 20m-100ms | write 20m-90ms | PrepareCommit 20m |
        COMMIT 20m+5ms | write 20m+6ms | COMMIT 20m+70ms coordinator_epoch=1 | CompleteCommit 20m+80ms leader_epoch=1 |
        Ongoing 20m+100ms leader_epoch=1 | write 20m+120ms | PrepareCommit 20m+200ms leader_epoch=1 |
        CompleteCommit 20m+230ms leader_epoch=1 | tick 100m leader_epoch=3 → unsafe NO_COMMIT
    as_many_markers_as_decisions_after_a_failover_by_known_clocks:
        led by another | beat 0 5m 10m | Empty 1m | Ongoing 20m-100ms | write 20m-90ms | PrepareCommit 20m |
        COMMIT 20m+5ms | write 20m+6ms | COMMIT 20m+70ms coordinator_epoch=1 | CompleteCommit 20m+80ms leader_epoch=1 |
        Ongoing 20m+100ms leader_epoch=1 | write 20m+120ms | PrepareCommit 20m+200ms leader_epoch=1 |
        CompleteCommit 20m+230ms leader_epoch=1 | elected | beat 110m leader_epoch=3 → unsafe NO_COMMIT
    a_marker_more_than_decisions:
        led by another | beat 0 5m 10m | Empty 1m | Ongoing 20m-100ms | write 20m-90ms | PrepareCommit 20m |
        COMMIT 20m+5ms | write 20m+6ms | COMMIT 20m+70ms | CompleteCommit 20m+80ms | Ongoing 20m+100ms |
        write 20m+120ms | PrepareCommit 20m+200ms | COMMIT 20m+215ms | write 20m+260ms | CompleteCommit 20m+230ms |
        elected | beat 110m leader_epoch=3 → safe
    a_marker_more_than_decisions_after_a_failover:
        led by another | beat 0 5m 10m | Empty 1m | Ongoing 20m-100ms | write 20m-90ms | PrepareCommit 20m |
        COMMIT 20m+5ms | write 20m+6ms | COMMIT 20m+70ms coordinator_epoch=1 | CompleteCommit 20m+80ms leader_epoch=1 |
        Ongoing 20m+100ms leader_epoch=1 | write 20m+120ms | PrepareCommit 20m+200ms leader_epoch=1 |
        COMMIT 20m+215ms coordinator_epoch=1 | write 20m+260ms | CompleteCommit 20m+230ms leader_epoch=1 | elected |
        beat 110m leader_epoch=3 → safe
""")


# ---- One clock that was two

OWNED |= schedules_of("""
    # CompleteCommit (said 100 ms after 20 min, written 70 ms later) is all that compaction left of the id. A broker
    # that is 120 ms ahead stamped the marker in leader epoch 0; broker 1, which leads both today, did not.
    marker_of_the_commit_before_by_a_former_leader:
        write 20m-20ms | COMMIT 20m+5ms stamp=20m+125ms | write 20m+60ms | beat 5m 10m | elected | Ongoing 20m+50ms |
        PrepareCommit 20m+100ms | CompleteCommit 20m+170ms updated=20m+100ms | compacted → unsafe NO_COMMIT

    # Commits follow each other every 100 ms. Six pairs of a decision and its marker show that the leader's clock is
    # 150 ms ahead of the coordinator's.
    marker_of_the_commit_before_by_a_clock_150_ms_ahead:
        led by another skew=150ms | beat 1m 3m 5m 40m 50m 1h | write 20m-20ms | COMMIT 20m+5ms | write 20m+60ms |
        elected | Ongoing 20m+50ms | PrepareCommit 20m+100ms | CompleteCommit 20m+170ms updated=20m+100ms |
        compacted → unsafe NO_COMMIT
    # The control: its marker is there, and a late write follows.
    own_marker_by_a_clock_150_ms_ahead:
        led by another skew=150ms | beat 1m 3m 5m 40m 50m 1h | write 20m-20ms | COMMIT 20m+5ms | write 20m+60ms |
        COMMIT 20m+130ms | write 20m+190ms | elected | Ongoing 20m+50ms | PrepareCommit 20m+100ms |
        CompleteCommit 20m+170ms updated=20m+100ms | compacted → safe
    # Gap-free: the measured offset gives the marker to the first decision, a clock taken as one to the second.
    two_decisions_and_the_marker_of_the_first_by_a_clock_150_ms_ahead:
        led by another skew=150ms | beat 1m 3m 5m 40m 50m 1h | Empty 1m | Ongoing 20m-60ms | write 20m-50ms |
        PrepareCommit 20m | COMMIT 20m+5ms | CompleteCommit 20m+20ms | Ongoing 20m+50ms | write 20m+60ms |
        PrepareCommit 20m+100ms | CompleteCommit 20m+170ms | elected → unsafe NO_COMMIT
""")


@OWNED
def marker_before_a_coordinator_that_moved(s: Story) -> Expected:
    """Broker 1 leads both today; the coordinator's former leader, 120 ms behind, wrote the completion."""
    s.write(T)
    s.c.mark(s.place, s.pid, 0, "COMMIT", T + 125)
    s.write(T + 180)
    s.beat(5 * MINUTE, 10 * MINUTE)
    elected_since(s)
    for state, at in (("Ongoing", T + 170), ("PrepareCommit", T + 220), ("CompleteCommit", T + 290)):
        behind = {"stamp": at - 120, "start": T + 50}
        behind["last_update_timestamp_ms"] = NOON + (T + 100 if state == "CompleteCommit" else at - 120)
        s.note(state, at, [s.place] if state != "CompleteCommit" else (), **behind)
    s.c.note(id_in(s.number, f"after-{s.number}"), "Empty", 910_000 + s.number, 0, (), 45 * MINUTE, leader_epoch=1)
    compacted(s)
    return unsafe(s, fails=NO_COMMIT)


OWNED |= schedules_of("""
    # Gap-free, one COMMIT and one marker 30 ms apart: there is no other marker that it could be.
    one_commit_and_one_marker_by_a_former_leader:
        Empty 1m | beat 0 | Ongoing 20m-60ms | write 20m-50ms | PrepareCommit 20m | COMMIT 20m+5ms stamp=20m-30ms |
        CompleteCommit 20m+10ms | write 20m+60ms | elected → safe
""")


# ---- Stamps in front that stamps behind contradict

OWNED |= schedules_of("""
    # A leader was ten minutes ahead, as the marker of a producer shows that no coordinator knows. A decision of 2 min
    # has lost its marker, or has it; behind are stamps of 5 and 30 min.
    stamp_in_front_that_those_behind_contradict:
        Empty 0 | write 110s pid=+700 stamp=12m-10s | COMMIT 110s+10ms pid=+700 stamp=12m-10s | begin 112s |
        end 2m lost | write 5m pid=+700 leader_epoch=3 | COMMIT 5m+10ms pid=+700 leader_epoch=3 |
        write 30m pid=+700 leader_epoch=4 | COMMIT 30m+10ms pid=+700 leader_epoch=4 → unsafe NO_COMMIT
    stamp_in_front_that_those_behind_contradict_beside_a_marker:
        Empty 0 | write 110s pid=+700 stamp=12m-10s | COMMIT 110s+10ms pid=+700 stamp=12m-10s | begin 112s | end 2m |
        write 3m | write 5m pid=+700 leader_epoch=3 | COMMIT 5m+10ms pid=+700 leader_epoch=3 |
        write 30m pid=+700 leader_epoch=4 | COMMIT 30m+10ms pid=+700 leader_epoch=4 → safe
""")


@OWNED
def hole_behind_a_record_two_hours_younger(s: Story) -> Expected:
    """A hole of the coordinator's log, with a COMMIT in it; the record in front of it is dated two hours after the one
    behind it, of +2 min."""
    front, ahead = id_in(s.number, f"front-{s.number}"), 2 * MINUTE + 2 * HOUR
    s.c.note(front, "Empty", 920_000 + s.number, 0, (), 0, stamp=ahead, last_update_timestamp_ms=NOON + ahead)
    tick(s, 15 * MINUTE)
    s.begin(T)
    s.note("PrepareCommit", T + SECOND, [s.place], start=T)
    s.note("CompleteCommit", T + SECOND + 20, (), start=T)
    for id_, pid, epoch in ((s.id, s.pid, 1), (id_in(s.number, f"last-{s.number}"), 930_000 + s.number, 0)):
        behind = {"stamp": 2 * MINUTE, "last_update_timestamp_ms": NOON + 2 * MINUTE}
        s.c.note(id_, "Empty", pid, epoch, (), T + 2 * MINUTE, **behind)
    tick(s, 30 * MINUTE, 60 * MINUTE, leader_epoch=3)
    s.coordinator(Copy(1, END, is_compacted_until=T + 90 * SECOND, keep=lambda e: e.key != s.id or e.at > T + MINUTE))
    return unsafe(s, fails=NO_COMMIT)


@OWNED
def hole_older_than_the_stamps_in_front(s: Story) -> Expected:
    """The control: both records beside the hole are ten minutes older than the stamp in front of the batch."""
    s.transaction(MINUTE)
    s.note("Empty", 2 * MINUTE, epoch=1)
    s.c.note(id_in(s.number, f"last-{s.number}"), "Empty", 930_000 + s.number, 0, (), 2 * MINUTE)
    tick(s, 15 * MINUTE)
    s.write(T, 1)
    tick(s, 30 * MINUTE, 60 * MINUTE, leader_epoch=3)
    s.coordinator(Copy(1, END, keep=lambda e: e.key != s.id or e.at > MINUTE + 30 * SECOND))
    return safe(s)


# ---- A later copy that closes it


def later_copy(closed_by: str | None, *, decided: bool = False) -> Schedule:
    """The noted leader was copied two hours ago, a follower now; it goes on in the same leader epoch."""

    def of(s: Story) -> Expected:
        if decided:
            s.begin(MINUTE)
        else:
            s.late_write(3 * MINUTE)
        s.beat(0, 30 * MINUTE)
        if decided:
            s.end(100 * MINUTE, "ABORT", start=MINUTE)
        elif closed_by is not None:
            s.c.mark(s.place, s.pid, 0, closed_by, 100 * MINUTE)
        s.beat(110 * MINUTE)
        is_closed = decided or closed_by is not None
        s.copied(Copy(1, HOUR, taken=HOUR) if is_closed else Copy(1, END), Copy(2, END))
        return s.expect(None, or_verdict="UNKNOWN") if is_closed else safe(s)

    return of


OWNED |= {
    "later_copy_of_a_follower_with_the_abort_marker": later_copy("ABORT"),
    "later_copy_of_a_follower_with_the_decided_marker": later_copy(None, decided=True),
    "copy_of_a_follower_that_agrees": later_copy(None),
}


@OWNED
def later_leader_whose_marker_is_older_than_the_noted_leaders_copy(s: Story) -> Expected:
    """The note is outdated: broker 2 led in leader epoch 1 before the copy of broker 1 was taken."""
    s.late_write(3 * MINUTE)
    s.beat(0, 30 * MINUTE)
    s.c.mark(s.place, s.pid, 0, "ABORT", HOUR, leader_epoch=1)
    s.beat(100 * MINUTE, leader_epoch=1)
    s.copied(Copy(1, 50 * MINUTE, taken=2 * HOUR), Copy(2, END))
    return s.expect(None, finds=("*",), never_finds=("MARKER_MISSING",))


# ---- Order of copies by a clock that is known to be wrong


def coordinator_behind(s: Story, behind: int) -> None:
    """The clock of the coordinator, as all of its records show it."""
    log = s.c.logs[TXN, s.number]
    for number, entry in enumerate(log):
        value = entry.value
        if value is not None:
            started = value.start_timestamp_ms
            value = replace(
                value,
                last_update_timestamp_ms=value.last_update_timestamp_ms - behind,
                start_timestamp_ms=None if started is None else started - behind,
            )
        log[number] = replace(entry, stamp=entry.stamp - behind, value=value)


def ended_around_the_copies(ended: int, *, says: str | None) -> Schedule:
    """The partition was copied five minutes before the coordinators, whose clock is ten minutes behind."""

    def of(s: Story) -> Expected:
        broker, copied = 100 + s.number, END - 5 * MINUTE
        s.c.leaders[TXN, s.number] = broker
        s.coordinator(Copy(broker, END))
        s.note("Empty", 0)
        for n in range(6):
            s.transaction((1 + 10 * n) * MINUTE)
        begun = 100 * MINUTE
        s.note("Ongoing", begun, [s.place], transaction_timeout_ms=2 * HOUR)
        s.write(begun + 5)
        s.end(ended, start=begun, transaction_timeout_ms=2 * HOUR, lost=() if ended > copied else [s.place])
        s.beat(110 * MINUTE, 170 * MINUTE)
        coordinator_behind(s, 10 * MINUTE)
        s.copied(Copy(1, copied, taken=copied))
        if says is None:
            return unsafe(s, "UNKNOWN", reason="CAPTURE_SKEW")
        return unsafe(s, finds=(says,))

    return of


OWNED |= {
    "ended_between_the_copies_by_the_true_clock": ended_around_the_copies(END - 3 * MINUTE, says=None),
    "ended_before_both_copies": ended_around_the_copies(END - 60 * MINUTE, says="MARKER_MISSING"),
}


# ---- Older than what it is made of

OWNED |= schedules_of("""
    # Stamps around it are two hours old by a leader whose clock is behind, or right; a record handed out its producer
    # id or its epoch.
    producer_id_created_three_minutes_ago:
        led by another skew=-2h | Empty 177m | tick 176m skew=-2h | write 177m+5s stamp=57m+5s |
        tick 178m skew=-2h → unsafe OLD_ENOUGH
    epoch_handed_out_three_minutes_ago:
        led by another skew=-2h | Empty -3h | Empty 177m epoch=1 | tick 176m skew=-2h |
        write 177m+5s epoch=1 stamp=57m+5s | tick 178m skew=-2h → unsafe OLD_ENOUGH
    producer_id_created_two_hours_ago:
        led by another | Empty 1h | tick 59m | write 1h+5s stamp=1h+5s | tick 61m → safe
    epoch_handed_out_two_hours_ago:
        led by another | Empty -3h | Empty 1h epoch=1 | tick 59m | write 1h+5s epoch=1 stamp=1h+5s | tick 61m → safe
""")


# ---- STUCK shown as HANGING

OWNED |= schedules_of("""
    # PrepareCommit (begun 200 ms before 20 min) is all that is left; a marker is older, or its own.
    prepared_behind_an_older_marker:
        beat 0 | write 20m-700ms | COMMIT 20m-600ms | write 20m-190ms | Ongoing 20m-200ms | PrepareCommit 20m |
        beat 100m | compacted → STUCK reason=MARKER_OVERDUE
    prepared_behind_an_older_marker_by_two_clocks:
        led by another | beat 2m 4m 40m 50m | beat 0 | write 20m-700ms | COMMIT 20m-600ms | write 20m-190ms |
        Ongoing 20m-200ms | PrepareCommit 20m | beat 100m | compacted → STUCK reason=MARKER_OVERDUE
    prepared_with_its_marker_and_a_late_write:
        beat 0 | write 20m-190ms | COMMIT 20m+5ms | write 20m+10ms | Ongoing 20m-200ms | PrepareCommit 20m | beat 100m |
        compacted → unsafe reason=WRITTEN_AFTER_MARKER
""")


# ---- A producer id that its id gave up for good

OWNED |= schedules_of("""
    # The id expired and came back with another producer id, which is Ongoing.
    producer_id_that_its_id_gave_up_for_good:
        Empty 0 | T 1m | write 2m | beat 0 10m | tombstone 20m | Empty 21m pid=+1 timeout=3h |
        Ongoing 22m on 1 pid=+1 timeout=3h | write 22m+5ms on 1 pid=+1 | beat 100m | one leader → safe

    # The control: the same producer id is Ongoing, and may come to include the partition.
    producer_id_that_its_id_still_has:
        Empty 0 | T 1m | write 2m | beat 0 10m | Ongoing 22m on 1 timeout=3h | write 22m+5ms on 1 | beat 100m |
        one leader → unsafe NO_COORDINATOR
""")


# ---- A hole behind the open batch in the leader's own copy


def hole_behind(*, leader: int | None, verdict: str, is_safe: bool = False, hole: bool = True) -> Schedule:
    """Compaction of another replica removed what followed, perhaps its marker."""

    def of(s: Story) -> Expected:
        s.late_write(2 * MINUTE)
        s.beat(0, 10 * MINUTE, 40 * MINUTE, 100 * MINUTE)
        cleaned = {9 * MINUTE, 40 * MINUTE + 5, 40 * MINUTE + SECOND + 10}
        copy = Copy(leader or 2, END, leader_epochs=((0, 0),), keep=lambda e: not hole or e.at not in cleaned)
        s.copied(copy)
        s.c.leaders[s.place] = leader or 1
        never = ("copy another replica",) if hole and leader else ()
        return s.expect(verdict, is_safe=is_safe, never_says=never)

    return of


OWNED |= {
    "hole_behind_it_in_the_leaders_own_copy": hole_behind(leader=1, verdict="HANGING"),
    "no_hole_behind_it_in_the_leaders_own_copy": hole_behind(leader=1, verdict="HANGING", is_safe=True, hole=False),
    "hole_behind_it_in_a_followers_copy": hole_behind(leader=None, verdict="UNKNOWN"),
}


# ---- PrepareCommit with its marker here, and no completion

OWNED |= schedules_of("""
    coordinator_that_does_not_finish:
        beat 0 | begin 59m | end 1h incomplete | beat 50m → closed finds=*
    coordinator_that_is_about_to_finish:
        beat 0 | begin 178m | end 179m incomplete | beat 169m → closed never_finds=*
""")


# ---- Producer snapshots of the leader

#: More of the same cluster: a coordinator partition has one schedule, and there are fifty.
MORE = Schedules()


def snapshot_above(current: int | None, epoch: int = 0) -> Schedule:
    """The leader's snapshot above the first open batch, and what it has open of the producer."""

    def of(s: Story) -> Expected:
        s.note("Empty", 0)
        s.beat(0)
        s.late_write(3 * MINUTE)
        s.beat(10 * MINUTE, 40 * MINUTE, 100 * MINUTE)
        state = replace(nothing_open(3 * MINUTE), current_txn_first_offset=current, producer_epoch=epoch)
        snapshots = {7: encode_snapshot({s.pid: state})}
        s.copied(Copy(1, END, leader_epochs=((0, 0),), snapshots=snapshots))
        return refuted(s, finds=("*",)) if current is None or epoch else safe(s)

    return of


MORE |= {
    "snapshot_above_it_with_nothing_open": snapshot_above(None),
    "snapshot_above_it_with_the_same_first_offset": snapshot_above(4),
    "snapshot_above_it_with_an_epoch_that_no_batch_of_it_has": snapshot_above(4, epoch=1),
}


# ---- Offsets that are committed in a transaction


def offsets(number: int, *, hole: str | None) -> Schedule:
    """Of a partition of __consumer_offsets: no sequences, and always holes."""

    def of(given: Story) -> Expected:
        s = replace(given, topic="__consumer_offsets")
        place = ("__consumer_offsets", number)
        hidden = {
            "front": [30 * SECOND],
            "data": [30 * SECOND, MINUTE + 5],
            "between": [4 * MINUTE],
            "behind": [12 * MINUTE],
            "all in front": [30 * SECOND, MINUTE + 5, MINUTE + SECOND + 10, 3 * MINUTE, 4 * MINUTE, 5 * MINUTE],
        }.get(hole or "", [])
        s.c.copies[place] = [Copy(1, END, keep=lambda e: e.at not in hidden, leader_epochs=((0, 0),))]

        def commit(at: int, pid: int = -1, **changes: Any) -> None:
            key = encode_offset_commit_key(OffsetCommitKey(group_id=f"group-{at}", topic="orders", partition=0))
            value = encode_offset_commit_value(
                OffsetCommit(version=3, offset=at, metadata=b"", commit_timestamp_ms=NOON + at)
            )
            told = {"content": (key, value), "sequence": -1, "is_transactional": pid >= 0}
            s.c.write(place, pid, 0 if pid >= 0 else -1, at, **told | changes)

        def whole(pid: int, id_: str, at: int) -> None:
            s.c.note(id_, "Ongoing", pid, 0, [place], at, start=at)
            commit(at + 5, pid)
            s.c.note(id_, "PrepareCommit", pid, 0, [place], at + SECOND, start=at)
            s.c.mark(place, pid, 0, "COMMIT", at + SECOND + 10)
            s.c.note(id_, "CompleteCommit", pid, 0, (), at + SECOND + 20, start=at)

        s.note("Empty", 0)
        commit(30 * SECOND)
        if hole != "first":
            whole(s.pid, s.id, MINUTE)
        for at in (3, 4, 5):
            commit(at * MINUTE)
        commit(6 * MINUTE, s.pid)
        other = id_in(49, f"beat-{given.topic}")
        for at in (10, 20, 100):
            whole(s.pid + 500, other, at * MINUTE)
            commit((at + 2) * MINUTE)
        return s.expect("HANGING", is_safe=hole in (None, "first", "front", "data"), place=place)

    return of


MORE |= {
    "offsets_behind_the_last_marker": offsets(0, hole=None),
    "first_offsets_of_a_producer": offsets(6, hole="first"),
    "offsets_behind_the_last_marker_and_a_hole_in_front_of_it": offsets(1, hole="front"),
    "offsets_behind_the_last_marker_whose_records_were_cleaned": offsets(7, hole="data"),
    "offsets_behind_a_hole": offsets(2, hole="between"),
    "offsets_in_front_of_a_hole": offsets(3, hole="behind"),
    "offsets_behind_all_that_was_cleaned": offsets(4, hole="all in front"),
}


# ---- What an action is called

MORE |= schedules_of("""
    two_epochs_ahead_of_an_ongoing_transaction:
        Ongoing 3h-30s | write 5m epoch=2 | beat 0 10m 100m → unsafe NO_COORDINATOR
""")


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


# ---- What the cluster's metadata log shows

METADATA = Schedules()


@METADATA
def producer_id_that_the_cluster_never_allocated(s: Story) -> Expected:
    with_metadata(s)
    orphan(s)
    foreign_id = 5_000_000
    s.c.logs[s.place] = [replace(e, producer_id=foreign_id) if e.producer_id == s.pid else e for e in s.c.logs[s.place]]
    return unsafe(s, pid=foreign_id, finds=("PRODUCER_ID_NEVER_ALLOCATED",), fails=NOTHING_ELSE, says="cluster")


@METADATA
def nobodys_producer_id_of_this_cluster(s: Story) -> Expected:
    with_metadata(s)
    orphan(s)
    return safe(s)


def of_a_block(allocated: int, *, is_safe: bool, owned: bool = False) -> Schedule:
    """Stamps around it are two hours old, and the controller handed out its block at an instant."""

    def of(s: Story) -> Expected:
        with_metadata(s, allocated=allocated)
        if owned:
            s.note("Empty", 58 * MINUTE)
        tick(s, 59 * MINUTE)
        s.write(HOUR)
        tick(s, 61 * MINUTE)
        one_leader(s)
        return safe(s) if is_safe else unsafe(s, fails=OLD_ENOUGH)

    return of


METADATA |= {"block_handed_out_before_the_stamps": of_a_block(50 * MINUTE, is_safe=True)}


#: Leaders since, by minutes, each with its in-sync set if it changed.
CLEAN, UNCLEAN = (("2", 0, None), ("1", MINUTE, None)), (("1", 0, (1,)), ("2", MINUTE, (2,)), ("1", 2 * MINUTE, (1,)))
LEADERLESS = (("-1", 0, None), ("1", MINUTE, None))


def elections(*events: tuple[str, int, tuple[int, ...] | None], recreated: bool = False, is_safe: bool) -> Schedule:
    """Leaders since the first open batch, each with its in-sync set; compaction hides what the coordinator decided."""

    def of(s: Story) -> Expected:
        log = with_metadata(s)
        assert log is not None
        s.note("Empty", -4 * HOUR)
        s.note("Empty", 25 * MINUTE, epoch=1)
        compacted(s)
        at = -3 * HOUR if recreated else 20 * MINUTE
        for number, (leader, later, isr) in enumerate(events):
            log.elect(s.topic, int(leader), at + later + number, isr=isr)
        if recreated:
            log.remove(s.topic, -2 * HOUR)
            log.topic(s.topic, 2, -2 * HOUR)
        s.beat(0)
        s.write(MINUTE)
        s.beat(10 * MINUTE)
        s.beat(100 * MINUTE, leader_epoch=0 if recreated else len(events))
        return safe(s) if is_safe else unsafe(s, fails=NO_COMMIT)

    return of


@METADATA
def unclean_election_that_the_leaders_checkpoint_does_not_have(s: Story) -> Expected:
    """5.4.3 c: the checkpoint has one leader epoch, and the metadata log an unclean election behind it."""
    log = with_metadata(s)
    assert log is not None
    s.note("Empty", -4 * HOUR)
    s.note("Empty", 25 * MINUTE, epoch=1)
    compacted(s)
    s.beat(0)
    s.write(MINUTE)
    s.beat(10 * MINUTE, 19 * MINUTE)
    for leader, at in ((1, 0), (2, MINUTE), (1, 2 * MINUTE)):
        log.elect(s.topic, leader, 20 * MINUTE + at, isr=(leader,))
    one_leader(s)
    return refuted(s)


def beside_clean_elections(newest: int, tail: bool, *, is_safe: bool) -> Schedule:
    """Two clean elections; the newest leader epoch of the log, and a truncated tail in the copy of broker 2."""

    def of(s: Story) -> Expected:
        elections(*CLEAN, is_safe=True)(s)
        if newest != len(CLEAN):
            s.beat(110 * MINUTE, leader_epoch=newest)
        if tail:
            own = {"producer_id": s.pid + 900, "producer_epoch": 0, "sequence": 0, "stamp": 12 * MINUTE}
            s.copied(Copy(1, END), Copy(2, 11 * MINUTE, taken=END, own=(Entry(at=0, offset=5, **own),)))
        return safe(s) if is_safe else refuted(s)

    return of


METADATA |= {
    "leader_epoch_that_the_metadata_log_does_not_have": beside_clean_elections(5, False, is_safe=False),
    "clean_elections_beside_a_truncated_tail": beside_clean_elections(2, True, is_safe=False),
    "clean_elections_and_nothing_else": beside_clean_elections(2, False, is_safe=True),
    "clean_elections_since": elections(*CLEAN, is_safe=True),
    "unclean_election_since": elections(*UNCLEAN, is_safe=False),
    "unclean_election_of_a_deleted_topic_of_the_name": elections(*UNCLEAN, recreated=True, is_safe=True),
    "minute_without_a_leader_before_4_2": elections(*LEADERLESS, is_safe=True),
}
#: Last: their producer ids are the newest.
METADATA |= {
    "block_handed_out_five_minutes_ago": of_a_block(END - 5 * MINUTE, is_safe=False),
    "block_handed_out_five_minutes_ago_to_an_id": of_a_block(END - 5 * MINUTE, is_safe=False, owned=True),
}
FROM_4_2 = Schedules({"minute_without_a_leader_from_4_2": elections(*LEADERLESS, is_safe=False)})
FROM_4_2["clean_elections_since_from_4_2"] = elections(*CLEAN, is_safe=True)


# ---- Further records that refute a witness

INVENTED = Schedules()


INVENTED |= schedules_of("""
    # 5.4.3 a: a marker here that no decision explains, though one is of its time, type and epoch.
    marker_of_a_decision_that_lists_only_a_sibling:
        Empty 0 | beat 0 | Ongoing 1m on 1 | write 1m+5ms | end 2m on 1 | COMMIT 2m+10ms | write 3m | beat 100m on 1 |
        elected → refuted

    # 5.4.3 a: an ABORT of epoch 5, which its coordinator's gap-free log never had.
    marker_at_a_higher_epoch_than_every_record:
        Empty 0 | beat 0 | write 1m | ABORT 2m epoch=5 | write 3m epoch=5 | elected → refuted

    # 5.3.7: a marker older than its transaction's start is never its own, though there is one of each.
    one_commit_and_one_marker_older_than_its_start:
        Empty 0 | beat 0 | write 1m | COMMIT 2m | Ongoing 10m | write 10m+5ms | PrepareCommit 11m |
        CompleteCommit 11m+20ms | elected → refuted
    # The control: the marker is younger than the start.
    one_commit_and_its_marker:
        Empty 0 | beat 0 | T 10m | write 12m | elected → safe
""")


def on_a_sibling(epoch: int = 0, coordinator_epoch: int = 0, *, is_safe: bool) -> Schedule:
    """A decided COMMIT on a sibling: its marker has a coordinator epoch, and a batch behind it a producer epoch."""

    def of(s: Story) -> Expected:
        sibling = (s.topic, 1)
        s.note("Empty", 0)
        s.beat(0)
        s.write(MINUTE)
        s.note("Ongoing", MINUTE, [sibling])
        s.c.write(sibling, s.pid, 0, MINUTE + 5)
        s.note("PrepareCommit", 2 * MINUTE, [sibling], start=MINUTE)
        s.c.mark(sibling, s.pid, 0, "COMMIT", 2 * MINUTE + 10, coordinator_epoch=coordinator_epoch)
        s.note("CompleteCommit", 2 * MINUTE + 20, (), start=MINUTE)
        if epoch:
            s.c.write(sibling, s.pid, epoch, 3 * MINUTE, is_transactional=False)
        s.beat(100 * MINUTE, partition=1)
        elected_since(s)
        return safe(s) if is_safe else refuted(s)

    return of


INVENTED |= {
    "sibling_at_an_epoch_that_no_record_has": on_a_sibling(7, is_safe=False),
    "sibling_with_a_marker_of_a_later_coordinator": on_a_sibling(0, 12, is_safe=False),
    "sibling_at_the_epochs_of_the_coordinator": on_a_sibling(is_safe=True),
}


def of_a_follower(*epochs: tuple[int, int], is_safe: bool) -> Schedule:
    """5.4.3 c: the leader-epoch-checkpoint of the leader has one leader epoch, and a follower's its own."""

    def of(s: Story) -> Expected:
        s.note("Empty", 0)
        s.beat(0)
        s.write(MINUTE)
        s.beat(100 * MINUTE)
        s.note("Empty", 20 * MINUTE, epoch=1)
        compacted(s)
        s.copied(Copy(1, END, leader_epochs=((0, 0),)), Copy(2, END, leader_epochs=epochs))
        return safe(s) if is_safe else refuted(s)

    return of


INVENTED |= {
    "leader_epoch_that_only_a_followers_checkpoint_has": of_a_follower((0, 0), (3, 5), is_safe=False),
    "checkpoints_that_agree": of_a_follower((0, 0), is_safe=True),
}


def answered(is_safe: bool, **answer: Any) -> Schedule:
    """What capture.json notes of the leader's answer; the first open batch is at offset 2."""

    def of(s: Story) -> Expected:
        s.note("Empty", 0)
        s.beat(0)
        s.write(MINUTE)
        s.beat(100 * MINUTE)
        s.note("Empty", 20 * MINUTE, epoch=1)
        compacted(s)
        one_leader(s)
        s.c.answers[s.place] = answer
        return safe(s) if is_safe else s.expect("HANGING", or_verdict="UNKNOWN")

    return of


ASKED = {"answered_at_ms": NOON + END, "high_watermark": 5}
INVENTED |= {
    "answered_leader_epoch_beyond_the_checkpoint": answered(False, leader_epoch=4),
    "answered_leader_epoch_of_the_checkpoint": answered(True, leader_epoch=0),
    "answered_stable_offset_above_it": answered(False, last_stable_offset=5, **ASKED),
    "answered_stable_offset_at_it": answered(True, last_stable_offset=2, **ASKED),
}


OLD, NEW = "AAAAAAAAAAAAAAAAAAAAAA", "BBBBBBBBBBBBBBBBBBBBBB"


def marker_in_a_copy_of(topic_id: str, *, is_safe: bool) -> Schedule:
    """5.4.1: a later copy of a follower has a marker behind the same batches, one by hand; its topic id counts."""

    def of(s: Story) -> Expected:
        s.late_write(3 * MINUTE)
        s.beat(0, 30 * MINUTE)
        offset = 7
        marker = Entry(at=HOUR, offset=offset, producer_id=s.pid, producer_epoch=0, marker="ABORT", stamp=HOUR)
        s.copied(
            Copy(1, END, topic_id=NEW, leader_epochs=((0, 0),)),
            Copy(2, 31 * MINUTE + SECOND, taken=END, own=(marker,), topic_id=topic_id, high_watermark=8),
        )
        return safe(s) if is_safe else s.expect(None, or_verdict="UNKNOWN")

    return of


INVENTED |= {
    "marker_in_a_copy_of_the_same_topic_id": marker_in_a_copy_of(NEW, is_safe=False),
    "marker_in_a_copy_of_a_deleted_topic": marker_in_a_copy_of(OLD, is_safe=True),
}


@INVENTED
def follower_ahead_of_the_noted_leader(s: Story) -> Expected:
    """5.3.1: followers are never ahead, so the note is outdated, and so is the copy."""
    s.late_write(3 * MINUTE)
    s.beat(0, 30 * MINUTE, 100 * MINUTE)
    s.copied(Copy(1, 50 * MINUTE, taken=END), Copy(2, END))
    return refuted(s)


@INVENTED
def prepared_before_a_later_copy_with_the_marker(s: Story) -> Expected:
    """5.4.1 for STUCK: a follower's later copy has the marker that the noted leader's lacks."""
    s.beat(0)
    s.begin(MINUTE)
    s.end(2 * MINUTE, start=MINUTE, takes=2 * HOUR, complete=False)
    s.beat(30 * MINUTE, 110 * MINUTE)
    s.copied(Copy(1, 50 * MINUTE, taken=50 * MINUTE), Copy(2, END))
    return s.expect(None, or_verdict="UNKNOWN")


def coordinator_led_elsewhere(leader_epoch: int, verdict: str, *, is_safe: bool) -> Schedule:
    """5.3.1 for a coordinator: another broker's copy goes on with an Ongoing of the partition, in a leader epoch."""

    def of(s: Story) -> Expected:
        later = {"leader_epoch": 1}
        s.note("Empty", 0)
        s.late_write(3 * MINUTE)
        s.beat(0, 10 * MINUTE, 100 * MINUTE)
        one_leader(s)
        other = id_in(s.number, f"other-{s.number}")
        s.c.note(other, "Empty", 900_000 + s.number, 0, (), 20 * MINUTE, **later if not leader_epoch else {})
        value = TransactionLogEntry(
            transactional_id=s.id, producer_id=s.pid, producer_epoch=0, transaction_state=TransactionState.ONGOING,
            transaction_partitions=(TopicPartition(*s.place),), transaction_timeout_ms=60_000, version=0,
            last_update_timestamp_ms=NOON + 30 * MINUTE, start_timestamp_ms=NOON + 30 * MINUTE,
        )  # fmt: skip
        own = Entry(
            at=30 * MINUTE, offset=5 if leader_epoch else 4, key=s.id, value=value, stamp=30 * MINUTE,
            leader_epoch=leader_epoch,
        )  # fmt: skip
        reached = 25 * MINUTE if leader_epoch else 10 * MINUTE
        s.coordinator(Copy(1, END), Copy(2, reached, taken=END, own=(own,)))
        return safe(s) if is_safe else s.expect(verdict, or_verdict="UNKNOWN")

    return of


INVENTED |= {
    "coordinator_of_a_higher_leader_epoch_elsewhere": coordinator_led_elsewhere(2, "LATE", is_safe=False),
    "coordinator_that_was_deposed_elsewhere": coordinator_led_elsewhere(0, "HANGING", is_safe=True),
}


@INVENTED
def checkpoint_elsewhere_above_the_end_of_the_coordinators_copy(s: Story) -> Expected:
    """5.3.1: the highest high watermark of any broker counts."""
    s.note("Empty", 0)
    s.late_write(3 * MINUTE)
    s.beat(0, 10 * MINUTE, 100 * MINUTE)
    s.c.noted.append((2, (TXN, s.number), 100))
    return refuted(s)


INVENTED |= schedules_of("""
    two_phase_commit_that_may_come_to_include_it:
        Empty 0 | T 1m | write 3m | beat 0 10m 100m | Ongoing 20m on 1 timeout=never → unsafe NO_COORDINATOR

    # 5.4.3: the newest record of the id, in a log with holes. At epoch 0 it proves that nothing was ever decided.
    empty_at_epoch_0_among_holes:
        beat 0 | Empty 1m | write 4m | elected | compacted → safe
    empty_at_epoch_1_among_holes:
        beat 0 | Empty 1m | Empty 2m epoch=1 | write 4m epoch=1 | elected | compacted → refuted
    empty_at_epoch_0_among_holes_beside_a_marker:
        beat 0 | Empty 1m | write 2m | COMMIT 3m | write 4m | elected | compacted → refuted

    # 5.4.3 c: the checkpoint has one leader epoch, and the log a higher one.
    leader_epoch_of_the_log_beyond_its_checkpoint:
        Empty 0 | beat 0 | write 1m | elected | Empty 20m epoch=1 | compacted | one leader → unsafe NO_COMMIT

    # 5.3.6: stamps are corrected by the offset that pairs of decisions and markers measure. The client's stamp is old
    # enough for Kafka's own rule.
    stamps_by_a_clock_that_pairs_measure_behind:
        led by another skew=-10m | Empty 0 | beat 1m 10m 20m 1h 167m 169m | write 168m stamp=138m → unsafe OLD_ENOUGH
""")


@INVENTED
def split_outcome_of_another_producer_on_the_partition(s: Story) -> Expected:
    """5.4.5: a finding of severity CRITICAL names the partition."""
    s.note("Empty", 0)
    s.late_write(3 * MINUTE)
    s.beat(0, 10 * MINUTE, 100 * MINUTE)
    one_leader(s)
    id_ = id_in(s.number, f"split-{s.number}")
    s.c.note(id_, "Empty", 960_000, 0, (), 12 * MINUTE)
    s.c.note(id_, "Ongoing", 960_000, 0, [s.place], 13 * MINUTE)
    s.c.write(s.place, 960_000, 0, 13 * MINUTE + 5)
    s.c.note(id_, "PrepareCommit", 960_000, 0, [s.place], 14 * MINUTE, start=13 * MINUTE)
    s.c.mark(s.place, 960_000, 0, "ABORT", 14 * MINUTE + 10)
    s.c.note(id_, "CompleteCommit", 960_000, 0, (), 14 * MINUTE + 20, start=13 * MINUTE)
    return unsafe(s, fails=NOTHING_ELSE)


INVENTED |= schedules_of("""
    late_write_under_one_leader:
        Empty 0 | T 1m | write 3m | beat 0 10m 100m | one leader → safe
""")


# ---- The audits


KITS = {
    "owned": Kit(OWNED),
    "more": Kit(MORE),
    "orphans": Kit(ORPHANS, beside="what nobody owns"),
    "alarm": Kit(BESIDE_AN_ALARM, beside="what nobody owns"),
    "loss": Kit(BESIDE_A_LOSS, notes=OF_4_1, cluster=kraft(), beside="nothing else"),
    "holes": Kit(HOLES, then=partial(ten_days_ago, new=None)),
    "new log": Kit(HOLES_AND_A_NEW_LOG, then=partial(ten_days_ago, new=7)),
    "v2": Kit(V2, notes=OF_4_1 | {"transaction_version": 2}, then=with_an_id_of_v2),
    "lowered": Kit(LOWERED, notes=OF_4_1, cluster=kraft(((2, -5 * HOUR), (1, 70 * MINUTE)))),
    "never v2": Kit(NEVER_V2, notes=OF_4_1, cluster=kraft()),
    "noted": Kit(NOTED, then=with_an_id_of_v2),
    "not refuted": Kit(NOT_REFUTED),
    "metadata": Kit(METADATA, notes=OF_4_1, cluster=kraft(), beside="what nobody owns"),
    "invented": Kit(INVENTED),
    "from 4.2": Kit(FROM_4_2, notes={"kafka_version": "4.2.0"}, cluster=kraft()),
}


@pytest.fixture(scope="session")
def audit_of(tmp_path_factory) -> Callable[[str], tuple[AuditTables, Told]]:
    return audits(KITS, tmp_path_factory)


@pytest.mark.parametrize(("kit", "name"), cases(KITS))
def test_a_witness_that_the_capture_refutes_proves_nothing(audit_of, kit, name):
    tables, told = audit_of(kit)
    assert wrong(tables, {name: told[name]}) == {}


# ---- Proofs that are carried from one night to the next

NIGHTS = Schedules()
FIRST_NIGHT = 70 * MINUTE


class TwoNights(Cluster):
    """A cluster that is captured twice. `later`: what the copies of the second night are."""

    later: list[Callable[[], None]]

    def __init__(self) -> None:
        super().__init__()
        self.later = []


def carried(
    *, elected_before: bool, elected_after: bool, cleaned: int, commits: bool = False, is_safe: bool
) -> Schedule:
    """Open since +60 min; the first night lacks only its age. Elections at +65 and +80 min; the second night's
    coordinator is compacted up to an instant."""

    def of(s: Story) -> Expected:
        assert isinstance(s.c, TwoNights)
        other = id_in(s.number, f"other-{s.number}")
        epochs = [(0, 0)]
        s.note("Empty", 0)
        for at in (1, 2, 40, 64):
            s.c.note(other, "Empty", 900_000 + s.number, 0, (), at * MINUTE)
        s.beat(MINUTE, 58 * MINUTE)
        s.transaction(59 * MINUTE)
        s.write(HOUR)
        s.beat(61 * MINUTE)
        if elected_before:
            epochs.append((3, 10))
        newest = 3 if elected_before else 0
        s.beat(66 * MINUTE, leader_epoch=newest)
        s.note("Empty", 65 * MINUTE, epoch=1)
        if commits:
            s.note("Ongoing", 85 * MINUTE, [s.place], epoch=1)
            s.note("PrepareCommit", 86 * MINUTE, [s.place], epoch=1, start=85 * MINUTE)
            s.note("CompleteCommit", 86 * MINUTE + 20, (), epoch=1, start=85 * MINUTE)
        if cleaned > FIRST_NIGHT:
            s.note("Empty", 89 * MINUTE, epoch=2)
        s.c.note(other, "Empty", 900_000 + s.number, 0, (), 120 * MINUTE)
        if elected_after:
            newest = 4
        s.beat(81 * MINUTE, 100 * MINUTE, leader_epoch=newest)
        s.copied(Copy(1, FIRST_NIGHT, leader_epochs=tuple(epochs)))
        before = 0 if elected_before else 63 * MINUTE
        s.coordinator(Copy(1, FIRST_NIGHT, is_compacted_until=before or None))

        def later() -> None:
            after = (4, 12) if elected_after else None
            s.copied(Copy(1, END, leader_epochs=(*epochs, *([after] if after else ()))))
            s.coordinator(Copy(1, END, is_compacted_until=cleaned))

        s.c.later.append(later)
        return s.expect("HANGING", is_safe=is_safe)

    return of


NIGHTS |= {
    "proven_by_history_and_compacted_since": carried(
        elected_before=True, elected_after=False, cleaned=90 * MINUTE, is_safe=True
    ),
    "proven_by_its_leader_that_was_followed_since": carried(
        elected_before=False, elected_after=True, cleaned=65 * MINUTE + 1, is_safe=True
    ),
    # What both nights read has no hole.
    "compacted_and_followed_since": carried(
        elected_before=False, elected_after=True, cleaned=90 * MINUTE, is_safe=True
    ),
    "committed_compacted_and_followed_since": carried(
        elected_before=False, elected_after=True, cleaned=90 * MINUTE, commits=True, is_safe=False
    ),
    "committed_and_followed_since": carried(
        elected_before=False, elected_after=True, cleaned=65 * MINUTE + 1, commits=True, is_safe=False
    ),
}


def just_after(*, clock: str) -> Schedule:
    """A COMMIT of the open records a minute after the first night loses its marker in an election. A clock that is two
    minutes behind says that it was before: that of the coordinator, or of the new leader."""

    def of(s: Story) -> Expected:
        assert isinstance(s.c, TwoNights)
        late = FIRST_NIGHT + MINUTE
        led = led_by_another(s, -2 * MINUTE) if clock == "leader" else 1
        of_coordinator = 0 if clock == "leader" else 2 * MINUTE
        s.note("Empty", 0)
        s.beat(MINUTE, 58 * MINUTE)
        s.write(HOUR)
        s.beat(61 * MINUTE)
        for state, at in (("Ongoing", late), ("PrepareCommit", late + 10), ("CompleteCommit", late + 30)):
            said = {"stamp": at - of_coordinator, "last_update_timestamp_ms": NOON + at - of_coordinator}
            s.note(state, at, [s.place] if state != "CompleteCommit" else (), start=late - of_coordinator, **said)
        if clock == "leader":
            s.note("Empty", 89 * MINUTE, epoch=1)
        s.c.note(id_in(s.number, f"other-{s.number}"), "Empty", 900_000 + s.number, 0, (), 120 * MINUTE)
        s.beat(late + SECOND, 100 * MINUTE, leader_epoch=4)
        s.copied(Copy(led, FIRST_NIGHT, leader_epochs=((0, 0),)))
        s.coordinator(Copy(1, FIRST_NIGHT))

        def later() -> None:
            s.copied(Copy(led, END, leader_epochs=((0, 0), (4, 7))))
            s.coordinator(Copy(1, END, is_compacted_until=90 * MINUTE))

        s.c.later.append(later)
        return s.expect("HANGING", is_safe=False, fails=NO_COMMIT)

    return of


NIGHTS |= {
    "committed_after_the_first_night_by_a_clock_that_says_before": just_after(clock="coordinator"),
    "followed_after_the_first_night_by_a_clock_that_says_before": just_after(clock="leader"),
}


@pytest.fixture(scope="session")
def nights(tmp_path_factory) -> tuple[AuditTables, AuditTables, Told]:
    folder, c = tmp_path_factory.mktemp("nights"), TwoNights()
    _, told = built(NIGHTS, c)
    for number in range(COORDINATORS):
        if (TXN, number) not in c.copies:
            c.copies[TXN, number] = [Copy(1, FIRST_NIGHT)]
    before = audited_anew([c.capture(folder / "first", FIRST_NIGHT)], "--cluster", "small")
    before.rows("hanging_transactions")
    before.run.note("DONE")
    for number in range(len(NIGHTS), COORDINATORS):
        c.copies[TXN, number] = [Copy(1, END)]
    for change in c.later:
        change()
    after = audited_anew([c.capture(folder / "second", END)], "--cluster", "small", folder=before.folder)
    return before, after, told


def row_of(tables: AuditTables, told: Told, name: str) -> dict[str, Any]:
    topic, expected = told[name]
    rows = tables.rows("open_transactions")
    return next(row for row in rows if (row["topic"], row["producer_id"]) == (topic, expected.producer_id))


@pytest.mark.parametrize("name", NIGHTS)
def test_on_the_first_night_only_the_age_is_missing(nights, name):
    before, _, told = nights
    row = row_of(before, told, name)
    assert [each["name"] for each in row["safety"] if not each["holds"]] == [OLD_ENOUGH]
    assert row["safe_from"] is not None


@pytest.mark.parametrize("name", NIGHTS)
def test_a_promise_names_its_condition(nights, name):
    before, _, told = nights
    assert "still proves the rest" in row_of(before, told, name)["do_not_abort_because"]


@pytest.mark.parametrize("name", NIGHTS)
def test_what_an_audit_proved_stays_proven_and_only_what_came_later_is_asked(nights, name):
    _, after, told = nights
    assert wrong(after, {name: told[name]}) == {}


@pytest.mark.parametrize("name", ["committed_compacted_and_followed_since", "committed_and_followed_since"])
def test_what_was_withdrawn_since_the_last_audit_is_said(nights, name):
    before, after, told = nights
    assert row_of(before, told, name)["safe_from"] is not None
    assert "audit" in row_of(after, told, name)["do_not_abort_because"]


# ---- Texts


def texts_of(row: dict[str, Any]) -> str:
    causes = [f"{each['cause']} {each['evidence']}" for each in row["causes"] or ()]
    return " ".join([row["explanation"], row["do_not_abort_because"] or "", *causes])


def unsafe_rows(audit_of: Any, kit: str) -> list[dict[str, Any]]:
    tables, _ = audit_of(kit)
    return [row for row in tables.rows("open_transactions") if row["verdict"] == "HANGING" and not row["safe_to_abort"]]


TOLD = ["owned", "orphans", "v2", "metadata", "more", "invented"]


@pytest.mark.parametrize("kit", TOLD)
def test_every_statement_that_fails_is_named(audit_of, kit):
    left_out = {
        (row["topic"], each["name"])
        for row in unsafe_rows(audit_of, kit)
        for each in row["safety"]
        if not each["holds"] and each["says"] not in row["do_not_abort_because"]
    }
    assert left_out == set()


@pytest.mark.parametrize("kit", TOLD)
def test_no_partition_forgets_a_producer_whose_transaction_is_open(audit_of, kit):
    tables, _ = audit_of(kit)
    told = [texts_of(row) for row in tables.rows("open_transactions")]
    told += [" ".join([*(row["notes"] or ()), row["effect"] or ""]) for row in tables.rows("abort_plan")]
    assert [text for text in told if "forgets the producer" in text] == []


@pytest.mark.parametrize("kit", TOLD)
def test_an_action_that_contains_an_abort_is_not_called_do_not_abort(audit_of, kit):
    """The row and the plan of a transaction agree on whether somebody is to abort."""
    tables, _ = audit_of(kit)
    place = ("topic", "partition", "producer_id")
    told = {tuple(row[name] for name in place): texts_of(row) for row in tables.rows("open_transactions")}
    forbidden = [row for row in tables.rows("abort_plan") if row["action"] == "DO_NOT_ABORT"]
    assert [row["topic"] for row in forbidden if row["command"] is not None] == []
    assert [row["topic"] for row in forbidden if "then abort" in told[tuple(row[name] for name in place)]] == []


@pytest.mark.parametrize("kit", TOLD)
def test_no_cause_contradicts_what_the_copies_show(audit_of, kit):
    tables, _ = audit_of(kit)
    told = {row["topic"]: texts_of(row) for row in tables.rows("open_transactions")}
    both = [topic for topic, text in told.items() if "removed its tombstone" in text and "removed none" in text]
    assert both == []
    nobodys = [row for row in tables.rows("open_transactions") if row["transactional_id"] is None]
    assert [row["topic"] for row in nobodys if "a log was lost" in texts_of(row)] == []
    assert [row["topic"] for row in nobodys if "than the coordinator's" in texts_of(row)] == []


def test_skew_of_assumed_instants_says_so_and_what_helps(tmp_path):
    """No file notes an instant, and the transaction began after the newest stamp of its coordinator."""
    c = Cluster()
    s = Story(c, "assumed", id_in(7, "assumed"), 1_000, 7)
    s.note("Empty", 0)
    s.beat(MINUTE)
    s.write(50 * MINUTE)
    tick(s, HOUR)
    one_leader(s)
    tables = audited(c.capture(tmp_path / "brokers", END, notes={"captured_at_ms": None}))
    (row,) = tables.rows("open_transactions")
    assert (row["verdict"], row["reason"]) == ("UNKNOWN", "CAPTURE_SKEW")
    told = texts_of(row)
    assert "assumed" in told
    assert "--captured-at" in told
    assert "capture.json" in told
