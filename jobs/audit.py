"""Audits copies of Kafka's logs: ingests them, reconstructs both sides, judges what is open, prints the report."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from jobs import ingest_dumps, options, reconstruct_state, report_transactions
from jobs.claim import refuse_if_busy
from jobs.report_transactions import finish, forget
from jobs.run import main, open_run, plan_text, say
from jobs.steps import carry_out
from txnlib.errors import BusyError

#: The three jobs as one: a table is written as soon as those it reads are, whichever job it belongs to. What everything
#: waits for goes first.
STEPS: Final = (*report_transactions.STEPS, *reconstruct_state.STEPS, *ingest_dumps.STEPS)


def job(argv: Sequence[str]) -> int:
    given = options.parse(options.AUDIT, __doc__ or "", argv)
    run = open_run(given)
    assert run.capture is not None
    if given.dry_run:
        print(plan_text(run.inputs, run.capture, run.settings))
        return 0
    refuse_if_busy(run, take_over=given.take_over)
    say(f"reading {len(run.capture.files)} files")
    try:
        carry_out(run, STEPS)
    except BusyError:
        raise
    except Exception:
        run.note("FAILED")
        raise
    code = finish(run, given.fail_on, given.report)
    forget(run, given.keep_days)
    return code


if __name__ == "__main__":
    sys.exit(main(job, sys.argv[1:]))
