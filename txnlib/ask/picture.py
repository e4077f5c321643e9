"""The picture of an open transaction, as SVG: its coordinator and its partition over time.

A transaction is decided within milliseconds and blocks for days. At least half of the width is to scale, so a long wait
is seen as long. The rest is shared equally by the gaps between events, so that short gaps are seen at all.
"""

from __future__ import annotations

from base64 import b64encode
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby, pairwise
from typing import Final, NamedTuple

from txnlib.ask.events import COORDINATOR, EXPIRES, Event
from txnlib.ask.queries import Row
from txnlib.core.display import duration, precise_time, printable, utc_time
from txnlib.core.instants import clock_ms

#: Widths in units of the view box: on a screen or on paper, and on a phone.
WIDE: Final = 760
NARROW: Final = 340
#: Distance of the axis from the edges.
MARGIN: Final = 6
#: Number of events to draw before and after the beginning of the open transaction.
BEFORE: Final = 14
AFTER: Final = 10
#: Width of a letter, width of a time at the axis, and the most width that each gap gets in addition to its share of
#: time.
_LETTER: Final = 6.8
_TICK: Final = 98.0
_LEAST: Final = 12.0
#: Heights: top of the states, words of the partition, middle of its batches, axis, and the whole.
_STATES, _WORDS, _BATCHES, _AXIS, _HEIGHT = 20, 60, 80, 102, 150

#: Kafka's name of a state -> its class.
_KINDS: Final[Mapping[str, str]] = {
    "Ongoing": "ongoing",
    "PrepareCommit": "decided",
    "PrepareAbort": "decided",
    "CompleteCommit": "finished",
    "CompleteAbort": "finished",
}
#: The colours are those of the page, or else of its light version.
STYLE: Final = """\
.plot { display: block; width: 100%; height: auto; }
.plot text { fill: var(--ink, #1b1f24); font: 12px system-ui, "DejaVu Sans", sans-serif; }
.plot .quiet { fill: var(--quiet, #57606a); }
.plot .grid { fill: none; stroke: var(--line, #d0d7de); }
.plot .ongoing { fill: var(--prepared, #0b5cad); }
.plot .decided { fill: var(--late, #7a5200); }
.plot .finished { fill: var(--open, #1a6b3c); }
.plot .idle, .plot .batch { fill: var(--unknown, #4b5563); }
.plot .open { fill: var(--hanging, #b42318); }
.plot .held { fill: var(--held, #f3c9c4); }
.plot .between { fill-opacity: .45; stroke: var(--unknown, #4b5563); }
.plot .open.between { stroke: var(--hanging, #b42318); }
.plot .marker path { fill: var(--ground, #ffffff); stroke: var(--ink, #1b1f24); stroke-width: 1.5; }
.plot .marker text { font-size: 10px; font-weight: 700; }
"""


class _State(NamedTuple):
    """A state of the coordinator."""

    x: float
    width: float
    kind: str
    label: str
    says: str


def image(events: Sequence[Event], as_of_ms: int, verdict: Row) -> str:
    """The picture as an element of HTML. Notebooks show it even where they show no SVG that nobody has run."""
    return image_of(drawing(events, as_of_ms, verdict), STYLE, WIDE, "The story below over time")


def image_of(drawn: str, style: str, width: int, alt: str) -> str:
    """An SVG element of a page as an image of its own, with its style."""
    head = f' xmlns="http://www.w3.org/2000/svg" style="background: #ffffff"><style>{style}</style>'
    encoded = b64encode(drawn.replace(">", head, 1).encode()).decode()
    return f'<img width="{width}" alt="{alt}" src="data:image/svg+xml;base64,{encoded}">'


def drawing(events: Sequence[Event], as_of_ms: int, verdict: Row, width: int = WIDE, name: str = "timeline") -> str:
    """The picture of a verdict's events as an element of a page that has `STYLE`. `name`: what its ids begin with."""
    events, name = _drawn(events), _safe(name)
    x_of = _axis(events, as_of_ms, float(width - MARGIN))
    right, open_x = x_of.right, next((_span(event, x_of)[0] for event in events if event.mark), float(MARGIN))
    states = list(_states(events, as_of_ms, x_of))
    batches = [event for event in events if event.clock != COORDINATOR and not event.is_marker]
    behind = verdict["blocked_offsets"]
    held = f"open from offset {verdict['start_offset']}{'' if behind is None else f', {behind} behind it'}"
    told = f"Coordinator: {', '.join(state.label for state in states) or 'no record of it'}; {held}."
    parts = [
        f'<svg class="plot {"wide" if width == WIDE else "narrow"}" viewBox="0 0 {width} {_HEIGHT}" role="group"'
        f' aria-labelledby="{name}-title {name}-says">',
        f'<title id="{name}-title">What happened, by the brokers’ clocks</title>',
        f'<desc id="{name}-says">{_safe(told)}</desc>',
        '<g aria-hidden="true">',
        *_time(events, as_of_ms, x_of),
        f'<text x="0" y="12">Coordinator: {_sentence(states, width)}</text>',
        _rect("held", open_x, _BATCHES - 8, right - open_x, 16),
        _text(0, _WORDS, "Partition", "", "start"),
        _text(right, _WORDS, held, "open", "end"),
        *([] if batches else [_text(16, _BATCHES + 4, "its batches are not in the captured log", "", "start")]),
        "</g>",
        *(_item(state.says, _rect(state.kind, state.x, _STATES, state.width, 20)) for state in states),
        *(_item(_says(event), _batch(event, x_of)) for event in batches),
        *(_item(_says(event), _marker(event, x_of), " marker") for event in events if event.is_marker),
        "</svg>",
    ]
    return "\n".join(parts)


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
            return self.right
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
    """The leftmost and the rightmost position at which an event can have been written."""
    low = float(MARGIN) if event.after_ms is None else x_of(event.after_ms)
    high = x_of.right if event.before_ms is None else x_of(event.before_ms)
    return min(low, high), max(low, high)


