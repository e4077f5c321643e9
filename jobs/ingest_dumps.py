"""Reads the copies of the logs into tables: batches, coordinator records, and what could not be read."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from jobs import options
from jobs.main import main, plan_text, say
from jobs.progress import progress_reported
from txnlib.pipeline.audit import carry_out_steps
from txnlib.pipeline.run import open_run
from txnlib.pipeline.tables import INGEST


def job(argv: Sequence[str]) -> int:
    given = options.parse(options.INGEST, __doc__ or "", argv)
    run = open_run(options.request_of(given), say)
    assert run.capture is not None
    if given.dry_run:
        print(plan_text(run.inputs, run.capture, run.settings))
        return 0
    with progress_reported(run):
        carry_out_steps(run, INGEST, take_over=given.take_over)
    run.note("INGESTED")
    return 0


if __name__ == "__main__":
    sys.exit(main(job, sys.argv[1:], is_process=True))
