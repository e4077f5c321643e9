"""What shows that a coordinator decided something that its log does not have.

COMMIT markers that no record explains, and logs that are gap-free in offsets, but not in content: they refute every
proof, on whatever partition they are. A decision that was prepared, told to the client and lost is never completed. The
controls, which nothing refutes, must be proven.
"""

from collections.abc import Callable

import pytest

from tests.support.audits import AuditTables
from tests.support.cluster import MINUTE, SECOND, TXN, Cluster, Copy, Entry, id_in
from tests.support.refutations import (
    END,
    Kit,
    Open,
    audits,
    cases,
    elected_since,
    expect_of,
    left,
    one_leader,
    other,
    refuted,
    safe,
    unsafe,
)
from tests.support.schedule_text import next_coordinator, schedules_of
from tests.support.schedules import Expected, Schedule, Schedules, Story, Told

pytestmark = pytest.mark.shares("kits")

HISTORIES = Schedules()
#: The answers of today that are not those expected.
OPEN: Open = {}


def is_elected(s: Story, elected: bool) -> None:
    """Whether a leader followed the open records, so that a marker of theirs may have been lost."""
    if elected:
        elected_since(s)
    else:
        s.beat(100 * MINUTE)
        one_leader(s)


# ---- Markers that no decision explains

