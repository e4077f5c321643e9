"""Judges what is open, writes the reports, and prints what is hanging, late and stuck."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs import options
from jobs.claim import claim, refuse_if_busy
from jobs.page import write_page
from jobs.run import Run, main, reopen_run, say
from jobs.steps import Step, carry_out, step_of
from jobs.summary import summarise
from txnlib.delta.retention import forget_runs
from txnlib.errors import MissingTableError
from txnlib.report.terminal import page
from txnlib.spark.abort_plan import abort_plan
from txnlib.spark.blocked_groups import blocked_groups
from txnlib.spark.brokers import brokers
from txnlib.spark.ended_transactions import ended_transactions, warned_of
from txnlib.spark.hanging_transactions import hanging_transactions
from txnlib.spark.history import with_history
from txnlib.spark.late_transactions import late_transactions
from txnlib.spark.open_transactions import open_transactions
from txnlib.spark.partitions import partitions
from txnlib.spark.schemas import TABLES

MS_PER_DAY: Final = 86_400_000


def report(run: Run) -> None:
    """Writes open_transactions, then hanging_transactions, late_transactions, partitions and blocked_groups."""
    carry_out(run, STEPS)


OPEN_TRANSACTIONS: Final = step_of(
    open_transactions,
    "producer_spans",
    "record_batches",
    "coordinator_states",
    "transactions",
    "producer_id_owners",
    "coverage",
    settings=lambda run: {
        "thresholds": run.thresholds,
        "kafka_version": run.settings.kafka_version,
        "application_patterns": run.settings.application_patterns,
    },
)


def _with_history(run: Run) -> DataFrame:
    judged = OPEN_TRANSACTIONS.make(run)
    assert judged is not None
    earlier = _earlier_runs(run)
    return judged if earlier is None else with_history(judged, earlier)


def _earlier_runs(run: Run) -> DataFrame | None:
    """What earlier runs of the cluster judged; None if nothing was ever stored."""
    store, settings = run.tables.store, run.settings
    if not store.exists("open_transactions"):
        return None
    is_earlier = (F.col("cluster") == settings.cluster) & (F.unix_millis("as_of") < settings.as_of_ms)
    return store.read_all("open_transactions").where(is_earlier)


ENDED_BY: Final = ("open_transactions", "producer_spans", "transactions", "producer_id_owners", "findings", "coverage")


def _ended(run: Run) -> DataFrame:
    before = _run_before(run)
    if before is None:
        return run.spark.createDataFrame([], TABLES["ended_transactions"])
    opened, ended = (run.tables.store.read_all(name).where(F.col("run_id") == before) for name in ENDED_OF)
    return ended_transactions(warned_of(opened, ended), *map(run.tables.read, ENDED_BY), as_of_ms=run.settings.as_of_ms)


#: What tells what a run warned of.
ENDED_OF: Final = ("open_transactions", "ended_transactions")


def _run_before(run: Run) -> str | None:
    """The newest finished run of the cluster at an earlier instant; one that found nothing open counts too."""
    store, settings = run.tables.store, run.settings
    if not all(map(store.exists, ("audit_runs", *ENDED_OF))):
        return None
    is_before = (F.col("cluster") == settings.cluster) & (F.unix_millis("as_of") < settings.as_of_ms) & (F.col("status") == "DONE")
    found = store.read_all("audit_runs").where(is_before).agg(F.max_by("run_id", "as_of").alias("run_id")).first()
    return None if found is None else found["run_id"]


BLOCKED_GROUPS: Final = step_of(
    blocked_groups,
    "committed_offsets",
    "producer_spans",
    "record_batches",
    "coverage",
    "partitions",
    settings=lambda run: {"as_of_ms": run.settings.as_of_ms},
)


def _blocked_groups(run: Run) -> DataFrame | None:
    """Where `__consumer_offsets` was not captured there are no groups, and nothing is scanned to find that out.

    Nor was it by an `ingest_dumps` from before there was that table: the newest table, and the only one that may be missing.
    """
    try:
        is_captured = not run.tables.read("committed_offsets").isEmpty()
    except MissingTableError:
        is_captured = False
    return BLOCKED_GROUPS.make(run) if is_captured else run.spark.createDataFrame([], TABLES["blocked_groups"])


STEPS: Final = (
    replace(OPEN_TRANSACTIONS, make=_with_history),
    step_of(
        partitions,
        "coverage",
        "producer_spans",
        "record_batches",
        "open_transactions",
        settings=lambda run: {
            "as_of_ms": run.settings.as_of_ms,
            "transaction_max_timeout_ms": run.settings.transaction_max_timeout_ms,
        },
    ),
    step_of(brokers, "coverage", "partitions", "transactional_ids"),
    step_of(
        abort_plan,
        "open_transactions",
        settings=lambda run: {
            "transaction_max_timeout_ms": run.settings.transaction_max_timeout_ms,
            "kafka_version": run.settings.kafka_version,
        },
    ),
    replace(BLOCKED_GROUPS, make=_blocked_groups),
    Step("ended_transactions", ENDED_BY, _ended),
    step_of(hanging_transactions, "open_transactions"),
    step_of(late_transactions, "open_transactions"),
)


def forget(run: Run, keep_days: int | None) -> None:
    """Removes the cluster's audits that are so many days older than this one."""
    if keep_days is not None:
        gone = forget_runs(run.tables.store, run.settings.cluster, run.settings.as_of_ms - keep_days * MS_PER_DAY)
        say(f"removed {len(gone)} audits of more than {keep_days} days before")


def finish(run: Run, fail_on: frozenset[str], file: str | None = None) -> int:
    """Prints the report, closes the run's row, writes the page, and gives the exit code: 3 if a verdict of `fail_on` was found."""
    summary = summarise(run)
    run.note("DONE", summary.counts)
    sys.stdout.write(page(summary, is_terminal=sys.stdout.isatty()))
    sys.stdout.flush()
    if file is not None:
        write_page(run, file)
        say(f"page: {file}")
    return 3 if any(summary.counts["verdicts"].get(name, 0) for name in fail_on) else 0


def job(argv: Sequence[str]) -> int:
    given = options.parse(options.REPORT, __doc__ or "", argv)
    run = reopen_run(given)
    refuse_if_busy(run, take_over=given.take_over)
    claim(run)
    report(run)
    code = finish(run, given.fail_on, given.report)
    forget(run, given.keep_days)
    return code


if __name__ == "__main__":
    sys.exit(main(job, sys.argv[1:]))
