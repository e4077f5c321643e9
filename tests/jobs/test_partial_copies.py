"""Partial captures: no false alarm, no wrong advice.

One schedule a topic, many schedules an audit. `LOGS` has whole coordinators beside partial copies of partitions, `COORDINATORS` the
reverse.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.cluster import HOUR, MINUTE, NOON, SECOND, TXN, Cluster, Copy, Entry, id_in
from tests.support.memory_audits import MemoryTables, audited
from tests.support.schedules import Expected, Schedule, Told, beat, flip_last, happened, into, late_write, wrong

#: Everything is captured at two o'clock.
END = 2 * HOUR
LOGS: dict[str, Schedule] = {}
IN_COORDINATORS: dict[str, Schedule] = {}
logs, coordinators = into(LOGS), into(IN_COORDINATORS)


# ---- Whole copies: what is safe stays safe.


@logs
def late_write_in_a_whole_capture(c, topic, place, id_, pid, number):
    late_write(c, id_, pid, place, 5 * MINUTE)
    beat(c, place, pid)
    return Expected(pid, "HANGING", is_safe=True, reason="WRITTEN_AFTER_MARKER")


@logs
def orphan_in_a_whole_capture(c, topic, place, id_, pid, number):
    c.write((topic, 0), pid, 0, 5 * MINUTE)
    beat(c, place, pid)
    return Expected(pid, "HANGING", is_safe=True, reason="PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR")


# ---- 1. A COMMIT whose marker was lost here.


def lost_marker(c: Cluster, topic: str, id_: str, pid: int, kind: str) -> None:
    places = [(topic, 0), (topic, 1)]
    c.begin(id_, pid, 0, places, MINUTE)
    c.end(id_, pid, 0, places, 2 * MINUTE, kind, start=MINUTE, lost=[(topic, 0)])
    beat(c, (topic, 0), pid)
    beat(c, (topic, 1), pid)


@logs
def lost_commit_marker(c, topic, place, id_, pid, number):
    lost_marker(c, topic, id_, pid, "COMMIT")
    return Expected(pid, "HANGING", says="a COMMIT marker is due here")


@logs
def lost_commit_marker_of_an_id_with_a_new_producer_id(c, topic, place, id_, pid, number):
    lost_marker(c, topic, id_, pid, "COMMIT")
    c.note(id_, "Empty", pid + 1, 0, (), 10 * MINUTE)
    return Expected(pid, "HANGING", reason="PRODUCER_ID_ROTATED", says="a COMMIT marker is due here")


@logs
def lost_commit_marker_of_an_id_that_expired(c, topic, place, id_, pid, number):
    lost_marker(c, topic, id_, pid, "COMMIT")
    c.note(id_, None, pid, 0, (), 10 * MINUTE)
    return Expected(pid, "HANGING", reason="TRANSACTIONAL_ID_EXPIRED", says="a COMMIT marker is due here")


@logs
def lost_abort_marker(c, topic, place, id_, pid, number):
    lost_marker(c, topic, id_, pid, "ABORT")
    return Expected(pid, "HANGING", is_safe=True)


@logs
def lost_commit_marker_that_an_old_leader_has(c, topic, place, id_, pid, number):
    """An unclean election: only the disk of the deposed leader has the marker."""
    beat(c, place, pid, times=(0,))
    c.begin(id_, pid, 0, [place], MINUTE)
    c.end(id_, pid, 0, [place], 2 * MINUTE, start=MINUTE, lost=[place])
    c.write(place, pid + 900, 0, 3 * MINUTE, leader_epoch=1, is_transactional=False, is_broker_clock=True)
    marker = Entry(at=2 * MINUTE + 20, offset=3, producer_id=pid, producer_epoch=0, marker="COMMIT", stamp=2 * MINUTE + 20)
    c.copies[place] = [Copy(1, END), Copy(2, 2 * MINUTE + 10, taken=END, own=(marker,))]
    return Expected(pid, "HANGING", says="a COMMIT marker is due here")


# ---- 3. Copies that are not current.


@logs
def old_disk_of_a_dead_broker(c, topic, place, id_, pid, number):
    c.begin(id_, pid, 0, [place], 10 * MINUTE)
    beat(c, place, pid, times=(0, 30 * MINUTE))
    c.end(id_, pid, 0, [place], 31 * MINUTE, start=10 * MINUTE)
    c.copies[place] = [Copy(2, 30 * MINUTE + 5 * SECOND, taken=END)]
    return Expected(pid, "UNKNOWN")


@logs
def stale_checkpoint_of_a_follower(c, topic, place, id_, pid, number):
    """Its own checkpoint makes it look whole; the leader's, which was captured without the log, knows better."""
    late_write(c, id_, pid, place, 5 * MINUTE)
    beat(c, place, pid, times=(0, 40 * MINUTE))
    c.copies[place] = [Copy(2, 41 * MINUTE, taken=END)]
    c.noted.append((1, place, 500))
    return Expected(pid, "UNKNOWN", reason="PARTITION_LOG_INCOMPLETE")