HISTORIES |= schedules_of("""
    # A batch here, and a marker of the producer on another partition. If no record tells of its decision, the
    # coordinator has lost it with its tail.
    commit_elsewhere_under_one_leader:
        Empty 0 | beat 0 | beat 0 on 1 | write 1m | write 1m on 1 | COMMIT 2m on 1 |
        next coordinator 10m leader_epoch=4 | beat 100m on 1 | beat 100m | one leader → refuted error
    commit_elsewhere_with_an_election_since:
        Empty 0 | beat 0 | beat 0 on 1 | write 1m | write 1m on 1 | COMMIT 2m on 1 |
        next coordinator 10m leader_epoch=4 | beat 100m on 1 | elected → refuted error
    commit_elsewhere_that_ends_nothing:
        Empty 0 | beat 0 | beat 0 on 1 | write 1m | COMMIT 2m on 1 | next coordinator 10m leader_epoch=4 |
        beat 100m on 1 | beat 100m | one leader → refuted error
    commit_elsewhere_before_a_restart:
        Empty 0 | beat 0 | beat 0 on 1 | write 1m | write 1m on 1 | COMMIT 2m on 1 |
        next coordinator 10m leader_epoch=4 | Empty 30m epoch=1 leader_epoch=4 | beat 100m on 1 | beat 100m |
        one leader → refuted error
    commit_elsewhere_that_ends_nothing_before_a_restart:
        Empty 0 | beat 0 | beat 0 on 1 | write 1m | COMMIT 2m on 1 | next coordinator 10m leader_epoch=4 |
        Empty 30m epoch=1 leader_epoch=4 | beat 100m on 1 | beat 100m | one leader → refuted error
    commit_elsewhere_before_a_whole_transaction:
        Empty 0 | beat 0 | beat 0 on 1 | write 1m | write 1m on 1 | COMMIT 2m on 1 |
        next coordinator 10m leader_epoch=4 | Ongoing 20m on 1 leader_epoch=4 | write 20m+5ms on 1 |
        PrepareCommit 21m on 1 leader_epoch=4 | COMMIT 21m+10ms on 1 coordinator_epoch=4 |
        CompleteCommit 21m+20ms leader_epoch=4 | beat 100m on 1 | beat 100m | one leader → refuted error
    commit_elsewhere_before_a_whole_transaction_with_an_election_since:
        Empty 0 | beat 0 | beat 0 on 1 | write 1m | write 1m on 1 | COMMIT 2m on 1 |
        next coordinator 10m leader_epoch=4 | Ongoing 20m on 1 leader_epoch=4 | write 20m+5ms on 1 |
        PrepareCommit 21m on 1 leader_epoch=4 | COMMIT 21m+10ms on 1 coordinator_epoch=4 |
        CompleteCommit 21m+20ms leader_epoch=4 | beat 100m on 1 | elected → refuted error
    abort_elsewhere_of_a_coordinator_epoch_without_records:
        Empty 0 | beat 0 | beat 0 on 1 | write 1m | write 1m on 1 | ABORT 2m on 1 coordinator_epoch=2 |
        next coordinator 10m leader_epoch=4 | beat 100m on 1 | beat 100m | one leader → refuted
    abort_elsewhere_that_may_be_one_by_hand:
        Empty 0 | beat 0 | beat 0 on 1 | write 1m | write 1m on 1 | ABORT 2m on 1 |
        next coordinator 10m leader_epoch=4 | beat 100m on 1 | beat 100m | one leader → safe
    abort_elsewhere_that_may_be_one_by_hand_before_a_restart:
        Empty 0 | beat 0 | beat 0 on 1 | write 1m | write 1m on 1 | ABORT 2m on 1 |
        next coordinator 10m leader_epoch=4 | Empty 30m epoch=1 leader_epoch=4 | beat 100m on 1 | beat 100m |
        one leader → safe
    commit_elsewhere_that_a_record_explains:
        Empty 0 | beat 0 | beat 0 on 1 | write 1m | Ongoing 1m-5ms on 1 | write 1m on 1 | end 2m on 1 |
        next coordinator 10m leader_epoch=4 | beat 100m on 1 | beat 100m | one leader → safe
    commit_elsewhere_that_a_record_explains_before_another:
        Empty 0 | beat 0 | beat 0 on 1 | write 1m | Ongoing 1m-5ms on 1 | write 1m on 1 | end 2m on 1 |
        next coordinator 10m leader_epoch=4 | Ongoing 20m on 1 leader_epoch=4 | write 20m+5ms on 1 |
        PrepareCommit 21m on 1 leader_epoch=4 | COMMIT 21m+10ms on 1 coordinator_epoch=4 |
        CompleteCommit 21m+20ms leader_epoch=4 | beat 100m on 1 | elected → safe
    nothing_elsewhere:
        Empty 0 | beat 0 | beat 0 on 1 | write 1m | write 1m on 1 | next coordinator 10m leader_epoch=4 |
        beat 100m on 1 | beat 100m | one leader → safe

    # The first transaction's decision is lost, and so may be one of the batch behind it.
    commit_in_front_under_one_leader:
        Empty 0 | beat 0 | write 1m | COMMIT 2m | write 3m | next coordinator 10m leader_epoch=4 | beat 100m |
        one leader → refuted error
    commit_in_front_that_a_record_explains:
        Empty 0 | beat 0 | begin 1m | end 2m | write 3m | next coordinator 10m leader_epoch=4 | beat 100m |
        one leader → safe

    # Its coordinator lost a PrepareCommit, and then aborted the transaction by its timeout; that marker is lost here.
    # The COMMIT marker of another partition tells, if there was a commit.
    abort_decided_after_a_commit_that_the_coordinator_lost:
        Empty 0 | beat 0 | beat 0 on 1 | begin 1m on 0,1 | COMMIT 90s on 1 |
        PrepareAbort 4m on 0,1 epoch=1 leader_epoch=4 | ABORT 4m+10ms on 1 epoch=1 coordinator_epoch=4 |
        CompleteAbort 4m+20ms epoch=1 leader_epoch=4 | Empty 5m epoch=2 leader_epoch=4 | beat 100m on 1 |
        elected → refuted
    abort_decided_after_a_commit_that_a_coordinator_without_records_sent:
        Empty 0 | beat 0 | beat 0 on 1 | begin 1m on 0,1 | COMMIT 90s on 1 coordinator_epoch=2 |
        PrepareAbort 4m on 0,1 epoch=1 leader_epoch=4 | ABORT 4m+10ms on 1 epoch=1 coordinator_epoch=4 |
        CompleteAbort 4m+20ms epoch=1 leader_epoch=4 | Empty 5m epoch=2 leader_epoch=4 | beat 100m on 1 |
        elected → refuted
    abort_decided_after_nothing:
        Empty 0 | beat 0 | beat 0 on 1 | begin 1m on 0,1 | PrepareAbort 4m on 0,1 epoch=1 leader_epoch=4 |
        ABORT 4m+10ms on 1 epoch=1 coordinator_epoch=4 | CompleteAbort 4m+20ms epoch=1 leader_epoch=4 |
        Empty 5m epoch=2 leader_epoch=4 | beat 100m on 1 | elected → safe

    # No coordinator knows the producer id, and a partition has a COMMIT of it. An id expires after seven days, not
    # before. Its batch is a late one, or the marker is elsewhere.
    nobodys_with_a_commit_elsewhere_of_two_hours_ago:
        write 1h-1s on 1 pid=+700 | COMMIT 1h on 1 pid=+700 | write 1h+1s pid=+700 | beat 0 | beat 0 100m on 1 |
        beat 100m | one leader → refuted pid=+700
    nobodys_behind_a_commit_of_two_hours_ago:
        write 1h-1s pid=+700 | COMMIT 1h pid=+700 | write 1h+1s pid=+700 | beat 0 | beat 100m |
        one leader → refuted pid=+700
    nobodys_behind_a_commit_of_nine_days_ago:
        write -213h-1s pid=+700 | COMMIT -213h pid=+700 | write -213h+1s pid=+700 | beat 0 | beat 100m |
        one leader → safe pid=+700
""")


