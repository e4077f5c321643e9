"""Events from rows of tables: each with its place in the order of time.

A marker, a LogAppendTime batch, a coordinator's record and a leader change have a broker's time. A CreateTime batch has
its client's, which counts only within the limits of the broker-stamped batches around it and of its coordinator's
records: a partition is added before it is written to, and a transaction is decided before it is marked.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby
from types import MappingProxyType
from typing import Final

from txnlib.ask.episode import (
    BEFORE_IT,
    BROKER,
    CLIENT,
    COMPLETION,
    CONTROLLER,
    COORDINATOR,
    DATA,
    DECISION,
    EXPIRES,
    STATE_AFTER,
    Event,
    Key,
    in_order,
)
from txnlib.ask.log_rows import Numbered
from txnlib.ask.rows import Row
from txnlib.core.display import counted, printable
from txnlib.core.instants import NO_INSTANT_MS, clock_ms
from txnlib.core.kafka.constants import CLUSTER_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from txnlib.core.kafka.transaction_state import ACTIVE_STATES, COMPLETE_STATES, PREPARED_STATES

_ACTIVE: Final = frozenset(state.kafka_name for state in ACTIVE_STATES)
_COMPLETE: Final = frozenset(state.kafka_name for state in COMPLETE_STATES)
PREPARED: Final = frozenset(state.kafka_name for state in PREPARED_STATES)
_SHOWN_PARTITIONS: Final = 6
#: ms and rank: a bound of the place of a batch.
_Limit = tuple[int, int]


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
        rank = COMPLETION if state in _COMPLETE else DECISION
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
            key=(-NO_INSTANT_MS if at is None else at, rank, record["offset"]),
        )


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


def lists(record: Row, place: Row) -> bool:
    """Whether a coordinator record lists the partition of a row."""
    return any(
        p["topic"] == place["topic"] and p["partition"] == place["partition"] for p in record["partitions"] or ()
    )


# ---- The story of one open transaction: the batches of its producer, and its coordinator's records


@dataclass(frozen=True, slots=True)
class Stamps:
    """Broker-stamped batches of the partition: offsets in order, their times, and the known times before and after
    them."""

    offsets: Sequence[int] = ()
    times: Sequence[int] = ()
    before: int | None = None
    after: int | None = None

    def around(self, first_offset: int, last_offset: int) -> tuple[int | None, int | None]:
        """The newest time at a lower offset and the oldest time at a higher offset."""
        lower = [
            *([] if self.before is None else [self.before]),
            *self.times[: bisect_left(self.offsets, first_offset)],
        ]
        upper = [*self.times[bisect_right(self.offsets, last_offset) :], *([] if self.after is None else [self.after])]
        return max(lower, default=None), min(upper, default=None)


def story_events(
    place: Row,
    batches: Sequence[Row],
    stamps: Stamps,
    records: Sequence[Row],
    changes: Sequence[Row] = (),
    matches: Mapping[int, Numbered] = MappingProxyType({}),
) -> list[Event]:
    """The story of `place`, a row of open_transactions: its producer's batches there, and the records of its
    transactional id.

    `batches` are rows of record_batches by offset; `records` are rows of coordinator_states by offset, each with the
    number of records that were `left_out` before it. `changes` are rows of `leader_changes` of the partition and of its
    coordinator's, `matches` the stored ones of the markers (`stored_matches`).
    """
    limits = _limits(place, batches, records, matches)
    written = _batch_events(place, batches, stamps, limits)
    at_coordinator = coordinator_events(records, lambda record: _listed(place, record))
    return list(_folded(in_order(leader_events(changes), at_coordinator, written)))


def is_stamped(batch: Row) -> bool:
    """Whether the timestamp of the batch is a broker's."""
    return bool(batch["is_control"]) or batch["timestamp_type"] == "LOG_APPEND_TIME"


def _listed(place: Row, record: Row) -> str:
    """The partitions of a record. That of the story comes first if there are too many to list."""
    listed = record["partitions"] or []
    if len(listed) > _SHOWN_PARTITIONS:
        listed = sorted(listed, key=lambda each: not lists({"partitions": [each]}, place))
    names = [f"{each['topic']}-{each['partition']}" for each in listed[:_SHOWN_PARTITIONS]]
    more = f", … {len(listed) - len(names)} more" if len(listed) > len(names) else ""
    other = "" if record["producer_id"] == place["producer_id"] else f", producer {record['producer_id']}"
    return f"{{{', '.join(names)}{more}}}{other}"


