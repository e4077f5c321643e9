"""Deletion of old runs."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.schema.rows_of_runs import OF_LOG, quoted
from txnlib.engine.store import Store, again_after_conflicts
from txnlib.spark.schemas import TABLES


def forget_runs(store: Store, cluster: str, before_ms: int) -> list[str]:
    """Deletes the runs of a cluster with an instant before `before_ms` (epoch ms) from every table. Returns their run
    ids.

    Rows of the log that later runs need are kept until the whole chain is old. Rows of `audit_runs` are deleted last,
    so a later call completes one that was interrupted. Files are deleted once Delta's retention allows it (`VACUUM`,
    seven days), so current readers still find them.
    """
    runs = store.read_all("audit_runs").where(F.col("cluster") == cluster)
    is_old = F.unix_millis("as_of") < before_ms
    gone = sorted(row["run_id"] for row in runs.where(is_old).select("run_id").distinct().collect())
    ended = _chains(runs.where(is_old)) - _chains(runs.where(~is_old))
    if gone:
        for name in sorted(TABLES, key=lambda name: name == "audit_runs"):
            if store.exists(name):
                _remove(store, name, _of_old_runs(name, gone, ended))
                store.tables.vacuum(name)
    return gone


def _chains(runs: DataFrame) -> set[str]:
    return {row["chain"] for row in runs.select("chain").distinct().collect()}


def _of_old_runs(name: str, run_ids: list[str], ended_chains: set[str]) -> str:
    """The condition on rows to delete. Rows of the log are deleted with the last run of their chain."""
    if name not in OF_LOG:
        return f"run_id IN ({_listed(run_ids)})"
    return f"chain IN ({_listed(sorted(ended_chains))})" if ended_chains else "FALSE"


def _listed(values: list[str]) -> str:
    return ", ".join(map(quoted, values))


@again_after_conflicts
def _remove(store: Store, name: str, condition: str) -> None:
    """Deletes whole files, so none is rewritten."""
    store.tables.delete(name, condition)
