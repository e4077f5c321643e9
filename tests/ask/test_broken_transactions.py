"""Split and half-marked transactions, in the report and on its page."""

from __future__ import annotations

from dataclasses import replace

from tests.support.html import parsed
from tests.support.pages import AS_OF, broken, page
from txnlib.ask.entries import SHOWN_BROKEN
from txnlib.ask.report import Report
from txnlib.ask.report_text import render
from txnlib.page.report_page import render_page


def summary(*transactions):
    return Report("c", AS_OF, "given", "out", counts={"verdicts": {}, "transactions": {}}, broken=transactions)


def card(html):
    (article,) = [each for each in parsed(html).iter("article") if each.get("id", "").startswith("split:")]
    return article.get("id"), " ".join("".join(article.itertext()).split())


def test_the_report_names_every_partition_of_a_split_transaction():
    text = " ".join(render(summary(broken())).split())
    assert "SPLIT OR HALF-MARKED split-1 transaction 1 producer 2013 decided COMMIT: " in text
    assert "orders-0 ABORT at offset 88 (CONTRADICTING), orders-1 COMMIT at offset 43 (FOUND)" in text


def test_of_many_transactions_the_first_are_named_and_the_rest_is_counted():
    text = render(summary(*[replace(broken(), number=number) for number in range(SHOWN_BROKEN + 3)]))
    assert text.count("split-1   transaction") == SHOWN_BROKEN
    assert "and 3 more: the view latest_whole_transactions" in text


def test_the_page_has_a_card_with_partitions_and_records():
    anchor, text = card(render_page(page(report={"broken": [broken()]})))
    assert anchor == "split:split-1-1"
    assert "SPLIT committed on one partition and aborted on another; decided: COMMIT." in text
    assert "At its coordinator, __transaction_state-3" in text
    assert "orders-0, orders-1" in text
    assert "an ABORT marker contradicts the decision" in text
    assert "txn-audit transaction split-1 --number 1 --tables out --run run-1" in text


def test_tables_of_a_catalog_have_no_command():
    assert "txn-audit transaction" not in card(render_page(page(report={"broken": [broken()]}, tables=None)))[1]


def test_what_only_waits_for_its_markers_is_told_by_its_verdict():
    waiting = [row | {"marker": marker} for row, marker in zip(broken().partitions, ("FOUND", "PENDING"), strict=True)]
    assert replace(broken(), partitions=waiting).is_only_pending
    assert not broken().is_only_pending
