"""Random, truthful histories of a cluster, and random partial captures of them.

A history goes on after the capture, as copies may be of different instants. What is judged is the instant of the
capture: a later transaction of the same id may still absorb what hangs then, and nobody can know that.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from tests.support.cluster import COORDINATORS, HOUR, MINUTE, SECOND, TXN, Cluster, Copy, Entry, Place

#: When the capture is taken, and when the history ends.
END, FUTURE = 2 * HOUR, 3 * HOUR
TOPICS = 40
#: Each broker has one clock.
LEADERS = {0: 1, 5 * SECOND: 2, -5 * SECOND: 5}


@dataclass
class History:
    """What happened, and what was captured of it."""

    cluster: Cluster
    #: Writes whose COMMIT marker was lost: (place, producer id, instant).
    committed: set[tuple[Place, int, int]]

    def is_ended(self, place: Place, producer_id: int, offset: int) -> bool:
        """Whether a marker of the producer followed an offset of the whole log when the capture was taken."""
        markers = [
            e for e in self.cluster.logs[place] if e.producer_id == producer_id and e.marker is not None and e.at <= END
        ]
        return any(e.offset > offset for e in markers)

    def is_commit_due(self, place: Place, producer_id: int, offset: int) -> bool:
        """Whether what is open from an offset on holds records whose COMMIT marker was lost."""
        own = [e for e in self.cluster.logs[place] if e.producer_id == producer_id and e.offset >= offset]
        end = next((e.offset for e in own if e.marker is not None), 1 << 60)
        return any((place, producer_id, e.at) in self.committed for e in own if e.offset < end)

    def is_owned(self, place: Place, producer_id: int) -> bool:
        """Whether a coordinator held it when the capture was taken."""
        last: dict[str, Entry] = {}
        for (topic, _), entries in self.cluster.logs.items():
            if topic == TXN:
                last |= {entry.key: entry for entry in entries if entry.key is not None and entry.at <= END}
        held = [e.value for e in last.values() if e.value is not None and e.value.producer_id == producer_id]
        return any(place in [(p.topic, p.partition) for p in value.transaction_partitions or ()] for value in held)


def random_history(random: Random, *, is_v2: bool) -> History:
    """Ids that commit, abort, time out, write late, write without adding the partition, lose a marker, or stay open."""
    c = Cluster()
    history = History(c, set())
    for number in range(TOPICS):
        topic = f"t{number}"
        places = [(topic, partition) for partition in range(random.choice((1, 1, 2)))]
        skew = random.choice((0, 0, 0, 5 * SECOND, -5 * SECOND))
        for place in places:
            c.skews[place] = skew
            c.leaders[place] = LEADERS[skew]
        for n in range(random.choice((1, 2, 3))):
            _id(random, history, f"id-{number}-{n}", 1_000 * (number + 1) + 10 * n, places, is_v2=is_v2)
    for number, place in enumerate([place for place in c.logs if place[0] != TXN]):
        if random.random() < 0.6:
            times = sorted(random.randrange(END) for _ in range(random.choice((2, 5, 20))))
            spaced = [at for at, after in zip(times, [*times[1:], FUTURE], strict=True) if after - at > 3 * SECOND]
            c.beat(place, spaced, 900_000 + number)
    return history


def _id(random: Random, history: History, id_: str, pid: int, places: list[Place], *, is_v2: bool) -> None:
    c, epoch, at = history.cluster, 0, random.randrange(20 * MINUTE)
    more = {"version": 1, "client_transaction_version": 2} if is_v2 else {}
    last_end: int | None = None
    while at < FUTURE - 20 * MINUTE:
        used = random.sample(places, random.randrange(1, len(places) + 1))
        kind = random.choice(("COMMIT", "COMMIT", "ABORT"))
        lasts = random.choice((SECOND, SECOND, 20 * SECOND, 2 * MINUTE, 15 * MINUTE))
        fate = random.choices(("ends", "late write", "unregistered", "lost marker", "expires"), (80, 6, 6, 4, 4))[0]
        stamp = {} if random.random() < 0.8 else {"stamp": at - 24 * HOUR}
        c.note(id_, "Ongoing", pid, epoch, used, at, start=at, **more)
        for place in used:
            c.write(place, pid, epoch, at + 5, **stamp)
        end = at + lasts
        marked = epoch + 1 if is_v2 else epoch
        lost = [used[0]] if fate == "lost marker" else []
        c.end(id_, pid, epoch, used, end, kind, start=at, lost=lost, marker_epoch=marked, **more)
        if lost and kind == "COMMIT":
            history.committed.add((used[0], pid, at + 5))
        others = [place for place in places if place not in used]
        if fate == "late write":
            c.write(used[0], pid, marked, end + SECOND, **stamp)
        if fate == "unregistered" and others:
            c.write(others[0], pid, epoch, at + 10, **stamp)
        last_end, epoch = end + SECOND, marked
        at = end + random.choice((2 * SECOND, 30 * SECOND, 5 * MINUTE, 30 * MINUTE))
        if fate in ("late write", "unregistered", "lost marker") and random.random() < 0.7:
            break  # nothing absorbs it
    if last_end is not None and random.random() < 0.15:
        c.note(id_, None, pid, epoch, (), last_end + 10 * MINUTE)


def whole_capture(history: History, folder: Path, **notes: object) -> Path:
    """Every leader's copy at one instant."""
    for place, leader in history.cluster.leaders.items():
        history.cluster.copies[place] = [Copy(leader or 1, END)]
    return history.cluster.capture(folder, END, notes=notes)


def partial_capture(random: Random, history: History, folder: Path, **notes: object) -> Path:
    """Copies taken away, aged, cut, holed, and taken at different instants."""
    c = history.cluster
    places = [*c.logs, *[(TXN, number) for number in range(COORDINATORS) if (TXN, number) not in c.logs]]
    for place in places:
        leader = c.leaders.get(place, 1) or 1
        is_coordinator = place[0] == TXN
        copies = [_copy(random, leader, is_coordinator=is_coordinator)]
        if random.random() < 0.2:
            copies.append(replace(_copy(random, leader, is_coordinator=is_coordinator), broker=4))
        if is_coordinator and random.random() < 0.04:
            copies = []
        if is_coordinator and random.random() < 0.3:
            copies.append(Copy(leader, END - 30 * MINUTE, taken=END - 30 * MINUTE, folder="first"))
        c.copies[place] = copies
        if leader in {copy.broker for copy in copies}:
            if random.random() < 0.1:
                c.leaders[place] = None
        elif random.random() < 0.5:
            # The leader's broker was captured; its copy of this partition is not there, its checkpoint is.
            c.noted.append((leader, place, sum(entry.at <= END for entry in c.logs[place])))
            c.leaders[place] = None
    return c.capture(folder, END, notes=notes)


def _copy(random: Random, leader: int, *, is_coordinator: bool) -> Copy:
    how = random.choices(("whole", "old disk", "earlier", "cut", "holed", "compacted"), (70, 7, 8, 5, 4, 6))[0]
    then = END - random.choice((SECOND, MINUTE, 20 * MINUTE, HOUR))
    if how == "old disk":
        return Copy(3, then, taken=END)
    if how == "earlier":
        return Copy(leader, then, taken=then)
    if how == "cut":
        return Copy(leader, END, keep=lambda entry: entry.at <= then)
    if how == "holed":
        since = then - random.choice((10, SECOND, 10 * MINUTE))
        return Copy(leader, END, keep=lambda entry: not since <= entry.at <= then)
    if how == "compacted" and is_coordinator:
        return Copy(leader, END, is_compacted_until=then)
    return Copy(leader, END)
