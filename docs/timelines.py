"""Both sides of a transaction over time: its coordinator's states, a partition's batches and markers, the last stable
offset."""

from __future__ import annotations

from typing import Final

from drawing import AMBER, BLUE, GREEN, GREY, INK, MISSING, MUTED, STABLE, Drawing, Paint
from stories import HEALTHY, NOW, OPEN, Story

from txnlib.core.kafka.transaction_state import ACTIVE_STATES, COMPLETE_STATES, PREPARED_STATES, TransactionState

WIDTH: Final = 900
_LEFT, _MINUTE = 176, 17
#: Lanes below the top of a story.
_STATES, _BATCHES, _OFFSETS, _OFFSETS_END = 14, 74, 116, 160
_GHOST: Final = Paint("#ffffff", MISSING)
_WAITING: Final = Paint("#ffffff", MUTED)


def two_sides() -> str:
    drawing = Drawing(
        WIDTH, 274, "The two sides of a transaction that is committed", f"{_told(HEALTHY)} {HEALTHY.about}"
    )
    _story(drawing, HEALTHY, 48)
    drawing.text(20, 26, HEALTHY.about)
    _legend(drawing, 252, is_missing_shown=False)
    return drawing.render()


def what_is_missing() -> str:
    titles = [story.judged() for story in OPEN]
    told = " ".join(
        f"{said.verdict}, {said.reason}: {_told(story)} {story.about}" for said, story in zip(titles, OPEN, strict=True)
    )
    tall = 232
    drawing = Drawing(WIDTH, tall * len(OPEN) + 34, "What is missing in transactions that stay open", told)
    for number, (said, story) in enumerate(zip(titles, OPEN, strict=True)):
        top = number * tall
        is_missed = said.verdict != "OPEN"
        drawing.text(20, top + 28, said.verdict, size=15, is_bold=True)
        drawing.text(_LEFT, top + 28, said.reason, size=12, colour=MUTED)
        drawing.text(_LEFT, top + 46, story.about, colour=MISSING if is_missed else INK)
        _story(drawing, story, top + 58, is_missed=is_missed)
        if number:
            drawing.path([(0, top), (WIDTH, top)], "#d0d7de")
    _legend(drawing, tall * len(OPEN) + 16)
    return drawing.render()


def _story(drawing: Drawing, story: Story, top: float, *, is_missed: bool = True) -> None:
    drawing.path([(_x(NOW), top + 6), (_x(NOW), top + _OFFSETS_END)], MUTED, is_dashed=True, width=1)
    _state_lane(drawing, story, top)
    _batch_lane(drawing, story, top)
    _offset_lane(drawing, story, top)
    if story.missing is not None:
        _missing(drawing, story, top, _GHOST if is_missed else _WAITING)


def _x(minute: float) -> float:
    return _LEFT + minute * _MINUTE


def _state_lane(drawing: Drawing, story: Story, top: float) -> None:
    y = top + _STATES
    drawing.text(20, y + 12, "coordinator", is_bold=True)
    drawing.text(20, y + 27, "__transaction_state-3", size=12, colour=MUTED)
    ends = [*[minute for minute, _ in story.states[1:]], NOW]
    for (minute, state), end in zip(story.states, ends, strict=True):
        drawing.box(_x(minute) + 1, y, (end - minute) * _MINUTE - 2, 28, _paint(state))
        drawing.text(_x(minute) + 7, y + 18, state.kafka_name, size=12 if end - minute > 3 else 11)
    for minute, text in story.asked:
        drawing.text(_x(minute) + 2, y - 6, text, size=11, colour=MUTED)
    if story.timeout_minutes is not None and len(story.states) == 2:
        _tick(drawing, story.states[1][0] + story.timeout_minutes, "its timeout", y)
    if story.noted is not None:
        _tick(drawing, *story.noted, y)


def _tick(drawing: Drawing, minute: int, text: str, y: float) -> None:
    drawing.path([(_x(minute), y - 4), (_x(minute), y + 32)], INK, width=1.5)
    drawing.text(_x(minute) + 6, y + 18, text, size=12)


