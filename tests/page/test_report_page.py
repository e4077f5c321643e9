"""The report page: complete, the answer first, and safe from text in logs."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise
from xml.etree.ElementTree import Element

import pytest

from tests.support.crowded_pages import big_page, crowded_page
from tests.support.html import parsed
from tests.support.pages import AS_OF, full_page, held, page, tainted, transaction
from txnlib.ask.extents import Reach
from txnlib.ask.nights import Night
from txnlib.ask.page_rows import MOST_ROWS, TO_DO
from txnlib.ask.report import MEANINGS
from txnlib.ask.report_sections import navigation
from txnlib.ask.report_text import render
from txnlib.ask.stuck_ids import StuckId
from txnlib.ask.words import PREPARED
from txnlib.core.verdicts.abort_plan import Action
from txnlib.page.report_page import render_page, shown

EVIL = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[2J\u202e\u2028\x00\ud800</title></style>{{7*7}}{%"


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
    html = render_page(page(held("OPEN", is_two_phase_commit=True), stories={}))
    answer = by_id(html, "answer")
    assert answer.get("class") == "answer calm"
    assert words(answer).startswith(
        "Nothing hangs, nothing is late, nothing is stuck. 1 open transaction in time: holds payments-0 from offset 24"
    )
    assert "Read 12 of 14 partitions, 5 of 5 coordinator partitions" in words(answer)


def test_what_was_not_read_is_named():
    whole = page(held("OPEN"), stories={})
    for lost, said in {2: "payments-0, payments-1", 1: "payments-0 and 1 more (coverage)"}.items():
        summary = replace(whole.report, missing_partitions=tuple(("payments", number) for number in range(lost)))
        answer = words(by_id(render_page(replace(whole, report=summary)), "answer"))
        assert f"not read, because no copy was captured: {said}" in answer


def test_an_id_that_is_stuck_alone_alarms_and_has_a_section():
    quiet = page(held("OPEN"), stories={})
    stuck = StuckId("pay-gw-1", 3, 7001, 6, "PrepareCommit", AS_OF - 7_200_000, "pay-gw")
    html = render_page(replace(quiet, report=replace(quiet.report, stuck_ids=[stuck])))
    assert by_id(html, "answer").get("class") == "answer alarm"
    assert "nothing is stuck" not in words(by_id(html, "answer"))
    said = words(by_id(html, "stuck_id"))
    assert re.search("pay-gw-1 ?7001 ?PrepareCommit for 2 h", said)
    assert "kafka-leader-election.sh" in said


def test_what_the_sections_count_is_said_where_the_answer_counts_all():
    both = page(transaction(), stories={})
    opened = {**both.report.transactions, "OPEN": [transaction(verdict="OPEN", start_offset=40)]}
    html = render_page(replace(both, report=replace(both.report, transactions=opened)))
    assert [words(each) for each in by_id(html, "open").iter("h2")] == ["OPEN in time, and holding a partition 1 #"]
    assert "OPEN, holding 1" in words(found(html, "nav"))


def test_an_audit_of_nothing_is_a_page():
    empty = page(lags=[], lagging=0, brokers=[], harmed=[], topics={}, topics_known=0, runs=[], plan=[])
    assert headings(render_page(empty)) == [
        "Nothing hangs, nothing is late, nothing is stuck.",
        "Lag of last stable offsets 0 #",
        "Coverage 12 of 14 #",
        "History 0 #",
    ]


@pytest.mark.parametrize(
    ("verdicts", "headline", "level"),
    [
        (["HANGING"], "1 HANGING.", "alarm"),
        (["HANGING", "HANGING", "LATE"], "2 HANGING, 1 LATE.", "alarm"),
        (["LATE"], "1 LATE.", "warning"),
        (["LATE", "UNKNOWN"], "1 LATE, 1 UNKNOWN.", "warning"),
        (["UNKNOWN"], "1 UNKNOWN.", "warning"),
    ],
)
def test_the_first_line_counts_what_is_wrong(verdicts, headline, level):
    html = render_page(page(*[transaction(verdict=verdict, start_offset=i) for i, verdict in enumerate(verdicts)]))
    assert headings(html)[0] == headline
    assert by_id(html, "answer").get("class") == f"answer {level}"
    assert words(parsed(html).find("head/title")).startswith(headline)


def test_since_when_and_what_to_do_stand_beside_it():
    said = words(by_id(render_page(page(transaction())), "answer"))
    assert (
        "1 HANGING nobody will ever end it: holds payments-0 from offset 24 for 23 min by brokers' clocks; 187 offsets"
        " wait" in said
    )
    assert "First: abort payments-0 from offset 24 by hand" in said
    assert "1 to abort now, by hand, with a look before and after" in said


def test_of_every_action_it_is_said_what_to_do_in_the_order_in_which_it_is_done():
    assert list(TO_DO) == [action.name for action in Action]
    html = render_page(page(transaction(), report={"actions": {action.name: 3 for action in Action}}))
    answer = by_id(html, "answer")
    assert [words(each) for each in answer.iter("a") if "plan:" in each.get("href")] == [
        f"3 {phrase}" for phrase in TO_DO.values()
    ]


def test_what_was_not_seen_stands_beside_it():
    said = words(by_id(render_page(full_page()), "answer"))
    assert "not captured: __transaction_state-{7, 31} (what to copy: collect-plan)" in said
    assert "3 files not read, or not to the end" in said
    assert "not read: 3 archives of 12 B were not unpacked: /data/capture/a.txt and 2 more" in said
    assert "/data/capture/a.txt12ARCHIVE: unpack it" in words(by_id(render_page(full_page()), "coverage"))


def test_sections_come_in_the_order_of_the_text_report_and_only_where_there_are_rows():
    order = [section.lower() for section in MEANINGS]
    ids = [each.get("id") for each in parsed(render_page(full_page())).iter("section")]
    assert [each for each in ids if each in order] == [each for each in order if each not in ("looks_late", "open")]
    few = [each.get("id") for each in parsed(render_page(page(held()))).iter("section")]
    assert few == ["answer", "new", "late", "plan", "transactions", "lag", "coverage", "history"]


def test_a_card_says_what_the_text_report_says():
    card = words(by_id(render_page(page(transaction())), "payments-0-24"))
    for said in (
        "payments-0 offset 24",
        "producer 1001 epoch 0 · payments-batch-7 of payments-batch",
        "since 2026-11-21 07:19:41Z by brokers' clocks: 187 offsets, 7.2 KiB",
        "groups settlement on payments-0",
        "likely: late produce",
        "yes: open for 22 min",
        "payments-0 offset 23: the producer's last marker in this partition",
        "txn-audit explain payments 0 24 --tables out --run run-1",
    ):
        assert said in card


def test_the_steps_of_the_only_hanging_transaction_stand_in_the_answer():
    def steps(*rows):
        answer = by_id(render_page(page(*rows)), "answer")
        return [words(each.find("p")) for each in answer.iter("li") if each.find("p") is not None]

    told = ["Before, must show: producer 1001", "Do", "After, must show: None"]
    assert steps(transaction(), held(start_offset=50)) == told
    assert steps(transaction(), transaction(start_offset=30)) == []
    assert steps(transaction(safe_to_abort=False, do_not_abort_because="young", action="ABORT_LATER")) == []


def test_the_command_that_aborts_is_offered_only_where_that_is_safe():
    unsafe = transaction(safe_to_abort=False, do_not_abort_because="no clock proves its age", action="ABORT_LATER")
    for row, offered in ((transaction(), 3), (unsafe, 0)):  # in the answer, in its card, and in the plan
        buttons = [each.get("aria-label") for each in parsed(render_page(page(row))).iter("button")]
        aborts = {f"Copy: {of} payments-0" for of in ("the abort of", "abort of")} | {
            "Copy: the abort of the only hanging transaction"
        }
        assert len([label for label in buttons if label in aborts]) == offered
    assert "Not yet, because no clock proves its age" in words(by_id(render_page(page(unsafe)), "plan"))


def test_what_one_command_settles_is_one_card_and_one_line_of_the_plan():
    rows = [held(start_offset=1, number=1, places=["payments-0 offset 1"])]
    rows.append(held(start_offset=2, number=2, topic="orders", places=["orders-0 offset 2"]))
    html = render_page(page(*rows))
    assert words(by_id(html, "payments-0-1")).count("forceTerminateTransaction") == 1
    assert "payments-0@1 (187 offsets), orders-0@2 (187 offsets)" in words(by_id(html, "payments-0-1"))
    (line,) = next(by_id(html, "plan").iter("tbody")).iter("tr")
    cells = [words(cell) for cell in line]
    assert cells[:2] == ["1, 2", "payments-0 from offset 1orders-0 from offset 2fraud-detectorWRITTEN_AFTER_MARKER"]


def test_history_has_a_row_for_each_audit_and_says_what_became_of_warnings():
    history = words(by_id(render_page(full_page()), "history"))
    assert "2026-11-21 07:42:41Z (this)" in history
    assert "2026-11-20 07:42:41Z" in history
    assert "payments-0 from offset 3goneHANGINGended by hand" in history
    alone = page(transaction(), runs=[{"run_id": "run-1", "as_of_ms": AS_OF, "verdicts": {}, "lag_ms": None}])
    assert "first audit of this cluster" in words(by_id(render_page(alone), "history"))


def test_what_is_new_since_the_last_audit_is_said_and_what_has_ended():
    rows = [transaction(), transaction(start_offset=30, runs_seen=4), held("OPEN", start_offset=40)]
    ended = {
        "topic": "orders",
        "partition": 1,
        "start_offset": 3,
        "producer_id": 9,
        "verdict": "LATE",
        "says": "it was committed",
    }
    counts = {"verdicts": {"HANGING": 2, "OPEN": 1}, "transactions": {"HANGING": 2, "OPEN": 1}}
    reach = {"HANGING": Reach(2, 2, 1, new=1), "OPEN": Reach(1, 1, 1, new=1)}
    html = render_page(page(*rows, report={"counts": counts, "extents": reach, "ended": (ended,)}))
    assert words(found(html, "nav")).startswith("New 2 HANGING 2 ")
    new = by_id(html, "new")
    said = words(new)
    assert "as of 2026-11-20 07:42:41Z, 1 d before this one. New since then: 1 HANGING, 1 OPEN." in said
    assert "HANGING: 0 then, 2 now. LATE: 1 then, 0 now." in said
    assert [words(each) for each in new.iter("th") if each.get("scope") == "row"] == [
        "payments-0 from offset 24",
        "orders-1 from offset 3",
    ]
    assert "it was committed" in said


def test_in_a_first_audit_nothing_is_called_new():
    html = render_page(
        page(transaction(), runs=[{"run_id": "run-1", "as_of_ms": AS_OF, "verdicts": {}, "lag_ms": None}])
    )
    assert 'id="new"' not in html
    assert 'class="fresh"' not in html


def test_a_finding_says_what_to_do_and_where_it_was_found():
    findings = by_id(render_page(full_page()), "findings")
    split = words(next(each for each in findings.iter("article")))
    assert "What to do: The transaction is committed in one place and aborted in another. Stop the consumers" in split
    assert "Where: 2 places" in split
    assert "payments-079gonea marker" in split
    assert "5 of severity INFO" in words(findings)


def test_complete_topics_are_folded():
    topics = {"payments": {"COMPLETE": 3, "MISSING": 4}, "orders": {"COMPLETE": 5}, "stock": {"COMPLETE": 6}}
    coverage = by_id(render_page(page(transaction(), topics=topics, topics_known=3)), "coverage")
    fold = next(each for each in coverage if each.tag == "details")
    assert words(fold[0]) == "2 complete topics, with 11 partitions"
    assert [words(each) for each in fold.iter("th") if each.get("scope") == "row"] == ["orders", "stock"]


def test_the_coverage_counts_partitions_and_names_those_that_are_not_whole():
    coverage = by_id(render_page(full_page()), "coverage")
    assert "__transaction_state: 5 of 5 partitions read, 5 complete" in words(coverage)
    assert "MISSING: partitions 1, 4DAMAGED: partitions 2, 5" in words(coverage)
    assert "payments-0 raw:1PARTIALthe log begins in the middle" in words(coverage)
    assert "txn-audit collect-plan --tables out --run run-1" in words(coverage)
    assert "collect-plan" not in render_page(page(transaction())), "where all was seen"


def test_tables_that_txn_audit_cannot_read_are_asked_with_sql():
    html = render_page(replace(page(transaction()), tables=None))
    plain = re.sub(r"</?span.*?>", "", html).replace("&#39;", "'")
    assert "SELECT * FROM /data/out.open_transactions WHERE run_id = 'run-1'" in plain
    assert "txn-audit explain" not in html


# ---- Many


def test_ten_thousand_rows_are_all_there():
    html = render_page(big_page())  # too long for a parser of Python
    assert len(html) < 18_000_000
    transactions = html[html.index('<section id="transactions"') : html.index('<section id="lag"')]
    assert transactions.count('<th scope="row">') == MOST_ROWS
    assert "<summary>9985 more open transactions</summary>" in transactions


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


def test_the_history_has_a_chart_once_there_are_two_audits():
    whole = page(transaction())
    nights = [Night("a", AS_OF - 86_400_000, 1, 40, 600_000), Night("b", AS_OF, 3, 400, 90_000)]
    shown = by_id(render_page(replace(whole, nights=nights)), "history")
    assert "partitions held: 1 then, 3 now" in words(shown)
    assert [*by_id(render_page(replace(whole, nights=nights[:1])), "history").iter("svg")] == []
