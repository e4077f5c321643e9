"""Markers by hand, later copies, snapshots, siblings and elections.

Each that is refuted is beside a control, which nothing refutes. More of tests/jobs/test_refuted_proofs.py.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.support.audits import AuditTables
from tests.support.cluster import HOUR, MINUTE, SECOND, Cluster, Copy, Entry
from tests.support.log_bytes import encode_snapshot
from tests.support.metadata_log import MetadataLog
from tests.support.refutations import (
    END,
    NO_COMMIT,
    NOTHING_ELSE,
    OF_4_1,
    Kit,
    T,
    audits,
    cases,
    compacted,
    elected_since,
    kraft,
    nothing_open,
    one_leader,
    refuted,
    safe,
    unsafe,
    with_an_id_of_v2,
    with_metadata,
)
from tests.support.schedule_text import schedules_of
from tests.support.schedules import Expected, Schedule, Schedules, Story, Told, wrong

pytestmark = pytest.mark.shares("kits")

WITNESSES = Schedules()


# ---- Markers that the admin tool wrote

WITNESSES |= schedules_of("""
    # An ABORT of the admin tool ended records that nobody registered; then more of them came.
    by_hand_and_written_again_under_one_leader:
        Empty 0 | beat 0 | write 1m | ABORT 20m | write 21m | beat 100m | one leader → safe
    by_hand_and_written_again_with_an_election_since:
        Empty 0 | beat 0 | write 1m | ABORT 20m | write 21m | elected → refuted NO_COMMIT

    # The tool aborted what its coordinator then committed: the COMMIT marker ended nothing, and a late write came.
    by_hand_before_its_commit:
        Empty 0 | beat 0 | Ongoing 1m | write 1m+5ms | ABORT 2m | end 3m | write 4m | beat 100m |
        one leader → unsafe NOTHING_ELSE

    # The COMMIT lost its marker; the tool aborted its records, and a late write came: the finding is CRITICAL.
    by_hand_after_a_lost_commit:
        Empty 0 | beat 0 | begin 1m | end 2m lost | ABORT 30m leader_epoch=1 | write 31m leader_epoch=1 |
        beat 40m leader_epoch=1 | elected → unsafe finds=*
