"""Schedules: copies, snapshots and markers elsewhere that refute a proof."""

from dataclasses import replace
from typing import Any

from tests.support.cluster import HOUR, MINUTE, NOON, SECOND, TXN, Copy, Entry, id_in
from tests.support.log_bytes import encode_offset_commit_key, encode_offset_commit_value, encode_snapshot
from tests.support.refutations import (
    END,
    NOTHING_ELSE,
    compacted,
    elected_since,
    nothing_open,
    one_leader,
    refuted,
    safe,
    unsafe,
)
from tests.support.schedule_text import schedules_of
from tests.support.schedules import Expected, Schedule, Schedules, Story
from txnlib.core.kafka.transaction_log import OffsetCommit, OffsetCommitKey, TransactionLogEntry
from txnlib.core.kafka.transaction_state import TransactionState
from txnlib.core.rows import TopicPartition

# ---- Producer snapshots of the leader

#: More of the same cluster: a coordinator partition has one schedule, and there are fifty.
MORE = Schedules()


def snapshot_above(current: int | None, epoch: int = 0) -> Schedule:
    """The leader's snapshot above the first open batch, and what it has open of the producer."""

    def of(s: Story) -> Expected:
        s.note("Empty", 0)
        s.beat(0)
        s.late_write(3 * MINUTE)
        s.beat(10 * MINUTE, 40 * MINUTE, 100 * MINUTE)
        state = replace(nothing_open(3 * MINUTE), current_txn_first_offset=current, producer_epoch=epoch)
        snapshots = {7: encode_snapshot({s.pid: state})}
        s.copied(Copy(1, END, leader_epochs=((0, 0),), snapshots=snapshots))
        return refuted(s, finds=("*",)) if current is None or epoch else safe(s)

    return of


MORE |= {
    "snapshot_above_it_with_nothing_open": snapshot_above(None),
    "snapshot_above_it_with_the_same_first_offset": snapshot_above(4),
    "snapshot_above_it_with_an_epoch_that_no_batch_of_it_has": snapshot_above(4, epoch=1),
}


# ---- Offsets that are committed in a transaction


def offsets(number: int, *, hole: str | None) -> Schedule:
    """Of a partition of __consumer_offsets: no sequences, and always holes."""

    def of(given: Story) -> Expected:
        s = replace(given, topic="__consumer_offsets")
        place = ("__consumer_offsets", number)
        hidden = {
            "front": [30 * SECOND],
            "data": [30 * SECOND, MINUTE + 5],
            "between": [4 * MINUTE],
            "behind": [12 * MINUTE],
            "all in front": [30 * SECOND, MINUTE + 5, MINUTE + SECOND + 10, 3 * MINUTE, 4 * MINUTE, 5 * MINUTE],
        }.get(hole or "", [])
        s.c.copies[place] = [Copy(1, END, keep=lambda e: e.at not in hidden, leader_epochs=((0, 0),))]

        def commit(at: int, pid: int = -1, **changes: Any) -> None:
            key = encode_offset_commit_key(OffsetCommitKey(group_id=f"group-{at}", topic="orders", partition=0))
            value = encode_offset_commit_value(
                OffsetCommit(version=3, offset=at, metadata=b"", commit_timestamp_ms=NOON + at)
            )
            told = {"content": (key, value), "sequence": -1, "is_transactional": pid >= 0}
            s.c.write(place, pid, 0 if pid >= 0 else -1, at, **told | changes)

        def whole(pid: int, id_: str, at: int) -> None:
            s.c.note(id_, "Ongoing", pid, 0, [place], at, start=at)
            commit(at + 5, pid)
            s.c.note(id_, "PrepareCommit", pid, 0, [place], at + SECOND, start=at)
            s.c.mark(place, pid, 0, "COMMIT", at + SECOND + 10)
            s.c.note(id_, "CompleteCommit", pid, 0, (), at + SECOND + 20, start=at)

        s.note("Empty", 0)
        commit(30 * SECOND)
        if hole != "first":
            whole(s.pid, s.id, MINUTE)
        for at in (3, 4, 5):
            commit(at * MINUTE)
        commit(6 * MINUTE, s.pid)
        other = id_in(49, f"beat-{given.topic}")
        for at in (10, 20, 100):
            whole(s.pid + 500, other, at * MINUTE)
            commit((at + 2) * MINUTE)
        return s.expect("HANGING", is_safe=hole in (None, "first", "front", "data"), place=place)

    return of


