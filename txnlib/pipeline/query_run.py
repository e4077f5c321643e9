"""A run of the pipeline as a run of `txnlib.ask`.

Tables in a local folder are read without a JVM.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame

from txnlib.ask import delta_rows
from txnlib.ask import queries as rows
from txnlib.ask.queries import Filter, Row
from txnlib.pipeline.run import Run


@dataclass(frozen=True, slots=True)
class SparkRows(rows.Rows):
    """Tables, by what opens one: only what is limited, filtered to few, or counted is collected."""

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
