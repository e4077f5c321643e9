"""The history of a partition or of a transactional id: its events from both logs, in order of time."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from txnlib.ask.command_output import CommandOutput
from txnlib.ask.log_rows import leader_changes
from txnlib.ask.report_entries import named_producer
from txnlib.ask.rows import Filter, Row, StoredRun
from txnlib.ask.story import RECORD
from txnlib.ask.story_text import clock
from txnlib.ask.timeline_events import (
    CLIENT,
    COLUMNS,
    Event,
    coordinator_events,
    decisions,
    in_order,
    metadata_events,
    partition_events,
    started,
    touching,
)
from txnlib.core.display import counted, duration, printable, utc_time
from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.errors import UsageError

#: Number of transactions of a partition to load for the last stable offset, and number to show of those that ended before the
#: blocking one.
LOADED, SHOWN_BEFORE = 2_000, 2
#: Number of coordinator records to show per period, and how long (ms) a period begins before its first marker.
RECORDS, MARGIN_MS = 1_000, 60_000
#: Number of open transactions to show of one partition or id, lowest start first.
OPEN: Final = 20

_SPAN: Final = (
    "producer_id",
    "producer_epoch",
    "first_offset",
    "last_offset",
    "is_start_exact",
    "marker_offset",
    "marker_type",
    "marker_epoch",
    "marker_ms",
    "batches",
    "records",
    "first_timestamp_ms",
    "is_broker_clock",
)
#: The offsets of a partition at the instant of the run.
_PARTITION: Final = (
    "last_stable_offset",
    "high_watermark",
    "lag_offsets",
    "lag_ms",
    "blocking_producer_id",
    "blocking_transactional_id",
    "blocking_verdict",
)
#: Columns with times that a client may have set.
_TIMES: Final = {"marker_ms", "first_timestamp_ms", "timestamp_ms"}


@dataclass(frozen=True, slots=True)
class Timeline:
    """The events of a partition or of a transactional id."""

    #: The partition, such as orders-0, or the transactional id.
    subject: str
    cluster: str
    as_of_ms: int
    events: Sequence[Event]
    #: Log and first offset of an open transaction -> its verdict.
    verdicts: Mapping[tuple[str, int], str] = field(default_factory=dict)
    #: Number of earlier transactions, and of later open transactions, that are left out.
    earlier: int = 0
    later_open: int = 0
    #: Row of `partitions`: the offsets of the partition at the instant of the run; None for a transactional id.
    partition: Row | None = None
    is_of_partition: bool = False


def timeline_of(run: StoredRun, subject: Sequence[str], last: int) -> Timeline:
    """The timeline of a topic and partition number, or of one transactional id. `last`: number of ended transactions to show.

    Raises UsageError for any other subject, and if the run contains no such partition or id.
    """
    if last < 1:
        raise UsageError(f"--last {last}: expected 1 or more")
    match subject:
        case [transactional_id]:
            return timeline_of_id(run, transactional_id, last)
        case [topic, partition] if partition.isdecimal():
            return timeline_of_partition(run, topic, int(partition), last)
    raise UsageError("timeline needs a topic and a partition number, or one transactional id")


def timeline_of_partition(run: StoredRun, topic: str, partition: int, last: int) -> Timeline:
    """The open transactions of a partition, its newest ended ones, and those that ended just before the oldest open one."""
    here: list[Filter] = [("topic", "=", topic), ("partition", "=", partition)]
    if not run.number("coverage", "count(*)", [*here, ("status", "<>", "MISSING")]):
        raise UsageError(f"no copy of {topic}-{partition} was audited in this run")
    is_open: list[Filter] = [("marker_offset", "IS", None), ("first_offset", "IS NOT", None)]
    opened = _timed_rows(run, "producer_spans", _SPAN, [*here, *is_open], order='"first_offset"', limit=OPEN)
    is_ended: list[Filter] = [*here, ("marker_offset", "IS NOT", None)]
    ended = _timed_rows(run, "producer_spans", _SPAN, is_ended, order='"marker_offset" DESC', limit=LOADED)
    exact_from = ended[-1]["marker_offset"] if len(ended) == LOADED else 0
    shown = [*_before(opened, ended[last:]), *opened, *ended[:last]]
    owners = _owners(run, {row["producer_id"] for row in shown})
    records = touching(_records(run, set(owners.values()), _periods(opened, ended[:last])), topic, partition)
    decided = decisions(shown, owners, records)
    records = [row for row in records if (row["transactional_id"], row["transaction_number"]) in decided]
    log = f"{topic}-{partition}"
    offsets = {row[name] for row in shown for name in ("first_offset", "marker_offset")} - {None}
    of_log = partition_events(log, [*opened, *ended], owners, started(shown, owners, records), exact_from)
    verdicts = run.rows("open_transactions", ("start_offset", "verdict"), here)
    shown_ended = sum(row["marker_offset"] is not None for row in shown)
    shown_events = [event for event in of_log if event.offset in offsets]
    elections = metadata_events(leader_changes(run, topic, partition, _first_ms(shown_events)))
    offsets_now = run.rows("partitions", _PARTITION, here, limit=1)
    return Timeline(
        log,
        run.cluster,
        run.as_of_ms,
        in_order(shown_events, coordinator_events(records), elections),
        {(log, row["start_offset"]): row["verdict"] for row in verdicts},
        earlier=(run.number("producer_spans", "count(*)", is_ended) or 0) - shown_ended,
        later_open=len(verdicts) - len(opened) if len(verdicts) > OPEN else 0,
        partition=offsets_now[0] if offsets_now else None,
        is_of_partition=True,
    )


def timeline_of_id(run: StoredRun, transactional_id: str, last: int) -> Timeline:
    """The newest transactions of an id, on all their partitions, and its open transactions."""
    own: list[Filter] = [("transactional_id", "=", transactional_id)]
    columns = ("producer_id", "producer_epoch", "transaction_number", "first_record_offset", "markers")
    newest = run.rows("transactions", columns, own, order='"transaction_number" DESC', limit=last)
    since: list[Filter] = [("offset", ">=", newest[-1]["first_record_offset"])] if newest else []
    records = _timed_rows(run, "coordinator_states", RECORD, [*own, *since], order='"offset" DESC', limit=RECORDS)[::-1]
    if not records:
        raise UsageError(f"no captured coordinator has a record of the transactional id {transactional_id!r}")
    logs = _ended_spans(newest, records)
    columns = ("topic", "partition", "producer_id", "start_offset", "verdict")
    opened = run.rows("open_transactions", columns, own, order='"topic", "partition", "start_offset"', limit=OPEN)
    for row in opened:
        where: list[Filter] = [(column, "=", row[column]) for column in ("topic", "partition", "producer_id")]
        spans = _timed_rows(run, "producer_spans", _SPAN, [*where, ("first_offset", "=", row["start_offset"])], limit=1)
        logs.setdefault(f"{row['topic']}-{row['partition']}", ([], {}))[0].extend(spans)
    of_logs = [
        [replace(event, last_stable_offset=None) for event in partition_events(log, spans, {}, starts, 0)]
        for log, (spans, starts) in logs.items()
    ]
    own_events = [[replace(event, transactional_id=transactional_id) for event in log] for log in of_logs]
    own_events.append(coordinator_events(records))
    places = {(TRANSACTION_STATE_TOPIC, row["coordinator_partition"]) for row in records}
    places |= {(row["topic"], row["partition"]) for row in opened}
    since_ms = _first_ms([event for log in own_events for event in log])
    elections = [metadata_events(leader_changes(run, *place, since_ms)) for place in sorted(places)]
    return Timeline(
        transactional_id,
        run.cluster,
        run.as_of_ms,
        in_order(*own_events, *elections),
        {(f"{row['topic']}-{row['partition']}", row["start_offset"]): row["verdict"] for row in opened},
        earlier=(run.number("transactions", "count(*)", own) or 0) - len(newest),
    )


def _first_ms(events: Sequence[Event]) -> int | None:
    """The earliest time on a broker's clock among events; None if there is none."""
    return min((event.at_ms for event in events if event.at_ms is not None and event.clock != CLIENT), default=None)


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
            if (at_ms := ongoing.get(transaction["transaction_number"])) is not None and marker["first_offset"] is not None:
                starts[marker["first_offset"]] = at_ms
    return logs


