"""Events of the logs, and their place in the order of time.

A marker, a LogAppendTime batch, a coordinator's record and a leader change have a broker's time. A CreateTime batch has
its client's, which counts only within the limits of the broker-stamped batches around it. What the audit matched with a
transaction stands where the protocol puts it, whatever clocks say: a partition is added before it is written to, and a
transaction is decided before it is marked.

Each partition and each transactional id keeps the order of its log. Apart from that brokers' clocks decide, and within
one millisecond the protocol does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final, NamedTuple

from txnlib.ask.queries import Row, column_names
from txnlib.core.display import counted, duration, printable
from txnlib.core.instants import NO_INSTANT_MS, clock_ms
from txnlib.core.kafka.constants import CLUSTER_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from txnlib.core.kafka.transaction_state import COMPLETE_STATES, PREPARED_STATES

#: Whose clock gives the time of an event.
BROKER, CLIENT, COORDINATOR, CONTROLLER = "BROKER", "CLIENT", "COORDINATOR", "CONTROLLER"
#: Sort key of an event: ms, a rank, and for equal ones the offset.
Key = tuple[int, int, int]
#: Ranks within one millisecond: a coordinator opens and decides before the partition is written, and completes after.
BEFORE_IT, DECISION, DATA, COMPLETION = -1, 0, 1, 2
#: What a coordinator writes at last; the event of a tombstone.
EXPIRES: Final = "expires"
#: Kafka's name of a state -> what it means for the transaction.
STATE_AFTER: Final[Mapping[str, str]] = {
    "Empty": "nothing begun",
    "Ongoing": "open",
    "PrepareCommit": "decided: COMMIT",
    "PrepareAbort": "decided: ABORT",
    "CompleteCommit": "finished: COMMIT",
    "CompleteAbort": "finished: ABORT",
    EXPIRES: "expired",
}
_COMPLETE: Final = frozenset(state.kafka_name for state in COMPLETE_STATES)
_PREPARED: Final = frozenset(state.kafka_name for state in PREPARED_STATES)
#: What identifies a transaction of a coordinator: its id, and its number; None: not known.
Numbered = tuple[str | None, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What one log shows: a record, neighbouring batches, or records that are left out."""

    #: The log, such as orders-0, __transaction_state-3 or __cluster_metadata-0.
    log: str
    #: First and last offset in that log; None for records that are left out.
    offset: int | None = None
    last_offset: int | None = None
    #: `batch`, `begins`, `ABORT marker`, Kafka's name of a state, `expires`, or `leader 1`.
    event: str = ""
    detail: str = ""
    #: The time that it bears, and whose clock that is.
    at_ms: int | None = None
    clock: str = ""
    #: Brokers' clocks prove that it was written between these times. Equal if a broker stamped it, None if unknown.
    after_ms: int | None = None
    before_ms: int | None = None
    transactional_id: str | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    #: What the log shows of the transaction after the event.
    state_after: str = ""
    #: First offset of the lowest transaction that is open after the event, else the next offset; None if unknown, and
    #: in a coordinator's log.
    last_stable_offset: int | None = None
    #: Verdict on the open transaction of which the event is a part, or "".
    mark: str = ""
    #: Its place among the events of all logs.
    key: Key = (0, DATA, 0)
    #: The row of the batch, from which neighbours are folded into one event.
    batch: Row | None = None

    @property
    def is_marker(self) -> bool:
        return self.event.endswith("marker")

    @property
    def written_by(self) -> str:
        if self.offset is None or self.clock == CONTROLLER:
            return self.clock.lower()
        return "coordinator" if self.clock == COORDINATOR or self.is_marker else f"producer {self.producer_id}"

    @property
    def record(self) -> str:
        """What was written, in words."""
        if self.clock == CONTROLLER:
            return f"{self.event}: {self.detail}"
        if self.clock == COORDINATOR:
            name = printable(self.transactional_id)
            return f"{name} tombstone" if self.event == EXPIRES else f"{name} {self.event} {self.detail}"
        return f"{self.event}, {self.detail}" if self.is_marker else self.detail


#: Columns of a coordinator's record from which an event is made.
RECORD: Final = column_names(
    "transactional_id coordinator_partition offset timestamp_ms is_tombstone state transaction_number producer_id"
    " producer_epoch partitions"
)
#: The columns of an event.
ROW: Final = column_names(
    "log offset last_offset written_by event detail at_ms clock after_ms before_ms transactional_id producer_id"
    " producer_epoch state_after last_stable_offset mark"
)


def in_order(*logs: Iterable[Event]) -> list[Event]:
    """The events of several logs as one list. An event never comes before an event that precedes it in its log,
    whatever its key.

    In a coordinator's log, only the records of one transactional id keep their order: records of different ids may be
    of the same millisecond.
    """
    reached: dict[tuple[str, str | None], Key] = {}
    placed = []
    for event in chain(*logs):
        of = event.log, None if event.clock in (BROKER, CLIENT) else event.transactional_id
        reached[of] = max(event.key, reached.get(of, event.key))
        placed.append(replace(event, key=reached[of]))
    return sorted(placed, key=lambda event: event.key)


# ---- The logs of coordinators and of the controller


