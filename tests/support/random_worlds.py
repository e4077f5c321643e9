"""Random true histories: what Kafka's brokers and their clients may do, run forward.

One topic, one transactional id and one coordinator partition a history. Its coordinator and its partitions lose their
tails where an acknowledged record may be lost, and only there; clocks step only where decisions with their markers show
it, and otherwise differ by less than five minutes. The story of each history is kept, so that a failure can be read.
"""

import sys
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from tests.support.audits import audited_anew
from tests.support.cluster import COORDINATORS, HOUR, MINUTE, NOON, SECOND, TXN, Cluster, Copy, Entry, Place, id_in
from tests.support.metadata_log import MetadataLog
from tests.support.schedules import BEATS

#: When the first and the second capture are taken.
FIRST_NIGHT, END = 100 * MINUTE, 3 * HOUR
HISTORIES = 45
V2: dict[str, Any] = {"version": 1, "client_transaction_version": 2}
FOREVER = 2**31 - 1


@dataclass(frozen=True)
class Kind:
    """What a cluster is: drawn once for all of its histories."""

    is_v2: bool
    has_metadata: bool

    @property
    def notes(self) -> dict[str, Any]:
        if not self.is_v2:
            return {"kafka_version": "3.9.1"}
        return {"kafka_version": "4.1.1", "transaction_version": 2}


@dataclass(frozen=True)
class Clock:
    """Offsets of a broker's clock from the true one, each from an instant on."""

    since: tuple[int, ...] = (-(10**9),)
    offsets: tuple[int, ...] = (0,)

    def at(self, instant: int) -> int:
        return instant + self.offsets[bisect_right(self.since, instant) - 1]


@dataclass
class Led:
    """A partition: its leader now, and its leader epoch."""

    place: Place
    brokers: tuple[int, int]
    leader: int
    epoch: int = 0
    #: Leaders and instants of elections by leader epoch, and the stretches of time that an election took away.
    leaders: dict[int, int] = field(default_factory=dict)
    elected: dict[int, int] = field(default_factory=dict)
    lost: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.leaders[self.epoch], self.elected[self.epoch] = self.leader, -HOUR

    def epoch_at(self, instant: int) -> int:
        return max(epoch for epoch, at in self.elected.items() if at <= instant)

    def has(self, instant: int) -> bool:
        """Whether what was written then is still there."""
        return not any(since < instant < until for since, until in self.lost)


@dataclass
class State:
    """The newest record of the id, as its coordinator has it."""

    name: str = "Empty"
    epoch: int = 0
    places: tuple[Place, ...] = ()
    start: int = 0