def _timed_rows(
    run: StoredRun, name: str, columns: Sequence[str], where: Sequence[Filter], *, order: str = "", limit: int | None = None
) -> list[Row]:
    return [_timed(row) for row in run.rows(name, columns, where, order=order, limit=limit)]


def _timed(row: Row) -> Row:
    """The row with None for times that no clock shows: a client may have set any."""
    return row | {name: clock_ms(row[name]) for name in _TIMES & row.keys()}


def _before(opened: Sequence[Row], older: Sequence[Row]) -> list[Row]:
    """The last transactions that ended before the oldest open one began, unless they are among the newest."""
    if not opened:
        return []
    start = opened[0]["first_offset"]
    return [row for row in older if row["marker_offset"] < start][:SHOWN_BEFORE]


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
        where: list[Filter] = [("transactional_id", "IN", ids), ("timestamp_ms", ">=", low), ("timestamp_ms", "<=", high)]
        for row in _timed_rows(run, "coordinator_states", RECORD, where, order='"timestamp_ms" DESC', limit=RECORDS):
            records[row["coordinator_partition"], row["offset"], row["transactional_id"]] = row
    return [records[key] for key in sorted(records)]


# ---- A timeline as text: its events in a table, and where the partition is at the instant of the run


def timeline_output(timeline: Timeline) -> CommandOutput:
    """One row per event. For people, the event, its place and its time are a cell each."""
    day = _day(timeline)
    when = "when" if day is None else f"when ({day})"
    rows = [event.row() | _cells(event, timeline, when, day) for event in timeline.events]
    has_stable_offset = any(event.last_stable_offset is not None for event in timeline.events)
    shown = (when, "where", "what", *(("lso", "transactional_id") if has_stable_offset else ()), "producer", "detail")
    return CommandOutput(COLUMNS, rows, shown=shown, head=_head(timeline), tail=_tail(timeline))


