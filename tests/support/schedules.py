"""Schedules: what happens to one topic of a cluster, and what an audit must say of it.

One schedule a topic, many schedules an audit; each has a transactional id, a producer and a coordinator partition of
its own.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tests.support.audits import AuditTables
from tests.support.cluster import MINUTE, SECOND, TXN, Cluster, Copy, Place, id_in

#: Coordinator partition of ids that only show a broker's clock.
BEATS = 49
#: Coordinator partitions of no schedule: single schedules name them.
TAKEN = {40, 46, 47, 48, BEATS}
SERIOUS = ("ERROR", "CRITICAL")


@dataclass(frozen=True)
class Expected:
    """The verdict on a producer's open transaction; None: it is not open. `says` is a part of why it must not be
    aborted."""

    producer_id: int
    verdict: str | None
    is_safe: bool = False
    #: Another verdict that the contract allows.
    or_verdict: str | None = ""
    #: Whether it may also be known to be closed.
    may_be_closed: bool = False
    reason: str | None = None
    says: str = ""
    #: What must not be said there.
    never_says: tuple[str, ...] = ()
    #: The statement of the proof that must not hold.
    fails: str | None = None
    #: Names of findings that name the producer id, the transactional id or the topic; "*" is any.
    finds: tuple[str, ...] = ()
    never_finds: tuple[str, ...] = ()
    #: Whether one of them is an ERROR or CRITICAL.
    is_error: bool = False
    #: Where, if it is not the first partition of the schedule's topic.
    place: Place | None = None


@dataclass(frozen=True)
class Story:
    """The part of a cluster that a schedule is about. Without other places, what happens, happens on the first
    partition."""

    c: Cluster
    topic: str
    id: str
    pid: int
    #: Of the coordinator.
    number: int

    @property
    def place(self) -> Place:
        return self.topic, 0

    def begin(self, at: int, places: Iterable[Place] = (), **more: Any) -> None:
        self.c.begin(self.id, self.pid, more.pop("epoch", 0), tuple(places) or [self.place], at, **more)

    def end(self, at: int, kind: str = "COMMIT", *, start: int, places: Iterable[Place] = (), **more: Any) -> None:
        self.c.end(
            self.id, self.pid, more.pop("epoch", 0), tuple(places) or [self.place], at, kind, start=start, **more
        )

    def transaction(self, at: int, kind: str = "COMMIT") -> None:
        """A whole one, of a second."""
        self.c.transaction(self.id, self.pid, 0, [self.place], at, kind)

    def write(self, at: int, epoch: int = 0, **changes: Any) -> None:
        self.c.write(self.place, self.pid, epoch, at, **changes)

    def note(self, state: str | None, at: int, places: Iterable[Place] = (), **more: Any) -> None:
        self.c.note(self.id, state, more.pop("pid", self.pid), more.pop("epoch", 0), places, at, **more)

    def late_write(self, at: int, kind: str = "COMMIT") -> None:
        """A transaction ends, and a batch of it comes after its marker."""
        self.transaction(MINUTE, kind)
        self.write(at)

    def beat(self, *times: int, partition: int = 0, **changes: Any) -> None:
        """Transactions of another producer: their markers show a broker's clock before and behind."""
        id_, pid, place = (
            id_in(BEATS, f"beat-{self.topic}-{partition}"),
            self.pid + 500 + partition,
            (self.topic, partition),
        )
        for at in times:
            self.c.note(id_, "Ongoing", pid, 0, [place], at, start=at)
            self.c.write(place, pid, 0, at + 5, **changes)
            self.c.note(id_, "PrepareCommit", pid, 0, [place], at + SECOND, start=at)
            self.c.mark(place, pid, 0, "COMMIT", at + SECOND + 10, **changes)
            self.c.note(id_, "CompleteCommit", pid, 0, (), at + SECOND + 20, start=at)

    def copied(self, *copies: Copy) -> None:
        """What the capture has of the partition."""
        self.c.copies[self.place] = list(copies)

    def led_by_broker_2(self, skew: int, end: int) -> None:
        """Whose clock differs."""
        self.c.skews[self.place] = skew
        self.c.leaders[self.place] = 2
        self.copied(Copy(2, end))

    def coordinator(self, *copies: Copy) -> None:
        """What it has of the coordinator partition."""
        self.c.copies[TXN, self.number] = list(copies)

    def expect(self, verdict: str | None, says: str = "", **more: Any) -> Expected:
        return Expected(more.pop("pid", self.pid), verdict, says=says, **more)


Schedule = Callable[[Story], Expected]


class Schedules(dict[str, Schedule]):
    """Schedules by name. It decorates those that are functions."""

    def __call__(self, of: Schedule) -> Schedule:
        self[of.__name__] = of
        return of


Told = dict[str, tuple[str, Expected]]


def built(schedules: dict[str, Schedule], c: Cluster | None = None) -> tuple[Cluster, Told]:
    """The cluster, and by schedule its topic and what is expected."""
    c, told = c or Cluster(), dict[str, tuple[str, Expected]]()
    numbers = (number for number in range(c.coordinators) if number not in TAKEN)
    for number, (name, schedule) in zip(numbers, schedules.items(), strict=False):
        topic = name.replace("_", "-")
        told[name] = topic, schedule(Story(c, topic, id_in(number, topic), 1_000 * (number + 1), number))
    assert len(told) == len(schedules), "more schedules than coordinator partitions"
    return c, told


def wrong(tables: AuditTables, told: Told) -> dict[str, tuple[Any, Any, list[str]]]:
    """By schedule, what an audit says of it that it must not."""
    opened = {(row["topic"], row["partition"], row["producer_id"]): row for row in tables.rows("open_transactions")}
    findings = tables.rows("findings") if any(e.finds or e.never_finds or e.is_error for _, e in told.values()) else []
    found: dict[str, tuple[Any, Any, list[str]]] = {}
    for name, (topic, expected) in told.items():
        row = opened.get((*(expected.place or (topic, 0)), expected.producer_id))
        said = (None, False) if row is None else (row["verdict"], row["safe_to_abort"])
        because = (row or {}).get("do_not_abort_because") or ""
        named = {
            each["name"]: each["severity"]
            for each in sorted(findings, key=lambda each: each["severity"] in SERIOUS)
            if each["producer_id"] == expected.producer_id
            or each["topic"] == topic
            or (each["transactional_id"] or "").startswith(f"{topic}-")
        }
        failed = {each["name"] for each in (row or {}).get("safety") or () if not each["holds"]}
        is_right = (
            (said[0] in (expected.verdict, expected.or_verdict) or (expected.may_be_closed and row is None))
            and said[1] == expected.is_safe
            and expected.reason in (None, (row or {}).get("reason"))
            and expected.says in because
            and not any(text in because for text in expected.never_says)
            and expected.fails in (None, *failed)
            and all(named if each == "*" else each in named for each in expected.finds)
            and not any(named if each == "*" else each in named for each in expected.never_finds)
            and (not expected.is_error or any(severity in SERIOUS for severity in named.values()))
        )
        if not is_right:
            told_of_it = None if row is None else (row["reason"], row["explanation"], because, sorted(failed))
            found[name] = said, told_of_it, sorted(named)
    return found


def flip_last(content: bytes) -> bytes:
    """One bit near the end."""
    return content[:-10] + bytes([content[-10] ^ 1]) + content[-9:]
