"""Hidden commits, lost markers, lying clocks, incomplete coordinators: an abort is called safe only with a proof.

One schedule a topic, many schedules an audit. Each has its own coordinator partition. In all of them everything else is as it
should be, so a schedule that is wrongly called safe shows a statement of the proof without a witness.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.cluster import HOUR, MINUTE, SECOND, TXN, Cluster, Copy, Entry, Place, id_in
from tests.support.memory_audits import MemoryTables, audited
from tests.support.schedules import Expected, Schedule, Told, beat, flip_last, happened, into, late_write, wrong
from txnlib.errors import UsageError

END = 3 * HOUR
OLD, NEW = "AAAAAAAAAAAAAAAAAAAAAA", "BBBBBBBBBBBBBBBBBBBBBB"


SCHEDULES: dict[str, Schedule] = {}
#: Schedules with a coordinator partition that cannot be read whole: no producer id is an orphan beside them.
DAMAGED: dict[str, Schedule] = {}
schedule, damaged = into(SCHEDULES), into(DAMAGED)
#: When another producer's transactions show a broker's clock.
TIMES = (0, 10 * MINUTE, 100 * MINUTE)


def compacted(c: Cluster, partition: int, until: int) -> None:
    """Other ids wrote to the coordinator partition, and only the newest record of each is left."""
    other = id_in(partition, f"other-{partition}")
    for at in (until - MINUTE, until + MINUTE):
        c.note(other, "Empty", 900_000 + partition, 0, (), at)
    c.copies[TXN, partition] = [Copy(1, END, is_compacted_until=until)]


# ---- Hidden COMMIT: what compaction leaves does not tell what was decided.


def hidden(c: Cluster, topic: str, id_: str, pid: int, number: int, *, lost: bool, rest: Callable[[], None]) -> Expected:
    """A committed transaction whose marker is lost, or a late write; the coordinator's log keeps only `rest`."""
    place = (topic, 0)
    beat(c, place, pid, (0,))
    c.begin(id_, pid, 0, [place], MINUTE)
    c.end(id_, pid, 0, [place], MINUTE + SECOND, start=MINUTE, lost=[place] if lost else ())
    if not lost:
        c.write(place, pid, 0, 2 * MINUTE)
    beat(c, place, pid, (10 * MINUTE, 100 * MINUTE), leader_epoch=1 if lost else 0)
    rest()
    compacted(c, number, 30 * MINUTE)
    return Expected(pid, "HANGING", is_safe=not lost, says="a COMMIT" if lost else "")


def leaves_restart(c: Cluster, id_: str, pid: int) -> None:
    c.note(id_, "Empty", pid, 1, (), 20 * MINUTE)


def leaves_later_abort(c: Cluster, id_: str, pid: int) -> None:
    leaves_restart(c, id_, pid)
    elsewhere = [(f"elsewhere-{pid}", 0)]
    c.begin(id_, pid, 1, elsewhere, 21 * MINUTE)
    c.end(id_, pid, 1, elsewhere, 22 * MINUTE, "ABORT", start=21 * MINUTE)


def leaves_tombstone(c: Cluster, id_: str, pid: int) -> None:
    c.note(id_, None, pid, 0, (), 20 * MINUTE)


def leaves_nothing(c: Cluster, id_: str, pid: int) -> None:
    """Not even the tombstone: the records of the id become those of another one, which compaction keeps the last of."""
    for place, log in c.logs.items():
        if place[0] == TXN:
            log[:] = [
                replace(entry, key=id_in(place[1], f"other-{place[1]}"), value=None) if entry.key == id_ else entry for entry in log
            ]


LEFT = {"restart": leaves_restart, "later_abort": leaves_later_abort, "tombstone": leaves_tombstone, "nothing": leaves_nothing}


def _hidden(name: str, leaves: Callable[[Cluster, str, int], None], *, lost: bool) -> None:
    def of(c: Cluster, topic: str, place: Place, id_: str, pid: int, number: int) -> Expected:
        return hidden(c, topic, id_, pid, number, lost=lost, rest=lambda: leaves(c, id_, pid))

    SCHEDULES[f"{'lost_commit' if lost else 'late_write'}_before_{name}"] = of


for _name, _leaves in LEFT.items():
    _hidden(_name, _leaves, lost=True)
    _hidden(_name, _leaves, lost=False)


