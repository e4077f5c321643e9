"""Tables of what partitions and coordinators knew. Made from those of `ingest_dumps`."""

from __future__ import annotations

from typing import Final

from pyspark.sql import functions as F

from txnlib.pipeline.ingest_dumps import damage
from txnlib.pipeline.run import Run
from txnlib.pipeline.scheduler import Decision, Step, table_of
from txnlib.spark.coordinators.coordinator_states import coordinator_states
from txnlib.spark.coordinators.producer_id_owners import producer_id_owners
from txnlib.spark.coordinators.transactional_ids import transactional_ids
from txnlib.spark.coordinators.transactions import transactions
from txnlib.spark.coverage.coverage import lowered
from txnlib.spark.coverage.quarantine import quarantine
from txnlib.spark.findings.findings import findings
from txnlib.spark.producers.checked_batches import checked_batches
from txnlib.spark.producers.partition_transactions import partition_transactions
from txnlib.spark.producers.producer_spans import producer_spans
from txnlib.spark.producers.producer_states import producer_states


def _expiration(run: Run) -> dict[str, object]:
    return {"producer_id_expiration_ms": run.settings.producer_id_expiration_ms}


def _applications(run: Run) -> dict[str, object]:
    return {"application_patterns": run.settings.application_patterns}


def _lower_coverage(run: Run) -> None:
    """Lowers `coverage` of copies with batches that turned out to be corrupt. Usually there are none."""
    checked = run.tables.read("checked_batches")
    if not checked.where(~F.col("is_crc_valid")).isEmpty():
        run.tables.write("coverage", lowered(run.tables.read("coverage"), checked))


STEPS: Final[tuple[Step, ...]] = (
    # First, because it takes longest.
    table_of(producer_spans, "record_batches", "producer_snapshots", "coverage", after=("appended_partitions",)),
    table_of(coordinator_states, "transaction_log", "coverage"),
    table_of(checked_batches, "record_batches", "producer_spans", "coverage", "segments"),
    Decision("corrupt_batches", ("coverage", "checked_batches"), _lower_coverage),
    # Written again: `ingest_dumps` did not know which batches are corrupt.
    table_of(quarantine, "segments", "record_batches", "checkpoints", "checked_batches", settings=damage, after=("coverage",)),
    table_of(producer_id_owners, "coordinator_states"),
    table_of(transactions, "coordinator_states", "producer_spans", "coverage"),
    table_of(
        findings,
        "record_batches",
        "producer_spans",
        "coordinator_states",
        "transactions",
        "producer_id_owners",
        "aborted_transactions",
        "coverage",
        "checked_batches",
        settings=lambda run: {
            "coordinator_partitions": run.settings.coordinator_partitions,
            "as_of_ms": run.settings.as_of_ms,
            "transaction_max_timeout_ms": run.settings.transaction_max_timeout_ms,
            "clock_tolerance_ms": run.settings.clock_tolerance_ms,
            **_expiration(run),
            **_applications(run),
        },
        after=("coordinator_partitions", "corrupt_batches"),
    ),
    table_of(partition_transactions, "producer_spans", after=("appended_partitions",)),
    table_of(producer_states, "producer_spans", settings=lambda run: {"as_of_ms": run.settings.as_of_ms, **_expiration(run)}),
    table_of(transactional_ids, "coordinator_states", "producer_spans", settings=_applications),
)
