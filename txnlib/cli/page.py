"""The report page of a run, written to a file."""

from __future__ import annotations

from collections.abc import Mapping

from txnlib.queries.page_query import page_rows_of
from txnlib.queries.page_rows import STORIES
from txnlib.queries.summary import Summary
from txnlib.queries.tables import Run
from txnlib.render.atomic_file import write_whole_file
from txnlib.render.page import render_page


def write_page(run: Run, file: str, *, tables: str | None, stories: Mapping[str, int] = STORIES) -> Summary:
    """Writes the page of a complete run. Returns its summary.

    `tables`: the --tables for `txn-audit`, if it can read them. `stories`: the number of stories in each section.
    """
    page = page_rows_of(run, tables=tables, stories=stories)
    write_whole_file(file, render_page(page))
    return page.summary