@schedule
def commit_in_a_truncated_tail(c, topic, place, id_, pid, number):
    """Broker 2 was deposed; its disk still has the marker, which nothing else shows."""
    beat(c, place, pid, (0,))
    c.begin(id_, pid, 0, [place], MINUTE)
    c.end(id_, pid, 0, [place], MINUTE + SECOND, start=MINUTE, lost=[place])
    leaves_restart(c, id_, pid)
    beat(c, place, pid, (10 * MINUTE, 100 * MINUTE), leader_epoch=1)
    compacted(c, number, 30 * MINUTE)
    marker = Entry(at=MINUTE + SECOND, offset=3, producer_id=pid, producer_epoch=0, marker="COMMIT", stamp=MINUTE + SECOND)
    c.copies[place] = [Copy(1, END), Copy(2, 2 * MINUTE, taken=END, own=(marker,), high_watermark=3)]
    return Expected(pid, "HANGING", says="COMMIT marker at offset 3 of broker 2")


@schedule
def election_that_only_the_checkpoint_shows(c, topic, place, id_, pid, number):
    c.transaction(id_, pid, 0, [place], MINUTE)
    c.write(place, pid, 0, 2 * MINUTE)
    beat(c, place, pid, TIMES)
    leaves_restart(c, id_, pid)
    compacted(c, number, 30 * MINUTE)
    c.copies[place] = [Copy(1, END, leader_epochs=((0, 0), (3, 9)))]
    return Expected(pid, "HANGING", says="leaders changed since")


@schedule
def no_election_by_the_checkpoint(c, topic, place, id_, pid, number):
    c.transaction(id_, pid, 0, [place], MINUTE)
    c.write(place, pid, 0, 2 * MINUTE)
    beat(c, place, pid, TIMES)
    leaves_restart(c, id_, pid)
    compacted(c, number, 30 * MINUTE)
    c.copies[place] = [Copy(1, END, leader_epochs=((0, 0),))]
    return Expected(pid, "HANGING", is_safe=True)


# ---- One marker for two decisions.


def two_commits(c: Cluster, topic: str, id_: str, pid: int, apart: int, *, complete: bool = True) -> None:
    place = (topic, 0)
    beat(c, place, pid, (0,))
    c.begin(id_, pid, 0, [place], MINUTE)
    c.end(id_, pid, 0, [place], MINUTE + 20, start=MINUTE)
    second = MINUTE + 20 + apart
    c.begin(id_, pid, 0, [place], second - 60)
    c.end(id_, pid, 0, [place], second, start=second - 60, lost=[place], complete=complete)
    beat(c, place, pid, (10 * MINUTE, 100 * MINUTE))


@schedule
def two_commits_on_one_clock_and_one_marker(c, topic, place, id_, pid, number):
    two_commits(c, topic, id_, pid, 110)
    return Expected(pid, "HANGING", says="a COMMIT marker is due here")


@schedule
def two_commits_by_two_clocks_and_one_marker(c, topic, place, id_, pid, number):
    c.skews[topic, 0] = 150
    c.leaders[topic, 0], c.copies[topic, 0] = 2, [Copy(2, END)]
    two_commits(c, topic, id_, pid, 200)
    return Expected(pid, "HANGING", says="a COMMIT marker is due here")


@schedule
def only_the_last_of_two_commits_is_left(c, topic, place, id_, pid, number):
    two_commits(c, topic, id_, pid, 110)
    compacted(c, number, 30 * MINUTE)
    return Expected(pid, "HANGING", says="decided COMMIT")


@schedule
def only_the_last_of_two_commits_by_two_clocks_is_left(c, topic, place, id_, pid, number):
    c.skews[topic, 0] = 150
    c.leaders[topic, 0], c.copies[topic, 0] = 2, [Copy(2, END)]
    two_commits(c, topic, id_, pid, 200)
    compacted(c, number, 30 * MINUTE)
    return Expected(pid, "HANGING", says="decided COMMIT")


@schedule
def overdue_commit_behind_an_older_marker(c, topic, place, id_, pid, number):
    two_commits(c, topic, id_, pid, 110, complete=False)
    return Expected(pid, "STUCK", reason="MARKER_OVERDUE")


# ---- Damage in the current copy of a coordinator, and an older copy beside it.


def flip_in_the_middle(content: bytes) -> bytes:
    """One bit in the second batch."""
    second = int.from_bytes(content[8:12], "big") + 12
    return content[: second + 70] + bytes([content[second + 70] ^ 1]) + content[second + 71 :]