MORE |= {
    "offsets_behind_the_last_marker": offsets(0, hole=None),
    "first_offsets_of_a_producer": offsets(6, hole="first"),
    "offsets_behind_the_last_marker_and_a_hole_in_front_of_it": offsets(1, hole="front"),
    "offsets_behind_the_last_marker_whose_records_were_cleaned": offsets(7, hole="data"),
    "offsets_behind_a_hole": offsets(2, hole="between"),
    "offsets_in_front_of_a_hole": offsets(3, hole="behind"),
    "offsets_behind_all_that_was_cleaned": offsets(4, hole="all in front"),
}


# ---- What an action is called

MORE |= schedules_of("""
    two_epochs_ahead_of_an_ongoing_transaction:
        Ongoing 3h-30s | write 5m epoch=2 | beat 0 10m 100m → unsafe NO_COORDINATOR
""")


# ---- Further records that refute a witness

INVENTED = Schedules()


INVENTED |= schedules_of("""
    # 5.4.3 a: a marker here that no decision explains, though one is of its time, type and epoch.
    marker_of_a_decision_that_lists_only_a_sibling:
        Empty 0 | beat 0 | Ongoing 1m on 1 | write 1m+5ms | end 2m on 1 | COMMIT 2m+10ms | write 3m | beat 100m on 1 |
        elected → refuted

    # 5.4.3 a: an ABORT of epoch 5, which its coordinator's gap-free log never had.
    marker_at_a_higher_epoch_than_every_record:
        Empty 0 | beat 0 | write 1m | ABORT 2m epoch=5 | write 3m epoch=5 | elected → refuted

    # 5.3.7: a marker older than its transaction's start is never its own, though there is one of each.
    one_commit_and_one_marker_older_than_its_start:
        Empty 0 | beat 0 | write 1m | COMMIT 2m | Ongoing 10m | write 10m+5ms | PrepareCommit 11m |
        CompleteCommit 11m+20ms | elected → refuted
    # The control: the marker is younger than the start.
    one_commit_and_its_marker:
        Empty 0 | beat 0 | T 10m | write 12m | elected → safe
""")


def on_a_sibling(epoch: int = 0, coordinator_epoch: int = 0, *, is_safe: bool) -> Schedule:
    """A decided COMMIT on a sibling: its marker has a coordinator epoch, and a batch behind it a producer epoch."""

    def of(s: Story) -> Expected:
        sibling = (s.topic, 1)
        s.note("Empty", 0)
        s.beat(0)
        s.write(MINUTE)
        s.note("Ongoing", MINUTE, [sibling])
        s.c.write(sibling, s.pid, 0, MINUTE + 5)
        s.note("PrepareCommit", 2 * MINUTE, [sibling], start=MINUTE)
        s.c.mark(sibling, s.pid, 0, "COMMIT", 2 * MINUTE + 10, coordinator_epoch=coordinator_epoch)
        s.note("CompleteCommit", 2 * MINUTE + 20, (), start=MINUTE)
        if epoch:
            s.c.write(sibling, s.pid, epoch, 3 * MINUTE, is_transactional=False)
        s.beat(100 * MINUTE, partition=1)
        elected_since(s)
        return safe(s) if is_safe else refuted(s)

    return of


INVENTED |= {
    "sibling_at_an_epoch_that_no_record_has": on_a_sibling(7, is_safe=False),
    "sibling_with_a_marker_of_a_later_coordinator": on_a_sibling(0, 12, is_safe=False),
    "sibling_at_the_epochs_of_the_coordinator": on_a_sibling(is_safe=True),
}


def of_a_follower(*epochs: tuple[int, int], is_safe: bool) -> Schedule:
    """5.4.3 c: the leader-epoch-checkpoint of the leader has one leader epoch, and a follower's its own."""

    def of(s: Story) -> Expected:
        s.note("Empty", 0)
        s.beat(0)
        s.write(MINUTE)
        s.beat(100 * MINUTE)
        s.note("Empty", 20 * MINUTE, epoch=1)
        compacted(s)
        s.copied(Copy(1, END, leader_epochs=((0, 0),)), Copy(2, END, leader_epochs=epochs))
        return safe(s) if is_safe else refuted(s)

    return of


