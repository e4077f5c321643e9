"""What a job is doing, on stderr."""

from __future__ import annotations

import json
import shutil
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final

from txnlib.core.display import Written, duration, encodable, size
from txnlib.core.schema import TABLES

if TYPE_CHECKING:
    from txnlib.pipeline.run import Run

TEXT: Final = "text"
JSON: Final = "json"
#: Begins the line of a terminal again.
_CLEAR: Final = "\r\x1b[K"
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
        # On a terminal, the line replaces the one that is rewritten (`show`), or Spark's progress bar.
        line = encodable(line, sys.stderr.encoding)
        sys.stderr.write(f"{_CLEAR}{line}\n" if is_terminal else f"{line}\n")
        sys.stderr.flush()

    def show(self, text: str) -> None:
        """Rewrites the line at the bottom of a terminal. Does nothing elsewhere."""
        if sys.stderr.isatty() and self.form == TEXT and not self.is_quiet:
            text = encodable(text, sys.stderr.encoding)
            sys.stderr.write(f"{_CLEAR}{text[: shutil.get_terminal_size().columns - 1]}")
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


# ---- Progress of an audit


#: The step that reads the capture.
WALK: Final = "record_batches"
#: Seconds between two lines about reading, if stderr is no terminal whose line can be rewritten.
SECONDS: Final = 30.0
#: Seconds between two lines about any other step that goes on.
STILL_SECONDS: Final = 60.0
#: Steps that take longer than this, in seconds, get a line when they end.
WORTH_A_LINE: Final = 2.0


#: The first text on a terminal.
LOADING: Final = "loading …"
#: Step -> what it does, where the name of its table does not say it.
WORDS: Final[Mapping[str, str]] = {
    WALK: "reading the logs",
    "committed_offsets": "offsets that groups committed",
    "checkpoints": "brokers' checkpoints",
    "producer_snapshots": "producer snapshots",
    "aborted_transactions": "transaction indexes",
    "live_producers": "what brokers answered about producers",
    "live_transactions": "what coordinators answered",
    "transaction_log": "coordinators' records",
    "segments": "which files each copy has",
    "metadata_log": "the cluster's metadata log",
    "forget_capture": "what need not be read again",
    "partition_assignments": "leaders and replicas over time",
    "cluster_settings": "settings of the cluster over time",
    "broker_sessions": "brokers that were fenced",
    "producer_id_blocks": "producer ids that were handed out",
    "infer_settings": "settings that the capture shows",
    "coverage": "what each copy proves",
    "lower_coverage": "what each copy does not prove",
    "quarantine": "what could not be read",
    "producer_spans": "transactions on each partition",
    "coordinator_states": "steps of each transactional id",
    "checked_batches": "checksums of batches that matter",
    "producer_id_owners": "ids that own producer ids",
    "measured_clocks": "how far brokers' clocks differ",
    "transactions": "decisions and their markers",
    "findings": "oddities",
    "open_transactions": "verdicts on what is open",
    "partitions": "last stable offsets",
    "transaction_outcomes": "outcomes on all partitions",
    "abort_plan": "the plan",
    "blocked_groups": "groups that wait",
    "ended_transactions": "what ended since the audit before",
}


def words_of(step: str) -> str:
    """What a step does, in words, with the name of its table if it has rows."""
    return f"{WORDS[step]} ({step})" if step in WORDS else step.replace("_", " ")


@dataclass(slots=True)
class Meter:
    """How far an audit is: on a terminal, one line that is rewritten; elsewhere, a line for each long step."""

    total: int
    steps: int = 0
    begun: float = field(default_factory=time.monotonic)
    read: int = 0
    told: float = field(default_factory=time.monotonic)
    number: int = 0
    #: Step that has not ended -> when it began, and how many lines have told of it since.
    running: dict[str, tuple[float, int]] = field(default_factory=dict)

    def begin(self, step: str) -> None:
        """Notes and shows that a step begins."""
        self.number += 1
        if step in TABLES:  # others are not told to have ended
            self.running[step] = time.monotonic(), 0
        share = f"step {self.number} of {self.steps}: " if self.steps else ""
        LINES.show(f"{share}{words_of(step)} …")

    def is_read(self, size: int) -> None:
        """Adds `size` bytes to what was read, and shows it."""
        self.read += size
        self.is_read_to(self.read / max(self.total, 1))

    def is_read_to(self, share: float) -> None:
        """Shows that this share of the capture was read."""
        now = time.monotonic()
        text = progress_text(self.total, share, now - self.begun)
        LINES.show(text)
        if now - self.told >= SECONDS:
            self.told = now
            LINES.progress(text)

    def ended(self, step: str, written: Written) -> None:
        """Prints a line for a step that has ended, if it took long and wrote rows."""
        self.running.pop(step, None)
        if written.seconds > WORTH_A_LINE and written.rows != 0:
            LINES.progress(f"{words_of(step)}: {written}")

    def tell_running(self) -> None:
        """Prints a line for each step that has gone on for another minute. Reading prints lines of its own."""
        now = time.monotonic()
        for step, (begun, lines) in list(self.running.items()):
            if step != WALK and now - begun >= (lines + 1) * STILL_SECONDS:
                self.running[step] = begun, lines + 1
                LINES.progress(f"{words_of(step)}: {duration(round(now - begun) * 1000)} so far")


@contextmanager
def progress_reported(run: Run, steps: int = 0) -> Iterator[None]:
    """Reports what a run does. `steps`: how many."""
    meter = Meter(0 if run.capture is None else run.capture.size_to_read, steps)
    run.begin, run.ended = meter.begin, meter.ended
    if run.source is not None:
        run.source.is_read = meter.is_read
    over = Event()
    teller = Thread(target=_tell_running, args=(meter, over), daemon=True)
    teller.start()
    try:
        with _spark_watched(run, meter):
            yield
    finally:
        over.set()
    LINES.show("")


def _tell_running(meter: Meter, over: Event) -> None:
    while not over.wait(1):
        meter.tell_running()


@contextmanager
def _spark_watched(run: Run, meter: Meter, seconds: float = 1.0) -> Iterator[None]:
    """Names Spark's jobs after their steps, and reports how many tasks of the walk have ended. A Spark Connect client
    draws a progress bar of its own."""
    from pyspark.sql.utils import is_remote  # a wrong option is told before PySpark is loaded

    if run.capture is None or is_remote():
        yield
        return
    context = run.spark.sparkContext

    def begin(step: str) -> None:
        _name_jobs(context, step, run.settings.cluster)
        meter.begin(step)

    run.begin, ended = begin, Event()
    reporter = Thread(target=_watch, args=(run, context.statusTracker(), meter, ended, seconds), daemon=True)
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


def _watch(run: Run, tracker: Any, meter: Meter, ended: Event, every: float) -> None:
    while not ended.wait(every) and WALK not in run.written:
        share = share_done(tracker, WALK)
        if share is not None and share < 1:
            meter.is_read_to(share)


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