def hidden_by_damage(c: Cluster, topic: str, id_: str, pid: int, number: int, older: Copy) -> Expected:
    """Ongoing with the partition, by the record that damage hides."""
    place = (topic, 0)
    c.note(id_, "Empty", pid, 0, (), 0)
    c.note(id_, "Ongoing", pid, 0, [place], 150 * MINUTE, transaction_timeout_ms=HOUR)
    c.write(place, pid, 0, 150 * MINUTE + 5)
    c.note(id_in(number, f"after-{number}"), "Empty", 900_000 + number, 0, (), 151 * MINUTE)
    beat(c, place, pid, (0, 151 * MINUTE))
    c.copies[TXN, number] = [Copy(1, END, damage=flip_in_the_middle), older]
    return Expected(pid, "UNKNOWN")


@damaged
def damage_beside_a_copy_that_ends_below_it(c, topic, place, id_, pid, number):
    return hidden_by_damage(c, topic, id_, pid, number, Copy(2, MINUTE, taken=END))


@damaged
def damage_that_another_copy_makes_up_for(c, topic, place, id_, pid, number):
    return replace(hidden_by_damage(c, topic, id_, pid, number, Copy(2, END)), verdict="OPEN")


@damaged
def damaged_end_beside_an_older_copy(c, topic, place, id_, pid, number):
    c.note(id_in(number, f"first-{number}"), "Empty", 900_000 + number, 0, (), 0)
    c.note(id_, "Ongoing", pid, 0, [place], 150 * MINUTE, transaction_timeout_ms=HOUR)
    c.write(place, pid, 0, 150 * MINUTE + 5)
    beat(c, place, pid, (0, 151 * MINUTE))
    c.copies[TXN, number] = [Copy(1, END, damage=flip_last), Copy(2, MINUTE, taken=END)]
    return Expected(pid, "UNKNOWN")


# ---- Coordinators that were not all seen.


def late_and_beat(c: Cluster, place: Place, id_: str, pid: int) -> None:
    late_write(c, id_, pid, place, 2 * MINUTE)
    beat(c, place, pid, TIMES)


@schedule
def late_write_in_a_whole_capture(c, topic, place, id_, pid, number):
    late_and_beat(c, place, id_, pid)
    return Expected(pid, "HANGING", is_safe=True)


@damaged
def coordinator_without_a_certain_leader(c, topic, place, id_, pid, number):
    late_and_beat(c, place, id_, pid)
    c.leaders[TXN, number] = None
    return Expected(pid, "HANGING", says=f"the leader of {TXN}-{number} is not known for certain")


@damaged
def coordinator_whose_checkpoint_was_not_copied(c, topic, place, id_, pid, number):
    late_and_beat(c, place, id_, pid)
    c.copies[TXN, number] = [Copy(1, END, is_checkpointed=False)]
    return Expected(pid, "HANGING", says="is not confirmed")


@damaged
def coordinator_copy_that_its_own_stamps_refute(c, topic, place, id_, pid, number):
    late_and_beat(c, place, id_, pid)
    c.note(id_in(number, f"later-{number}"), "Empty", 900_000 + number, 0, (), 120 * MINUTE)
    c.copies[TXN, number] = [Copy(1, END, taken=110 * MINUTE)]
    return Expected(pid, "HANGING", is_safe=True)


@damaged
def written_again_after_the_coordinators_copy(c, topic, place, id_, pid, number):
    """The first write is old; the last one may be in a transaction that the coordinator's copy cannot show."""
    late_and_beat(c, place, id_, pid)
    c.write((topic, 0), pid, 0, 150 * MINUTE)
    c.copies[TXN, number] = [Copy(1, 120 * MINUTE, taken=120 * MINUTE)]
    return Expected(pid, "UNKNOWN", reason="CAPTURE_SKEW")


@damaged
def written_again_at_an_unknown_time(c, topic, place, id_, pid, number):
    """As before, but the producer dates its batches back, so that nothing shows when it wrote the last one."""
    late_and_beat(c, place, id_, pid)
    c.write((topic, 0), pid, 0, 150 * MINUTE, stamp=2 * MINUTE)
    c.copies[TXN, number] = [Copy(1, 120 * MINUTE, taken=120 * MINUTE)]
    return Expected(pid, "UNKNOWN", reason="CAPTURE_SKEW")


