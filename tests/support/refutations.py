"""What the schedules of refuted proofs share: events, copies, and what is expected.

Times are relative to an instant t; the capture is taken hours later.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.audits import AuditTables, audited
from tests.support.cluster import COORDINATORS, HOUR, MANY_COORDINATORS, MINUTE, NOON, SECOND, TXN, Cluster, Copy, id_in
from tests.support.metadata_log import MetadataLog
from tests.support.schedules import TAKEN, Expected, Schedule, Schedules, Story, Told, built, wrong
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


@cache
def kraft(
    levels: tuple[tuple[int, int], ...] = ((1, -5 * HOUR),), metadata_version: int | None = 25
) -> Callable[[int], Cluster]:
    """A cluster whose metadata log was captured; the levels of `transaction.version` by instants. Before
    metadata.version 3.3, a log does not name its own level."""

    def of(coordinators: int) -> Cluster:
        log = MetadataLog(NOON)
        for broker in (1, 2):
            log.broker(broker, -6 * HOUR)
        if metadata_version is not None:
            log.level(metadata_version, -6 * HOUR, name="metadata.version")
        for level, at in levels:
            log.level(level, at)
        log.topic(TXN, coordinators, -5 * HOUR)
        return Cluster(metadata=log, coordinators=coordinators)

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


def plain(coordinators: int) -> Cluster:
    """A cluster that has nothing but its logs."""
    return Cluster(coordinators=coordinators)


def nothing_else(c: Cluster) -> None:
    """What happens besides the schedules."""


@dataclass(frozen=True)
class Kit:
    """Schedules that share a cluster."""

    schedules: Schedules
    notes: dict[str, Any] = field(default_factory=dict)
    #: An empty one of so many coordinator partitions, with what it has besides its logs.
    cluster: Callable[[int], Cluster] = plain
    #: Done when every schedule has happened.
    then: Callable[[Cluster], None] = nothing_else
    #: Kits of equal clusters share a capture, unless this differs. What is known of nobody's producer id, say, depends
    #: on all coordinators.
    beside: str = "anything"

    def goes_with(self, other: "Kit") -> bool:
        """Whether one capture may have the schedules of both: of equal clusters, with other names."""
        of_clusters = [(kit.notes, kit.cluster, kit.then, kit.beside) for kit in (self, other)]
        return of_clusters[0] == of_clusters[1] and not self.schedules.keys() & other.schedules


Kits = dict[str, Kit]
#: Kits by the capture that they share: those of all modules that were imported. An audit takes seconds, be there one
#: schedule in it or a hundred.
_CAPTURED: list[list[Kit]] = []


def _capture_with_others(kit: Kit) -> None:
    """Puts a kit into the first capture that has room for it."""
    for kits in _CAPTURED:
        number = sum(len(each.schedules) for each in (*kits, kit))
        if number <= MANY_COORDINATORS - len(TAKEN) and all(kit.goes_with(each) for each in kits):
            kits.append(kit)
            return
    _CAPTURED.append([kit])


def audits(kits: Kits, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[AuditTables, Told]]:
    """By the name of a kit, the tables of its audit, and what is expected."""

    def of(name: str) -> tuple[AuditTables, Told]:
        number = next(number for number, captured in enumerate(_CAPTURED) if kits[name] in captured)
        if number not in _AUDITED:
            _AUDITED[number] = _audit(_CAPTURED[number], tmp_path_factory.mktemp("kits"))
        return _AUDITED[number]

    return of


#: By the place in `_CAPTURED`.
_AUDITED: dict[int, tuple[AuditTables, Told]] = {}


def _audit(kits: list[Kit], folder: Path) -> tuple[AuditTables, Told]:
    """The audit of a capture, with all that is expected of it."""
    schedules = {name: each for kit in kits for name, each in kit.schedules.items()}
    fits = len(schedules) <= COORDINATORS - len(TAKEN)
    c, told = built(schedules, kits[0].cluster(COORDINATORS if fits else MANY_COORDINATORS))
    kits[0].then(c)
    return audited(c.capture(folder / "brokers", END, notes=kits[0].notes)), told


def cases(kits: Kits) -> list[Any]:
    """Each schedule of each kit, as parameters. Kits of equal clusters are captured together."""
    for kit in kits.values():
        _capture_with_others(kit)
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
