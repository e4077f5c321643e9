"""The events of a partition or transactional id, from both logs.

Within a partition, the log gives the order. Coordinator records are placed among the markers by time, because both have brokers'
times. Data with a client's time is placed by that time, within the limits of the markers around it and of its Ongoing record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from txnlib.ask.log_rows import METADATA_LOG, change_text
from txnlib.ask.rows import Row
from txnlib.core.display import duration
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC

COLUMNS: Final = (
    "at_ms",
    "clock",
    "log",
    "offset",
    "event",
    "transactional_id",
    "producer_id",
    "producer_epoch",
    "last_stable_offset",
    "detail",
)
BROKER, CLIENT, COORDINATOR, CONTROLLER = "BROKER", "CLIENT", "COORDINATOR", "CONTROLLER"
#: Order of events within one millisecond: a coordinator opens and decides before the partition is written, and completes after.
_BEFORE_DATA, _DATA, _AFTER_DATA = 0, 1, 2
_PREPARED: Final = ("PrepareCommit", "PrepareAbort")


@dataclass(frozen=True, slots=True)
class Event:
    """A step of a transaction in one of the logs."""

    at_ms: int | None
    clock: str
    log: str
    offset: int
    event: str
    transactional_id: str | None
    producer_id: int | None
    producer_epoch: int | None
    detail: str
    #: Lowest open first offset after the event, else the next offset; None in a coordinator's log, and if unknown.
    last_stable_offset: int | None = None
    #: Sort key among the events of all logs.
    key: tuple[int, int] = (0, _DATA)

    def row(self) -> Row:
        return {name: getattr(self, name) for name in COLUMNS}


def partition_events(
    log: str, spans: Sequence[Row], owners: Mapping[int, str], started: Mapping[int, int], exact_from: int
) -> list[Event]:
    """Beginnings and markers of one partition, by offset, with the last stable offset after each.

    `spans` are rows of producer_spans, with None for times that no clock shows; `started` maps a first offset to the coordinator's
    time of its Ongoing record. Below `exact_from`, not all transactions are loaded, so the last stable offset is unknown.
    """
    ends: list[tuple[int, Row, bool]] = [(row["first_offset"], row, True) for row in spans if row["first_offset"] is not None]
    ends += [(row["marker_offset"], row, False) for row in spans if row["marker_offset"] is not None]
    ends.sort(key=lambda each: each[0])
    keys = _keys([_bounds(row, is_begin, started) for _, row, is_begin in ends])
    events: list[Event] = []
    opened: set[int] = set()
    for (offset, row, is_begin), key in zip(ends, keys, strict=True):
        if is_begin:
            opened.add(row["first_offset"])
        else:
            opened.discard(row["first_offset"])
        stable = min(opened, default=offset + 1) if offset >= exact_from else None
        events.append(_in_partition(log, row, is_begin, owners.get(row["producer_id"]), stable, key))
    return events


def _bounds(row: Row, is_begin: bool, started: Mapping[int, int]) -> tuple[int, int | None, int | None]:
    """The limits of one event: earliest time, claimed time, and broker's time, if it has one."""
    if not is_begin:
        return 0, None, row["marker_ms"]
    if row["is_broker_clock"]:
        return 0, None, row["first_timestamp_ms"]
    return started.get(row["first_offset"], 0), row["first_timestamp_ms"], None


def _keys(bounds: Sequence[tuple[int, int | None, int | None]]) -> list[int]:
    """A nondecreasing time for each event of a log: brokers' times, and between them clients' times, as far as possible."""
    latest: list[int] = []
    after = 1 << 62
    for _, _, exact in reversed(bounds):
        after = min(after, exact) if exact is not None else after
        latest.append(after)
    keys, reached = [], 0
    for (low, claimed, exact), high in zip(bounds, reversed(latest), strict=True):
        wanted = exact if exact is not None else max(low, min(claimed or 0, high))
        reached = max(reached, wanted)
        keys.append(reached)
    return keys


def _in_partition(log: str, row: Row, is_begin: bool, owner: str | None, stable: int | None, key: int) -> Event:
    if is_begin:
        clock = BROKER if row["is_broker_clock"] else CLIENT
        at, offset, event, detail = row["first_timestamp_ms"], row["first_offset"], "begins", _data(row)
    else:
        clock, at, offset = BROKER, row["marker_ms"], row["marker_offset"]
        event = f"{row['marker_type']} marker" if row["marker_type"] else "marker"
        detail = "nothing was open" if row["first_offset"] is None else f"closes the one from offset {row['first_offset']}"
    epoch = row["producer_epoch"] if is_begin else row.get("marker_epoch", row["producer_epoch"])
    return Event(at, clock, log, offset, event, owner, row["producer_id"], epoch, detail, stable, (key, _DATA))


