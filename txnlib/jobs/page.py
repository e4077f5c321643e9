"""The report page of a job. It has fewer stories if each takes a dozen Spark jobs."""

from __future__ import annotations

from typing import Final

from txnlib.pipeline.query_run import is_read_by_spark, query_run
from txnlib.pipeline.run import Run
from txnlib.queries.acknowledgements import Acknowledged
from txnlib.queries.page_rows import STORIES, page_rows_of
from txnlib.render import page

#: Number of stories per verdict if each takes a dozen Spark jobs.
FEW_STORIES: Final = {"HANGING": 2, "STUCK": 1, "LATE": 1}


def write_page(run: Run, file: str, known: Acknowledged | None = None) -> None:
    """Writes the page of a complete run. `known`: what is acknowledged."""
    queried = query_run(run)
    stories = FEW_STORIES if is_read_by_spark(queried) else STORIES
    page.write_page(page_rows_of(queried, tables=run.tables.store.output, stories=stories, known=known), file)
