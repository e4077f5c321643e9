"""5. What does judging cost? All that reconstructs and reports, next to the window pass alone over the same batches.

As a program of its own it prints the seconds of both, measured in one warm session over the tables of an audit.
"""

from __future__ import annotations

import sys
from pathlib import Path

from machine import CORES
from processes import ROOT, output_of, spark_python, timed
from table import Ratio, Table

MOST = 1.5
#: What a job may send to the driver; Spark fails it if it is more.
MOST_TO_DRIVER = "2m"
ABOUT = f"""Milliseconds to reconstruct and report (every table but those that ingest_dumps writes, as Delta, and the report as
text) against the window pass alone: `record_batches` read from the same Delta table, and the state before and after
each batch of each partition and producer written to Spark's `noop` sink. One batch in a thousand is judged by the
core. One session of {CORES} tasks, the second run of each, in which no job may send more than 2 MiB to the driver,
broadcasts included. The target is for ten million batches (--judged-batches): with fewer, most of it is the commits
of some twenty tables, however small they are."""


def ingested(capture: Path, output: Path) -> Path:
    """The tables that are judged."""
    arguments = ["--input", str(capture), "--output", str(output)]
    command, environment = spark_python(CORES, str(ROOT / "jobs" / "ingest_dumps.py"), *arguments)
    output_of(command, environment)
    return output


def measure(output: Path, batches: int) -> Ratio:
    command, environment = spark_python(CORES, __file__, str(output), driver_maxResultSize=MOST_TO_DRIVER)
    judged, bare = map(float, output_of(command, environment).split())
    return Ratio(f"{batches:,} batches", judged * 1e3, bare * 1e3, at_most=MOST)


def table(ratio: Ratio) -> Table:
    return Table("Judging", ABOUT, "judged", "windows", [ratio])


def main() -> None:
    from contextlib import redirect_stdout

    from jobs import options
    from jobs.outcome import telling
    from jobs.report_transactions import finish
    from jobs.run import reopen_run
    from txnlib.spark.producer_spans import producer_batches
    from txnlib.spark.producer_steps import with_states
    from txnlib.stages import reconstruct_state, report_transactions
    from txnlib.stages.steps import carry_out

    given = options.parse(options.REPORT, "", ["--output", sys.argv[1]])
    run = reopen_run(given)
    run.spark.sparkContext.setLogLevel("ERROR")

    def judge() -> None:
        carry_out(run, (*report_transactions.STEPS, *reconstruct_state.STEPS))  # as an audit does
        with redirect_stdout(sys.stderr), telling(given) as to:
            finish(run, given, to)

    rows = producer_batches(*map(run.tables.read, ("record_batches", "producer_snapshots", "coverage")))
    windows = with_states(rows).write.format("noop").mode("overwrite")
    _, (judged, bare) = [(timed(judge), timed(windows.save)) for _ in range(2)]
    print(judged, bare)


if __name__ == "__main__":
    main()