def gone_batch(place: Row) -> Row:
    """Stands for the first batch of the open transaction if that is gone. A snapshot, or the leader's answer, shows its
    offset."""
    start, unknown = (
        place["start_offset"],
        ("is_control", "control_type", "max_timestamp_ms", "timestamp_type", "records_count"),
    )
    known = {
        "base_offset": start,
        "last_offset": start,
        "producer_epoch": place["producer_epoch"],
        "is_transactional": True,
    }
    return {**known, **dict.fromkeys(unknown)}


def _batch_events(
    place: Row, batches: Sequence[Row], stamps: Stamps, limits: Sequence[tuple[_Limit, _Limit]]
) -> Iterator[Event]:
    opened: int | None = None
    for batch, (lowest, highest) in zip(batches, limits, strict=True):
        first, last, is_marker = batch["base_offset"], batch["last_offset"], batch["is_control"]
        is_gone = not is_marker and batch["records_count"] is None  # see `gone_batch`
        if is_marker:
            opened = None
        elif batch["is_transactional"] and opened is None:
            opened = first
        is_open = opened is not None and opened == place["start_offset"]
        at = clock_ms(batch["max_timestamp_ms"])
        after, before = (at, at) if at is not None and is_stamped(batch) else stamps.around(first, last)
        low, high = (-NO_INSTANT_MS if after is None else after), (NO_INSTANT_MS if before is None else before)
        # Without a time, or with a wrong one, an open transaction was written as late as possible: nothing says
        # otherwise.
        ms = at if at is not None and low <= at <= high else high if is_open else low
        detail = "first batch, which is gone" if is_gone else ""
        if is_marker:
            epoch = batch["coordinator_epoch"]
            detail = f"epoch {batch['producer_epoch']}, coordinator epoch {'not printed' if epoch is None else epoch}"
        yield Event(
            log=f"{place['topic']}-{place['partition']}",
            offset=first,
            last_offset=last,
            event=f"{batch['control_type'] or 'transaction'} marker" if is_marker else "batch",
            detail=detail,
            at_ms=at,
            clock=BROKER if is_stamped(batch) else CLIENT,
            after_ms=after,
            before_ms=before,
            producer_id=place["producer_id"],
            producer_epoch=batch["producer_epoch"],
            state_after="closed" if opened is None else f"open from {opened}",
            mark=place["verdict"] if is_open else "",
            key=(*min(max((ms, DATA), lowest), highest), first),
            batch=None if is_marker or is_gone else batch,
        )


def _folded(events: Iterable[Event]) -> Iterator[Event]:
    """One event for batches of the same kind that follow each other."""
    for kind, group in groupby(events, _kind):
        alike = list(group)
        if kind is None:
            yield from alike
            continue
        batches = [event.batch for event in alike if event.batch is not None]
        first, last = batches[0]["base_sequence"], batches[-1]["last_sequence"]
        says = (
            f"{counted(sum(batch['records_count'] or 0 for batch in batches), 'record')}, epoch"
            f" {alike[0].producer_epoch}"
        )
        if first is not None:
            says += f", sequence {first}" if first == last else f", sequence {first}–{last}"
        says += "" if batches[0]["is_transactional"] else ", not transactional"
        yield replace(
            alike[0], last_offset=alike[-1].last_offset, before_ms=alike[-1].before_ms, detail=says, batch=None
        )


def _kind(event: Event) -> tuple[object, ...] | None:
    if event.batch is None:
        return None
    return event.producer_epoch, event.batch["is_transactional"], event.batch["timestamp_type"], event.state_after


# ---- The place of a batch among its coordinator's records. The protocol decides where clocks cannot


_ANY: Final[tuple[_Limit, _Limit]] = ((-NO_INSTANT_MS, DECISION), (NO_INSTANT_MS, DECISION))


def _limits(
    place: Row, batches: Sequence[Row], records: Sequence[Row], matches: Mapping[int, Numbered]
) -> list[tuple[_Limit, _Limit]]:
    """The smallest and the largest possible key of each batch of a producer, by offset."""
    decided = {
        (record["transactional_id"], record["transaction_number"]): record
        for record in records
        if record["state"] in PREPARED and record["timestamp_ms"] is not None
    }
    limits: list[tuple[_Limit, _Limit]] = []
    ended: Row | None = records[-1] if records else None  # the record that ends what is written before the next marker
    for batch in reversed(batches):
        if batch["is_control"]:
            number = matches.get(batch["base_offset"])
            ended = None if number is None else decided.get(number)
            limits.append(
                _ANY if ended is None else ((ended["timestamp_ms"], DATA), (_finished_ms(ended, records), DATA))
            )
        else:
            limits.append(_around_data(place, ended, records))
    return limits[::-1]