@logs
def copy_of_a_follower_that_hung_long_before_its_newest_stamp(c, topic, place, id_, pid, number):
    late_write(c, id_, pid, place, 5 * MINUTE)
    beat(c, place, pid)
    c.copies[place] = [Copy(2, 101 * MINUTE, taken=END)]
    return Expected(pid, "HANGING", says="copy its leader's")


# ---- 4. Truncated tails.


@logs
def longer_log_of_a_deposed_leader(c, topic, place, id_, pid, number):
    """Broker 2 wrote on after the election of broker 1; what it wrote was truncated."""
    beat(c, place, pid, times=(0,))
    for at in (10, 20):
        c.write(place, -1, -1, at * MINUTE, leader_epoch=1, is_transactional=False, sequence=-1)
    own = [
        Entry(at=11 * MINUTE, offset=offset, producer_id=pid, producer_epoch=0, sequence=offset - 2, stamp=11 * MINUTE)
        for offset in range(2, 12)
    ]
    c.copies[place] = [Copy(1, END), Copy(2, 5 * MINUTE, taken=END, own=tuple(own), high_watermark=2)]
    c.leaders[place] = None
    return Expected(pid, None)


# ---- 8. One flipped bit in a batch above 4 KiB.


def flip(content: bytes, byte: int, mask: int) -> bytes:
    """Bits of one byte in the header of the last large batch."""
    position = end = 0
    while position < len(content):
        length = int.from_bytes(content[position + 8 : position + 12], "big") + 12
        if length > 4096:
            end = position
        position += length
    flipped = bytearray(content)
    flipped[end + byte] ^= mask
    return bytes(flipped)


def flip_producer_id(content: bytes) -> bytes:
    return flip(content, 50, 8)


def flip_transactional(content: bytes) -> bytes:
    return flip(content, 22, 0x10)


def flip_sequence(content: bytes) -> bytes:
    return flip(content, 56, 0x40)


@logs
def flipped_producer_id_in_a_large_batch(c, topic, place, id_, pid, number):
    c.begin(id_, pid, 0, [place], MINUTE)
    c.write(place, pid, 0, 2 * MINUTE, payload=16_000)
    c.end(id_, pid, 0, [place], 3 * MINUTE, start=MINUTE)
    beat(c, place, pid)
    c.copies[place] = [Copy(1, END, damage=flip_producer_id)]
    return Expected(pid ^ 8, "UNKNOWN", reason="CORRUPT_MESSAGE")


@logs
def flipped_flag_that_hides_a_late_write(c, topic, place, id_, pid, number):
    c.transaction(id_, pid, 0, [place], MINUTE)
    c.write(place, pid, 0, 5 * MINUTE, payload=16_000)
    beat(c, place, pid)
    c.copies[place] = [Copy(1, END, damage=flip_transactional)]
    return Expected(pid, None)


