"""Stamps of a clock that something shows to be wrong then.

A clock that steps within a leader epoch proves nothing in it, by however little it steps, and whatever most of its
pairs say. Pairs of a decision and its marker count wherever they are certain. The controls have honest clocks.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.support.audits import AuditTables
from tests.support.cluster import HOUR, MINUTE, NOON, SECOND, TXN, Copy, Place, id_in
from tests.support.log_bytes import encode_snapshot
from tests.support.refutations import (
    END,
    NO_COMMIT,
    OF_4_1,
    OLD_ENOUGH,
    Kit,
    Open,
    T,
    audits,
    cases,
    compacted,
    elected_since,
    expect_of,
    kraft,
    led_by_another,
    nothing_open,
    safe,
    tick,
    unsafe,
    with_metadata,
)
from tests.support.schedules import Expected, Schedule, Schedules, Story, Told

pytestmark = pytest.mark.shares("kits")

CLOCKS = Schedules()
#: The answers of today that are not those expected.
OPEN: Open = {
    "ten_minutes_back_since_the_election_of_its_leader": ("HANGING", False),
}


def beats(s: Story, *times: int, step: int = 0, partition: int = 0, leader_epoch: int = 0) -> None:
    """Decisions with their markers, while the clock of the partition's leader is off."""
    place = (s.topic, partition)
    skew = s.c.skews.get(place, 0)
    s.c.skews[place] = skew + step
    s.beat(*times, partition=partition, leader_epoch=leader_epoch)
    s.c.skews[place] = skew


def beside_it(s: Story, broker: int) -> Place:
    """Another partition of the leader."""
    place = (s.topic, 1)
    s.c.leaders[place] = broker
    s.c.copies[place] = [Copy(broker, END, leader_epochs=((0, 0),))]
    return place


# ---- How old it is: the clock steps around the batch, and is right before and after


def stepped(step: int, age: int, *, own_clock: bool = False, by: str = "markers") -> Schedule:
    """The stamps around the batch are markers; or batches of no transaction, beside a marker in front, or beside one
    on another partition of the leader. `own_clock`: one broker leads the partition and the coordinators."""

    def of(s: Story) -> Expected:
        broker = 1 if own_clock else led_by_another(s)
        s.note("Empty", 0)
        right = [n * MINUTE for n in (1, 10, 20, 60)]
        written, near = END - age, 10 * SECOND
        if by == "elsewhere":
            beside_it(s, broker)
            beats(s, *right, partition=1)
            beats(s, written - 30 * SECOND, step=step, partition=1)
        else:
            beats(s, *right)
        if by == "markers":
            beats(s, written - near, written + near, step=step)
        else:
            tick(s, written - near, written + near, skew=step)
        if by == "beside one in front":
            beats(s, written - 30 * SECOND, step=step)
        beats(s, END - 100 * SECOND, partition=1 if by == "elsewhere" else 0)
        s.write(written, stamp=END - 30 * MINUTE)
        return unsafe(s, fails=OLD_ENOUGH) if step else safe(s)

    return of


CLOCKS |= {
    "twenty_minutes_back_by_its_own_decisions": stepped(-20 * MINUTE, 5 * MINUTE),
    "twenty_minutes_back_by_its_own_decisions_on_one_clock": stepped(-20 * MINUTE, 5 * MINUTE, own_clock=True),
    "ninety_seconds_back_by_its_own_decisions": stepped(-90 * SECOND, 870 * SECOND),
    "ninety_seconds_back_by_its_own_decisions_on_one_clock": stepped(-90 * SECOND, 870 * SECOND, own_clock=True),
    "twenty_minutes_back_by_a_marker_in_front": stepped(-20 * MINUTE, 5 * MINUTE, by="beside one in front"),
    "ninety_seconds_back_by_a_marker_in_front": stepped(-90 * SECOND, 870 * SECOND, by="beside one in front"),
    "twenty_minutes_back_by_a_marker_elsewhere": stepped(-20 * MINUTE, 5 * MINUTE, by="elsewhere"),
    "ninety_seconds_back_by_a_marker_elsewhere": stepped(-90 * SECOND, 870 * SECOND, by="elsewhere"),
    "right_by_its_own_decisions": stepped(0, 20 * MINUTE),
    "right_by_its_own_decisions_on_one_clock": stepped(0, 20 * MINUTE, own_clock=True),
    "right_by_a_marker_in_front": stepped(0, 20 * MINUTE, by="beside one in front"),
    "right_by_a_marker_elsewhere": stepped(0, 20 * MINUTE, by="elsewhere"),
}


