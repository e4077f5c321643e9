"""Hidden commits, lost markers, lying clocks, incomplete coordinators: an abort is called safe only with a proof.

In all schedules everything else is as it should be, so a schedule that is wrongly called safe shows a statement of the
proof without a witness.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.audits import AuditTables, audited
from tests.support.cluster import HOUR, MINUTE, SECOND, TXN, Cluster, Copy, Entry, id_in
from tests.support.schedule_text import schedules_of
from tests.support.schedules import Expected, Schedule, Schedules, Story, flip_last, wrong
from txnlib.errors import UsageError

pytestmark = pytest.mark.shares("schedules")

END = 3 * HOUR
TIMES = (0, 10 * MINUTE, 100 * MINUTE)
OLD, NEW = "AAAAAAAAAAAAAAAAAAAAAA", "BBBBBBBBBBBBBBBBBBBBBB"
SCHEDULES = Schedules()
#: Schedules with a coordinator partition that cannot be read whole: no producer id is an orphan beside them.
DAMAGED = Schedules()


def compacted(s: Story) -> None:
    """Other ids wrote to the coordinator partition, and only the newest record of each is left."""
    until = 30 * MINUTE
    for at in (until - MINUTE, until + MINUTE):
        s.c.note(id_in(s.number, f"other-{s.number}"), "Empty", 900_000 + s.number, 0, (), at)
    s.coordinator(Copy(1, END, is_compacted_until=until))


# ---- Hidden COMMIT: what compaction leaves does not tell what was decided.


def leaves_restart(s: Story) -> None:
    s.note("Empty", 20 * MINUTE, epoch=1)


def leaves_later_abort(s: Story) -> None:
    leaves_restart(s)
    elsewhere = [(f"elsewhere-{s.pid}", 0)]
    s.begin(21 * MINUTE, elsewhere, epoch=1)
    s.end(22 * MINUTE, "ABORT", start=21 * MINUTE, places=elsewhere, epoch=1)


def leaves_tombstone(s: Story) -> None:
    s.note(None, 20 * MINUTE)


def leaves_nothing(s: Story) -> None:
    """Not even the tombstone: the records of the id become those of another one, which compaction keeps the last of."""
    other = id_in(s.number, f"other-{s.number}")
    log = s.c.logs[TXN, s.number]
    log[:] = [replace(entry, key=other, value=None) if entry.key == s.id else entry for entry in log]


def hidden(leaves: Callable[[Story], None], *, lost: bool) -> Schedule:
    """A committed transaction whose marker is lost, or a late write; of the coordinator's log is kept what a function
    leaves."""

    def of(s: Story) -> Expected:
        s.beat(0)
        s.begin(MINUTE)
        s.end(MINUTE + SECOND, start=MINUTE, lost=[s.place] if lost else ())
        if not lost:
            s.write(2 * MINUTE)
            s.copied(Copy(1, END, leader_epochs=((0, 0),)))
        s.beat(*TIMES[1:], leader_epoch=1 if lost else 0)
        leaves(s)
        compacted(s)
        return s.expect("HANGING", "a COMMIT" if lost else "", is_safe=not lost)

    return of


for _leaves in (leaves_restart, leaves_later_abort, leaves_tombstone, leaves_nothing):
    for _lost, _name in ((True, "lost_commit"), (False, "late_write")):
        SCHEDULES[f"{_name}_before_{_leaves.__name__.removeprefix('leaves_')}"] = hidden(_leaves, lost=_lost)


@SCHEDULES
def commit_in_a_truncated_tail(s: Story) -> Expected:
    """Broker 2 was deposed; its disk still has the marker, which nothing else shows."""
    at = MINUTE + SECOND
    s.beat(0)
    s.begin(MINUTE)
    s.end(at, start=MINUTE, lost=[s.place])
    leaves_restart(s)
    s.beat(*TIMES[1:], leader_epoch=1)
    compacted(s)
    marker = Entry(at=at, offset=3, producer_id=s.pid, producer_epoch=0, marker="COMMIT", stamp=at)
    s.copied(Copy(1, END), Copy(2, 2 * MINUTE, taken=END, own=(marker,), high_watermark=3))
    return s.expect("HANGING", "COMMIT marker at offset 3 of broker 2")


def late_write_before_compaction(*leader_epochs: tuple[int, int], **expected: Any) -> Schedule:
    def of(s: Story) -> Expected:
        s.late_write(2 * MINUTE)
        s.beat(*TIMES)
        leaves_restart(s)
        compacted(s)
        s.copied(Copy(1, END, leader_epochs=leader_epochs))
        return s.expect("HANGING", **expected)

    return of


# ---- One marker for two decisions.


def two_commits(
    apart: int,
    *,
    skew: int = 0,
    complete: bool = True,
    is_compacted: bool = False,
    verdict: str = "HANGING",
    **expected: Any,
) -> Schedule:
    def of(s: Story) -> Expected:
        if skew:
            s.led_by_broker_2(skew, END)
        s.beat(0)
        s.begin(MINUTE)
        s.end(MINUTE + 20, start=MINUTE)
        second = MINUTE + 20 + apart
        s.begin(second - 60)
        s.end(second, start=second - 60, lost=[s.place], complete=complete)
        s.beat(*TIMES[1:])
        if is_compacted:
            compacted(s)
        return s.expect(verdict, **expected)

    return of


DUE, DECIDED = "a COMMIT marker is due here", "decided COMMIT"
SCHEDULES |= {
    "election_that_only_the_checkpoint_shows": late_write_before_compaction(
        (0, 0), (3, 9), says="leaders changed since"
    ),
    "no_election_by_the_checkpoint": late_write_before_compaction((0, 0), is_safe=True),
    "two_commits_on_one_clock_and_one_marker": two_commits(110, says=DUE),
    "marker_of_the_first_commit_at_the_time_of_the_second": two_commits(200, skew=200, says=DECIDED),
    "only_the_last_of_two_commits_is_left": two_commits(110, is_compacted=True, says=DECIDED),
    "only_the_last_of_two_commits_by_two_clocks_is_left": two_commits(200, skew=150, is_compacted=True, says=DECIDED),
    "overdue_commit_behind_an_older_marker": two_commits(110, complete=False, verdict="STUCK", reason="MARKER_OVERDUE"),
}


@DAMAGED
def commit_behind_a_marker_that_was_sent_again(s: Story) -> Expected:
    """The answer to the first marker was lost, so the same coordinator sent it again; the next COMMIT lost its
    marker."""
    s.led_by_broker_2(0, END)
    s.beat(0)
    s.begin(MINUTE)
    s.end(MINUTE + SECOND, start=MINUTE, takes=30 * SECOND)
    s.c.mark(s.place, s.pid, 0, "COMMIT", MINUTE + 31 * SECOND - 50)
    second = MINUTE + 31 * SECOND + 100
    s.begin(second)
    s.end(second + 100, start=second, lost=[s.place])
    s.beat(*TIMES[1:])
    return s.expect("HANGING", DUE)


# ---- Damage in the current copy of a coordinator, and an older copy beside it.


def flip_in_the_middle(content: bytes) -> bytes:
    """One bit in the second batch."""
    second = int.from_bytes(content[8:12], "big") + 12
    return content[: second + 70] + bytes([content[second + 70] ^ 1]) + content[second + 71 :]


def hidden_by_damage(older: Copy, verdict: str) -> Schedule:
    """Ongoing with the partition, by the record that damage hides."""

    def of(s: Story) -> Expected:
        s.note("Empty", 0)
        s.note("Ongoing", 150 * MINUTE, [s.place], transaction_timeout_ms=HOUR)
        s.write(150 * MINUTE + 5)
        s.c.note(id_in(s.number, f"after-{s.number}"), "Empty", 900_000 + s.number, 0, (), 151 * MINUTE)
        s.beat(0, 151 * MINUTE)
        s.coordinator(Copy(1, END, damage=flip_in_the_middle), older)
        return s.expect(verdict)

    return of


DAMAGED |= {
    "damage_beside_a_copy_that_ends_below_it": hidden_by_damage(Copy(2, MINUTE, taken=END), "UNKNOWN"),
    "damage_that_another_copy_makes_up_for": hidden_by_damage(Copy(2, END), "OPEN"),
}


@DAMAGED
def damaged_end_beside_an_older_copy(s: Story) -> Expected:
    s.c.note(id_in(s.number, f"first-{s.number}"), "Empty", 900_000 + s.number, 0, (), 0)
    s.note("Ongoing", 150 * MINUTE, [s.place], transaction_timeout_ms=HOUR)
    s.write(150 * MINUTE + 5)
    s.beat(0, 151 * MINUTE)
    s.coordinator(Copy(1, END, damage=flip_last), Copy(2, MINUTE, taken=END))
    return s.expect("UNKNOWN")


# ---- Coordinators that were not all seen.


@SCHEDULES
def late_write_in_a_whole_capture(s: Story) -> Expected:
    s.late_write(2 * MINUTE)
    s.beat(*TIMES)
    return s.expect("HANGING", is_safe=True, reason="WRITTEN_AFTER_MARKER")


@DAMAGED
def coordinator_without_a_certain_leader(s: Story) -> Expected:
    late_write_in_a_whole_capture(s)
    s.c.leaders[TXN, s.number] = None
    return s.expect("HANGING", f"the leader of {TXN}-{s.number} is not known for certain")


@DAMAGED
def coordinator_copy_that_its_own_stamps_refute(s: Story) -> Expected:
    late_write_in_a_whole_capture(s)
    s.c.note(id_in(s.number, f"later-{s.number}"), "Empty", 900_000 + s.number, 0, (), 120 * MINUTE)
    s.coordinator(Copy(1, END, taken=110 * MINUTE))
    return s.expect("HANGING", is_safe=True)


def written_again(verdict: str, says: str = "", *, reason: str | None = None, copy: Copy, **changes: Any) -> Schedule:
    """A late write, another one if it has changes, and the copy of the coordinator."""

    def of(s: Story) -> Expected:
        late_write_in_a_whole_capture(s)
        if changes:
            s.write(150 * MINUTE, **changes)
        s.coordinator(copy)
        return s.expect(verdict, says, reason=reason)

    return of


BEFORE = Copy(1, 120 * MINUTE, taken=120 * MINUTE)
DAMAGED |= schedules_of("""
    epoch_fence_in_progress: begin 100m | PrepareEpochFence 100m+1s start=100m | beat 0 101m → LATE
