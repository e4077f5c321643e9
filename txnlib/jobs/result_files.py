"""The files for programs, written however a job ends."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from txnlib.ask.command_output import write_whole_file
from txnlib.ask.report import Report
from txnlib.ask.run_result import Outcome, render_metrics, render_numbers, results_of
from txnlib.engine.choice import label
from txnlib.jobs.options import STDOUT
from txnlib.jobs.program import failure
from txnlib.jobs.progress import LINES
from txnlib.pipeline.clock import now
from txnlib.readers.storage.local_files import shown
from txnlib.version import __version__

if TYPE_CHECKING:
    from txnlib.ask.queries import StoredRun
    from txnlib.pipeline.run import Run


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

    def write(self, code: int, report: Report, queried: StoredRun) -> None:
        """Writes the results of a complete run."""
        if self.run is not None and (self.metrics or self.summary):
            ended = _now_ms()
            found = results_of(queried, report, ended)
            self._write(exit_code=code, finished_ms=ended, found=found, in_doubt=report.counts["in_doubt"])

    def _write(self, **ended: Any) -> None:
        outcome = replace(self.outcome, **ended)
        if self.run is not None:
            settings, written = self.run.settings, dict(self.run.written)
            outcome = replace(
                outcome,
                cluster=settings.cluster,
                run_id=settings.run_id,
                engine=label(self.run.engine.name),
                written=written,
            )
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
