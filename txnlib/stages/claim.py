"""The claim of a run: at most one audit of a cluster writes at a time.

Each table is replaced in one commit, run by run, so two audits of different clusters do not meet. Two of one cluster would
count each other among the runs before, and two as of one instant would mix their rows: the later one refuses.

Claims are appended to `audit_runs`, each in a commit that bears its name, and only then looked at. Delta puts commits into one
order, so of two audits that claim at the same moment the second one sees the first, whichever looks first; it takes its row back.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Row
from pyspark.sql import functions as F

from txnlib.delta.store import RunStore
from txnlib.errors import BusyError, MissingTableError
from txnlib.spark.schemas import AUDIT_RUNS
from txnlib.stages.clock import now
from txnlib.stages.owner import is_alive
from txnlib.stages.run import Run

#: Run and owner, as rows of `audit_runs` name them.
Holder = tuple[str, str | None]


def claim(run: Run, *, take_over: bool = False) -> None:
    """Notes that the run is at work. Of audits of the cluster that died, `audit_runs` says so from now on.

    Raises BusyError if another audit of the cluster is at work, unless it is to be taken over; `audit_runs` is then as it was.
    """
    passed_over = _pass_over(run, take_over=take_over)
    announce(run)
    settle(run, passed_over)


def announce(run: Run) -> None:
    """Adds the run's row, whoever else did; what else there is of the run stays."""
    assert isinstance(run.tables, RunStore)
    run.tables.append("audit_runs", run.noted("RUNNING"), commit_note=_note_of(_holder_of(run), run))


def settle(run: Run, passed_over: frozenset[Holder] = frozenset()) -> None:
    """Makes the row that was announced the run's only one. Raises BusyError, and removes that row, if another claim came first."""
    rows = _rows(run)
    others = [row for row in _at_work(run, rows) if _holder(row) not in passed_over]
    if others and (first := _first_before(run, others)) is not None:
        assert isinstance(run.tables, RunStore)
        run.tables.remove("audit_runs", {"owner": run.owner, "status": "RUNNING"})
        raise _busy(run, first)
    if sum(row["run_id"] == run.tables.run_id for row in rows) > 1:
        run.note("RUNNING")


def _pass_over(run: Run, *, take_over: bool) -> frozenset[Holder]:
    """Those that noted themselves as running and are not, or are taken over: those of other runs are noted as dead."""
    rows = [row for row in _rows(run) if row["status"] == "RUNNING" and row["owner"] != run.owner]
    at_work = _at_work(run, rows)
    if at_work and not take_over:
        raise _busy(run, at_work[0])
    for row in rows:
        if row["run_id"] != run.tables.run_id:
            values = {**row.asDict(), "status": "DIED"}
            died = run.spark.createDataFrame([tuple(values[name] for name in AUDIT_RUNS.names)], AUDIT_RUNS)
            its_tables = RunStore(run.tables.store, run.settings.cluster, row["run_id"])
            its_tables.write("audit_runs", died)
            its_tables.sweep()
    return frozenset(map(_holder, rows))


def _first_before(run: Run, others: Sequence[Row]) -> Row | None:
    """One of the others whose claim came before this run's; what is not known to have come later did."""
    assert isinstance(run.tables, RunStore)
    later: set[str] = set()
    for note in run.tables.commit_notes("audit_runs"):
        if note == _note_of(_holder_of(run), run):
            break
        later.add(note.rpartition(" ")[0])
    else:
        later.clear()
    return next((row for row in others if _claim_of(_holder(row)) not in later), None)


def _claim_of(holder: Holder) -> str:
    return f"claim of {holder[0]} by {holder[1]}"


def _note_of(holder: Holder, run: Run) -> str:
    """What the commit of a claim bears; one process may claim a run more than once."""
    return f"{_claim_of(holder)} {run.started_at.timestamp()}"


def _holder(row: Row) -> Holder:
    return row["run_id"], row["owner"]


def _holder_of(run: Run) -> Holder:
    return run.tables.run_id, run.owner


def _busy(run: Run, row: Row) -> BusyError:
    return BusyError(run.settings.cluster, row["run_id"], row["owner"] or "an unknown process", row["started_ms"])


def _at_work(run: Run, rows: Sequence[Row]) -> list[Row]:
    """Those of other processes that have not ended, and may still be at work."""
    others = [row for row in rows if row["status"] == "RUNNING" and row["owner"] != run.owner]
    return [row for row in others if is_alive(row["owner"], row["started_ms"], now())]


def _rows(run: Run) -> list[Row]:
    """The rows of the run, and of the cluster's audits that have not ended."""
    try:
        runs = run.tables.store.read_all("audit_runs")
    except MissingTableError:
        return []
    is_asked = (F.col("run_id") == run.tables.run_id) | (
        (F.col("cluster") == run.settings.cluster) & (F.col("status") == "RUNNING")
    )
    return runs.where(is_asked).withColumn("started_ms", F.unix_millis("started_at")).collect()