def otherwise_before(skew: int, age: int, *, is_safe: bool) -> Schedule:
    """Six pairs of the first leader epoch show a right clock, and the pairs of the batch's own one that it is off."""

    def of(s: Story) -> Expected:
        led_by_another(s)
        s.note("Empty", 0)
        beats(s, *(n * MINUTE for n in (1, 10, 20, 30, 40, 60)))
        written = END - age
        beats(s, 100 * MINUTE, written - MINUTE, written + MINUTE, step=skew, leader_epoch=1)
        s.write(written, stamp=written - 30 * MINUTE, leader_epoch=1)
        never = {"never_finds": ("MARKER_MISSING",)}
        return safe(s, **never) if is_safe else unsafe(s, fails=OLD_ENOUGH, **never)

    return of


def stepped_on_another_broker(s: Story) -> Expected:
    """The clock of another broker is off, which leads another partition."""
    broker, age = led_by_another(s), 20 * MINUTE
    s.note("Empty", 0)
    beside_it(s, broker + 200)
    beats(s, *(n * MINUTE for n in (1, 10, 20)), partition=1)
    beats(s, END - age, step=-20 * MINUTE, partition=1)
    beats(s, *(n * MINUTE for n in (1, 10, 20)), END - age - MINUTE, END - age + MINUTE)
    s.write(END - age)
    return safe(s)


CLOCKS |= {
    "ten_minutes_back_since_the_election_of_its_leader": otherwise_before(-10 * MINUTE, 8 * MINUTE, is_safe=False),
    "ten_minutes_ahead_since_the_election_of_its_leader": otherwise_before(10 * MINUTE, 20 * MINUTE, is_safe=True),
    "another_broker_twenty_minutes_back": stepped_on_another_broker,
}


# ---- One pair that shows the clock, in logs that begin late


def one_pair(skew: int, *, cleaned: bool = False, deleted: bool = False) -> Schedule:
    """A marker of three minutes ago on the first partition, by a leader that is behind; the second one has stamps of
    hours. `cleaned`: of its coordinator's records only the completion is left; `deleted`: what was in front of it."""

    def of(s: Story) -> Expected:
        broker = led_by_another(s, skew)
        second = beside_it(s, broker)
        id_, pid, at = id_in(48, s.topic), s.pid + 800, END - 3 * MINUTE
        tick(s, -MINUTE, skew=skew)
        s.c.note(id_, "Ongoing", pid, 0, [s.place], at)
        s.c.write(s.place, pid, 0, at + 5)
        s.c.end(id_, pid, 0, [s.place], at + SECOND, start=at)
        s.copied(Copy(broker, END, leader_epochs=((0, 0),), log_start=1 if deleted else 0))
        if cleaned:
            (before,) = s.c.copies.get((TXN, 48), [Copy(1, END)])
            kept = before.keep
            s.c.copies[TXN, 48] = [Copy(1, END, keep=lambda e: kept(e) and (e.key != id_ or e.at > at + SECOND))]
        written = END - (3 * MINUTE if skew else 2 * HOUR)
        for near in (written - MINUTE, written + MINUTE):
            tick(s, near, skew=skew, partition=1)
        s.c.write(second, s.pid + 700, 0, written, stamp=written + skew)
        fails = {"fails": OLD_ENOUGH} if skew else {}
        return s.expect("HANGING", is_safe=not skew, pid=s.pid + 700, place=second, **fails)

    return of


PAIRS = Schedules(
    {
        "pair_in_a_log_whose_beginning_was_deleted": one_pair(-2 * HOUR, deleted=True),
        "pair_of_which_only_the_completion_is_left": one_pair(-2 * HOUR, cleaned=True),
        "pair_of_a_right_clock_of_which_only_the_completion_is_left": one_pair(0, cleaned=True),
    }
)


# ---- Which marker is whose, where commits follow each other every 100 ms