@dataclass
class World:
    """A history while it happens. `committed`: batches of which a client was told that they are committed, by their
    partition and instant."""

    c: Cluster
    random: Random
    kind: Kind
    number: int
    topic: str
    id: str
    pid: int
    clocks: dict[int, Clock]
    data: dict[Place, Led]
    coordinator: Led
    timeout: int = 60_000
    state: State = field(default_factory=State)
    #: The epoch of the client.
    epoch: int = 0
    now: int = 0
    committed: set[tuple[Place, int]] = field(default_factory=set)
    #: Partitions to which the Prepare of the newest record has not sent its marker.
    unsent: set[Place] = field(default_factory=set)
    story: list[str] = field(default_factory=list)
    #: Whether its coordinator lost a tail.
    is_lost: bool = False
    compacted: int | None = None
    has_epochs: bool = True

    @property
    def places(self) -> list[Place]:
        return list(self.data)

    def tell(self, what: str) -> None:
        self.story.append(f"{self.now / MINUTE:7.2f} min  {what}")

    # ---- What is written

    def note(self, name: str | None, at: int | None = None) -> None:
        """A record of the id as its state is now, by its coordinator's clock."""
        at, state, clock = self.now if at is None else at, self.state, self.clocks[self.coordinator.leader]
        is_complete = name is not None and name.startswith("Complete")
        more: dict[str, Any] = {} if is_complete else {"last_update_timestamp_ms": NOON + clock.at(at)}
        if self.kind.is_v2:
            more |= V2
        self.c.note(
            self.id, name, self.pid, state.epoch, () if is_complete else state.places, at, start=clock.at(state.start),
            stamp=clock.at(at), leader_epoch=self.coordinator.epoch, transaction_timeout_ms=self.timeout, **more,
        )  # fmt: skip
        self.tell(f"{name} at epoch {state.epoch}, coordinator epoch {self.coordinator.epoch}")

    def write(self, place: Place, why: str = "") -> int:
        self.now += self.random.choice((3, 20, 400))
        led = self.data[place]
        stamp = self.now if self.random.random() < 0.8 else self.now - 24 * HOUR
        self.c.write(place, self.pid, self.epoch, self.now, stamp=stamp, leader_epoch=led.epoch)
        self.tell(f"batch on {place[1]} at epoch {self.epoch}{why}")
        return self.now

    def mark(self, place: Place, kind: str) -> None:
        self.now += self.random.choice((2, 9, 30))
        led = self.data[place]
        self.c.mark(
            place, self.pid, self.state.epoch, kind, self.now, stamp=self.clocks[led.leader].at(self.now),
            leader_epoch=led.epoch, coordinator_epoch=self.coordinator.epoch,
        )  # fmt: skip
        self.unsent.discard(place)
        self.tell(f"{kind} marker on {place[1]}")

    # ---- What a client and its coordinator do

    def begin(self, places: Iterable[Place]) -> None:
        """It goes on with what its coordinator still has as Ongoing, as a client does that does not know of a loss."""
        if self.state.name == "Ongoing":
            known = set(self.state.places)
            self.state.places = tuple(sorted({*known, *places}))
            if set(self.state.places) == known:
                return
        else:
            self.state = State("Ongoing", self.epoch, tuple(sorted(places)), self.now)
        self.note("Ongoing")

    def prepare(self, kind: str, epoch: int) -> None:
        self.state.name, self.state.epoch = f"Prepare{kind}", epoch
        self.unsent = set(self.state.places)
        self.note(self.state.name)

    def complete(self) -> None:
        """The markers that were not yet sent, and the completion."""
        kind = self.state.name.removeprefix("Prepare")
        for place in self.state.places:
            if place in self.unsent or self.random.random() < 0.1:
                self.mark(place, kind.upper())
        self.now += self.random.choice((2, 15))
        self.state.name = f"Complete{kind}"
        self.note(self.state.name)
        self.state.places = ()

    def end(self, kind: str, batches: Iterable[tuple[Place, int]]) -> None:
        """A client's own end. It is told of it as soon as the decision is written."""
        self.prepare(kind, self.state.epoch + 1 if self.kind.is_v2 else self.state.epoch)
        self.epoch = self.state.epoch
        if kind == "Commit":
            self.committed |= set(batches)

    def restart(self) -> None:
        """The application gets its next epoch, once what was open is aborted, and no partition has a newer one."""
        if self.state.name == "Ongoing":
            self.prepare("Abort", self.state.epoch + 1)
        if self.state.name.startswith("Prepare"):
            self.complete()
        newest = max(
            (e.producer_epoch for place in self.places for e in self.c.logs[place] if e.producer_id == self.pid),
            default=-1,
        )
        while True:
            self.now += SECOND
            self.state = State("Empty", self.state.epoch + 1)
            self.note("Empty")
            if self.state.epoch >= newest:
                break
        self.epoch = self.state.epoch

    # ---- Elections, and what they lose

    def elect(self, led: Led, how: str) -> None:
        """`clean`; `unclean`: the other replica, without being in sync; `crash`: of the only one in sync."""
        first = next(broker for broker in led.brokers if broker != led.leader)
        (topic, partition), log = led.place, self.c.metadata
        if how == "clean":
            led.leader, led.epoch = first, led.epoch + 1
            if log is not None:
                log.elect(topic, first, self.now, partition=partition)
        else:
            before, led.epoch = led.leader, led.epoch + 2
            led.leader = first if how == "unclean" else before
            if log is not None:
                log.change(topic, self.now, partition=partition, isr=(before,))
                log.stop(before, self.now + 1, is_controlled=False)
                log.elect(topic, -1, self.now + 2, partition=partition)
                if how == "unclean":
                    log.elect(topic, first, self.now + 3, partition=partition, isr=(first,), is_recovering=True)
                    log.change(topic, self.now + 4 + SECOND, partition=partition, isr=(first, before))
                    log.start(before, self.now + 4)
                else:
                    log.start(before, self.now + 4)
                    log.elect(topic, before, self.now + 5, partition=partition)
                    log.change(topic, self.now + 6, partition=partition, isr=led.brokers)
        led.leaders[led.epoch], led.elected[led.epoch] = led.leader, self.now
        self.tell(f"{how} election of {topic}-{partition}: leader epoch {led.epoch} of broker {led.leader}")
        self.now += 2 * SECOND

    def lose(self, led: Led) -> None:
        """The tail that the new leader does not have. Where no metadata log tells of a coordinator's election, a COMMIT
        marker of what was lost must: nothing else would."""
        log = self.c.logs[led.place]
        own = [e.at for e in log if e.producer_id == self.pid or e.key == self.id]
        cut = self.random.choice(own[-3:] or [self.now]) - 1
        if led is self.coordinator:
            cut = max(cut, log[0].at)  # it has the id's first record
        is_shown = self.kind.has_metadata or (led is not self.coordinator and not self.is_lost)
        if not is_shown and not (led is self.coordinator and self._has_commit_since(cut)):
            return
        self.is_lost |= led is self.coordinator
        led.lost.append((cut - 100, self.now + 100))
        gone = [e for e in log if e.at > cut]
        log[:] = [e for e in log if e.at <= cut]
        self.elect(led, self.random.choice(("unclean", "crash")))
        names = [e.marker or (e.value and e.value.transaction_state.kafka_name) or "batch" for e in gone]
        self.tell(f"lost with it: {names}")
        if led is self.coordinator:
            self._reload()
        elif any(e.producer_id == self.pid and e.marker is None for e in gone):
            self.restart()

    def _has_commit_since(self, cut: int) -> bool:
        return any(e.marker == "COMMIT" and e.at > cut for place in self.places for e in self.c.logs[place])

    def _reload(self) -> None:
        """The next coordinator goes on with the newest record that its log has."""
        kept = [e.value for e in self.c.logs[self.coordinator.place] if e.key == self.id and e.value is not None]
        newest = kept[-1]
        places = tuple((p.topic, p.partition) for p in newest.transaction_partitions or ())
        start = newest.start_timestamp_ms
        self.state = State(newest.transaction_state.kafka_name, newest.producer_epoch, places)
        self.state.start = self.now if start is None else start - NOON
        self.unsent = set(places) if self.state.name.startswith("Prepare") else set()
        if self.state.name.startswith("Prepare"):
            self.complete()
        if self.state.epoch != self.epoch or (self.state.name == "Ongoing" and self.random.random() < 0.5):
            self.restart()

    # ---- A transaction

    def transact(self) -> bool:
        """Whether all is well with it."""
        r = self.random
        used = r.sample(self.places, r.randrange(1, len(self.places) + 1))
        others = [place for place in self.places if place not in used]
        self.begin(used)
        batches = [(place, self.write(place)) for place in used]
        fate = r.choices(
            ("ends", "unregistered", "lost before", "times out", "lost between", "lost after", "late"),
            (50, 10, 4, 8, 12, 12, 10),
        )[0]
        if fate == "unregistered" and others and not self.kind.is_v2:
            self.write(others[0], ", not registered")
        self.now += r.choice((20, 90, SECOND, 20 * SECOND))
        if fate == "lost before":
            self._lose_something()
            batches = [(place, at) for place, at in batches if any(e.at == at for e in self.c.logs[place])]
        if self.state.name != "Ongoing":
            return False
        if fate == "times out" and self.timeout != FOREVER:
            self.now += 70 * SECOND
            self.prepare("Abort", self.state.epoch + 1)
            self.complete()
            self.restart()
            return True
        self.end(r.choice(("Commit", "Commit", "Abort")), batches)
        if fate == "lost between":
            self._some_markers()
            self.lose(self.coordinator)
            if self.state.name.startswith("Prepare"):
                self.complete()
            return False
        if self.state.name.startswith("Prepare"):
            self.complete()
        if fate == "late" and not self.kind.is_v2:
            self.now += r.choice((3, 60, SECOND))
            self.write(used[0], ", late")
        if fate == "lost after":
            self._lose_something()
        return fate in ("ends", "lost before")

    def _some_markers(self) -> None:
        for place in self.state.places:
            if self.random.random() < 0.5:
                self.mark(place, self.state.name.removeprefix("Prepare").upper())

    def _lose_something(self) -> None:
        self.lose(self.random.choice([self.coordinator, *self.data.values(), *self.data.values()]))

    def run(self, until: int) -> None:
        r = self.random
        self.note("Empty")
        for _ in range(r.choice((1, 2, 4, 8))):
            self.now += r.choice((20, 200, 2 * SECOND, MINUTE, 15 * MINUTE))
            if self.now > until:
                break
            what = r.random()
            if what < 0.8:
                if not self.transact() and r.random() < 0.6:
                    break  # nothing absorbs it
            elif what < 0.9:
                self.restart()
            else:
                self.elect(r.choice([self.coordinator, *self.data.values()]), "clean")
        self.now += MINUTE
        if r.random() < 0.1 and self.state.name != "Ongoing":
            self.begin([self.places[0]])
            self.write(self.places[0], ", left open")
        elif self.state.name == "Ongoing" and r.random() < 0.8:
            self.prepare("Abort", self.state.epoch + 1)
            self.complete()
        if r.random() < 0.4:
            self.restart()
        if r.random() < 0.3:
            self.elect(r.choice([self.coordinator, *self.data.values()]), "clean")

    # ---- The truth at the instant of the capture

    def is_live(self, place: Place) -> bool:
        """Whether its coordinator will end what is open there."""
        if self.state.name == "Ongoing":
            return place in self.state.places
        return place in self.unsent

    def is_commit_due(self, place: Place, offset: int) -> bool:
        """Whether what is open since an offset has batches of which a client was told that they are committed."""
        return any(
            (place, e.at) in self.committed
            for e in self.c.logs[place]
            if e.producer_id == self.pid and e.offset >= offset
        )


