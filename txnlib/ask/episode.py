"""One episode of the logs: its events in order of time, and its outcome.

Each partition and each transactional id keeps the order of its log. Apart from that brokers' clocks decide, and within
one millisecond the protocol does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import chain
from typing import Any, Final, Generic, Protocol, TypeVar

from txnlib.ask.command_output import CommandOutput
from txnlib.ask.grid import TABLE, folded
from txnlib.ask.rows import Row, column_names
from txnlib.core.display import printable, told

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
    #: Lowest open first offset after the event, else the next offset; None in a coordinator's log, and if unknown.
    last_stable_offset: int | None = None
    #: Verdict on the open transaction of which the event is a part, or "".
    mark: str = ""
    #: Its place among the events of all logs.
    key: Key = (0, DATA, 0)
    #: The batch, until neighbours are one event.
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


#: The columns of an event.
ROW: Final = column_names(
    "log offset last_offset written_by event detail at_ms clock after_ms before_ms transactional_id producer_id"
    " producer_epoch state_after last_stable_offset mark"
)


def in_order(*logs: Iterable[Event]) -> list[Event]:
    """The events of several logs as one list. An event with an earlier key than one before it in its log follows that
    one.

    The records of a coordinator's log keep their order for each transactional id. Those of others may be of the same
    millisecond.
    """
    reached: dict[tuple[str, str | None], Key] = {}
    placed = []
    for event in chain(*logs):
        of = event.log, event.transactional_id
        reached[of] = max(event.key, reached.get(of, event.key))
        placed.append(replace(event, key=reached[of]))
    return sorted(placed, key=lambda event: event.key)


class EpisodeOutcome(Protocol):
    """How an episode stands at the instant of the run, and how it is told."""

    def output(self, episode: Any, /) -> CommandOutput: ...


Told = TypeVar("Told", bound=EpisodeOutcome)


@dataclass(frozen=True, slots=True, repr=False)
class Episode(Generic[Told]):
    """What happened to a transaction, a partition or a transactional id: its `events` in order of time, and its
    `outcome`.

    `print` prints it as `txn-audit` does. Fields: `cluster`, `run_id`, `as_of_ms`, `events`, `outcome`. The outcome of
    `explain` has `verdict` (a row of `open_transactions`), `evidence`, `copies` and `left_out`; that of `timeline` has
    `partition` and what is left out; that of `transaction` has `outcome`, `partitions` and `records`. Instants are
    epoch milliseconds.
    """

    cluster: str
    run_id: str
    as_of_ms: int
    events: Sequence[Event]
    outcome: Told

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The events as rows, for instance for `pandas.DataFrame`.

        Columns: log, offset, last_offset, written_by, event, detail, at_ms (the time that the record bears) and clock
        (whose time that is), after_ms and before_ms (between which times brokers' clocks prove that it was written),
        transactional_id, producer_id, producer_epoch, state_after, last_stable_offset, mark (the verdict on the open
        transaction of which it is a part).
        """
        return [{name: getattr(event, name) for name in ROW} for event in self.events]

    def output(self) -> CommandOutput:
        """The answer of `txn-audit` in each of its forms: `output().text("json")`."""
        return self.outcome.output(self)

    def __str__(self) -> str:
        return self.output().text(TABLE)

    def __repr__(self) -> str:
        return f"<Episode of {len(self.events)} events, run {self.run_id}>"

    def _repr_html_(self) -> str:
        """What a notebook shows, as wide as JupyterLab shows text without breaking its lines."""
        return f"<pre>{escape(self.output().text(TABLE, width=88))}</pre>"


# ---- What the texts of all episodes share


def wrapped(width: int, label: str, text: object, room: int) -> list[str]:
    """A sentence behind its label, in lines of a width."""
    return folded(f"  {printable(label):<{room}}{told(text)}", width, 2 + room)


def the_day(times: Iterable[str]) -> str | None:
    """The day of times such as 2026-11-21 07:46:12.345Z, if it is the same one."""
    days = {time[:10] for time in times}
    return days.pop() if len(days) == 1 else None