""")
DAMAGED |= {
    "coordinator_whose_checkpoint_was_not_copied": written_again(
        "HANGING", "is not confirmed", copy=Copy(1, END, is_checkpointed=False)
    ),
    # The first write is old; the last one may be in a transaction that the coordinator's copy cannot show.
    "written_again_after_the_coordinators_copy": written_again(
        "UNKNOWN", reason="CAPTURE_SKEW", copy=BEFORE, payload=5
    ),
    # The same, but the producer dates its batches back, so that nothing shows when it wrote the last one.
    "written_again_at_an_unknown_time": written_again("UNKNOWN", reason="CAPTURE_SKEW", copy=BEFORE, stamp=2 * MINUTE),
}


@DAMAGED
def record_that_only_a_lagging_replica_has(s: Story) -> Expected:
    """The id expired, and compaction removed its tombstone from the leader's copy."""
    late_write_in_a_whole_capture(s)
    other = id_in(s.number, f"other-{s.number}")
    for at in (80 * MINUTE, 90 * MINUTE):
        s.c.note(other, "Empty", 900_000 + s.number, 0, (), at)
    s.coordinator(Copy(1, END, keep=lambda entry: entry.key == other), Copy(2, 70 * MINUTE, taken=END))
    return s.expect("HANGING", is_safe=True, reason="TRANSACTIONAL_ID_EXPIRED")