def random_clock(random: Random) -> Clock:
    """Right, off by at most two minutes, or with a step that lasts twenty minutes."""
    how = random.random()
    if how < 0.4:
        return Clock()
    offset = random.choice((-120, -30, -1, 1, 30, 120)) * SECOND
    if how < 0.7:
        return Clock(offsets=(offset,))
    since = random.randrange(5, 90) * MINUTE
    step = random.choice((-20 * MINUTE, -90 * SECOND, -98, 98, 90 * SECOND, 20 * MINUTE))
    return Clock((-(10**9), since, since + 20 * MINUTE), (0, step, 0))


def beat(w: World, clocks: dict[int, Clock], at: int, place: Place) -> None:
    """A decision and its marker, which show the clock of the partition's leader then. The coordinator's is right."""
    led, id_, pid = w.data[place], id_in(BEATS, f"beat-{w.topic}-{place[1]}"), w.pid + 500 + place[1]
    epoch = max((e.leader_epoch for e in w.c.logs[place] if e.at <= at), default=min(led.leaders))
    if not led.has(at):
        return
    broker = led.leaders[epoch]
    w.c.note(id_, "Ongoing", pid, 0, [place], at, start=at)
    w.c.write(place, pid, 0, at + 5, leader_epoch=epoch)
    w.c.note(id_, "PrepareCommit", pid, 0, [place], at + 40, start=at)
    w.c.mark(place, pid, 0, "COMMIT", at + 45, stamp=clocks[broker].at(at + 45), leader_epoch=epoch)
    w.c.note(id_, "CompleteCommit", pid, 0, (), at + 50, start=at)


