"""Appends that timed out, and brokers alone in sync that stopped."""

from collections.abc import Callable

import pytest

from tests.jobs.test_fifth_elections import Brokers, hidden
from tests.support.audits import AuditTables
from tests.support.cluster import MINUTE, SECOND
from tests.support.metadata_log import MetadataLog
from tests.support.refutations import Kit, Open, audits, cases, expect_of, kraft
from tests.support.schedule_text import schedules_of
from tests.support.schedules import Told

pytestmark = pytest.mark.shares("kits")

#: The answers of today that are not those expected. The axiom LOSS takes a fence for a crash, so a pause proves less
#: than it could. And no file tells of power that was lost at the end of a controlled shutdown (docs/rules/abort.md).
OPEN: Open = {
    "paused_while_alone_in_sync": ("HANGING", False),
    "power_lost_after_the_controlled_part_of_a_shutdown": ("HANGING", True),
}

STEPS = schedules_of(
    """
    # The append of a tombstone timed out, and its coordinator took it back; the record stays in the log.
    # Kafka: TransactionStateManager.writeTombstonesForExpiredTransactionalIds (removeFromCacheCallback).
    tombstone_that_was_taken_back:
        Empty -4h | beat -4h | T -239m | tombstone -3h | T 1m | beat 100m → closed never_finds=*
    tombstone_that_was_taken_back_and_begun_again:
        Empty -4h | T -239m | tombstone -3h | Empty 0 epoch=1 | Ongoing 1m epoch=1 | write 1m+5ms epoch=1 |
        PrepareCommit 2m epoch=1 | COMMIT 2m+10ms epoch=1 | CompleteCommit 2m+20ms epoch=1 |
        beat 100m → closed never_finds=*
    late_write_behind_a_tombstone_that_was_taken_back:
        Empty -4h | beat -4h | T -239m | tombstone -3h | T 1m | write 3m | beat 10m 100m | one leader → safe
    # The append of Ongoing timed out; the id did nothing more until it expired.
    expired_after_an_ongoing_that_was_taken_back:
        Empty -4h | beat -4h | T -239m | Ongoing -230m | tombstone 1m | beat 100m → closed never_finds=*
    # The partition shows that Ongoing was acknowledged, so the id cannot have expired without a decision.
    expired_after_an_ongoing_that_was_acknowledged:
        Empty -4h | beat -4h | T -239m | Ongoing -230m | write -230m+5ms | tombstone 1m | beat 10m 100m |
        one leader → unsafe NO_COMMIT
    # The append of a COMMIT timed out, and its client died.
    timed_out_after_a_commit_that_was_taken_back:
        Empty 0 | beat 0 | Ongoing 1m | write 1m+5ms | PrepareCommit 2m | PrepareAbort 3m epoch=1 |
        ABORT 3m+10ms epoch=1 | CompleteAbort 3m+20ms epoch=1 | beat 100m → closed never_finds=*
    # The append of the ABORT of its timeout timed out, and nothing of it stayed. The coordinator decides again with the
    # same epoch, and hands it out. Kafka: TransactionMetadata.hasFailedEpochFence.
    epoch_of_a_fence_that_failed_is_handed_out:
        Empty 0 | beat 0 | Ongoing 1m | write 1m+5ms | PrepareAbort 2m epoch=1 | ABORT 2m+10ms epoch=1 |
        CompleteAbort 2m+20ms epoch=1 | Empty 3m epoch=1 | Ongoing 4m epoch=1 | write 4m+5ms epoch=1 |
        PrepareCommit 5m epoch=1 | COMMIT 5m+10ms epoch=1 | CompleteCommit 5m+20ms epoch=1 | beat 100m
        → closed never_finds=*
    completed_twice:
        Empty 0 | beat 0 | Ongoing 1m | write 1m+5ms | PrepareCommit 2m | COMMIT 2m+10ms | CompleteCommit 2m+20ms |
        CompleteCommit 2m+30s | T 5m | beat 100m → closed never_finds=*
    late_write_behind_a_completion_that_was_written_twice:
        Empty 0 | beat 0 | Ongoing 1m | write 1m+5ms | PrepareCommit 2m | COMMIT 2m+10ms | CompleteCommit 2m+20ms |
        CompleteCommit 2m+30s | write 5m | beat 10m 100m | one leader → safe
    partition_that_was_never_added:
        Empty 0 | beat 0 | beat 0 on 1 | Ongoing 1m on 0 | Ongoing 1m+20s on 1 | write 1m+21s on 1 |
        PrepareCommit 2m on 1 | COMMIT 2m+10ms on 1 | CompleteCommit 2m+20ms | beat 100m | beat 100m on 1
        → closed never_finds=*
    tombstones_that_were_taken_back_twice_and_a_late_write:
        Empty -4h epoch=5 | tombstone -3h | tombstone -2h | Empty 0 epoch=6 | beat 0 | Ongoing 1m epoch=6 |
        write 1m+5ms epoch=6 | PrepareCommit 2m epoch=6 | COMMIT 2m+10ms epoch=6 | CompleteCommit 2m+20ms epoch=6 |
        write 3m epoch=6 | beat 10m 100m | one leader → safe
    late_write_after_a_commit_that_was_taken_back:
        Empty 0 | beat 0 | Ongoing 1m | write 1m+5ms | PrepareCommit 2m | PrepareAbort 3m epoch=1 |
        ABORT 3m+10ms epoch=1 | CompleteAbort 3m+20ms epoch=1 | Empty 4m epoch=2 | write 5m epoch=2 |
        beat 10m 100m | one leader → safe
    """
)


