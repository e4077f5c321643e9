"""Judges what is open, writes the reports, and prints what is hanging, late and stuck."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs import options
from jobs.run import Run, main, reopen_run
from jobs.steps import Step, carry_out
from jobs.summary import summarise
from txnlib.report.text import render
from txnlib.spark.hanging_transactions import hanging_transactions
from txnlib.spark.history import with_history
from txnlib.spark.late_transactions import late_transactions
from txnlib.spark.open_transactions import open_transactions
from txnlib.spark.partitions import partitions


def report(run: Run) -> None:
    """Writes open_transactions, then hanging_transactions, late_transactions and partitions."""
    carry_out(run, STEPS)


def _open_transactions(run: Run) -> DataFrame:
    judged = open_transactions(*map(run.tables.read, OPEN_TRANSACTIONS_READ), thresholds=run.thresholds)
    store, settings = run.tables.store, run.settings
    if not store.exists("open_transactions"):
        return judged
    is_earlier = (F.col("cluster") == settings.cluster) & (F.unix_millis("as_of") < settings.as_of_ms)
    return with_history(judged, store.read_all("open_transactions").where(is_earlier))


def _partitions(run: Run) -> DataFrame:
    return partitions(
        *map(run.tables.read, PARTITIONS_READ),
        as_of_ms=run.settings.as_of_ms,
        transaction_max_timeout_ms=run.settings.transaction_max_timeout_ms,
    )


OPEN_TRANSACTIONS_READ: Final = (
    "producer_spans",
    "record_batches",
    "coordinator_states",
    "transactions",
    "producer_id_owners",
    "coverage",
)
PARTITIONS_READ: Final = ("coverage", "producer_spans", "record_batches", "open_transactions")
STEPS: Final = (
    Step("open_transactions", OPEN_TRANSACTIONS_READ, _open_transactions),
    Step("partitions", PARTITIONS_READ, _partitions),
    Step("hanging_transactions", ("open_transactions",), lambda run: hanging_transactions(run.tables.read("open_transactions"))),
    Step("late_transactions", ("open_transactions",), lambda run: late_transactions(run.tables.read("open_transactions"))),
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