@logs
def flipped_sequence_in_an_ended_transaction(c, topic, place, id_, pid, number):
    c.transaction(id_, pid, 0, [place], 0)
    c.begin(id_, pid, 0, [place], MINUTE)
    c.write(place, pid, 0, 2 * MINUTE, payload=16_000)
    c.end(id_, pid, 0, [place], 3 * MINUTE, start=MINUTE)
    beat(c, place, pid)
    c.copies[place] = [Copy(1, END, damage=flip_sequence)]
    return Expected(pid, None)


# ---- 9. A tail that is known to be damaged.


@logs
def marker_in_a_damaged_tail(c, topic, place, id_, pid, number):
    beat(c, place, pid, times=(0, 40 * MINUTE))
    c.transaction(id_, pid, 0, [place], 41 * MINUTE)
    c.copies[place] = [Copy(1, END, damage=flip_last)]
    return Expected(pid, "UNKNOWN", reason="PARTITION_LOG_INCOMPLETE")


@logs
def segment_cut_below_the_high_watermark(c, topic, place, id_, pid, number):
    late_write(c, id_, pid, place, 5 * MINUTE)
    beat(c, place, pid)
    c.copies[place] = [Copy(1, END, keep=lambda entry: entry.at <= 41 * MINUTE)]
    return Expected(pid, "UNKNOWN", reason="PARTITION_LOG_INCOMPLETE")


# ---- 10. Start not exact, above the high watermark, no leader.


@logs
def hole_directly_below_the_first_batch(c, topic, place, id_, pid, number):
    c.transaction(id_, pid, 0, [place], MINUTE)
    c.write(place, pid, 0, 5 * MINUTE)
    c.write(place, pid, 0, 5 * MINUTE + 1)
    beat(c, place, pid)
    c.copies[place] = [Copy(1, END, keep=lambda entry: entry.at != 5 * MINUTE)]
    return Expected(pid, "HANGING", says="true start offset is not known")


@logs
def start_above_the_high_watermark(c, topic, place, id_, pid, number):
    late_write(c, id_, pid, place, 5 * MINUTE)
    c.copies[place] = [Copy(1, END, high_watermark=1)]
    return Expected(pid, "HANGING", says="at or above the high watermark")


@logs
def partition_without_a_leader(c, topic, place, id_, pid, number):
    late_write(c, id_, pid, place, 5 * MINUTE)
    beat(c, place, pid)
    c.leaders[place] = -1
    return Expected(pid, "HANGING", says="has no leader")


@logs
def partition_whose_leader_is_not_noted(c, topic, place, id_, pid, number):
    late_write(c, id_, pid, place, 5 * MINUTE)
    beat(c, place, pid)
    c.leaders[place] = None
    return Expected(pid, "HANGING", says="the leader of the partition is not known")


# ---- 11. Epochs, and 12. ages.


@logs
def one_epoch_ahead_of_an_ongoing_transaction(c, topic, place, id_, pid, number):
    """Brokers of 3.9: the coordinator's abort at its timeout carries the same epoch, and is accepted."""
    c.note(id_, "Ongoing", pid, 0, [place], END - 30 * SECOND)
    c.write(place, pid, 1, 5 * MINUTE)
    beat(c, place, pid)
    return Expected(pid, "LATE", reason="TIMEOUT_NOT_PASSED")


@logs
def two_epochs_ahead_of_an_ongoing_transaction(c, topic, place, id_, pid, number):
    c.note(id_, "Ongoing", pid, 0, [place], END - 30 * SECOND)
    c.write(place, pid, 2, 5 * MINUTE)
    beat(c, place, pid)
    return Expected(pid, "HANGING", reason="EPOCH_AHEAD_OF_COORDINATOR", says="stop the application")


@logs
def stamped_thirty_days_ahead(c, topic, place, id_, pid, number):
    c.transaction(id_, pid, 0, [place], MINUTE)
    c.write(place, pid, 0, 5 * MINUTE, stamp=30 * 24 * HOUR)
    beat(c, place, pid)
    return Expected(pid, "HANGING", is_safe=True)


