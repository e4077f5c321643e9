"""`txn-audit report`: the report again, from the tables; as text or as a page."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from txnlib.queries.rows import StoredRun
from txnlib.queries.summary import summarise
from txnlib.render.atomic_file import check_whole_file
from txnlib.render.command_output import CommandOutput
from txnlib.render.report_output import report_output

if TYPE_CHECKING:
    from txnlib.queries.acknowledgements import Acknowledged


def report(run: StoredRun, options: Namespace) -> CommandOutput:
    """The report of the run, and with --html a page. Programs get its summary, or as a table its transactions."""
    if options.html is None:
        return report_output(run, summarise(run, _known(run, options.acknowledged)))
    from txnlib.queries.page_rows import page_rows_of  # imported here, because the text does not need templates
    from txnlib.render.page import write_page

    check_whole_file(options.html)
    page = page_rows_of(run, tables=options.tables, known=_known(run, options.acknowledged))
    write_page(page, options.html)
    return report_output(run, page.summary, notes=(f"page: {options.html}",))


def _known(run: StoredRun, file: str | None) -> Acknowledged | None:
    """What is acknowledged in a run; None without a file."""
    if file is None:
        return None
    from txnlib.queries.acknowledgements import acknowledged, read_acknowledgements  # imported here, because it loads pydantic

    return acknowledged(run, read_acknowledgements(file))
