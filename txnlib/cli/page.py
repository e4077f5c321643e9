"""The report page of a run, written to a file."""

from __future__ import annotations

from collections.abc import Mapping

from txnlib.answers.tables import Run
from txnlib.cli.page_rows import page_rows_of
from txnlib.report.page import render_page
from txnlib.report.page_rows import STORIES
from txnlib.report.summary import Summary
from txnlib.report.whole_file import write_whole_file


def write_page(run: Run, file: str, *, tables: str | None, stories: Mapping[str, int] = STORIES) -> Summary:
    """Writes the page of a complete run. Returns its summary.

    `tables`: the --tables for `txn-audit`, if it can read them. `stories`: the number of stories in each section.
    """
    page = page_rows_of(run, tables=tables, stories=stories)
    write_whole_file(file, render_page(page))
    return page.summary
