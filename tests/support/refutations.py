"""What the schedules of refuted proofs share: events, copies, and what is expected.

Times are relative to an instant t; the capture is taken hours later.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest

from tests.support.audits import AuditTables, audited
from tests.support.cluster import COORDINATORS, HOUR, MINUTE, NOON, SECOND, TXN, Cluster, Copy, id_in
from tests.support.metadata_log import MetadataLog
from tests.support.schedules import Expected, Schedule, Schedules, Story, Told, built, wrong
from txnlib.core.kafka.producer_state import ProducerState

END = 3 * HOUR
#: The instant t of a schedule.
T = 20 * MINUTE
OPEN_NOW, NO_COORDINATOR = "IS_OPEN_NOW", "NO_COORDINATOR_ENDS_IT"
NO_COMMIT, OLD_ENOUGH, NOTHING_ELSE = "NO_COMMIT_INCLUDES_IT", "IS_OLD_ENOUGH", "NOTHING_ELSE_IS_WRONG"
OF_4_1: dict[str, Any] = {"kafka_version": "4.1.1"}
OF_V2: dict[str, Any] = {"version": 1, "client_transaction_version": 2}


def unsafe(s: Story, verdict: str | None = "HANGING", **more: Any) -> Expected:
    return s.expect(verdict, **more)


def refuted(s: Story, **more: Any) -> Expected:
    """The coordinator's log is refuted: its copy proves nothing (UNKNOWN), or not enough for an abort."""
    return s.expect("HANGING", or_verdict="UNKNOWN", **more)


def safe(s: Story, **more: Any) -> Expected:
    return s.expect("HANGING", is_safe=True, **more)


def tick(s: Story, *times: int, skew: int = 0, partition: int = 0, **changes: Any) -> None:
    """Batches that a leader stamps. They belong to no transaction, so they compare its clock with no other."""
    for at in times:
        stamped = {"stamp": at + skew, "sequence": -1, "is_transactional": False, "is_broker_clock": True}
        s.c.write((s.topic, partition), -1, -1, at, **stamped | changes)


def led_by_another(s: Story, skew: int = 0) -> int:
    """A broker of its own leads the partition; its clock less the true one."""
    broker = 100 + s.number
    s.c.skews[s.place] = skew
    s.c.leaders[s.place] = broker
    s.copied(Copy(broker, END))
    return broker


def other(s: Story, which: str = "other") -> str:
    """Another id of the same coordinator partition."""
    return id_in(s.number, f"{which}-{s.number}")


def compacted(s: Story, until: int = 30 * MINUTE) -> None:
    """Only the newest record of each id is left of the coordinator's log up to an instant."""
    for at in (until - MINUTE, until + MINUTE):
        s.c.note(other(s), "Empty", 900_000 + s.number, 0, (), at)
    s.coordinator(Copy(1, END, is_compacted_until=until))


def one_leader(s: Story) -> None:
    """The leader-epoch-checkpoint shows that no other leader followed."""
    s.copied(Copy(1, END, leader_epochs=((0, 0),)))


def elected_since(s: Story) -> None:
    """A leader followed the open records, so a marker may have been lost: no one's markers tell."""
    s.beat(100 * MINUTE, leader_epoch=3)


def with_metadata(s: Story, *, allocated: int = -5 * HOUR) -> MetadataLog | None:
    """The topic of the schedule, and the block of its producer ids, in the cluster's metadata log, if it has one."""
    log = s.c.metadata
    if log is not None:
        log.block(s.pid + 1_000, allocated)
        log.topic(s.topic, 2, -5 * HOUR)
    return log


