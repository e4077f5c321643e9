"""Clocks, versions, snapshots and later copies that refute a witness.

Some make up for one. Each is beside a control. More of tests/jobs/test_refuted_proofs.py.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.support.audits import AuditTables
from tests.support.cluster import HOUR, MINUTE, NOON, SECOND, Cluster, Copy, Place, id_in
from tests.support.log_bytes import encode_offset_commit_key, encode_offset_commit_value, encode_snapshot
from tests.support.refutations import (
    END,
    NO_COMMIT,
    OF_4_1,
    OLD_ENOUGH,
    Kit,
    audits,
    cases,
    compacted,
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
from tests.support.schedules import Expected, Schedule, Schedules, Story, Told, wrong
from txnlib.core.kafka.transaction_log import OffsetCommit, OffsetCommitKey

pytestmark = pytest.mark.shares("kits")

CLOCKS = Schedules()


# ---- One clock for all partitions of its broker


def beside_another(skew: int) -> Schedule:
    """On the first partition, an epoch of three minutes is open behind stamps that are older than it, or of two hours.
    Nobody's transaction is open on the second one, of the same leader."""

    def of(s: Story) -> Expected:
        broker, second = led_by_another(s, skew), (s.topic, 1)
        s.c.leaders[second] = broker
        for place in (s.place, second):
            s.c.copies[place] = [Copy(broker, END, leader_epochs=((0, 0),))]
        assigned = END - 3 * MINUTE if skew else END - 2 * HOUR
        s.note("Empty", assigned)
        for at in (assigned - MINUTE, assigned + MINUTE):
            tick(s, at, skew=skew)
            tick(s, at, skew=skew, partition=1)
        s.write(assigned + 5 * SECOND, stamp=assigned + 5 * SECOND + skew)
        s.c.write(second, s.pid + 700, 0, assigned + 10 * SECOND, stamp=assigned + skew)
        fails = {"fails": OLD_ENOUGH} if skew else {}
        return s.expect("HANGING", is_safe=not skew, pid=s.pid + 700, place=second, **fails)

    return of


CLOCKS |= {
    "clock_that_another_partition_refutes": beside_another(-2 * HOUR),
    "clock_that_no_partition_refutes": beside_another(0),
}


def measured_elsewhere(skew: int, age: int, *, is_safe: bool) -> Schedule:
    """Nobody's transaction between stamps; markers on another partition of its leader measure the clock."""

    def of(s: Story) -> Expected:
        broker, second = led_by_another(s, skew), (s.topic, 1)
        s.c.leaders[second], s.c.skews[second] = broker, skew
        s.c.copies[second] = [Copy(broker, END)]
        s.copied(Copy(broker, END, leader_epochs=((0, 0),)))
        for n in range(3):
            s.c.transaction(id_in(48, f"{s.topic}-{n}"), s.pid + 800 + n, 0, [second], (5 + 10 * n) * MINUTE)
        written = END - age
        tick(s, written - MINUTE, written + MINUTE, skew=skew)
        s.c.write(s.place, s.pid + 700, 0, written, stamp=written - 30 * MINUTE)
        return s.expect("HANGING", is_safe=is_safe, pid=s.pid + 700, fails=None if is_safe else OLD_ENOUGH)

    return of


CLOCKS |= {
    "clock_that_pairs_elsewhere_measure_behind": measured_elsewhere(-10 * MINUTE, 12 * MINUTE, is_safe=False),
    "clock_that_pairs_elsewhere_measure_ahead": measured_elsewhere(10 * MINUTE, 20 * MINUTE, is_safe=True),
    "clock_that_pairs_elsewhere_measure_right": measured_elsewhere(0, 20 * MINUTE, is_safe=True),
}


