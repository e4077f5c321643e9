"""Who reads the tables of a run for its page? Nobody's JVM where they lie in a folder, else Spark."""

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
    store, settings = run.tables.store, run.settings
    is_folder = store.output is not None and "://" not in store.output
    opened: tables.Rows = (
        tables.open_tables(str(store.output)) if is_folder else SparkRows(str(store.schema or store.output), store.read_all)
    )
    asked = tables.Run(opened, settings.run_id, settings.cluster, settings.as_of_ms, settings.model_dump(mode="json"))
    page.write_page(asked, file, tables=store.output, stories=STORIES if is_folder else FEW_STORIES)
