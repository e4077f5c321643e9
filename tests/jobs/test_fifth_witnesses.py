"""What Kafka does that no record tells, and what lies where nobody looks: a crash that no leader epoch tells, a
producer id that two ids have, a coordinator's log that was not compacted but deleted, a folder that the cluster gave
up.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.audits import AuditTables
from tests.support.cluster import HOUR, MINUTE, NOON, SECOND, TXN, Cluster, Copy, Entry, id_in
from tests.support.refutations import (
    END,
    NO_COMMIT,
    Kit,
    Open,
    audits,
    cases,
    expect_of,
    one_leader,
    other,
    refuted,
    safe,
    unsafe,
)
from tests.support.schedule_text import schedules_of
from tests.support.schedules import Expected, Schedule, Schedules, Story, Told

pytestmark = pytest.mark.shares("kits")

#: The answers of today that are not those expected.
OPEN: Open = {
    "powered_off": ("HANGING", True),
    "powered_off_and_expired": ("HANGING", True),
    "old_format": ("HANGING", True),
    "empty_at_epoch_0_of_a_producer_id_that_an_expired_id_had": ("HANGING", True),
    "commit_sent_twice_and_the_next_one_lost": ("HANGING", True),
    "producer_id_of_two_ids_of_which_one_was_not_captured": ("SUSPECT", False),
}


@dataclass
class WithFiles(Cluster):
    """A cluster of whose brokers more files were captured."""

    files: dict[str, bytes] = field(default_factory=dict)

    def capture(self, folder: Path, at: int, **more: Any) -> Path:
        super().capture(folder, at, **more)
        for name, content in self.files.items():
            (folder / name).write_bytes(content)
        return folder


def with_files(coordinators: int) -> Cluster:
    return WithFiles(coordinators=coordinators)


# ---- A crash that no leader epoch tells

ZOOKEEPER, KRAFT, BESIDE = Schedules(), Schedules(), Schedules()


def of_brokers(properties: str) -> Callable[[int], Cluster]:
    text = f"{properties}\ncluster.id=AAAAAAAAAAAAAAAAAAAAAA\n"
    return lambda coordinators: WithFiles(coordinators=coordinators, files={"1/meta.properties": text.encode()})


ZOOKEEPER |= schedules_of("""
    # The only broker loses its power: the marker was not on its disk, all that the coordinator wrote was. It is the
    # controller, too: it finds the leader alive when it starts, so the leader epoch stays. Kafka until 3.9:
    # `PartitionStateMachine.initializePartitionState`, `ReplicaStateMachine.startup`.
    powered_off:
        Empty 0 | beat 0 | begin 1m | end 2m lost | Empty 25m epoch=1 | compacted | beat 100m |
        one leader → unsafe NO_COMMIT
    # The same; its id has expired since.
    powered_off_and_expired:
        beat 0 | write 1m | beat 100m | one leader → unsafe NO_COMMIT
    # `message.format.version` of the topic was lowered for a while: its leader refused the marker
    # (UNSUPPORTED_FOR_MESSAGE_FORMAT), and the coordinator completed without it. Kafka until 3.9, with an
    # inter.broker.protocol.version before 3.0: `TransactionMarkerRequestCompletionHandler.onComplete`.
    old_format:
        Empty 0 | beat 0 | begin 1m | end 2m lost | Empty 25m epoch=1 | compacted | beat 100m |
        one leader → unsafe NO_COMMIT
""")
KRAFT |= schedules_of("""
    # Where a controller outlives the broker, a crash takes a leader epoch.
    never_ended:
        Empty 0 | beat 0 | write 1m | Empty 25m epoch=1 | compacted | beat 100m | one leader → safe