CLOCKS |= schedules_of("""
    # Pairs of decisions and markers measure the leader's clock ten minutes ahead of the coordinators'.
    stamps_by_a_clock_that_pairs_measure_ahead:
        led by another skew=10m | Empty 0 | beat 1m 10m 20m 1h 159m 161m | write 160m stamp=130m → safe
    young_by_a_clock_that_pairs_measure_ahead:
        led by another skew=10m | Empty 0 | beat 1m 10m 20m 1h 167m 169m | write 168m stamp=138m → unsafe OLD_ENOUGH
""")


# ---- A COMMIT that only a wrong clock calls over, or marked


def over_by_a_stamp(*, ahead: bool) -> Schedule:
    """A stamp is 23 minutes younger than a COMMIT, and their clocks were never compared. Its leader was ahead, and the
    marker is lost; or it was not, and the marker was deleted."""

    def of(s: Story) -> Expected:
        broker = led_by_another(s)
        s.note("Empty", 0)
        if ahead:
            tick(s, MINUTE, skew=24 * MINUTE)
        s.begin(MINUTE + SECOND)
        s.end(2 * MINUTE, start=MINUTE + SECOND, lost=[s.place] if ahead else ())
        if not ahead:
            tick(s, 25 * MINUTE)
            s.write(30 * MINUTE)
            state = replace(nothing_open(2 * MINUTE), last_sequence=0, last_offset=0)
            s.copied(Copy(broker, END, log_start=2, snapshots={2: encode_snapshot({s.pid: state})}))
        tick(s, 100 * MINUTE, leader_epoch=3)
        return unsafe(s, fails=NO_COMMIT) if ahead else safe(s)

    return of


def by_the_next_coordinator(*, behind: int) -> Schedule:
    """The coordinator moved. Behind, the new one seems to decide before the marker of the decision before."""

    def of(s: Story) -> Expected:
        broker = led_by_another(s)
        s.note("Empty", 0)
        s.transaction(MINUTE)
        tick(s, 15 * MINUTE)
        s.write(20 * MINUTE)
        begun = NOON + 20 * MINUTE - behind
        for state, at in (("Ongoing", 20 * MINUTE), ("PrepareCommit", 21 * MINUTE), ("CompleteCommit", 22 * MINUTE)):
            times = {"stamp": at - behind, "last_update_timestamp_ms": NOON + at - behind, "start_timestamp_ms": begun}
            s.note(state, at, [s.place] if state != "CompleteCommit" else (), leader_epoch=1, **times)
        if not behind:
            s.c.mark(s.place, s.pid, 0, "COMMIT", 21 * MINUTE + 5, coordinator_epoch=1)
            s.write(30 * MINUTE)
        tick(s, 100 * MINUTE, leader_epoch=3)
        s.copied(Copy(broker, END, log_start=1))
        return unsafe(s, fails=NO_COMMIT) if behind else safe(s)

    return of


def pair_elsewhere(s: Story, at: int, partition: int, **stamped: Any) -> None:
    """A transaction of another id. Its marker is the only one that compares the clock of its leader."""
    id_, pid, place = id_in(48, s.topic), s.pid + 800, (s.topic, partition)
    s.c.note(id_, "Ongoing", pid, 0, [place], at)
    s.c.write(place, pid, 0, at + 5, **{"leader_epoch": stamped.get("leader_epoch", 0)})
    s.c.note(id_, "PrepareCommit", pid, 0, [place], at + SECOND, start=at)
    s.c.mark(place, pid, 0, "COMMIT", at + SECOND + 10, **stamped)
    s.c.note(id_, "CompleteCommit", pid, 0, (), at + SECOND + 20, start=at)