# ---- Markers of other ids of the same coordinator


def of_another_id(
    kind: str,
    named: int,
    *epochs: int,
    decided: int | None = None,
    elected: bool = True,
    is_safe: bool = False,
) -> Schedule:
    """Another id of the coordinator partition has a marker of a coordinator epoch; `epochs`: leader epochs of the log.
    `decided`: the leader epoch of its decision, if there is one."""

    def of(s: Story) -> Expected:
        place, pid, id_ = (s.topic, 1), s.pid + 300, other(s)
        first = {"leader_epoch": epochs[0]}
        s.note("Empty", 0, **first)
        s.c.note(id_, "Empty", pid, 0, (), SECOND, **first)
        s.beat(0)
        s.beat(0, partition=1)
        s.write(MINUTE)
        s.c.write(place, pid, 0, 10 * MINUTE)
        by = {"leader_epoch": decided}
        if decided is not None:
            s.c.note(id_, "Ongoing", pid, 0, [place], 10 * MINUTE - 5, **by)
            s.c.note(id_, f"Prepare{kind.capitalize()}", pid, 0, [place], 11 * MINUTE, start=10 * MINUTE - 5, **by)
        s.c.mark(place, pid, 0, kind, 11 * MINUTE + 10, coordinator_epoch=named)
        if decided is not None:
            s.c.note(id_, f"Complete{kind.capitalize()}", pid, 0, (), 11 * MINUTE + 20, start=10 * MINUTE - 5, **by)
        for number, epoch in enumerate(epochs[1:]):
            next_coordinator(s, (20 + number) * MINUTE, epoch, f"led-{number}")
        s.beat(100 * MINUTE, partition=1)
        is_elected(s, elected)
        return safe(s) if is_safe else refuted(s)

    return of


HISTORIES |= {
    "epoch_between_two_that_another_ids_commit_names": of_another_id("COMMIT", 5, 4, 6),
    "epoch_between_two_that_another_ids_commit_names_under_one_leader": of_another_id("COMMIT", 5, 4, 6, elected=False),
    "epoch_between_two_that_another_ids_abort_names": of_another_id("ABORT", 5, 4, 6),
    "epoch_behind_all_that_another_ids_abort_names": of_another_id("ABORT", 7, 4, 6, elected=False),
    "commit_of_another_id_that_its_gap_free_log_does_not_explain": of_another_id("COMMIT", 4, 4, 6),
    "commit_of_another_id_that_no_record_explains_under_one_leader": of_another_id("COMMIT", 4, 4, 6, elected=False),
    "epoch_that_another_ids_commit_names_and_the_log_has": of_another_id("COMMIT", 5, 4, 6, decided=5, is_safe=True),
    "leader_epochs_that_no_marker_names_and_the_log_lacks": of_another_id("COMMIT", 4, 4, 9, decided=4, is_safe=True),
}


# ---- Logs that are gap-free in offsets, not in content