""")


# ---- A producer id that two ids have (KAFKA-15552: the first block after a migration is that of ZooKeeper again)


@BESIDE
def empty_at_epoch_0_of_a_producer_id_that_an_expired_id_had(s: Story) -> Expected:
    """Nobody of the two knew of the other. Kafka 3.4 to 3.6.0: `ZkProducerIdMigrationClient`."""
    expired = id_in(47, f"expired-{s.number}")
    s.note("Empty", 0)
    s.c.note(expired, "Empty", s.pid, 0, (), SECOND)
    s.beat(0)
    s.c.note(expired, "Ongoing", s.pid, 0, [s.place], MINUTE)
    s.write(MINUTE + 5)
    s.c.note(expired, "PrepareCommit", s.pid, 0, [s.place], 2 * MINUTE, start=MINUTE)
    s.c.note(expired, "CompleteCommit", s.pid, 0, (), 2 * MINUTE + 20, start=MINUTE)
    s.c.note(expired, None, s.pid, 0, (), 20 * MINUTE)
    for at in (29 * MINUTE, 31 * MINUTE):
        s.c.note(id_in(47, f"kept-{s.number}"), "Empty", 900_000 + s.number, 0, (), at)
    s.c.copies[TXN, 47] = [Copy(1, END, keep=lambda entry: entry.key != expired)]
    s.beat(100 * MINUTE, leader_epoch=1)
    return unsafe(s, fails=NO_COMMIT)


MISSING = 46


@KRAFT
def producer_id_of_two_ids_of_which_one_was_not_captured(s: Story) -> Expected:
    """The other one has a transaction here, and will end it."""
    s.note("Empty", 0)
    s.beat(0)
    begun = END - 10 * SECOND
    s.c.note(
        id_in(MISSING, f"hidden-{s.number}"), "Ongoing", s.pid, 0, [s.place], begun, transaction_timeout_ms=900_000
    )
    s.write(begun + 5)
    s.c.copies[TXN, MISSING] = []
    return s.expect("OPEN", or_verdict="UNKNOWN")


# ---- A coordinator's log of which the beginning was deleted


def deleted_up_to(s: Story, offset: int) -> None:
    """cleanup.policy=delete on `__transaction_state`: the log start rises, and the newest record of an id goes, too.
    Kafka: `UnifiedLog.deleteRetentionMsBreachedSegments`."""
    assert isinstance(s.c, WithFiles)
    s.coordinator(Copy(1, END, log_start=offset))
    name = "1/log-start-offset-checkpoint"
    _, _, *before = s.c.files.get(name, b"0\n0").decode().split("\n")
    lines = [*filter(None, before), f"{TXN} {s.number} {offset}"]
    s.c.files[name] = "\n".join(["0", str(len(lines)), *lines, ""]).encode()


@BESIDE
def commit_in_the_deleted_part(s: Story) -> Expected:
    s.note("Empty", 0)
    s.beat(0)
    s.begin(MINUTE)
    s.end(2 * MINUTE, start=MINUTE, lost=[s.place])
    s.note("Empty", 25 * MINUTE, epoch=1)
    s.note("Empty", 26 * MINUTE, epoch=2)
    deleted_up_to(s, 4)
    s.beat(100 * MINUTE, leader_epoch=1)
    return refuted(s)


@BESIDE
def prepared_in_the_deleted_part(s: Story) -> Expected:
    """Its coordinator has it in memory, and commits it as soon as the leader of its other partition is back."""
    s.beat(0)
    s.begin(MINUTE)
    s.end(2 * MINUTE, start=MINUTE, lost=[s.place], complete=False)
    for at in (25, 26):
        s.c.note(other(s), "Empty", 900_000 + s.number, at - 25, (), at * MINUTE)
    deleted_up_to(s, 2)
    s.beat(100 * MINUTE)
    one_leader(s)
    return s.expect("UNKNOWN", or_verdict="STUCK")


@BESIDE
def began_behind_the_deleted_part(s: Story) -> Expected:
    """The producer id was assigned behind it."""
    for at in (-3, -2):
        s.c.note(other(s), "Empty", 900_000 + s.number, at + 3, (), at * HOUR)
    s.note("Empty", 0)
    deleted_up_to(s, 1)
    s.beat(0)
    s.late_write(3 * MINUTE, "ABORT")
    s.beat(100 * MINUTE)
    one_leader(s)
    return refuted(s)


# ---- Folders that the cluster gave up


def moved_away(*, committed: bool) -> Schedule:
    """Broker 3 led the partition and its coordinator, alone in sync, and died; broker 1 followed uncleanly. Both
    replicas were moved to broker 2 before broker 3 came back: there, their folders are stray. Kafka since 3.7:
    `LogManager.loadLog`, `isStrayKraftReplica`."""

    def of(s: Story) -> Expected:
        s.note("Empty", 0)
        s.beat(0)
        s.write(MINUTE)
        end = {place: len(s.c.logs[place]) for place in (s.place, (TXN, s.number))}
        s.c.note(other(s), "Empty", 900_000 + s.number, 0, (), 12 * MINUTE, leader_epoch=1)
        s.beat(100 * MINUTE, leader_epoch=1)
        lost = []
        if committed:
            mark = Entry(at=2 * MINUTE, producer_id=s.pid, producer_epoch=0, marker="COMMIT", stamp=2 * MINUTE)
            lost = [replace(mark, offset=end[s.place])]
        stray = Copy(3, 3 * MINUTE, own=tuple(lost), is_stray=True)
        s.copied(Copy(1, END), replace(stray))
        return refuted(s) if committed else safe(s)

    return of


BESIDE |= {
    "stray_folder_with_the_commit": moved_away(committed=True),
    "stray_folder_that_agrees": moved_away(committed=False),
}


# ---- Markers elsewhere whose kind is not known


@BESIDE
def commit_elsewhere_that_was_cleaned(s: Story) -> Expected:
    """Its coordinator lost its tail: the transaction, and the COMMIT, which reached the other partition only. The
    cleaner removed its records first. Kafka: `CleanedTransactionMetadata.onControlBatchRead`."""
    sibling = (s.topic, 1)
    s.note("Empty", 0)
    s.beat(0)
    s.beat(0, partition=1)
    s.write(MINUTE)
    s.c.write(sibling, s.pid, 0, MINUTE)
    s.c.mark(sibling, s.pid, 0, "COMMIT", 2 * MINUTE, is_emptied=True)
    s.c.note(other(s), "Empty", 900_000 + s.number, 0, (), 12 * MINUTE, leader_epoch=1)
    s.beat(100 * MINUTE, leader_epoch=1)
    s.beat(100 * MINUTE, partition=1)
    s.c.copies[sibling] = [Copy(1, END, keep=lambda e: e.producer_id != s.pid or e.marker is not None)]
    return refuted(s)


# ---- What somebody printed before it was lost


def printed(*states: str, is_safe: bool = False) -> Schedule:
    """What a console consumer printed of the coordinator at +3 min, in a ticket; its tail was lost at +10 min. Kafka:
    `TransactionLogMessageFormatter`."""

    def of(s: Story) -> Expected:
        assert isinstance(s.c, WithFiles)
        s.note("Empty", 0)
        s.beat(0)
        s.write(MINUTE)
        s.c.note(other(s), "Empty", 900_000 + s.number, 0, (), 12 * MINUTE, leader_epoch=1)
        s.beat(100 * MINUTE, leader_epoch=1)
        lines = [_printed(s, state, n and (n + 1) * MINUTE - 5) for n, state in enumerate(("Empty", *states))]
        s.c.files[f"ticket-{s.number}.txt"] = "".join(lines).encode()
        return safe(s) if is_safe else refuted(s)

    return of


def _printed(s: Story, state: str, at: int) -> str:
    places = "" if state == "Empty" else f"{s.topic}-0"
    start = -1 if state == "Empty" else NOON + MINUTE - 5
    return (
        f"{s.id}::TransactionMetadata(transactionalId={s.id}, producerId={s.pid}, producerEpoch=0, txnTimeoutMs=60000,"
        f" state={state}, pendingState=None, topicPartitions=HashSet({places}), txnStartTimestamp={start},"
        f" txnLastUpdateTimestamp={NOON + at})\n"
    )


BESIDE |= {
    "printed_as_committed_before_it_was_lost": printed("Ongoing", "PrepareCommit", "CompleteCommit"),
    "printed_as_prepared_before_it_was_lost": printed("Ongoing", "PrepareCommit"),
    "printed_as_ongoing_before_it_was_lost": printed("Ongoing"),
    "printed_as_empty": printed(is_safe=True),
}


# ---- What somebody dumped before it was lost


def dumped(*states: str, is_safe: bool = False) -> Schedule:
    """The text of a dump of the coordinator's log, of broker 2, which led it then; an unclean election followed."""

    def of(s: Story) -> Expected:
        assert isinstance(s.c, WithFiles)
        s.note("Empty", 0)
        s.beat(0)
        s.write(MINUTE)
        s.c.note(other(s), "Empty", 900_000 + s.number, 0, (), 12 * MINUTE, leader_epoch=1)
        s.beat(100 * MINUTE, leader_epoch=1)
        position, lines = 0, [f"Dumping /var/{TXN}-{s.number}/{0:020}.log", "Log starting offset: 0"]
        for offset, state in enumerate(("Empty", *states)):
            at = NOON + (0 if state == "Empty" else (offset + 1) * MINUTE - 5)
            places = "" if state == "Empty" else f"{s.topic}-0"
            lines += [
                f"baseOffset: {offset} lastOffset: {offset} count: 1 baseSequence: -1 lastSequence: -1 producerId: -1"
                f" producerEpoch: -1 partitionLeaderEpoch: 0 isTransactional: false isControl: false deleteHorizonMs:"
                f" OptionalLong.empty position: {position} CreateTime: {at} size: 150 magic: 2 compresscodec: none"
                f" crc: {offset + 7} isvalid: true",
                f"| offset: {offset} CreateTime: {at} keySize: {len(s.id) + 4} valueSize: 37 sequence: -1"
                f" headerKeys: []"
                f" key: transaction_metadata::transactionalId={s.id} payload: producerId:{s.pid},producerEpoch:0,"
                f"state={state},partitions=[{places}],txnLastUpdateTimestamp={at},txnTimeoutMs=60000",
            ]
            position += 150
        s.c.files[f"dump-{s.number}.txt"] = ("\n".join(lines) + "\n").encode()
        return safe(s) if is_safe else refuted(s)

    return of


