"""The history of a partition or of a transactional id: its events from both logs, in order of time."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from txnlib.ask.command_output import CommandOutput
from txnlib.ask.episode import CLIENT, DATA, Episode, Event, Key, in_order, the_day
from txnlib.ask.events import coordinator_events, leader_events, lists, span_events
from txnlib.ask.grid import fold
from txnlib.ask.log_rows import RECORD, Numbered, leader_changes, stored_matches
from txnlib.ask.report import ahead
from txnlib.ask.rows import KEY, Filter, Row, StoredRun, column_names
from txnlib.ask.subject import equal, holders_of, known_subject
from txnlib.ask.verdict_names import name_of
from txnlib.core.display import counted, duration, elapsed, precise_time, printable, utc_time
from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.schema import shown
from txnlib.errors import UsageError

#: Number of transactions of a partition to load for the last stable offset, and number to show of those that ended
#: before the blocking one.
LOADED, SHOWN_BEFORE = 2_000, 2
#: Number of coordinator records to show per period, and how long (ms) a period begins before its first marker.
RECORDS, MARGIN_MS = 1_000, 60_000
#: Number of open transactions to show of one partition or id, lowest start first.
OPEN: Final = 20

_SPAN: Final = column_names(
    "producer_id producer_epoch first_offset last_offset is_start_exact marker_offset marker_type marker_epoch"
    " marker_ms batches records first_timestamp_ms is_broker_clock"
)
_OPEN: Final = (*KEY, "verdict", "reason", "holds")
#: Columns with times that a client may have set.
_TIMES: Final = {"marker_ms", "first_timestamp_ms", "timestamp_ms"}


@dataclass(frozen=True, slots=True)
class Timeline:
    """What a history leaves out, and where its partition is at the instant of the run."""

    #: The partition, such as orders-0, or the transactional id.
    subject: str
    #: Number of earlier transactions, and of later open transactions, that are left out.
    earlier: int = 0
    later_open: int = 0
    #: Row of `partitions`: the offsets of the partition at the instant of the run; None for a transactional id.
    partition: Row | None = None
    is_of_partition: bool = False

    def output(self, history: Episode[Timeline], /) -> CommandOutput:
        """One row per event. For people, the event, its place and its time are a cell each."""
        day = the_day(precise_time(event.at_ms) for event in history.events if event.at_ms is not None)
        when = "when" if day is None else f"when ({day})"
        rows = [row | _cells(event, when, day) for event, row in zip(history.events, history.rows, strict=True)]
        has_stable_offset = any(event.last_stable_offset is not None for event in history.events)
        names = (
            when,
            "where",
            "what",
            *(("lso", "transactional_id") if has_stable_offset else ()),
            "producer",
            "detail",
        )
        who = "transactional_id" if has_stable_offset else "producer"
        kept = (when, "where", "what", who, "detail")
        return CommandOutput(
            COLUMNS, rows, shown=names, kept=kept, head=_head(history), tail=partial(fold, _tail(history))
        )


def timeline_of(run: StoredRun, subject: Sequence[str], last: int) -> Episode[Timeline]:
    """The timeline of the partition, or of the transactional id, that words name. `last`: number of ended transactions
    to show.

    Raises UsageError if the run contains no such partition or id.
    """
    if last < 1:
        raise UsageError(f"--last {last}: expected 1 or more")
    match known_subject(run, subject):
        case {"topic": topic, "partition": partition}:
            return timeline_of_partition(run, topic, partition, last)
        case {"transactional_id": transactional_id}:
            return timeline_of_id(run, transactional_id, last)
        case {"producer_id": producer_id} if owner := _owners(run, {producer_id}).get(producer_id):
            return timeline_of_id(run, owner, last)
    raise UsageError(f"no transactional id is known of producer {' '.join(subject)}")


def timeline_of_partition(run: StoredRun, topic: str, partition: int, last: int) -> Episode[Timeline]:
    """The open transactions of a partition, its newest ended ones, and those that ended just before the oldest open
    one."""
    here = equal(topic=topic, partition=partition)
    is_open: list[Filter] = [*here, ("marker_offset", "IS", None), ("first_offset", "IS NOT", None)]
    opened = _timed_rows(run, "producer_spans", _SPAN, is_open, order='"first_offset"', limit=OPEN)
    is_ended: list[Filter] = [*here, ("marker_offset", "IS NOT", None)]
    ended = _timed_rows(run, "producer_spans", _SPAN, is_ended, order='"marker_offset" DESC', limit=LOADED)
    exact_from = ended[-1]["marker_offset"] if len(ended) == LOADED else 0
    # Of the older ones, the last that ended before the oldest open one began.
    start = opened[0]["first_offset"] if opened else -1
    before = [row for row in ended[last:] if row["marker_offset"] < start][:SHOWN_BEFORE]
    chosen = [*before, *opened, *ended[:last]]
    owners = _owners(run, {row["producer_id"] for row in chosen})
    records = touching(_records(run, set(owners.values()), _periods(opened, ended[:last])), topic, partition)
    ends = {row["marker_offset"] for row in chosen} - {None}
    begins = {row["first_offset"] for row in chosen if row["marker_offset"] is None}
    matches = stored_matches(run, topic, partition, ends, begins)
    records = [row for row in records if _number(row) in matches.values()]
    offsets = {row[name] for row in chosen for name in ("first_offset", "marker_offset")} - {None}
    marked = run.rows("open_transactions", _OPEN, here)
    verdicts = {row["start_offset"]: name_of(row) for row in marked}
    offsets_now = next(iter(run.rows("partitions", shown("timeline: partition"), here, limit=1)), None)
    at_coordinator = record_events(records)
    starts = _behind(started(chosen, matches, records), at_coordinator)
    log_start = (offsets_now and offsets_now["log_start_offset"]) or 0
    of_log = span_events(f"{topic}-{partition}", [*opened, *ended], owners, starts, exact_from, verdicts, log_start)
    events = [event for event in of_log if event.offset in offsets]
    elections = leader_events(leader_changes(run, topic, partition, _first_ms(events)))
    shown_ended = sum(row["marker_offset"] is not None for row in chosen)
    history = Timeline(
        f"{topic}-{partition}",
        earlier=(run.number("producer_spans", "count(*)", is_ended) or 0) - shown_ended,
        later_open=len(verdicts) - len(opened) if len(verdicts) > OPEN else 0,
        partition=offsets_now,
        is_of_partition=True,
    )
    in_time = in_order(elections, at_coordinator, _behind_others(run, marked, events))
    return Episode(run.cluster, run.run_id, run.as_of_ms, in_time, history)


def timeline_of_id(run: StoredRun, transactional_id: str, last: int) -> Episode[Timeline]:
    """The newest transactions of an id, on all their partitions, and its open transactions."""
    own: list[Filter] = [("transactional_id", "=", transactional_id)]
    columns = ("producer_id", "producer_epoch", "transaction_number", "first_record_offset", "markers")
    newest = run.rows("transactions", columns, own, order='"transaction_number" DESC', limit=last)
    since: list[Filter] = [("offset", ">=", newest[-1]["first_record_offset"])] if newest else []
    records = _timed_rows(run, "coordinator_states", RECORD, [*own, *since], order='"offset" DESC', limit=RECORDS)[::-1]
    logs = _ended_spans(newest, records)
    verdicts: dict[str, dict[int, str]] = {}
    opened = run.rows("open_transactions", _OPEN, own, order='"topic", "partition", "start_offset"', limit=OPEN)
    for row in opened:
        where: list[Filter] = [(column, "=", row[column]) for column in ("topic", "partition", "producer_id")]
        spans = _timed_rows(run, "producer_spans", _SPAN, [*where, ("first_offset", "=", row["start_offset"])], limit=1)
        log = f"{row['topic']}-{row['partition']}"
        logs.setdefault(log, ([], {}))[0].extend(spans)
        verdicts.setdefault(log, {})[row["start_offset"]] = name_of(row)
    events = at_coordinator = record_events(records)
    for log, (spans, starts) in logs.items():
        owners = {row["producer_id"]: transactional_id for row in spans}
        of_log = span_events(log, spans, owners, _behind(starts, at_coordinator), None, verdicts.get(log, {}))
        events = [*events, *of_log]
    places = {(TRANSACTION_STATE_TOPIC, row["coordinator_partition"]) for row in records}
    places |= {(row["topic"], row["partition"]) for row in opened}
    since_ms = _first_ms(events)
    elections = leader_events([change for place in sorted(places) for change in leader_changes(run, *place, since_ms)])
    history = Timeline(transactional_id, earlier=(run.number("transactions", "count(*)", own) or 0) - len(newest))
    in_time = in_order(elections, _behind_others(run, opened, events))
    return Episode(run.cluster, run.run_id, run.as_of_ms, in_time, history)


def _behind_others(run: StoredRun, opened: Sequence[Row], events: Iterable[Event]) -> Iterator[Event]:
    """The events; where an open transaction begins that does not hold its partition, with the one that does."""
    holders = holders_of(run, opened)
    waiting = {
        (f"{row['topic']}-{row['partition']}", row["start_offset"]): holders[row["topic"], row["partition"]]
        for row in opened
        if row["holds"] is False and (row["topic"], row["partition"]) in holders
    }
    for event in events:
        holder = waiting.get((event.log, event.offset)) if event.mark else None
        yield event if holder is None else replace(event, detail=f"{event.detail}; waits behind {ahead(holder)}")


def _behind(starts: Mapping[int, int], at_coordinator: Sequence[Event]) -> dict[int, Key]:
    """First offset -> the key behind the Ongoing record of that time."""
    ongoing = {event.at_ms: event.key for event in in_order(at_coordinator) if event.event == "Ongoing"}
    return {offset: max((at, DATA, offset), ongoing[at]) for offset, at in starts.items()}


def _first_ms(events: Sequence[Event]) -> int | None:
    """The earliest time on a broker's clock among events; None if there is none."""
    return min((event.after_ms for event in events if event.after_ms is not None), default=None)


