"""The plot of an open transaction on the report page: coordinator, partition and offsets over time.

A transaction is decided within milliseconds and blocks for days. At least half of the width is to scale, so a long wait is seen as
long. The rest is shared equally by the gaps between events, so that short gaps are seen at all.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final

from txnlib.ask.story_steps import STATE_AFTER, StoryStep
from txnlib.core.display import duration, utc_time
from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
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
#: Heights: a row of labels, the bars, the growing log.
_LABEL: Final = 14
_BAR: Final = 20
_GROWTH: Final = 60

#: Outcome of the transaction, according to its coordinator -> Kafka's name of the state.
_STATES: Final = {after: state or "expired" for state, after in STATE_AFTER.items()}
#: Kafka's name of a state -> its style.
_KINDS: Final[Mapping[str, str]] = {
    "Ongoing": "ongoing",
    "PrepareCommit": "decided",
    "PrepareAbort": "decided",
    "CompleteCommit": "finished",
    "CompleteAbort": "finished",
}


@dataclass(frozen=True, slots=True)
class Bar:
    """A period: a state of the coordinator, or the possible times of a batch."""

    x: float
    width: float
    kind: str
    says: str
    #: Label that fits into the bar, or "".
    label: str = ""


@dataclass(frozen=True, slots=True)
class Label:
    """The name and duration of a state whose bar is too short for them, above the bar."""

    x: float
    anchor: str
    #: Row, counted from the bar.
    row: int
    text: str

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
class Mark:
    """An instant: a marker."""

    x: float
    letter: str
    says: str


@dataclass(frozen=True, slots=True)
class Tick:
    x: float
    text: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Lanes:
    """Heights of the lanes, from top to bottom, if there are so many rows of labels above the coordinator's bars."""

    rows: int

    @property
    def bar(self) -> int:
        return 20 + self.rows * _LABEL

    @property
    def partition(self) -> int:
        return self.bar + _BAR + 22

    @property
    def batch(self) -> int:
        return self.partition + 20

    @property
    def offsets(self) -> int:
        return self.batch + 32

    @property
    def top(self) -> int:
        return self.offsets + 10

    @property
    def bottom(self) -> int:
        return self.top + _GROWTH

    @property
    def axis(self) -> int:
        return self.bottom + 22

    @property
    def height(self) -> int:
        return self.axis + 50


@dataclass(frozen=True, slots=True)
class Plot:
    """The shapes of one plot, in units of its view box."""

    width: int
    right: float
    lanes: Lanes
    states: Sequence[Bar]
    labels: Sequence[Label]
    batches: Sequence[Bar]
    markers: Sequence[Mark]
    #: Position from which on the transaction is open.
    open_x: float
    #: Lists of SVG points: the end of the log, and the area between it and the start.
    log_end: str
    blocked: str
    start_offset: int
    end_offset: int | None
    #: Position of a lower last stable offset, if another transaction blocks it.
    lower_lso: int | None
    ticks: Sequence[Tick]
    #: Positions of the ticks.
    grid: Sequence[float]
    #: Durations between neighbouring ticks, in the middle between them; and days, at the first tick of each.
    spans: Sequence[Tick]
    days: Sequence[Tick]
    says: str
    left_out: int


def plot(story: Story, width: int = WIDE) -> Plot:
    """The plot of one open transaction."""
    steps, left_out = _drawn(story.explained.steps)
    as_of, start = story.explained.as_of_ms, story.explained.verdict["start_offset"]
    x_of = _axis(steps, as_of, float(width - MARGIN))
    opened = [step for step in steps if step.is_open]
    open_x = _span(opened[0], x_of)[0] if opened else float(MARGIN)
    end = story.partition.get("high_watermark")
    lso = story.partition.get("last_stable_offset")
    states = list(_states(steps, as_of, x_of))
    labels = _labels(states, x_of.right)
    lanes = Lanes(1 + max((label.row for label in labels), default=-1))
    line = _log_end(story, start, end, open_x, x_of, lanes)
    ticks = sorted(_ticks(steps, as_of, x_of))
    return Plot(
        width=width,
        right=x_of.right,
        lanes=lanes,
        states=[bar for bar, _ in states],
        labels=labels,
        batches=[_batch(step, x_of) for step in steps if _is_batch(step)],
        markers=list(_markers(steps, x_of)),
        open_x=open_x,
        log_end=_points(line),
        blocked=_points([*line, (x_of.right, float(lanes.bottom)), (open_x, float(lanes.bottom))]),
        start_offset=start,
        end_offset=end,
        lower_lso=lso if lso is not None and lso < start else None,
        ticks=[_tick(x, clock(ms) if ms != as_of else f"as of {clock(ms)[:8]}", x_of) for x, ms in ticks],
        grid=[x for x, _ in ticks],
        spans=[Tick((x + later_x) / 2, precise(later - ms), "middle") for (x, ms), (later_x, later) in pairwise(ticks)],
        days=[_tick(x, day, x_of) for x, day in _days(ticks)],
        says=_says(steps, story, start, end),
        left_out=left_out,
    )


