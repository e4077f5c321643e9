"""Events of partitions: the batches of a producer, or where transactions begin, and markers."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, groupby
from types import MappingProxyType
from typing import Final

from txnlib.ask.events import (
    BROKER,
    CLIENT,
    Course,
    Event,
    Numbered,
    coordinator_events,
    courses,
    in_order,
    leader_events,
    lists,
    number_of,
)
from txnlib.ask.queries import Row
from txnlib.core.display import counted
from txnlib.core.instants import NO_INSTANT_MS, clock_ms

#: Most partitions of a record to name.
SHOWN_PARTITIONS: Final = 6
#: The offset of a broker-stamped batch of a partition, and its time.
Stamp = tuple[int, int]


# ---- The story of one open transaction: the batches of its producer, and its coordinator's records


def story_events(
    place: Row,
    batches: Sequence[Row],
    stamps: Sequence[Stamp],
    records: Sequence[Row],
    changes: Sequence[Row] = (),
    matches: Mapping[int, Numbered] = MappingProxyType({}),
) -> list[Event]:
    """The story of `place`, a row of open_transactions: its producer's batches there, and the records of its
    transactional id.

    `batches` are rows of record_batches by offset, `stamps` those that brokers stamped, of any producer. `records` are
    rows of coordinator_states by offset, each with the number of records that were `left_out` before it, `changes` rows
    of `leader_changes`. `matches`: the transaction of each marker, and of what is open, by its offset.
    """
    written = _batch_events(place, batches, stamps, courses(records, place), matches)
    at_coordinator = coordinator_events(records, lambda record: _listed(place, record))
    return list(_folded(in_order(leader_events(changes), at_coordinator, written)))


def is_stamped(batch: Row) -> bool:
    """Whether the timestamp of the batch is a broker's."""
    return bool(batch["is_control"]) or batch["timestamp_type"] == "LOG_APPEND_TIME"


def _listed(place: Row, record: Row) -> str:
    """The partitions of a record. If there are too many to list, the partition of the story comes first."""
    listed = record["partitions"] or []
    if len(listed) > SHOWN_PARTITIONS:
        listed = sorted(listed, key=lambda each: not lists({"partitions": [each]}, place))
    names = [f"{each['topic']}-{each['partition']}" for each in listed[:SHOWN_PARTITIONS]]
    more = f", … {len(listed) - len(names)} more" if len(listed) > len(names) else ""
    other = "" if record["producer_id"] == place["producer_id"] else f", producer {record['producer_id']}"
    return f"{{{', '.join(names)}{more}}}{other}"


def gone_batch(place: Row) -> Row:
    """Stands for the first batch of the open transaction if that is gone. A snapshot, or the leader's answer, shows its
    offset."""
    start = place["start_offset"]
    unknown = ("is_control", "control_type", "max_timestamp_ms", "timestamp_type", "records_count")
    known = {"base_offset": start, "last_offset": start, "producer_epoch": place["producer_epoch"]}
    return {**known, "is_transactional": True, **dict.fromkeys(unknown)}


