"""`txn-audit report`: the report again, from the tables; as text or as a page."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import fields

from txnlib.cli.output import Answer
from txnlib.queries.summarise import summarise
from txnlib.queries.tables import Run
from txnlib.render.atomic_file import check_whole_file
from txnlib.render.grid import plain
from txnlib.render.styled_text import page

_COLUMNS = (
    "section",
    "topic",
    "partition",
    "start_offset",
    "producer_id",
    "transactional_id",
    "reason",
    "explanation",
    "blocked_offsets",
    "safe_to_abort",
    "command",
)


def report(run: Run, options: Namespace) -> Answer:
    """The report of the run, and with --html a page. Programs get its summary, or as a table its transactions."""
    notes: tuple[str, ...] = ()
    if options.html is not None:
        from txnlib.cli.page import write_page  # imported here, because the text does not need templates

        check_whole_file(options.html)
        summary, notes = write_page(run, options.html, tables=options.tables), (f"page: {options.html}",)
    else:
        summary = summarise(run)
    rows = [{"section": section, **row} for section, shown in summary.transactions.items() for row in shown]
    whole = {field.name: plain(getattr(summary, field.name)) for field in fields(summary)}
    return Answer(_COLUMNS, rows, page=lambda is_terminal: page(summary, is_terminal=is_terminal), whole=whole, notes=notes)
