"""Whole logs of coordinators that something refutes: a marker, an epoch, a clock of another leader.

Each is beside a control, which nothing refutes. More of tests/jobs/test_refuted_proofs.py.
"""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.audits import AuditTables
from tests.support.cluster import HOUR, MINUTE, NOON, SECOND, TXN, Copy, Entry
from tests.support.refutations import (
    END,
    NO_COMMIT,
    OF_4_1,
    OF_V2,
    Kit,
    T,
    audits,
    cases,
    kraft,
    led_by_another,
    one_leader,
    other,
    refuted,
    safe,
    tick,
    unsafe,
    with_an_id_of_v2,
    with_metadata,
)
from tests.support.schedule_text import schedules_of
from tests.support.schedules import Expected, Schedule, Schedules, Story, Told, wrong
from txnlib.core.kafka.transaction_log import TransactionLogEntry
from txnlib.core.kafka.transaction_state import TransactionState
from txnlib.core.rows import TopicPartition

pytestmark = pytest.mark.shares("kits")

HISTORIES = Schedules()


# ---- Producer epochs

HISTORIES |= schedules_of("""
    # The gap-free log has the epochs 0 and 1 of the producer id, which its id then gave up: it expired, or has
    # another one.
    epoch_that_an_expired_id_never_had:
        Empty 0 | beat 0 | T 1m | Empty 20m epoch=1 | write 30m epoch=9 | tombstone 40m | elected → refuted NO_COMMIT
    epoch_that_an_expired_id_had:
        Empty 0 | beat 0 | T 1m | Empty 20m epoch=1 | write 30m epoch=1 | tombstone 40m | elected → safe
    epoch_that_an_id_never_had_before_another_producer_id:
        Empty 0 | beat 0 | T 1m | Empty 20m epoch=1 | write 30m epoch=9 | Empty 40m pid=+1 | elected → refuted NO_COMMIT
    epoch_that_an_id_had_before_another_producer_id:
        Empty 0 | beat 0 | T 1m | Empty 20m epoch=1 | write 30m epoch=1 | Empty 40m pid=+1 | elected → safe

    # The record that assigned the producer id, and the stamps around the open batch.
    batch_a_day_older_than_its_producer_id:
        Empty 0 | tick -24h-1m | write -24h | tick -24h+1m | tick 100m leader_epoch=3 → refuted NO_COMMIT
    batch_younger_than_its_producer_id:
        Empty 0 | tick 1m | write 2m | tick 3m | tick 100m leader_epoch=3 → safe

    # The marker is lost, and the id goes on with another producer id, since its epochs are exhausted.
    commit_lost_at_the_last_epoch:
        Empty 1s epoch=32766 | beat 0 | Ongoing 1m epoch=32766 | write 1m+5ms epoch=32766 |
        PrepareCommit 2m epoch=32766 | CompleteCommit 2m+20ms epoch=32766 | Empty 3m pid=+1 | elected → unsafe NO_COMMIT
    abort_lost_at_the_last_epoch:
        Empty 1s epoch=32766 | beat 0 | Ongoing 1m epoch=32766 | write 1m+5ms epoch=32766 |
        PrepareAbort 2m epoch=32767 | CompleteAbort 2m+20ms epoch=32767 | Empty 3m pid=+1 | elected → safe
""")


# ---- Markers

HISTORIES |= schedules_of("""
    # The control: its coordinator did not get the answer at once.
    sibling_with_a_marker_that_was_sent_again:
        Empty 0 | beat 0 | beat 0 on 1 | begin 1m on 1 | PrepareCommit 2m on 1 | COMMIT 125s on 1 | COMMIT 155s on 1 |
        CompleteCommit 156s | write 3m | Empty 90m epoch=1 | beat 100m on 1 | elected → safe

    # The control: the first coordinator failed before it completed the decision.
    sibling_with_a_marker_that_a_later_coordinator_sent_again:
        Empty 0 | beat 0 | beat 0 on 1 | begin 1m on 1 | end 2m on 1 incomplete | write 3m |
        COMMIT 62m on 1 coordinator_epoch=1 | CompleteCommit 62m+20ms leader_epoch=1 |
        Empty 90m epoch=1 leader_epoch=1 | beat 100m on 1 | elected → safe

    # After its COMMIT, a sibling has another one, with nothing to end; or it has not.
    sibling_with_a_second_commit_that_ends_nothing:
        Empty 0 | beat 0 | beat 0 on 1 | begin 1m on 1 | end 2m on 1 | write 3m | COMMIT 62m on 1 | Empty 90m epoch=1 |
        beat 100m on 1 | elected → refuted NO_COMMIT
    sibling_with_a_second_commit_two_minutes_after_the_completion:
        Empty 0 | beat 0 | beat 0 on 1 | begin 1m on 1 | end 2m on 1 | write 3m | COMMIT 4m on 1 | Empty 90m epoch=1 |
        beat 100m on 1 | elected → refuted NO_COMMIT
    sibling_with_one_commit:
        Empty 0 | beat 0 | beat 0 on 1 | begin 1m on 1 | end 2m on 1 | write 3m | Empty 90m epoch=1 | beat 100m on 1 |
        elected → safe
""")


