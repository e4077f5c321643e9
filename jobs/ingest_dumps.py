"""Reads the copies of the logs into tables: batches, coordinator records, and what could not be read."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from jobs import options
from jobs.run import main, open_run, plan_text, say
from txnlib.stages.claim import refuse_if_busy
from txnlib.stages.ingest_dumps import STEPS
from txnlib.stages.run import reading_text
from txnlib.stages.steps import carry_out


def job(argv: Sequence[str]) -> int:
    given = options.parse(options.INGEST, __doc__ or "", argv)
    run = open_run(given)
    assert run.capture is not None
    if given.dry_run:
        print(plan_text(run.inputs, run.capture, run.settings))
        return 0
    refuse_if_busy(run, take_over=given.take_over)
    say(reading_text(run.capture))
    carry_out(run, STEPS)
    run.note("INGESTED")
    return 0


if __name__ == "__main__":
    sys.exit(main(job, sys.argv[1:]))
