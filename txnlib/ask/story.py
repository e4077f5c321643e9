"""The stories of the logs: events in order of time. And of these, the history of a partition or of an id.

`explain` has the story of one open transaction, `transaction` that of one transaction on all of its partitions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from html import escape
from typing import TYPE_CHECKING, Any, Final

from txnlib.ask.events import (
    RECORD,
    ROW,
    Event,
    Numbered,
    courses,
    in_order,
    leader_events,
    lists,
    number_of,
    record_events,
)
from txnlib.ask.partition_events import span_events
from txnlib.ask.queries import KEY, Filter, Row, StoredRun, among, column_names, ms
from txnlib.ask.subject import equal, holders_of, known_subject
from txnlib.ask.words import ahead, name_of
from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.rows import grouped
from txnlib.core.schema import shown
from txnlib.errors import UsageError

if TYPE_CHECKING:
    from txnlib.ask.command_output import CommandOutput

#: Number of ended transactions of a partition to load, which give the last stable offset; and number to show of those
#: that ended before the oldest open one began.
LOADED, SHOWN_BEFORE = 2_000, 2
#: Columns of what a notebook shows: JupyterLab breaks longer lines.
SHOWN_WIDTH: Final = 88
#: Number of open transactions to show of one partition or id, lowest start first.
OPEN: Final = 20
#: Most records of coordinators, and partitions of transactions.
RECORDS, PARTITIONS = 1_000, 10_000
#: Most spans of producers to read for an id.
SPANS: Final = 10_000
#: Number of newest states of a partition to read, and of its leader changes to show.
STATES, CHANGES = 1_000, 20

#: What identifies a transaction.
WHOLE: Final = ("transactional_id", "coordinator_partition", "transaction_number")
_SPAN: Final = column_names(
    "topic partition producer_id producer_epoch first_offset last_offset is_start_exact marker_offset marker_type"
    " marker_epoch marker_ms batches records first_timestamp_ms is_broker_clock"
)
_OPEN: Final = (*KEY, "verdict", "reason", "holds")
#: Columns with times that a client may have set.
_TIMES: Final = {"marker_ms", "first_timestamp_ms", "timestamp_ms"}
_LED: Final = column_names("topic partition topic_id leader leader_epoch isr is_unclean since_offset since")


@dataclass(frozen=True, slots=True, repr=False)
class Story:
    """What happened to a transaction, a partition or a transactional id: its `events` in order of time.

    `print` prints it as `txn-audit` does. Fields: `cluster`, `run_id`, `as_of_ms`, `events`. The story of `explain` has
    also `verdict` (a row of `open_transactions`), `evidence`, `copies` and `left_out`; that of `timeline` `partition`
    and what is left out; that of `transaction` `outcome`, `partitions` and `records`. Instants are epoch milliseconds.
    """

    cluster: str
    run_id: str
    as_of_ms: int
    events: Sequence[Event]

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
        return output_of(self)

    def __str__(self) -> str:
        return self.output().text()

    def __repr__(self) -> str:
        return f"<Story of {len(self.events)} events, run {self.run_id}>"

    def _repr_html_(self) -> str:
        """What a notebook shows, as wide as JupyterLab shows text without breaking its lines."""
        from rich.text import Text

        # Without colours, which kernels of Jupyter ask for by FORCE_COLOR.
        return f"<pre>{escape(Text.from_ansi(self.output().text(width=SHOWN_WIDTH)).plain)}</pre>"


@singledispatch
def output_of(story: Story) -> CommandOutput:
    """The answer of `txn-audit` about a story. `story_text` and `transaction_text` register one function for each kind
    of story. So an audit, whose report has stories, need not load them."""
    raise NotImplementedError(f"no module that writes {type(story).__name__} is loaded")


# ---- What stories read of the logs


def leader_changes(run: StoredRun, places: Collection[tuple[str, int]], since_ms: int | None) -> list[Row]:
    """The states of partitions that begin with another leader or leader epoch, by offset, not before an instant.

    Columns: those of partition_assignments, and at_ms. Empty without a metadata log.
    """
    changes: list[Row] = []
    if since_ms is None:
        return changes
    for topic, partition in sorted(places):
        here = [*equal(topic=topic, partition=partition), ("since_offset", "IS NOT", None)]
        newest = run.rows("partition_assignments", _LED, here, order='"since_offset" DESC', limit=STATES)
        changed: list[Row] = []
        before: tuple[object, ...] = ()
        for row in reversed(newest):
            led, at_ms = (row["topic_id"], row["leader"], row["leader_epoch"]), ms(row["since"])
            if led != before and at_ms is not None and at_ms >= since_ms:
                changed.append(row | {"at_ms": at_ms})
            before = led
        changes += changed[-CHANGES:]
    return changes


#: What identifies an ended span of a producer, by its marker; and an open span, by its first offset.
_ENDED: Final = ("topic", "partition", "producer_id", "marker_offset")
_BEGUN: Final = (*_ENDED[:3], "first_offset")


def matched(run: StoredRun, spans: Sequence[Row]) -> list[Row]:
    """The spans of producers, each with the transaction (id and number) that the audit matched with its marker, or with
    its open records. The number is None if no coordinator's record explains the span."""
    found: dict[tuple[Any, ...], Row] = {}
    ended, opened = ([row for row in spans if (row["marker_offset"] is None) == is_open] for is_open in (False, True))
    for names, rows in ((_ENDED, ended), (_BEGUN, opened)):
        these = among(rows, *names) if rows else [("topic", "IN", ())]
        for row in run.rows("transaction_outcomes", (*names, *WHOLE), these, is_optional=True):
            key = tuple(row[name] for name in names)
            if row["transaction_number"] is not None or key not in found:
                found[key] = {name: row[name] for name in WHOLE}
    none = dict.fromkeys(WHOLE)
    return [
        row | found.get(tuple(row[name] for name in (_BEGUN if row["marker_offset"] is None else _ENDED)), none)
        for row in spans
    ]


