"""Reconstructs what partitions and coordinators knew, from the tables that ingest_dumps wrote."""

from __future__ import annotations

from collections.abc import Sequence

from txnlib.jobs import options
from txnlib.jobs.main import reopen_run
from txnlib.pipeline.audit import carry_out_steps
from txnlib.pipeline.tables import RECONSTRUCT


def job(argv: Sequence[str]) -> int:
    given = options.parse(options.RECONSTRUCT, __doc__ or "", argv)
    run = reopen_run(given)
    carry_out_steps(run, RECONSTRUCT, take_over=given.take_over)
    run.note("RECONSTRUCTED")
    return 0
