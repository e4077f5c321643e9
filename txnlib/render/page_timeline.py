"""The plot of an open transaction on the report page: coordinator, partition and offsets over time.

The time axis is stretched around events and compressed between them: a transaction is decided within milliseconds and blocks for
days. Between two events, time is linear.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from math import log10
from typing import Final

from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.queries.page_rows import Story
from txnlib.queries.story_steps import STATE_AFTER, StoryStep

WIDTH: Final = 760
HEIGHT: Final = 208
LEFT: Final = 100
RIGHT: Final = 660
COORDINATOR: Final = 26
PARTITION: Final = 70
TOP: Final = 104
BOTTOM: Final = 164
#: Number of steps to draw before and after the beginning of the open transaction. The table below the plot has more.
BEFORE: Final = 14
AFTER: Final = 10
_LETTER: Final = 7.4
_TICK: Final = 84.0
_POINTS: Final = 60

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
class Plot:
    """The shapes of one plot, in units of its view box."""

    states: Sequence[Bar]
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
    says: str
    left_out: int


def plot(story: Story) -> Plot:
    """The plot of one open transaction."""
    steps, left_out = _drawn(story.explained.steps)
    as_of, start = story.explained.as_of_ms, story.explained.verdict["start_offset"]
    x_of = _axis(steps, as_of)
    opened = [step for step in steps if step.is_open]
    open_x = _span(opened[0], x_of)[0] if opened else float(LEFT)
    end = story.partition.get("high_watermark")
    lso = story.partition.get("last_stable_offset")
    line = _log_end(story, start, end, open_x, x_of)
    return Plot(
        states=list(_states(steps, x_of)),
        batches=[_batch(step, x_of) for step in steps if _is_batch(step)],
        markers=list(_markers(steps, x_of)),
        open_x=open_x,
        log_end=_points(line),
        blocked=_points([*line, (float(RIGHT), float(BOTTOM)), (open_x, float(BOTTOM))]),
        start_offset=start,
        end_offset=end,
        lower_lso=lso if lso is not None and lso < start else None,
        ticks=list(_ticks(steps, as_of, x_of)),
        says=_says(steps, story, start, end),
        left_out=left_out,
    )


def clock(ms: int) -> str:
    """07:22:58.141; the number if it is outside of the calendar."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"


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

    def __call__(self, ms: int) -> float:
        at = bisect_right(self.times, ms) - 1
        if at < 0:
            return float(LEFT)
        if at + 1 >= len(self.times):
            return self.places[-1]
        share = (ms - self.times[at]) / (self.times[at + 1] - self.times[at])
        return self.places[at] + share * (self.places[at + 1] - self.places[at])


def _axis(steps: Sequence[StoryStep], as_of: int) -> _Axis:
    times = sorted({as_of, *(ms for step in steps for ms in (step.after_ms, step.before_ms) if ms is not None)})
    widths = [0.4 + log10(1 + later - earlier) for earlier, later in pairwise(times)]
    # The first event is a little off the edge, because the time of what came before it is unknown.
    inset = LEFT + 10.0 if widths else float(RIGHT)
    unit = (RIGHT - inset) / (sum(widths) or 1)
    places = [inset]
    for width in widths:
        places.append(places[-1] + width * unit)
    return _Axis(times, places)


def _span(step: StoryStep, x_of: _Axis) -> tuple[float, float]:
    low = float(LEFT) if step.after_ms is None else x_of(step.after_ms)
    high = float(RIGHT) if step.before_ms is None else x_of(step.before_ms)
    return min(low, high), max(low, high)


def _ticks(steps: Sequence[StoryStep], as_of: int, x_of: _Axis) -> Iterator[Tick]:
    stamped = [step.after_ms for step in steps if step.after_ms is not None and step.after_ms == step.before_ms]
    last = x_of(as_of)
    yield Tick(last, f"as of {clock(as_of)}", "end")
    taken = [last - _TICK]  # the label of as_of is left of it, and longer
    for ms in dict.fromkeys([*stamped, *(step.before_ms for step in steps if step.before_ms is not None)]):
        x = x_of(ms)
        anchor, middle = ("start", x + _TICK / 2) if x < LEFT + _TICK / 2 else ("middle", x)
        if all(abs(middle - other) >= _TICK for other in taken):
            taken.append(middle)
            yield Tick(x, clock(ms), anchor)


# ---- Lanes


def _states(steps: Sequence[StoryStep], x_of: _Axis) -> Iterator[Bar]:
    """The states of the coordinator. Records that repeat a state, such as those that add a partition, share a bar."""
    records = [step for step in steps if _is_record(step)]
    begun = [step for i, step in enumerate(records) if i == 0 or step.state_after != records[i - 1].state_after]
    for i, step in enumerate(begun):
        begin = _span(step, x_of)[0]
        end = _span(begun[i + 1], x_of)[0] if i + 1 < len(begun) else float(RIGHT)
        state = _STATES.get(step.state_after, step.state_after)
        width = max(end - begin, 1.5)
        label = state if width > len(state) * _LETTER + 6 else ""
        since = "" if step.after_ms is None else f" from {clock(step.after_ms)}"
        yield Bar(begin, width, _KINDS.get(state, "idle"), f"{state}{since}", label)


def _batch(step: StoryStep, x_of: _Axis) -> Bar:
    low, high = _span(step, x_of)
    kind = ("open" if step.is_open else "batch") + ("" if step.after_ms == step.before_ms else " between")
    offsets = (
        f"offset {step.first_offset}"
        if step.first_offset == step.last_offset
        else f"offsets {step.first_offset}–{step.last_offset}"
    )
    return Bar(low, max(high - low, 7.0), kind, f"{offsets}: {step.record}", "")


def _markers(steps: Sequence[StoryStep], x_of: _Axis) -> Iterator[Mark]:
    for step in steps:
        if not _is_record(step) and not _is_batch(step):
            letter = {"ABORT": "A", "COMMI": "C"}.get(step.record[:5], "?")
            yield Mark(_span(step, x_of)[1], letter, f"offset {step.first_offset}: {step.record}")


def _log_end(story: Story, start: int, end: int | None, open_x: float, x_of: _Axis) -> list[tuple[float, float]]:
    """The growth of the log after the start, from its broker-stamped batches."""
    if end is None or end <= start:
        return [(open_x, float(BOTTOM)), (float(RIGHT), float(BOTTOM))]
    height = (BOTTOM - TOP) / (end - start)
    timed = [row for row in story.growth if clock_ms(row["max_timestamp_ms"]) is not None]
    thinned = timed[:: max(1, len(timed) // _POINTS)]
    points = [(x_of(row["max_timestamp_ms"]), BOTTOM - (min(row["base_offset"], end) - start) * height) for row in thinned]
    line = [(open_x, float(BOTTOM))]
    for x, y in points:  # a clock that goes back does not shorten the log
        line.append((max(x, line[-1][0]), min(y, line[-1][1])))
    return [*line, (float(RIGHT), float(TOP))]


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
