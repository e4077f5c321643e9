"""What shows that a coordinator decided something that its log does not have.

COMMIT markers that no record explains, and logs that are gap-free in offsets, but not in content: they refute every
proof, on whatever partition they are. A decision that was prepared, told to the client and lost is never completed. The
controls, which nothing refutes, must be proven.
"""

from collections.abc import Callable

import pytest

from tests.support.audits import AuditTables
from tests.support.cluster import HOUR, MINUTE, SECOND, TXN, Cluster, Copy, Entry, Place, id_in
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
from tests.support.schedules import Expected, Schedule, Schedules, Story, Told

pytestmark = pytest.mark.shares("kits")

HISTORIES = Schedules()
#: The answers of today that are not those expected.
OPEN: Open = {}


def led_since(s: Story, at: int, leader_epoch: int, which: str = "later") -> None:
    """A record of another id by the coordinator of a leader epoch."""
    s.c.note(other(s, which), "Empty", 920_000 + s.number, 0, (), at, leader_epoch=leader_epoch)


def is_elected(s: Story, elected: bool) -> None:
    """Whether a leader followed the open records, so that a marker of theirs may have been lost."""
    if elected:
        elected_since(s)
    else:
        s.beat(100 * MINUTE)
        one_leader(s)


# ---- Markers that no decision explains


def elsewhere(
    kind: str | None = "COMMIT",
    *,
    elected: bool = False,
    coordinator_epoch: int = 0,
    ends_something: bool = True,
    is_decided: bool = False,
    is_followed: bool = False,
    restarts: bool = False,
    is_safe: bool = False,
) -> Schedule:
    """A batch here, and a marker of the producer on another partition. If no record tells of its decision, the
    coordinator has lost it with its tail. `is_followed`: a whole transaction comes after it there; `restarts`: the
    application does."""

    def of(s: Story) -> Expected:
        sibling = (s.topic, 1)
        s.note("Empty", 0)
        s.beat(0)
        s.beat(0, partition=1)
        s.write(MINUTE)
        if is_decided:
            s.note("Ongoing", MINUTE - 5, [sibling])
        if ends_something:
            s.c.write(sibling, s.pid, 0, MINUTE)
        if is_decided:
            s.end(2 * MINUTE, start=MINUTE - 5, places=[sibling])
        elif kind is not None:
            s.c.mark(sibling, s.pid, 0, kind, 2 * MINUTE, coordinator_epoch=coordinator_epoch)
        led_since(s, 10 * MINUTE, 4)
        if is_followed:
            later = {"leader_epoch": 4}
            s.note("Ongoing", 20 * MINUTE, [sibling], **later)
            s.c.write(sibling, s.pid, 0, 20 * MINUTE + 5)
            s.note("PrepareCommit", 21 * MINUTE, [sibling], start=20 * MINUTE, **later)
            s.c.mark(sibling, s.pid, 0, "COMMIT", 21 * MINUTE + 10, coordinator_epoch=4)
            s.note("CompleteCommit", 21 * MINUTE + 20, (), start=20 * MINUTE, **later)
        if restarts:
            s.note("Empty", 30 * MINUTE, epoch=1, leader_epoch=4)
        s.beat(100 * MINUTE, partition=1)
        is_elected(s, elected)
        return safe(s) if is_safe else refuted(s, is_error=kind == "COMMIT")

    return of