def one_decision(*, later: int = 0, coordinator_epoch: int = 0) -> Schedule:
    """It takes 20 ms, and its clock was compared with none; `later`: after it, another marker ends a late write."""

    def of(s: Story) -> Expected:
        led_by_another(s)
        tick(s, 0)
        s.note("Empty", 0)
        s.begin(T - 100)
        s.note("PrepareCommit", T, [s.place], start=T - 100)
        if not coordinator_epoch:
            s.c.mark(s.place, s.pid, 0, "COMMIT", T + 5)
        s.note("CompleteCommit", T + 20, (), start=T - 100)
        s.c.note(other(s), "Empty", 910_000 + s.number, 0, (), T + MINUTE, leader_epoch=12)
        if later:
            s.write(T + later - SECOND)
            s.c.mark(s.place, s.pid, 0, "COMMIT", T + later, coordinator_epoch=coordinator_epoch)
        s.write(T + 10 * MINUTE)
        tick(s, 100 * MINUTE, leader_epoch=3)
        return refuted(s, fails=NO_COMMIT) if later else safe(s)

    return of


HISTORIES |= {
    "second_marker_long_after_the_completion_of_the_only_decision": one_decision(later=2 * MINUTE),
    "only_marker_of_a_coordinator_that_led_after_the_completion": one_decision(later=2 * MINUTE, coordinator_epoch=12),
    "marker_of_the_only_decision": one_decision(),
}


def aborted(*, hidden: bool, ended: dict[str, Any] | None = None) -> Schedule:
    """By its timeout, of a client without transactions v2. `hidden`: a COMMIT before it, of the first batch, is
    compacted away. `ended`: fields of the records that end it."""

    def of(s: Story) -> Expected:
        tick(s, 0)
        s.write(MINUTE)
        s.note("Empty", -HOUR)
        begun = MINUTE - 5
        if hidden:
            s.note("Ongoing", begun, [s.place])
            s.note("PrepareCommit", 2 * MINUTE, [s.place], start=begun)
            s.note("CompleteCommit", 2 * MINUTE + 9, (), start=begun)
            begun = 3 * MINUTE - 5
            s.write(3 * MINUTE)
            s.c.note(other(s), "Empty", 910_000 + s.number, 0, (), begun - 3)
            s.coordinator(Copy(1, END, keep=lambda e: e.key != s.id or e.at >= begun))
        s.note("Ongoing", begun, [s.place])
        s.note("PrepareAbort", begun + 2 * MINUTE, [s.place], start=begun, epoch=1, **ended or {})
        s.note("CompleteAbort", begun + 2 * MINUTE + 9, (), start=begun, epoch=1, **ended or {})
        tick(s, 10 * MINUTE, 100 * MINUTE, leader_epoch=3)
        return unsafe(s, fails=NO_COMMIT) if hidden else safe(s)

    return of


HISTORIES |= {
    "abort_of_the_second_of_two_transactions": aborted(hidden=True),
    "abort_of_the_only_transaction": aborted(hidden=False),
}


# ---- Coordinators that moved

#: Of a cluster whose metadata log names the leader of each leader epoch.
MOVED = Schedules()


