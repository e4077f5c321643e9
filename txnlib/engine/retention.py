"""Deletion of old runs, and of what no run uses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyspark.sql import functions as F

from txnlib.core.schema.rows_of_runs import OF_PARTS, PARTS_A_SECOND
from txnlib.core.sql_text import quoted, quoted_list
from txnlib.engine.store import Store, again_after_conflicts
from txnlib.spark.schemas import TABLES

#: Seconds after its start for which an audit that has not ended counts as at work. Parts that were read within this
#: time before the newest part stay: their audit may still list them.
AT_WORK_S: Final = 7 * 24 * 3600
#: Number of parts that one statement deletes.
_TOGETHER: Final = 1_000


def forget_runs(store: Store, cluster: str, before_ms: int) -> list[str]:
    """Deletes the runs of a cluster with an instant before `before_ms` (epoch ms) from every table, and the parts of
    files that no run uses. Returns the ids of the deleted runs. Runs at work stay.

    It deletes from `segments` first, then looks for audits at work: an audit that began before this look may use parts
    of the deleted runs, and one that began later sees that nobody lists these parts (`pipeline.parts.without_deleted`).
    Rows of `audit_runs` are deleted last, so a later call completes an interrupted one. Files are deleted once Delta's
    retention allows it (`VACUUM`, seven days), so current readers still find them.
    """
    runs = store.read_all("audit_runs").where(F.col("cluster") == cluster)
    old = runs.where(F.unix_millis("as_of") < before_ms).select("run_id").distinct().collect()
    gone = sorted({row["run_id"] for row in old} - _at_work(store, cluster))
    order = ("segments", *sorted(TABLES.keys() - {"segments", "audit_runs", *OF_PARTS}), *OF_PARTS, "audit_runs")
    for name in order if gone else OF_PARTS:
        if store.exists(name):
            of_runs = [f"run_id IN {quoted_list(gone)}"]
            for condition in _of_parts(store, name, cluster) if name in OF_PARTS else of_runs:
                _remove(store, name, condition)
            store.tables.vacuum(name)
    return gone


def _at_work(store: Store, cluster: str) -> set[str]:
    """The ids of the runs that are RUNNING. One that began long before the newest run has died, and does not count."""
    runs = store.read_all("audit_runs").where(F.col("cluster") == cluster)
    began = runs.select("run_id", "status", F.unix_millis("started_at").alias("ms")).collect()
    newest_ms = max((row["ms"] for row in began), default=0)
    return {row["run_id"] for row in began if row["status"] == "RUNNING" and row["ms"] > newest_ms - AT_WORK_S * 1_000}


def _of_parts(store: Store, name: str, cluster: str) -> Iterable[str]:
    """Conditions on the rows of parts that no run lists or may list yet; none while an audit is at work."""
    if _at_work(store, cluster):
        return
    of_cluster = F.col("cluster") == cluster
    stored = store.read_all(name).where(of_cluster)
    newest = stored.agg(F.max("part")).collect()[0][0] or 0
    listed = store.read_all("segments").where(of_cluster).select(F.explode("parts").alias("part"))
    old = stored.where(F.col("part") < newest - AT_WORK_S * PARTS_A_SECOND).select("part").distinct()
    numbers = sorted(str(row["part"]) for row in old.join(listed, on="part", how="left_anti").collect())
    for at in range(0, len(numbers), _TOGETHER):
        yield f"cluster = {quoted(cluster)} AND part IN ({', '.join(numbers[at : at + _TOGETHER])})"


@again_after_conflicts
def _remove(store: Store, name: str, condition: str) -> None:
    store.tables.delete(name, condition)