def _ended_spans(transactions: Sequence[Row], records: Sequence[Row]) -> dict[str, tuple[list[Row], dict[int, int]]]:
    """Log -> the spans that a marker ended there, and first offset -> when the coordinator opened the transaction."""
    ongoing = {row["transaction_number"]: row["timestamp_ms"] for row in records[::-1] if row["state"] == "Ongoing"}
    logs: dict[str, tuple[list[Row], dict[int, int]]] = {}
    for transaction in transactions:
        for marker in transaction["markers"] or ():
            if marker["marker_offset"] is None:
                continue  # open transactions of the partition are loaded apart, whether or not they belong to this one
            spans, starts = logs.setdefault(f"{marker['topic']}-{marker['partition']}", ([], {}))
            spans.append(_timed({**transaction, **marker}))
            if (at_ms := ongoing.get(transaction["transaction_number"])) is not None and marker[
                "first_offset"
            ] is not None:
                starts[marker["first_offset"]] = at_ms
    return logs


def _timed_rows(
    run: StoredRun,
    name: str,
    columns: Sequence[str],
    where: Sequence[Filter],
    *,
    order: str = "",
    limit: int | None = None,
) -> list[Row]:
    return [_timed(row) for row in run.rows(name, columns, where, order=order, limit=limit)]


