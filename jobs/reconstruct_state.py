"""Reconstructs what partitions and coordinators knew, from the tables that ingest_dumps wrote."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from jobs import options
from jobs.main import main, reopen_run
from txnlib.pipeline.audit import carry_out_steps
from txnlib.pipeline.tables import RECONSTRUCT


def job(argv: Sequence[str]) -> int:
    given = options.parse(options.RECONSTRUCT, __doc__ or "", argv)
    run = reopen_run(given)
    carry_out_steps(run, RECONSTRUCT, take_over=given.take_over)
    run.note("RECONSTRUCTED")
    return 0


if __name__ == "__main__":
    sys.exit(main(job, sys.argv[1:], is_process=True))