HISTORIES |= {
    "commit_elsewhere_under_one_leader": elsewhere(),
    "commit_elsewhere_with_an_election_since": elsewhere(elected=True),
    "commit_elsewhere_that_ends_nothing": elsewhere(ends_something=False),
    "commit_elsewhere_before_a_restart": elsewhere(restarts=True),
    "commit_elsewhere_that_ends_nothing_before_a_restart": elsewhere(ends_something=False, restarts=True),
    "commit_elsewhere_before_a_whole_transaction": elsewhere(is_followed=True),
    "commit_elsewhere_before_a_whole_transaction_with_an_election_since": elsewhere(elected=True, is_followed=True),
    "abort_elsewhere_of_a_coordinator_epoch_without_records": elsewhere("ABORT", coordinator_epoch=2),
    "abort_elsewhere_that_may_be_one_by_hand": elsewhere("ABORT", is_safe=True),
    "abort_elsewhere_that_may_be_one_by_hand_before_a_restart": elsewhere("ABORT", restarts=True, is_safe=True),
    "commit_elsewhere_that_a_record_explains": elsewhere(is_decided=True, is_safe=True),
    "commit_elsewhere_that_a_record_explains_before_another": elsewhere(
        is_decided=True, is_followed=True, elected=True, is_safe=True
    ),
    "nothing_elsewhere": elsewhere(None, is_safe=True),
}


@HISTORIES
def commit_in_front_under_one_leader(s: Story) -> Expected:
    """The first transaction's decision is lost, and so may be one of the batch behind it."""
    s.note("Empty", 0)
    s.beat(0)
    s.write(MINUTE)
    s.c.mark(s.place, s.pid, 0, "COMMIT", 2 * MINUTE)
    s.write(3 * MINUTE)
    led_since(s, 10 * MINUTE, 4)
    is_elected(s, False)
    return refuted(s, is_error=True)


@HISTORIES
def commit_in_front_that_a_record_explains(s: Story) -> Expected:
    s.note("Empty", 0)
    s.beat(0)
    s.begin(MINUTE)
    s.end(2 * MINUTE, start=MINUTE)
    s.write(3 * MINUTE)
    led_since(s, 10 * MINUTE, 4)
    is_elected(s, False)
    return safe(s)


def aborted_later(told: int | None, *, is_safe: bool = False) -> Schedule:
    """Its coordinator lost a PrepareCommit, and then aborted the transaction by its timeout; that marker is lost here.
    `told`: the coordinator epoch of the COMMIT marker that another partition has; None: there was no commit."""

    def of(s: Story) -> Expected:
        places = [s.place, (s.topic, 1)]
        later = {"leader_epoch": 4}
        s.note("Empty", 0)
        s.beat(0)
        s.beat(0, partition=1)
        s.begin(MINUTE, places)
        if told is not None:
            s.c.mark(places[1], s.pid, 0, "COMMIT", 90 * SECOND, coordinator_epoch=told)
        s.note("PrepareAbort", 4 * MINUTE, places, epoch=1, start=MINUTE, **later)
        s.c.mark(places[1], s.pid, 1, "ABORT", 4 * MINUTE + 10, coordinator_epoch=4)
        s.note("CompleteAbort", 4 * MINUTE + 20, (), epoch=1, start=MINUTE, **later)
        s.note("Empty", 5 * MINUTE, epoch=2, **later)
        s.beat(100 * MINUTE, partition=1)
        elected_since(s)
        return safe(s) if is_safe else refuted(s)

    return of


HISTORIES |= {
    "abort_decided_after_a_commit_that_the_coordinator_lost": aborted_later(0),
    "abort_decided_after_a_commit_that_a_coordinator_without_records_sent": aborted_later(2),
    "abort_decided_after_nothing": aborted_later(None, is_safe=True),
}


def nobodys(committed: int, *, is_sibling: bool, is_safe: bool) -> Schedule:
    """No coordinator knows the producer id, and a partition has a COMMIT of it. An id expires after seven days, not
    before. Its batch is a late one, or the marker is elsewhere."""

    def of(s: Story) -> Expected:
        pid, place = s.pid + 700, (s.topic, 1) if is_sibling else s.place
        s.c.write(place, pid, 0, committed - SECOND)
        s.c.mark(place, pid, 0, "COMMIT", committed)
        s.c.write(s.place, pid, 0, committed + SECOND)
        s.beat(0)
        if is_sibling:
            s.beat(0, 100 * MINUTE, partition=1)
        is_elected(s, False)
        return s.expect("HANGING", or_verdict="UNKNOWN" if not is_safe else "", is_safe=is_safe, pid=pid)

    return of