def _day(timeline: Timeline) -> str | None:
    """The day, if all events are of the same one."""
    days = {clock(event.at_ms)[:10] for event in timeline.events if event.at_ms is not None}
    return days.pop() if len(days) == 1 else None


def _cells(event: Event, timeline: Timeline, when: str, day: str | None) -> Row:
    time = "not known" if event.at_ms is None else clock(event.at_ms).removeprefix(f"{day} ")
    verdict = timeline.verdicts.get((event.log, event.offset)) if event.event == "begins" else None
    return {
        when: f"{time} ?" if event.clock == CLIENT else time,
        "where": f"{event.log} @{event.offset}",
        "lso": event.last_stable_offset,
        "producer": None if event.producer_id is None else f"{event.producer_id} epoch {event.producer_epoch}",
        "what": event.event if verdict is None else f"{event.event}  <-- {verdict}",
    }


def _head(timeline: Timeline) -> str:
    has_client_times = any(event.clock == CLIENT for event in timeline.events)
    clocks = "times are brokers'; with ? a client's" if has_client_times else "times are brokers'"
    cluster = f"cluster {printable(timeline.cluster)}, as of {utc_time(timeline.as_of_ms)}"
    return f"{printable(timeline.subject)}   {cluster}   ({clocks})\n\n"


def _tail(timeline: Timeline) -> str:
    if not timeline.is_of_partition:
        earlier = timeline.earlier
        return f"\nleft out: {earlier} earlier transactions (--last N shows more)\n" if earlier else ""
    left_out = []
    if timeline.earlier:
        left_out.append(f"{timeline.earlier} transactions that ended before (--last N shows more)")
    if timeline.later_open:
        left_out.append(f"{timeline.later_open} open transactions that begin behind those shown")
    return (f"\nleft out: {'; '.join(left_out)}\n" if left_out else "\n") + _offsets(timeline)


def _offsets(timeline: Timeline) -> str:
    """The offsets of the partition at the instant of the run."""
    row = timeline.partition
    if row is None:
        return ""
    offsets = f"last stable offset {row['last_stable_offset']}, high watermark {row['high_watermark']}"
    line = f"at {utc_time(timeline.as_of_ms)}: {offsets}"
    if row["blocking_producer_id"] is None:
        return f"{line}, nothing blocks\n"
    named = named_producer(row["blocking_producer_id"], row["blocking_transactional_id"])
    lag = f"{counted(row['lag_offsets'], 'offset')} and {duration(row['lag_ms'])} behind"
    return f"{line}: {lag}, blocked by {named}, {row['blocking_verdict']}\n"


def answer(run: StoredRun, options: Namespace) -> CommandOutput:
    """The events of a partition or of a transactional id. Raises UsageError if the run contains neither."""
    return timeline_output(timeline_of(run, options.where, options.last))