def _timed_rows(
    run: StoredRun, name: str, columns: Sequence[str], where: Sequence[Filter], order: str, limit: int
) -> list[Row]:
    """Rows with None for times that no clock shows: a client may have set any."""
    rows = run.rows(name, columns, where, order=order, limit=limit)
    return [row | {column: clock_ms(row[column]) for column in _TIMES & row.keys()} for row in rows]


def _first_ms(events: Sequence[Event]) -> int | None:
    """The earliest time on a broker's clock among events; None if there is none."""
    return min((event.after_ms for event in events if event.after_ms is not None), default=None)


def _behind_others(run: StoredRun, opened: Sequence[Row], events: Iterable[Event]) -> Iterator[Event]:
    """The events. Where an open transaction begins that waits behind another one, its event names the holder of the
    partition."""
    holders = holders_of(run, opened)
    waiting = {
        (f"{row['topic']}-{row['partition']}", row["start_offset"]): holders[row["topic"], row["partition"]]
        for row in opened
        if row["holds"] is False and (row["topic"], row["partition"]) in holders
    }
    for event in events:
        holder = waiting.get((event.log, event.offset)) if event.mark else None
        yield event if holder is None else replace(event, detail=f"{event.detail}; waits behind {ahead(holder)}")


# ---- The history of a partition or of an id


@dataclass(frozen=True, slots=True, repr=False)
class Timeline(Story):
    """The history of a partition or of a transactional id: what it leaves out, and where its partition is now."""

    #: The partition, such as orders-0, or the transactional id.
    subject: str
    #: Number of earlier transactions, and of later open transactions, that are left out.
    earlier: int = 0
    later_open: int = 0
    #: Row of `partitions`: the offsets of the partition at the instant of the run; None for a transactional id.
    partition: Row | None = None
    is_of_partition: bool = False


def timeline_of(run: StoredRun, subject: Sequence[str], last: int) -> Timeline:
    """The timeline of the partition, or of the transactional id, that words name. `last`: number of ended transactions
    to show.

    Raises UsageError if the run contains no such partition or id.
    """
    if last < 1:
        raise UsageError(f"--last {last}: expected 1 or more")
    match known_subject(run, subject):
        case {"topic": topic, "partition": partition}:
            return _of_partition(run, topic, partition, last)
        case {"transactional_id": transactional_id}:
            return _of_id(run, transactional_id, last)
        case {"producer_id": producer_id}:
            order = '"last_record_offset" DESC'
            of = equal(producer_id=producer_id)
            for owner in run.rows("producer_id_owners", ("transactional_id",), of, order=order, limit=1):
                return _of_id(run, owner["transactional_id"], last)
    raise UsageError(f"no transactional id is known of producer {' '.join(subject)}")