@DAMAGED
def records_that_two_copies_decode_differently(s: Story) -> Expected:
    """A copy of another cluster's log: the judged copy's record counts."""
    s.note("Ongoing", 100 * MINUTE, [s.place], transaction_timeout_ms=2 * HOUR)
    s.write(100 * MINUTE + 5)
    s.beat(0, 101 * MINUTE)
    entry = next(e for e in s.c.logs[TXN, s.number] if e.key == s.id)
    assert entry.value is not None
    foreign = replace(entry, offset=0, value=replace(entry.value, transaction_partitions=()))
    s.coordinator(Copy(1, END, leader_epochs=((0, 0),)), Copy(0, 0, taken=END, own=(foreign,), high_watermark=1))
    return s.expect("OPEN")


# ---- Ages that clocks refute.


@SCHEDULES
def leader_whose_clock_is_two_hours_behind(s: Story) -> Expected:
    s.led_by_broker_2(-2 * HOUR, END)
    s.transaction(165 * MINUTE)
    s.write(170 * MINUTE, stamp=30 * MINUTE)
    s.beat(160 * MINUTE, 171 * MINUTE)
    return s.expect("HANGING")


@SCHEDULES
def stamp_behind_that_is_older_than_one_before(s: Story) -> Expected:
    s.beat(150 * MINUTE)
    s.transaction(160 * MINUTE)
    s.write(170 * MINUTE, stamp=30 * MINUTE)
    s.c.write(s.place, s.pid + 700, 0, 171 * MINUTE, stamp=-HOUR, is_transactional=False, is_broker_clock=True)
    return s.expect("HANGING", "no broker's clock proves its age")


# ---- Leaders, folders, instants.


@SCHEDULES
def outdated_note_beside_a_longer_copy_with_the_marker(s: Story) -> Expected:
    s.beat(0)
    s.begin(MINUTE)
    s.end(20 * MINUTE, start=MINUTE)
    s.beat(30 * MINUTE)
    s.copied(Copy(1, 10 * MINUTE, taken=END), Copy(2, END))
    return s.expect(None)