@dataclass
class Worlds:
    """A cluster, and its histories by topic."""

    seed: int
    kind: Kind
    c: Cluster
    worlds: dict[str, World]

    def capture(self, folder: Path, at: int = END) -> Path:
        """Of the end, or of an earlier night."""
        for world in self.worlds.values():
            copy_at(world, at, is_compacted=at == END)
        self.c.copies[TXN, BEATS] = [Copy(1, at)]
        return self.c.capture(folder, at, notes=self.kind.notes)

    def own(self, rows: Iterable[dict[str, Any]]) -> list[tuple[World, Place, dict[str, Any]]]:
        """The rows of the histories' producers, each with its history and its partition."""
        found = [(self.worlds.get(row["topic"]), (row["topic"], row["partition"]), row) for row in rows]
        return [(w, place, row) for w, place, row in found if w is not None and w.pid == row["producer_id"]]

    def wrong(self, rows: Iterable[dict[str, Any]]) -> dict[str, str]:
        """By topic and partition, what an audit of the end says that the history refutes."""
        found = {}
        for world, place, row in self.own(rows):
            key = f"{place[0]}-{place[1]}"
            if row["verdict"] == "HANGING" and world.is_live(place):
                found[key] = "HANGING, and live"
            if row["safe_to_abort"] and world.is_commit_due(place, row["start_offset"]):
                found[key] = "safe, and committed"
        return found

    def told(self, key: str) -> str:
        """The story of a topic, for a failure."""
        world = self.worlds[key.rpartition("-")[0]]
        clocks = {broker: clock for broker, clock in world.clocks.items() if clock != Clock()}
        return "\n".join(
            [f"seed {self.seed}, {self.kind}, {key}, clocks {clocks}, compacted {world.compacted}", *world.story]
        )