HISTORIES |= schedules_of("""
    # The epochs that the gap-free log assigned; each is one more than the one before.
    epochs_that_jump:
        beat 0 | write 1m | Empty 0 | Empty 20m epoch=5 | elected → refuted
    epochs_that_jump_under_one_leader:
        beat 0 | write 1m | Empty 0 | Empty 20m epoch=5 | beat 100m | one leader → refuted
    epochs_that_jump_later:
        beat 0 | write 1m | Empty 0 | Empty 20m epoch=1 | Empty 40m epoch=4 | elected → refuted
    epochs_that_rise_by_one:
        beat 0 | write 1m | Empty 0 | Empty 20m epoch=1 | Empty 40m epoch=2 | elected → safe

    # A commit of epoch 0, and the next transaction at another one; then a late write.
    epoch_that_jumps_between_two_commits:
        Empty 0 | beat 0 | T 1m | Ongoing 20m epoch=3 | write 20m+5ms epoch=3 | end 21m epoch=3 | write 22m epoch=3 |
        elected → refuted
    epoch_that_rises_between_two_commits:
        Empty 0 | beat 0 | T 1m | Empty 10m epoch=1 | Ongoing 20m epoch=1 | write 20m+5ms epoch=1 | end 21m epoch=1 |
        write 22m epoch=1 | elected → safe

    # Ongoing, then Empty, which no coordinator writes: between them was an end. The announced batch is there, so the
    # Ongoing record was no append that timed out.
    begun_here_and_never_ended:
        Empty 0 | beat 0 | begin 1m | Empty 20m epoch=1 | elected → refuted
    begun_here_and_never_ended_under_one_leader:
        Empty 0 | beat 0 | begin 1m | Empty 20m epoch=1 | beat 100m | one leader → refuted
    begun_elsewhere_and_never_ended:
        Empty 0 | beat 0 | begin 1m on 1 | write 1m+10ms | beat 0 100m on 1 | Empty 20m epoch=1 | elected → refuted
    # The control: the restart of the application ended it first.
    begun_and_fenced:
        Empty 0 | beat 0 | begin 1m | PrepareAbort 20m epoch=1 | ABORT 20m+10ms epoch=1 |
        CompleteAbort 20m+20ms epoch=1 | Empty 20m+1s epoch=2 | write 30m epoch=2 | elected → safe

    # Its Ongoing record says that it began at 1 min, and its Prepare says the same, or 5 min. Of a COMMIT the marker is
    # here, and a late write; the marker of an ABORT is lost.
    abort_of_another_start_than_its_ongoing:
        Empty 0 | beat 0 | begin 1m | end 6m ABORT lost start=5m epoch=1 | Empty 7m epoch=2 | elected → refuted
    commit_of_another_start_than_its_ongoing:
        Empty 0 | beat 0 | begin 1m | end 6m start=5m | write 7m | elected → refuted
    commit_of_another_start_than_its_ongoing_under_one_leader:
        Empty 0 | beat 0 | begin 1m | end 6m start=5m | write 7m | beat 100m | one leader → refuted
    abort_of_the_start_of_its_ongoing:
        Empty 0 | beat 0 | begin 1m | end 6m ABORT lost epoch=1 | Empty 7m epoch=2 | elected → safe
    commit_of_the_start_of_its_ongoing:
        Empty 0 | beat 0 | begin 1m | end 6m | write 7m | elected → safe
""")


# ---- What hides nothing, and forbids nothing

CALM = Schedules()


def hole_at(minute: int, *, is_safe: bool) -> Schedule:
    """Compaction removed records of other ids between two minutes. The newest record of the id is of +30 min."""

    def of(s: Story) -> Expected:
        s.note("Empty", 0)
        s.beat(0)
        s.transaction(MINUTE)
        s.write(3 * MINUTE)
        s.note("Empty", 30 * MINUTE, epoch=1)
        first, last = minute * MINUTE, (minute + 3) * MINUTE
        for at in range(first, last + 1, MINUTE):
            s.c.note(other(s), "Empty", 910_000 + s.number, 0, (), at)
        elected_since(s)
        s.coordinator(Copy(1, END, keep=lambda e: not first < e.at < last))
        return safe(s) if is_safe else unsafe(s)

    return of


def sibling_before_a_hole(s: Story) -> Expected:
    """The control of a hole behind all records of the id: the COMMIT of a sibling is explained, and stays so."""
    sibling = (s.topic, 1)
    s.note("Empty", 0)
    s.beat(0)
    s.beat(0, partition=1)
    s.begin(MINUTE, [sibling])
    s.end(2 * MINUTE, start=MINUTE, places=[sibling])
    s.write(3 * MINUTE)
    for at in range(40, 44):
        s.c.note(other(s), "Empty", 910_000 + s.number, 0, (), at * MINUTE)
    s.beat(100 * MINUTE, partition=1)
    elected_since(s)
    s.coordinator(Copy(1, END, keep=lambda e: not 40 * MINUTE < e.at < 43 * MINUTE))
    return safe(s)


CALM |= {
    "hole_behind_the_newest_record_of_the_id": hole_at(40, is_safe=True),
    "hole_in_front_of_the_newest_record_of_the_id": hole_at(20, is_safe=False),
    "sibling_whose_commit_is_in_front_of_a_hole": sibling_before_a_hole,
}


