"""Judges open transactions, writes the reports and prints the result."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from typing import Final

from txnlib.ask.report import terminal_report
from txnlib.delta.retention import forget_runs
from txnlib.jobs import options
from txnlib.jobs.main import reopen_run, say
from txnlib.jobs.options import is_failure
from txnlib.jobs.result_files import ResultFiles, result_files, write_page
from txnlib.pipeline.audit import carry_out_steps, close
from txnlib.pipeline.run import Run
from txnlib.pipeline.tables import REPORT

MS_PER_DAY: Final = 86_400_000


def finish(run: Run, given: Namespace, files: ResultFiles) -> int:
    """Closes the run, prints the report, writes the requested files and deletes old audits.

    Returns the exit code: 3 if a condition of `--fail-on` holds."""
    begun = time.monotonic()
    summary = close(run, given.acknowledged)
    if not files.replaces_report:
        sys.stdout.write(terminal_report(summary, is_terminal=sys.stdout.isatty()))
        sys.stdout.flush()
    say(f"report: {time.monotonic() - begun:.1f} s")
    if given.report is not None:
        write_page(run, given.report, summary.known)
        say(f"page: {given.report}")
    if given.keep_days is not None:
        gone = forget_runs(run.tables.store, run.settings.cluster, run.settings.as_of_ms - given.keep_days * MS_PER_DAY)
        say(f"deleted {len(gone)} audits more than {given.keep_days} days older than this one")
    remaining = summary.counts if summary.known is None else summary.known.remaining(summary.counts)
    code = 3 if is_failure(given.fail_on, remaining) else 0
    files.write(code, summary)
    return code


def job(argv: Sequence[str]) -> int:
    given = options.parse(options.REPORT, __doc__ or "", argv)
    with result_files(given) as files:
        run = files.run = reopen_run(given)
        carry_out_steps(run, REPORT, take_over=given.take_over)
        return finish(run, given, files)