@logs
def stamped_at_the_beginning_of_time(c, topic, place, id_, pid, number):
    c.note(id_, "Ongoing", pid, 0, [place], END - 30 * SECOND)
    c.write(place, pid, 0, END - 29 * SECOND, stamp=-NOON)
    return Expected(pid, "OPEN")


@logs
def replay_of_old_events(c, topic, place, id_, pid, number):
    c.note(id_, "Ongoing", pid, 0, [place], END - 2 * SECOND)
    c.write(place, pid, 0, END - SECOND, stamp=-24 * HOUR)
    return Expected(pid, "LATE", reason="TIMEOUT_NOT_PASSED", says="look at the timestamps")


@logs
def aborted_by_hand_while_ongoing(c, topic, place, id_, pid, number):
    """One partition was aborted by hand, the other is still open."""
    places = [(topic, 0), (topic, 1)]
    c.begin(id_, pid, 0, places, END - 50 * SECOND)
    c.mark((topic, 1), pid, 0, "ABORT", END - 20 * SECOND)
    return Expected(pid, "OPEN")


# ---- 14. Clocks of brokers.


@logs
def clock_of_the_leader_five_seconds_behind(c, topic, place, id_, pid, number):
    c.skews[place] = -5 * SECOND
    c.leaders[place], c.copies[place] = 2, [Copy(2, END)]
    for minute in (10, 20, 30):
        c.transaction(id_, pid, 0, [place], minute * MINUTE)
    return Expected(pid, None)


# ---- Coordinators.


@coordinators
def registered_after_the_death_of_the_coordinators_disk(c, topic, place, id_, pid, number):
    c.begin(id_, pid, 0, [place], 50 * MINUTE)
    beat(c, place, pid)
    return Expected(pid, "UNKNOWN")


@coordinators
def old_copy_of_the_coordinator(c, topic, place, id_, pid, number):
    """It was complete at the copy's end; since then it has begun another transaction with the partition."""
    c.transaction(id_, pid, 0, [place], MINUTE)
    c.begin(id_, pid, 0, [place], 50 * MINUTE)
    beat(c, place, pid)
    return Expected(pid, "UNKNOWN", reason="COORDINATOR_COPY_NOT_CURRENT")


OLD = ("registered_after_the_death_of_the_coordinators_disk", "old_copy_of_the_coordinator")


@coordinators
def tombstone_of_a_deposed_coordinator(c, topic, place, id_, pid, number):
    """Broker 2 wrote a tombstone that the election of broker 1 truncated: the id goes on."""
    c.begin(id_, pid, 0, [place], 10 * MINUTE)
    c.note(id_, "Ongoing", pid, 0, [place, (topic, 1)], 100 * MINUTE, start=10 * MINUTE, leader_epoch=1)
    c.write((topic, 1), pid, 0, 100 * MINUTE + 1)
    beat(c, place, pid)
    return Expected(pid, "LATE", reason="OVERDUE")


@coordinators
def end_that_was_cleaned_between_two_copies(c, topic, place, id_, pid, number):
    """The coordinators were copied before the partitions and after; the commit was cleaned away in between."""
    c.begin(id_, pid, 0, [place], 10 * MINUTE)
    c.end(id_, pid, 0, [place], 70 * MINUTE, start=10 * MINUTE)
    c.begin(id_, pid, 0, [(topic, 1)], 80 * MINUTE)
    beat(c, place, pid)
    c.copies[place] = [Copy(1, 60 * MINUTE, taken=60 * MINUTE)]
    return Expected(pid, "UNKNOWN", reason="COORDINATOR_RECORDS_COMPACTED")


@coordinators
def two_owners_of_a_producer_id(c, topic, place, id_, pid, number):
    c.begin(id_, pid, 0, [place], END - 30 * SECOND)
    other = id_in(48, f"other-{topic}")
    c.note(other, "Empty", pid, 0, (), END - 10 * SECOND)
    return Expected(pid, "OPEN", reason="EXPECTED")


