"""Audits copies of Kafka's logs: ingests them, reconstructs both sides, judges what is open, prints the report."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from jobs import options
from jobs.ingest_dumps import ingest
from jobs.reconstruct_state import reconstruct
from jobs.report_transactions import finish, report
from jobs.run import main, open_run, plan_text


def job(argv: Sequence[str]) -> int:
    given = options.parse(options.AUDIT, __doc__ or "", argv)
    run = open_run(given)
    if given.dry_run:
        assert run.capture is not None
        print(plan_text(run.inputs, run.capture, run.settings))
        return 0
    try:
        run = ingest(run)
        reconstruct(run)
        report(run)
    except Exception:
        run.note("FAILED")
        raise
    return finish(run, given.fail_on)


if __name__ == "__main__":
    sys.exit(main(job, sys.argv[1:]))
