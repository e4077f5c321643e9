"""Reads the copies of the logs into tables: batches, coordinator records, and what could not be read."""

from __future__ import annotations

from collections.abc import Sequence

from txnlib.jobs import options
from txnlib.jobs.main import plan_text, say
from txnlib.jobs.progress import progress_reported
from txnlib.pipeline.audit import carry_out_steps
from txnlib.pipeline.run import open_run
from txnlib.pipeline.tables import INGEST


def job(argv: Sequence[str]) -> int:
    given = options.parse(options.INGEST, __doc__ or "", argv)
    run = open_run(options.request_of(given), say)
    if given.dry_run:
        print(plan_text(run))
        return 0
    with progress_reported(run):
        carry_out_steps(run, INGEST, take_over=given.take_over)
    run.note("INGESTED")
    return 0
