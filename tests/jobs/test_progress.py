"""The progress of an audit, in words."""

import time
from types import SimpleNamespace

import pytest

from txnlib.core.display import Written
from txnlib.jobs import progress
from txnlib.jobs.progress import (
    SECONDS,
    WALK,
    WORDS,
    WORTH_A_LINE,
    Meter,
    progress_reported,
    progress_text,
    share_done,
)
from txnlib.pipeline.tables import AUDIT

GIB = 1 << 30


@pytest.mark.parametrize(
    ("share", "seconds", "said"),
    [
        (0.0, 30.0, "read 0 B of 120.0 GiB"),
        (0.25, 30.0, "read 30.0 GiB of 120.0 GiB, 1 min to go"),
        (0.5, 3_600.0, "read 60.0 GiB of 120.0 GiB, 1 h to go"),
        (0.75, 30.0, "read 90.0 GiB of 120.0 GiB, 10 s to go"),
    ],
)
def test_what_is_said_is_bytes_of_bytes_and_the_time_to_go(share, seconds, said):
    assert progress_text(120 * GIB, share, seconds) == said


@pytest.fixture
def lines(monkeypatch):
    """What goes to a terminal's last line, and what is a line for good."""
    said = SimpleNamespace(shown=[], kept=[])
    monkeypatch.setattr(progress, "LINES", SimpleNamespace(show=said.shown.append, progress=said.kept.append))
    return said


def test_what_is_read_is_shown_at_once_and_a_line_now_and_then(lines, monkeypatch):
    clock = iter([10.0, SECONDS, SECONDS + 1])
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    meter = Meter(8 * GIB, begun=0.0, told=0.0)
    for _ in range(3):
        meter.is_read(2 * GIB)
    assert lines.shown == [
        "read 2.0 GiB of 8.0 GiB, 30 s to go",
        "read 4.0 GiB of 8.0 GiB, 30 s to go",
        "read 6.0 GiB of 8.0 GiB, 10 s to go",
    ]
    assert lines.kept == lines.shown[1:2]


def test_a_line_tells_of_a_long_step_that_made_rows(lines):
    meter = Meter(0)
    meter.begin("segments")
    assert lines.shown == ["which files each copy has (segments) …"]
    for written in (Written(9, WORTH_A_LINE + 1), Written(9, WORTH_A_LINE), Written(0, 60.0)):
        meter.ended("segments", written)
    assert lines.kept == ["which files each copy has (segments): 9 rows, 3.0 s"]


def test_steps_are_counted_and_have_words_that_people_know(lines):
    meter = Meter(0, steps=38)
    for step in ("transaction_log", "late_transactions"):
        meter.begin(step)
    assert lines.shown == [
        "step 1 of 38: coordinators' records (transaction_log) …",
        "step 2 of 38: late transactions …",
    ]


def test_words_are_of_steps_that_there_are():
    assert {*WORDS} <= {step.name for step in AUDIT}
    assert len({*WORDS.values()}) == len(WORDS)


def tracker_of(*jobs: list[tuple[int, int] | None]) -> SimpleNamespace:
    """Of one group: for each job its stages, as tasks and how many of them have ended; None for a stage not yet
    known."""
    stages = [stage for job in jobs for stage in job]
    ids = iter(range(len(stages)))
    of_job = {number: SimpleNamespace(stageIds=[next(ids) for _ in job]) for number, job in enumerate(jobs)}
    of_stage = [stage and SimpleNamespace(numTasks=stage[0], numCompletedTasks=stage[1]) for stage in stages]
    return SimpleNamespace(
        getJobIdsForGroup=lambda group: [*of_job, 99] if group == WALK else [],
        getJobInfo=of_job.get,
        getStageInfo=lambda stage: of_stage[stage],
    )


def test_the_largest_stage_counts_and_what_is_not_known_does_not():
    assert share_done(tracker_of(), WALK) is None
    assert share_done(tracker_of([None]), WALK) is None
    assert share_done(tracker_of([(2, 2)], [(40, 10), None, (8, 0)]), WALK) == 0.25
    assert share_done(tracker_of([(40, 10)]), "segments") is None


def run_of(spark, **more) -> SimpleNamespace:
    capture, settings = SimpleNamespace(size_to_read=8 * GIB), SimpleNamespace(cluster="prod")
    return SimpleNamespace(
        spark=spark, capture=capture, source=SimpleNamespace(), settings=settings, written={}, **more
    )


@pytest.mark.classic
@pytest.mark.parametrize(
    ("stage", "written", "is_told"),
    [
        pytest.param((40, 10), {}, True, id="on its way"),
        pytest.param((2, 2), {}, False, id="Delta looked at its log, and the walk has not begun"),
        pytest.param((40, 10), {WALK: Written(0, 0.0)}, False, id="written"),
    ],
)
def test_tasks_of_spark_are_told_of_while_the_walk_goes_on_and_only_then(lines, stage, written, is_told):
    context = SimpleNamespace(statusTracker=lambda: tracker_of([stage]))
    run = run_of(SimpleNamespace(sparkContext=context))
    run.written.update(written)
    with progress._spark_watched(run, Meter(8 * GIB), seconds=0.01):
        time.sleep(0.1)
    assert bool(lines.shown) == is_told


def test_a_source_tells_what_it_has_read(engine, lines):
    run = run_of(engine.spark)
    with progress_reported(run):
        run.begin(WALK)
        run.source.is_read(2 * GIB)
        run.ended(WALK, Written(5, 61.0))
    words = f"reading the logs ({WALK})"
    assert [text.partition(",")[0] for text in lines.shown] == [f"{words} …", "read 2.0 GiB of 8.0 GiB", ""]
    assert lines.kept == [f"{words}: 5 rows, 61.0 s"]


def test_a_step_that_goes_on_is_told_once_a_minute_until_it_ends(lines, monkeypatch):
    now = 1_000.0
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now))
    meter = Meter(0, begun=now, told=now)
    for step in ("infer_settings", "open_transactions", WALK):
        meter.begin(step)
    for seconds in (59, 60, 61, 119, 120, 200):
        now = 1_000.0 + seconds
        meter.tell_running()
    meter.ended("open_transactions", Written(0, 200))
    now = 1_300.0
    meter.tell_running()
    said = "verdicts on what is open (open_transactions): {} min so far"
    assert lines.kept == [said.format(minutes) for minutes in (1, 2, 3)]