def closed_beside_it(skew: int) -> Schedule:
    """A marker of three minutes ago on the first partition is stamped before its decision, or after it. The second one
    has the same leader, and stamps of hours."""

    def of(s: Story) -> Expected:
        broker, second = led_by_another(s, skew), (s.topic, 1)
        s.c.leaders[second] = broker
        s.c.copies[second] = [Copy(broker, END, leader_epochs=((0, 0),))]
        pair_elsewhere(s, END - 3 * MINUTE, 0)
        written = END - 3 * MINUTE if skew else END - 2 * HOUR
        for at in (written - MINUTE, written + MINUTE):
            tick(s, at, skew=skew, partition=1)
        s.c.write(second, s.pid + 700, 0, written, stamp=written + skew)
        fails = {"fails": OLD_ENOUGH} if skew else {}
        return s.expect("HANGING", is_safe=not skew, pid=s.pid + 700, place=second, **fails)

    return of


CLOCKS |= {
    "clock_that_a_closed_transaction_beside_it_confirms": closed_beside_it(0),
    "commit_before_a_stamp_of_a_leader_that_is_ahead": over_by_a_stamp(ahead=True),
    "commit_whose_marker_was_deleted_before_a_later_stamp": over_by_a_stamp(ahead=False),
}
CLOCKS |= schedules_of("""
    # Two COMMITs, ten minutes apart, by a leader whose clock was never compared. It was ten minutes ahead, and the
    # second marker is lost; or it was right.
    marker_of_the_commit_before_by_a_leader_ten_minutes_ahead:
        led by another skew=10m | Empty 0 | T 1m | begin 11m | end 12m lost |
        tick 100m leader_epoch=3 → unsafe NO_COMMIT
    two_commits_and_their_markers:
        led by another | Empty 0 | T 1m | begin 11m | end 12m | write 13m | tick 100m leader_epoch=3 → safe
""")
CLOCKS |= {
    "commit_by_the_next_coordinator_two_hours_behind": by_the_next_coordinator(behind=2 * HOUR),
    "commit_by_the_next_coordinator_with_its_marker": by_the_next_coordinator(behind=0),
}


# ---- A follower's later copy that closes it


def ended_later(kind: str | None) -> Schedule:
    """The leader was copied two hours ago, a follower now, with the marker; None: the follower has no marker."""

    def of(s: Story) -> Expected:
        s.late_write(3 * MINUTE)
        s.beat(0, 30 * MINUTE)
        if kind is not None:
            s.c.mark(s.place, s.pid, 0, kind, 100 * MINUTE)
        s.beat(110 * MINUTE)
        s.copied(Copy(1, END if kind is None else HOUR, taken=END if kind is None else HOUR), Copy(2, END))
        return safe(s) if kind is None else s.expect(None)

    return of


CLOCKS |= {
    "abort_in_a_later_copy_of_a_follower": ended_later("ABORT"),
    "commit_in_a_later_copy_of_a_follower": ended_later("COMMIT"),
    "no_marker_in_a_copy_of_a_follower": ended_later(None),
}


# ---- Snapshots of the leader in front that have nothing open


def closed() -> bytes:
    """Of a producer without an open transaction."""
    return encode_snapshot({})


def commits(snapshot: int | None, hole: int | None, *, is_safe: bool) -> Schedule:
    """Offsets that are committed in a transaction; of a snapshot, and of an offset that is missing."""

    def of(s: Story) -> Expected:
        place: Place = ("__consumer_offsets", 20 + s.number)

        def commit(at: int, pid: int = -1) -> None:
            key = encode_offset_commit_key(OffsetCommitKey(group_id=f"group-{at}", topic="orders", partition=0))
            value = encode_offset_commit_value(
                OffsetCommit(version=3, offset=at, metadata=b"", commit_timestamp_ms=NOON + at)
            )
            told: dict[str, Any] = {"content": (key, value), "sequence": -1, "is_transactional": pid >= 0}
            s.c.write(place, pid, 0 if pid >= 0 else -1, at, **told)

        s.note("Empty", 0)
        s.c.transaction(s.id, s.pid, 0, [place], MINUTE)
        for at in (3, 4, 5):
            commit(at * MINUTE)
        commit(6 * MINUTE, s.pid)
        for at in (10, 20, 100):
            s.c.transaction(id_in(49, f"beat-{s.topic}"), s.pid + 500, 0, [place], at * MINUTE)
        missing = None if hole is None else hole * MINUTE
        snapshots = {} if snapshot is None else {snapshot: closed()}
        kept = Copy(1, END, leader_epochs=((0, 0),), keep=lambda e: e.at != missing, snapshots=snapshots)
        s.c.copies[place] = [kept]
        return s.expect("HANGING", is_safe=is_safe, place=place)

    return of


