"""The plot of a transaction, whatever the clocks say."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.support.pages import AS_OF, START, story, transaction
from txnlib.queries.page_rows import Story
from txnlib.queries.story_steps import StoryStep
from txnlib.render.page_charts import CELL, HEIGHT, columns_of, squares
from txnlib.render.page_timeline import AFTER, BEFORE, BOTTOM, LEFT, RIGHT, TOP, plot

STORY = story(transaction())


def points(line: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (point.split(",") for point in line.split())]


def test_a_late_write_is_drawn_behind_the_marker_that_ended_its_transaction():
    drawn = plot(STORY)
    assert [bar.label or bar.says for bar in drawn.states] == ["Ongoing", "PrepareAbort", "CompleteAbort"]
    (marker,) = drawn.markers
    assert (marker.letter, marker.says) == ("A", "offset 23: ABORT marker, epoch 0, coordinator epoch 0")
    before, late = drawn.batches
    assert (before.kind, late.kind) == ("batch between", "open between"), "their times are their client's"
    assert before.x + before.width <= marker.x <= late.x == drawn.open_x


def test_records_that_repeat_a_state_are_one_bar():
    ongoing = next(step for step in STORY.explained.steps if step.state_after == "open")
    twice = replace(STORY, explained=replace(STORY.explained, steps=[ongoing, *STORY.explained.steps]))
    assert [bar.label for bar in plot(twice).states] == ["Ongoing", "PrepareAbort", "CompleteAbort"]


def test_the_log_grows_while_the_last_stable_offset_stands():
    drawn = plot(STORY)
    line = points(drawn.log_end)
    assert line[0] == (round(drawn.open_x, 1), BOTTOM)
    assert line[-1] == (RIGHT, TOP)
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
    empty = Story(replace(STORY.explained, steps=[]))
    drawn = plot(empty)
    assert (drawn.states, drawn.batches, drawn.markers) == ([], [], [])
    assert [(tick.x, tick.text) for tick in drawn.ticks] == [(RIGHT, "as of 07:42:41.899")]
    assert drawn.says == "No record of a coordinator; no marker of the producer; open from offset 24."


def steps_at(times: list[tuple[int | None, int | None]]) -> list[StoryStep]:
    return [
        StoryStep("producer 7", "1 record", "open from 1", "t-0", i, i, after_ms=low, before_ms=high, is_open=i >= len(times) // 2)
        for i, (low, high) in enumerate(times)
    ]


INSTANT = st.one_of(st.none(), st.integers(START - 10**9, AS_OF + 10**7))


@given(st.lists(st.tuples(INSTANT, INSTANT), max_size=60))
def test_whatever_the_clocks_say_all_stays_on_the_plot_and_later_stands_right_of_earlier(times):
    explained = replace(STORY.explained, steps=steps_at(times))
    drawn = plot(replace(STORY, explained=explained))
    assert all(LEFT <= bar.x <= bar.x + bar.width <= RIGHT + 8 for bar in drawn.batches)
    assert all(LEFT <= x <= RIGHT and TOP <= y <= BOTTOM for x, y in points(drawn.log_end))
    assert len(drawn.batches) + drawn.left_out == len(times)
    assert len(drawn.batches) <= BEFORE + AFTER
    exact = {bar.says: bar.x for bar in drawn.batches if "between" not in bar.kind}
    known = [(low, f"offset {i}: 1 record") for i, (low, high) in enumerate(times) if low is not None and low == high]
    placed = [exact[says] for _, says in sorted(known) if says in exact]
    assert placed == sorted(placed)


@given(st.lists(st.sampled_from(["COMPLETE", "PARTIAL", "DAMAGED", "MISSING"]), max_size=300))
def test_every_partition_has_its_square(statuses):
    drawn = squares([{"partition": i, "status": status} for i, status in enumerate(statuses)])
    room = {status: sum(int(part.partition("h")[2]) for part in path.split("M")[1:]) for status, path in drawn.paths}
    assert room == {status.lower(): statuses.count(status) * CELL for status in set(statuses)}
    assert len(drawn.harmed) == len(statuses) - statuses.count("COMPLETE")


def test_the_tallest_run_fills_the_history_and_the_newest_stands_right():
    runs = [{"verdicts": {"HANGING": 3, "LATE": 1, "OPEN": 9}}, {"verdicts": {"LATE": 2}}, {"verdicts": {}}]
    oldest, middle, newest = columns_of(runs, 700)
    assert oldest.bars == []
    assert [name for name, *_ in middle.bars] == ["late"]
    assert [name for name, *_ in newest.bars] == ["hanging", "late"]
    assert sum(height for *_, height in newest.bars) == HEIGHT - 2
    assert oldest.x < middle.x < newest.x
