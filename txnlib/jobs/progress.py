"""Progress of reading a capture, reported every half minute with an estimate.

Progress is counted in tasks, which are all about the same size. A Spark Connect client draws a progress bar of its own,
so nothing is reported there.
"""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Event, Thread
from typing import Any, Final

from pyspark.sql.utils import is_remote

from txnlib.core.display import duration, size
from txnlib.pipeline.run import Run

TEXT: Final = "text"
JSON: Final = "json"
FORMATS: Final = (TEXT, JSON)


@dataclass(slots=True)
class LogLines:
    """How lines are written. stdout is for the report."""

    form: str = TEXT
    is_quiet: bool = False

    def progress(self, text: str) -> None:
        """Writes a line of progress with its time, by the clock of this machine. In one write, because steps run in
        parallel."""
        if not self.is_quiet:
            self._write("INFO", text, is_timed=True)

    def error(self, text: str) -> None:
        """Writes an error, also if progress is not asked for. As text it has no time: it is what a shell or cron
        shows."""
        self._write("ERROR", text, is_timed=False)

    def _write(self, level: str, text: str, *, is_timed: bool) -> None:
        now = datetime.now(UTC)
        is_terminal = sys.stderr.isatty()
        if self.form == JSON:
            time = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
            line = json.dumps({"time": time, "level": level, "message": text})
        elif is_timed:
            line = f"{now:{'%H:%M:%SZ' if is_terminal else '%Y-%m-%dT%H:%M:%SZ'}} {text}"
        else:
            line = text
        # On a terminal, the line replaces Spark's progress bar, which Spark then redraws below it.
        sys.stderr.write(f"\r\x1b[K{line}\n" if is_terminal else f"{line}\n")
        sys.stderr.flush()


#: Of this process. A job sets it before it does anything else.
LINES: Final = LogLines()


def set_up(argv: Sequence[str]) -> None:
    """Sets how lines are written, from a command line that may still be found to be wrong."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--log-format", default=TEXT)
    parser.add_argument("--quiet", action="store_true")
    try:
        given, _ = parser.parse_known_args(list(argv))
    except Exception:  # the job's own parser says what is wrong
        return
    LINES.form, LINES.is_quiet = (given.log_format if given.log_format in FORMATS else TEXT), given.quiet


# ---- Progress on a terminal


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