DAY = 24 * HOUR
HISTORIES |= {
    "nobodys_with_a_commit_elsewhere_of_two_hours_ago": nobodys(END - 2 * HOUR, is_sibling=True, is_safe=False),
    "nobodys_behind_a_commit_of_two_hours_ago": nobodys(END - 2 * HOUR, is_sibling=False, is_safe=False),
    "nobodys_behind_a_commit_of_nine_days_ago": nobodys(END - 9 * DAY, is_sibling=False, is_safe=True),
}


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
            led_since(s, (20 + number) * MINUTE, epoch, f"led-{number}")
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


def epochs(*assigned: int, elected: bool, is_safe: bool = False) -> Schedule:
    """The epochs that the gap-free log assigned; each is one more than the one before."""

    def of(s: Story) -> Expected:
        s.beat(0)
        s.write(MINUTE, assigned[0])
        for number, epoch in enumerate(assigned):
            s.note("Empty", number * 20 * MINUTE, epoch=epoch)
        is_elected(s, elected)
        return safe(s) if is_safe else refuted(s)

    return of


HISTORIES |= {
    "epochs_that_jump": epochs(0, 5, elected=True),
    "epochs_that_jump_under_one_leader": epochs(0, 5, elected=False),
    "epochs_that_jump_later": epochs(0, 1, 4, elected=True),
    "epochs_that_rise_by_one": epochs(0, 1, 2, elected=True, is_safe=True),
}


def between_transactions(epoch: int, *, is_safe: bool) -> Schedule:
    """A commit of epoch 0, and the next transaction at another one; then a late write."""

    def of(s: Story) -> Expected:
        s.note("Empty", 0)
        s.beat(0)
        s.transaction(MINUTE)
        if epoch == 1:
            s.note("Empty", 10 * MINUTE, epoch=1)
        s.note("Ongoing", 20 * MINUTE, [s.place], epoch=epoch)
        s.write(20 * MINUTE + 5, epoch)
        s.end(21 * MINUTE, start=20 * MINUTE, epoch=epoch)
        s.write(22 * MINUTE, epoch)
        elected_since(s)
        return safe(s) if is_safe else refuted(s)

    return of


HISTORIES |= {
    "epoch_that_jumps_between_two_commits": between_transactions(3, is_safe=False),
    "epoch_that_rises_between_two_commits": between_transactions(1, is_safe=True),
}


def not_ended(at: Callable[[Story], Place], *, elected: bool) -> Schedule:
    """Ongoing, then Empty, which no coordinator writes: between them was an end. The announced batch is there, so the
    Ongoing record was no append that timed out."""

    def of(s: Story) -> Expected:
        place = at(s)
        s.note("Empty", 0)
        s.beat(0)
        s.begin(MINUTE, [place])
        if place != s.place:
            s.write(MINUTE + 10)
            s.beat(0, 100 * MINUTE, partition=1)
        s.note("Empty", 20 * MINUTE, epoch=1)
        is_elected(s, elected)
        return refuted(s)

    return of


HISTORIES |= {
    "begun_here_and_never_ended": not_ended(lambda s: s.place, elected=True),
    "begun_here_and_never_ended_under_one_leader": not_ended(lambda s: s.place, elected=False),
    "begun_elsewhere_and_never_ended": not_ended(lambda s: (s.topic, 1), elected=True),
}


@HISTORIES
def begun_and_fenced(s: Story) -> Expected:
    """The control: the restart of the application ended it first."""
    s.note("Empty", 0)
    s.beat(0)
    s.begin(MINUTE)
    s.note("PrepareAbort", 20 * MINUTE, [s.place], epoch=1, start=MINUTE)
    s.c.mark(s.place, s.pid, 1, "ABORT", 20 * MINUTE + 10)
    s.note("CompleteAbort", 20 * MINUTE + 20, (), epoch=1, start=MINUTE)
    s.note("Empty", 20 * MINUTE + SECOND, epoch=2)
    s.write(30 * MINUTE, 2)
    elected_since(s)
    return safe(s)