def coordinator_events(records: Iterable[Row], detail: Callable[[Row], str]) -> Iterator[Event]:
    """Events of rows of coordinator_states, by offset in their partition, each with the number `left_out` before it, if
    any."""
    for record in records:
        log, owner = f"{TRANSACTION_STATE_TOPIC}-{record['coordinator_partition']}", record["transactional_id"]
        if record.get("left_out"):
            says = f"… {counted(record['left_out'], 'record')} of {printable(owner)} left out"
            yield Event(log=log, detail=says, transactional_id=owner, key=(-NO_INSTANT_MS, DECISION, 0))
        at = clock_ms(record["timestamp_ms"])
        state = EXPIRES if record["is_tombstone"] else record["state"]
        yield Event(
            log=log,
            offset=record["offset"],
            last_offset=record["offset"],
            event=state,
            detail=detail(record),
            at_ms=at,
            clock=COORDINATOR,
            after_ms=at,
            before_ms=at,
            transactional_id=owner,
            producer_id=record["producer_id"],
            producer_epoch=record["producer_epoch"],
            state_after=STATE_AFTER.get(state, state),
            key=_key(record),
        )


def record_events(records: Sequence[Row]) -> Iterator[Event]:
    """Events of rows of coordinator_states, each with its partitions, and the time since its transaction began."""
    began: dict[Numbered, int] = {}

    def detail(row: Row) -> str:
        places = ", ".join(f"{place['topic']}-{place['partition']}" for place in row["partitions"] or ())
        number, at = number_of(row), clock_ms(row["timestamp_ms"])
        if at is None or row["transaction_number"] is None:
            return places
        if row["state"] == "Ongoing":
            began.setdefault(number, at)
            return places
        if number not in began:
            return places
        lasted = at - began[number]
        since = f"{lasted} ms" if 0 <= lasted < 1_000 else duration(lasted)
        return f"{since} after its start" + (f": {places}" if places else "")

    return coordinator_events(records, detail)


def leader_events(changes: Iterable[Row]) -> Iterator[Event]:
    """Events of rows of `leader_changes`. A controller elects before anything is written under its leader."""
    for row in sorted(changes, key=lambda row: row["since_offset"]):
        what = "no leader" if row["leader"] is None else f"leader {row['leader']}"
        in_sync = ", ".join(map(str, row["isr"] or ())) or "none"
        at, offset = row["at_ms"], row["since_offset"]
        yield Event(
            log=f"{CLUSTER_METADATA_TOPIC}-0",
            offset=offset,
            last_offset=offset,
            event=f"unclean {what}" if row["is_unclean"] else what,
            detail=f"{row['topic']}-{row['partition']}, leader epoch {row['leader_epoch']}, in sync {in_sync}",
            at_ms=at,
            clock=CONTROLLER,
            after_ms=at,
            before_ms=at,
            key=(at, DECISION, -NO_INSTANT_MS),
        )


# ---- The place of batches and markers among the records of the transaction that the audit matched with them


class Course(NamedTuple):
    """The keys of a coordinator's records of a transaction: that it added a partition, decided, and completed."""

    added: Key | None = None
    decided: Key | None = None
    completed: Key | None = None

    def place(self, ms: int, offset: int, *, is_marker: bool) -> Key:
        """The key of a batch or a marker of the transaction. `ms`: when its own clock says that it was written."""
        low, high = (self.decided, self.completed) if is_marker else (self.added, self.decided)
        key = (ms, DATA, offset)
        if high is not None:
            key = min(key, (high[0], DATA if is_marker else BEFORE_IT, offset))
        return key if low is None else max(key, (low[0], DATA, offset), low)


def number_of(record: Row) -> Numbered:
    """What identifies the transaction of a coordinator's record."""
    return record["transactional_id"], record["transaction_number"]


def lists(record: Row, place: Row) -> bool:
    """Whether a coordinator record lists the partition of a row."""
    return any(
        p["topic"] == place["topic"] and p["partition"] == place["partition"] for p in record["partitions"] or ()
    )


def courses(records: Iterable[Row], place: Row) -> dict[Numbered, Course]:
    """What identifies each transaction of these records -> its course on a partition. The records are in the order of
    their logs."""
    found: dict[Numbered, Course] = {}
    reached: dict[str, Key] = {}
    for record in records:
        owner, state = record["transactional_id"], record["state"]
        key = reached[owner] = max(_key(record), reached.get(owner, _key(record)))
        course = found.get(number_of(record), Course())
        if clock_ms(record["timestamp_ms"]) is None or record["transaction_number"] is None:
            continue
        if state == "Ongoing" and course.added is None and lists(record, place):
            course = course._replace(added=key)
        elif state in _PREPARED:
            course = course._replace(decided=key)
        elif state in _COMPLETE:
            course = course._replace(completed=key)
        found[number_of(record)] = course
    return found


def _key(record: Row) -> Key:
    """The key of a coordinator's record by its own time. It moves back if a record before it in the log has a later
    key."""
    at = clock_ms(record["timestamp_ms"])
    rank = COMPLETION if record["state"] in _COMPLETE else DECISION
    return -NO_INSTANT_MS if at is None else at, rank, record["offset"]
