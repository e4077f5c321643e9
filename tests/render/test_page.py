"""The report page: complete, the answer first, and safe from text in logs."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise
from xml.etree.ElementTree import Element

import html5lib
import pytest

from tests.support.pages import AS_OF, full_page, held, page, tainted, transaction
from txnlib.core.verdicts.abort_plan import Action
from txnlib.queries.page_rows import SHOWN_PLAN, Page
from txnlib.queries.summary import PREPARED, SECTIONS, SHOWN
from txnlib.render.page import render_page, shown
from txnlib.render.page_head import TO_DO, answer

EVIL = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[2J\u202e\u2028\x00\ud800</title></style>{{7*7}}{%"


def parsed(html: str) -> Element:
    """The document. Raises html5lib's ParseError where it is not well-formed HTML."""
    tree: Element = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(html)
    return tree


def words(element: Element) -> str:
    return " ".join("".join(element.itertext()).split())


def found(html: str, name: str) -> Element:
    (only,) = parsed(html).iter(name)
    return only


def by_id(html: str, name: str) -> Element:
    return next(each for each in parsed(html).iter() if each.get("id") == name)


def headings(html: str) -> list[str]:
    return [words(each) for each in parsed(html).iter("h2")]


# ---- What is said


def test_nothing_alarms_when_nothing_is_wrong():
    html = render_page(page(held("OPEN", is_two_phase_commit=True), oldest=None, stories={}))
    answer = by_id(html, "answer")
    assert answer.get("class") == "answer calm"
    assert words(answer).startswith("Nothing hangs, nothing is late, nothing is stuck. 1 open transaction, in time.")
    assert "Read 12 of 14 partitions, 5 of 5 coordinator partitions" in words(answer)


def test_an_audit_of_nothing_is_a_page():
    empty = page(lags=[], lagging=0, brokers=[], covered=[], topics={}, topics_known=0, runs=[], actions={}, plan=[])
    assert headings(render_page(empty)) == [
        "Nothing hangs, nothing is late, nothing is stuck.",
        "How far last stable offsets lag",
        "What was seen",
        "Audit after audit",
    ]


@pytest.mark.parametrize(
    ("verdicts", "headline", "level"),
    [
        (["HANGING"], "1 transaction hangs.", "alarm"),
        (["HANGING", "HANGING", "LATE"], "2 transactions hang, 1 is late.", "alarm"),
        (["LATE"], "Nothing hangs, but 1 is late.", "warning"),
        (["LATE", "UNKNOWN"], "Nothing hangs, but 1 is late, and 1 could not be judged.", "warning"),
        (["UNKNOWN"], "Nothing hangs, nothing is late, nothing is stuck, but 1 could not be judged.", "warning"),
    ],
)
def test_the_first_line_counts_what_is_wrong(verdicts, headline, level):
    html = render_page(page(*[transaction(verdict=verdict, start_offset=i) for i, verdict in enumerate(verdicts)]))
    assert headings(html)[0] == headline
    assert by_id(html, "answer").get("class") == f"answer {level}"
    assert words(found(html, "title")).startswith(headline)


def test_since_when_and_what_to_do_stand_beside_it():
    said = words(by_id(render_page(page(transaction())), "answer"))
    assert "payments-0 is blocked at offset 24 since 2026-11-21 07:19:41Z, for 23 min, by a transaction that is HANGING." in said
    assert "1 to abort now, by hand, with a look before and after" in said


def test_of_every_action_it_is_said_what_to_do_in_the_order_in_which_it_is_done():
    assert list(TO_DO) == [action.name for action in Action]
    told = answer(page(transaction(), actions={action.name: 3 for action in Action})).do
    assert [count for count, _, _ in told] == [3] * len(Action)


def test_what_was_not_seen_stands_beside_it():
    said = words(by_id(render_page(full_page()), "answer"))
    assert "not captured: __transaction_state-{7, 31}; 3 unreadable stretches in quarantine." in said


def test_sections_come_in_the_order_of_the_text_report_and_only_where_there_are_rows():
    order = [section.lower() for section in SECTIONS]
    ids = [each.get("id") for each in parsed(render_page(full_page())).iter("section")]
    assert [each for each in ids if each in order] == order
    few = [each.get("id") for each in parsed(render_page(page(held()))).iter("section")]
    assert few == ["answer", "late", "plan", "lag", "coverage", "history"]


def test_a_card_says_what_the_text_report_says():
    card = words(by_id(render_page(page(transaction())), "hanging-1"))
    for said in (
        "payments-0 from offset 24",
        "payments-batch-7 of payments-batch · producer 1001 epoch 0",
        "since 2026-11-21 07:19:41Z by brokers' clocks: 187 offsets, 7.2 KiB",
        "groups settlement on payments-0",
        "likely: late produce",
        "yes: open for 22 min",
        "payments-0 offset 23: the producer's last marker in this partition",
        "txn-audit explain payments 0 24 --tables out --run run-1",
    ):
        assert said in card


