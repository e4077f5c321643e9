"""Tables of an earlier audit, stored again for a measurement."""

from __future__ import annotations

from argparse import Namespace

from txnlib.engine.store import RunStore
from txnlib.jobs import options
from txnlib.jobs.stages import reopen_run
from txnlib.pipeline.run import Run


def reopened(output: str) -> tuple[Namespace, Run]:
    """What the job is asked, and the newest run of these tables, in a session that keeps quiet."""
    given = options.parse(options.REPORT, "", ["--output", output, "--engine", "spark"])
    run = reopen_run(given)
    run.spark.sparkContext.setLogLevel("ERROR")
    return given, run


def store_again(run: Run, name: str, folder: str) -> None:
    """Writes the rows that a run has in a table into one of the same name elsewhere."""
    RunStore(run.engine.store(folder, None), run.tables.cluster, run.tables.run_id).write(name, run.tables.read(name))
