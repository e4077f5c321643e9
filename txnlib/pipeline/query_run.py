"""A run of the pipeline as a run of `txnlib.queries`.

Tables in a local folder are read without a JVM.
"""

from __future__ import annotations

from pathlib import Path

from txnlib.delta.store import RunStore
from txnlib.pipeline.run import Run
from txnlib.queries import delta_rows, rows
from txnlib.queries.spark_rows import SparkRows


def query_run(run: Run) -> rows.StoredRun:
    """A complete run, as `txnlib.queries` reads it."""
    settings = run.settings
    return rows.StoredRun(_rows(run), settings.run_id, settings.cluster, settings.as_of_ms, settings.model_dump(mode="json"))


def is_read_by_spark(asked: rows.StoredRun) -> bool:
    """Whether each query takes jobs of Spark, not milliseconds."""
    return isinstance(asked.tables, SparkRows)


def _rows(run: Run) -> rows.Rows:
    store = run.tables.store
    # A path may exist only on the cluster's machines or in its default file system, and not on this machine.
    if isinstance(run.tables, RunStore) and store.folder is not None and Path(store.folder, rows.RUNS, "_delta_log").is_dir():
        return delta_rows.open_tables(store.folder)
    return SparkRows(store.output or str(store.schema), run.tables.read_stamped)