def random_worlds(seed: int) -> Worlds:
    random = Random(seed)
    kind = Kind(is_v2=seed % 4 == 3, has_metadata=seed % 2 == 1)
    c = Cluster(metadata=_metadata(kind) if kind.has_metadata else None)
    worlds = {}
    for number in range(HISTORIES):
        world = _world(c, random, kind, number)
        world.run(FIRST_NIGHT + 30 * MINUTE)
        worlds[world.topic] = world
        _show_clocks(world)
        _copy(world)
    return Worlds(seed, kind, c, worlds)


def _metadata(kind: Kind) -> MetadataLog:
    log = MetadataLog(NOON)
    for broker in (1, 2):
        log.broker(broker, -6 * HOUR)
    log.level(25, -6 * HOUR, name="metadata.version")
    log.level(2 if kind.is_v2 else 1, -5 * HOUR)
    log.topic(TXN, COORDINATORS, -5 * HOUR)
    return log


def _world(c: Cluster, random: Random, kind: Kind, number: int) -> World:
    topic = f"t{number}"
    brokers = {"data": (100 + number, 200 + number), "coordinator": (300 + number, 400 + number)}
    if random.random() < 0.4:
        brokers["coordinator"] = brokers["data"]
    clocks = {broker: random_clock(random) for pair in brokers.values() for broker in pair}
    # Coordinators' clocks do not step: their decisions show the others'.
    clocks |= {broker: Clock() for broker in brokers["coordinator"]}
    places = [(topic, partition) for partition in range(random.choice((1, 2, 2)))]
    data = {place: Led(place, brokers["data"], brokers["data"][0]) for place in places}
    coordinator = Led((TXN, number), brokers["coordinator"], brokers["coordinator"][0])
    pid = 1_000 * (number + 1)
    if c.metadata is not None:
        log = c.metadata
        for broker in sorted(clocks):
            log.broker(broker, -6 * HOUR)
        log.block(pid + 1_000, -5 * HOUR)
        log.topic(topic, len(places), -5 * HOUR, leader=brokers["data"][0], replicas=brokers["data"])
        _reassigned(log, number, brokers["coordinator"])
        coordinator.epoch = 1
    return World(
        c, random, kind, number, topic, id_in(number, topic), pid, clocks, data, coordinator,
        timeout=FOREVER if random.random() < 0.1 and kind.is_v2 else 60_000, now=random.randrange(1, 60) * MINUTE,
    )  # fmt: skip


def _reassigned(log: MetadataLog, number: int, to: tuple[int, int]) -> None:
    at, before = -4 * HOUR, (1, 2)
    log.change(TXN, at, partition=number, replicas=(*before, *to), adding=to)
    log.change(TXN, at + 1, partition=number, isr=(*before, *to))
    log.elect(TXN, to[0], at + 2, partition=number, isr=to, replicas=to, adding=())


