"""Files of a topic that know more than the judged copy.

Segments of other folders, producer snapshots, transaction indices, leader epoch checkpoints, and the bare header of a
marker that was cleaned: each refutes, also where the log beside it was not captured. The controls agree with the log.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from tests.support.audits import AuditTables
from tests.support.cluster import HOUR, MINUTE, Copy, id_in
from tests.support.log_bytes import encode_snapshot, encode_transaction_index
from tests.support.refutations import (
    END,
    OPEN_NOW,
    Kit,
    Open,
    audits,
    cases,
    compacted,
    expect_of,
    nothing_open,
    one_leader,
    refuted,
    safe,
    tick,
)
from tests.support.schedules import Expected, Schedule, Schedules, Story, Told

pytestmark = pytest.mark.shares("kits")

FILES = Schedules()
#: The answers of today that are not those expected.
OPEN: Open = {}
#: The leader's log: a beat, a transaction, the open batch, a beat; then what the copy of an hour lacks.
FIRST_OPEN, COPIED, MARKER = 4, 7, 7


def late(s: Story, *beats: int, kind: str = "COMMIT") -> None:
    """A late write, open since offset 4."""
    s.note("Empty", 0)
    s.transaction(MINUTE, kind)
    s.write(3 * MINUTE)
    s.beat(0, 10 * MINUTE, *beats)


def by_hand(s: Story) -> None:
    """An ABORT of the admin tool, and another batch behind it."""
    s.c.mark(s.place, s.pid, 0, "ABORT", 100 * MINUTE)
    tick(s, 110 * MINUTE)


def whole(broker: int = 1, **more: object) -> Copy:
    return Copy(broker, END, leader_epochs=((0, 0),), **more)


def of_an_hour(**more: object) -> Copy:
    """The leader's copy, which ends at offset 7, by its own checkpoint, too."""
    return Copy(1, HOUR, taken=END, **{"leader_epochs": ((0, 0),)} | more)


def beside(of: Callable[[], Iterable[Copy]], *, ended: bool, is_safe: bool = False) -> Schedule:
    """The copies. `ended`: the leader's log has an ABORT by hand at offset 7."""

    def schedule(s: Story) -> Expected:
        late(s, *([] if ended else [100 * MINUTE]))
        if ended:
            by_hand(s)
        s.copied(*of())
        return safe(s) if is_safe else refuted(s, may_be_closed=True)

    return schedule


# ---- Folders of the same broker


FILES |= {
    "older_folder_on_another_disk": beside(lambda: [whole(), Copy(1, HOUR, taken=END, folder="disk1")], ended=True),
    "older_folder_on_another_disk_that_agrees": beside(
        lambda: [whole(), Copy(1, HOUR, taken=END, folder="disk1")], ended=False, is_safe=True
    ),
    "future_folder_with_a_marker": beside(
        lambda: [of_an_hour(), Copy(1, END, folder="disk1", is_future=True)], ended=True
    ),
    "future_folder_beside_it_with_a_marker": beside(lambda: [of_an_hour(), Copy(1, END, is_future=True)], ended=True),
    "future_folder_that_has_not_caught_up": beside(
        lambda: [whole(), Copy(1, HOUR, folder="disk1", is_future=True)], ended=False, is_safe=True
    ),
}


def older_coordinator(*, begun: bool) -> Schedule:
    """A folder of the coordinator's partition on another disk is older; `begun`: than a transaction that is open."""

    def of(s: Story) -> Expected:
        s.note("Empty", 0)
        s.beat(0)
        if begun:
            s.begin(90 * MINUTE)
        else:
            s.transaction(MINUTE)
            s.write(3 * MINUTE)
            s.c.note(id_in(s.number, f"other-{s.number}"), "Empty", 910_000 + s.number, 0, (), 90 * MINUTE)
        s.beat(100 * MINUTE)
        one_leader(s)
        s.coordinator(Copy(1, END), Copy(1, HOUR, taken=END, folder="disk1"))
        return s.expect("LATE", or_verdict="UNKNOWN") if begun else safe(s)

    return of


FILES |= {
    "older_folder_of_the_coordinator": older_coordinator(begun=True),
    "older_folder_of_the_coordinator_that_agrees": older_coordinator(begun=False),
}


# ---- Producer snapshots and transaction indices


def snapshot(pid: int, open_since: int | None) -> bytes:
    return encode_snapshot({pid: replace(nothing_open(3 * MINUTE), current_txn_first_offset=open_since)})


def known_by(
    broker: int,
    *,
    snapshot_at: int | None = None,
    open_since: int | None = None,
    aborted: tuple[int, int] | None = None,
    is_safe: bool = False,
) -> Schedule:
    """A file of a broker; a follower's log was not captured. Its name is the offset of a snapshot; a transaction
    index has the first and the last offset of an aborted transaction."""

    def of(s: Story) -> Expected:
        late(s, *([100 * MINUTE] if is_safe else []), kind="ABORT" if is_safe and aborted else "COMMIT")
        if not is_safe:
            by_hand(s)
        snapshots = {} if snapshot_at is None else {snapshot_at: snapshot(s.pid, open_since)}
        indices = {} if aborted is None else {0: encode_transaction_index([(s.pid, *aborted, aborted[0])])}
        files = {"snapshots": snapshots, "transaction_indices": indices}
        if broker == 1:
            s.copied(whole(**files) if is_safe else of_an_hour(**files))
        else:
            other = Copy(broker, END, has_log=False, is_checkpointed=False, **files)
            s.copied(whole() if is_safe else of_an_hour(), other)
        return safe(s) if is_safe else refuted(s, may_be_closed=True)

    return of