def begun_twice(begun: int, kind: str, *, elected: bool = True, is_safe: bool) -> Schedule:
    """Its Prepare says that it began then, and its Ongoing record that it did at +1 min. Of a COMMIT the marker is
    here, and a late write; the marker of an ABORT is lost."""

    def of(s: Story) -> Expected:
        s.note("Empty", 0)
        s.beat(0)
        s.begin(MINUTE)
        epoch = 1 if kind == "ABORT" else 0
        lost = [s.place] if kind == "ABORT" else ()
        s.end(6 * MINUTE, kind, start=begun, epoch=epoch, lost=lost)
        if kind == "COMMIT":
            s.write(7 * MINUTE)
        else:
            s.note("Empty", 7 * MINUTE, epoch=2)
        is_elected(s, elected)
        return safe(s) if is_safe else refuted(s)

    return of


HISTORIES |= {
    "abort_of_another_start_than_its_ongoing": begun_twice(5 * MINUTE, "ABORT", is_safe=False),
    "commit_of_another_start_than_its_ongoing": begun_twice(5 * MINUTE, "COMMIT", is_safe=False),
    "commit_of_another_start_than_its_ongoing_under_one_leader": begun_twice(
        5 * MINUTE, "COMMIT", elected=False, is_safe=False
    ),
    "abort_of_the_start_of_its_ongoing": begun_twice(MINUTE, "ABORT", is_safe=True),
    "commit_of_the_start_of_its_ongoing": begun_twice(MINUTE, "COMMIT", is_safe=True),
}


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


def of_two_phases(state: str | None, *, is_safe: bool) -> Schedule:
    """The id prepares its commits, and never times out. A state that lists a sibling is no longer between two
    transactions."""

    def of(s: Story) -> Expected:
        sibling, forever = (s.topic, 1), {"transaction_timeout_ms": 2**31 - 1}
        s.note("Empty", 0, **forever)
        s.beat(0)
        s.note("Ongoing", MINUTE, [s.place], **forever)
        s.write(MINUTE + 5)
        s.end(2 * MINUTE, start=MINUTE, **forever)
        s.write(3 * MINUTE)
        if state == "Empty":
            s.note("Empty", 20 * MINUTE, epoch=1, **forever)
        elif state == "Ongoing":
            s.note("Ongoing", 20 * MINUTE, [sibling], **forever)
            s.c.write(sibling, s.pid, 0, 20 * MINUTE + 5)
        s.beat(10 * MINUTE)
        is_elected(s, False)
        return safe(s) if is_safe else unsafe(s)

    return of


CALM |= {
    "two_phase_id_that_is_empty": of_two_phases("Empty", is_safe=True),
    "two_phase_id_that_completed": of_two_phases(None, is_safe=True),
    "two_phase_id_with_a_transaction_elsewhere": of_two_phases("Ongoing", is_safe=False),
}


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


def nobodys_late(s: Story) -> Expected:
    """It has expired: its late batch is nine days old."""
    pid, written = s.pid + 700, END - 9 * DAY
    s.c.write(s.place, pid, 0, written - MINUTE)
    s.c.mark(s.place, pid, 0, "COMMIT", written - SECOND)
    s.c.write(s.place, pid, 0, written)
    s.beat(0)
    is_elected(s, False)
    return s.expect("HANGING", is_safe=True, pid=pid)


ABSORBED = Schedules(
    {
        "older_epoch_beside_a_late_write_that_was_absorbed": left(0, 1, is_safe=True),
        "much_older_epoch_beside_a_late_write_that_was_absorbed": left(3, 9, is_safe=True),
        "nobodys_beside_a_late_write_that_was_absorbed": nobodys_late,
    }
)

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
