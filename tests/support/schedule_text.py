"""Schedules as text: a name, what happens, an arrow, what an audit says.

    # A line like this says why.
    late_write_under_one_leader:
        Empty 0 | T 1m | write 3m | beat 0 10m 100m | one leader → safe

A name and its colon begin a schedule, and the line with the arrow ends it. An event is a word, then instants, then
options. Instants and durations are sums of `h`, `m`, `s` and `ms`: `20m+5ms`, `-24h+1m`, `0`.

word | what happens
--- | ---
`Empty 0`, `Ongoing 1m`, `PrepareCommit 2m`, … | the coordinator writes a record of the id, by Kafka's name of its state
`tombstone 3m` | the coordinator removes the id
`next coordinator 10m` | a record of another id, by the coordinator of a `leader_epoch`
`write 3m` | a transactional batch of the producer
`COMMIT 31m`, `ABORT 31m` | a marker
`begin 1m` | Ongoing, and a batch on each of its partitions
`end 2m`, `end 2m ABORT` | Prepare, markers, Complete; without markers if `lost`, without Complete if `incomplete`
`T 1m`, `T 1m ABORT` | a whole transaction, of a second
`beat 0 5m` | whole transactions of another producer: their markers show the clock of the leader
`tick 0 5m` | batches of no transaction, which the leader stamps by a clock that differs by `skew`
`elected` | a leader followed: a `beat` of leader epoch 3
`one leader` | none did, by the leader-epoch-checkpoint
`led by another` | the leader is a broker of its own, whose clock differs by `skew`
`compacted`, `compacted 30s` | only the newest record of each id is left up to an instant: 30 min, if none is given

option | what it says
--- | ---
`on 1`, `on 0,1` | the partitions of the topic, if not the first; Ongoing and Prepare list them
`epoch=1`, `leader_epoch=3`, `coordinator_epoch=12` | of the producer, of the log, and in a marker, if not 0
`marker_epoch=1` | of an `end`: the producer epoch that it decides with, if not that of the batches
`pid=+1`, `next_pid=+1` | producer ids: how much above the one of the schedule
`stamp=5m` | a timestamp that is not the instant
`start=1m` | of Prepare, Complete and `end`, if not the instant of the newest Ongoing
`updated=2m`, `timeout=3h`, `timeout=never`, `v2` | other fields of a record of the id

An audit says `safe`; or `unsafe`: HANGING and not safe, perhaps with the statement that fails (`unsafe NO_COMMIT`);
`refuted`: the same or UNKNOWN; `closed`: nothing is open; or one of two verdicts (`STUCK or UNKNOWN`). Options:
`reason=`, `finds=` and `never_finds=` (names of findings; `*` is any), `error` (one is of ERROR or above), `pid=`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from tests.support.cluster import HOUR, MINUTE, NOON, SECOND, Place
from tests.support.refutations import (
    NO_COMMIT,
    NO_COORDINATOR,
    NOTHING_ELSE,
    OF_V2,
    OLD_ENOUGH,
    OPEN_NOW,
    compacted,
    elected_since,
    led_by_another,
    one_leader,
    other,
    tick,
)
from tests.support.schedules import Expected, Schedules, Story
from txnlib.core.findings.catalogue import FINDINGS
from txnlib.core.kafka.transaction_state import BY_KAFKA_NAME
from txnlib.core.verdicts.reason import Reason, Verdict

STATEMENTS = {
    "OPEN_NOW": OPEN_NOW, "NO_COORDINATOR": NO_COORDINATOR, "NO_COMMIT": NO_COMMIT, "OLD_ENOUGH": OLD_ENOUGH,
    "NOTHING_ELSE": NOTHING_ELSE,
}  # fmt: skip
#: By what a text says, the verdict that is expected, and what else is.
VERDICTS: dict[str, tuple[str | None, dict[str, Any]]] = {
    "safe": ("HANGING", {"is_safe": True}),
    "unsafe": ("HANGING", {}),
    "refuted": ("HANGING", {"or_verdict": "UNKNOWN"}),
    "closed": (None, {}),
    **{str(verdict): (str(verdict), {}) for verdict in Verdict},
}
NAMES_OF_FINDINGS = {"*", *FINDINGS}
_UNITS = {"ms": 1, "s": SECOND, "m": MINUTE, "h": HOUR}


def milliseconds(text: str) -> int:
    """An instant or a duration. ValueError: it is none."""
    if not re.fullmatch(r"0|[+-]?\d+(ms|s|m|h)([+-]\d+(ms|s|m|h))*", text):
        raise ValueError(f"no time: {text}")
    return sum(int(number) * _UNITS[unit] for number, unit in re.findall(r"([+-]?\d+)(ms|s|m|h)", text))


#: By the name of an option, the name that the calls of Story have for it, and what reads its value.
OPTIONS: dict[str, tuple[str, Callable[[str], Any]]] = {
    **{name: (name, int) for name in ("epoch", "marker_epoch", "leader_epoch", "coordinator_epoch", "pid")},
    **{name: (name, milliseconds) for name in ("stamp", "start", "skew")},
    "next_pid": ("next_producer_id", int),
    "updated": ("last_update_timestamp_ms", lambda text: NOON + milliseconds(text)),
    "timeout": ("transaction_timeout_ms", lambda text: 2**31 - 1 if text == "never" else milliseconds(text)),
}


@dataclass
class Event:
    word: str
    times: list[int]
    #: Of the topic; None: those of the word.
    partitions: list[int] | None
    #: Options without a value.
    flags: set[str]
    fields: dict[str, Any]

    def kind(self) -> str:
        return "ABORT" if "ABORT" in self.flags else "COMMIT"

    def places(self, s: Story) -> list[Place]:
        return [(s.topic, partition) for partition in self.partitions or [0]]

    def more(self, s: Story) -> dict[str, Any]:
        """What the calls of Story are given besides."""
        pids = {name: s.pid + self.fields[name] for name in ("pid", "next_producer_id") if name in self.fields}
        return self.fields | pids | (OF_V2 if "v2" in self.flags else {})


def _record(s: Story, e: Event) -> None:
    lists = e.partitions is not None or e.word.startswith(("Ongoing", "Prepare"))
    s.note(None if e.word == "tombstone" else e.word, *e.times, e.places(s) if lists else (), **e.more(s))


def next_coordinator(s: Story, at: int, leader_epoch: int, which: str = "later") -> None:
    """A record of another id, by the coordinator of a leader epoch."""
    s.c.note(other(s, which), "Empty", 920_000 + s.number, 0, (), at, leader_epoch=leader_epoch)


def _batch(s: Story, e: Event) -> None:
    more = e.more(s)
    pid, epoch = more.pop("pid", s.pid), more.pop("epoch", 0)
    for place in e.places(s):
        if e.word == "write":
            s.c.write(place, pid, epoch, *e.times, **more)
        else:
            s.c.mark(place, pid, epoch, e.word, *e.times, **more)


def _end(s: Story, e: Event) -> None:
    lost = e.places(s) if "lost" in e.flags else ()
    is_complete = "incomplete" not in e.flags
    s.end(*e.times, e.kind(), places=e.places(s), lost=lost, complete=is_complete, **e.more(s))


def _beat(s: Story, e: Event) -> None:
    for _, partition in e.places(s):
        s.beat(*e.times, partition=partition, **e.more(s))


def _tick(s: Story, e: Event) -> None:
    for _, partition in e.places(s):
        tick(s, *e.times, partition=partition, **e.more(s))


@dataclass
class Word:
    call: Callable[[Story, Event], object]
    options: str = ""
    #: How many instants there are, at least and at most.
    times: tuple[int, int] = (1, 1)


_OF_RECORD = "on epoch leader_epoch pid next_pid stamp start updated timeout v2"
_OF_BATCH = "on epoch leader_epoch pid stamp"
WORDS = {
    **{state: Word(_record, _OF_RECORD) for state in BY_KAFKA_NAME},
    "tombstone": Word(_record, "leader_epoch"),
    "next coordinator": Word(lambda s, e: next_coordinator(s, *e.times, **e.more(s)), "leader_epoch"),
    "write": Word(_batch, _OF_BATCH),
    "COMMIT": Word(_batch, f"{_OF_BATCH} coordinator_epoch"),
    "ABORT": Word(_batch, f"{_OF_BATCH} coordinator_epoch"),
    "begin": Word(lambda s, e: s.begin(*e.times, e.places(s), **e.more(s)), "on epoch leader_epoch timeout"),
    "end": Word(_end, "ABORT lost incomplete on epoch marker_epoch leader_epoch start timeout"),
    "T": Word(lambda s, e: s.transaction(*e.times, e.kind()), "ABORT"),
    "beat": Word(_beat, "on leader_epoch", (1, 99)),
    "tick": Word(_tick, "on leader_epoch skew", (1, 99)),
    "elected": Word(lambda s, e: elected_since(s), times=(0, 0)),
    "one leader": Word(lambda s, e: one_leader(s), times=(0, 0)),
    "led by another": Word(lambda s, e: led_by_another(s, **e.more(s)), "skew", (0, 0)),
    "compacted": Word(lambda s, e: compacted(s, *e.times), times=(0, 1)),
}


def _event(text: str, before: list[Event]) -> Event:
    """`before`: the events of the schedule until then."""
    word = next((each for each in WORDS if re.match(rf"{each}\b", text)), None)
    if word is None:
        raise ValueError(f"no word for an event: {text}")
    known, tokens = WORDS[word], iter(text.removeprefix(word).split())
    event = Event(word, [], None, set(), {})
    for token in tokens:
        name, _, value = token.partition("=")
        if token[0] in "+-0123456789":
            event.times.append(milliseconds(token))
        elif (name if name in OPTIONS else token) not in known.options.split():
            raise ValueError(f"no option of {word}: {token}")
        elif name in OPTIONS:
            called, read = OPTIONS[name]
            event.fields[called] = read(value)
        elif name == "on":
            event.partitions = [int(each) for each in next(tokens, "").split(",")]
        else:
            event.flags.add(name)
    least, most = known.times
    if not least <= len(event.times) <= most:
        raise ValueError(f"{len(event.times)} instants: {text}")
    if word.startswith(("Prepare", "Complete", "end")):
        begun = [each for each in before if each.word in ("Ongoing", "begin")] or [event]
        event.fields.setdefault("start", begun[-1].fields.get("start", begun[-1].times[0]))
    return event


def _expected(text: str) -> tuple[str | None, dict[str, Any]]:
    """The verdict, and what else Story expects; a producer id less that of the schedule."""
    first, *tokens = text.split() or [""]
    if first not in VERDICTS:
        raise ValueError(f"no verdict: {text.strip()}")
    verdict, more = VERDICTS[first]
    told: dict[str, Any] = {"pid": 0, **more}
    if tokens[:1] == ["or"]:
        told["or_verdict"] = str(Verdict(" ".join(tokens[1:2])))
        del tokens[:2]
    for token in tokens:
        name, _, value = token.partition("=")
        if token in STATEMENTS:
            told["fails"] = STATEMENTS[token]
        elif token == "error":
            told["is_error"] = True
        elif name == "reason":
            told["reason"] = str(Reason(value))
        elif name in ("finds", "never_finds") and NAMES_OF_FINDINGS.issuperset(value.split(",")):
            told[name] = tuple(value.split(","))
        elif name == "pid":
            told["pid"] = int(value)
        else:
            raise ValueError(f"nothing that an audit says: {token}")
    return verdict, told


def _happens(events: list[Event], verdict: str | None, told: dict[str, Any], s: Story) -> Expected:
    for event in events:
        WORDS[event.word].call(s, event)
    return s.expect(verdict, **told | {"pid": s.pid + told["pid"]})


def schedules_of(text: str) -> Schedules:
    """The schedules of a text, in its order. ValueError: a line that is none; the error names it."""
    found, name, events = Schedules(), "", list[Event]()
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        try:
            if not line or line.startswith("#"):
                continue
            if begins := re.match(r"(\w+):", line):
                if name or begins[1] in found:
                    raise ValueError(f"{name} has no arrow" if name else "a second one of this name")
                name, events = begins[1], []
            if not name:
                raise ValueError("no name")
            happens, arrow, said = line.removeprefix(f"{name}:").partition("→")
            for each in filter(None, map(str.strip, happens.split("|"))):
                events.append(_event(each, events))
            if arrow:
                found[name] = partial(_happens, events, *_expected(said))
                name = ""
        except ValueError as error:
            raise ValueError(f"line {number}, {line!r}: {error}") from None
    if name:
        raise ValueError(f"the last line: {name} has no arrow")
    return found