@SCHEDULES
def folder_of_a_deleted_topic(s: Story) -> Expected:
    """Broker 2 has a longer folder of an earlier topic of the same name, with a higher leader epoch."""
    late_write_in_a_whole_capture(s)
    known = {"leader_epoch": 7, "producer_id": -1, "sequence": -1, "is_transactional": False, "stamp": -HOUR}
    stale = tuple(Entry(at=0, offset=offset, **known) for offset in range(30))
    s.copied(Copy(1, END, topic_id=NEW), Copy(2, -HOUR, taken=END, own=stale, topic_id=OLD, high_watermark=30))
    return s.expect("HANGING", is_safe=True)


@SCHEDULES
def partition_copy_that_its_own_stamps_refute(s: Story) -> Expected:
    late_write_in_a_whole_capture(s)
    s.copied(Copy(1, END, taken=90 * MINUTE))
    return s.expect("HANGING", is_safe=True)


@SCHEDULES
def begun_after_the_noted_instant_of_its_copy(s: Story) -> Expected:
    """The partition was copied later than noted, and the transaction began in between."""
    s.beat(0, 171 * MINUTE)
    s.begin(170 * MINUTE)
    s.copied(Copy(1, END, taken=100 * MINUTE))
    s.coordinator(Copy(1, 120 * MINUTE, taken=120 * MINUTE))
    return s.expect("UNKNOWN")


def test_nothing_is_said_that_the_copies_do_not_prove_and_only_a_proof_makes_an_abort_safe(audit_of_schedules):
    assert wrong(*audit_of_schedules) == {}


# ---- The number of coordinators, and whose folder is whose: a capture for each.


def captured(tmp_path: Path, change: Callable[[Cluster], None] = lambda c: None, **notes: object) -> Path:
    """A late write of `pay` (producer 1000) and an orphan (2000), each on a topic of its own."""
    c = Cluster()
    late_write_in_a_whole_capture(Story(c, "late", id_in(7, "pay"), 1_000, 7))
    orphan = Story(c, "orphan", "", 2_000, 0)
    orphan.write(2 * MINUTE)
    orphan.beat(*TIMES)
    orphan.copied(Copy(1, END, leader_epochs=((0, 0),)))
    change(c)
    return c.capture(tmp_path / "brokers", END, notes=notes)


def verdicts(tables: AuditTables) -> dict[int, tuple[str, bool]]:
    return {row["producer_id"]: (row["verdict"], row["safe_to_abort"]) for row in tables.rows("open_transactions")}


SAFE = ("HANGING", True)


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        pytest.param(50, {1_000: SAFE, 2_000: SAFE}, marks=pytest.mark.slow),
        # The hashes of ids refute the noted number, so that Kafka's default is only assumed.
        (5, {1_000: ("HANGING", False), 2_000: ("HANGING", False)}),
        pytest.param(49, {1_000: ("HANGING", False), 2_000: ("HANGING", False)}, marks=pytest.mark.slow),
    ],
)
def test_a_number_that_ids_refute_is_not_known(tmp_path, count, expected):
    assert verdicts(audited(captured(tmp_path, coordinator_partitions=count))) == expected


@pytest.mark.slow
def test_a_folder_of_a_deleted_incarnation_does_not_raise_the_number_of_coordinators(tmp_path):
    def change(c: Cluster) -> None:
        for number in range(50):
            c.copies[TXN, number] = [Copy(1, END, topic_id=NEW)]
        c.logs[TXN, 60] = []
        c.copies[TXN, 60] = [Copy(2, 0, taken=END, topic_id=OLD)]
        c.leaders[TXN, 60] = None

    tables = audited(captured(tmp_path, change, coordinator_partitions=None))
    assert verdicts(tables)[2_000] == ("HANGING", False)
    assert tables.run is not None
    assert (tables.run.settings.coordinator_partitions, tables.run.settings.coordinator_partitions_basis) == (
        50,
        "DEFAULT",
    )


@pytest.mark.slow
def test_a_second_log_directory_is_of_the_broker_that_the_first_number_names(tmp_path):
    folder = captured(tmp_path, lambda c: c.copies.update({("late", 0): [Copy(1, END, folder="2")]}))
    (folder / "1" / "2" / "replication-offset-checkpoint").write_text("0\n1\nlate 0 9\n")
    assert verdicts(audited(folder)) == {1_000: SAFE, 2_000: SAFE}


def test_two_numbers_that_contradict_capture_json_are_an_error(tmp_path):
    folder = captured(tmp_path, lambda c: c.copies.update({("late", 0): [Copy(2, END)]}))
    (folder / "9").mkdir()
    (folder / "2").rename(folder / "9" / "2")
    with pytest.raises(UsageError, match=r"first number in its path, 9, .* by capture\.json broker 2 has late-0"):
        audited(folder)
