"""5. The cost of judging: all reconstruction and reporting, next to the window pass over the same batches.

As a program of its own it prints the seconds of both, measured in one warm session over the tables of an audit.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

from machine import CORES
from processes import output_of, spark_python, timed
from ratio_table import Ratio, Table
from stored_audit import reopened, store_again

from txnlib.core.schema import TABLES
from txnlib.jobs.result_files import result_files
from txnlib.jobs.stages import finish
from txnlib.pipeline.scheduler import carry_out
from txnlib.pipeline.tables import RECONSTRUCT, REPORT
from txnlib.spark.producers.producer_spans import batches_of, with_snapshot
from txnlib.spark.producers.producer_steps import with_states

MOST = 1.5
#: What a job may send to the driver; Spark fails it if it is more.
MOST_TO_DRIVER = "2m"
ABOUT = f"""Milliseconds to reconstruct and report, against the window pass alone over the same `record_batches`; in the
second line, against that pass and storing the same tables once more: the rest is judging. The second run of each, in a
session of {CORES} tasks whose jobs may send at most 2 MiB to the driver. The target is for ten million batches."""


def measure(output: Path, batches: int) -> list[Ratio]:
    """`output`: the tables of an audit, those of its newest run."""
    command, environment = spark_python(CORES, __file__, str(output), driver_maxResultSize=MOST_TO_DRIVER)
    judged, bare, stored = (float(seconds) * 1e3 for seconds in output_of(command, environment).split())
    return [
        Ratio(f"{batches:,} batches: over the windows", judged, bare, at_most=MOST),
        Ratio(f"{batches:,} batches: over the windows and storing the tables", judged, bare + stored),
    ]


def table(ratios: list[Ratio]) -> Table:
    return Table("Judging", ABOUT, "judged", "others", ratios)


def main() -> None:
    given, run = reopened(sys.argv[1])
    steps = (*REPORT, *RECONSTRUCT)  # as an audit does

    def judge() -> None:
        carry_out(run, steps)
        with redirect_stdout(sys.stderr), result_files(given) as files:
            finish(run, given, files)

    def store(folder: str) -> None:
        with ThreadPoolExecutor(4) as workers:
            list(
                workers.map(
                    lambda name: store_again(run, name, folder), [step.name for step in steps if step.name in TABLES]
                )
            )

    batches, snapshots, coverage = map(run.tables.read, ("record_batches", "producer_snapshots", "coverage"))
    windows = (
        with_states(batches_of(batches, snapshots, with_snapshot(coverage, snapshots)))
        .write.format("noop")
        .mode("overwrite")
    )
    with TemporaryDirectory() as folder:
        _, second = [(timed(judge), timed(windows.save), timed(lambda: store(folder))) for _ in range(2)]
    print(*second)


if __name__ == "__main__":
    main()
