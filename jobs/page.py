"""Who reads the tables of a run for its page and its numbers? Nobody's JVM where they lie in a folder, else Spark."""

from __future__ import annotations

from typing import Final

from txnlib.cli import page, tables
from txnlib.report.page_rows import STORIES
from txnlib.stages.run import Run
from txnlib.stages.spark_rows import SparkRows

#: Stories that are told where each takes a dozen jobs of Spark.
FEW_STORIES: Final = {"HANGING": 2, "STUCK": 1, "LATE": 1}


def write_page(run: Run, file: str) -> None:
    """Writes the page of a run whose tables are all there."""
    stories = FEW_STORIES if run.tables.store.folder is None else STORIES
    page.write_page(asked_of(run), file, tables=run.tables.store.output, stories=stories)


def asked_of(run: Run) -> tables.Run:
    """A run whose tables are all there, as `txnlib.cli` asks for its rows."""
    store, settings = run.tables.store, run.settings
    opened: tables.Rows = (
        SparkRows(str(store.schema or store.output), store.read_all) if store.folder is None else tables.open_tables(store.folder)
    )
    return tables.Run(opened, settings.run_id, settings.cluster, settings.as_of_ms, settings.model_dump(mode="json"))
