"""Groups that wait for their own commits are named in headlines."""

from __future__ import annotations

from typing import Any

import pytest

from txnlib.ask.pending_commits import waiting_text
from txnlib.ask.report import Report


def opened(*groups: str) -> dict[str, Any]:
    commits = [{"group_id": group, "topic": "t", "partition": 0} for group in groups]
    return {"topic": "__consumer_offsets", "partition": 17, "pending_commits": commits}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], ""),
        ([{"topic": "orders", "pending_commits": []}], ""),
        ([opened("a")], "; group a cannot fetch its offsets"),
        ([opened("b", "a"), opened("a")], "; groups a, b cannot fetch their offsets"),
        ([opened("a", "b", "c", "d", "e")], "; groups a, b, c and 2 more cannot fetch their offsets"),
        ([opened("a\nb")], "; group a\\nb cannot fetch its offsets"),
    ],
)
def test_the_groups_that_cannot_fetch_are_named_once(rows: list[dict[str, Any]], said: str) -> None:
    assert waiting_text(rows) == said


@pytest.mark.parametrize(
    ("verdict", "is_said"), [("HANGING", True), ("LATE", True), ("UNKNOWN", True), ("OPEN", False)]
)
def test_the_headline_names_them_unless_their_transaction_is_in_time(verdict: str, is_said: bool) -> None:
    counts = {"transactions": {verdict: 1, "SUSPECT": 1}, "verdicts": {verdict: 1, "SUSPECT": 1}}
    report = Report("c", 0, "given", "tables", counts=counts, transactions={verdict: [opened("payments-reader")]})

    said = {each.label: each.says for each in report.counted}

    assert ("; group payments-reader cannot fetch its offsets" in said[verdict]) is is_said
    assert "cannot fetch" not in said["SUSPECT"]
