"""Reconstructs what partitions and coordinators knew, from the tables that ingest_dumps wrote."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from jobs import options
from jobs.run import main, reopen_run
from txnlib.stages.claim import claim, refuse_if_busy
from txnlib.stages.reconstruct_state import STEPS
from txnlib.stages.steps import carry_out


def job(argv: Sequence[str]) -> int:
    given = options.parse(options.RECONSTRUCT, __doc__ or "", argv)
    run = reopen_run(given)
    refuse_if_busy(run, take_over=given.take_over)
    claim(run)
    carry_out(run, STEPS)
    run.note("RECONSTRUCTED")
    return 0


if __name__ == "__main__":
    sys.exit(main(job, sys.argv[1:]))