INVENTED |= {
    "leader_epoch_that_only_a_followers_checkpoint_has": of_a_follower((0, 0), (3, 5), is_safe=False),
    "checkpoints_that_agree": of_a_follower((0, 0), is_safe=True),
}


def answered(is_safe: bool, **answer: Any) -> Schedule:
    """What capture.json notes of the leader's answer; the first open batch is at offset 2."""

    def of(s: Story) -> Expected:
        s.note("Empty", 0)
        s.beat(0)
        s.write(MINUTE)
        s.beat(100 * MINUTE)
        s.note("Empty", 20 * MINUTE, epoch=1)
        compacted(s)
        one_leader(s)
        s.c.answers[s.place] = answer
        return safe(s) if is_safe else s.expect("HANGING", or_verdict="UNKNOWN")

    return of


ASKED = {"answered_at_ms": NOON + END, "high_watermark": 5}
INVENTED |= {
    "answered_leader_epoch_beyond_the_checkpoint": answered(False, leader_epoch=4),
    "answered_leader_epoch_of_the_checkpoint": answered(True, leader_epoch=0),
    "answered_stable_offset_above_it": answered(False, last_stable_offset=5, **ASKED),
    "answered_stable_offset_at_it": answered(True, last_stable_offset=2, **ASKED),
}


OLD, NEW = "AAAAAAAAAAAAAAAAAAAAAA", "BBBBBBBBBBBBBBBBBBBBBB"


def marker_in_a_copy_of(topic_id: str, *, is_safe: bool) -> Schedule:
    """5.4.1: a later copy of a follower has a marker behind the same batches, one by hand; its topic id counts."""

    def of(s: Story) -> Expected:
        s.late_write(3 * MINUTE)
        s.beat(0, 30 * MINUTE)
        offset = 7
        marker = Entry(at=HOUR, offset=offset, producer_id=s.pid, producer_epoch=0, marker="ABORT", stamp=HOUR)
        s.copied(
            Copy(1, END, topic_id=NEW, leader_epochs=((0, 0),)),
            Copy(2, 31 * MINUTE + SECOND, taken=END, own=(marker,), topic_id=topic_id, high_watermark=8),
        )
        return safe(s) if is_safe else s.expect(None, or_verdict="UNKNOWN")

    return of


INVENTED |= {
    "marker_in_a_copy_of_the_same_topic_id": marker_in_a_copy_of(NEW, is_safe=False),
    "marker_in_a_copy_of_a_deleted_topic": marker_in_a_copy_of(OLD, is_safe=True),
}


@INVENTED
def follower_ahead_of_the_noted_leader(s: Story) -> Expected:
    """5.3.1: followers are never ahead, so the note is outdated, and so is the copy."""
    s.late_write(3 * MINUTE)
    s.beat(0, 30 * MINUTE, 100 * MINUTE)
    s.copied(Copy(1, 50 * MINUTE, taken=END), Copy(2, END))
    return refuted(s)


@INVENTED
def prepared_before_a_later_copy_with_the_marker(s: Story) -> Expected:
    """5.4.1 for STUCK: a follower's later copy has the marker that the noted leader's lacks."""
    s.beat(0)
    s.begin(MINUTE)
    s.end(2 * MINUTE, start=MINUTE, takes=2 * HOUR, complete=False)
    s.beat(30 * MINUTE, 110 * MINUTE)
    s.copied(Copy(1, 50 * MINUTE, taken=50 * MINUTE), Copy(2, END))
    return s.expect(None, or_verdict="UNKNOWN")