""")


# ---- Copies of other instants


def partition_copied_before(coordinator_until: int | None, *, committed: bool, cleaned: bool) -> Schedule:
    """The partition was copied at +50 min, its coordinator at the end: what came between, only that one shows."""

    def of(s: Story) -> Expected:
        s.note("Empty", 0)
        s.late_write(3 * MINUTE)
        s.beat(0, 10 * MINUTE, 45 * MINUTE, 100 * MINUTE)
        if committed:
            s.note("Ongoing", 55 * MINUTE, [s.place])
            s.note("PrepareCommit", 56 * MINUTE, [s.place], start=55 * MINUTE)
            s.c.mark(s.place, s.pid, 0, "COMMIT", 56 * MINUTE + 10)
            s.note("CompleteCommit", 56 * MINUTE + 20, (), start=55 * MINUTE)
        if cleaned:
            s.note("Empty", 80 * MINUTE, epoch=1)
            compacted(s, 95 * MINUTE)
        until = 50 * MINUTE
        s.copied(Copy(1, until, taken=until, leader_epochs=((0, 0),)))
        return s.expect("HANGING", or_verdict="UNKNOWN", is_safe=False) if committed or cleaned else safe(s)

    return of


WITNESSES |= {
    "committed_between_the_copies": partition_copied_before(None, committed=True, cleaned=False),
    "committed_between_the_copies_and_cleaned": partition_copied_before(None, committed=True, cleaned=True),
    "cleaned_between_the_copies": partition_copied_before(None, committed=False, cleaned=True),
    "nothing_between_the_copies": partition_copied_before(None, committed=False, cleaned=False),
}


def elsewhere(
    *,
    marker: str | None = None,
    at: int = 5,
    leader_epoch: int = 0,
    log_start: int = 0,
    until: int = 3 * MINUTE,
    high_watermark: int | None = None,
    is_safe: bool,
) -> Schedule:
    """The copy of broker 2, of the same topic id, is of now; that of the leader, too. The first open batch is at 4."""

    def of(s: Story) -> Expected:
        s.note("Empty", 0)
        s.late_write(3 * MINUTE)
        s.beat(0, 10 * MINUTE, 100 * MINUTE)
        own = ()
        if marker is not None:
            own = (
                Entry(
                    at=until,
                    offset=at,
                    producer_id=s.pid,
                    producer_epoch=0,
                    marker=marker,
                    stamp=until,
                    leader_epoch=leader_epoch,
                ),
            )
        s.copied(
            Copy(1, END, leader_epochs=((0, 0),)),
            Copy(2, until, taken=END, own=own, log_start=log_start, high_watermark=high_watermark),
        )
        return safe(s) if is_safe else s.expect("HANGING", or_verdict="UNKNOWN")

    return of


WITNESSES |= {
    "other_marker_at_the_offset_of_another_batch": elsewhere(marker="COMMIT", at=5, is_safe=False),
    "abort_marker_at_the_offset_of_another_batch": elsewhere(marker="ABORT", at=5, is_safe=False),
    "copy_that_ends_below_it": elsewhere(until=MINUTE, is_safe=True),
    "copy_that_begins_above_it": elsewhere(until=END, log_start=6, is_safe=True),
}


def longer_follower(closed: bool, log_start: int) -> Schedule:
    """The leader was copied an hour after, a follower now: it begins at an offset, and may have the marker at 9."""

    def of(s: Story) -> Expected:
        s.note("Empty", 0)
        s.late_write(3 * MINUTE)
        s.beat(0, 10 * MINUTE, 30 * MINUTE)
        if closed:
            s.c.mark(s.place, s.pid, 0, "ABORT", 100 * MINUTE)
        s.beat(110 * MINUTE)
        s.copied(Copy(1, HOUR, taken=HOUR, leader_epochs=((0, 0),)), Copy(2, END, log_start=log_start))
        return s.expect(None, or_verdict="UNKNOWN") if closed else safe(s)

    return of


WITNESSES |= {
    "longer_follower_with_the_marker": longer_follower(True, 0),
    "longer_follower_that_begins_above_it_with_the_marker": longer_follower(True, 6),
    "longer_follower_without_a_marker": longer_follower(False, 0),
    "longer_follower_that_begins_above_it_without_a_marker": longer_follower(False, 6),
}


# ---- Snapshots


def snapshot(of_broker: int, offset: int, *, is_safe: bool, damage: bool = False, **changes: Any) -> Schedule:
    """The first open batch is at offset 4; the producer in a snapshot of a broker."""

    def of(s: Story) -> Expected:
        s.note("Empty", 0)
        s.beat(0)
        s.late_write(3 * MINUTE)
        s.beat(10 * MINUTE, 40 * MINUTE, 100 * MINUTE)
        state = replace(nothing_open(3 * MINUTE), current_txn_first_offset=4)
        content = encode_snapshot({s.pid: replace(state, **changes)})
        if damage:
            content = content[:-1] + bytes([content[-1] ^ 1])
        found = {offset: content}
        own, other = (found, {}) if of_broker == 1 else ({}, found)
        s.copied(
            Copy(1, END, leader_epochs=((0, 0),), snapshots=own), Copy(2, END, leader_epochs=((0, 0),), snapshots=other)
        )
        return safe(s) if is_safe else refuted(s)

    return of


WITNESSES |= {
    "snapshot_that_agrees": snapshot(1, 7, is_safe=True),
    "snapshot_of_a_follower_that_agrees": snapshot(2, 7, is_safe=True),
    "snapshot_that_is_damaged": snapshot(1, 7, damage=True, current_txn_first_offset=None, is_safe=True),
    "snapshot_below_it_with_nothing_open": snapshot(
        1, 4, current_txn_first_offset=None, last_sequence=0, last_offset=2, is_safe=True
    ),
}


# ---- Prepared, with other partitions

WITNESSES |= schedules_of("""
    # The newest record of the id lists a sibling, if it lists any.
    prepared_to_commit_a_sibling:
        Empty 0 | T 1m | write 3m | beat 0 10m 100m | one leader | write 19m on 1 |
        PrepareCommit 20m on 1 start=19m-5ms → unsafe NO_COORDINATOR
    prepared_to_abort_a_sibling:
        Empty 0 | T 1m | write 3m | beat 0 10m 100m | one leader | write 19m on 1 |
        PrepareAbort 20m on 1 start=19m-5ms → unsafe NO_COORDINATOR
    fenced_with_a_sibling:
        Empty 0 | T 1m | write 3m | beat 0 10m 100m | one leader | write 19m on 1 epoch=1 |
        PrepareEpochFence 20m on 1 start=19m-5ms epoch=1 → unsafe NO_COORDINATOR
    completed_with_a_sibling:
        Empty 0 | T 1m | write 3m | beat 0 10m 100m | one leader | CompleteCommit 20m start=19m-5ms → safe
