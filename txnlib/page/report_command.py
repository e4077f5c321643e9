"""The command `report`: text, a page, and results for programs.

A module of its own, because text needs neither templates nor stories, which take long to load.
"""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from typing import Any, Final

from txnlib.ask.command_output import CommandOutput, check_whole_file, write_whole_file
from txnlib.ask.grid import plain
from txnlib.ask.queries import StoredRun, column_names
from txnlib.ask.report_rows import report_of
from txnlib.ask.subject import check_captured
from txnlib.ask.terminal_report import terminal_report

_COLUMNS: Final = column_names(
    "section topic partition start_offset producer_id transactional_id reason explanation holds ends_by blocked_offsets"
    " safe_to_abort command"
)


def answer(run: StoredRun, options: Namespace) -> CommandOutput:
    """The report of the run, and with --html a page. Programs get its results (`run_result.results_of`), or its
    transactions."""
    if options.html is not None:
        check_whole_file(options.html)
    if options.topic is not None:
        check_captured(run, options.topic)
        run = replace(run, topic=options.topic)
    known = None
    if options.acknowledged is not None:
        # Imported here, because it loads pydantic.
        from txnlib.ask.acknowledgements import acknowledged, read_acknowledgements

        known = acknowledged(run, read_acknowledgements(options.acknowledged))
    if options.html is None:
        report = report_of(run, known)
    else:
        # Imported here, because the text needs neither templates nor stories.
        from txnlib.ask.page_rows import page_rows_of
        from txnlib.page.report_page import render_page

        page = page_rows_of(run, tables=run.tables.root, known=known)
        write_whole_file(options.html, render_page(page))
        report = page.report

    def results() -> Any:
        from txnlib.ask.run_result import results_of  # imported here, because text needs no gauges

        return plain(results_of(run, report))

    return CommandOutput(
        _COLUMNS,
        [{"section": section, **row} for section, shown in report.transactions.items() for row in shown],
        page=lambda is_terminal: terminal_report(report, is_terminal=is_terminal),
        whole=results,
        notes=() if options.html is None else (f"page: {options.html}",),
    )