def _of_partition(run: StoredRun, topic: str, partition: int, last: int) -> Timeline:
    """The open transactions of a partition, its newest ended ones, and those that ended just before the oldest open
    one."""
    here = equal(topic=topic, partition=partition)
    is_open: list[Filter] = [*here, ("marker_offset", "IS", None), ("first_offset", "IS NOT", None)]
    opened = _timed_rows(run, "producer_spans", _SPAN, is_open, '"first_offset"', OPEN)
    is_ended: list[Filter] = [*here, ("marker_offset", "IS NOT", None)]
    ended = _timed_rows(run, "producer_spans", _SPAN, is_ended, '"marker_offset" DESC', LOADED)
    exact_from = ended[-1]["marker_offset"] if len(ended) == LOADED else 0
    # Of the older ones, the last that ended before the oldest open one began.
    start = opened[0]["first_offset"] if opened else -1
    before = [row for row in ended[last:] if row["marker_offset"] < start][:SHOWN_BEFORE]
    chosen = matched(run, [*before, *opened, *ended[:last]])
    others = [row | dict.fromkeys(WHOLE) for row in ended[last:] if row not in before]
    place = {"topic": topic, "partition": partition}
    numbers = {number_of(row) for row in chosen}
    records = added_once([row for row in _records(run, numbers) if row["timestamp_ms"] is not None], place)
    marked = run.rows("open_transactions", _OPEN, here)
    verdicts = {row["start_offset"]: name_of(row) for row in marked}
    offsets_now = next(iter(run.rows("partitions", shown("timeline: partition"), here, limit=1)), None)
    if offsets_now is not None and (holder := next((row for row in marked if row["holds"]), None)) is not None:
        offsets_now["blocking_verdict"] = name_of(holder)
    log_start = (offsets_now and offsets_now["log_start_offset"]) or 0
    spans, known = [*chosen, *others], courses(records, place)
    offsets = {row[name] for row in chosen for name in ("first_offset", "marker_offset")}
    of_log = span_events(f"{topic}-{partition}", spans, known, exact_from, verdicts, log_start)
    events = [event for event in of_log if event.offset in offsets]
    elections = leader_events(leader_changes(run, [(topic, partition)], _first_ms(events)))
    shown_ended = sum(row["marker_offset"] is not None for row in chosen)
    return Timeline(
        run.cluster,
        run.run_id,
        run.as_of_ms,
        in_order(elections, record_events(records), _behind_others(run, marked, events)),
        f"{topic}-{partition}",
        earlier=(run.number("producer_spans", "count(*)", is_ended) or 0) - shown_ended,
        later_open=len(verdicts) - len(opened) if len(verdicts) > OPEN else 0,
        partition=offsets_now,
        is_of_partition=True,
    )


def _of_id(run: StoredRun, transactional_id: str, last: int) -> Timeline:
    """The newest transactions of an id, on all their partitions, and its open transactions."""
    own: list[Filter] = [("transactional_id", "=", transactional_id)]
    columns = ("transaction_number", "first_record_offset")
    newest = run.rows("transactions", columns, own, order='"transaction_number" DESC', limit=last)
    since: list[Filter] = [("offset", ">=", newest[-1]["first_record_offset"])] if newest else []
    records = _timed_rows(run, "coordinator_states", RECORD, [*own, *since], '"offset" DESC', RECORDS)[::-1]
    records = [row for row in records if row["timestamp_ms"] is not None]
    numbers = {row["transaction_number"] for row in newest}
    is_of_these = [*own, ("transaction_number", "IN", numbers), ("marker_offset", "IS NOT", None)]
    ended = run.rows("transaction_outcomes", _ENDED, is_of_these, limit=PARTITIONS)
    opened = run.rows("open_transactions", _OPEN, own, order='"topic", "partition", "start_offset"', limit=OPEN)
    begun = [row | {"first_offset": row["start_offset"]} for row in opened]
    spans = matched(run, [*_spans(run, _ENDED, ended), *_spans(run, _BEGUN, begun)])
    events = [*record_events(records)]
    for (topic, partition), of_log in grouped(spans, lambda row: (row["topic"], row["partition"])).items():
        here = {"topic": topic, "partition": partition}
        named = [row | {"transactional_id": transactional_id} for row in of_log]
        verdicts = {row["start_offset"]: name_of(row) for row in opened if row | here == row}
        events += span_events(f"{topic}-{partition}", named, courses(records, here), None, verdicts)
    places = {(TRANSACTION_STATE_TOPIC, row["coordinator_partition"]) for row in records}
    places |= {(row["topic"], row["partition"]) for row in opened}
    elections = leader_events(leader_changes(run, places, _first_ms(events)))
    return Timeline(
        run.cluster,
        run.run_id,
        run.as_of_ms,
        in_order(elections, _behind_others(run, opened, events)),
        transactional_id,
        earlier=(run.number("transactions", "count(*)", own) or 0) - len(newest),
    )


def _spans(run: StoredRun, names: Sequence[str], rows: Sequence[Row]) -> list[Row]:
    """The spans of producers that have the same values as some row in the columns `names`."""
    wanted = {tuple(row[name] for name in names) for row in rows}
    found = _timed_rows(run, "producer_spans", _SPAN, among(rows, *names), "", SPANS) if rows else []
    return [row for row in found if tuple(row[name] for name in names) in wanted]


def _records(run: StoredRun, numbers: Collection[Numbered]) -> list[Row]:
    """The newest records of these transactions of coordinators, by their place."""
    known = [
        dict(zip(("transactional_id", "transaction_number"), each, strict=True)) for each in numbers if None not in each
    ]
    if not known:
        return []
    rows = _timed_rows(run, "coordinator_states", RECORD, among(known, *known[0]), '"offset" DESC', RECORDS)
    return sorted(
        (row for row in rows if number_of(row) in numbers),
        key=lambda row: (row["coordinator_partition"], row["offset"]),
    )


def added_once(records: Iterable[Row], place: Row) -> list[Row]:
    """The records, but of each transaction only the first Ongoing record that lists the partition."""
    kept: list[Row] = []
    added: set[Numbered] = set()
    for row in records:
        if row["state"] == "Ongoing":
            if number_of(row) in added or not lists(row, place):
                continue
            added.add(number_of(row))
        kept.append(row)
    return kept
