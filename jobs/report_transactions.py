"""Judges what is open, writes the reports, and prints what is hanging, late and stuck."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pyspark.sql import functions as F

from jobs import options
from jobs.run import Run, main, reopen_run, say
from jobs.summary import summarise
from txnlib.report.text import render
from txnlib.spark.hanging_transactions import hanging_transactions
from txnlib.spark.history import with_history
from txnlib.spark.late_transactions import late_transactions
from txnlib.spark.open_transactions import open_transactions
from txnlib.spark.partitions import partitions


def report(run: Run) -> None:
    """Writes open_transactions, then hanging_transactions, late_transactions and partitions."""
    read, settings = run.tables.read, run.settings
    say("judging open transactions")
    opened = open_transactions(
        read("producer_spans"),
        read("record_batches"),
        read("coordinator_states"),
        read("transactions"),
        read("producer_id_owners"),
        read("coverage"),
        thresholds=run.thresholds,
    )
    store = run.tables.store
    if store.exists("open_transactions"):
        earlier = store.read_all("open_transactions").where(
            (F.col("cluster") == settings.cluster) & (F.unix_millis("as_of") < settings.as_of_ms)
        )
        opened = with_history(opened, earlier)
    run.tables.write("open_transactions", opened)
    judged = read("open_transactions")
    run.write_all(
        {
            "hanging_transactions": hanging_transactions(judged),
            "late_transactions": late_transactions(judged),
            "partitions": partitions(
                read("coverage"),
                read("producer_spans"),
                read("record_batches"),
                judged,
                as_of_ms=settings.as_of_ms,
                transaction_max_timeout_ms=settings.transaction_max_timeout_ms,
            ),
        }
    )


def finish(run: Run, fail_on: frozenset[str]) -> int:
    """Prints the report, closes the run's row, and gives the exit code: 3 if a verdict of `fail_on` was found."""
    summary = summarise(run)
    run.note("DONE", summary.counts)
    print(render(summary), flush=True)
    return 3 if any(summary.counts["verdicts"].get(name, 0) for name in fail_on) else 0


def job(argv: Sequence[str]) -> int:
    given = options.parse(options.REPORT, __doc__ or "", argv)
    run = reopen_run(given)
    report(run)
    return finish(run, given.fail_on)


if __name__ == "__main__":
    sys.exit(main(job, sys.argv[1:]))
