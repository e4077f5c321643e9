"""The beginning and the end of an audit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from txnlib.ask import delta_rows
from txnlib.ask import queries as rows
from txnlib.ask.acknowledgements import Acknowledgement, acknowledged
from txnlib.ask.queries import Filter, Row
from txnlib.ask.report import Report
from txnlib.ask.report_rows import report_of
from txnlib.core.schema.rows_of_runs import OF_PARTS
from txnlib.engine.store import create_views
from txnlib.pipeline.parts import without_deleted
from txnlib.pipeline.run import Run, reading_text
from txnlib.pipeline.scheduler import Step, carry_out


def carry_out_steps(run: Run, steps: Sequence[Step]) -> None:
    """Writes the tables of some steps. A failure is recorded in the row of the run in `audit_runs`."""
    run.note("RUNNING")
    if run.source is not None:
        known = run.source.capture
        run.source.replace_capture(without_deleted(known, run.tables.store))
        if not run.is_read or run.source.capture is not known:
            run.say(reading_text(run.source.capture))
    try:
        carry_out(run, steps)
    except Exception:
        with suppress(Exception):  # if even that cannot be written, it stays RUNNING
            run.note("FAILED")
        raise
    finally:
        if run.source is not None:
            run.source.forget()


def report_made(run: Run, entries: Sequence[Acknowledgement] = ()) -> Report:
    """The report of a run, from its tables. `entries`: what is acknowledged."""
    made = query_run(run)
    return report_of(made, acknowledged(made, entries) if entries else None)


def close(run: Run, report: Report) -> None:
    """Marks the run as DONE in `audit_runs`, creates the views of a catalog, and compacts small files."""
    # What it reads of parts, others may have written.
    has_rows = sorted(name for name, each in run.written.items() if each.rows or name in OF_PARTS)
    run.note("DONE", {**report.counts, "tables": has_rows})
    create_views(run.tables.store)
    compact(run)


def compact(run: Run) -> None:
    """Compacts tables of many small files. The audit is done whether or not that succeeds."""
    for name in run.scattered:
        try:
            run.tables.compact(name)
            run.say(f"{name}: compacted small files")
        except PySparkException as error:
            run.say(f"{name}: cannot compact small files: {error.getCondition() or type(error).__name__}")


@dataclass(frozen=True, slots=True)
class SparkRows(rows.Rows):
    """Tables that answer queries through Spark. Callers must limit, filter or count rows, because all are collected in
    the driver."""

    root: str
    read: Callable[[str], DataFrame]
    _opened: dict[str, DataFrame] = field(default_factory=dict, repr=False, compare=False)

    def ask(self, name: str, chosen: str, where: Sequence[Filter], after: str = "") -> list[Row]:
        if name not in self._opened:
            self._opened[name] = self.read(name)
        frame = self._opened[name]
        # Spark quotes names otherwise: in double quotes they would be literals. It binds no values where Delta's parser
        # is in use.
        query = rows.select("{rows}", chosen, where, after).replace('"', "`")
        # Through Arrow, which keeps the zone of instants.
        found: list[Row] = frame.sparkSession.sql(query, rows=frame).toArrow().to_pylist()
        return found


# ---- A run, as questions read it


def query_run(run: Run) -> rows.StoredRun:
    """A complete run, as `txnlib.ask` reads it."""
    settings, store = run.settings, run.tables.store
    tables: rows.Rows
    # A path may exist only on the cluster's machines or in its default file system, and not on this machine.
    if store.folder is not None and Path(store.folder, rows.AUDIT_RUNS, "_delta_log").is_dir():
        tables = delta_rows.open_tables(store.folder)
    else:
        tables = SparkRows(store.output or str(store.schema), run.tables.read_stamped)
    return rows.StoredRun(
        tables, settings.run_id, settings.cluster, settings.as_of_ms, settings.model_dump(mode="json")
    )