@damaged
def record_that_only_a_lagging_replica_has(c, topic, place, id_, pid, number):
    """The id expired, and compaction removed its tombstone from the leader's copy."""
    late_and_beat(c, place, id_, pid)
    other = id_in(number, f"other-{number}")
    for at in (80 * MINUTE, 90 * MINUTE):
        c.note(other, "Empty", 900_000 + number, 0, (), at)
    c.copies[TXN, number] = [Copy(1, END, keep=lambda entry: entry.key == other), Copy(2, 70 * MINUTE, taken=END)]
    return Expected(pid, "HANGING", is_safe=True, reason="TRANSACTIONAL_ID_EXPIRED")


@damaged
def epoch_fence_in_progress(c, topic, place, id_, pid, number):
    c.begin(id_, pid, 0, [place], 100 * MINUTE)
    c.note(id_, "PrepareEpochFence", pid, 0, [place], 100 * MINUTE + SECOND, start=100 * MINUTE)
    beat(c, place, pid, (0, 101 * MINUTE))
    return Expected(pid, "LATE")


@damaged
def records_that_two_copies_decode_differently(c, topic, place, id_, pid, number):
    """A copy of another cluster's log: the judged copy's record counts."""
    c.note(id_, "Ongoing", pid, 0, [place], 100 * MINUTE, transaction_timeout_ms=HOUR + HOUR)
    c.write(place, pid, 0, 100 * MINUTE + 5)
    beat(c, place, pid, (0, 101 * MINUTE))
    entry = next(e for e in c.logs[TXN, number] if e.key == id_)
    assert entry.value is not None
    foreign = replace(entry, offset=0, value=replace(entry.value, transaction_partitions=()))
    c.copies[TXN, number] = [Copy(1, END, leader_epochs=((0, 0),)), Copy(0, 0, taken=END, own=(foreign,), high_watermark=1)]
    return Expected(pid, "OPEN")


# ---- Ages that clocks refute.


@schedule
def leader_whose_clock_is_two_hours_behind(c, topic, place, id_, pid, number):
    c.skews[place] = -2 * HOUR
    c.leaders[place], c.copies[place] = 2, [Copy(2, END)]
    c.transaction(id_, pid, 0, [place], 165 * MINUTE)
    c.write(place, pid, 0, 170 * MINUTE, stamp=30 * MINUTE)
    beat(c, place, pid, (160 * MINUTE, 171 * MINUTE))
    return Expected(pid, "HANGING")


@schedule
def stamp_behind_that_is_older_than_one_before(c, topic, place, id_, pid, number):
    beat(c, place, pid, (150 * MINUTE,))
    c.transaction(id_, pid, 0, [place], 160 * MINUTE)
    c.write(place, pid, 0, 170 * MINUTE, stamp=30 * MINUTE)
    c.write(place, pid + 700, 0, 171 * MINUTE, stamp=-HOUR, is_transactional=False, is_broker_clock=True)
    return Expected(pid, "HANGING", says="no broker's clock proves its age")


# ---- Leaders, folders, instants.


@schedule
def outdated_note_beside_a_longer_copy_with_the_marker(c, topic, place, id_, pid, number):
    beat(c, place, pid, (0,))
    c.begin(id_, pid, 0, [place], MINUTE)
    c.end(id_, pid, 0, [place], 20 * MINUTE, start=MINUTE)
    beat(c, place, pid, (30 * MINUTE,))
    c.copies[place] = [Copy(1, 10 * MINUTE, taken=END), Copy(2, END)]
    return Expected(pid, None)


@schedule
def folder_of_a_deleted_topic(c, topic, place, id_, pid, number):
    """Broker 2 has a longer folder of an earlier topic of the same name, with a higher leader epoch."""
    late_and_beat(c, place, id_, pid)
    stale = tuple(
        Entry(at=0, offset=offset, leader_epoch=7, producer_id=-1, sequence=-1, is_transactional=False, stamp=-HOUR)
        for offset in range(30)
    )
    c.copies[topic, 0] = [Copy(1, END, topic_id=NEW), Copy(2, -HOUR, taken=END, own=stale, topic_id=OLD, high_watermark=30)]
    return Expected(pid, "HANGING", is_safe=True)


@schedule
def partition_copy_that_its_own_stamps_refute(c, topic, place, id_, pid, number):
    late_and_beat(c, place, id_, pid)
    c.copies[topic, 0] = [Copy(1, END, taken=90 * MINUTE)]
    return Expected(pid, "HANGING", is_safe=True)