def paused(log: MetadataLog, topic: str, brokers: Brokers, at: int) -> tuple[int, int]:
    """The only one in sync was fenced because its heartbeats came late. Its process lived on, so it lost nothing:
    it has the same broker epoch. Kafka: `BrokerHeartbeatManager.calculateNextBrokerState`."""
    first, _ = brokers
    log.change(topic, at, isr=(first,))
    log._change_registration(first, at + MINUTE, fenced=1)
    log.elect(topic, -1, at + MINUTE + 1)
    log._change_registration(first, at + MINUTE + 20 * SECOND, fenced=-1)
    log.elect(topic, first, at + MINUTE + 20 * SECOND + 1)
    return first, 2


def power_lost_while_shutting_down(log: MetadataLog, topic: str, brokers: Brokers, at: int) -> tuple[int, int]:
    """The only one in sync began to shut down, and lost its power before it had flushed its logs; without eligible
    replicas, its next registration does not say so. Kafka: `BrokerServer.shutdown` ends the controlled shutdown
    before it calls `LogManager.shutdown`."""
    first, _ = brokers
    log.change(topic, at, isr=(first,))
    log.stop(first, at + MINUTE, is_controlled=True)
    log.elect(topic, -1, at + MINUTE + 1)
    log.start(first, at + 2 * MINUTE)
    log.elect(topic, first, at + 2 * MINUTE + 10)
    return first, 2


ELECTED = {
    "paused_while_alone_in_sync": hidden(paused, committed=False),
    "power_lost_after_the_controlled_part_of_a_shutdown": hidden(power_lost_while_shutting_down, committed=True),
}
KITS = {"steps": Kit(STEPS), "elected": Kit(ELECTED, cluster=kraft())}


@pytest.fixture(scope="session")
def audit_of(tmp_path_factory) -> Callable[[str], tuple[AuditTables, Told]]:
    return audits(KITS, tmp_path_factory)


@pytest.mark.parametrize(("kit", "name"), cases(KITS))
def test_what_was_taken_back_is_no_history(audit_of, kit, name):
    tables, told = audit_of(kit)
    expect_of(tables, told, name, OPEN)
