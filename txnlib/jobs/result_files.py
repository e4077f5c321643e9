"""The files for programs and the page, written however a job ends."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, Final

from txnlib.ask.acknowledgements import Acknowledged
from txnlib.ask.atomic_file import write_whole_file
from txnlib.ask.run_result import Outcome, render_metrics, render_numbers, results_of
from txnlib.ask.summary import Summary
from txnlib.jobs.main import failure
from txnlib.jobs.options import STDOUT
from txnlib.jobs.progress import LINES
from txnlib.page.page_rows import STORIES, page_rows_of
from txnlib.page.report_page import render_page
from txnlib.pipeline.clock import now
from txnlib.pipeline.query_run import SparkRows, query_run
from txnlib.pipeline.run import Run
from txnlib.readers.storage.local_files import shown
from txnlib.version import __version__

#: Number of stories per verdict if each takes a dozen Spark jobs.
FEW_STORIES: Final = {"HANGING": 2, "STUCK": 1, "LATE": 1}


def write_page(run: Run, file: str, known: Acknowledged | None = None) -> None:
    """Writes the page of a complete run. `known`: what is acknowledged."""
    queried = query_run(run)
    stories = FEW_STORIES if isinstance(queried.tables, SparkRows) else STORIES
    page = page_rows_of(queried, tables=run.tables.store.output, stories=stories, known=known)
    write_whole_file(file, render_page(page))


# ---- Files for programs


@dataclass(slots=True)
class ResultFiles:
    """Writes the outcome of a job to the files that its options name."""

    metrics: str | None
    summary: str | None
    #: The outcome before the run is open: cluster and start time.
    outcome: Outcome
    run: Run | None = None

    @property
    def replaces_report(self) -> bool:
        return self.summary == STDOUT

    def write(self, code: int, summary: Summary) -> None:
        """Writes the results of a complete run."""
        if self.run is not None and (self.metrics or self.summary):
            ended = _now_ms()
            found = results_of(query_run(self.run), summary, ended)
            self._write(exit_code=code, finished_ms=ended, found=found, in_doubt=summary.counts["in_doubt"])

    def _write(self, **ended: Any) -> None:
        outcome = replace(self.outcome, **ended)
        if self.run is not None:
            settings, written = self.run.settings, dict(self.run.written)
            outcome = replace(outcome, cluster=settings.cluster, run_id=settings.run_id, written=written)
        if self.metrics is not None:
            write_whole_file(self.metrics, render_metrics(outcome))
        if self.replaces_report:
            sys.stdout.write(render_numbers(outcome))
            sys.stdout.flush()
        elif self.summary is not None:
            write_whole_file(self.summary, render_numbers(outcome))


@contextmanager
def result_files(given: Namespace) -> Iterator[ResultFiles]:
    """Yields the writer for a job that succeeds. If the job fails, writes that and raises the failure again."""
    cluster = given.cluster or shown(
        PurePath((getattr(given, "input", None) or [given.output or given.schema])[0]).name
    )
    begun = Outcome(cluster=cluster, version=__version__, exit_code=1, started_ms=_now_ms(), finished_ms=0)
    is_dry_run = getattr(given, "dry_run", False)  # a dry run writes nothing
    files = ResultFiles(None, None, begun) if is_dry_run else ResultFiles(given.metrics, given.summary, begun)
    try:
        yield files
    except Exception as error:
        try:
            code, text = failure(error)
            files._write(exit_code=code, finished_ms=_now_ms(), error=text)
        except Exception as second:  # the first failure is the one to raise
            LINES.error(f"txnlib: {second}")
        raise


def _now_ms() -> int:
    return int(now().timestamp() * 1000)
