"""A COMMIT that was told, and an ABORT by a coordinator without it.

A broker dies: with it the partition, which has no other replica, and the coordinator, which is elected uncleanly. The
next coordinator finds the transaction Ongoing, and aborts it when it times out. From 4.2 on, it completes without the
marker of a partition that has no leader. Then the broker comes back. Kafka:
`KRaftMetadataCache.getPartitionLeaderEndpoint`, `TransactionMarkerChannelManager.addTxnMarkersToBrokerQueue`.
"""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.audits import AuditTables
from tests.support.cluster import HOUR, MINUTE, SECOND, Copy
from tests.support.refutations import END, OF_V2, Kit, Open, audits, cases, expect_of, other, refuted, safe, tick
from tests.support.schedules import Expected, Schedule, Schedules, Story, Told

pytestmark = pytest.mark.shares("kits")

SPLIT = Schedules()
#: The answers of today that are not those expected.
OPEN: Open = {}
OF_4_2: dict[str, Any] = {"kafka_version": "4.2.0"}


def told_and_aborted(
    *, is_v2: bool, is_told: bool, has_hole: bool, both: bool = True, ago: int = 100 * MINUTE
) -> Schedule:
    """`is_told`: a COMMIT was decided, and reached the other partition. `has_hole`: compaction removed what was in
    front. `both`: the ABORT reached the other partition, too."""

    def of(s: Story) -> Expected:
        elsewhere, of_v2 = (s.topic, 1), OF_V2 if is_v2 else {}
        begun = END - ago
        committed, aborted = (6, 6) if is_v2 else (5, 6)
        s.c.leaders[elsewhere] = 2
        s.note("Empty", -5 * HOUR, epoch=4, **of_v2)
        s.c.note(other(s), "Empty", 900_000 + s.number, 0, (), begun - 3 * MINUTE)
        s.note("Empty", begun - 2 * MINUTE, epoch=5, **of_v2)
        s.c.note(other(s, "kept"), "Empty", 910_000 + s.number, 0, (), begun - MINUTE)
        s.beat(0, begun - 90 * SECOND, begun - 10 * SECOND)
        s.note("Ongoing", begun, [s.place, elsewhere], epoch=5, **of_v2)
        s.write(begun + 5, 5)
        s.c.write(elsewhere, s.pid, 5, begun + 5)
        if is_told:
            s.c.mark(elsewhere, s.pid, committed, "COMMIT", begun + 10 * SECOND)
        at = begun + MINUTE
        more = {"start": begun, "epoch": aborted, "leader_epoch": 1, **of_v2}
        s.note("PrepareAbort", at, [s.place, elsewhere], **more)
        if both or not is_told:
            s.c.mark(elsewhere, s.pid, aborted, "ABORT", at + 10, coordinator_epoch=1)
        s.note("CompleteAbort", at + 20, **more)
        for minute in (2, 3):
            after = {"leader_epoch": 1, "at": begun + minute * MINUTE}
            s.c.note(other(s), "Empty", 900_000 + s.number, 2, (), **after)
        s.beat(begun + 5 * MINUTE, leader_epoch=2)
        s.copied(Copy(1, END, leader_epochs=((0, 0), (2, 7))))
        s.c.copies[elsewhere] = [Copy(2, END)]
        if has_hole:
            s.coordinator(Copy(1, END, is_compacted_until=begun - 30 * SECOND))
        return refuted(s) if is_told else safe(s)

    return of


SPLIT |= {
    "told_and_aborted_under_v2": told_and_aborted(is_v2=True, is_told=True, has_hole=False),
    "told_and_aborted_under_v2_behind_a_hole": told_and_aborted(is_v2=True, is_told=True, has_hole=True),
    "told_and_aborted_under_v2_without_a_leader_of_either": told_and_aborted(
        is_v2=True, is_told=True, has_hole=False, both=False
    ),
    "told_and_aborted_under_v2_behind_a_hole_without_a_leader_of_either": told_and_aborted(
        is_v2=True, is_told=True, has_hole=True, both=False
    ),
    "told_and_aborted_without_a_leader_of_either": told_and_aborted(
        is_v2=False, is_told=True, has_hole=False, both=False
    ),
    "told_and_aborted_behind_a_hole_without_a_leader_of_either": told_and_aborted(
        is_v2=False, is_told=True, has_hole=True, both=False
    ),
    "aborted_under_v2": told_and_aborted(is_v2=True, is_told=False, has_hole=False),
    "aborted_under_v2_behind_a_hole": told_and_aborted(is_v2=True, is_told=False, has_hole=True),
    "told_and_aborted": told_and_aborted(is_v2=False, is_told=True, has_hole=False),
    "told_and_aborted_behind_a_hole": told_and_aborted(is_v2=False, is_told=True, has_hole=True),
    "aborted": told_and_aborted(is_v2=False, is_told=False, has_hole=False),
}


def lost_with_others(*, is_v2: bool, is_lost: bool) -> Schedule:
    """The coordinator lost the decision together with that of another id, whose COMMIT is there. Only one partition of
    the transaction was captured."""

    def of(s: Story) -> Expected:
        elsewhere, of_v2 = (s.topic, 1), OF_V2 if is_v2 else {}
        begun, pid = 40 * MINUTE, 930_000 + s.number
        s.note("Empty", 0, epoch=5, **of_v2)
        s.c.note(other(s, "lost"), "Empty", pid, 0, (), 1)
        s.beat(0, begun - 10 * SECOND)
        s.note("Ongoing", begun, [s.place], epoch=5, **of_v2)
        tick(s, begun + 3, begun + 7)
        s.write(begun + 5, 5)
        if is_lost:
            s.c.write(elsewhere, pid, 0, begun + 5)
            s.c.mark(elsewhere, pid, 0, "COMMIT", begun + 10 * SECOND)
        at = begun + MINUTE
        more = {"start": begun, "epoch": 6, "leader_epoch": 1, **of_v2}
        s.note("PrepareAbort", at, [s.place], **more)
        s.note("CompleteAbort", at + 20, **more)
        s.beat(begun + 5 * MINUTE, leader_epoch=2)
        s.copied(Copy(1, END, leader_epochs=((0, 0), (2, 7))))
        return refuted(s) if is_lost else safe(s)

    return of


SPLIT |= {
    "abort_under_v2_by_a_coordinator_that_lost_a_commit_of_another_id": lost_with_others(is_v2=True, is_lost=True),
    "abort_under_v2_by_a_coordinator_that_lost_nothing": lost_with_others(is_v2=True, is_lost=False),
    "abort_by_a_coordinator_that_lost_a_commit_of_another_id": lost_with_others(is_v2=False, is_lost=True),
    "abort_by_a_coordinator_that_lost_nothing": lost_with_others(is_v2=False, is_lost=False),
}

KITS = {"4.2": Kit(SPLIT, notes=OF_4_2)}


@pytest.fixture(scope="session")
def audit_of(tmp_path_factory) -> Callable[[str], tuple[AuditTables, Told]]:
    return audits(KITS, tmp_path_factory)


@pytest.mark.parametrize(("kit", "name"), cases(KITS))
def test_what_was_told_is_not_aborted(audit_of, kit, name):
    tables, told = audit_of(kit)
    expect_of(tables, told, name, OPEN)
