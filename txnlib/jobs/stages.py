"""What the jobs do once their options are known to be right."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import Final

from txnlib.ask.acknowledgements import Acknowledged
from txnlib.ask.command_output import write_whole_file
from txnlib.ask.page_rows import STORIES, page_rows_of
from txnlib.ask.terminal_report import terminal_report
from txnlib.core.display import encodable, printable, size, utc_time
from txnlib.engine.retention import forget_runs
from txnlib.jobs import options
from txnlib.jobs.fail_on import exit_code
from txnlib.jobs.progress import LINES, Meter, progress_reported
from txnlib.jobs.result_files import ResultFiles
from txnlib.page.report_page import render_page
from txnlib.pipeline import run as pipeline_run
from txnlib.pipeline.audit import SparkRows, carry_out_steps, close, query_run, report_made
from txnlib.pipeline.run import Run
from txnlib.pipeline.scheduler import Step
from txnlib.pipeline.tables import AUDIT, INGEST, RECONSTRUCT, REPORT
from txnlib.readers.capture import FileKind

MS_PER_DAY: Final = 86_400_000
#: Number of stories per verdict if each takes a dozen Spark jobs.
FEW_STORIES: Final = {"HANGING": 2, "STUCK": 1, "LATE": 1}

__all__ = ["AUDIT", "INGEST", "RECONSTRUCT", "REPORT", "carry_out", "finish", "open_run", "print_plan", "reopen_run"]


def open_run(given: Namespace) -> Run:
    """A run over the capture that the options name."""
    request = options.request_of(given)
    return pipeline_run.open_run(request, LINES.progress, lambda size: Meter(size).is_read, LINES.show)


def reopen_run(given: Namespace) -> Run:
    """The run that an earlier job started: the newest in `audit_runs`, or the one of --cluster and --as-of."""
    return pipeline_run.reopen_run(options.request_of(given), LINES.progress)


def print_plan(run: Run) -> int:
    """Prints what an audit would read, for --dry-run."""
    capture, settings = run.capture, run.settings
    assert capture is not None
    counts = {kind: len(capture.of_kind(kind)) for kind in FileKind}
    files = ", ".join(f"{count} {kind.value}" for kind, count in counts.items() if count)
    print(
        f"cluster {printable(settings.cluster)}, as of {utc_time(settings.as_of_ms)} ({settings.as_of_basis})\n"
        f"{len(capture.files)} files, {size(capture.size)}: {files}\n"
        f"from {', '.join(run.inputs)}"
    )
    return 0


def carry_out(run: Run, steps: Sequence[Step], given: Namespace) -> None:
    """Carries out steps, and reports their progress."""
    with progress_reported(run, len(steps)):
        carry_out_steps(run, steps)


def finish(run: Run, given: Namespace, files: ResultFiles) -> int:
    """Prints the report, closes the run, writes the requested files and deletes old audits.

    Returns the exit code: 3 if a condition of `--fail-on` holds."""
    report = report_made(run, given.acknowledged)
    if not files.replaces_report:
        text = terminal_report(report, is_terminal=sys.stdout.isatty())
        sys.stdout.write(encodable(text, sys.stdout.encoding))
        sys.stdout.flush()
    close(run, report)
    if given.report is not None:
        write_page(run, given.report, report.known)
        LINES.progress(f"page: {given.report}")
    if given.keep_days is not None:
        gone = forget_runs(run.tables.store, run.settings.cluster, run.settings.as_of_ms - given.keep_days * MS_PER_DAY)
        LINES.progress(f"deleted {len(gone)} audits more than {given.keep_days} days older than this one")
    code, matched = exit_code(given.fail_on, report)
    if matched:
        LINES.error(f"--fail-on: {', '.join(matched)}")
    files.write(code, report, query_run(run))
    return code


def write_page(run: Run, file: str, known: Acknowledged | None = None) -> None:
    """Writes the page of a complete run. `known`: what is acknowledged."""
    queried = query_run(run)
    stories = FEW_STORIES if isinstance(queried.tables, SparkRows) else STORIES
    page = page_rows_of(queried, tables=run.tables.store.output, stories=stories, known=known)
    write_whole_file(file, render_page(page))
