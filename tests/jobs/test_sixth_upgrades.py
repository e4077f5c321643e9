"""Transactions around the upgrade to transactions v2, by clients that keep their epoch.

Kafka does not demand another epoch of them: only its own producer raises its epoch (KAFKA-18227,
`TransactionManager.maybeUpdateTransactionV2Enabled`). Others decide about each transaction when it begins.
"""

from collections.abc import Callable

import pytest

from tests.support.audits import AuditTables
from tests.support.cluster import HOUR, MINUTE, SECOND
from tests.support.refutations import (
    NO_COMMIT,
    OF_4_1,
    OF_V2,
    Kit,
    Open,
    audits,
    cases,
    compacted,
    elected_since,
    expect_of,
    kraft,
    safe,
    unsafe,
    with_an_id_of_v2,
    with_metadata,
)
from tests.support.schedule_text import schedules_of
from tests.support.schedules import Expected, Schedule, Schedules, Story, Told

pytestmark = pytest.mark.shares("kits")
#: The answers of today that are not those expected: without the metadata log, no file tells of the upgrade
#: (docs/rules/abort.md).
OPEN: Open = {"commit_of_an_old_client_hidden_before_an_ongoing_that_is_left": ("HANGING", True)}

V2 = schedules_of(
    """
    upgraded_within:
        Empty 0 | beat 0 | T 1m | Ongoing 3m | write 3m+5ms | PrepareCommit 4m epoch=1 v2 | COMMIT 4m+10ms epoch=1 |
        CompleteCommit 4m+20ms epoch=1 v2 | Ongoing 5m epoch=1 v2 | write 5m+5ms epoch=1 | PrepareCommit 6m epoch=2 v2 |
        COMMIT 6m+10ms epoch=2 | CompleteCommit 6m+20ms epoch=2 v2 |
        beat 100m → closed never_finds=*
    downgraded_between:
        Empty 0 v2 | beat 0 | Ongoing 3m v2 | write 3m+5ms | PrepareCommit 4m epoch=1 v2 | COMMIT 4m+10ms epoch=1 |
        CompleteCommit 4m+20ms epoch=1 v2 | Ongoing 5m epoch=1 | write 5m+5ms epoch=1 | PrepareCommit 6m epoch=1 |
        COMMIT 6m+10ms epoch=1 | CompleteCommit 6m+20ms epoch=1 |
        beat 100m → closed never_finds=*
    old_client_timed_out:
        Empty 0 | beat 0 | T 1m | Ongoing 3m | write 3m+5ms | PrepareAbort 4m epoch=1 v2 | ABORT 4m+10ms epoch=1 |
        CompleteAbort 4m+20ms epoch=1 v2 | Empty 5m epoch=2 v2 | Ongoing 6m epoch=2 | write 6m+5ms epoch=2 |
        PrepareCommit 7m epoch=2 | COMMIT 7m+10ms epoch=2 | CompleteCommit 7m+20ms epoch=2 |
        beat 100m → closed never_finds=*
    raised_by_two:
        Empty 0 v2 | beat 0 | Ongoing 3m v2 | write 3m+5ms | PrepareAbort 4m epoch=2 v2 | ABORT 4m+10ms epoch=2 |
        CompleteAbort 4m+20ms epoch=2 v2 | Ongoing 5m epoch=2 v2 | write 5m+5ms epoch=2 | PrepareCommit 6m epoch=3 v2 |
        COMMIT 6m+10ms epoch=3 | CompleteCommit 6m+20ms epoch=3 v2 |
        beat 100m → closed never_finds=*
    late_write_of_an_old_client_that_timed_out:
        Empty 0 | beat 0 | T 1m | Ongoing 3m | write 3m+5ms | PrepareAbort 4m epoch=1 v2 | ABORT 4m+10ms epoch=1 |
        CompleteAbort 4m+20ms epoch=1 v2 | write 5m epoch=1 |
        beat 10m 100m | one leader → safe
    commit_of_an_old_client_lost_before_its_timeout:
        Empty 0 | beat 0 | Ongoing 1m | write 1m+5ms | PrepareCommit 2m | CompleteCommit 2m+20ms | Ongoing 3m |
        PrepareAbort 5m epoch=1 v2 start=3m | CompleteAbort 5m+20ms epoch=1 v2 start=3m |
        elected → unsafe NO_COMMIT
    commit_of_an_old_client_hidden_before_its_timeout:
        Empty 0 | beat 0 | Ongoing 1m | write 1m+5ms | PrepareCommit 2m | CompleteCommit 2m+20ms | Ongoing 3m |
        PrepareAbort 31m+5s epoch=1 v2 start=3m | CompleteAbort 31m+6s epoch=1 v2 start=3m |
        elected | compacted → unsafe NO_COMMIT
    commit_of_an_old_client_hidden_before_an_ongoing_that_is_left:
        Empty 0 | beat 0 | Ongoing 1m | write 1m+5ms | PrepareCommit 2m | CompleteCommit 2m+20ms | Ongoing 30m+30s v2 |
        PrepareAbort 32m epoch=1 v2 start=30m+30s | CompleteAbort 32m+1s epoch=1 v2 start=30m+30s |
        elected | compacted → unsafe NO_COMMIT
    """
)


def upgraded(*, is_safe: bool) -> Schedule:
    """A COMMIT of a client without transactions v2 lost its marker, and compaction removed its records. Then
    `transaction.version` became 2, and the client went on with the same epoch. Kafka does not demand another one."""

    def of(s: Story) -> Expected:
        log = with_metadata(s)
        assert log is not None
        for leader, at in ((1, 0), (2, MINUTE), (1, 2 * MINUTE)):
            log.elect(s.topic, leader, 40 * MINUTE + at, isr=(leader,))
        s.note("Empty", 0, **({} if not is_safe else OF_V2))
        s.beat(0)
        if not is_safe:
            s.note("Ongoing", MINUTE, [s.place])
            s.write(MINUTE + 5)
            s.end(2 * MINUTE, start=MINUTE, lost=[s.place])
        begun = 30 * MINUTE + 30 * SECOND
        s.note("Ongoing", begun, [s.place], **OF_V2)
        if is_safe:
            s.write(begun + 5)
        more = {"start": begun, "epoch": 1, **OF_V2}
        s.note("PrepareAbort", begun + MINUTE, [s.place], **more)
        s.note("CompleteAbort", begun + MINUTE + 20, **more)
        elected_since(s)
        compacted(s)
        return safe(s) if is_safe else unsafe(s, fails=NO_COMMIT)

    return of


BEFORE, WITHIN = Schedules(upgraded_before=upgraded(is_safe=True)), Schedules(upgraded_since=upgraded(is_safe=False))
KITS = {
    "v2": Kit(V2, notes=OF_4_1 | {"transaction_version": 2}, then=with_an_id_of_v2),
    "before": Kit(BEFORE, notes=OF_4_1, cluster=kraft(((2, -5 * HOUR),))),
    "within": Kit(WITHIN, notes=OF_4_1, cluster=kraft(((1, -5 * HOUR), (2, 20 * MINUTE)))),
}


@pytest.fixture(scope="session")
def audit_of(tmp_path_factory) -> Callable[[str], tuple[AuditTables, Told]]:
    return audits(KITS, tmp_path_factory)


@pytest.mark.parametrize(("kit", "name"), cases(KITS))
def test_an_epoch_may_be_of_clients_before_an_upgrade(audit_of, kit, name):
    tables, told = audit_of(kit)
    expect_of(tables, told, name, OPEN)