CLOCKS |= {
    "offsets_behind_a_snapshot_behind_a_hole": commits(4, 3, is_safe=True),
    "offsets_behind_a_hole_behind_a_snapshot": commits(4, 5, is_safe=False),
    "offsets_behind_a_hole": commits(None, 3, is_safe=False),
    "offsets_behind_no_hole": commits(None, None, is_safe=True),
}


def cleaned(*, snapshot: bool) -> Schedule:
    """The cleaner removed a whole transaction in front, so the sequences of the first open batch show a loss."""

    def of(s: Story) -> Expected:
        s.note("Empty", 0)
        s.beat(0)
        s.transaction(MINUTE)
        s.begin(2 * MINUTE)
        s.end(2 * MINUTE + SECOND, start=2 * MINUTE)
        tick(s, 150 * SECOND)
        s.write(3 * MINUTE)
        s.beat(10 * MINUTE, 100 * MINUTE)
        snapshots = {6: encode_snapshot({s.pid: nothing_open(2 * MINUTE)})} if snapshot else {}
        gone = {2 * MINUTE + 5, 2 * MINUTE + SECOND + 10}
        s.copied(Copy(1, END, leader_epochs=((0, 0),), keep=lambda e: e.at not in gone, snapshots=snapshots))
        return s.expect("HANGING", is_safe=snapshot)

    return of


CLOCKS |= {
    "records_behind_a_snapshot_behind_what_was_cleaned": cleaned(snapshot=True),
    "records_behind_what_was_cleaned": cleaned(snapshot=False),
}


def above(open_there: Callable[[Story], dict[int, int | None]], *, is_safe: bool) -> Schedule:
    """The leader's snapshot above the first open batch, at offset 4: producers, and what each has open."""

    def of(s: Story) -> Expected:
        s.note("Empty", 0)
        s.beat(0)
        s.late_write(3 * MINUTE)
        s.beat(10 * MINUTE, 100 * MINUTE)
        state = nothing_open(3 * MINUTE)
        shown = {pid: replace(state, current_txn_first_offset=first) for pid, first in open_there(s).items()}
        s.copied(Copy(1, END, leader_epochs=((0, 0),), snapshots={7: encode_snapshot(shown)}))
        return safe(s) if is_safe else refuted(s, finds=("PRODUCER_SNAPSHOT_DISAGREES",))

    return of


CLOCKS |= {
    "snapshot_above_it_without_the_producer": above(lambda s: {s.pid + 500: None}, is_safe=False),
    "snapshot_above_it_without_any_producer": above(lambda s: {}, is_safe=False),
    "snapshot_above_it_with_another_first_offset": above(lambda s: {s.pid: 6}, is_safe=False),
    "snapshot_above_it_with_its_first_offset": above(lambda s: {s.pid: 4, s.pid + 500: None}, is_safe=True),
}


# ---- Older than the leader epoch of its first batch, by the metadata log

ELECTED = Schedules()


def created(at: int, *, is_safe: bool) -> Schedule:
    """The topic, whose partition has stamps of two hours ago."""

    def of(s: Story) -> Expected:
        log = with_metadata(s)
        assert log is not None
        log.topic(s.topic, 2, at)
        s.note("Empty", -4 * HOUR)
        tick(s, 59 * MINUTE)
        s.write(HOUR)
        tick(s, 61 * MINUTE)
        one_leader(s)
        return safe(s) if is_safe else unsafe(s, fails=OLD_ENOUGH)

    return of


