"""Reconstructs what partitions and coordinators knew, from the tables that ingest_dumps wrote."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Final

from pyspark.sql import DataFrame

from jobs import options
from jobs.run import Run, main, reopen_run
from jobs.steps import Step, carry_out
from txnlib.spark.coordinator_states import coordinator_states
from txnlib.spark.findings import findings
from txnlib.spark.partition_transactions import partition_transactions
from txnlib.spark.producer_id_owners import producer_id_owners
from txnlib.spark.producer_spans import producer_spans
from txnlib.spark.producer_states import producer_states
from txnlib.spark.transactional_ids import transactional_ids
from txnlib.spark.transactions import transactions


def reconstruct(run: Run) -> None:
    """Writes the windows' results, then every table that is read off them."""
    carry_out(run, STEPS)


def _from(table: Callable[..., DataFrame], *reads: str) -> Step:
    """A step that calls a transform by its own name with the tables it reads."""
    return Step(table.__name__, reads, lambda run: table(*map(run.tables.read, reads)))


def _producer_states(run: Run) -> DataFrame:
    settings = run.settings
    return producer_states(
        run.tables.read("producer_spans"),
        as_of_ms=settings.as_of_ms,
        producer_id_expiration_ms=settings.producer_id_expiration_ms,
    )


def _findings(run: Run) -> DataFrame:
    return findings(
        *map(run.tables.read, FINDINGS_READ),
        producer_id_expiration_ms=run.settings.producer_id_expiration_ms,
        coordinator_partitions=run.settings.coordinator_partitions,
    )


FINDINGS_READ: Final = (
    "record_batches",
    "producer_spans",
    "coordinator_states",
    "transactions",
    "producer_id_owners",
    "aborted_transactions",
    "coverage",
)
STEPS: Final = (
    _from(producer_spans, "record_batches", "producer_snapshots", "coverage"),  # the longest first
    _from(coordinator_states, "transaction_log"),
    _from(producer_id_owners, "coordinator_states"),
    _from(transactions, "coordinator_states"),
    Step("findings", (*FINDINGS_READ, "coordinator_partitions"), _findings),
    _from(partition_transactions, "producer_spans"),
    Step("producer_states", ("producer_spans",), _producer_states),
    _from(transactional_ids, "coordinator_states", "producer_spans"),
)


def job(argv: Sequence[str]) -> int:
    run = reopen_run(options.parse(options.RECONSTRUCT, __doc__ or "", argv))
    reconstruct(run)
    run.note("RECONSTRUCTED")
    return 0


if __name__ == "__main__":
    sys.exit(main(job, sys.argv[1:]))