@schedule
def begun_after_the_noted_instant_of_its_copy(c, topic, place, id_, pid, number):
    """The partition was copied later than noted, and the transaction began in between."""
    beat(c, place, pid, (0, 171 * MINUTE))
    c.begin(id_, pid, 0, [place], 170 * MINUTE)
    c.copies[place] = [Copy(1, END, taken=100 * MINUTE)]
    c.copies[TXN, number] = [Copy(1, 120 * MINUTE, taken=120 * MINUTE)]
    return Expected(pid, "UNKNOWN")


@pytest.fixture(scope="module", params=["SCHEDULES", "DAMAGED"])
def audit(request, spark, tmp_path_factory) -> tuple[MemoryTables, Told]:
    c = Cluster()
    told = happened(c, {"SCHEDULES": SCHEDULES, "DAMAGED": DAMAGED}[request.param])
    folder = c.capture(tmp_path_factory.mktemp("proofs") / "brokers", END)
    return audited(spark, folder), told


def test_only_a_proof_makes_an_abort_safe(audit):
    assert wrong(*audit) == {}


# ---- The number of coordinators, and whose folder is whose: a capture for each.


def captured(tmp_path: Path, change: Callable[[Cluster], None] = lambda c: None, **notes: object) -> Path:
    """A late write of `pay` (producer 1000) and an orphan (2000), each on a topic of its own."""
    c = Cluster()
    late_and_beat(c, ("late", 0), id_in(7, "pay"), 1_000)
    c.write(("orphan", 0), 2_000, 0, 2 * MINUTE)
    beat(c, ("orphan", 0), 2_000, TIMES)
    change(c)
    return c.capture(tmp_path / "brokers", END, notes=notes)


def verdicts(tables: MemoryTables) -> dict[int, tuple[str, bool]]:
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
def test_a_number_that_ids_refute_is_not_known(spark, tmp_path, count, expected):
    assert verdicts(audited(spark, captured(tmp_path, coordinator_partitions=count))) == expected


@pytest.mark.slow
def test_a_folder_of_a_deleted_incarnation_does_not_raise_the_number_of_coordinators(spark, tmp_path):
    def change(c: Cluster) -> None:
        for number in range(50):
            c.copies[TXN, number] = [Copy(1, END, topic_id=NEW)]
        c.logs[TXN, 60] = []
        c.copies[TXN, 60] = [Copy(2, 0, taken=END, topic_id=OLD)]
        c.leaders[TXN, 60] = None

    tables = audited(spark, captured(tmp_path, change, coordinator_partitions=None))
    assert verdicts(tables)[2_000] == ("HANGING", False)
    assert tables.run is not None
    assert (tables.run.settings.coordinator_partitions, tables.run.settings.coordinator_partitions_basis) == (50, "DEFAULT")


def test_a_coordinator_folder_without_its_first_segment_hides_owners(spark, tmp_path):
    def change(c: Cluster) -> None:
        for at in (30, 31):
            c.note(id_in(8, "other"), "Empty", 900_000, 0, (), at * MINUTE)
        c.copies[TXN, 8] = [Copy(1, END, segment=1, keep=lambda entry: entry.at > 30 * MINUTE)]

    tables = audited(spark, captured(tmp_path, change))
    assert verdicts(tables) == {1_000: SAFE, 2_000: ("UNKNOWN", False)}
    (row,) = [row for row in tables.rows("coverage") if (row["topic"], row["partition"]) == (TXN, 8)]
    assert (row["status"], row["detail"]) == ("PARTIAL", "its first segments are missing")


@pytest.mark.slow
def test_a_second_log_directory_is_of_the_broker_that_the_first_number_names(spark, tmp_path):
    folder = captured(tmp_path, lambda c: c.copies.update({("late", 0): [Copy(1, END, folder="2")]}))
    (folder / "1" / "2" / "replication-offset-checkpoint").write_text("0\n1\nlate 0 9\n")
    assert verdicts(audited(spark, folder)) == {1_000: SAFE, 2_000: SAFE}


def test_two_numbers_that_contradict_capture_json_are_an_error(spark, tmp_path):
    folder = captured(tmp_path, lambda c: c.copies.update({("late", 0): [Copy(2, END)]}))
    (folder / "9").mkdir()
    (folder / "2").rename(folder / "9" / "2")
    with pytest.raises(UsageError, match=r"first number in its path, 9, .* by capture\.json broker 2 has late-0"):
        audited(spark, folder)