def elected(at: int, *, is_safe: bool) -> Schedule:
    """The leader that wrote the first batch."""

    def of(s: Story) -> Expected:
        log = with_metadata(s)
        assert log is not None
        s.note("Empty", -4 * HOUR)
        s.beat(-HOUR)
        log.elect(s.topic, 2, at)
        log.elect(s.topic, 1, at + SECOND)
        tick(s, 59 * MINUTE, leader_epoch=2)
        s.write(HOUR, leader_epoch=2)
        tick(s, 61 * MINUTE, leader_epoch=2)
        s.copied(Copy(1, END, leader_epochs=((0, 0), (2, 2))))
        return safe(s) if is_safe else unsafe(s, fails=OLD_ENOUGH)

    return of


ELECTED |= {
    "topic_created_five_minutes_ago": created(END - 5 * MINUTE, is_safe=False),
    "topic_created_before_the_stamps": created(50 * MINUTE, is_safe=True),
    "leader_of_the_first_batch_elected_five_minutes_ago": elected(END - 5 * MINUTE, is_safe=False),
    "leader_of_the_first_batch_elected_before_the_stamps": elected(50 * MINUTE, is_safe=True),
}


def over_by_a_clock_that_one_pair_compares(skew: int) -> Schedule:
    """A stamp of a former leader is younger than a COMMIT without a marker; what was in front was deleted."""

    def of(s: Story) -> Expected:
        log = with_metadata(s)
        assert log is not None
        broker = 100 + s.number
        log.broker(broker, -6 * HOUR)
        for partition in (0, 1):
            log.elect(s.topic, broker, -4 * HOUR, partition=partition, isr=(broker,))
        led = {"leader_epoch": 1}
        s.c.copies[s.topic, 1] = [Copy(broker, END)]
        pair_elsewhere(s, 0, 1, stamp=SECOND + 10 + skew, **led)
        s.note("Empty", 0)
        tick(s, 10 * SECOND, MINUTE if skew else 25 * MINUTE, skew=skew, **led)
        s.note("Ongoing", MINUTE, [s.place])
        s.write(MINUTE + SECOND if skew else 30 * MINUTE, **led)
        s.end(2 * MINUTE, start=MINUTE, lost=[s.place])
        log.elect(s.topic, 1, 50 * MINUTE, isr=(1,))
        s.beat(100 * MINUTE, leader_epoch=2)
        state = {} if skew else {s.pid: replace(nothing_open(2 * MINUTE), last_sequence=-1, last_offset=0)}
        s.copied(Copy(1, END, log_start=1, snapshots={1: encode_snapshot(state)}))
        return unsafe(s, fails=NO_COMMIT) if skew else safe(s)

    return of


ELECTED |= {
    "commit_before_a_stamp_of_a_clock_that_one_pair_shows_ahead": over_by_a_clock_that_one_pair_compares(24 * MINUTE),
    "commit_before_a_stamp_of_a_clock_that_one_pair_confirms": over_by_a_clock_that_one_pair_compares(0),
}


# ---- A noted version of 3.9 that something refutes


LOWERED = Schedules({"older_epoch_since_a_level_below_2": left(3, 9, is_safe=True)})
LOWERED_SINCE = Schedules({"older_epoch_before_a_level_below_2": left(3, 9, is_safe=False)})