""")


# ---- Groups of siblings, whose clocks differ


def group(kind: str, *, lost: tuple[int, ...], skew: int = 0, is_safe: bool, compared: bool = True) -> Schedule:
    """A transaction of three partitions, of which the first two are led by a broker of another clock."""

    def of(s: Story) -> Expected:
        places = [(s.topic, number) for number in range(3)]
        broker = 100 + s.number
        for number in (1, 2):
            s.c.skews[places[number]] = skew
            s.c.leaders[places[number]] = broker
            s.c.copies[places[number]] = [Copy(broker, END)]
            if compared:
                s.beat(0, 10 * MINUTE, 40 * MINUTE, 60 * MINUTE, partition=number)
        s.note("Empty", 0)
        s.beat(0, 10 * MINUTE)
        s.note("Ongoing", T, places)
        for place in places:
            s.c.write(place, s.pid, 0, T + 5)
        s.end(T + SECOND, kind, start=T, places=places, lost=[places[number] for number in lost])
        if 0 not in lost:
            s.write(T + MINUTE)
        elected_since(s)
        return safe(s) if is_safe else unsafe(s, fails=NO_COMMIT)

    return of


WITNESSES |= {
    "commit_of_a_group_lost_on_one": group("COMMIT", lost=(0,), is_safe=False),
    "commit_of_a_group_lost_on_one_by_a_clock_seven_minutes_ahead": group(
        "COMMIT", lost=(0,), skew=7 * MINUTE, is_safe=False
    ),
    "abort_of_a_group_lost_on_one": group("ABORT", lost=(0,), is_safe=True),
    "abort_of_a_group_lost_on_one_by_a_clock_seven_minutes_ahead": group(
        "ABORT", lost=(0,), skew=7 * MINUTE, is_safe=True
    ),
    "abort_of_a_group_lost_on_one_by_a_clock_seven_minutes_behind": group(
        "ABORT", lost=(0,), skew=-7 * MINUTE, is_safe=True
    ),
    "commit_of_a_group_and_a_late_write": group("COMMIT", lost=(), is_safe=True),
    "commit_of_a_group_and_a_late_write_by_a_clock_seven_minutes_behind": group(
        "COMMIT", lost=(), skew=-7 * MINUTE, is_safe=True
    ),
    "commit_of_a_group_lost_on_two": group("COMMIT", lost=(0, 1), skew=3 * MINUTE, is_safe=False),
    "commit_of_a_group_and_a_late_write_by_a_clock_four_minutes_ahead_and_not_compared": group(
        "COMMIT", lost=(), skew=4 * MINUTE, compared=False, is_safe=True
    ),
}


# ---- Failovers of the coordinator

WITNESSES |= schedules_of("""
    # Prepared by the coordinator of leader epoch 0, completed by that of 1; its marker has the coordinator epoch of
    # one of them, if it has one, and a late write is behind it.
    failover_before_the_marker_which_is_lost:
        Empty 0 | beat 0 | Ongoing 20m | write 20m+5ms | PrepareCommit 20m+1s |
        CompleteCommit 20m+31s updated=20m+1s leader_epoch=1 | elected → unsafe NO_COMMIT
    failover_before_the_marker:
        Empty 0 | beat 0 | Ongoing 20m | write 20m+5ms | PrepareCommit 20m+1s | COMMIT 20m+30s coordinator_epoch=1 |
        CompleteCommit 20m+31s updated=20m+1s leader_epoch=1 | write 21m | elected → safe
    failover_after_the_marker:
        Empty 0 | beat 0 | Ongoing 20m | write 20m+5ms | PrepareCommit 20m+1s | COMMIT 20m+1s+10ms |
        CompleteCommit 20m+31s updated=20m+1s leader_epoch=1 | write 21m | elected → safe
    failover_after_the_marker_that_is_sent_again:
        Empty 0 | beat 0 | Ongoing 20m | write 20m+5ms | PrepareCommit 20m+1s | COMMIT 20m+1s+10ms | write 20m+20s |
        COMMIT 20m+30s coordinator_epoch=1 | CompleteCommit 20m+31s updated=20m+1s leader_epoch=1 | write 21m |
        elected → safe