def moves(s: Story, at: int) -> dict[str, Any]:
    """Broker 2 leads the coordinator's log until then, broker 1 from then on. The fields of records since."""
    log = with_metadata(s)
    assert log is not None
    log.elect(TXN, 2, -4 * HOUR, partition=s.number)
    log.elect(TXN, 1, at, partition=s.number)
    for leader, later in ((2, 0), (1, MINUTE)):
        log.elect(s.topic, leader, 90 * MINUTE + later, isr=(leader,))
    s.c.note(other(s), "Empty", 910_000 + s.number, 0, (), at + SECOND, leader_epoch=2)
    return {"leader_epoch": 2}


def behind(skew: int, at: int, *, start: int) -> dict[str, Any]:
    """The fields of a record of broker 2, whose clock is behind."""
    stamped = at - skew
    return {"stamp": stamped, "last_update_timestamp_ms": NOON + stamped, "start": start - skew, "leader_epoch": 1}


def moved(skew: int, *, lost: bool) -> Schedule:
    """A COMMIT just after the first batch, by a former coordinator; its clock may be behind the stamp in front."""

    def of(s: Story) -> Expected:
        begun = 112 * SECOND
        moves(s, 45 * MINUTE)
        tick(s, begun - 2 * SECOND)
        for state, at in (("Empty", 0), ("Ongoing", begun), ("PrepareCommit", 2 * MINUTE), ("CompleteCommit", 121_000)):
            places = [s.place] if state in ("Ongoing", "PrepareCommit") else ()
            s.note(state, at, places, **behind(skew, at, start=begun))
        s.write(begun + 5)
        if not lost:
            s.c.mark(s.place, s.pid, 0, "COMMIT", 2 * MINUTE + 10, coordinator_epoch=1)
            s.write(3 * MINUTE)
        tick(s, 100 * MINUTE, leader_epoch=2)
        return unsafe(s, fails=NO_COMMIT) if lost else safe(s)

    return of


MOVED |= {
    "commit_by_a_former_coordinator_that_was_three_minutes_behind": moved(3 * MINUTE, lost=True),
    "commit_by_a_former_coordinator_with_its_marker": moved(0, lost=False),
}


def completed_by_another(skew: int, *, lost: bool) -> Schedule:
    """Completed by broker 1, and prepared by it, or by broker 2, which is behind. In front is the marker of a commit
    that compaction removed."""

    def of(s: Story) -> Expected:
        begun = T + 40 * SECOND
        later = moves(s, T + (61 if skew else 10) * SECOND)
        tick(s, MINUTE)
        s.write(T - 20)
        s.c.mark(s.place, s.pid, 0, "COMMIT", T, coordinator_epoch=1)
        s.write(T + 50 * SECOND)
        for state, at in (("Ongoing", begun), ("PrepareCommit", T + 60 * SECOND)):
            s.note(state, at, [s.place], **behind(skew, at, start=begun) | ({} if skew else later))
        told = {"start": begun - skew, "last_update_timestamp_ms": NOON + T + 62 * SECOND}
        s.note("CompleteCommit", T + 70 * SECOND, (), **later | told)
        if not lost:
            s.c.mark(s.place, s.pid, 0, "COMMIT", T + 65 * SECOND, coordinator_epoch=2)
            s.write(T + 75 * SECOND)
        s.c.note(other(s), "Empty", 910_000 + s.number, 0, (), T - 5 * MINUTE, leader_epoch=1)
        tick(s, 100 * MINUTE, leader_epoch=2)
        s.coordinator(Copy(1, END, keep=lambda e: e.at > T))
        return unsafe(s, fails=NO_COMMIT) if lost else safe(s)

    return of


MOVED |= {
    "marker_in_front_of_a_commit_that_another_clock_prepared": completed_by_another(2 * MINUTE, lost=True),
    "marker_of_a_commit_that_one_clock_prepared_and_completed": completed_by_another(0, lost=False),
}


# ---- Transactions v2

V2 = Schedules()


