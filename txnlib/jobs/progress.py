"""Progress of reading a capture, reported every half minute with an estimate.

Progress is counted in tasks, which are all about the same size. A Spark Connect client draws a progress bar of its own, so
nothing is reported there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any, Final

from pyspark.sql.utils import is_remote

from txnlib.core.display import duration, size
from txnlib.pipeline.run import Run

#: The step that takes longest to read the capture. Others read it at the same time.
WALK: Final = "record_batches"
SECONDS: Final = 30.0


@contextmanager
def progress_reported(run: Run, seconds: float = SECONDS) -> Iterator[None]:
    """Reports progress of reading every `seconds` seconds, and names Spark's jobs after their steps."""
    if run.capture is None or is_remote():
        yield
        return
    context = run.spark.sparkContext
    run.begin = lambda name: _name_jobs(context, name, run.settings.cluster)
    ended = Event()
    reporter = Thread(target=_report, args=(run, context.statusTracker(), ended, seconds), daemon=True)
    reporter.start()
    try:
        yield
    finally:
        ended.set()
        reporter.join()


def _name_jobs(context: Any, step: str, cluster: str) -> None:
    """Names the jobs of this thread after a step.

    The place in the code is given, too. Otherwise Spark searches the stack for it each time it makes part of a plan.
    """
    context.setJobGroup(step, f"{step}: {cluster}")
    for form in ("callSite.short", "callSite.long"):
        context.setLocalProperty(form, step)


def _report(run: Run, tracker: Any, ended: Event, every: float) -> None:
    assert run.capture is not None
    total, begun = run.capture.size_to_read, time.monotonic()
    while not ended.wait(every) and WALK not in run.written:
        share = share_done(tracker, WALK)
        if share is not None and share < 1:
            run.say(progress_text(total, share, time.monotonic() - begun))


def share_done(tracker: Any, group: str) -> float | None:
    """The share of finished tasks in the largest stage of a job group; None before it begins."""
    jobs = [info for job in tracker.getJobIdsForGroup(group) if (info := tracker.getJobInfo(job)) is not None]
    stages = [info for job in jobs for stage in job.stageIds if (info := tracker.getStageInfo(stage)) is not None]
    largest = max(stages, key=lambda stage: stage.numTasks, default=None)
    return None if largest is None or not largest.numTasks else largest.numCompletedTasks / largest.numTasks


def progress_text(total: int, share: float, seconds: float) -> str:
    """`read 41.3 GiB of 120.0 GiB, 12 min to go`. The time to go is omitted until the first task has ended."""
    to_go = f", {duration(round(seconds * (1 - share) / share) * 1000)} to go" if share else ""
    return f"read {size(round(total * share))} of {size(total)}{to_go}"