def coordinator_led_elsewhere(leader_epoch: int, verdict: str, *, is_safe: bool) -> Schedule:
    """5.3.1 for a coordinator: another broker's copy goes on with an Ongoing of the partition, in a leader epoch."""

    def of(s: Story) -> Expected:
        later = {"leader_epoch": 1}
        s.note("Empty", 0)
        s.late_write(3 * MINUTE)
        s.beat(0, 10 * MINUTE, 100 * MINUTE)
        one_leader(s)
        other = id_in(s.number, f"other-{s.number}")
        s.c.note(other, "Empty", 900_000 + s.number, 0, (), 20 * MINUTE, **later if not leader_epoch else {})
        value = TransactionLogEntry(
            transactional_id=s.id, producer_id=s.pid, producer_epoch=0, transaction_state=TransactionState.ONGOING,
            transaction_partitions=(TopicPartition(*s.place),), transaction_timeout_ms=60_000, version=0,
            last_update_timestamp_ms=NOON + 30 * MINUTE, start_timestamp_ms=NOON + 30 * MINUTE,
        )  # fmt: skip
        own = Entry(
            at=30 * MINUTE, offset=5 if leader_epoch else 4, key=s.id, value=value, stamp=30 * MINUTE,
            leader_epoch=leader_epoch,
        )  # fmt: skip
        reached = 25 * MINUTE if leader_epoch else 10 * MINUTE
        s.coordinator(Copy(1, END), Copy(2, reached, taken=END, own=(own,)))
        return safe(s) if is_safe else s.expect(verdict, or_verdict="UNKNOWN")

    return of


INVENTED |= {
    "coordinator_of_a_higher_leader_epoch_elsewhere": coordinator_led_elsewhere(2, "LATE", is_safe=False),
    "coordinator_that_was_deposed_elsewhere": coordinator_led_elsewhere(0, "HANGING", is_safe=True),
}


@INVENTED
def checkpoint_elsewhere_above_the_end_of_the_coordinators_copy(s: Story) -> Expected:
    """5.3.1: the highest high watermark of any broker counts."""
    s.note("Empty", 0)
    s.late_write(3 * MINUTE)
    s.beat(0, 10 * MINUTE, 100 * MINUTE)
    s.c.noted.append((2, (TXN, s.number), 100))
    return refuted(s)


INVENTED |= schedules_of("""
    two_phase_commit_that_may_come_to_include_it:
        Empty 0 | T 1m | write 3m | beat 0 10m 100m | Ongoing 20m on 1 timeout=never → unsafe NO_COORDINATOR

    # 5.4.3: the newest record of the id, in a log with holes. At epoch 0 it proves that nothing was ever decided.
    empty_at_epoch_0_among_holes:
        beat 0 | Empty 1m | write 4m | elected | compacted → safe
    empty_at_epoch_1_among_holes:
        beat 0 | Empty 1m | Empty 2m epoch=1 | write 4m epoch=1 | elected | compacted → refuted
    empty_at_epoch_0_among_holes_beside_a_marker:
        beat 0 | Empty 1m | write 2m | COMMIT 3m | write 4m | elected | compacted → refuted

    # 5.4.3 c: the checkpoint has one leader epoch, and the log a higher one.
    leader_epoch_of_the_log_beyond_its_checkpoint:
        Empty 0 | beat 0 | write 1m | elected | Empty 20m epoch=1 | compacted | one leader → unsafe NO_COMMIT

    # 5.3.6: stamps are corrected by the offset that pairs of decisions and markers measure. The client's stamp is old
    # enough for Kafka's own rule.
    stamps_by_a_clock_that_pairs_measure_behind:
        led by another skew=-10m | Empty 0 | beat 1m 10m 20m 1h 167m 169m | write 168m stamp=138m → unsafe OLD_ENOUGH
""")


@INVENTED
def split_outcome_of_another_producer_on_the_partition(s: Story) -> Expected:
    """5.4.5: a finding of severity CRITICAL names the partition."""
    s.note("Empty", 0)
    s.late_write(3 * MINUTE)
    s.beat(0, 10 * MINUTE, 100 * MINUTE)
    one_leader(s)
    id_ = id_in(s.number, f"split-{s.number}")
    s.c.note(id_, "Empty", 960_000, 0, (), 12 * MINUTE)
    s.c.note(id_, "Ongoing", 960_000, 0, [s.place], 13 * MINUTE)
    s.c.write(s.place, 960_000, 0, 13 * MINUTE + 5)
    s.c.note(id_, "PrepareCommit", 960_000, 0, [s.place], 14 * MINUTE, start=13 * MINUTE)
    s.c.mark(s.place, 960_000, 0, "ABORT", 14 * MINUTE + 10)
    s.c.note(id_, "CompleteCommit", 960_000, 0, (), 14 * MINUTE + 20, start=13 * MINUTE)
    return unsafe(s, fails=NOTHING_ELSE)


INVENTED |= schedules_of("""
    late_write_under_one_leader:
        Empty 0 | T 1m | write 3m | beat 0 10m 100m | one leader → safe
""")