V2 |= schedules_of("""
    # The marker of epoch 32767 is lost. The completion has another producer id; compaction may hide all before it.
    commit_of_v2_lost_at_the_last_epoch:
        Empty 0 v2 | Empty 1s epoch=32766 v2 | beat 0 | Ongoing 1m epoch=32766 v2 | write 1m+5ms epoch=32766 |
        PrepareCommit 2m epoch=32767 next_pid=+1 v2 | CompleteCommit 2m+20ms pid=+1 v2 | compacted 30s |
        elected → refuted NO_COMMIT
    abort_of_v2_lost_at_the_last_epoch:
        Empty 0 v2 | Empty 1s epoch=32766 v2 | beat 0 | Ongoing 1m epoch=32766 v2 | write 1m+5ms epoch=32766 |
        PrepareAbort 2m epoch=32767 next_pid=+1 v2 | CompleteAbort 2m+20ms pid=+1 v2 | compacted 30s | elected → safe
    commit_of_v2_hidden_at_the_last_epoch:
        Empty 0 v2 | Empty 1s epoch=32766 v2 | beat 0 | Ongoing 1m epoch=32766 v2 | write 1m+5ms epoch=32766 |
        PrepareCommit 2m epoch=32767 next_pid=+1 v2 | CompleteCommit 2m+20ms pid=+1 v2 | Empty 10m pid=+1 epoch=1 v2 |
        compacted 10m+1ms | elected → refuted NO_COMMIT
    abort_of_v2_hidden_at_the_last_epoch:
        Empty 0 v2 | Empty 1s epoch=32766 v2 | beat 0 | Ongoing 1m epoch=32766 v2 | write 1m+5ms epoch=32766 |
        PrepareAbort 2m epoch=32767 next_pid=+1 v2 | CompleteAbort 2m+20ms pid=+1 v2 | Empty 10m pid=+1 epoch=1 v2 |
        compacted 10m+1ms | elected → refuted NO_COMMIT
""")
V2 |= {
    "abort_by_version_2_of_the_second_transaction_of_an_older_client": aborted(hidden=True, ended=OF_V2),
    "abort_by_version_2_of_the_only_transaction_of_an_older_client": aborted(hidden=False, ended=OF_V2),
}


# ---- Truncated records of a coordinator


def truncated_decision(high_watermark: int, *, is_safe: bool) -> Schedule:
    """Another broker led the coordinator's log: its copy has a PrepareCommit, which the high watermark it noted has
    passed, or not."""

    def of(s: Story) -> Expected:
        s.note("Empty", 0)
        s.late_write(3 * MINUTE)
        s.beat(0, 10 * MINUTE, 100 * MINUTE)
        one_leader(s)
        s.c.note(other(s), "Empty", 910_000 + s.number, 0, (), 20 * MINUTE, leader_epoch=1)

        def record(offset: int, state: TransactionState, at: int) -> Entry:
            value = TransactionLogEntry(
                transactional_id=s.id, producer_id=s.pid, producer_epoch=0, transaction_state=state,
                transaction_partitions=(TopicPartition(*s.place),), transaction_timeout_ms=60_000, version=0,
                last_update_timestamp_ms=NOON + at, start_timestamp_ms=NOON + 4 * MINUTE,
            )  # fmt: skip
            return Entry(at=at, offset=offset, key=s.id, value=value, stamp=at)

        own = (
            record(4, TransactionState.ONGOING, 4 * MINUTE),
            record(5, TransactionState.PREPARE_COMMIT, 5 * MINUTE),
        )
        s.coordinator(Copy(1, END), Copy(2, 10 * MINUTE, taken=END, own=own, high_watermark=high_watermark))
        # That broker lived on for minutes, and noted high watermarks.
        tick(s, 10 * MINUTE, partition=1)
        s.c.copies[s.topic, 1] = [Copy(1, END), Copy(2, 10 * MINUTE, taken=END)]
        return safe(s) if is_safe else refuted(s)

    return of


HISTORIES |= {
    "commit_that_was_committed_and_truncated": truncated_decision(6, is_safe=False),
    "commit_that_was_truncated_above_the_high_watermark": truncated_decision(4, is_safe=True),
}


KITS = {
    "v2": Kit(V2, notes=OF_4_1 | {"transaction_version": 2}, then=with_an_id_of_v2),
    "histories": Kit(HISTORIES),
    "moved": Kit(MOVED, notes=OF_4_1, cluster=kraft()),
}


@pytest.fixture(scope="session")
def audit_of(tmp_path_factory) -> Callable[[str], tuple[AuditTables, Told]]:
    return audits(KITS, tmp_path_factory)


@pytest.mark.parametrize(("kit", "name"), cases(KITS))
def test_a_log_that_something_refutes_shows_no_whole_history(audit_of, kit, name):
    tables, told = audit_of(kit)
    assert wrong(tables, {name: told[name]}) == {}
