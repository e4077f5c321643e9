"""The jobs: an audit, and its three stages one by one."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from typing import Final

from txnlib.ask.report import terminal_report
from txnlib.ask.run_result import is_failure
from txnlib.engine.retention import forget_runs
from txnlib.errors import ExitCode
from txnlib.jobs import options
from txnlib.jobs.main import plan_text, reopen_run, say
from txnlib.jobs.progress import progress_reported
from txnlib.jobs.result_files import ResultFiles, result_files, write_page
from txnlib.pipeline.audit import carry_out_steps, close
from txnlib.pipeline.run import Run, open_run
from txnlib.pipeline.tables import AUDIT, INGEST, RECONSTRUCT, REPORT

MS_PER_DAY: Final = 86_400_000


def job(argv: Sequence[str]) -> int:
    """Audits copies of Kafka's logs: ingests them, reconstructs both sides, judges what is open, prints the report."""
    given = options.parse(options.AUDIT, job.__doc__ or "", argv)
    with result_files(given) as files:
        run = files.run = open_run(options.request_of(given), say)
        if given.dry_run:
            print(plan_text(run))
            return 0
        with progress_reported(run):
            carry_out_steps(run, AUDIT, take_over=given.take_over)
        return finish(run, given, files)


def ingest_dumps(argv: Sequence[str]) -> int:
    """Reads the copies of the logs into tables: batches, coordinator records, and what could not be read."""
    given = options.parse(options.INGEST, ingest_dumps.__doc__ or "", argv)
    run = open_run(options.request_of(given), say)
    if given.dry_run:
        print(plan_text(run))
        return 0
    with progress_reported(run):
        carry_out_steps(run, INGEST, take_over=given.take_over)
    run.note("INGESTED")
    return 0


def reconstruct_state(argv: Sequence[str]) -> int:
    """Reconstructs what partitions and coordinators knew, from the tables that ingest_dumps wrote."""
    given = options.parse(options.RECONSTRUCT, reconstruct_state.__doc__ or "", argv)
    run = reopen_run(given)
    carry_out_steps(run, RECONSTRUCT, take_over=given.take_over)
    run.note("RECONSTRUCTED")
    return 0


def report_transactions(argv: Sequence[str]) -> int:
    """Judges open transactions, writes the reports and prints the result."""
    given = options.parse(options.REPORT, report_transactions.__doc__ or "", argv)
    with result_files(given) as files:
        run = files.run = reopen_run(given)
        carry_out_steps(run, REPORT, take_over=given.take_over)
        return finish(run, given, files)


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
    code = ExitCode.MATCHED if is_failure(given.fail_on, remaining) else ExitCode.DONE
    files.write(code, summary)
    return code
