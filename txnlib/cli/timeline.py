"""`txn-audit timeline`: the events of a partition or transactional id."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from typing import Final

from txnlib.cli.explain import RECORD
from txnlib.cli.output import Answer
from txnlib.core.durations import duration
from txnlib.core.instants import clock_ms
from txnlib.errors import UsageError
from txnlib.queries.tables import Filter, Row, Run
from txnlib.queries.timeline_events import (
    CLIENT,
    COLUMNS,
    Event,
    coordinator_events,
    decisions,
    in_order,
    partition_events,
    started,
    touching,
)
from txnlib.render.report_text import instant, printable
from txnlib.render.story_text import clock

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
_BY_OFFSET: Final = '"coordinator_partition", "offset"'


def timeline(run: Run, options: Namespace) -> Answer:
    """The events of a partition or of a transactional id. Raises UsageError if the run contains neither."""
    if options.last < 1:
        raise UsageError(f"--last {options.last}: expected 1 or more")
    match options.where:
        case [name]:
            return _of_id(run, name, options.last)
        case [topic, partition] if partition.isdecimal():
            return _of_partition(run, topic, int(partition), options.last)
    raise UsageError("timeline needs a topic and a partition number, or one transactional id")


def _of_partition(run: Run, topic: str, partition: int, last: int) -> Answer:
    here: list[Filter] = [("topic", "=", topic), ("partition", "=", partition)]
    if not run.number("coverage", "count(*)", [*here, ("status", "<>", "MISSING")]):
        raise UsageError(f"no copy of {topic}-{partition} was audited in this run")
    is_open: list[Filter] = [("marker_offset", "IS", None), ("first_offset", "IS NOT", None)]
    opened = _with_clock_times(run.rows("producer_spans", _SPAN, [*here, *is_open], order='"first_offset"', limit=OPEN))
    is_ended: list[Filter] = [*here, ("marker_offset", "IS NOT", None)]
    ended = _with_clock_times(run.rows("producer_spans", _SPAN, is_ended, order='"marker_offset" DESC', limit=LOADED))
    exact_from = ended[-1]["marker_offset"] if len(ended) == LOADED else 0
    shown = [*_before(opened, ended[last:]), *opened, *ended[:last]]
    owners = _owners(run, {row["producer_id"] for row in shown})
    records = touching(_records(run, set(owners.values()), _stretches(opened, ended[:last])), topic, partition)
    told = decisions(shown, owners, records)
    records = [row for row in records if (row["transactional_id"], row["transaction_number"]) in told]
    log = f"{topic}-{partition}"
    kept = {row[name] for row in shown for name in ("first_offset", "marker_offset")} - {None}
    of_log = partition_events(log, [*opened, *ended], owners, started(shown, owners, records), exact_from)
    events = in_order([event for event in of_log if event.offset in kept], coordinator_events(records))
    verdicts = run.rows("open_transactions", ("start_offset", "verdict"), here)
    marks = {(log, row["start_offset"]): row["verdict"] for row in verdicts}
    hidden = (run.number("producer_spans", "count(*)", is_ended) or 0) - sum(row["marker_offset"] is not None for row in shown)
    lacking = [f"{hidden} transactions that ended before (--last N shows more)"] if hidden else []
    if (number := len(verdicts)) > OPEN:
        lacking.append(f"{number - len(opened)} open transactions that begin behind those shown")
    tail = f"\nleft out: {'; '.join(lacking)}\n" if lacking else "\n"
    return _answer(run, log, events, tail + _stands(run, here), marks)


def _with_clock_times(rows: list[Row]) -> list[Row]:
    """The rows with only those times that a clock can show; a client may have stamped anything."""
    return [row | {name: clock_ms(row[name]) for name in _TIMES & row.keys()} for row in rows]


_TIMES: Final = {"marker_ms", "first_timestamp_ms", "timestamp_ms"}


def _before(opened: list[Row], older: list[Row]) -> list[Row]:
    """The last transactions that ended before the oldest open one began, unless they are among the newest."""
    if not opened:
        return []
    start = opened[0]["first_offset"]
    return [row for row in older if row["marker_offset"] < start][:SHOWN_BEFORE]


def _owners(run: Run, producers: set[int]) -> dict[int, str]:
    """The transactional id of each producer id; the last one, if there were several."""
    if not producers:
        return {}
    columns = ("producer_id", "transactional_id")
    rows = run.rows("producer_id_owners", columns, [("producer_id", "IN", producers)], order='"last_record_offset"')
    return {row["producer_id"]: row["transactional_id"] for row in rows}


def _stretches(opened: list[Row], ended: list[Row]) -> list[tuple[int, int]]:
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


def _records(run: Run, ids: set[str], stretches: list[tuple[int, int]]) -> list[Row]:
    """The coordinator records of the ids in these periods, by offset; only the last ones of each period."""
    if not ids:
        return []
    found: dict[tuple[int, int, str], Row] = {}
    for low, high in stretches:
        where: list[Filter] = [("transactional_id", "IN", ids), ("timestamp_ms", ">=", low), ("timestamp_ms", "<=", high)]
        for row in _with_clock_times(run.rows("coordinator_states", RECORD, where, order='"timestamp_ms" DESC', limit=RECORDS)):
            found[row["coordinator_partition"], row["offset"], row["transactional_id"]] = row
    return [found[key] for key in sorted(found)]


def _stands(run: Run, here: list[Filter]) -> str:
    """The offsets of the partition at the instant of the run."""
    columns = (
        "last_stable_offset",
        "high_watermark",
        "lag_offsets",
        "lag_ms",
        "blocking_producer_id",
        "blocking_transactional_id",
        "blocking_verdict",
    )
    rows = run.rows("partitions", columns, here, limit=1)
    if not rows:
        return ""
    row = rows[0]
    line = f"at {instant(run.as_of_ms)}: last stable offset {row['last_stable_offset']}, high watermark {row['high_watermark']}"
    if row["blocking_producer_id"] is None:
        return f"{line}, nothing blocks\n"
    owner = row["blocking_transactional_id"]
    named = f"producer {row['blocking_producer_id']}" + ("" if owner is None else f" ({printable(owner)})")
    lag = f"{row['lag_offsets']} offsets and {duration(row['lag_ms'])} behind"
    return f"{line}: {lag}, blocked by {named}, {row['blocking_verdict']}\n"


def _of_id(run: Run, name: str, last: int) -> Answer:
    own: list[Filter] = [("transactional_id", "=", name)]
    columns = ("producer_id", "producer_epoch", "transaction_number", "first_record_offset", "markers")
    newest = run.rows("transactions", columns, own, order='"transaction_number" DESC', limit=last)
    since: list[Filter] = [("offset", ">=", newest[-1]["first_record_offset"])] if newest else []
    records = _with_clock_times(run.rows("coordinator_states", RECORD, [*own, *since], order='"offset" DESC', limit=RECORDS))[::-1]
    if not records:
        raise UsageError(f"no captured coordinator has a record of the transactional id {name!r}")
    begun = {row["transaction_number"]: row["timestamp_ms"] for row in records[::-1] if row["state"] == "Ongoing"}
    logs: dict[str, tuple[list[Row], dict[int, int]]] = {}
    for transaction in newest:
        for marker in transaction["markers"] or ():
            if marker["marker_offset"] is None:
                continue  # open transactions on the partition follow below, whether or not they belong to this one
            spans, starts = logs.setdefault(f"{marker['topic']}-{marker['partition']}", ([], {}))
            spans.append({**transaction, **marker})
            if (at := begun.get(transaction["transaction_number"])) is not None and marker["first_offset"] is not None:
                starts[marker["first_offset"]] = at
    columns = ("topic", "partition", "producer_id", "start_offset", "verdict")
    verdicts = run.rows("open_transactions", columns, own, order='"topic", "partition", "start_offset"', limit=OPEN)
    for row in verdicts:
        where: list[Filter] = [(column, "=", row[column]) for column in ("topic", "partition", "producer_id")]
        found = _with_clock_times(run.rows("producer_spans", _SPAN, [*where, ("first_offset", "=", row["start_offset"])], limit=1))
        logs.setdefault(f"{row['topic']}-{row['partition']}", ([], {}))[0].extend(found)
    of_logs = [
        [replace(event, last_stable_offset=None) for event in partition_events(log, spans, {}, starts, 0)]
        for log, (spans, starts) in logs.items()
    ]
    events = [replace(event, transactional_id=name) for event in in_order(*of_logs, coordinator_events(records))]
    hidden = (run.number("transactions", "count(*)", own) or 0) - len(newest)
    left = f"\nleft out: {hidden} earlier transactions (--last N shows more)\n" if hidden else ""
    marks = {(f"{row['topic']}-{row['partition']}", row["start_offset"]): row["verdict"] for row in verdicts}
    return _answer(run, name, events, left, marks)


def _answer(run: Run, what: str, events: list[Event], tail: str, marks: dict[tuple[str, int], str]) -> Answer:
    rows: list[Row] = [dict(event.row()) for event in events]
    times = [clock(row["at_ms"]) for row in rows if row["at_ms"] is not None]
    days = {time[:10] for time in times}
    day = days.pop() if len(days) == 1 else None
    when = "when" if day is None else f"when ({day})"
    for row in rows:
        time = "not known" if row["at_ms"] is None else clock(row["at_ms"]).removeprefix(f"{day} ")
        row[when] = f"{time} ?" if row["clock"] == CLIENT else time
        row["where"] = f"{row['log']} @{row['offset']}"
        row["lso"] = row["last_stable_offset"]
        row["producer"] = f"{row['producer_id']} epoch {row['producer_epoch']}"
        mark = marks.get((row["log"], row["offset"])) if row["event"] == "begins" else None
        row["what"] = row["event"] if mark is None else f"{row['event']}  <-- {mark}"
    of_partition = any(row["lso"] is not None for row in rows)
    shown = (when, "where", "what", *(("lso", "transactional_id") if of_partition else ()), "producer", "detail")
    clocks = "times are brokers'; with ? a client's" if any(row["clock"] == CLIENT for row in rows) else "times are brokers'"
    head = f"{printable(what)}   cluster {printable(run.cluster)}, as of {instant(run.as_of_ms)}   ({clocks})\n\n"
    return Answer(COLUMNS, rows, shown=shown, head=head, tail=tail)