@coordinators
def damaged_newest_records_of_the_coordinator(c, topic, place, id_, pid, number):
    c.begin(id_, pid, 0, [place], 10 * MINUTE)
    c.end(id_, pid, 0, [place], 11 * MINUTE, start=10 * MINUTE, lost=[place])
    beat(c, place, pid)
    return Expected(pid, "UNKNOWN")


@coordinators
def sibling_marked_after_the_coordinators_copy(c, topic, place, id_, pid, number):
    places = [(topic, 0), (topic, 1)]
    c.begin(id_, pid, 0, places, 10 * MINUTE)
    c.end(id_, pid, 0, places, 90 * MINUTE, start=10 * MINUTE)
    c.copies[places[0]] = [Copy(1, 60 * MINUTE, taken=60 * MINUTE)]
    return Expected(pid, "UNKNOWN", reason="CAPTURE_SKEW")


def copies_of_coordinators(c: Cluster, owned: dict[str, int]) -> None:
    """What the capture has of the coordinator partitions of some schedules."""
    for name in OLD:
        c.copies[TXN, owned[name]] = [Copy(2, 30 * MINUTE, taken=END)]
        c.leaders[TXN, owned[name]] = 1
    deposed = owned["tombstone_of_a_deposed_coordinator"]
    entry = Entry(
        at=20 * MINUTE, offset=1, key=f"{id_in(deposed, 'tombstone_of_a_deposed_coordinator')}", value=None, stamp=20 * MINUTE
    )
    c.copies[TXN, deposed] = [Copy(1, END), Copy(2, 15 * MINUTE, taken=END, own=(entry, replace(entry, offset=2)))]
    cleaned = owned["end_that_was_cleaned_between_two_copies"]
    kept = lambda entry: entry.at >= 80 * MINUTE  # noqa: E731
    c.copies[TXN, cleaned] = [Copy(1, 50 * MINUTE, taken=50 * MINUTE, folder="first"), Copy(1, END, keep=kept)]
    damaged = owned["damaged_newest_records_of_the_coordinator"]
    c.copies[TXN, damaged] = [Copy(1, END, damage=flip_last)]
    skewed = owned["sibling_marked_after_the_coordinators_copy"]
    c.copies[TXN, skewed] = [Copy(1, 50 * MINUTE, taken=50 * MINUTE)]


@pytest.fixture(scope="module", params=["LOGS", "COORDINATORS"])
def audit(request, spark, tmp_path_factory) -> tuple[MemoryTables, Told]:
    c, schedules = Cluster(), LOGS if request.param == "LOGS" else IN_COORDINATORS
    told = happened(c, schedules)
    if schedules is IN_COORDINATORS:
        copies_of_coordinators(c, {name: number for number, name in enumerate(schedules)})
    folder = c.capture(tmp_path_factory.mktemp("partial") / "brokers", END)
    return audited(spark, folder), told


def test_nothing_is_said_that_the_copies_do_not_prove(audit):
    assert wrong(*audit) == {}


def test_nothing_else_is_open_but_what_was_left_open(audit):
    tables, told = audit
    expected = {(topic, e.producer_id) for topic, e in told.values() if e.verdict is not None}
    found = {
        (row["topic"], row["producer_id"]) for row in tables.rows("open_transactions") if row["verdict"] in ("HANGING", "STUCK")
    }
    assert found <= expected


def test_findings_blame_no_healthy_transaction_for_clocks_that_differ(audit):
    tables, _ = audit
    of_clocks = [row for row in tables.rows("findings") if (row["topic"] or "").startswith("clock-of")]
    assert of_clocks == []


