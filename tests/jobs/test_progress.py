"""The progress of a long stage, in words."""

import time
from types import SimpleNamespace
from typing import Any

import pytest

from txnlib.ask.run_result import Written
from txnlib.jobs.progress import WALK, progress_reported, progress_text, share_done
from txnlib.spark.python_tasks import in_tasks

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


def run_of(spark: Any, said: list[str]) -> SimpleNamespace:
    capture, settings = SimpleNamespace(size_to_read=8 * GIB), SimpleNamespace(cluster="prod")
    return SimpleNamespace(spark=spark, capture=capture, settings=settings, written={}, say=said.append)


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


@pytest.mark.parametrize(
    ("stage", "written", "is_told"),
    [
        pytest.param((40, 10), {}, True, id="on its way"),
        pytest.param((2, 2), {}, False, id="Delta looked at its log, and the walk has not begun"),
        pytest.param((40, 10), {WALK: Written(0, 0.0)}, False, id="written"),
    ],
)
def test_it_is_told_while_the_walk_goes_on_and_only_then(stage, written, is_told):
    said: list[str] = []
    context = SimpleNamespace(statusTracker=lambda: tracker_of([stage]))
    run = run_of(SimpleNamespace(sparkContext=context), said)
    run.written.update(written)
    with progress_reported(run, seconds=0.01):
        time.sleep(0.1)
    assert bool(said) == is_told


def test_a_real_walk_is_told_of_until_it_has_ended(spark):
    said: list[str] = []
    run = run_of(spark, said)

    def read(number: int):
        time.sleep(0.1)
        yield from ()

    with progress_reported(run, seconds=0.05):
        run.begin(WALK)
        try:
            assert in_tasks(spark, list(range(16)), read, "number long").count() == 0
            run.written[WALK] = Written(0, 0.0)
            before = len(said)
            time.sleep(0.2)
        finally:
            spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    assert before == len(said) > 2
    assert said[-1].startswith("read ")
    assert " of 8.0 GiB" in said[-1]
    assert said[-1].endswith(" to go")


def test_of_a_run_without_a_capture_nothing_is_told(spark):
    run = SimpleNamespace(spark=spark, capture=None, begin=print)
    with progress_reported(run, seconds=0.001):
        assert run.begin is print
