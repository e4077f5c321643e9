"""The report from tables, as text and as a page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import pytest

from tests.page.test_report_page import by_id, words
from tests.support.delta_tables import NOW, READ_BY_COMMANDS, at, txn_audit, write, write_run
from txnlib.ask import page_rows
from txnlib.ask.delta_rows import open_run, open_tables
from txnlib.ask.page_rows import SHOWN_CARDS, page_rows_of
from txnlib.ask.queries import Rows

MANY = 10_000


def opened(number: int) -> dict[str, Any]:
    place = {"topic": "orders", "partition": number % 50, "start_offset": number, "producer_id": 7 + number}
    judged = {"verdict": "HANGING", "reason": "PRODUCER_ID_ROTATED", "explanation": "it is so", "runs_seen": 1}
    abort = {"safe_to_abort": True, "abort_command": f"abort {number}"}
    held = {"blocks_since": at(NOW - number), "blocked_offsets": number, "last_timestamp": at(NOW)}
    return {**place, **judged, **abort, **held, "transactional_id": f"shop-{number}", "application": "shop"}


def planned(number: int, row: dict[str, Any]) -> dict[str, Any]:
    return row | {"number": number, "action": "ABORT", "command": row["abort_command"], "before": [], "after": []}


def make(root: Path, count: int) -> Path:
    """The tables of an audit in which that many transactions hang, and of one before it."""
    write_run(root)
    write_run(root, NOW - 86_400_000)
    rows = [opened(number) for number in range(count)]
    for name in READ_BY_COMMANDS:
        write(root, name)
    write(root, "open_transactions", *rows)
    write(root, "abort_plan", *[planned(i + 1, row) for i, row in enumerate(reversed(rows))])
    seen = {"source": "raw:1", "broker": "1", "status": "COMPLETE", "is_judged": True}
    write(root, "coverage", *[{**seen, "topic": "orders", "partition": i} for i in range(50)])
    lost = {"topic": "__transaction_state", "partition": 3, "status": "MISSING", "is_judged": False}
    write(root, "coverage", {**seen, "topic": "__transaction_state", "partition": 0}, lost)
    lag = {"topic": "orders", "lag_offsets": 9, "last_stable_offset": 1, "high_watermark": 10}
    write(root, "partitions", *[{**lag, "partition": i, "lag_ms": i} for i in range(min(count, 50))])
    write(root, "partitions", {**lag, "partition": 0, "lag_ms": 9_000}, run_id=f"test-{NOW - 86_400_000}")
    return root


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("many"), MANY)


def test_a_page_of_ten_thousand_has_them_all_and_begins_with_those_that_block_most(tables, tmp_path):
    file = tmp_path / "report.html"
    code, out, err = txn_audit(tables, "report", "--html", file)
    assert (code, err) == (0, f"txn-audit: page: {file}\n")
    assert "10000 HANGING" in out
    html = file.read_text("utf-8")
    assert len(html) < 15_000_000
    cards = [words(next(each.iter("h3"))) for each in section(html, "hanging").iter("article")]
    assert len(cards) == SHOWN_CARDS
    assert cards[:2] == ["orders-49 offset 9999", "orders-48 offset 9998"]
    assert "10000 PRODUCER_ID_ROTATED" in words(section(html, "hanging"))
    for name in ("transactions", "plan"):
        places = part(html, name).split('<a href="#orders-')[1:]
        assert len({place.partition('"')[0] for place in places}) == MANY
    answer = words(section(html, "answer"))
    assert "First: abort orders-49 from offset 9999 by hand" in answer
    assert "10000 to abort now" in answer
    assert "Read 51 of 52 partitions, 1 of 2 coordinator partitions" in answer
    rows = [[words(cell) for cell in row] for row in next(section(html, "history").iter("tbody"))]
    assert [(row[0], row[1], row[-1]) for row in rows] == [
        ("2024-03-11 01:20:00Z (this)", "1", "0 s"),
        ("2024-03-10 01:20:00Z", "1", "9 s"),
    ]


def part(html: str, name: str) -> str:
    """A section as text: the page is too long for a parser of Python."""
    begin = html.index(f'<section id="{name}"')
    return html[begin : html.index("</section>", begin) + len("</section>")]


def section(html: str, name: str) -> Element:
    return by_id(
        f'<!doctype html><html lang="en"><head><title>x</title></head><body>{part(html, name)}</body></html>', name
    )


def test_no_question_is_answered_with_more_rows_than_a_page_shows(tables):
    """Every answer is counted on its way from the tables."""
    asked = open_tables(str(tables))
    answers: list[tuple[str, int]] = []

    class Counted(Rows):
        root = str(tables)

        def ask(self, name: str, *question: Any) -> list[Any]:
            found = asked.ask(name, *question)
            answers.append((name, len(found)))
            return found

    page = page_rows_of(replace(open_run(asked), tables=Counted()), tables=None)
    assert len(page.stories) == page_rows.STORIES["HANGING"]
    assert max(answers, key=lambda answer: answer[1])[1] <= page_rows.MOST_ROWS, answers


def test_an_audit_in_which_nothing_is_open_has_a_page(tmp_path):
    code, out, _ = txn_audit(make(tmp_path, 0), "report", "--html", tmp_path / "report.html")
    assert code == 0
    assert "nothing hangs" in out
    assert "Nothing hangs" in words(by_id((tmp_path / "report.html").read_text("utf-8"), "answer"))


def test_a_page_that_cannot_be_written_is_found_before_a_table_is_read(tmp_path):
    code, out, err = txn_audit(make(tmp_path, 1), "report", "--html", tmp_path)
    assert (code, out) == (2, "")
    assert f"{tmp_path}: is a folder; name a file" in err
