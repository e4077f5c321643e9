"""A timeline as text: its events in a table, and where the partition is at the instant of the run."""

from __future__ import annotations

from argparse import Namespace

from txnlib.core.display import duration, printable, utc_time
from txnlib.queries.rows import Row, StoredRun
from txnlib.queries.timeline import Timeline, timeline_of
from txnlib.queries.timeline_events import CLIENT, COLUMNS, Event
from txnlib.render.command_output import CommandOutput
from txnlib.render.story_text import clock


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
    owner = row["blocking_transactional_id"]
    named = f"producer {row['blocking_producer_id']}" + ("" if owner is None else f" ({printable(owner)})")
    lag = f"{row['lag_offsets']} offsets and {duration(row['lag_ms'])} behind"
    return f"{line}: {lag}, blocked by {named}, {row['blocking_verdict']}\n"


def timeline(run: StoredRun, options: Namespace) -> CommandOutput:
    """The events of a partition or of a transactional id. Raises UsageError if the run contains neither."""
    return timeline_output(timeline_of(run, options.where, options.last))