""")


# ---- Transactions v2

V2 = Schedules()


V2 |= schedules_of("""
    # Transactions of v2 here, each of an epoch, whose marker is here or not; then perhaps a batch that nobody
    # registered.
    v2_unregistered_at_the_epoch_of_the_coordinator:
        Empty 0 v2 | beat 0 | Ongoing 1m v2 | write 1m+5ms | PrepareCommit 61s epoch=1 v2 | COMMIT 61s+10ms epoch=1 |
        CompleteCommit 61s+20ms epoch=1 v2 | write 3m epoch=1 | elected → safe
    v2_commit_lost:
        Empty 0 v2 | beat 0 | Ongoing 1m v2 | write 1m+5ms | PrepareCommit 61s epoch=1 v2 | COMMIT 61s+10ms epoch=1 |
        CompleteCommit 61s+20ms epoch=1 v2 | Ongoing 3m epoch=1 v2 | write 3m+5ms epoch=1 |
        PrepareCommit 3m+1s epoch=2 v2 | CompleteCommit 3m+1s+20ms epoch=2 v2 | elected → refuted NO_COMMIT
    v2_abort_lost:
        Empty 0 v2 | beat 0 | Ongoing 1m v2 | write 1m+5ms | PrepareCommit 61s epoch=1 v2 | COMMIT 61s+10ms epoch=1 |
        CompleteCommit 61s+20ms epoch=1 v2 | Ongoing 3m epoch=1 v2 | write 3m+5ms epoch=1 |
        PrepareAbort 3m+1s epoch=2 v2 | CompleteAbort 3m+1s+20ms epoch=2 v2 | elected → safe
    v2_commit_lost_and_written_again:
        Empty 0 v2 | beat 0 | Ongoing 1m v2 | write 1m+5ms | PrepareCommit 61s epoch=1 v2 |
        CompleteCommit 61s+20ms epoch=1 v2 | write 3m epoch=1 | elected → refuted NO_COMMIT
    v2_abort_lost_and_written_again:
        Empty 0 v2 | beat 0 | Ongoing 1m v2 | write 1m+5ms | PrepareAbort 61s epoch=1 v2 |
        CompleteAbort 61s+20ms epoch=1 v2 | write 3m epoch=1 | elected → safe
    v2_abort_lost_before_a_commit_that_is_lost:
        Empty 0 v2 | beat 0 | Ongoing 1m v2 | write 1m+5ms | PrepareAbort 61s epoch=1 v2 |
        CompleteAbort 61s+20ms epoch=1 v2 | Ongoing 3m epoch=1 v2 | write 3m+5ms epoch=1 |
        PrepareCommit 3m+1s epoch=2 v2 | CompleteCommit 3m+1s+20ms epoch=2 v2 | elected → refuted NO_COMMIT
    v2_hidden_abort_lost:
        Empty 0 v2 | beat 0 | Ongoing 1m v2 | write 1m+5ms | PrepareCommit 61s epoch=1 v2 | COMMIT 61s+10ms epoch=1 |
        CompleteCommit 61s+20ms epoch=1 v2 | Ongoing 3m epoch=1 v2 | write 3m+5ms epoch=1 |
        PrepareAbort 3m+1s epoch=2 v2 | CompleteAbort 3m+1s+20ms epoch=2 v2 | elected | compacted → refuted NO_COMMIT
    v2_hidden_and_unregistered_under_one_leader:
        Empty 0 v2 | beat 0 | Ongoing 1m v2 | write 1m+5ms | PrepareCommit 61s epoch=1 v2 | COMMIT 61s+10ms epoch=1 |
        CompleteCommit 61s+20ms epoch=1 v2 | write 3m epoch=1 | beat 100m | one leader | compacted → safe
