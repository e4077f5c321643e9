"""The plot of a transaction, whatever the clocks say."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.pages import AS_OF, START, page, story, transaction
from txnlib.ask.episode import Event
from txnlib.page.page_charts import CELL, HEIGHT, LEFT, WIDTH, history, squares
from txnlib.page.page_rows import Story
from txnlib.page.page_timeline import AFTER, BEFORE, MARGIN, NARROW, WIDE, plot
from txnlib.page.report_page import picture, render_page

STORY = story(transaction())


def points(line: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (point.split(",") for point in line.split())]


def test_a_late_write_is_drawn_behind_the_marker_that_ended_its_transaction():
    drawn = plot(STORY)
    assert [bar.says.split(" from")[0] for bar in drawn.states] == ["Ongoing", "PrepareAbort", "CompleteAbort"]
    (marker,) = drawn.markers
    assert (marker.label, marker.says) == ("A", "offset 23: ABORT marker, epoch 0, coordinator epoch 0 at 07:19:41.949")
    before, late = drawn.batches
    assert (before.kind, late.kind) == ("batch between", "open between"), "their times are their client's"
    assert before.x + before.width <= marker.x <= late.x == drawn.open_x


def with_events(events: list[Event]) -> Story:
    return replace(STORY, episode=replace(STORY.episode, events=events))


def test_records_that_repeat_a_state_are_one_bar():
    ongoing = next(event for event in STORY.episode.events if event.state_after == "open")
    twice = with_events([ongoing, *STORY.episode.events])
    assert [bar.says.split(" from")[0] for bar in plot(twice).states] == ["Ongoing", "PrepareAbort", "CompleteAbort"]


def test_the_log_grows_while_the_last_stable_offset_stands():
    drawn = plot(STORY)
    line = points(drawn.log_end)
    assert line[0] == (round(drawn.open_x, 1), drawn.lanes["bottom"])
    assert line[-1] == (drawn.right, drawn.lanes["top"])
    assert line == sorted(line, key=lambda point: (point[0], -point[1])), "a log only grows"
    assert (drawn.start_offset, drawn.end_offset, drawn.lower_lso) == (24, 211, None)


def test_who_holds_the_last_stable_offset_is_told_where_it_is_another():
    behind = replace(STORY, partition={"last_stable_offset": 7, "high_watermark": 211})
    assert plot(behind).lower_lso == 7


def test_the_plot_is_told_in_words():
    said = plot(STORY).says
    assert "PrepareAbort at 07:19:41.939" in said
    assert "ABORT marker at offset 23 at 07:19:41.949" in said
    assert "open from offset 24: 1 record between 07:19:41.949 and 07:20:41.899" in said
    assert said.endswith("the log has grown to offset 211, while its last stable offset is 24.")


def test_nothing_known_is_a_plot_too():
    empty = Story(replace(STORY.episode, events=[]))
    drawn = plot(empty)
    assert (drawn.states, drawn.batches, drawn.markers) == ([], [], [])
    assert [(tick.x, tick.text) for tick in drawn.ticks] == [(WIDE - MARGIN, "as of 07:42:41")]
    assert drawn.says == "No record of a coordinator; no marker of the producer; open from offset 24."


def events_at(times: list[tuple[int | None, int | None]]) -> list[Event]:
    half = len(times) // 2
    own = {"log": "t-0", "event": "batch", "detail": "1 record", "producer_id": 7}
    return [
        Event(**own, offset=i, last_offset=i, after_ms=low, before_ms=high, mark="HANGING" if i >= half else "")
        for i, (low, high) in enumerate(times)
    ]


INSTANT = st.one_of(st.none(), st.integers(START - 10**9, AS_OF + 10**7))


@given(st.lists(st.tuples(INSTANT, INSTANT), max_size=60), st.sampled_from([WIDE, NARROW]))
def test_whatever_the_clocks_say_all_stays_on_the_plot_and_later_stands_right_of_earlier(times, width):
    drawn = plot(with_events(events_at(times)), width)
    right, lanes = drawn.right, drawn.lanes
    assert all(MARGIN <= bar.x <= bar.x + bar.width <= right for bar in drawn.batches)
    assert all(MARGIN <= x <= right and lanes["top"] <= y <= lanes["bottom"] for x, y in points(drawn.log_end))
    assert min(len(times), AFTER) <= len(drawn.batches) <= min(len(times), BEFORE + AFTER)
    exact = {bar.says: bar.x for bar in drawn.batches if "between" not in bar.kind}
    known = [(low, f"offset {i}: 1 record") for i, (low, high) in enumerate(times) if low is not None and low == high]
    placed = [exact[says] for _, says in sorted(known) if says in exact]
    assert placed == sorted(placed)


@given(st.lists(st.sampled_from(["COMPLETE", "PARTIAL", "DAMAGED", "MISSING"]), max_size=300))
def test_every_partition_has_its_square(statuses):
    drawn = squares([{"partition": i, "status": status} for i, status in enumerate(statuses)])
    room = {status: sum(int(part.partition("h")[2]) for part in path.split("M")[1:]) for status, path in drawn.paths}
    assert room == {status.lower(): statuses.count(status) * CELL for status in set(statuses)}
    for status, named in drawn.harmed.items():
        assert numbers(named) == [i for i, each in enumerate(statuses) if each == status]
    assert set(drawn.harmed) == set(statuses) - {"COMPLETE"}


def numbers(named: str) -> list[int]:
    """The partitions that the words name."""
    ranges = [[int(each) for each in part.split(" to ")] for part in named.partition(" ")[2].split(", ")]
    return [number for each in ranges for number in range(each[0], each[-1] + 1)]


def test_a_number_of_a_partition_cannot_be_read_as_a_count():
    rows = [{"partition": i, "status": "MISSING" if i in (0, 2, 5, 6, 7) else "COMPLETE"} for i in range(9)]
    assert squares(rows).harmed == {"MISSING": "partitions 0, 2, 5 to 7"}
    assert squares(rows[:1]).harmed == {"MISSING": "partition 0"}


# ---- The scale


def state(name: str, ms: int, number: int) -> Event:
    own = {"log": "__transaction_state-3", "clock": "COORDINATOR", "event": name, "state_after": name}
    return Event(**own, offset=number, last_offset=number, after_ms=ms, before_ms=ms)


def decided(wait_ms: int, *after_ms: int) -> Story:
    """A transaction that took so long to be decided, and then a few milliseconds."""
    names = ["Ongoing", "PrepareAbort", "CompleteAbort"]
    times = [AS_OF - wait_ms, *(AS_OF - each for each in after_ms)]
    return with_events([state(name, ms, i) for i, (name, ms) in enumerate(zip(names, times, strict=True))])


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("wait_ms", [60_000, 3_600_000, 10 * 86_400_000])
def test_a_long_wait_is_seen_as_long_and_a_short_state_is_seen_at_all(width, wait_ms):
    waited, short, after = plot(decided(wait_ms, 60, 20), width).states
    assert waited.width > (width - 2 * MARGIN) / 2
    assert min(short.width, after.width) >= 5


def test_twice_the_time_is_twice_the_width_apart_from_what_every_gap_gets():
    longer, shorter, last = plot(decided(4_000_000, 2_000_000, 1_000_000)).states
    least = 2 * shorter.width - longer.width
    assert 0 < least < 20
    assert last.width == pytest.approx(shorter.width)


def test_a_state_that_is_too_short_for_its_name_has_a_label_above_it_and_no_labels_overlap():
    drawn = plot(decided(3_600_000, 60, 20))
    assert drawn.states[0].label == "Ongoing 59 min"
    assert {label.text for label in drawn.labels} == {"PrepareAbort 40 ms", "CompleteAbort 20 ms"}
    assert len({label.row for label in drawn.labels}) == 2
    assert all(label.anchor == "end" and label.x <= drawn.right for label in drawn.labels)


@given(st.lists(st.integers(1, 100_000), min_size=1, max_size=12), st.sampled_from([WIDE, NARROW]))
def test_labels_stay_on_the_plot_and_apart(gaps, width):
    names = ["Ongoing", "PrepareAbort", "CompleteAbort"]
    events = [state(names[i % 3], AS_OF - sum(gaps[i:]), i) for i in range(len(gaps))]
    drawn = plot(with_events(events), width)
    extents = [
        (label.row, *sorted((label.x, label.x + len(label.text) * 7 * (-1 if label.anchor == "end" else 1))))
        for label in drawn.labels
    ]
    assert all(low >= 0 and high <= width for _, low, high in extents)
    for i, (row, low, high) in enumerate(extents):
        assert all(other != row or high <= begin or end <= low for other, begin, end in extents[i + 1 :])
        line = drawn.labels[i].x
        assert not [begin for other, begin, end in extents if other < row and begin < line < end], (
            "no line crosses a text"
        )


def test_the_axis_names_times_days_and_how_long_it_is_between_them():
    drawn = plot(decided(3 * 86_400_000, 60, 20))
    assert [tick.text for tick in drawn.ticks] == ["07:42:41.899", "as of 07:42:41"]
    assert [span.text for span in drawn.spans] == ["3 d"]
    assert [day.text for day in drawn.days] == ["2026-11-18", "2026-11-21"]
    overnight = plot(decided(12 * 3_600_000, 6 * 3_600_000, 20))
    assert [span.text for span in overnight.spans] == ["6 h", "6 h"]
    assert [day.text for day in overnight.days] == ["2026-11-20", "2026-11-21"]


# ---- The history


def runs(*verdicts: dict[str, int]) -> list[dict[str, Any]]:
    """Runs, the newest first, one each day."""
    return [{"as_of_ms": AS_OF - i * 86_400_000, "verdicts": each} for i, each in enumerate(verdicts)]


def test_the_newest_run_stands_right_and_the_tallest_fills_the_history():
    oldest, middle, newest = history(runs({"HANGING": 3, "LATE": 1, "OPEN": 9}, {"LATE": 2}, {})).columns
    assert oldest.bars == []
    assert [name for name, *_ in middle.bars] == ["late"]
    assert [name for name, *_ in newest.bars] == ["hanging", "late"]
    assert sum(height for *_, height in newest.bars) == HEIGHT - 12
    assert oldest.x < middle.x < newest.x
    assert newest.says == "2026-11-21 07:42:41Z: 3 HANGING, 1 LATE"


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=30))
def test_the_axes_of_the_history_fit_its_bars(counts):
    drawn = history(runs(*({"HANGING": count} for count in counts)))
    heights = {count: y for y, count in drawn.counts}
    assert len(heights) <= 5
    assert heights[0] == HEIGHT
    for column, count in zip(reversed(drawn.columns), counts, strict=True):
        for _, top, _ in column.bars:
            assert all((top < y) == (count > line) or abs(top - y) < 0.2 for line, y in heights.items())
    assert all(column.x >= LEFT and column.x + column.width <= WIDTH for column in drawn.columns)
    assert drawn.dates
    assert all(later - earlier >= 70 for (earlier, _), (later, _) in pairwise(drawn.dates))


def test_a_picture_for_a_notebook_is_the_plot_of_the_page_with_its_colours():
    svg = picture(STORY)
    assert ElementTree.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"
    assert "var(" not in svg
    assert not re.search(r"<script|href=|url\(", svg)
    shapes = svg[svg.index("</desc>") :]
    assert shapes in render_page(page(transaction()))