def _times_of(decision: Row, records: Sequence[Row]) -> Iterator[tuple[int, Row]]:
    """The records of the transaction that have a time, with it."""
    for record in records:
        if record["transaction_number"] == decision["transaction_number"] and record["timestamp_ms"] is not None:
            yield record["timestamp_ms"], record


def _finished_ms(decision: Row, records: Sequence[Row]) -> int:
    """When the transaction was finished, if the records show it."""
    return min(
        (at for at, record in _times_of(decision, records) if record["state"] in _COMPLETE), default=NO_INSTANT_MS
    )


def _around_data(place: Row, decision: Row | None, records: Sequence[Row]) -> tuple[_Limit, _Limit]:
    if decision is None or decision["state"] not in _ACTIVE or not lists(decision, place):
        return _ANY
    lowest, highest = _ANY
    added = [at for at, record in _times_of(decision, records) if record["state"] == "Ongoing" and lists(record, place)]
    if added:
        lowest = min(added), DATA
    if decision["state"] in PREPARED and decision["timestamp_ms"] is not None:
        highest = decision["timestamp_ms"], BEFORE_IT
    return lowest, highest


# ---- The timeline of a partition: where transactions begin, and their markers


def span_events(
    log: str,
    spans: Sequence[Row],
    owners: Mapping[int, str | None],
    started: Mapping[int, Key],
    exact_from: int | None,
    verdicts: Mapping[int, str],
    log_start: int = 0,
) -> Iterator[Event]:
    """Beginnings and markers of one partition, by offset, with the last stable offset after each.

    `spans` are rows of producer_spans, with None for times that no clock shows; `started` maps a first offset to the
    key behind its Ongoing record, `verdicts` to the verdict. Below `exact_from`, not all transactions are loaded, so
    the last stable offset is unknown; it is unknown everywhere if that is None. It is never below `log_start`: nobody
    knows where it was when nothing was open there.
    """
    ends = [(row[name], row, name == "first_offset") for name in ("first_offset", "marker_offset") for row in spans]
    ends = sorted((each for each in ends if each[0] is not None), key=lambda each: each[0])
    keys: list[Key] = []
    highest = NO_INSTANT_MS  # a client's time counts up to the next broker's time
    for offset, row, is_begin in reversed(ends):
        at, is_stamped = _time_of(row, is_begin)
        if at is not None and is_stamped:
            highest = min(highest, at)
            keys.append((at, DATA, offset))
        else:
            claimed = (min(at or 0, highest), DATA, offset)
            keys.append(claimed if is_stamped else max(claimed, started.get(offset, claimed)))
    opened: set[int] = set()
    for (offset, row, is_begin), key in zip(ends, accumulate(reversed(keys), max), strict=True):
        at, is_stamped = _time_of(row, is_begin)
        first, epoch = row["first_offset"], row["producer_epoch"]
        if is_begin:
            opened.add(first)
            event, detail = "begins", _data(row)
        else:
            opened.discard(first)
            epoch = row.get("marker_epoch", epoch)
            event = f"{row['marker_type']} marker" if row["marker_type"] else "marker"
            detail = "nothing was open" if first is None else f"ends the transaction from offset {first}"
        is_known = exact_from is not None and offset >= exact_from and (bool(opened) or offset >= log_start)
        yield Event(
            log=log,
            offset=offset,
            last_offset=row.get("last_offset", offset) if is_begin else offset,
            event=event,
            detail=detail,
            at_ms=at,
            clock=BROKER if is_stamped else CLIENT,
            after_ms=at if is_stamped else None,
            before_ms=at if is_stamped else None,
            transactional_id=owners.get(row["producer_id"]),
            producer_id=row["producer_id"],
            producer_epoch=epoch,
            last_stable_offset=max(min(opened, default=offset + 1), log_start) if is_known else None,
            mark=verdicts.get(offset, "") if is_begin else "",
            key=key,
        )


def _time_of(row: Row, is_begin: bool) -> tuple[int | None, bool]:
    """The time of the first record or of the marker of a span, and whether it is a broker's."""
    return (row["first_timestamp_ms"], row["is_broker_clock"]) if is_begin else (row["marker_ms"], True)


def _data(row: Row) -> str:
    if row.get("last_offset") is None:
        return "its first batch is gone"
    if row.get("records") is None:
        return ""
    seen = "" if row.get("is_start_exact", True) else "; its first batch was not captured"
    batches = "1 batch" if row["batches"] == 1 else f"{row['batches']} batches"
    return f"{counted(row['records'], 'record')} in {batches}, up to offset {row['last_offset']}{seen}"