def _data(row: Row) -> str:
    if row.get("records") is None:
        return ""
    seen = "" if row.get("is_start_exact", True) else "; its first batch was not captured"
    return f"{_many(row['records'], 'record')} in {_many(row['batches'], 'batch', 'es')}, up to offset {row['last_offset']}{seen}"


def _many(count: int, noun: str, ending: str = "s") -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}{ending}"


def coordinator_events(records: Iterable[Row]) -> list[Event]:
    """Events of rows of coordinator_states, by offset in their partition."""
    events = []
    started: dict[tuple[str, int], int] = {}
    for row in records:
        if row["timestamp_ms"] is None:
            continue
        state = "expires" if row["is_tombstone"] else row["state"]
        number = (row["transactional_id"], row["transaction_number"])
        if state == "Ongoing":
            started.setdefault(number, row["timestamp_ms"])
        comes = _AFTER_DATA if state.startswith("Complete") else _BEFORE_DATA
        log = f"{TRANSACTION_STATE_TOPIC}-{row['coordinator_partition']}"
        detail = ", ".join(f"{p['topic']}-{p['partition']}" for p in row["partitions"] or ())
        if state != "Ongoing" and number in started and row["transaction_number"] is not None:
            detail = f"{_elapsed(row['timestamp_ms'] - started[number])} after its start" + (f": {detail}" if detail else "")
        events.append(
            Event(
                row["timestamp_ms"],
                COORDINATOR,
                log,
                row["offset"],
                state,
                row["transactional_id"],
                row["producer_id"],
                row["producer_epoch"],
                detail,
                key=(row["timestamp_ms"], comes),
            )
        )
    return events


def metadata_events(changes: Iterable[Row]) -> list[Event]:
    """Events of rows of `leader_changes`. A controller elects before anything is written under its leader."""
    events = []
    for row in changes:
        event, detail = change_text(row)
        at_ms = row["at_ms"]
        place = (METADATA_LOG, row["since_offset"], event, None, None, None, detail)
        events.append(Event(at_ms, CONTROLLER, *place, key=(at_ms, _BEFORE_DATA)))
    return events


def _elapsed(ms: int) -> str:
    return f"{ms} ms" if 0 <= ms < 1_000 else duration(ms)


def touching(records: Sequence[Row], topic: str, partition: int) -> list[Row]:
    """Records of the transactions that list a partition, with only one Ongoing each: when the partition was added."""
    place = {"topic": topic, "partition": partition}
    listing = [row for row in records if place in (row["partitions"] or ())]
    numbers = {(row["transactional_id"], row["transaction_number"]) for row in listing if row["transaction_number"] is not None}
    kept, added = [], set()
    for row in records:
        number = (row["transactional_id"], row["transaction_number"])
        if number not in numbers:
            continue
        if row["state"] == "Ongoing":
            if place not in (row["partitions"] or ()) or number in added:
                continue
            added.add(number)
        kept.append(row)
    return kept


def in_order(*logs: Sequence[Event]) -> list[Event]:
    """The events of several logs, each in its own order, as one list."""
    return sorted((event for log in logs for event in log), key=lambda event: (*event.key, event.offset))


def decisions(spans: Sequence[Row], owners: Mapping[int, str], records: Sequence[Row]) -> set[tuple[str, int]]:
    """The transactions (id and number) of spans of a partition. An ended span belongs to the Prepare that its marker follows."""
    decided = set()
    for span in spans:
        owner = owners.get(span["producer_id"])
        own = [row for row in records if row["transactional_id"] == owner and row["timestamp_ms"] is not None]
        if span["marker_ms"] is not None:
            own = [row for row in own if row["state"] in _PREPARED and row["timestamp_ms"] <= span["marker_ms"]]
        if own and own[-1]["transaction_number"] is not None:
            decided.add((own[-1]["transactional_id"], own[-1]["transaction_number"]))
    return decided


def started(spans: Sequence[Row], owners: Mapping[int, str], records: Sequence[Row]) -> dict[int, int]:
    """First offset -> when the coordinator opened the transaction, unless it is open and no coordinator knows it."""
    starts = {}
    for span in spans:
        numbers = decisions([span], owners, records)
        own = [row for row in records if (row["transactional_id"], row["transaction_number"]) in numbers]
        ongoing = [row["timestamp_ms"] for row in own if row["state"] == "Ongoing" and row["timestamp_ms"] is not None]
        is_held = span["marker_offset"] is not None or (bool(own) and own[-1]["state"] in ("Ongoing", *_PREPARED))
        if span["first_offset"] is not None and ongoing and is_held:
            starts[span["first_offset"]] = min(ongoing)
    return starts
