"""The report page: complete, and safe from text in logs. What it says is in golden files (`test_page_screens`)."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from itertools import pairwise
from xml.etree.ElementTree import Element

import pytest

from tests.support.crowded_pages import big_page, crowded_page
from tests.support.html import parsed
from tests.support.pages import full_page, held, page, tainted
from txnlib.ask.extents import Reach
from txnlib.ask.page_rows import TO_DO
from txnlib.ask.report_sections import navigation
from txnlib.ask.terminal_report import render
from txnlib.ask.words import PREPARED
from txnlib.core.verdicts.plan_step import Action
from txnlib.page.report_page import render_page, shown

EVIL = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[2J\u202e\u2028\x00\ud800</title></style>{{7*7}}{%"


def words(element: Element) -> str:
    return " ".join("".join(element.itertext()).split())


def by_id(html: str, name: str) -> Element:
    return next(each for each in parsed(html).iter() if each.get("id") == name)


# ---- What is said


def test_of_every_action_it_is_said_what_to_do_in_the_order_in_which_it_is_done():
    assert list(TO_DO) == [action.name for action in Action]


# ---- Many


def test_what_is_left_out_is_counted_and_the_command_that_shows_it_is_there():
    document = parsed(render_page(big_page(249, 30)))
    sections = {each.get("id"): each for each in document.iter("section")}
    for name, left, command in (
        ("hanging", "9970 more, later in the plan", "abort-plan"),
        ("late", "9970 more, later in the plan", "find-late"),
        ("plan", "59970 more:", "abort-plan"),
        ("transactions", "59970 more:", "open"),
    ):
        assert left in words(sections[name])
        assert f"txn-audit {command} --tables out --run run-1" in words(sections[name])


def test_of_many_cards_three_are_open_seven_have_a_line_and_the_rest_is_one_line():
    hanging = by_id(render_page(crowded_page()), "hanging")
    direct = [each for each in hanging if each.tag == "article"]
    assert [each.find("h3") is None for each in direct] == [False] * 3 + [True] * 7
    (rest,) = (each for each in hanging if each.tag == "details")
    assert words(rest[0]) == "118 more"
    assert len(list(rest.iter("article"))) == 118


# ---- Nothing from a log is markup


@pytest.fixture(scope="module")
def hostile() -> str:
    return render_page(tainted(full_page(), EVIL))


def test_a_hostile_log_changes_no_element(hostile):
    ours, theirs = (
        {(each.tag, *sorted(each.keys())) for each in parsed(html).iter()}
        for html in (render_page(full_page()), hostile)
    )
    assert theirs <= ours
    assert words(next(by_id(hostile, "hanging").iter("article"))).count("<script>alert(1)</script>") > 5, (
        "it is shown as what it is"
    )


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
    (policy,) = (
        each.get("content") for each in parsed(html).iter("meta") if each.get("http-equiv") == "Content-Security-Policy"
    )
    allowed = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    for name in ("style", "script"):
        (content,) = re.findall(rf"<{name}>(.*?)</{name}>", html, re.DOTALL)
        assert allowed.pop(f"{name}-src") == f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'"
    assert allowed == {"default-src": "'none'", "base-uri": "'none'", "form-action": "'none'"}


def test_the_file_needs_nothing_else(html):
    for each in parsed(html).iter():
        assert not [
            name
            for name in sorted(each.keys())
            if name.startswith("on") or name in ("src", "style", "srcset", "action")
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
    assert words(document.find("head/title")).startswith("2 HANGING, 1 STUCK")
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
            assert (each.get("aria-label") or "").startswith("Copy")
        if each.tag.endswith("svg"):
            assert each.get("aria-hidden") == "true" or (
                each.get("role") in ("img", "group") and (each.get("aria-label") or each.get("aria-labelledby"))
            )
        if each.get("class") == "scroll":
            assert each.get("role") == "group"
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


def test_sections_stand_as_the_first_lines_name_them_on_the_page_and_in_the_report():
    reach = {"LOOKS_LATE": Reach(1, 1, 1), "UNKNOWN": Reach(1, 1, 1)}
    counts = {"verdicts": dict.fromkeys(reach, 1), "transactions": dict.fromkeys(reach, 1)}
    rows = held("LOOKS_LATE", reason="TIMEOUT_NOT_PASSED"), held("UNKNOWN", start_offset=7)
    shown = page(*rows, report={"extents": reach, "counts": counts})
    order = [each.label for each in shown.report.counted]
    assert order == ["UNKNOWN", "LOOKS_LATE"]
    assert shown.report.headline == "1 UNKNOWN, 1 LOOKS_LATE."
    assert [label for _, label, _ in navigation(shown) if label in order] == order
    assert re.findall(r"^([A-Z_]+)$", render(shown.report), re.MULTILINE) == order
