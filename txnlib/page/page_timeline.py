"""The plot of an open transaction on the report page: coordinator, partition and offsets over time.

A transaction is decided within milliseconds and blocks for days. At least half of the width is to scale, so a long wait
is seen as long. The rest is shared equally by the gaps between events, so that short gaps are seen at all.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise, zip_longest
from typing import Final

from txnlib.ask.episode import COORDINATOR, EXPIRES, Event
from txnlib.core.display import duration, precise_time, utc_time
from txnlib.core.instants import clock_ms
from txnlib.page.page_rows import Story

#: Widths of a plot in units of its view box: on a screen or on paper, and on a phone.
WIDE: Final = 760
NARROW: Final = 340
#: Distance of the axis from the edges.
MARGIN: Final = 6
#: Number of steps to draw before and after the beginning of the open transaction. The table below the plot has more.
BEFORE: Final = 14
AFTER: Final = 10
#: Most rows of labels for states that are too short to contain their names.
LABEL_ROWS: Final = 3
_LETTER: Final = 7.0
_TICK: Final = 84.0
_POINTS: Final = 60
#: Most units of width that each gap gets beside its share of time.
_LEAST: Final = 12.0
#: Heights of a row of labels, and of the growing log.
_LABEL: Final = 14
_GROWTH: Final = 60
#: Letters of markers.
_LETTERS: Final = {"ABORT marker": "A", "COMMIT marker": "C"}

#: Kafka's name of a state -> its style.
_KINDS: Final[Mapping[str, str]] = {
    "Ongoing": "ongoing",
    "PrepareCommit": "decided",
    "PrepareAbort": "decided",
    "CompleteCommit": "finished",
    "CompleteAbort": "finished",
}


#: Heights of the lanes below the top of the coordinator's bars. Above them are the rows of labels.
_LANES: Final = {
    "bar": 0,
    "partition": 42,
    "batch": 62,
    "offsets": 94,
    "top": 104,
    "bottom": 164,
    "axis": 186,
    "height": 236,
}


@dataclass(frozen=True, slots=True)
class Shape:
    """A period: a state of the coordinator, or the possible times of a batch. Or an instant: a marker."""

    x: float
    width: float
    kind: str
    says: str
    #: Text that fits into the shape, or "".
    label: str = ""


@dataclass(frozen=True, slots=True)
class Label:
    """A time at the axis; or the name and duration of a state whose bar is too short for them, above the bar."""

    x: float
    text: str
    anchor: str
    #: Row of a label, counted from the bar.
    row: int = 0

    @property
    def extent(self) -> tuple[float, float]:
        """Where the text begins and ends."""
        width = len(self.text) * _LETTER
        return (self.x - width, self.x) if self.anchor == "end" else (self.x, self.x + width)

    def is_in_the_way_of(self, other: Label) -> bool:
        """Whether the texts overlap, or the line of the higher one crosses the text of the lower one."""
        (low, high), (begin, end) = self.extent, other.extent
        if self.row == other.row:
            return low < end + _LETTER and begin < high + _LETTER
        upper, (first, last) = (self, (begin, end)) if self.row > other.row else (other, (low, high))
        return first < upper.x < last


@dataclass(frozen=True, slots=True)
class Plot:
    """The shapes of one plot, in units of its view box."""

    width: int
    right: float
    #: Name of a lane -> its height.
    lanes: Mapping[str, int]
    states: Sequence[Shape]
    labels: Sequence[Label]
    batches: Sequence[Shape]
    markers: Sequence[Shape]
    #: Position from which on the transaction is open.
    open_x: float
    #: Lists of SVG points: the end of the log, and the area between it and the start.
    log_end: str
    blocked: str
    start_offset: int
    end_offset: int | None
    #: Position of a lower last stable offset, if another transaction blocks it.
    lower_lso: int | None
    ticks: Sequence[Label]
    #: Positions of the ticks.
    grid: Sequence[float]
    #: Durations between neighbouring ticks, in the middle between them; and days, at the first tick of each.
    spans: Sequence[Label]
    days: Sequence[Label]
    says: str


def plot(story: Story, width: int = WIDE) -> Plot:
    """The plot of one open transaction."""
    events = _drawn(story.episode.events)
    as_of, start = story.episode.as_of_ms, story.episode.outcome.verdict["start_offset"]
    x_of = _axis(events, as_of, float(width - MARGIN))
    open_x = next((_span(event, x_of)[0] for event in events if event.mark), float(MARGIN))
    end, lso = (story.partition.get(name) for name in ("high_watermark", "last_stable_offset"))
    states = list(_states(events, as_of, x_of))
    labels = _labels(states, x_of.right)
    highest = 20 + _LABEL * (1 + max((label.row for label in labels), default=-1))
    lanes = {name: highest + below for name, below in _LANES.items()}
    line = _log_end(story, start, end, open_x, x_of, lanes)
    ticks = sorted(_ticks(events, as_of, x_of))
    return Plot(
        width=width,
        right=x_of.right,
        lanes=lanes,
        states=[bar for bar, _ in states],
        labels=labels,
        batches=[_batch(event, x_of) for event in events if event.clock != COORDINATOR and not event.is_marker],
        markers=[
            Shape(_span(event, x_of)[1], 0, "marker", _says(event), _LETTERS.get(event.event, "?"))
            for event in events
            if event.is_marker
        ],
        open_x=open_x,
        log_end=_points(line),
        blocked=_points([*line, (x_of.right, float(lanes["bottom"])), (open_x, float(lanes["bottom"]))]),
        start_offset=start,
        end_offset=end,
        lower_lso=lso if lso is not None and lso < start else None,
        ticks=[_tick(x, clock(ms) if ms != as_of else f"as of {clock(ms)[:8]}", x_of) for x, ms in ticks],
        grid=[x for x, _ in ticks],
        spans=[
            Label((x + later_x) / 2, precise(later - ms), "middle") for (x, ms), (later_x, later) in pairwise(ticks)
        ],
        days=[_tick(x, day, x_of) for x, day in _days(ticks)],
        says=_in_words(events, story, start, end),
    )


def clock(ms: int) -> str:
    """07:22:58.141; the number if it is outside of the calendar."""
    time = precise_time(ms)
    return time[11:-1] if time.endswith("Z") else time


def precise(ms: int) -> str:
    """A duration, in milliseconds below one second: 40 ms, 1.3 s, 22 min."""
    if ms < 1_000:
        return f"{ms} ms"
    return f"{ms / 1000:.1f} s" if ms < 10_000 else duration(ms)


def _drawn(events: Sequence[Event]) -> list[Event]:
    """The events around the beginning of the open transaction, including the last record of its coordinator."""
    placed = [event for event in events if event.offset is not None]
    first = next((i for i, event in enumerate(placed) if event.mark), len(placed))
    chosen = placed[max(0, first - BEFORE) : first + AFTER]
    last = [event for event in placed[first + AFTER :] if event.clock == COORDINATOR][-1:] if chosen else []
    return [*chosen, *last]


# ---- Time


@dataclass(frozen=True, slots=True)
class _Axis:
    times: Sequence[int]
    places: Sequence[float]

    @property
    def right(self) -> float:
        return self.places[-1]

    def __call__(self, ms: int) -> float:
        at = bisect_right(self.times, ms) - 1
        if at < 0:
            return float(MARGIN)
        if at + 1 >= len(self.times):
            return self.places[-1]
        share = (ms - self.times[at]) / (self.times[at + 1] - self.times[at])
        return self.places[at] + share * (self.places[at + 1] - self.places[at])


def _axis(events: Sequence[Event], as_of: int, right: float) -> _Axis:
    times = sorted({as_of, *(ms for event in events for ms in (event.after_ms, event.before_ms) if ms is not None)})
    gaps = [later - earlier for earlier, later in pairwise(times)]
    # The first event is a little off the edge, because the time of what came before it is unknown.
    inset = MARGIN + 10.0 if gaps else right
    least = min(_LEAST, (right - inset) / (2 * len(gaps) or 1))
    unit = (right - inset - least * len(gaps)) / (sum(gaps) or 1)
    places = [inset]
    for gap in gaps:
        places.append(places[-1] + least + gap * unit)
    return _Axis(times, [*places[:-1], right])


def _span(event: Event, x_of: _Axis) -> tuple[float, float]:
    low = float(MARGIN) if event.after_ms is None else x_of(event.after_ms)
    high = x_of.right if event.before_ms is None else x_of(event.before_ms)
    return min(low, high), max(low, high)


def _ticks(events: Sequence[Event], as_of: int, x_of: _Axis) -> Iterator[tuple[float, int]]:
    """Positions and times to name: the end of the axis, its beginning, and what has room between them."""
    stamped = [event.after_ms for event in events if event.after_ms is not None and event.after_ms == event.before_ms]
    known = [*stamped, *(event.before_ms for event in events if event.before_ms is not None)]
    taken: list[float] = []
    for ms in dict.fromkeys([as_of, x_of.times[0], *known]):
        x = x_of(ms)
        middle = min(max(x, MARGIN + _TICK / 2), x_of.right - _TICK / 2)
        if all(abs(middle - other) >= _TICK for other in taken):
            taken.append(middle)
            yield x, ms


def _tick(x: float, text: str, x_of: _Axis) -> Label:
    """A text at a position of the axis, moved inwards at its ends."""
    if x < MARGIN + _TICK / 2:
        return Label(float(MARGIN), text, "start")
    return Label(x_of.right, text, "end") if x > x_of.right - _TICK / 2 else Label(x, text, "middle")


def _days(ticks: Sequence[tuple[float, int]]) -> Iterator[tuple[float, str]]:
    """The day of the first tick, and of each tick on another day than the one before it."""
    before = None
    for x, ms in ticks:
        day = utc_time(ms)[:10]
        if day != before and clock_ms(ms) is not None:
            yield x, day
        before = day


# ---- Lanes


def _states(events: Sequence[Event], as_of: int, x_of: _Axis) -> Iterator[tuple[Shape, str]]:
    """The states of the coordinator, with labels. Records that repeat a state, such as those that add a partition,
    share a bar."""
    begun = [
        next(records)
        for _, records in groupby((e for e in events if e.clock == COORDINATOR), lambda event: event.state_after)
    ]
    for event, later in zip_longest(begun, begun[1:]):
        begin = _span(event, x_of)[0]
        end = x_of.right if later is None else _span(later, x_of)[0]
        state, since_ms = _state(event), event.after_ms
        until = as_of if later is None else later.after_ms
        lasts = "" if since_ms is None or until is None or until < since_ms else precise(until - since_ms)
        width = max(end - begin, 1.5)
        name = f"{state} {lasts}".strip()
        label = next((each for each in (name, state) if width > len(each) * _LETTER + 8), "")
        since = "" if since_ms is None else f" from {clock(since_ms)}"
        yield (
            Shape(begin, width, _KINDS.get(state, "idle"), f"{state}{since}{f', for {lasts}' if lasts else ''}", label),
            name,
        )


def _state(event: Event) -> str:
    return "expired" if event.event == EXPIRES else event.event


def _labels(states: Sequence[tuple[Shape, str]], right: float) -> list[Label]:
    """Labels for bars without one, wherever no text overlaps another and no line crosses a text.

    A text begins at its line, or ends there if the edge of the plot is near. The former are placed from right to left,
    the latter then from left to right, so that the line of a higher label has no text below it.
    """
    wanted = []
    for bar, name in states:
        is_at_end = bar.x + len(name) * _LETTER > right
        if not bar.label:
            wanted.append(Label(bar.x + bar.width, name, "end") if is_at_end else Label(bar.x, name, "start"))
    ordered = [
        *(each for each in reversed(wanted) if each.anchor == "start"),
        *(each for each in wanted if each.anchor == "end"),
    ]
    labels: list[Label] = []
    for label in ordered:
        placed = (replace(label, row=row) for row in range(LABEL_ROWS))
        fitting = next(
            (each for each in placed if each.extent[0] >= 0 and not any(map(each.is_in_the_way_of, labels))), None
        )
        if fitting is not None:
            labels.append(fitting)
    return labels


def _batch(event: Event, x_of: _Axis) -> Shape:
    low, high = _span(event, x_of)
    kind = ("open" if event.mark else "batch") + ("" if event.after_ms == event.before_ms else " between")
    width = max(high - low, 7.0)
    return Shape(min(low, x_of.right - width), width, kind, _says(event))


def _log_end(
    story: Story, start: int, end: int | None, open_x: float, x_of: _Axis, lanes: Mapping[str, int]
) -> list[tuple[float, float]]:
    """The growth of the log after the start, from its broker-stamped batches."""
    bottom, right = float(lanes["bottom"]), x_of.right
    if end is None or end <= start:
        return [(open_x, bottom), (right, bottom)]
    height = _GROWTH / (end - start)
    timed = [row for row in story.growth if clock_ms(row["max_timestamp_ms"]) is not None]
    thinned = timed[:: max(1, len(timed) // _POINTS)]
    points = [
        (x_of(row["max_timestamp_ms"]), bottom - (min(row["base_offset"], end) - start) * height) for row in thinned
    ]
    line = [(open_x, bottom)]
    for x, y in points:  # a clock that goes back does not shorten the log
        line.append((max(x, line[-1][0]), min(y, line[-1][1])))
    return [*line, (right, float(lanes["top"]))]


def _points(line: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in line)


# ---- In words


def _in_words(events: Sequence[Event], story: Story, start: int, end: int | None) -> str:
    """A description of the plot for screen readers."""
    states = [f"{_state(event)}{_at(event)}" for event in events if event.clock == COORDINATOR]
    markers = [f"{event.event} at offset {event.offset}{_at(event)}" for event in events if event.is_marker]
    opened = [f"{event.detail.split(',')[0]}{_at(event)}" for event in events if event.mark]
    parts = [
        f"Coordinator: {', then '.join(states[-6:])}" if states else "No record of a coordinator",
        f"markers of the producer: {', '.join(markers[-4:])}" if markers else "no marker of the producer",
        f"open from offset {start}: {', '.join(opened[:4])}" if opened else f"open from offset {start}",
    ]
    if end is not None:
        stable = story.partition.get("last_stable_offset")
        parts.append(f"the log has grown to offset {end}, while its last stable offset is {stable}")
    return "; ".join(parts) + "."


def _says(event: Event) -> str:
    is_one = event.offset == event.last_offset
    return (
        f"{f'offset {event.offset}' if is_one else f'offsets {event.offset}–{event.last_offset}'}:"
        f" {event.record}{_at(event)}"
    )


def _at(event: Event) -> str:
    if event.after_ms is None or event.before_ms is None:
        return ""
    if event.after_ms == event.before_ms:
        return f" at {clock(event.after_ms)}"
    return f" between {clock(event.after_ms)} and {clock(event.before_ms)}"