def next_commit(step: int, *, own_clock: bool = False, by: str = "here") -> Schedule:
    """Compaction left the completion of the second COMMIT, said at +100 ms and written at +170. The first one's marker
    of +5 ms is stamped later by a step of the clock; the second one's is lost, if there is a step."""

    def of(s: Story) -> Expected:
        broker = 1 if own_clock else led_by_another(s)
        partition = 1 if by == "elsewhere" else 0
        if partition:
            beside_it(s, broker)
        beats(s, *(n * MINUTE for n in (1, 3, 5, 40, 50, 60)), partition=partition)
        beats(s, T - 3 * SECOND, T + 2 * SECOND, step=step, partition=partition)
        s.write(T - 20)
        s.c.mark(s.place, s.pid, 0, "COMMIT", T + 5, stamp=T + 5 + step)
        s.write(T + 60)
        if not step:
            s.c.mark(s.place, s.pid, 0, "COMMIT", T + 130)
            s.write(T + 190)
        s.note("Ongoing", T + 50, [s.place])
        s.note("PrepareCommit", T + 100, [s.place], start=T + 50)
        s.note("CompleteCommit", T + 170, (), start=T + 50, last_update_timestamp_ms=NOON + T + 100)
        compacted(s)
        if partition:
            tick(s, 100 * MINUTE, leader_epoch=3)
        else:
            elected_since(s)
        return unsafe(s, fails=NO_COMMIT) if step else safe(s)

    return of


CLOCKS |= {
    "98_ms_ahead_where_30_decide": next_commit(98),
    "98_ms_ahead_where_30_decide_on_one_clock": next_commit(98, own_clock=True),
    "98_ms_ahead_where_30_decide_by_a_marker_elsewhere": next_commit(98, by="elsewhere"),
    "145_ms_ahead_where_30_decide": next_commit(145),
    "right_where_30_ms_decide": next_commit(0),
    "right_where_30_ms_decide_on_one_clock": next_commit(0, own_clock=True),
}


# ---- A COMMIT that a stamp in front of the batch calls over


def over_by(step: int) -> Schedule:
    """The stamp in front is ahead by a step, which a marker on another partition of the leader shows; or it is right,
    and the batch is of after the COMMIT. The first segment was deleted, and with it perhaps the COMMIT's marker."""

    def of(s: Story) -> Expected:
        broker, begun = led_by_another(s), MINUTE + SECOND
        beside_it(s, broker)
        s.note("Empty", -HOUR)
        beats(s, *(n * MINUTE for n in (-30, -20, -10, 40, 50, 60)), partition=1)
        beats(s, MINUTE - 5 * SECOND, step=step, partition=1)
        tick(s, 0, MINUTE, skew=step)
        s.begin(begun)
        s.end(2 * MINUTE, start=begun, lost=[s.place] if step else ())
        if not step:
            tick(s, 25 * MINUTE)
            s.write(30 * MINUTE)
        tick(s, 100 * MINUTE, leader_epoch=3)
        first = 1 if step else 4
        state = {} if step else {s.pid: replace(nothing_open(2 * MINUTE), last_sequence=0, last_offset=2)}
        s.copied(Copy(broker, END, log_start=first, snapshots={first: encode_snapshot(state)}))
        return unsafe(s, fails=NO_COMMIT) if step else safe(s)

    return of


CLOCKS |= {"commit_over_by_a_stamp_that_a_marker_elsewhere_refutes": over_by(24 * MINUTE)}
CLOCKS |= {"commit_over_by_a_stamp_that_nothing_refutes": over_by(0)}

UNCLEAN = Schedules()


