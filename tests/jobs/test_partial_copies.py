"""Partial captures: no false alarm, no wrong advice.

`LOGS` has whole coordinators beside partial copies of partitions, `COORDINATORS` the reverse. conftest.py audits them
together with those of test_proofs.py.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.support.cluster import HOUR, MINUTE, NOON, SECOND, Copy, Entry, id_in
from tests.support.schedule_text import schedules_of
from tests.support.schedules import Expected, Schedule, Schedules, Story, flip_last

pytestmark = pytest.mark.shares("schedules")

#: Everything is captured at three o'clock.
END = 3 * HOUR
TIMES = (0, 40 * MINUTE, 100 * MINUTE)
LOGS, COORDINATORS = Schedules(), Schedules()


# ---- Of what was written after its marker: other copies than the whole ones, in which it is safe to abort.


def late_write(
    *copies: Copy, leader: int | None = 1, beats: tuple[int, ...] = TIMES, verdict: str = "HANGING", **expected: Any
) -> Schedule:
    """What the capture has of the partition, and who leads it by capture.json."""

    def of(s: Story) -> Expected:
        s.late_write(5 * MINUTE)
        s.beat(*beats)
        if copies:
            s.copied(*copies)
        s.c.leaders[s.place] = leader
        return s.expect(verdict, **expected)

    return of


SHORT: dict[str, Any] = {"verdict": "UNKNOWN", "reason": "PARTITION_LOG_INCOMPLETE"}
LOGS |= {
    "copy_of_a_follower_that_hung_long_before_its_newest_stamp": late_write(
        Copy(2, 101 * MINUTE, taken=END), says="copy its leader's"
    ),
    "segment_cut_below_the_high_watermark": late_write(
        Copy(1, END, keep=lambda entry: entry.at <= 41 * MINUTE), **SHORT
    ),
    "start_above_the_high_watermark": late_write(
        Copy(1, END, high_watermark=1), beats=(), says="at or above the high watermark"
    ),
    "partition_without_a_leader": late_write(leader=-1, says="has no leader"),
    "partition_whose_leader_is_not_noted": late_write(leader=None, says="the leader of the partition is not known"),
}
LOGS |= schedules_of("""
    orphan_in_a_whole_capture:
        write 5m | beat 0 40m 100m | one leader → safe reason=PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR
    stamped_thirty_days_ahead: T 1m | write 5m stamp=720h | beat 0 40m 100m → safe

    # One partition was aborted by hand, the other is still open.
    aborted_by_hand_while_ongoing: begin 3h-50s on 0,1 | ABORT 3h-20s on 1 → OPEN
