"""Split and half-marked transactions. What report and page say of them is in golden files."""

from __future__ import annotations

from dataclasses import replace

from tests.support.html import parsed
from tests.support.pages import broken, page
from txnlib.page.report_page import render_page


def card(html):
    (article,) = [each for each in parsed(html).iter("article") if each.get("id", "").startswith("split:")]
    return " ".join("".join(article.itertext()).split())


def test_tables_of_a_catalog_have_no_command():
    split = {"broken": [broken()]}
    assert "txn-audit transaction" not in card(render_page(page(report=split, tables=None)))
    assert "txn-audit transaction split-1 --number 1" in card(render_page(page(report=split)))


def test_what_only_waits_for_its_markers_is_told_by_its_verdict():
    waiting = [row | {"marker": marker} for row, marker in zip(broken().partitions, ("FOUND", "PENDING"), strict=True)]
    assert replace(broken(), partitions=waiting).is_only_pending
    assert not broken().is_only_pending