def copies_that_differ(partition: int, *, is_safe: bool) -> Schedule:
    """Two copies have different batches of the producer at one offset of a partition, in an ended transaction."""

    def of(s: Story) -> Expected:
        places = [s.place, (s.topic, 1)]
        s.note("Empty", 0)
        s.beat(0)
        s.begin(MINUTE, places)
        s.end(2 * MINUTE, start=MINUTE, places=places)
        s.write(3 * MINUTE)
        s.beat(100 * MINUTE)
        first = 2 if partition == 0 else 0
        written = MINUTE + 5
        differs = Entry(at=written, offset=first, producer_id=s.pid, producer_epoch=0, sequence=3, stamp=written)
        epochs = {"leader_epochs": ((0, 0),)}
        s.c.copies[places[partition]] = [
            Copy(1, END, **epochs),
            Copy(2, END, keep=lambda e: e.offset != first, own=(differs,), **epochs),
        ]
        if partition:
            one_leader(s)
        return safe(s) if is_safe else s.expect("HANGING", or_verdict="UNKNOWN")

    return of


CALM |= {
    "copies_that_differ_on_another_partition": copies_that_differ(1, is_safe=True),
    "copies_that_differ_on_this_partition": copies_that_differ(0, is_safe=False),
}


CALM |= schedules_of("""
    # The id prepares its commits, and never times out. A state that lists a sibling is no longer between two
    # transactions.
    two_phase_id_that_is_empty:
        Empty 0 timeout=never | beat 0 | Ongoing 1m timeout=never | write 1m+5ms | end 2m timeout=never | write 3m |
        Empty 20m epoch=1 timeout=never | beat 10m | beat 100m | one leader → safe
    two_phase_id_that_completed:
        Empty 0 timeout=never | beat 0 | Ongoing 1m timeout=never | write 1m+5ms | end 2m timeout=never | write 3m |
        beat 10m | beat 100m | one leader → safe
    two_phase_id_with_a_transaction_elsewhere:
        Empty 0 timeout=never | beat 0 | Ongoing 1m timeout=never | write 1m+5ms | end 2m timeout=never | write 3m |
        Ongoing 20m on 1 timeout=never | write 20m+5ms on 1 | beat 10m | beat 100m | one leader → unsafe
""")


# ---- Late writes that the next transaction absorbed, on brokers of 3.9


def absorbed(*, own: bool) -> Callable[[Cluster], None]:
    """A batch of epoch 0 came late, the application was restarted, and its next COMMIT ended both; compaction removed
    its records. Without a batch of its `own` epoch, the marker is one of transactions v2."""

    def of(c: Cluster) -> None:
        place, pid, id_ = ("absorbed", 0), 790_000, id_in(48, "absorbed")
        c.note(id_, "Empty", pid, 0, (), 0)
        c.transaction(id_, pid, 0, [place], MINUTE)
        c.write(place, pid, 0, 3 * MINUTE)
        c.note(id_, "Empty", pid, 1, (), 4 * MINUTE)
        c.note(id_, "Ongoing", pid, 1, [place], 5 * MINUTE)
        if own:
            c.write(place, pid, 1, 5 * MINUTE + 5)
        c.end(id_, pid, 1, [place], 6 * MINUTE, start=5 * MINUTE)
        c.note(id_, "Empty", pid, 2, (), 20 * MINUTE)
        c.copies[TXN, 48] = [Copy(1, END, keep=lambda e: e.key != id_ or e.at > 10 * MINUTE)]

    return of


ABSORBED = Schedules(
    {
        "older_epoch_beside_a_late_write_that_was_absorbed": left(0, 1, is_safe=True),
        "much_older_epoch_beside_a_late_write_that_was_absorbed": left(3, 9, is_safe=True),
    }
)
ABSORBED |= schedules_of("""
    # Its late batch is nine days old, so its id has expired.
    nobodys_beside_a_late_write_that_was_absorbed:
        write -213h-1m pid=+700 | COMMIT -213h-1s pid=+700 | write -213h pid=+700 | beat 0 | beat 100m |
        one leader → safe pid=+700
""")


NOT_ABSORBED = Schedules({"much_older_epoch_beside_a_commit_of_the_next_epoch": left(3, 9, is_safe=False)})

KITS = {
    "histories": Kit(HISTORIES, beside="no truncated records"),
    "calm": Kit(CALM),
    "absorbed": Kit(ABSORBED, then=absorbed(own=True)),
    "not absorbed": Kit(NOT_ABSORBED, then=absorbed(own=False)),
}


@pytest.fixture(scope="session")
def audit_of(tmp_path_factory) -> Callable[[str], tuple[AuditTables, Told]]:
    return audits(KITS, tmp_path_factory)


@pytest.mark.parametrize(("kit", "name"), cases(KITS))
def test_a_decision_that_its_log_lacks_refutes_every_proof(audit_of, kit, name):
    tables, told = audit_of(kit)
    expect_of(tables, told, name, OPEN)