def _timed(row: Row) -> Row:
    """The row with None for times that no clock shows: a client may have set any."""
    return row | {name: clock_ms(row[name]) for name in _TIMES & row.keys()}


def _owners(run: StoredRun, producers: Collection[int]) -> dict[int, str]:
    """The transactional id of each producer id; the last one, if there were several."""
    if not producers:
        return {}
    columns = ("producer_id", "transactional_id")
    rows = run.rows("producer_id_owners", columns, [("producer_id", "IN", producers)], order='"last_record_offset"')
    return {row["producer_id"]: row["transactional_id"] for row in rows}


def _periods(opened: Sequence[Row], ended: Sequence[Row]) -> list[tuple[int, int]]:
    """Periods (ms) around the beginning of open transactions, if known, and from the first of the newest markers on."""
    first = [row["marker_ms"] for row in ended if row["marker_ms"] is not None]
    begins = [row["first_timestamp_ms"] for row in opened if row["first_timestamp_ms"] is not None]
    around = [(at - MARGIN_MS, at + MARGIN_MS) for at in begins]
    newest = (min(first) - MARGIN_MS, 1 << 62) if first else (max(begins, default=0), 1 << 62)
    apart: list[tuple[int, int]] = []
    for low, high in sorted([*around, newest]):
        if apart and low <= apart[-1][1]:
            apart[-1] = apart[-1][0], max(high, apart[-1][1])
        else:
            apart.append((low, high))
    return apart


def _records(run: StoredRun, ids: Collection[str], periods: Sequence[tuple[int, int]]) -> list[Row]:
    """The coordinator records of the ids in these periods, by offset; only the last ones of each period."""
    if not ids:
        return []
    records: dict[tuple[int, int, str], Row] = {}
    for low, high in periods:
        where: list[Filter] = [
            ("transactional_id", "IN", ids),
            ("timestamp_ms", ">=", low),
            ("timestamp_ms", "<=", high),
        ]
        for row in _timed_rows(run, "coordinator_states", RECORD, where, order='"timestamp_ms" DESC', limit=RECORDS):
            records[row["coordinator_partition"], row["offset"], row["transactional_id"]] = row
    return [records[key] for key in sorted(records)]


# ---- Which records belong to the transactions of a partition


def touching(records: Sequence[Row], topic: str, partition: int) -> list[Row]:
    """Records of the transactions that list a partition, with only one Ongoing each: when the partition was added."""
    place = {"topic": topic, "partition": partition}
    listing = [row for row in records if lists(row, place)]
    numbers = {_number(row) for row in listing if row["transaction_number"] is not None}
    kept, added = [], set()
    for row in records:
        if (number := _number(row)) not in numbers:
            continue
        if row["state"] == "Ongoing":
            if not lists(row, place) or number in added:
                continue
            added.add(number)
        kept.append(row)
    return kept