BESIDE |= {
    "dumped_as_committed_before_it_was_lost": dumped("Ongoing", "PrepareCommit", "CompleteCommit"),
    "dumped_as_prepared_before_it_was_lost": dumped("Ongoing", "PrepareCommit"),
    "dumped_as_empty": dumped(is_safe=True),
}


# ---- Markers that come late


@BESIDE
def commit_sent_twice_and_the_next_one_lost(s: Story) -> Expected:
    """A request for the first COMMIT was repeated after its connection broke; the first one waited at its broker, and
    was carried out in the next transaction (as KAFKA-19446 of v2). The COMMIT of that one was lost. Kafka:
    `TransactionMarkerRequestCompletionHandler.onComplete` (wasDisconnected)."""
    s.c.leaders[s.place] = 2
    s.note("Empty", 0)
    s.beat(0)
    s.begin(MINUTE)
    s.end(MINUTE + 10 * SECOND, start=MINUTE, takes=2 * SECOND)
    s.note("Ongoing", MINUTE + 13 * SECOND, [s.place])
    s.write(MINUTE + 13 * SECOND + 5)
    s.c.mark(s.place, s.pid, 0, "COMMIT", MINUTE + 16 * SECOND)
    s.write(MINUTE + 16 * SECOND + 200)
    s.end(MINUTE + 16 * SECOND + 500, start=MINUTE + 13 * SECOND, takes=2 * SECOND, lost=[s.place])
    s.note("Empty", 25 * MINUTE, epoch=1)
    s.c.skews[s.place] = 0
    s.beat(100 * MINUTE, leader_epoch=1)
    s.copied(Copy(2, END))
    return unsafe(s, fails=NO_COMMIT)


KITS = {
    "zookeeper": Kit(ZOOKEEPER, notes={"kafka_version": "3.5.1"}, cluster=of_brokers("version=0\nbroker.id=1")),
    "kraft": Kit(KRAFT, notes={"kafka_version": "3.5.1"}, cluster=of_brokers("version=1\nnode.id=1")),
    "beside": Kit(BESIDE, cluster=with_files),
}


@pytest.fixture(scope="session")
def audit_of(tmp_path_factory) -> Callable[[str], tuple[AuditTables, Told]]:
    return audits(KITS, tmp_path_factory)


@pytest.mark.parametrize(("kit", "name"), cases(KITS))
def test_what_no_record_tells_is_not_excluded(audit_of, kit, name):
    tables, told = audit_of(kit)
    expect_of(tables, told, name, OPEN)
