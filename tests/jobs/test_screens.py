"""The screens of audits of real clusters, as text files: `pytest tests/jobs/test_screens.py --renew` writes them anew.

What changes on a screen is then read as a difference of text.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ask.test_headline import assert_numbers_of_sql
from tests.support.live_output import as_of
from txnlib.ask.delta_rows import open_run, open_tables
from txnlib.ask.main import answer_of, parser
from txnlib.ask.own_command import program
from txnlib.ask.report_rows import report_of
from txnlib.ask.terminal_report import render
from txnlib.auditing import audit

#: Capture -> its parts, which are audited one after the other, and the screens of the last audit.
CAPTURES = {
    "quickstart": (
        [""],
        ["open", "explain payments", "abort-plan", "timeline payments 0", "transaction fraud-detector", "groups"],
    ),
    "prepared-4.1": ([""], ["open", "explain bank.transfers", "abort-plan", "collect-plan"]),
    "causes-3.9": ([""], ["open --limit 10", "explain ca.events", "find-late"]),
    "nights-3.9": (["night-1", "night-2", "night-3"], ["report --topic nightly.in", "diff", "abort-plan --limit 2"]),
}


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("name", CAPTURES)
def test_screens_are_as_they_were_read_last(captures, tmp_path, assert_as_read, name):
    parts, commands = CAPTURES[name]
    for part in parts:
        capture = captures / name / part
        audit(capture / "brokers", output=tmp_path, cluster=name, as_of=as_of(capture))
    assert_numbers_of_sql(open_tables(str(tmp_path)))
    assert_as_read(name, "\n".join(_screens(tmp_path, commands)))


def _screens(root: Path, commands: list[str]) -> Iterator[str]:
    """The report at three widths, and each answer as it is piped."""
    run = open_run(open_tables(str(root)))
    for width in (80, 132, 200):
        yield f"$ txn-audit report   # {width} columns\n{_plain(render(report_of(run), width), root)}\n"
    for command in commands:
        options = parser().parse_args([*shlex.split(command), "--tables", str(root)])
        reads = open_tables(str(root)) if command == "diff" else run
        yield f"$ txn-audit {command}\n{_plain(answer_of(options.command)(reads, options).text('table'), root)}"


def _plain(text: str, root: Path) -> str:
    """The text, of whatever folder and environment it is."""
    return re.sub(rf"{re.escape(program())}|\btxn-audit(?= )", "txn-audit", text).replace(str(root), "OUT")