def _number(record: Row) -> Numbered:
    """What identifies the transaction of a coordinator's record."""
    return record["transactional_id"], record["transaction_number"]


def started(spans: Sequence[Row], matches: Mapping[int, Numbered], records: Sequence[Row]) -> dict[int, int]:
    """First offset -> when the coordinator opened the transaction, if the audit knows which one it is."""
    opened: dict[Numbered, int] = {}
    for row in records:
        if row["state"] == "Ongoing" and row["timestamp_ms"] is not None:
            opened[_number(row)] = min(row["timestamp_ms"], opened.get(_number(row), row["timestamp_ms"]))
    numbers = {row["first_offset"]: matches.get(_end(row)) for row in spans if row["first_offset"] is not None}
    return {offset: opened[number] for offset, number in numbers.items() if number is not None and number in opened}


def _end(span: Row) -> int:
    """The offset by which a span is matched: of its marker, or of its start if it is open."""
    return int(span["first_offset"] if span["marker_offset"] is None else span["marker_offset"])


def record_events(records: Sequence[Row]) -> list[Event]:
    """Events of rows of coordinator_states that have a time, each with the time since its transaction began."""
    began: dict[tuple[str, int], int] = {}

    def detail(row: Row) -> str:
        at, places = (
            row["timestamp_ms"],
            ", ".join(f"{each['topic']}-{each['partition']}" for each in row["partitions"] or ()),
        )
        if row["state"] == "Ongoing":
            began.setdefault(_number(row), at)
        elif _number(row) in began and row["transaction_number"] is not None:
            lasted = at - began[_number(row)]
            since = f"{lasted} ms" if 0 <= lasted < 1_000 else duration(lasted)
            return f"{since} after its start" + (f": {places}" if places else "")
        return places

    return list(coordinator_events([row for row in records if row["timestamp_ms"] is not None], detail))


# ---- A timeline as text: its events in a table, and where the partition is at the instant of the run


#: The columns for programs.
COLUMNS: Final = column_names(
    "at_ms clock log offset event transactional_id producer_id producer_epoch last_stable_offset detail"
)


def _cells(event: Event, when: str, day: str | None) -> Row:
    time = "not known" if event.at_ms is None else precise_time(event.at_ms).removeprefix(f"{day} ")
    return {
        when: f"{time} ?" if event.clock == CLIENT else time,
        "where": f"{event.log} @{event.offset}",
        "lso": event.last_stable_offset,
        "producer": None if event.producer_id is None else f"{event.producer_id} epoch {event.producer_epoch}",
        "what": f"{event.event}  <-- {event.mark}" if event.mark else event.event,
    }


def _head(history: Episode[Timeline]) -> str:
    has_client_times = any(event.clock == CLIENT for event in history.events)
    clocks = "times are brokers'; with ? a client's" if has_client_times else "times are brokers'"
    cluster = f"cluster {printable(history.cluster)}, as of {utc_time(history.as_of_ms)}"
    return f"{printable(history.outcome.subject)}   {cluster}   ({clocks})\n\n"


def _tail(history: Episode[Timeline]) -> str:
    timeline = history.outcome
    if not timeline.is_of_partition:
        earlier = timeline.earlier
        return f"\nleft out: {counted(earlier, 'earlier transaction')} (--last N shows more)\n" if earlier else ""
    left_out = []
    if timeline.earlier:
        left_out.append(f"{counted(timeline.earlier, 'transaction')} that ended before (--last N shows more)")
    if timeline.later_open:
        left_out.append(f"{counted(timeline.later_open, 'open transaction')} beginning behind those shown")
    return (f"\nleft out: {'; '.join(left_out)}\n" if left_out else "\n") + _offsets(
        timeline.partition, history.as_of_ms
    )


def _offsets(row: Row | None, as_of_ms: int) -> str:
    """The offsets of the partition at the instant of the run."""
    if row is None:
        return ""
    line = f"at {utc_time(as_of_ms)}: last stable offset {row['last_stable_offset']}"
    end = f"the high watermark {row['high_watermark']}"
    if row["blocking_producer_id"] is None:
        return f"{line}, {end}; {'what holds it is not known' if row['lag_offsets'] else 'nothing holds it'}\n"
    age = "" if row["lag_ms"] is None else f"; its record is {elapsed(row['lag_ms'])} old by its own time"
    return (
        f"{line}, {counted(row['lag_offsets'], 'offset')} behind {end}{age}; held by {ahead(row)},"
        f" {row['blocking_verdict']}\n"
    )


def answer(run: StoredRun, options: Namespace) -> CommandOutput:
    """The events of a partition or of a transactional id. Raises UsageError if the run contains neither."""
    return timeline_of(run, options.where, options.last).output()
