"""Tables of what is hanging, late and stuck. Made from those of `reconstruct_state`."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.errors import MissingTableError
from txnlib.pipeline.run import Run
from txnlib.pipeline.scheduler import Step, Table, table_of
from txnlib.spark.reports.abort_plan import abort_plan
from txnlib.spark.reports.blocked_groups import blocked_groups
from txnlib.spark.reports.brokers import brokers
from txnlib.spark.reports.ended_transactions import ended_transactions, warned_of
from txnlib.spark.reports.hanging_transactions import hanging_transactions
from txnlib.spark.reports.late_transactions import late_transactions
from txnlib.spark.reports.open_transactions import open_transactions
from txnlib.spark.reports.partitions import partitions
from txnlib.spark.schemas import TABLES

OPEN_TRANSACTIONS: Final = table_of(
    open_transactions,
    "producer_spans",
    "record_batches",
    "coordinator_states",
    "transactions",
    "producer_id_owners",
    "coverage",
    "checked_batches",
    "findings",
    settings=lambda run: {
        "thresholds": run.thresholds,
        "kafka_version": run.settings.kafka_version,
        "transaction_version": run.settings.transaction_version,
        "coordinator_partitions_basis": run.settings.coordinator_partitions_basis,
        "earlier": _earlier_runs(run),
        "application_patterns": run.settings.application_patterns,
    },
)


def _earlier_runs(run: Run) -> DataFrame | None:
    """The open transactions of earlier runs of the cluster; None if no run was stored."""
    store = run.tables.store
    if not store.exists("open_transactions"):
        return None
    return store.read_all("open_transactions").where(_is_earlier(run))


def _is_earlier(run: Run) -> Column:
    """Whether a row is of another run of the cluster, at an earlier instant."""
    is_before = F.unix_millis("as_of") < run.settings.as_of_ms
    return (F.col("cluster") == run.settings.cluster) & (F.col("run_id") != run.tables.run_id) & is_before


ENDED_BY: Final = ("open_transactions", "producer_spans", "transactions", "producer_id_owners", "findings", "coverage")


def _ended(run: Run) -> DataFrame:
    before = _run_before(run)
    if before is None:
        return run.spark.createDataFrame([], TABLES["ended_transactions"])
    opened, ended = (run.tables.store.read_all(name).where(F.col("run_id") == before) for name in ENDED_OF)
    warned = warned_of(opened, ended, transaction_max_timeout_ms=run.settings.transaction_max_timeout_ms)
    return ended_transactions(warned, *map(run.tables.read, ENDED_BY), as_of_ms=run.settings.as_of_ms)


#: The tables that show what a run warned of.
ENDED_OF: Final = ("open_transactions", "ended_transactions")


def _run_before(run: Run) -> str | None:
    """The newest finished run of the cluster at an earlier instant, even if it found no open transaction."""
    store = run.tables.store
    if not all(map(store.exists, ("audit_runs", *ENDED_OF))):
        return None
    is_before = _is_earlier(run) & (F.col("status") == "DONE")
    found = store.read_all("audit_runs").where(is_before).agg(F.max_by("run_id", "as_of").alias("run_id")).first()
    return None if found is None else found["run_id"]


BLOCKED_GROUPS: Final = table_of(
    blocked_groups,
    "committed_offsets",
    "producer_spans",
    "record_batches",
    "coverage",
    "partitions",
    settings=lambda run: {"as_of_ms": run.settings.as_of_ms},
)


def _blocked_groups(run: Run) -> DataFrame:
    """The blocked groups; empty, without a scan, if `__consumer_offsets` was not captured.

    `committed_offsets` is the newest table and the only one that may be missing: an older `ingest_dumps` did not write it.
    """
    try:
        is_captured = not run.tables.read("committed_offsets").isEmpty()
    except MissingTableError:
        is_captured = False
    if not is_captured:
        return run.spark.createDataFrame([], TABLES["blocked_groups"])
    found = BLOCKED_GROUPS.transform(run)
    assert isinstance(found, DataFrame)
    return found


STEPS: Final[tuple[Step, ...]] = (
    OPEN_TRANSACTIONS,
    table_of(
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
    table_of(brokers, "coverage", "partitions", "transactional_ids"),
    table_of(
        abort_plan,
        "open_transactions",
        settings=lambda run: {
            "transaction_max_timeout_ms": run.settings.transaction_max_timeout_ms,
            "kafka_version": run.settings.kafka_version,
        },
    ),
    replace(BLOCKED_GROUPS, transform=_blocked_groups),
    Table("ended_transactions", ENDED_BY, _ended),
    table_of(hanging_transactions, "open_transactions"),
    table_of(late_transactions, "open_transactions"),
)