""")


# ---- 1. A COMMIT whose marker was lost here.


def lost_marker(kind: str = "COMMIT", then: Callable[[Story], None] = lambda s: None, **expected: Any) -> Schedule:
    def of(s: Story) -> Expected:
        places = [s.place, (s.topic, 1)]
        s.begin(MINUTE, places)
        s.end(2 * MINUTE, kind, start=MINUTE, places=places, lost=[s.place])
        s.beat(*TIMES)
        s.beat(*TIMES, partition=1)
        then(s)
        return s.expect("HANGING", **expected)

    return of


DUE = "a COMMIT marker is due here"
LOGS |= {
    "lost_commit_marker": lost_marker(says=DUE),
    "lost_commit_marker_of_an_id_with_a_new_producer_id": lost_marker(
        then=lambda s: s.note("Empty", 10 * MINUTE, pid=s.pid + 1), says=DUE, reason="PRODUCER_ID_ROTATED"
    ),
    "lost_commit_marker_of_an_id_that_expired": lost_marker(
        then=lambda s: s.note(None, 10 * MINUTE), says=DUE, reason="TRANSACTIONAL_ID_EXPIRED"
    ),
    "lost_abort_marker": lost_marker("ABORT", is_safe=True),
}


@LOGS
def lost_commit_marker_that_an_old_leader_has(s: Story) -> Expected:
    """An unclean election: only the disk of the deposed leader has the marker."""
    s.beat(0)
    s.begin(MINUTE)
    s.end(2 * MINUTE, start=MINUTE, lost=[s.place])
    s.c.write(s.place, s.pid + 900, 0, 3 * MINUTE, leader_epoch=1, is_transactional=False, is_broker_clock=True)
    marker = Entry(
        at=2 * MINUTE + 20, offset=3, producer_id=s.pid, producer_epoch=0, marker="COMMIT", stamp=2 * MINUTE + 20
    )
    s.copied(Copy(1, END), Copy(2, 2 * MINUTE + 10, taken=END, own=(marker,)))
    return s.expect("HANGING", DUE)


# ---- 3. Copies that are not current.


@LOGS
def old_disk_of_a_dead_broker(s: Story) -> Expected:
    s.begin(10 * MINUTE)
    s.beat(0, 30 * MINUTE)
    s.end(31 * MINUTE, start=10 * MINUTE)
    s.copied(Copy(2, 30 * MINUTE + 5 * SECOND, taken=END))
    return s.expect("UNKNOWN")


@LOGS
def stale_checkpoint_of_a_follower(s: Story) -> Expected:
    """Its own checkpoint makes it look whole; the leader's, which was captured without the log, knows better."""
    s.late_write(5 * MINUTE)
    s.beat(0, 40 * MINUTE)
    s.copied(Copy(2, 41 * MINUTE, taken=END))
    s.c.noted.append((1, s.place, 500))
    return s.expect(**SHORT)


# ---- 4. Truncated tails.


@LOGS
def longer_log_of_a_deposed_leader(s: Story) -> Expected:
    """Broker 2 wrote on after the election of broker 1; what it wrote was truncated."""
    s.beat(0)
    for at in (10, 20):
        s.c.write(s.place, -1, -1, at * MINUTE, leader_epoch=1, is_transactional=False, sequence=-1)
    at = 11 * MINUTE
    own = [Entry(at=at, offset=n, producer_id=s.pid, producer_epoch=0, sequence=n - 2, stamp=at) for n in range(2, 12)]
    s.copied(Copy(1, END), Copy(2, 5 * MINUTE, taken=END, own=tuple(own), high_watermark=2))
    s.c.leaders[s.place] = None
    return s.expect(None)


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


@LOGS
def flipped_producer_id_in_a_large_batch(s: Story) -> Expected:
    s.begin(MINUTE)
    s.write(2 * MINUTE, payload=16_000)
    s.end(3 * MINUTE, start=MINUTE)
    s.beat(*TIMES)
    s.copied(Copy(1, END, damage=partial(flip, byte=50, mask=8)))
    return s.expect("UNKNOWN", pid=s.pid ^ 8, reason="CORRUPT_MESSAGE")


@LOGS
def flipped_flag_that_hides_a_late_write(s: Story) -> Expected:
    s.transaction(MINUTE)
    s.write(5 * MINUTE, payload=16_000)
    s.beat(*TIMES)
    s.copied(Copy(1, END, damage=partial(flip, byte=22, mask=0x10)))
    return s.expect(None)


@LOGS
def flipped_sequence_in_an_ended_transaction(s: Story) -> Expected:
    s.transaction(0)
    s.begin(MINUTE)
    s.write(2 * MINUTE, payload=16_000)
    s.end(3 * MINUTE, start=MINUTE)
    s.beat(*TIMES)
    s.copied(Copy(1, END, damage=partial(flip, byte=56, mask=0x40)))
    return s.expect(None)


# ---- 9. A tail that is known to be damaged.


@LOGS
def marker_in_a_damaged_tail(s: Story) -> Expected:
    s.beat(0, 40 * MINUTE)
    s.transaction(41 * MINUTE)
    s.copied(Copy(1, END, damage=flip_last))
    return s.expect(**SHORT)


# ---- 10. Start not exact, above the high watermark, no leader.