def _show_clocks(w: World) -> None:
    """Decisions and markers in every stretch of the clock of the leader, and some more."""
    last = w.now + MINUTE
    for place, led in w.data.items():
        steps = [at for broker in set(led.leaders.values()) for at in w.clocks[broker].since[1:]]
        times = {at + d for at in steps for d in (-SECOND, SECOND)} | {last, 170 * MINUTE}
        near = {e.at + d for e in w.c.logs[place] for d in (-100, 100) if steps}
        times |= near | {w.random.randrange(170) * MINUTE for _ in range(w.random.choice((0, 3)))}
        spaced: list[int] = []
        for at in sorted(times):
            if 0 <= at <= 175 * MINUTE and (not spaced or at - spaced[-1] > 60):
                spaced.append(at)
        for at in spaced:
            beat(w, w.clocks, at, place)
    for minute in sorted({w.random.randrange(170) for _ in range(w.random.choice((0, 2, 5)))}):
        at = minute * MINUTE
        log = w.c.logs[w.coordinator.place]
        epoch = max((e.leader_epoch for e in log if e.at <= at), default=None)
        if epoch is not None and w.coordinator.has(at):
            other = id_in(w.number, f"other-{w.number}")
            w.c.note(other, "Empty", 900_000 + w.number, 0, (), at, leader_epoch=epoch)


def _copy(w: World) -> None:
    """Of the leaders, at the end. Compaction, and a checkpoint of leader epochs, as it happens; but where only markers
    tell of a coordinator's loss, compaction would be told as their cause."""
    if w.random.random() < 0.5 and (w.kind.has_metadata or not w.is_lost):
        w.compacted = w.random.randrange(20, 175) * MINUTE
    w.has_epochs = w.random.random() < 0.7
    copy_at(w, END, is_compacted=True)


def copy_at(w: World, at: int, *, is_compacted: bool) -> None:
    for led in (w.coordinator, *w.data.values()):
        leader = led.leaders[led.epoch_at(at)]
        epochs = _leader_epochs(w.c.logs[led.place], led, at) if w.has_epochs and led is not w.coordinator else None
        compacted = w.compacted if is_compacted and led is w.coordinator else None
        w.c.leaders[led.place] = leader
        copy = Copy(leader, at, taken=at, leader_epochs=epochs, is_compacted_until=compacted)
        has_more = any(since < at < until for since, until in led.lost)
        w.c.copies[led.place] = [] if has_more else [copy]


def _leader_epochs(log: list[Entry], led: Led, at: int) -> tuple[tuple[int, int], ...]:
    found: dict[int, int] = {}
    held = [entry for entry in log if entry.at <= at]
    for offset, entry in enumerate(sorted(held, key=lambda each: each.at)):
        found.setdefault(entry.leader_epoch, offset)
    found.setdefault(led.epoch_at(at), len(held))
    return tuple(found.items())


# ---- Audits of them


def rows_of(worlds: Worlds, folder: Path) -> list[dict[str, Any]]:
    """The open transactions of an audit."""
    return audited_anew([worlds.capture(folder / "brokers")]).rows("open_transactions")


def rows_of_nights(worlds: Worlds, folder: Path) -> list[dict[str, Any]]:
    """Those of a second audit, which knows a first one."""
    first = audited_anew([worlds.capture(folder / "first", FIRST_NIGHT)], "--cluster", "small")
    first.make("hanging_transactions", "open_transactions")
    first.run.note("DONE")
    second = audited_anew([worlds.capture(folder / "second")], "--cluster", "small", folder=first.folder)
    return second.rows("open_transactions")


def main(first: str, last: str, *options: str) -> None:
    """Audits the histories of seeds, of two nights each with `--nights`, and prints the story of each failure."""
    failed, due, safe = 0, 0, 0
    for seed in range(int(first), int(last)):
        worlds = random_worlds(seed)
        with TemporaryDirectory() as folder:
            rows = (rows_of_nights if "--nights" in options else rows_of)(worlds, Path(folder))
        wrong = worlds.wrong(rows)
        for key, says in wrong.items():
            print(f"{key}: {says}\n{worlds.told(key)}\n", flush=True)
        own = worlds.own(rows)
        due += sum(world.is_commit_due(place, row["start_offset"]) for world, place, row in own)
        failed, safe = failed + len(wrong), safe + sum(row["safe_to_abort"] for *_, row in own)
        print(f"seed {seed}: {len(wrong)} wrong: {sorted(wrong)}", flush=True)
    print(f"{HISTORIES * (int(last) - int(first))} histories, {due} lost COMMITs, {safe} safe, {failed} wrong")


if __name__ == "__main__":
    main(*sys.argv[1:])