def test_the_command_that_aborts_is_offered_only_where_that_is_safe():
    unsafe = transaction(safe_to_abort=False, do_not_abort_because="no clock proves its age", action="ABORT_LATER")
    for row, offered in ((transaction(), 2), (unsafe, 0)):  # in its card, and in the plan
        buttons = [each.get("aria-label") for each in parsed(render_page(page(row))).iter("button")]
        assert buttons.count("Copy: the abort of payments-0") + buttons.count("Copy: abort of payments-0") == offered
    assert "Not yet: no clock proves its age" in words(by_id(render_page(page(unsafe)), "plan"))


def test_what_one_command_settles_is_one_card_and_one_line_of_the_plan():
    rows = [held(start_offset=1, number=1, places=["payments-0 offset 1"])]
    rows.append(held(start_offset=2, number=2, topic="orders", places=["orders-0 offset 2"]))
    html = render_page(page(*rows))
    assert words(by_id(html, "late-1")).count("forceTerminateTransaction") == 1
    assert "payments-0 from offset 1 (187 offsets), orders-0 from offset 2" in words(by_id(html, "late-1"))
    (line,) = next(by_id(html, "plan").iter("tbody")).iter("tr")
    cells = [words(cell) for cell in line]
    assert cells[:2] == ["1, 2", "END_AT_COORDINATOR"]
    assert ("payments-0 offset 1" in cells[2], "orders-0 offset 2" in cells[2]) == (True, True)


def test_history_has_a_row_for_each_audit_and_says_what_became_of_warnings():
    history = words(by_id(render_page(full_page()), "history"))
    assert "2026-11-21 07:42:41Z (this)" in history
    assert "2026-11-20 07:42:41Z" in history
    assert "payments-0 offset 3, gone, was HANGING: ended by hand" in history
    alone = page(transaction(), runs=[{"run_id": "run-1", "as_of_ms": AS_OF, "verdicts": {}, "lag_ms": None}])
    assert "first audit of this cluster" in words(by_id(render_page(alone), "history"))


def test_the_coverage_map_draws_every_partition_and_names_those_that_are_not_whole():
    coverage = by_id(render_page(full_page()), "coverage")
    maps = {each.get("aria-label"): each for each in coverage.iter() if each.tag.endswith("svg")}
    assert set(maps) == {"Coordinator partitions: 5 of 5 read", "payments: 3 of 7 partitions complete"}
    assert "1 MISSING, 2 DAMAGED, 4 MISSING, 5 DAMAGED" in words(coverage)
    assert "PARTIAL: the log begins in the middle" in words(coverage)
    assert "txn-audit collect-plan --tables out --run run-1" in words(coverage)
    assert "collect-plan" not in render_page(page(transaction())), "where all was seen"


def test_tables_that_txn_audit_cannot_read_are_asked_with_sql():
    html = render_page(replace(page(transaction()), tables=None))
    assert "SELECT * FROM /data/out.open_transactions WHERE run_id = 'run-1'" in html.replace("&#39;", "'")
    assert "txn-audit explain" not in html


# ---- Many


def big_page(length: int = 249) -> Page:
    """Ten thousand of everything, cut as the tables' readers cut it; topics have names as long as Kafka allows."""
    long = "x" * length
    rows = [
        (held if verdict in ("LATE", "OPEN") else transaction)(
            verdict=verdict, start_offset=i, topic=long, transactional_id=f"{long}-{i}", groups=[long] * 10, number=i
        )
        for verdict in ("HANGING", "STUCK", "LATE", "SUSPECT", "OPEN", "UNKNOWN")
        for i in range(SHOWN)
    ]
    counts = {"verdicts": dict.fromkeys(("HANGING", "STUCK", "LATE", "SUSPECT", "OPEN", "UNKNOWN"), 10_000)}
    small = page(*rows, plan=rows[:0])
    plan = [{**row, "command_for_old_brokers": None} for row in rows[:SHOWN_PLAN]]
    covered = [{"topic": "payments", "partition": i, "status": ("COMPLETE", "MISSING")[i % 2]} for i in range(5_000)]
    summary = replace(small.summary, counts=counts)
    return replace(small, summary=summary, plan=plan, actions={"ABORT": 60_000}, covered=covered)


def test_ten_thousand_transactions_of_each_kind_are_counted_and_few_are_shown():
    assert len(render_page(big_page(24))) < 650_000
    html = render_page(big_page())
    assert len(html) < 1_000_000
    document = parsed(html)
    sections = {each.get("id"): each for each in document.iter("section")}
    assert "9980 more:" in words(sections["hanging"])
    assert "txn-audit abort-plan --tables out --run run-1" in words(sections["hanging"])
    assert "txn-audit find-late --tables out --run run-1" in words(sections["late"])
    assert "59970 more:" in words(sections["plan"])
    cards = list(sections["hanging"].iter("article"))
    assert [each.find("h3") is None for each in cards] == [False] * 3 + [True] * 17, "three stand open, the rest is folded up"