def over_and_unclean(step: int) -> Schedule:
    """The same with a metadata log, which has an unclean election behind the COMMIT: no screen may say both that it
    removed the COMMIT's marker and that an abort is safe."""

    def of(s: Story) -> Expected:
        log = with_metadata(s)
        assert log is not None
        broker = 100 + s.number
        log.broker(broker, -6 * HOUR)
        for partition in (0, 1):
            log.elect(s.topic, broker, -4 * HOUR, partition=partition, isr=(broker,))
        s.c.copies[s.topic, 1] = [Copy(broker, END)]
        led = {"leader_epoch": 1}
        s.note("Empty", -HOUR)
        beats(s, *(n * MINUTE for n in (-30, -20, -10, 40, 45, 60)), partition=1, **led)
        beats(s, MINUTE - 5 * SECOND, step=step, partition=1, **led)
        tick(s, 0, MINUTE, skew=step, **led)
        s.note("Ongoing", MINUTE + SECOND, [s.place])
        if step:
            s.write(MINUTE + 2 * SECOND, **led)
        s.end(2 * MINUTE, start=MINUTE + SECOND, lost=[s.place])
        if not step:
            tick(s, 25 * MINUTE, **led)
            s.write(30 * MINUTE, **led)
        log.elect(s.topic, 1, 50 * MINUTE, isr=(1,))
        s.beat(100 * MINUTE, leader_epoch=2)
        first = 1 if step else 2
        state = {} if step else {s.pid: replace(nothing_open(2 * MINUTE), last_sequence=-1, last_offset=0)}
        s.copied(Copy(1, END, log_start=first, snapshots={first: encode_snapshot(state)}))
        return unsafe(s, fails=NO_COMMIT) if step else safe(s)

    return of


UNCLEAN |= {
    "commit_before_an_unclean_election_over_by_a_stamp_that_is_refuted": over_and_unclean(24 * MINUTE),
    "commit_before_an_unclean_election_over_by_a_stamp_that_is_right": over_and_unclean(0),
}


# ---- A hole whose records behind it were stamped by a clock that had run back


def hole_dated(step: int) -> Schedule:
    """The coordinator is off just behind the hole, as the marker of a decision there shows; then it is right again.
    In the hole is a COMMIT that has lost its marker, if there is a step; else the hole is older than the batch."""

    def of(s: Story) -> Expected:
        sibling, begun = (s.topic, 1), T if step else MINUTE
        s.c.note(id_in(s.number, f"front-{s.number}"), "Empty", 920_000 + s.number, 0, (), 0)
        tick(s, 15 * MINUTE)
        s.note("Ongoing", begun, [s.place])
        s.write(T + 5)
        s.end(begun + SECOND, start=begun, lost=[s.place])
        id_, pid, at = id_in(s.number, f"beside-{s.number}"), 930_000 + s.number, begun + MINUTE
        off = {"start": at + step}
        for state, later in (("Ongoing", 0), ("PrepareCommit", SECOND), ("CompleteCommit", SECOND + 20)):
            stamp = at + later + step
            told = {"stamp": stamp, "last_update_timestamp_ms": NOON + stamp}
            s.c.note(id_, state, pid, 0, [sibling] if state != "CompleteCommit" else (), at + later, **off | told)
        s.c.write(sibling, pid, 0, at + 5)
        s.c.mark(sibling, pid, 0, "COMMIT", at + SECOND + 10)
        stamp = begun + 2 * MINUTE + step
        s.note("Empty", begun + 2 * MINUTE, epoch=1, stamp=stamp, last_update_timestamp_ms=NOON + stamp)
        for minute in (24, 40):
            s.c.note(id_in(s.number, f"behind-{s.number}"), "Empty", 940_000 + s.number, 0, (), minute * MINUTE)
        tick(s, 30 * MINUTE, 60 * MINUTE, leader_epoch=3)
        s.coordinator(Copy(1, END, keep=lambda e: e.key != s.id or e.at > begun + MINUTE))
        return unsafe(s, fails=NO_COMMIT) if step else safe(s)

    return of


CLOCKS |= {
    "hole_in_front_of_a_clock_that_a_marker_shows_ten_minutes_back": hole_dated(-10 * MINUTE),
    "hole_in_front_of_a_clock_that_a_marker_shows_right": hole_dated(0),
}

KITS = {
    "clocks": Kit(CLOCKS),
    "pairs": Kit(PAIRS, beside="what nobody owns"),
    "unclean": Kit(UNCLEAN, notes=OF_4_1, cluster=kraft()),
}


@pytest.fixture(scope="session")
def audit_of(tmp_path_factory) -> Callable[[str], tuple[AuditTables, Told]]:
    return audits(KITS, tmp_path_factory)


@pytest.mark.parametrize(("kit", "name"), cases(KITS))
def test_a_clock_that_was_wrong_then_proves_nothing(audit_of, kit, name):
    tables, told = audit_of(kit)
    expect_of(tables, told, name, OPEN)
