"""Audits copies of Kafka's logs: ingests them, reconstructs both sides, judges what is open, prints the report."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from jobs import options
from jobs.main import main, plan_text, say
from jobs.progress import progress_reported
from jobs.report_transactions import finish
from jobs.result_files import result_files
from txnlib.pipeline.audit import carry_out_steps
from txnlib.pipeline.run import open_run
from txnlib.pipeline.tables import AUDIT


def job(argv: Sequence[str]) -> int:
    given = options.parse(options.AUDIT, __doc__ or "", argv)
    with result_files(given) as files:
        run = files.run = open_run(options.request_of(given), say)
        assert run.capture is not None
        if given.dry_run:
            print(plan_text(run.inputs, run.capture, run.settings))
            return 0
        with progress_reported(run):
            carry_out_steps(run, AUDIT, take_over=given.take_over)
        return finish(run, given, files)


def program() -> None:
    """The audit as a program of the wheel. Raises SystemExit only if the exit code is not 0, as Databricks requires."""
    if code := main(job, sys.argv[1:], is_process=True):
        sys.exit(code)


if __name__ == "__main__":
    program()