def clock(ms: int) -> str:
    """07:22:58.141; the number if it is outside of the calendar."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"


def precise(ms: int) -> str:
    """A duration, in milliseconds below one second: 40 ms, 1.3 s, 22 min."""
    if ms < 1_000:
        return f"{ms} ms"
    return f"{ms / 1000:.1f} s" if ms < 10_000 else duration(ms)


def _drawn(steps: Sequence[StoryStep]) -> tuple[list[StoryStep], int]:
    """The steps around the beginning of the open transaction, including the last record of its coordinator."""
    placed = [step for step in steps if step.first_offset is not None]
    first = next((i for i, step in enumerate(placed) if step.is_open), len(placed))
    chosen = placed[max(0, first - BEFORE) : first + AFTER]
    if not chosen:
        return [], 0
    last = [step for step in placed[first + AFTER :] if _is_record(step)][-1:]
    return [*chosen, *last], len(placed) - len(chosen) - len(last)


def _is_record(step: StoryStep) -> bool:
    return step.log.startswith(f"{TRANSACTION_STATE_TOPIC}-")


def _is_batch(step: StoryStep) -> bool:
    return not _is_record(step) and step.written_by != "coordinator"


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


def _axis(steps: Sequence[StoryStep], as_of: int, right: float) -> _Axis:
    times = sorted({as_of, *(ms for step in steps for ms in (step.after_ms, step.before_ms) if ms is not None)})
    gaps = [later - earlier for earlier, later in pairwise(times)]
    # The first event is a little off the edge, because the time of what came before it is unknown.
    inset = MARGIN + 10.0 if gaps else right
    least = min(_LEAST, (right - inset) / (2 * len(gaps) or 1))
    unit = (right - inset - least * len(gaps)) / (sum(gaps) or 1)
    places = [inset]
    for gap in gaps:
        places.append(places[-1] + least + gap * unit)
    return _Axis(times, [*places[:-1], right])


def _span(step: StoryStep, x_of: _Axis) -> tuple[float, float]:
    low = float(MARGIN) if step.after_ms is None else x_of(step.after_ms)
    high = x_of.right if step.before_ms is None else x_of(step.before_ms)
    return min(low, high), max(low, high)


def _ticks(steps: Sequence[StoryStep], as_of: int, x_of: _Axis) -> Iterator[tuple[float, int]]:
    """Positions and times to name: the end of the axis, its beginning, and what has room between them."""
    stamped = [step.after_ms for step in steps if step.after_ms is not None and step.after_ms == step.before_ms]
    known = [*stamped, *(step.before_ms for step in steps if step.before_ms is not None)]
    taken: list[float] = []
    for ms in dict.fromkeys([as_of, x_of.times[0], *known]):
        x = x_of(ms)
        middle = min(max(x, MARGIN + _TICK / 2), x_of.right - _TICK / 2)
        if all(abs(middle - other) >= _TICK for other in taken):
            taken.append(middle)
            yield x, ms


def _tick(x: float, text: str, x_of: _Axis) -> Tick:
    """A text at a position of the axis, moved inwards at its ends."""
    if x < MARGIN + _TICK / 2:
        return Tick(float(MARGIN), text, "start")
    return Tick(x_of.right, text, "end") if x > x_of.right - _TICK / 2 else Tick(x, text, "middle")


def _days(ticks: Sequence[tuple[float, int]]) -> Iterator[tuple[float, str]]:
    """The day of the first tick, and of each tick on another day than the one before it."""
    before = None
    for x, ms in ticks:
        day = utc_time(ms)[:10]
        if day != before and clock_ms(ms) is not None:
            yield x, day
        before = day


# ---- Lanes


def _states(steps: Sequence[StoryStep], as_of: int, x_of: _Axis) -> Iterator[tuple[Bar, str]]:
    """The states of the coordinator, with labels. Records that repeat a state, such as those that add a partition, share a bar."""
    records = [step for step in steps if _is_record(step)]
    begun = [step for i, step in enumerate(records) if i == 0 or step.state_after != records[i - 1].state_after]
    for i, step in enumerate(begun):
        later = begun[i + 1] if i + 1 < len(begun) else None
        begin = _span(step, x_of)[0]
        end = x_of.right if later is None else _span(later, x_of)[0]
        state = _STATES.get(step.state_after, step.state_after)
        until = as_of if later is None else later.after_ms
        lasts = "" if step.after_ms is None or until is None or until < step.after_ms else precise(until - step.after_ms)
        width = max(end - begin, 1.5)
        name = f"{state} {lasts}".strip()
        label = next((each for each in (name, state) if width > len(each) * _LETTER + 8), "")
        since = "" if step.after_ms is None else f" from {clock(step.after_ms)}"
        yield Bar(begin, width, _KINDS.get(state, "idle"), f"{state}{since}{f', for {lasts}' if lasts else ''}", label), name


def _labels(states: Sequence[tuple[Bar, str]], right: float) -> list[Label]:
    """Labels for bars without one, wherever no text overlaps another and no line crosses a text.

    A text begins at its line, or ends there if the edge of the plot is near. The former are placed from right to left, the latter
    then from left to right, so that the line of a higher label has no text below it.
    """
    wanted = [_wanted(bar, name, right) for bar, name in states if not bar.label]
    ordered = [*(each for each in reversed(wanted) if each.anchor == "start"), *(each for each in wanted if each.anchor == "end")]
    labels: list[Label] = []
    for label in ordered:
        placed = (replace(label, row=row) for row in range(LABEL_ROWS))
        fitting = next((each for each in placed if each.extent[0] >= 0 and not any(map(each.is_in_the_way_of, labels))), None)
        if fitting is not None:
            labels.append(fitting)
    return labels


def _wanted(bar: Bar, name: str, right: float) -> Label:
    is_at_end = bar.x + len(name) * _LETTER > right
    return Label(bar.x + bar.width if is_at_end else bar.x, "end" if is_at_end else "start", 0, name)


def _batch(step: StoryStep, x_of: _Axis) -> Bar:
    low, high = _span(step, x_of)
    kind = ("open" if step.is_open else "batch") + ("" if step.after_ms == step.before_ms else " between")
    offsets = (
        f"offset {step.first_offset}"
        if step.first_offset == step.last_offset
        else f"offsets {step.first_offset}–{step.last_offset}"
    )
    width = max(high - low, 7.0)
    return Bar(min(low, x_of.right - width), width, kind, f"{offsets}: {step.record}{_at(step)}")


def _markers(steps: Sequence[StoryStep], x_of: _Axis) -> Iterator[Mark]:
    for step in steps:
        if not _is_record(step) and not _is_batch(step):
            letter = {"ABORT": "A", "COMMI": "C"}.get(step.record[:5], "?")
            yield Mark(_span(step, x_of)[1], letter, f"offset {step.first_offset}: {step.record}{_at(step)}")


def _log_end(story: Story, start: int, end: int | None, open_x: float, x_of: _Axis, lanes: Lanes) -> list[tuple[float, float]]:
    """The growth of the log after the start, from its broker-stamped batches."""
    bottom, right = float(lanes.bottom), x_of.right
    if end is None or end <= start:
        return [(open_x, bottom), (right, bottom)]
    height = _GROWTH / (end - start)
    timed = [row for row in story.growth if clock_ms(row["max_timestamp_ms"]) is not None]
    thinned = timed[:: max(1, len(timed) // _POINTS)]
    points = [(x_of(row["max_timestamp_ms"]), bottom - (min(row["base_offset"], end) - start) * height) for row in thinned]
    line = [(open_x, bottom)]
    for x, y in points:  # a clock that goes back does not shorten the log
        line.append((max(x, line[-1][0]), min(y, line[-1][1])))
    return [*line, (right, float(lanes.top))]


def _points(line: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in line)


# ---- In words


def _says(steps: Sequence[StoryStep], story: Story, start: int, end: int | None) -> str:
    """A description of the plot for screen readers."""
    states = [f"{_STATES.get(s.state_after, s.state_after)}{_at(s)}" for s in steps if _is_record(s)]
    markers = [
        f"{s.record.split(',')[0]} at offset {s.first_offset}{_at(s)}" for s in steps if not _is_record(s) and not _is_batch(s)
    ]
    opened = [f"{s.record.split(',')[0]}{_at(s)}" for s in steps if s.is_open]
    parts = [
        f"Coordinator: {', then '.join(states[-6:])}" if states else "No record of a coordinator",
        f"markers of the producer: {', '.join(markers[-4:])}" if markers else "no marker of the producer",
        f"open from offset {start}: {', '.join(opened[:4])}" if opened else f"open from offset {start}",
    ]
    if end is not None:
        parts.append(
            f"the log has grown to offset {end}, while its last stable offset is {story.partition.get('last_stable_offset')}"
        )
    return "; ".join(parts) + "."


def _at(step: StoryStep) -> str:
    if step.after_ms is None or step.before_ms is None:
        return ""
    if step.after_ms == step.before_ms:
        return f" at {clock(step.after_ms)}"
    return f" between {clock(step.after_ms)} and {clock(step.before_ms)}"