def _time(events: Sequence[Event], as_of: int, x_of: _Axis) -> Iterator[str]:
    """The axis: its end, its beginning, and each time for which there is room; between two times how long that is, and
    below them the day where it changes."""
    named: dict[float, int] = {}
    for ms in (as_of, x_of.times[0], *(event.before_ms for event in events if event.before_ms is not None)):
        middle = min(max(x_of(ms), _TICK / 2), x_of.right - _TICK / 2)
        if all(abs(middle - other) >= _TICK for other in named):
            named[middle] = ms
    yield f'<path class="grid" d="M0 {_AXIS}H{x_of.right}"/>'
    before = day = None
    for x, ms in sorted(named.items()):
        yield f'<path class="grid" d="M{x_of(ms):.1f} {_STATES}V{_AXIS + 4}"/>'
        yield _text(x, _AXIS + 30, clock(ms) if ms != as_of else f"as of {clock(ms)[:8]}", "quiet")
        if before is not None:
            yield _text((before[0] + x) / 2, _AXIS + 14, precise(ms - before[1]))
        if (its := utc_time(ms)[:10]) != day and clock_ms(ms) is not None:
            yield _text(x, _AXIS + 44, its, "quiet")
        before, day = (x, ms), its


def clock(ms: int) -> str:
    """07:22:58.141; the number if it is outside of the calendar."""
    time = precise_time(ms)
    return time[11:-1] if time.endswith("Z") else time


def precise(ms: int) -> str:
    """A duration, in milliseconds below one second: 40 ms, 1.3 s, 22 min."""
    if ms < 1_000:
        return f"{ms} ms"
    return f"{ms / 1000:.1f} s" if ms < 10_000 else duration(ms)


# ---- What stands on it


def _states(events: Sequence[Event], as_of: int, x_of: _Axis) -> Iterator[_State]:
    """The states of the coordinator. Records that repeat one, such as those that add a partition, share it."""
    records = groupby((event for event in events if event.clock == COORDINATOR), lambda event: event.state_after)
    for event, later in pairwise([*(next(same) for _, same in records), None]):
        assert event is not None
        begin, since = _span(event, x_of)[0], event.after_ms
        end, until = (x_of.right, as_of) if later is None else (_span(later, x_of)[0], later.after_ms)
        lasts = "" if since is None or until is None or until < since else precise(until - since)
        name, width = _state(event), max(end - begin, 1.5)
        says = f"{name}{'' if since is None else f' from {clock(since)}'}{f', for {lasts}' if lasts else ''}"
        x = min(begin, x_of.right - width)
        yield _State(x, width, _KINDS.get(name, "idle"), f"{name} {lasts}".strip(), says)


def _state(event: Event) -> str:
    return "expired" if event.event == EXPIRES else event.event


def _sentence(states: Sequence[_State], width: int) -> str:
    """The states in their colours; the first ones are left out if there is no room for all."""
    shown = list(states)
    while len("Coordinator: … ") + sum(len(state.label) + 2 for state in shown) > width / _LETTER:
        del shown[0]
    said = ", ".join(f'<tspan class="{state.kind}">{_safe(state.label)}</tspan>' for state in shown)
    return f"{'' if len(shown) == len(states) else '… '}{said}" if states else "no record of it"


def _batch(event: Event, x_of: _Axis) -> str:
    low, high = _span(event, x_of)
    kind = ("open" if event.mark else "batch") + ("" if event.after_ms == event.before_ms else " between")
    width = max(high - low, 7.0)
    return _rect(kind, min(low, x_of.right - width), _BATCHES - 8, width, 16)


def _marker(event: Event, x_of: _Axis) -> str:
    x = _span(event, x_of)[1]
    return f'<path d="M{x:.1f} {_BATCHES - 12}l9 12l-9 12l-9 -12z"/>{_text(x, _BATCHES + 4, event.event[:1])}'


def _says(event: Event) -> str:
    is_one = event.offset == event.last_offset
    where = f"offset {event.offset}" if is_one else f"offsets {event.offset}–{event.last_offset}"
    return f"{where}: {event.record}{_at(event)}"


def _at(event: Event) -> str:
    if event.after_ms is None or event.before_ms is None:
        return ""
    if event.after_ms == event.before_ms:
        return f" at {clock(event.after_ms)}"
    return f" between {clock(event.after_ms)} and {clock(event.before_ms)}"


# ---- Elements


def _safe(text: str) -> str:
    return escape(printable(text))


def _text(x: float, y: int, text: str, kind: str = "", anchor: str = "middle") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y}" text-anchor="{anchor}">{_safe(text)}</text>'


def _rect(kind: str, x: float, y: int, width: float, height: int) -> str:
    return f'<rect class="{kind}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}" rx="2"/>'


def _item(says: str, shape: str, kind: str = "") -> str:
    """A shape that tells what it is, to the mouse, the keyboard and screen readers."""
    return f'<g class="item{kind}" role="img" aria-label="{_safe(says)}"><title>{_safe(says)}</title>{shape}</g>'
