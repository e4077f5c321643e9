"""Audits copies of Kafka's logs: ingests them, reconstructs both sides, judges what is open, prints the report."""

from __future__ import annotations

from collections.abc import Sequence

from txnlib.jobs import options
from txnlib.jobs.main import plan_text, say
from txnlib.jobs.progress import progress_reported
from txnlib.jobs.report_transactions import finish
from txnlib.jobs.result_files import result_files
from txnlib.pipeline.audit import carry_out_steps
from txnlib.pipeline.run import open_run
from txnlib.pipeline.tables import AUDIT


def job(argv: Sequence[str]) -> int:
    given = options.parse(options.AUDIT, __doc__ or "", argv)
    with result_files(given) as files:
        run = files.run = open_run(options.request_of(given), say)
        if given.dry_run:
            print(plan_text(run))
            return 0
        with progress_reported(run):
            carry_out_steps(run, AUDIT, take_over=given.take_over)
        return finish(run, given, files)