""")


# ---- `Empty` at epoch 0

WITNESSES |= schedules_of("""
    # Among holes, the newest record is Empty at epoch 0; a sibling has a COMMIT of the producer id, or not.
    empty_at_epoch_0_beside_a_commit_on_a_sibling:
        beat 0 | Empty 1m | write 2m on 1 | COMMIT 3m on 1 | beat 100m on 1 | write 4m | elected | compacted → refuted
    empty_at_epoch_0_after_another_producer_id:
        beat 0 | Empty 30s pid=+1 | tombstone 45s | Empty 1m | write 4m | elected | compacted → safe
""")


# ---- Elections by the metadata log

METADATA, FROM_4_2, OLDER_LOG, EDGE = Schedules(), Schedules(), Schedules(), Schedules()


def elected_at(
    *events: tuple[int, int, tuple[int, ...] | None], of_partition: int = 0, epochs: int, is_safe: bool
) -> Schedule:
    """Leaders with their instants and in-sync sets; compaction hides what the coordinator decided. Open since +30
    min."""

    def of(s: Story) -> Expected:
        log = with_metadata(s)
        assert log is not None
        s.note("Empty", -4 * HOUR)
        s.note("Empty", 35 * MINUTE, epoch=1)
        compacted(s, 40 * MINUTE)
        before = sum(at < 30 * MINUTE for _, at, _ in events) if not of_partition else 0
        for leader, at, isr in events:
            log.elect(s.topic, leader, at, partition=of_partition, isr=isr)
        s.beat(29 * MINUTE, leader_epoch=before)
        s.write(30 * MINUTE, leader_epoch=before)
        s.beat(31 * MINUTE, leader_epoch=before)
        s.beat(100 * MINUTE, leader_epoch=epochs)
        return safe(s) if is_safe else unsafe(s, fails=NO_COMMIT)

    return of


GONE = ((-1, 5 * MINUTE, None), (1, 6 * MINUTE, None))
LATER = ((-1, 50 * MINUTE, None), (1, 51 * MINUTE, None))
LOSES = ((2, 5 * MINUTE, (2,)), (1, 6 * MINUTE, (1,)))
LOSES_LATER = ((2, 50 * MINUTE, (2,)), (1, 51 * MINUTE, (1,)))
FROM_4_2 |= {
    "without_a_leader_before_it_from_4_2": elected_at(*GONE, epochs=2, is_safe=True),
    "without_a_leader_since_from_4_2": elected_at(*LATER, epochs=2, is_safe=False),
    "sibling_without_a_leader_since_from_4_2": elected_at(*LATER, of_partition=1, epochs=0, is_safe=True),
}
METADATA |= {
    "unclean_before_it": elected_at(*LOSES, epochs=2, is_safe=True),
    "unclean_since": elected_at(*LOSES_LATER, epochs=2, is_safe=False),
    "unclean_before_it_and_clean_since": elected_at(*LOSES, (2, 60 * MINUTE, (1, 2)), epochs=3, is_safe=False),
    "sibling_unclean_since": elected_at(*LOSES_LATER, of_partition=1, epochs=0, is_safe=True),
    "without_a_leader_since_before_4_2": elected_at(*LATER, epochs=2, is_safe=True),
}


# ---- Producer ids that the controller handed out


def handed_out(producer_id: int | None, *, is_safe: bool) -> Schedule:
    """A producer id of nobody's; the last block ends below 60000."""

    def of(s: Story) -> Expected:
        log = s.c.metadata
        assert log is not None
        log.topic(s.topic, 2, -5 * HOUR)
        s.beat(0)
        s.write(MINUTE)
        s.beat(100 * MINUTE)
        one_leader(s)
        if producer_id is None:
            return safe(s)
        s.c.logs[s.place] = [
            replace(e, producer_id=producer_id) if e.producer_id == s.pid else e for e in s.c.logs[s.place]
        ]
        never = {"never_finds": ("PRODUCER_ID_NEVER_ALLOCATED",)}
        if is_safe:
            return safe(s, pid=producer_id, **never)
        return unsafe(s, pid=producer_id, fails=NOTHING_ELSE, says="cluster")

    return of


