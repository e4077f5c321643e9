"""`txn-audit report`: the report again, from the tables; as text or as a page."""

from __future__ import annotations

import re
import shutil
from argparse import Namespace
from typing import Any, Final

from txnlib.ask.atomic_file import check_whole_file, write_whole_file
from txnlib.ask.command_output import CommandOutput
from txnlib.ask.grid import STYLES, WIDTH, plain, text_width
from txnlib.ask.headline import CALM
from txnlib.ask.headline import answer as answer_of
from txnlib.ask.own_command import program
from txnlib.ask.report_text import render
from txnlib.ask.rows import StoredRun, column_names
from txnlib.ask.summary import PREPARED, Summary, summarise

_COLUMNS: Final = column_names(
    "section topic partition start_offset producer_id transactional_id reason explanation blocked_offsets safe_to_abort"
    " command"
)


def _results(run: StoredRun, summary: Summary) -> Any:
    from txnlib.ask.run_result import results_of  # imported here, because text needs no gauges

    return plain(results_of(run, summary))


# ---- The report on a terminal: fitted to its width, with coloured verdicts. Piped, it is plain text


#: Text to highlight -> its style: a heading, or a verdict after its count.
_HEADING: Final = re.compile(r"^(?: +\d+ )?([A-Z][A-Z ]+[A-Z])\b", re.MULTILINE)
_ENTRY: Final = re.compile(r"^  (\S.*?)   producer \d+ epoch", re.MULTILINE)
_LABEL: Final = re.compile(r"^  [a-z][a-z ]{1,7}(?=  )", re.MULTILINE)
_COMMAND: Final = re.compile(r"^  (?:do|then)  +(.*\\\n.*|.*)$", re.MULTILINE)
_CRITICAL: Final = re.compile(r"^  (CRITICAL: .*)$", re.MULTILINE)
_UNREAD: Final = re.compile(r"^  (0 of \d+ coordinator partitions? read: .*)$", re.MULTILINE)
_CALM: Final = re.compile(rf"^  ({re.escape(CALM)})", re.MULTILINE)
_OTHER_STYLES: Final = {PREPARED: "cyan", "LOOKS LATE": "dim"}


def terminal_report(summary: Summary, *, is_terminal: bool) -> str:
    """The report as it is printed."""
    width = text_width(shutil.get_terminal_size((WIDTH, 40)).columns if is_terminal else None)
    text = render(summary, width, program())
    return _styled(text, answer_of(summary).level) if is_terminal else f"{text}\n"


def _styled(text: str, level: str) -> str:
    """The text in colours. What was not read, or cannot wait, leaves nothing green."""
    # Imported here, because piped output does not need it.
    from rich.console import Console
    from rich.text import Text

    styled = Text(text)
    green = "bold" if _UNREAD.search(text) else "green"
    styles = {**STYLES, **_OTHER_STYLES, "OPEN": green}
    for match in _HEADING.finditer(text):
        styled.stylize(styles.get(match[1], "bold"), *match.span(1))
    others = (
        (_ENTRY, "bold", 1),
        (_LABEL, "dim", 0),
        (_COMMAND, "bold", 1),
        (_CRITICAL, "bold red", 1),
        (_UNREAD, "yellow", 1),
    )
    for pattern, style, group in (*others, *([(_CALM, "green", 1)] if level == "calm" else [])):
        for match in pattern.finditer(text):
            styled.stylize(style, *match.span(group))
    console = Console(soft_wrap=True)  # supports NO_COLOR and TERM; commands are not broken, so that they can be copied
    with console.capture() as captured:
        console.print(styled)
    return captured.get()


# ---- The command


def answer(run: StoredRun, options: Namespace) -> CommandOutput:
    """The report of the run, and with --html a page. Programs get its results (`run_result.results_of`), or its
    transactions."""
    if options.html is not None:
        check_whole_file(options.html)
    known = None
    if options.acknowledged is not None:
        from txnlib.ask.acknowledgements import (
            acknowledged,
            read_acknowledgements,
        )  # imported here, because it loads pydantic

        known = acknowledged(run, read_acknowledgements(options.acknowledged))
    if options.html is None:
        summary = summarise(run, known)
    else:
        from txnlib.page.page_rows import page_rows_of  # imported here, because the text does not need templates
        from txnlib.page.report_page import render_page

        page = page_rows_of(run, tables=run.tables.root, known=known)
        write_whole_file(options.html, render_page(page))
        summary = page.summary
    return CommandOutput(
        _COLUMNS,
        [{"section": section, **row} for section, shown in summary.transactions.items() for row in shown],
        page=lambda is_terminal: terminal_report(summary, is_terminal=is_terminal),
        whole=lambda: _results(run, summary),
        notes=() if options.html is None else (f"page: {options.html}",),
    )
