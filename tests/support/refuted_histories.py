"""Schedules: a history of a transactional id that other records refute."""

from dataclasses import replace

from tests.support.cluster import HOUR, MINUTE, NOON, SECOND, TXN, Copy, id_in
from tests.support.refutations import (
    END,
    NO_COMMIT,
    T,
    compacted,
    elected_since,
    safe,
    tick,
    unsafe,
)
from tests.support.schedule_text import schedules_of
from tests.support.schedules import Expected, Schedule, Schedules, Story

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