@LOGS
def hole_directly_below_the_first_batch(s: Story) -> Expected:
    s.late_write(5 * MINUTE)
    s.write(5 * MINUTE + 1)
    s.beat(*TIMES)
    s.copied(Copy(1, END, keep=lambda entry: entry.at != 5 * MINUTE))
    return s.expect("HANGING", "true start offset is not known")


# ---- 11. Epochs, and 12. ages.


def ongoing(
    since: int, written: int, verdict: str, says: str = "", *, reason: str | None = None, **changes: Any
) -> Schedule:
    """A batch, and when its id's coordinator noted the transaction."""

    def of(s: Story) -> Expected:
        s.note("Ongoing", since, [s.place])
        s.write(written, **changes)
        s.beat(*TIMES if written < TIMES[-1] else ())
        return s.expect(verdict, says, reason=reason)

    return of


LOGS |= {
    # Brokers of 3.9: the coordinator's abort at its timeout carries the same epoch, and is accepted.
    "one_epoch_ahead_of_an_ongoing_transaction": ongoing(
        END - 30 * SECOND, 5 * MINUTE, "LATE", epoch=1, reason="TIMEOUT_NOT_PASSED"
    ),
    "two_epochs_ahead_of_an_ongoing_transaction": ongoing(
        END - 30 * SECOND, 5 * MINUTE, "HANGING", "stop the application", epoch=2, reason="EPOCH_AHEAD_OF_COORDINATOR"
    ),
    "stamped_at_the_beginning_of_time": ongoing(END - 30 * SECOND, END - 29 * SECOND, "OPEN", stamp=-NOON),
    "replay_of_old_events": ongoing(
        END - 2 * SECOND, END - SECOND, "LATE", "look at the timestamps", stamp=-24 * HOUR, reason="TIMEOUT_NOT_PASSED"
    ),
}


# ---- 14. Clocks of brokers.


@LOGS
def clock_of_the_leader_five_seconds_behind(s: Story) -> Expected:
    s.led_by_broker_2(-5 * SECOND, END)
    for minute in (10, 20, 30):
        s.transaction(minute * MINUTE)
    return s.expect(None)


# ---- Coordinators.


@COORDINATORS
def registered_after_the_death_of_the_coordinators_disk(s: Story) -> Expected:
    s.begin(50 * MINUTE)
    s.beat(*TIMES)
    s.coordinator(Copy(2, 30 * MINUTE, taken=END))
    return s.expect("UNKNOWN")


@COORDINATORS
def old_copy_of_the_coordinator(s: Story) -> Expected:
    """It was complete at the copy's end; since then it has begun another transaction with the partition."""
    s.transaction(MINUTE)
    s.begin(50 * MINUTE)
    s.beat(*TIMES)
    s.coordinator(Copy(2, 30 * MINUTE, taken=END))
    return s.expect("UNKNOWN", reason="COORDINATOR_COPY_NOT_CURRENT")


@COORDINATORS
def tombstone_of_a_deposed_coordinator(s: Story) -> Expected:
    """Broker 2 wrote a tombstone that the election of broker 1 truncated: the id goes on."""
    s.begin(10 * MINUTE)
    s.note("Ongoing", 100 * MINUTE, [s.place, (s.topic, 1)], start=10 * MINUTE, leader_epoch=1)
    s.c.write((s.topic, 1), s.pid, 0, 100 * MINUTE + 1)
    s.beat(*TIMES)
    own = tuple(Entry(at=20 * MINUTE, offset=offset, key=s.id, value=None, stamp=20 * MINUTE) for offset in (1, 2))
    s.coordinator(Copy(1, END), Copy(2, 15 * MINUTE, taken=END, own=own))
    return s.expect("LATE", reason="OVERDUE")


