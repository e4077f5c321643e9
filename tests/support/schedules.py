"""Schedules of a cluster, and what an audit must say of each.

Each is on a topic of its own, and one audit judges many.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.support.cluster import MINUTE, SECOND, Cluster, Place, id_in
from tests.support.memory_audits import MemoryTables

#: Coordinator partition of ids that only show a broker's clock.
BEATS = 49


@dataclass(frozen=True)
class Expected:
    """The verdict on a producer's open transaction; None: it is not open. `says` is a part of why it must not be aborted."""

    producer_id: int
    verdict: str | None
    is_safe: bool = False
    reason: str | None = None
    says: str = ""
    partition: int = 0


#: Called with the cluster, the topic and its partition 0, a transactional id, a producer id, and the id's coordinator partition.
Schedule = Callable[..., Expected]
Told = dict[str, tuple[str, Expected]]


def into(schedules: dict[str, Schedule]) -> Callable[[Schedule], Schedule]:
    """A decorator: the schedule is one of these."""
    return lambda of: schedules.setdefault(of.__name__, of)


def happened(c: Cluster, schedules: dict[str, Schedule]) -> Told:
    """Schedule -> its topic, and what is expected of it, once all of them have happened."""
    told = {}
    for number, (name, of) in enumerate(schedules.items()):
        assert number < BEATS
        topic = name.replace("_", "-")
        told[name] = topic, of(c, topic, (topic, 0), id_in(number, name), 1_000 * (number + 1), number)
    return told


def wrong(tables: MemoryTables, told: Told) -> dict[str, Any]:
    """Schedule -> what an audit says of it that was not expected."""
    opened = {(row["topic"], row["partition"], row["producer_id"]): row for row in tables.rows("open_transactions")}
    found: dict[str, Any] = {}
    for name, (topic, expected) in told.items():
        row = opened.get((topic, expected.partition, expected.producer_id), {})
        because = row.get("do_not_abort_because") or ""
        if (row.get("verdict"), row.get("safe_to_abort", False)) != (expected.verdict, expected.is_safe):
            found[name] = row and (row["verdict"], row["safe_to_abort"], row["reason"], row["explanation"], because)
        elif expected.reason is not None and row["reason"] != expected.reason:
            found[name] = row["reason"], row["explanation"]
        elif expected.says not in because:
            found[name] = because
    return found


def beat(c: Cluster, place: Place, pid: int, times: tuple[int, ...] = (0, 40 * MINUTE, 100 * MINUTE), **changes: object) -> None:
    """Transactions of another producer: their markers show a broker's clock before and behind."""
    topic, partition = place
    pid += 500 + partition
    for at in times:
        id_ = id_in(BEATS, f"beat-{topic}-{partition}")
        c.note(id_, "Ongoing", pid, 0, [place], at, start=at)
        c.write(place, pid, 0, at + 5, **changes)
        c.note(id_, "PrepareCommit", pid, 0, [place], at + SECOND, start=at)
        c.mark(place, pid, 0, "COMMIT", at + SECOND + 10, **changes)
        c.note(id_, "CompleteCommit", pid, 0, (), at + SECOND + 20, start=at)


def late_write(c: Cluster, id_: str, pid: int, place: Place, at: int, kind: str = "COMMIT") -> None:
    """A transaction ends, and a batch of it comes after its marker."""
    c.transaction(id_, pid, 0, [place], MINUTE, kind)
    c.write(place, pid, 0, at)


def flip_last(content: bytes) -> bytes:
    return content[:-10] + bytes([content[-10] ^ 1]) + content[-9:]