# ---- Nothing from a log is markup


@pytest.fixture(scope="module")
def hostile() -> str:
    return render_page(tainted(full_page(), EVIL))


def test_a_hostile_log_changes_no_element(hostile):
    ours, theirs = (
        {(each.tag, *sorted(each.keys())) for each in parsed(html).iter()} for html in (render_page(full_page()), hostile)
    )
    assert theirs <= ours
    assert words(by_id(hostile, "hanging-1")).count("<script>alert(1)</script>") > 5, "it is shown as what it is"


def test_nothing_hostile_reaches_the_file_as_it_was(hostile):
    assert "<script>alert" not in hostile
    assert "<img" not in hostile
    assert not [c for c in hostile if not (c.isprintable() or c == "\n")]
    hostile.encode("utf-8")


def test_a_command_that_is_not_what_it_looks_like_is_not_offered_for_copying(hostile):
    for button in parsed(hostile).iter("button"):
        assert "\\x1b" not in (button.get("aria-label") or "")
    assert "do not paste it" in words(parsed(hostile))


def test_none_is_a_dash_and_text_is_spelt_out():
    assert [shown(value) for value in (None, 7, "a\nb\u202e", ["\x00"])] == ["–", 7, "a\\nb\\u202e", "['\\x00']"]


# ---- The document


@pytest.fixture(scope="module")
def html() -> str:
    return render_page(full_page())


def test_the_policy_lets_in_our_style_and_script_and_nothing_else(html):
    (policy,) = (each.get("content") for each in parsed(html).iter("meta") if each.get("http-equiv") == "Content-Security-Policy")
    allowed = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    for name in ("style", "script"):
        (content,) = re.findall(rf"<{name}>(.*?)</{name}>", html, re.DOTALL)
        assert allowed.pop(f"{name}-src") == f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'"
    assert allowed == {"default-src": "'none'", "base-uri": "'none'", "form-action": "'none'"}


def test_the_file_needs_nothing_else(html):
    for each in parsed(html).iter():
        assert not [
            name for name in sorted(each.keys()) if name.startswith("on") or name in ("src", "style", "srcset", "action")
        ], each.tag
        assert (each.get("href") or "#").startswith("#")
        assert each.tag not in ("link", "iframe", "object", "embed", "base", "img", "form")
    assert "url(" not in html
    assert "@import" not in html


def test_every_link_and_every_label_leads_to_one_place(html):
    ids = [each.get("id") for each in parsed(html).iter() if each.get("id")]
    assert len(ids) == len(set(ids))
    for each in parsed(html).iter():
        wanted = [(each.get("href") or "").removeprefix("#"), *(each.get("aria-labelledby") or "").split()]
        assert not set(filter(None, wanted)) - set(ids)


def test_the_page_can_be_read_without_seeing_it(html):
    document = parsed(html)
    assert document.get("lang") == "en"
    levels = [int(each.tag[1]) for each in document.iter() if re.fullmatch(r"h\d", each.tag)]
    assert levels[0] == 1
    assert all(lower - upper <= 1 for upper, lower in pairwise(levels))
    tables = list(document.iter("table"))
    assert len(tables) > 8
    for table in tables:
        assert words(table.find("caption"))
        assert all(th.get("scope") in ("col", "row") and words(th) for th in table.iter("th"))
        assert next(table.iter("thead"), None) is not None
    for each in document.iter():
        if each.tag == "button":
            assert (each.get("aria-label") or "").startswith("Copy: ")
        if each.tag.endswith("svg"):
            assert each.get("aria-hidden") == "true" or (
                each.get("role") == "img" and (each.get("aria-label") or each.get("aria-labelledby"))
            )
        if each.get("role") == "region":
            assert each.get("aria-label")
            assert each.get("tabindex") == "0", "what scrolls is reached by keyboard"


PALETTES = re.findall(r":root \{(.*?)\}", (render_page(page())), re.DOTALL)
GROUNDS = ("ground", "card", "code", "alarm-ground", "warning-ground", "calm-ground", "row")
INKS = ("ink", "quiet", "link", "hanging", "stuck", "late", "suspect", "unknown", "open", "prepared")


def luminance(colour: str) -> float:
    """WCAG 2.2, relative luminance."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_contrast_is_that_of_black_on_white_at_its_best():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("palette", PALETTES, ids=["light", "dark", "print"])
def test_every_colour_can_be_read_on_every_ground(palette):
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", palette))
    assert set(colours) >= {*GROUNDS, *INKS}
    weak = {(ink, ground) for ink in INKS for ground in GROUNDS if contrast(colours[ink], colours[ground]) < 4.5}
    assert not weak
    assert PREPARED.lower() in colours