@COORDINATORS
def end_that_was_cleaned_between_two_copies(s: Story) -> Expected:
    """The coordinators were copied before the partitions and after; the commit was cleaned away in between."""
    s.begin(10 * MINUTE)
    s.end(70 * MINUTE, start=10 * MINUTE)
    s.begin(80 * MINUTE, [(s.topic, 1)])
    s.beat(*TIMES)
    s.copied(Copy(1, 60 * MINUTE, taken=60 * MINUTE))
    before = Copy(1, 50 * MINUTE, taken=50 * MINUTE, folder="first")
    s.coordinator(before, Copy(1, END, keep=lambda entry: entry.at >= 80 * MINUTE))
    return s.expect("UNKNOWN", reason="COORDINATOR_RECORDS_COMPACTED")


@COORDINATORS
def two_owners_of_a_producer_id(s: Story) -> Expected:
    s.begin(END - 30 * SECOND)
    s.c.note(id_in(48, f"other-{s.topic}"), "Empty", s.pid, 0, (), END - 10 * SECOND)
    return s.expect("OPEN", reason="EXPECTED")


@COORDINATORS
def damaged_newest_records_of_the_coordinator(s: Story) -> Expected:
    s.begin(10 * MINUTE)
    s.end(11 * MINUTE, start=10 * MINUTE, lost=[s.place])
    s.beat(*TIMES)
    s.coordinator(Copy(1, END, damage=flip_last))
    return s.expect("UNKNOWN")


@COORDINATORS
def sibling_marked_after_the_coordinators_copy(s: Story) -> Expected:
    places = [s.place, (s.topic, 1)]
    s.begin(10 * MINUTE, places)
    s.end(90 * MINUTE, start=10 * MINUTE, places=places)
    s.copied(Copy(1, 60 * MINUTE, taken=60 * MINUTE))
    s.coordinator(Copy(1, 50 * MINUTE, taken=50 * MINUTE))
    return s.expect("UNKNOWN", reason="CAPTURE_SKEW")


# ---- What the audits say; that each verdict is as expected: test_proofs.py.


def test_nothing_else_is_open_but_what_was_left_open(audit_of_schedules):
    tables, told = audit_of_schedules
    expected = {(topic, e.producer_id) for topic, e in told.values() if e.verdict is not None}
    rows = tables.rows("open_transactions")
    assert {(row["topic"], row["producer_id"]) for row in rows if row["verdict"] in ("HANGING", "STUCK")} <= expected


def test_findings_blame_no_healthy_transaction_for_clocks_that_differ(audit_of_schedules):
    tables, _ = audit_of_schedules
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


def test_what_is_odd_is_found(audit_of_schedules):
    tables, told = audit_of_schedules
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


def test_every_partition_of_a_transaction_shows_its_marker(audit_of_schedules):
    tables, told = audit_of_schedules
    found: dict[str, dict[int, str]] = {}
    for row in tables.rows("transaction_outcomes"):
        if row["known_from"] == "COORDINATOR" and (row["transactional_id"] or "").find("beat-") < 0:
            found.setdefault(row["topic"], {})[row["partition"]] = row["marker"]
    expected = {told[name][0]: markers for name, markers in MARKERS.items() if name in told}
    assert {topic: found[topic] for topic in expected} == expected


def test_a_refuted_batch_is_in_quarantine(audit_of_schedules):
    tables, told = audit_of_schedules
    if "flipped_producer_id_in_a_large_batch" not in told:
        return
    rows = [row for row in tables.rows("quarantine") if row["topic"].startswith("flipped")]
    assert {(row["reason"], row["length"] > 16_000) for row in rows} == {("CORRUPT_BATCH: its CRC does not fit", True)}
    assert len(rows) == len([name for name in told if name.startswith("flipped")])


def test_a_refuted_batch_lowers_coverage(audit_of_schedules):
    tables, _ = audit_of_schedules
    tables.make("findings")  # they wait for the step that lowers it
    rows = [row for row in tables.rows("coverage") if row["topic"].startswith("flipped") and row["is_judged"]]
    assert {(row["status"], row["detail"], row["unreadable_bytes"] > 16_000) for row in rows} <= {
        ("DAMAGED", "a batch whose CRC does not fit", True)
    }
