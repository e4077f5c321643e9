"""Judges what is open, writes the reports, and prints what is hanging, late and stuck."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from jobs import options
from jobs.page import write_page
from jobs.run import main, reopen_run, say
from txnlib.delta.retention import forget_runs
from txnlib.report.terminal import page
from txnlib.stages.audit import close
from txnlib.stages.claim import claim, refuse_if_busy
from txnlib.stages.report_transactions import STEPS
from txnlib.stages.run import Run
from txnlib.stages.steps import carry_out

MS_PER_DAY: Final = 86_400_000


def forget(run: Run, keep_days: int | None) -> None:
    """Removes the cluster's audits that are so many days older than this one."""
    if keep_days is not None:
        gone = forget_runs(run.tables.store, run.settings.cluster, run.settings.as_of_ms - keep_days * MS_PER_DAY)
        say(f"removed {len(gone)} audits of more than {keep_days} days before")


def finish(run: Run, fail_on: frozenset[str], file: str | None = None) -> int:
    """Closes the run, prints the report, writes the page, and gives the exit code: 3 if a verdict of `fail_on` was found."""
    summary = close(run)
    sys.stdout.write(page(summary, is_terminal=sys.stdout.isatty()))
    sys.stdout.flush()
    if file is not None:
        write_page(run, file)
        say(f"page: {file}")
    return 3 if any(summary.counts["verdicts"].get(name, 0) for name in fail_on) else 0


def job(argv: Sequence[str]) -> int:
    given = options.parse(options.REPORT, __doc__ or "", argv)
    run = reopen_run(given)
    refuse_if_busy(run, take_over=given.take_over)
    claim(run)
    carry_out(run, STEPS)
    code = finish(run, given.fail_on, given.report)
    forget(run, given.keep_days)
    return code


if __name__ == "__main__":
    sys.exit(main(job, sys.argv[1:]))
