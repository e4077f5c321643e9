"""Is another audit of the cluster at work in these tables, and what became of those that are not any more?

Each table is replaced in one commit, run by run, so two audits of different clusters do not meet. Two of one cluster would
count each other among the runs before, and two as of one instant would mix their rows: the later one refuses.
"""

from __future__ import annotations

from pyspark.sql import Row
from pyspark.sql import functions as F

from txnlib.delta.store import RunStore
from txnlib.errors import BusyError, MissingTableError
from txnlib.spark.schemas import AUDIT_RUNS
from txnlib.stages.clock import now
from txnlib.stages.owner import is_alive
from txnlib.stages.run import Run


def refuse_if_busy(run: Run, *, take_over: bool = False) -> None:
    """Raises BusyError while another audit of the cluster is at work; of one that died, the row says so from now on."""
    for row in _others(run):
        if _is_at_work(row) and not take_over:
            raise BusyError(run.settings.cluster, row["run_id"], row["owner"] or "an unknown process")
        if row["run_id"] != run.tables.run_id:
            values = {**row.asDict(), "status": "DIED"}
            died = run.spark.createDataFrame([tuple(values[name] for name in AUDIT_RUNS.names)], AUDIT_RUNS)
            its_tables = RunStore(run.tables.store, run.settings.cluster, row["run_id"])
            its_tables.write("audit_runs", died)
            its_tables.sweep()


def claim(run: Run) -> None:
    """Writes that the run is at work. Raises BusyError if another audit did so at the same time and was first."""
    run.note("RUNNING")
    for row in _others(run):
        # Two as of one instant have one row: that of the later one.
        has_own_row = row["run_id"] != run.tables.run_id
        is_first = (row["started_ms"], row["owner"]) < (int(run.started_at.timestamp() * 1000), run.owner)
        if _is_at_work(row) and (is_first or not has_own_row):
            if has_own_row:
                run.note("REFUSED")
            raise BusyError(run.settings.cluster, row["run_id"], row["owner"] or "an unknown process")


def _is_at_work(row: Row) -> bool:
    return is_alive(row["owner"], row["started_ms"], now())


def _others(run: Run) -> list[Row]:
    """The rows of the cluster's audits by other processes that have not ended."""
    try:
        runs = run.tables.store.read_all("audit_runs")
    except MissingTableError:
        return []
    found = runs.where((F.col("cluster") == run.settings.cluster) & (F.col("status") == "RUNNING"))
    rows = found.withColumn("started_ms", F.unix_millis("started_at")).collect()
    return [row for row in rows if row["owner"] != run.owner]