FILES |= {
    "snapshot_of_a_follower_beyond_the_copy": known_by(2, snapshot_at=9),
    "snapshot_of_the_leader_beyond_the_copy": known_by(1, snapshot_at=9),
    "snapshot_of_a_follower_that_has_it_open": known_by(2, snapshot_at=7, open_since=FIRST_OPEN, is_safe=True),
    "snapshot_of_the_leader_that_has_it_open": known_by(1, snapshot_at=7, open_since=FIRST_OPEN, is_safe=True),
    "transaction_index_of_a_follower_beyond_the_copy": known_by(2, aborted=(FIRST_OPEN, MARKER)),
    "transaction_index_of_the_leader_beyond_the_copy": known_by(1, aborted=(FIRST_OPEN, MARKER)),
    "transaction_index_of_a_follower_that_agrees": known_by(2, aborted=(2, 3), is_safe=True),
    "transaction_index_of_the_leader_that_agrees": known_by(1, aborted=(2, 3), is_safe=True),
}


def of_topic_id(followers: str) -> Schedule:
    """The log of the leader shows it open; a snapshot of a follower, without its log, has nothing open of it."""

    def of(s: Story) -> Expected:
        late(s, 100 * MINUTE)
        files = {"snapshots": {7: snapshot(s.pid, None)}, "leader_epochs": ((0, 0),)}
        other = Copy(2, END, has_log=False, is_checkpointed=False, topic_id=followers, **files)
        s.copied(whole(topic_id=TOPIC_ID), other)
        return safe(s) if followers != TOPIC_ID else s.expect("HANGING", fails=OPEN_NOW, says="07.snapshot of broker 2")

    return of


TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAA"
FILES |= {
    "snapshot_of_a_follower_that_contradicts_the_log": of_topic_id(TOPIC_ID),
    "snapshot_of_another_topic_id": of_topic_id("BBBBBBBBBBBBBBBBBBBBBB"),
}


# ---- Leader epochs: what followed the open records may have lost a marker


def leader_epochs(own: tuple[tuple[int, int], ...], others: tuple[tuple[int, int], ...] | None = None) -> Schedule:
    """Compaction left one record of the id. The checkpoint of the leader, and that of a follower without its log."""

    def of(s: Story) -> Expected:
        is_safe = len(own) == 1 and len(others or ((0, 0),)) == 1
        s.note("Empty", 0)
        s.beat(0)
        if not is_safe:
            s.note("Ongoing", 3 * MINUTE - 5, [s.place])
        s.write(3 * MINUTE)
        if not is_safe:
            s.end(4 * MINUTE, start=3 * MINUTE - 5, lost=[s.place])
        s.note("Empty", 20 * MINUTE, epoch=1)
        compacted(s)
        s.beat(100 * MINUTE)
        copies = [Copy(1, END, leader_epochs=own)]
        if others is not None:
            copies.append(Copy(2, END, has_log=False, is_checkpointed=False, leader_epochs=others))
        s.copied(*copies)
        return safe(s) if is_safe else refuted(s)

    return of


FILES |= {
    "leader_epoch_that_began_at_the_end_of_the_log": leader_epochs(((0, 0), (5, 5))),
    "leader_epoch_that_only_a_follower_knows": leader_epochs(((0, 0),), ((0, 0), (4, 5))),
    "leader_epoch_that_all_know": leader_epochs(((0, 0),), ((0, 0),)),
    "leader_epoch_that_the_leader_knows": leader_epochs(((0, 0),)),
}


@FILES
def replica_with_batches_of_a_later_leader_epoch(s: Story) -> Expected:
    """It begins where the copy of the noted leader ends: the note is outdated."""
    late(s)
    s.beat(100 * MINUTE, leader_epoch=2)
    s.copied(of_an_hour(), Copy(2, END, log_start=COPIED))
    return refuted(s, may_be_closed=True)


@FILES
def replica_that_lags_behind(s: Story) -> Expected:
    late(s, 100 * MINUTE)
    s.copied(whole(), Copy(2, HOUR, taken=END))
    return safe(s)


# ---- A marker that was cleaned


def cleaned(of_broker: int, *, own: bool) -> Schedule:
    """The bare header of a control batch behind the open batch, in the leader's copy, or in a follower's, where the
    leader's has nothing; of the producer, or of another one."""

    def of(s: Story) -> Expected:
        late(s, 100 * MINUTE)
        at = 20 * MINUTE
        s.c.mark(s.place, s.pid if own else s.pid + 600, 0, "COMMIT", at, is_emptied=True)
        if of_broker == 1:
            s.copied(whole())
        else:
            s.copied(whole(keep=lambda e: e.at != at), whole(2))
        return refuted(s, may_be_closed=True) if own else safe(s)

    return of


FILES |= {
    "cleaned_marker_of_the_producer": cleaned(1, own=True),
    "cleaned_marker_of_the_producer_in_a_follower": cleaned(2, own=True),
    "cleaned_marker_of_another_producer": cleaned(1, own=False),
}

KITS = {"files": Kit(FILES)}


@pytest.fixture(scope="session")
def audit_of(tmp_path_factory) -> Callable[[str], tuple[AuditTables, Told]]:
    return audits(KITS, tmp_path_factory)


@pytest.mark.parametrize(("kit", "name"), cases(KITS))
def test_every_file_of_a_topic_speaks(audit_of, kit, name):
    tables, told = audit_of(kit)
    expect_of(tables, told, name, OPEN)