def kraft(
    levels: Iterable[tuple[int, int]] = ((1, -5 * HOUR),), metadata_version: int | None = 25
) -> Callable[[], Cluster]:
    """A cluster whose metadata log was captured; the levels of `transaction.version` by instants. Before
    metadata.version 3.3, a log does not name its own level."""

    def of() -> Cluster:
        log = MetadataLog(NOON)
        for broker in (1, 2):
            log.broker(broker, -6 * HOUR)
        if metadata_version is not None:
            log.level(metadata_version, -6 * HOUR, name="metadata.version")
        for level, at in levels:
            log.level(level, at)
        log.topic(TXN, COORDINATORS, -5 * HOUR)
        return Cluster(metadata=log)

    return of


def left(data: int, left_epoch: int, *, is_safe: bool) -> Schedule:
    """One leader; compaction left one record of the id, which is of version 0."""

    def of(s: Story) -> Expected:
        with_metadata(s)
        s.note("Empty", 10 * SECOND)
        s.beat(0)
        s.write(MINUTE, data)
        s.note("Empty", 20 * MINUTE, epoch=left_epoch)
        s.beat(100 * MINUTE)
        one_leader(s)
        compacted(s)
        return safe(s) if is_safe else unsafe(s, fails=NO_COMMIT)

    return of


def nothing_open(at: int) -> ProducerState:
    """A producer in a snapshot: what it wrote last, at offset 4, has ended."""
    return ProducerState(
        producer_epoch=0, last_sequence=1, last_offset=4, offset_delta=0, last_timestamp=NOON + at,
        coordinator_epoch=0, current_txn_first_offset=None,
    )  # fmt: skip


def with_an_id_of_v2(c: Cluster) -> None:
    c.note(id_in(48, "v2"), "Empty", 790_000, 0, (), MINUTE, **OF_V2)
    c.note(id_in(48, "v2"), "Ongoing", 790_000, 0, [("of-v2", 0)], 2 * MINUTE, **OF_V2)
    c.write(("of-v2", 0), 790_000, 0, 2 * MINUTE + 5)
    c.note(id_in(48, "v2"), "PrepareCommit", 790_000, 1, [("of-v2", 0)], 3 * MINUTE, start=2 * MINUTE, **OF_V2)
    c.mark(("of-v2", 0), 790_000, 1, "COMMIT", 3 * MINUTE + 5)
    c.note(id_in(48, "v2"), "CompleteCommit", 790_000, 1, (), 3 * MINUTE + 20, start=2 * MINUTE, **OF_V2)


# ---- The audits


@dataclass(frozen=True)
class Kit:
    """Schedules that share a cluster. `cluster`: an empty one, with what it has besides its logs."""

    schedules: Schedules
    notes: dict[str, Any] = field(default_factory=dict)
    cluster: Callable[[], Cluster] = Cluster
    #: Done when every schedule has happened.
    then: Callable[[Cluster], None] = lambda c: None


Kits = dict[str, Kit]


def audits(kits: Kits, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[AuditTables, Told]]:
    """By the name of a kit, the tables of its audit, and what is expected."""

    @cache
    def of(kit: str) -> tuple[AuditTables, Told]:
        given = kits[kit]
        c, told = built(given.schedules, given.cluster())
        given.then(c)
        folder = c.capture(tmp_path_factory.mktemp("kit") / "brokers", END, notes=given.notes)
        return audited(folder), told

    return of


def cases(kits: Kits) -> list[Any]:
    """Each schedule of each kit, as parameters."""
    return [pytest.param(kit, name, id=f"{kit}-{name}") for kit, given in kits.items() for name in given.schedules]


Open = Mapping[str, tuple[str | None, bool]]


def expect_of(tables: AuditTables, told: Told, name: str, still_open: Open) -> None:
    """Asserts that an audit says what a schedule expects. `still_open`: by the names of those that it does not yet
    answer as expected, its verdict, and whether it calls an abort safe: one that is answered must leave the table."""
    found = wrong(tables, {name: told[name]})
    if name in still_open:
        assert [said for said, *_ in found.values()] == [still_open[name]], f"no longer open, or otherwise: {found}"
    else:
        assert found == {}