#: schedule -> findings about its topic, or its id.
FOUND = {
    "lost_commit_marker": ("MARKER_MISSING", "CRITICAL"),
    "lost_abort_marker": ("MARKER_MISSING", "WARNING"),
    "stamped_thirty_days_ahead": ("TIMESTAMP_IN_FUTURE", "WARNING"),
    "flipped_producer_id_in_a_large_batch": ("CORRUPT_MESSAGE", "ERROR"),
    "flipped_flag_that_hides_a_late_write": ("CORRUPT_MESSAGE", "ERROR"),
    "flipped_sequence_in_an_ended_transaction": ("CORRUPT_MESSAGE", "ERROR"),
    "aborted_by_hand_while_ongoing": ("ABORTED_WHILE_ONGOING", "ERROR"),
    "two_owners_of_a_producer_id": ("PRODUCER_ID_OWNED_TWICE", "CRITICAL"),
}


def test_what_is_odd_is_found(audit):
    tables, told = audit
    found = {(row["producer_id"], row["name"], row["severity"]) for row in tables.rows("findings")}
    for name, (finding, severity) in FOUND.items():
        if name in told:
            assert (told[name][1].producer_id, finding, severity) in found, name


#: schedule -> partition of its topic and marker, for each partition that the coordinator lists.
MARKERS = {
    "late_write_in_a_whole_capture": {0: "FOUND"},
    "lost_commit_marker": {0: "MISSING", 1: "FOUND"},
    "lost_commit_marker_of_an_id_with_a_new_producer_id": {0: "MISSING", 1: "FOUND"},
    "lost_commit_marker_of_an_id_that_expired": {0: "MISSING", 1: "FOUND"},
    "lost_commit_marker_that_an_old_leader_has": {0: "MISSING"},
    "lost_abort_marker": {0: "MISSING", 1: "FOUND"},
    "old_disk_of_a_dead_broker": {0: "UNKNOWN"},
    "aborted_by_hand_while_ongoing": {0: "UNDECIDED", 1: "EARLY"},
}
#: schedule -> who can send the lost marker of partition 0, and the copies that have it.
REPAIRS = {
    "lost_commit_marker": ("no shipped tool", None),
    "lost_commit_marker_that_an_old_leader_has": ("no shipped tool", [("2", 3)]),
    "lost_abort_marker": ("kafka-transactions.sh abort", None),
}


def test_every_partition_of_a_transaction_shows_its_marker(audit):
    tables, told = audit
    found: dict[str, dict[int, str]] = {}
    for row in tables.rows("transaction_outcomes"):
        if row["known_from"] == "COORDINATOR" and (row["transactional_id"] or "").find("beat-") < 0:
            found.setdefault(row["topic"], {})[row["partition"]] = row["marker"]
    expected = {told[name][0]: markers for name, markers in MARKERS.items() if name in told}
    assert {topic: found[topic] for topic in expected} == expected


def test_a_lost_marker_says_who_has_it_and_who_can_send_it(audit):
    tables, told = audit
    rows = {(row["topic"], row["partition"]): row for row in tables.rows("marker_repairs")}
    for name, (tool, copies) in REPAIRS.items():
        if name in told:
            row = rows[told[name][0], 0]
            assert (row["marker"], row["fate"], row["is_accepted"]) == ("MISSING", "OPEN", "ACCEPTED"), name
            assert row["tool"].startswith(tool), name
            assert row["copies"] == (copies and [{"broker": b, "source": f"raw:{b}", "offset": at} for b, at in copies]), name


def test_a_refuted_batch_is_in_quarantine(audit):
    tables, told = audit
    if "flipped_producer_id_in_a_large_batch" not in told:
        return
    rows = [row for row in tables.rows("quarantine") if row["topic"].startswith("flipped")]
    assert {(row["reason"], row["length"] > 16_000) for row in rows} == {("CORRUPT_BATCH: its CRC does not fit", True)}
    assert len(rows) == len([name for name in told if name.startswith("flipped")])


def test_a_refuted_batch_lowers_coverage(audit):
    tables, _ = audit
    tables.made("findings")  # they wait for the step that lowers it
    rows = [row for row in tables.rows("coverage") if row["topic"].startswith("flipped") and row["is_judged"]]
    assert {(row["status"], row["detail"], row["unreadable_bytes"] > 16_000) for row in rows} <= {
        ("DAMAGED", "a batch whose CRC does not fit", True)
    }
