"""The picture of a transaction, whatever the clocks say; and partitions in words."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.pages import AS_OF, START, page, story, transaction
from txnlib.ask import picture
from txnlib.ask.events import Event
from txnlib.ask.explain import Explained
from txnlib.ask.page_rows import harmed_partitions
from txnlib.ask.picture import AFTER, BEFORE, MARGIN, NARROW, STYLE, WIDE, image
from txnlib.ask.story import Story
from txnlib.core.display import printable
from txnlib.page.report_page import render_page

STORY = story(transaction())
#: Width of a letter of 12 px at most.
LETTER = 7


def elements(svg: str, kind: str) -> list[ElementTree.Element]:
    """The elements of a class, such as rectangles and texts, in their order."""
    return [each for each in ElementTree.fromstring(svg).iter() if kind in each.get("class", "").split()]


def items(svg: str) -> list[tuple[str, ElementTree.Element]]:
    """What each shape says, and the shape."""
    return [(each.get("aria-label"), each[1]) for each in elements(svg, "item")]


def bars(svg: str, *kinds: str) -> list[tuple[str, float, float]]:
    """The rectangles of any of the classes: what they say, and their extents."""
    found = [(says, shape) for says, shape in items(svg) if {*kinds} & {*shape.get("class", "").split()}]
    return [(says, float(shape.get("x")), float(shape.get("width"))) for says, shape in found]


def states(svg: str) -> list[tuple[str, float, float]]:
    return bars(svg, "ongoing", "decided", "finished", "idle")


def said(svg: str) -> list[str]:
    """All texts in view."""
    return ["".join(each.itertext()) for each in ElementTree.fromstring(svg).iter("text")]


def drawing(story: Explained, *how: int, **named: str) -> str:
    return picture.drawing(story.events, story.as_of_ms, story.verdict, *how, **named)


def with_events(events: Sequence[Event]) -> Explained:
    return replace(STORY, events=events)


def test_a_late_write_is_drawn_behind_the_marker_that_ended_its_transaction():
    svg = drawing(STORY)
    assert [says.split(" from")[0] for says, *_ in states(svg)] == ["Ongoing", "PrepareAbort", "CompleteAbort"]
    ((told, marker),) = [(says, shape) for says, shape in items(svg) if shape.tag == "path"]
    assert told == "offset 23: ABORT marker, epoch 0, coordinator epoch 0 at 07:19:41.949"
    assert elements(svg, "marker")[0].find("text").text == "A"
    (_, x, width), (late, late_x, _) = bars(svg, "batch", "open")
    assert len(elements(svg, "between")) == 2, "their times are their client's"
    at = float(re.match(r"M([\d.]+)", marker.get("d"))[1])
    (held,) = elements(svg, "held")
    assert x + width <= at <= late_x == float(held.get("x"))
    assert "between 07:19:41.949 and 07:20:41.899" in late


def test_records_that_repeat_a_state_are_one_bar():
    ongoing = next(event for event in STORY.events if event.state_after == "open")
    svg = drawing(with_events([ongoing, *STORY.events]))
    assert [says.split(" from")[0] for says, *_ in states(svg)] == ["Ongoing", "PrepareAbort", "CompleteAbort"]


def test_it_says_how_long_each_state_lasted_and_what_is_open():
    svg = drawing(STORY)
    assert said(svg)[-4:-1] == [
        "Coordinator: Ongoing 39 ms, PrepareAbort 20 ms, CompleteAbort 22 min",
        "Partition",
        "open from offset 24, 187 behind it",
    ]
    described = ElementTree.fromstring(svg).find("desc").text
    assert described == f"{said(svg)[-4]}; open from offset 24, 187 behind it."


def test_nothing_known_is_a_picture_too():
    svg = drawing(with_events([]))
    assert items(svg) == []
    assert said(svg) == [
        "as of 07:42:41", "2026-11-21", "Coordinator: no record of it", "Partition",
        "open from offset 24, 187 behind it", "its batches are not in the captured log",
    ]  # fmt: skip


def events_at(times: list[tuple[int | None, int | None]]) -> list[Event]:
    half = len(times) // 2
    own = {"log": "t-0", "event": "batch", "detail": "1 record", "producer_id": 7}
    return [
        Event(**own, offset=i, last_offset=i, after_ms=low, before_ms=high, mark="HANGING" if i >= half else "")
        for i, (low, high) in enumerate(times)
    ]


INSTANT = st.one_of(st.none(), st.integers(START - 10**9, AS_OF + 10**7))


@given(st.lists(st.tuples(INSTANT, INSTANT), max_size=60), st.sampled_from([WIDE, NARROW]))
def test_whatever_the_clocks_say_all_stays_in_the_picture_and_later_stands_right_of_earlier(times, width):
    svg = drawing(with_events(events_at(times)), width)
    batches = bars(svg, "batch", "open")
    assert all(MARGIN - 0.1 <= x <= x + wide <= width - MARGIN + 0.1 for _, x, wide in batches)
    assert min(len(times), AFTER) <= len(batches) <= min(len(times), BEFORE + AFTER)
    exact = {says.partition(" record")[0]: x for says, x, _ in batches if "between" not in says}
    known = [(low, f"offset {i}: 1") for i, (low, high) in enumerate(times) if low is not None and low == high]
    placed = [exact[says] for _, says in sorted(known) if says in exact]
    assert placed == sorted(placed)


# ---- The scale


def state(name: str, ms: int, number: int) -> Event:
    own = {"log": "__transaction_state-3", "clock": "COORDINATOR", "event": name, "state_after": name}
    return Event(**own, offset=number, last_offset=number, after_ms=ms, before_ms=ms)


def decided(wait_ms: int, *after_ms: int) -> Explained:
    """A transaction that took so long to be decided, and then a few milliseconds."""
    names = ["Ongoing", "PrepareAbort", "CompleteAbort"]
    times = [AS_OF - wait_ms, *(AS_OF - each for each in after_ms)]
    return with_events([state(name, ms, i) for i, (name, ms) in enumerate(zip(names, times, strict=True))])


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("wait_ms", [60_000, 3_600_000, 10 * 86_400_000])
def test_a_long_wait_is_seen_as_long_and_a_short_state_is_seen_at_all(width, wait_ms):
    (_, _, waited), (_, _, short), (_, _, after) = states(drawing(decided(wait_ms, 60, 20), width))
    assert waited > (width - 2 * MARGIN) / 2
    assert min(short, after) >= 5


def test_twice_the_time_is_twice_the_width_apart_from_what_every_gap_gets():
    (_, _, longer), (_, _, shorter), (_, _, last) = states(drawing(decided(4_000_000, 2_000_000, 1_000_000)))
    least = 2 * shorter - longer
    assert 0 < least < 20
    assert last == pytest.approx(shorter, abs=0.2)


@given(st.lists(st.integers(1, 100_000), min_size=1, max_size=12), st.sampled_from([WIDE, NARROW]))
def test_texts_stay_in_the_picture_and_apart(gaps, width):
    names = ["Ongoing", "PrepareAbort", "CompleteAbort"]
    events = [state(names[i % 3], AS_OF - sum(gaps[i:]), i) for i in range(len(gaps))]
    texts = ElementTree.fromstring(drawing(with_events(events), width)).iter("text")
    taken: dict[str, list[tuple[float, float]]] = {}
    for text in texts:
        long, x = len("".join(text.itertext())) * LETTER, float(text.get("x"))
        low = x - {"middle": long / 2, "end": long}.get(text.get("text-anchor"), 0)
        taken.setdefault(text.get("y"), []).append((low, low + long))
    for row in taken.values():
        assert all(low >= -MARGIN and high <= width + MARGIN for low, high in row)
        assert all(high <= begin for (_, high), (begin, _) in zip(sorted(row), sorted(row)[1:], strict=False))


def test_the_last_states_are_named_where_there_is_no_room_for_all():
    names = ["Ongoing", "PrepareAbort", "CompleteAbort"] * 3
    svg = drawing(with_events([state(name, AS_OF - 90 + 10 * i, i) for i, name in enumerate(names)]), NARROW)
    assert "Coordinator: … CompleteAbort 10 ms" in said(svg)


def test_the_axis_names_times_days_and_how_long_it_is_between_them():
    long = said(drawing(decided(3 * 86_400_000, 60, 20)))
    assert long[:5] == ["07:42:41.899", "2026-11-18", "as of 07:42:41", "3 d", "2026-11-21"]
    overnight = said(drawing(decided(12 * 3_600_000, 6 * 3_600_000, 20)))
    assert [text for text in overnight if text.endswith(" h")] == ["6 h", "6 h"]
    assert [text for text in overnight if text.startswith("2026")] == ["2026-11-20", "2026-11-21"]


# ---- On the page and in a notebook


def test_a_notebook_shows_the_picture_of_the_page_above_the_story():
    shown = STORY._repr_html_()
    assert shown.startswith(image(STORY.events, STORY.as_of_ms, STORY.verdict))
    assert shown.endswith(Story._repr_html_(STORY))
    svg = b64decode(re.search(r"base64,([^\"]+)", shown)[1]).decode()
    assert ElementTree.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"
    assert not re.search(r"<script|href=|url\(", svg)
    shapes = svg[svg.index("</desc>") :]
    assert shapes in render_page(page(transaction()))


def test_the_colours_of_a_notebook_are_those_of_a_light_page():
    light = re.search(r":root \{(.*?)\}", render_page(page()), re.DOTALL)[1]
    colours = dict(re.findall(r"var\(--(\w+), (#\w+)\)", STYLE))
    assert len(colours) > 8
    assert colours.items() <= dict(re.findall(r"--([\w-]+): (#\w+);", light)).items()


def test_what_a_log_contains_is_no_markup():
    evil = '"><script>alert(1)</script>\u202e'
    events = [replace(event, event=f"{event.event}{evil}", transactional_id=evil) for event in STORY.events]
    svg = drawing(with_events(events), name=evil)
    assert "<script" not in svg
    assert printable(evil) in "".join(ElementTree.fromstring(svg).itertext())
    assert "\u202e" not in svg


# ---- Partitions in words


def numbers(named: str) -> list[int]:
    """The partitions that the words name."""
    ranges = [[int(each) for each in part.split(" to ")] for part in named.partition(" ")[2].split(", ")]
    return [number for each in ranges for number in range(each[0], each[-1] + 1)]


@given(st.lists(st.sampled_from(["COMPLETE", "PARTIAL", "DAMAGED", "MISSING"]), max_size=300))
def test_every_partition_that_is_not_whole_is_named(statuses):
    rows = [{"topic": "t", "partition": i, "status": each} for i, each in enumerate(statuses) if each != "COMPLETE"]
    harmed = harmed_partitions(page(harmed=rows)).get("t", {})
    assert set(harmed) == set(statuses) - {"COMPLETE"}
    for status, named in harmed.items():
        assert numbers(named) == [i for i, each in enumerate(statuses) if each == status]


def test_a_number_of_a_partition_cannot_be_read_as_a_count():
    rows = [{"topic": "t", "partition": i, "status": "MISSING"} for i in (0, 2, 5, 6, 7)]
    assert harmed_partitions(page(harmed=rows))["t"] == {"MISSING": "partitions 0, 2, 5 to 7"}
    assert harmed_partitions(page(harmed=rows[:1]))["t"] == {"MISSING": "partition 0"}