def marked(epochs: tuple[int, int], *, decided: bool = False) -> Callable[[Cluster], None]:
    """Two COMMIT markers on a topic of nobody's, each with an epoch, of records of the epochs 0 and 1."""

    def of(c: Cluster) -> None:
        place, pid, id_ = ("of-v2", 0), 790_000, id_in(48, "of-v1")
        for number, epoch in enumerate(epochs):
            at = (1 + 2 * number) * MINUTE
            if decided:
                c.note(id_, "Ongoing", pid, epoch, [place], at)
            c.write(place, pid, number, at + 5)
            if decided:
                c.note(id_, "PrepareCommit", pid, epoch, [place], at + SECOND, start=at)
            c.mark(place, pid, epoch, "COMMIT", at + SECOND + 10)
            if decided:
                c.note(id_, "CompleteCommit", pid, epoch, (), at + SECOND + 20, start=at)

    return of


MARKED = Schedules({"older_epoch_under_a_note_that_a_marker_refutes": left(3, 9, is_safe=False)})
MARKED["same_epoch_under_a_note_that_a_marker_refutes"] = left(9, 9, is_safe=True)
NOT_MARKED = Schedules({"older_epoch_beside_markers_of_the_epochs_of_their_records": left(3, 9, is_safe=True)})
FENCED = Schedules({"older_epoch_beside_a_commit_over_a_fenced_producers_record": left(3, 9, is_safe=True)})


def leaderless(*leaders: int, is_safe: bool) -> Schedule:
    """Leaders since the first open batch. The epochs cannot tell, because the coordinator has the same one."""

    def of(s: Story) -> Expected:
        log = with_metadata(s)
        assert log is not None
        s.note("Empty", -4 * HOUR, epoch=0)
        s.note("Empty", -3 * HOUR, epoch=1)
        s.beat(0)
        s.write(MINUTE, 1)
        s.note("Empty", 25 * MINUTE, epoch=1)
        compacted(s)
        for number, leader in enumerate(leaders):
            log.elect(s.topic, leader, (20 + number) * MINUTE)
        s.beat(100 * MINUTE, leader_epoch=len(leaders))
        return safe(s) if is_safe else unsafe(s, fails=NO_COMMIT)

    return of


#: Brokers from 4.2 on complete a transaction without the marker of a partition that has no leader.
NOTED = Schedules({"minute_without_a_leader_under_a_note_that_records_refute": leaderless(-1, 1, is_safe=False)})
NOTED["clean_elections_under_a_note_that_records_refute"] = leaderless(2, 1, is_safe=True)
BELIEVED = Schedules({"minute_without_a_leader_under_a_note_that_nothing_refutes": leaderless(-1, 1, is_safe=True)})


#: A COMMIT that no decision explains: of a capture with it, no abort of nobody's transaction is safe.
REFUTED = Schedules({"clock_that_a_closed_transaction_beside_it_refutes": closed_beside_it(-2 * HOUR)})

KITS = {
    "clocks": Kit(CLOCKS, beside="what nobody owns"),
    "refuted": Kit(REFUTED),
    "elected": Kit(ELECTED, notes=OF_4_1, cluster=kraft()),
    "lowered": Kit(LOWERED, notes=OF_4_1, cluster=kraft(((2, -5 * HOUR), (1, -4 * HOUR)))),
    "lowered since": Kit(LOWERED_SINCE, notes=OF_4_1, cluster=kraft(((2, -5 * HOUR), (1, 4 * MINUTE)))),
    "marked": Kit(MARKED, then=marked((1, 2))),
    "not marked": Kit(NOT_MARKED, then=marked((0, 1))),
    "fenced": Kit(FENCED, then=marked((1, 1), decided=True)),
    "noted": Kit(NOTED, cluster=kraft(), then=with_an_id_of_v2),
    "believed": Kit(BELIEVED, cluster=kraft()),
}


@pytest.fixture(scope="session")
def audit_of(tmp_path_factory) -> Callable[[str], tuple[AuditTables, Told]]:
    return audits(KITS, tmp_path_factory)


@pytest.mark.parametrize(("kit", "name"), cases(KITS))
def test_instants_and_versions_are_what_nothing_refutes(audit_of, kit, name):
    tables, told = audit_of(kit)
    assert wrong(tables, {name: told[name]}) == {}