EDGE |= {
    "producer_id_just_below_the_next_block": handed_out(59_999, is_safe=True),
    "producer_id_of_the_next_block": handed_out(60_000, is_safe=False),
    "producer_id_of_a_block_in_the_middle": handed_out(30_500, is_safe=True),
    "producer_id_of_the_first_block": handed_out(0, is_safe=True),
}


def sixty_blocks(coordinators: int) -> Cluster:
    """Two controllers in turn handed out sixty blocks, which brokers use in another order."""
    c = kraft()(coordinators)
    assert c.metadata is not None
    for number in range(1, 61):
        c.metadata.block(1_000 * number, -5 * HOUR + number)
    return c


class EarlierLog(MetadataLog):
    """A copy that was taken two hours before the others."""

    def encode(self, until: int) -> bytes:
        return super().encode(until - 2 * HOUR)


def earlier_log(coordinators: int) -> Cluster:
    c = kraft()(coordinators)
    assert c.metadata is not None
    c.metadata.__class__ = EarlierLog
    return c


def handed_out_since(*, owned: bool) -> Schedule:
    """The block was handed out after the metadata log was copied."""

    def of(s: Story) -> Expected:
        with_metadata(s, allocated=90 * MINUTE)
        if owned:
            s.note("Empty", 100 * MINUTE)
        s.beat(95 * MINUTE)
        s.write(101 * MINUTE)
        s.beat(110 * MINUTE)
        one_leader(s)
        return s.expect("HANGING", or_verdict="UNKNOWN", never_finds=("PRODUCER_ID_NEVER_ALLOCATED",))

    return of


OLDER_LOG |= {
    "producer_id_handed_out_since_the_metadata_log_was_copied": handed_out_since(owned=True),
    "nobodys_producer_id_handed_out_since_the_metadata_log_was_copied": handed_out_since(owned=False),
}


KITS = {
    "witnesses": Kit(WITNESSES),
    "v2": Kit(V2, notes=OF_4_1 | {"transaction_version": 2}, then=with_an_id_of_v2),
    "metadata": Kit(METADATA, notes=OF_4_1, cluster=kraft()),
    "from 4.2": Kit(FROM_4_2, notes={"kafka_version": "4.2.0"}, cluster=kraft()),
    "blocks": Kit(EDGE, notes=OF_4_1, cluster=sixty_blocks),
    "earlier log": Kit(OLDER_LOG, notes=OF_4_1, cluster=earlier_log),
}


@pytest.fixture(scope="session")
def audit_of(tmp_path_factory) -> Callable[[str], tuple[AuditTables, Told]]:
    return audits(KITS, tmp_path_factory)


@pytest.mark.parametrize(("kit", "name"), cases(KITS))
def test_a_witness_counts_unless_another_refutes_it(audit_of, kit, name):
    tables, told = audit_of(kit)
    assert wrong(tables, {name: told[name]}) == {}
