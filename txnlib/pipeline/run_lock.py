"""The claim of a run: at most one audit of a cluster writes at a time.

Each table is replaced in one commit per run, so audits of different clusters do not interfere. Two audits of one
cluster would count each other as earlier runs, and two audits as of the same instant would mix their rows. So the later
one refuses to run. It also refuses if another audit has ended since it decided which run it continues, which is before
its claim.

A claim is appended to `audit_runs` in a commit that names the claim, and only then are other claims read. Delta orders
all commits, so if two audits claim at the same moment, the second sees the first and withdraws its row.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Row
from pyspark.sql import functions as F

from txnlib.engine.store import RunStore
from txnlib.errors import BusyError, MissingTableError, OvertakenError, TxnlibError
from txnlib.incremental import history_of
from txnlib.pipeline.clock import now
from txnlib.pipeline.run import Run
from txnlib.pipeline.run_owner import is_alive
from txnlib.spark.frames import local_rows
from txnlib.spark.schemas import TABLES

#: Run id and owner, as in a row of `audit_runs`.
Holder = tuple[str, str | None]


def claim(run: Run, *, take_over: bool = False) -> None:
    """Marks the run as RUNNING in `audit_runs`, and earlier audits of the cluster that died as DIED.

    Raises BusyError if another audit of the cluster is running, unless `take_over` is set. `audit_runs` is then
    unchanged.
    """
    passed_over = _pass_over(run, take_over=take_over)
    announce(run)
    settle(run, passed_over)


def announce(run: Run) -> None:
    """Adds the row of the run, without replacing other rows."""
    run.tables.append("audit_runs", run.noted("RUNNING"), commit_note=_note_of(run))


def settle(run: Run, passed_over: frozenset[Holder] = frozenset()) -> None:
    """Makes the announced row the only row of the run.

    Removes it if another claim came first, and raises BusyError; or if the place in its chain is no longer its own:
    OvertakenError.
    """
    rows = _rows(run)
    others = [row for row in _at_work(run, rows) if _holder(row) not in passed_over]
    refusal: TxnlibError | None = None
    if others and (first := _first_before(run, others)) is not None:
        refusal = _busy(run, first)
    elif (other := _overtaken_by(run)) is not None:
        refusal = OvertakenError(run.settings.cluster, run.tables.run_id, other)
    if refusal is not None:
        run.tables.remove("audit_runs", {"owner": run.owner, "status": "RUNNING"})
        raise refusal
    if sum(row["run_id"] == run.tables.run_id for row in rows) > 1:
        run.note("RUNNING")


def _pass_over(run: Run, *, take_over: bool) -> frozenset[Holder]:
    """Claims to ignore: of dead processes, or taken over. Runs with another id are marked as DIED."""
    rows = [row for row in _rows(run) if row["status"] == "RUNNING" and row["owner"] != run.owner]
    at_work = _at_work(run, rows)
    if at_work and not take_over:
        raise _busy(run, at_work[0])
    for row in rows:
        if row["run_id"] != run.tables.run_id:
            values = {**row.asDict(), "status": "DIED"}
            died = local_rows(run.spark, [[values[name] for name in TABLES["audit_runs"].names]], TABLES["audit_runs"])
            RunStore(run.tables.store, run.settings.cluster, row["run_id"]).write("audit_runs", died)
    return frozenset(map(_holder, rows))


def _overtaken_by(run: Run) -> str | None:
    """The run that has taken the place of this one, or may have changed what it continues; None if there is none."""
    store, cluster = run.tables.store, run.settings.cluster
    if run.began_at is None:
        changed = history_of(store, cluster).runs ^ run.history.runs
        return max(changed, key=lambda each: each.as_of_ms).run_id if changed else None
    if run.settings.chain is None:
        return None
    is_of_chain = (F.col("chain") == run.settings.chain) & (F.col("run_id") != run.tables.run_id)
    is_after = (F.col("night") >= run.settings.night) & (F.col("status") == "DONE")
    is_instead = (F.col("night") <= run.settings.night) & (F.col("started_at") > F.lit(run.began_at))
    of_cluster = store.read_all("audit_runs").where(F.col("cluster") == cluster)
    found = of_cluster.where(is_of_chain & (is_after | is_instead)).first()
    return None if found is None else found["run_id"]


def _first_before(run: Run, others: Sequence[Row]) -> Row | None:
    """One of the others whose claim came before that of this run. A claim of unknown order counts as earlier."""
    later: set[str] = set()
    for note in run.tables.commit_notes("audit_runs"):
        if note == _note_of(run):
            break
        later.add(note.rpartition(" ")[0])
    else:
        later.clear()
    return next((row for row in others if _claim_of(_holder(row)) not in later), None)


def _claim_of(holder: Holder) -> str:
    return f"claim of {holder[0]} by {holder[1]}"


def _note_of(run: Run) -> str:
    """The note on the commit of a claim. It contains the time, because a process may claim a run more than once."""
    return f"{_claim_of((run.tables.run_id, run.owner))} {run.started_at.timestamp()}"


def _holder(row: Row) -> Holder:
    return row["run_id"], row["owner"]


def _busy(run: Run, row: Row) -> BusyError:
    return BusyError(run.settings.cluster, row["run_id"], row["owner"] or "an unknown process", row["started_ms"])


def _at_work(run: Run, rows: Sequence[Row]) -> list[Row]:
    """Rows of other processes that have not ended and may still be running."""
    others = [row for row in rows if row["status"] == "RUNNING" and row["owner"] != run.owner]
    return [row for row in others if is_alive(row["owner"], row["started_ms"], now())]


def _rows(run: Run) -> list[Row]:
    """The rows of the run, and of all audits of the cluster that have not ended."""
    try:
        runs = run.tables.store.read_all("audit_runs")
    except MissingTableError:
        return []
    is_asked = (F.col("run_id") == run.tables.run_id) | (
        (F.col("cluster") == run.settings.cluster) & (F.col("status") == "RUNNING")
    )
    return runs.where(is_asked).withColumn("started_ms", F.unix_millis("started_at")).collect()