def _batch_lane(drawing: Drawing, story: Story, top: float) -> None:
    y = top + _BATCHES
    drawing.text(20, y + 9, "partition", is_bold=True)
    drawing.text(20, y + 24, "orders-0, by offset", size=12, colour=MUTED)
    drawing.path([(_x(0), y + 12), (_x(NOW), y + 12)], "#c5ccd4", width=1)
    for minute, offset in story.offsets.items():
        if story.marker is not None and minute == story.marker[0]:
            _sent(drawing, minute, top, INK)
            drawing.disc(_x(minute), y + 12, GREEN)
            drawing.text(_x(minute), y + 16, story.marker[1][0], size=12, anchor="middle", is_bold=True)
            continue
        drawing.box(_x(minute) - 10, y + 2, 20, 20, BLUE if minute in story.writes else GREY)
        drawing.text(_x(minute), y + 16, str(offset), size=11, anchor="middle")


def _sent(drawing: Drawing, minute: int, top: float, colour: str) -> None:
    """From the coordinator to where the marker is."""
    drawing.path(
        [(_x(minute), top + _STATES + 30), (_x(minute), top + _BATCHES + 1)],
        colour,
        is_dashed=colour != INK,
        is_arrow=True,
    )


def _missing(drawing: Drawing, story: Story, top: float, paint: Paint) -> None:
    if story.is_missing_sent:
        _sent(drawing, story.missing, top, paint.stroke)
    drawing.disc(_x(story.missing), top + _BATCHES + 12, paint, is_missing=True)
    drawing.text(
        _x(story.missing), top + _BATCHES + 16, "?", size=12, colour=paint.stroke, anchor="middle", is_bold=True
    )


def _offset_lane(drawing: Drawing, story: Story, top: float) -> None:
    low, high = top + _OFFSETS_END, top + _OFFSETS
    drawing.text(20, high + 14, "end of the log", size=12, colour=MUTED)
    drawing.text(20, high + 32, "last stable offset", size=12, colour=STABLE, is_bold=True)
    highest = len(story.offsets)
    for which, colour, width in ((1, MUTED, 1.5), (2, STABLE, 2.5)):
        points = [(_x(0), low)]
        for moment in story.ends():
            y = round(low - (low - high) * moment[which] / highest, 1)
            if y != points[-1][1]:
                points += [(_x(moment[0]), points[-1][1]), (_x(moment[0]), y)]
        drawing.path([*points, (_x(NOW), points[-1][1])], colour, width=width)


def _legend(drawing: Drawing, y: float, *, is_missing_shown: bool = True) -> None:
    for x, paint, text in ((20, BLUE, "batch of the transaction"), (222, GREY, "of another producer")):
        drawing.box(x, y - 11, 14, 14, paint)
        drawing.text(x + 20, y, text, size=12)
    drawing.disc(416, y - 4, GREEN)
    drawing.text(416, y, "C", size=12, anchor="middle", is_bold=True)
    drawing.text(432, y, "marker: COMMIT or ABORT", size=12)
    if is_missing_shown:
        drawing.disc(622, y - 4, _GHOST, is_missing=True)
        drawing.text(622, y, "?", size=12, colour=MISSING, anchor="middle", is_bold=True)
        drawing.text(638, y, "one that is missing", size=12)
    drawing.text(_x(NOW), y, "now: as_of", size=12, colour=MUTED, anchor="end")


def _paint(state: TransactionState) -> Paint:
    if state in PREPARED_STATES:
        return AMBER
    if state in ACTIVE_STATES:
        return BLUE
    return GREEN if state in COMPLETE_STATES else GREY


def _told(story: Story) -> str:
    """What the lanes show, in words."""
    states = ", then ".join(state.kafka_name for _, state in story.states)
    marker = f"{story.marker[1]} marker at offset {story.offsets[story.marker[0]]}" if story.marker else "no marker"
    written = ", ".join(str(story.offsets[minute]) for minute in story.writes)
    return f"Coordinator: {states}. Partition: batches at offsets {written}, {marker}."
