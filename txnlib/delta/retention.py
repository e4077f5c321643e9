"""Deletion of old runs."""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from txnlib.delta.commits import quoted
from txnlib.delta.store import Store, again_after_conflicts
from txnlib.spark.schemas import TABLES


def forget_runs(store: Store, cluster: str, before_ms: int) -> list[str]:
    """Deletes the runs of a cluster with an instant before `before_ms` (epoch ms) from every table. Returns their run ids.

    Rows of `audit_runs` are deleted last, so a later call completes one that was interrupted. Files are deleted once Delta's
    retention allows it (`VACUUM`, seven days), so current readers still find them.
    """
    runs = store.read_all("audit_runs").where((F.col("cluster") == cluster) & (F.unix_millis("as_of") < before_ms))
    gone = sorted(row["run_id"] for row in runs.select("run_id").distinct().collect())
    if gone:
        for name in sorted(TABLES, key=lambda name: name == "audit_runs"):
            if store.exists(name):
                _remove(store, name, gone)
                _vacuum(store, name)
    return gone


@again_after_conflicts
def _remove(store: Store, name: str, run_ids: list[str]) -> None:
    """Deletes whole partitions of the tables, so no file is rewritten."""
    listed = ", ".join(map(quoted, run_ids))
    store.spark.sql(f"DELETE FROM {store.sql_name(name)} WHERE run_id IN ({listed})")


def _vacuum(store: Store, name: str) -> None:
    """Vacuums by the log of the table, in about a second. If the log does not go back far enough, lists all files."""
    try:
        store.spark.sql(f"VACUUM {store.sql_name(name)} LITE")
    except PySparkException as error:
        if "VACUUM FULL" not in str(error):
            raise
        store.spark.sql(f"VACUUM {store.sql_name(name)}")