def _batch_events(
    place: Row,
    batches: Sequence[Row],
    stamps: Sequence[Stamp],
    known: Mapping[Numbered, Course],
    matches: Mapping[int, Numbered],
) -> Iterator[Event]:
    ends = [batch["base_offset"] for batch in batches if batch["is_control"]]
    stamped = [offset for offset, _ in stamps]
    # The newest time at a lower offset, and the oldest at a higher one.
    newest = [None, *accumulate((ms for _, ms in stamps), max)]
    oldest = [None, *accumulate((ms for _, ms in reversed(stamps)), min)][::-1]
    opened: int | None = None
    for batch in batches:
        first, last, is_marker = batch["base_offset"], batch["last_offset"], batch["is_control"]
        is_gone = not is_marker and batch["records_count"] is None  # see `gone_batch`
        if is_marker:
            opened = None
        elif batch["is_transactional"] and opened is None:
            opened = first
        is_open = opened is not None and opened == place["start_offset"]
        at = clock_ms(batch["max_timestamp_ms"])
        after, before = (
            (at, at)
            if at is not None and is_stamped(batch)
            else (newest[bisect_left(stamped, first)], oldest[bisect_right(stamped, last)])
        )
        low, high = (-NO_INSTANT_MS if after is None else after), (NO_INSTANT_MS if before is None else before)
        # A batch of the open transaction without a believable time counts as written as late as possible: nothing shows
        # that it was earlier.
        ms = at if at is not None and low <= at <= high else high if is_open else low
        detail = "first batch, which is gone" if is_gone else ""
        if is_marker:
            epoch = batch["coordinator_epoch"]
            detail = f"epoch {batch['producer_epoch']}, coordinator epoch {'not printed' if epoch is None else epoch}"
        end = bisect_left(ends, first)
        number = matches.get(place["start_offset"] if is_open else ends[end] if end < len(ends) else first)
        course = Course() if number is None else known.get(number, Course())
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
            key=course.place(ms, first, is_marker=bool(is_marker)),
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
        records = counted(sum(batch["records_count"] or 0 for batch in batches), "record")
        says = f"{records}, epoch {alike[0].producer_epoch}"
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


# ---- The history of a partition: where transactions begin, and their markers


def span_events(
    log: str,
    spans: Sequence[Row],
    known: Mapping[Numbered, Course] = MappingProxyType({}),
    exact_from: int | None = None,
    verdicts: Mapping[int, str] = MappingProxyType({}),
    log_start: int = 0,
) -> Iterator[Event]:
    """Beginnings and markers of one partition, by offset, with the last stable offset after each.

    `spans` are rows of producer_spans, each with the transactional id and the number of the transaction that the audit
    matched with it; they have None for times that no clock shows. `verdicts` are by first offset. Below `exact_from`,
    not all transactions are loaded, so the last stable offset is unknown; it is unknown everywhere if that is None. It
    is never below `log_start`: nobody knows where it was when nothing was open there.
    """
    ends = [(row[name], row, name == "first_offset") for name in ("first_offset", "marker_offset") for row in spans]
    ends = sorted((each for each in ends if each[0] is not None), key=lambda each: each[0])
    # A client's time counts up to the next broker's time.
    highest = NO_INSTANT_MS
    latest: list[int] = []
    for _, row, is_begin in reversed(ends):
        at, is_brokers = _time_of(row, is_begin)
        if at is not None and is_brokers:
            highest = min(highest, at)
        latest.append(highest)
    opened: set[int] = set()
    for (offset, row, is_begin), high in zip(ends, reversed(latest), strict=True):
        at, is_brokers = _time_of(row, is_begin)
        first, epoch = row["first_offset"], row["producer_epoch"]
        if is_begin:
            opened.add(first)
            event, detail = "begins", _data(row)
        else:
            opened.discard(first)
            epoch = row.get("marker_epoch", epoch)
            event = f"{row['marker_type']} marker" if row["marker_type"] else "marker"
            detail = "nothing was open" if first is None else f"ends the transaction from offset {first}"
        course = known.get(number_of(row), Course())
        is_known = exact_from is not None and offset >= exact_from and (bool(opened) or offset >= log_start)
        yield Event(
            log=log,
            offset=offset,
            last_offset=row.get("last_offset", offset) if is_begin else offset,
            event=event,
            detail=detail,
            at_ms=at,
            clock=BROKER if is_brokers else CLIENT,
            after_ms=at if is_brokers else None,
            before_ms=at if is_brokers else None,
            transactional_id=row["transactional_id"],
            producer_id=row["producer_id"],
            producer_epoch=epoch,
            last_stable_offset=max(min(opened, default=offset + 1), log_start) if is_known else None,
            mark=verdicts.get(offset, "") if is_begin else "",
            key=course.place(min(at or 0, high), offset, is_marker=not is_begin),
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
