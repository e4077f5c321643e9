"""Anchors of the report page: the same tomorrow, one for each thing, and harmless whatever a topic is called."""

from __future__ import annotations

import re
from dataclasses import replace
from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st

from tests.page.test_report_page import by_id, parsed, words
from tests.support.crowded_pages import crowded_page
from tests.support.pages import full_page, held, page, transaction
from txnlib.page.report_page import Ids, encoded, partition_anchor, render_page, transaction_anchor

PLACE = st.tuples(st.text(max_size=12), st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1))


def anchor(topic: str, partition: int, start_offset: int) -> str:
    return transaction_anchor({"topic": topic, "partition": partition, "start_offset": start_offset})


def test_a_name_that_kafka_allows_is_its_own_anchor():
    assert anchor("payments", 0, 24) == "payments-0-24"
    assert anchor("odd.topic_with-dashes-1", 2, 3) == "odd.topic_with-dashes-1-2-3"
    assert anchor("a b~<", 0, 1) == "a~20~b~7e~~3c~-0-1"


@given(PLACE, PLACE)
def test_different_places_have_different_anchors(one, other):
    assert (anchor(*one) == anchor(*other)) == (one == other)
    assert not anchor(*one).startswith(("lag:", "plan:", "finding:", "coverage:"))


@given(PLACE)
def test_an_anchor_needs_no_quoting(place):
    assert re.fullmatch(r"[A-Za-z0-9._~-]+", anchor(*place))
    assert quote(anchor(*place)) == anchor(*place)


@given(st.text(max_size=8), st.text(max_size=8))
def test_different_names_are_encoded_differently(one, other):
    assert (encoded(one) == encoded(other)) == (one == other)


def test_an_id_is_given_once():
    ids = Ids()
    assert [str(ids.once("a")), str(ids.once("b")), str(ids.once("a"))] == [' id="a"', ' id="b"', ""]


def test_the_anchor_of_a_transaction_does_not_depend_on_the_others():
    """Tomorrow there are more of them, in another order, and this one has another verdict."""
    tomorrow = page(
        *[transaction(start_offset=i) for i in range(30)], held("LATE", topic="payments", start_offset=24_000)
    )
    for row in (held("LATE", start_offset=24_000), transaction(start_offset=24_000)):
        assert "24000" in words(by_id(render_page(page(row)), "payments-0-24000"))
    assert "24000" in words(by_id(render_page(tomorrow), "payments-0-24000"))


def test_every_open_transaction_has_an_anchor_with_a_card_or_without():
    crowded = crowded_page()
    few = {"HANGING": crowded.report.transactions["HANGING"][:20]}
    without = replace(crowded, report=replace(crowded.report, transactions=few))
    for shown in (crowded, without):
        ids = {each.get("id") for each in parsed(render_page(shown)).iter()}
        assert ids >= {transaction_anchor(row) for row in shown.opened}
        assert ids >= {partition_anchor("lag", row) for row in shown.lags}


def test_every_partition_of_a_transaction_leads_to_its_card():
    rows = [held(start_offset=1, number=1), held(start_offset=2, number=2, topic="orders")]
    card = by_id(render_page(page(*rows)), "payments-0-1")
    assert card.tag == "article"
    assert "orders-0-2" in {each.get("id") for each in card.iter()}


def test_two_producers_at_one_offset_have_one_anchor():
    html = render_page(page(transaction(), transaction(producer_id=7)))
    assert html.count('id="payments-0-24"') == 1


def test_findings_and_partitions_have_anchors():
    ids = {each.get("id") for each in parsed(render_page(full_page())).iter()}
    assert ids >= {
        "finding:SPLIT_OUTCOME",
        "finding:COPY_OF_DELETED_TOPIC",
        "lag:payments-0",
        "coverage:payments",
        "plan:payments-0-24",
    }
