"""The report page in a real browser: every size, by keyboard, without its script."""

from __future__ import annotations

import re
from base64 import b64decode

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.page.test_report_page import EVIL
from tests.support.browser import DESKTOP, PHONE
from tests.support.crowded_pages import big_page, crowded_page
from tests.support.pages import full_page, held, page, tainted, transaction
from txnlib.ask.page_rows import MOST_ROWS
from txnlib.core.verdicts.reason import Reason
from txnlib.page.report_page import render_page

UNFOLD = "document.querySelectorAll('details').forEach(each => { each.open = true; })"
PAGES = {
    "full": full_page,
    "empty": lambda: page(lags=[], brokers=[], harmed=[], topics={}, runs=[], plan=[]),
    "hostile": lambda: tainted(full_page(), EVIL),
    "long": lambda: big_page(249, 20),
    "crowded": crowded_page,
    "reasons": lambda: page(
        *[transaction(reason=each, start_offset=n) for n, each in enumerate(sorted(Reason, key=len)[-2:])]
    ),
}

NAMES = {"topic": "eu-central-payments-settled", "transactional_id": "eu-central-settlement-batch-worker-17"}
PAGES["names"] = lambda: page(
    *[make(start_offset=n, number=n, **NAMES) for n, make in enumerate((transaction, held) * 9)],
    lags=[{**crowded_page().lags[0], "topic": NAMES["topic"], "blocking_transactional_id": NAMES["transactional_id"]}]
    * 3,
)


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("size", [DESKTOP, PHONE, (320, 600)], ids=["desktop", "phone", "small phone"])
def test_nothing_is_fetched_nothing_is_complained_of_and_nothing_hangs_over_the_side(chromium, files, name, size):
    chromium.requested()
    chromium.open(files[name], size)
    chromium.ask(UNFOLD)
    assert chromium.requested() == [files[name].as_uri()]
    assert chromium.logged() == []
    assert chromium.ask("document.documentElement.scrollWidth") <= size[0]


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_command_breaks_between_its_words_and_a_reason_stays_in_its_column(chromium, files, size):
    """`--start-offset` in two lines would be pasted as two words."""
    chromium.open(files["reasons"], size)
    chromium.ask(UNFOLD)
    lines = chromium.ask("[...document.querySelectorAll('.word')].map(each => [each.textContent, each.offsetHeight])")
    assert len(lines) > 20
    assert [word for word, height in lines if height > 25] == []
    over = "[...document.querySelectorAll('td.reason')].filter(each => each.scrollWidth > each.clientWidth).length"
    assert chromium.ask(over) == 0
    frame = "(each => each.scrollWidth - each.clientWidth)(document.querySelector('#transactions .scroll'))"
    assert size == PHONE or chromium.ask(frame) == 0
    steps = (
        "[...document.querySelectorAll('.group .scroll')].filter(each => each.scrollWidth > each.clientWidth).length"
    )
    assert chromium.ask(steps) == 0, "a command is in sight, on a phone, too"


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_name_in_a_table_stays_in_one_line(chromium, files, size):
    """A topic or an id in two lines, broken at a hyphen, is read as two."""
    chromium.open(files["names"], size)
    chromium.ask(UNFOLD)
    broken = """[...document.querySelectorAll('td, th[scope=row]')]
    .filter(each => !each.matches('.wide, .reason')).map(each => {
      const walker = document.createTreeWalker(each, NodeFilter.SHOW_TEXT), found = [];
      for (let node; (node = walker.nextNode());) for (const word of node.data.matchAll(/[^\\s]*\\w-\\w[^\\s]*/g)) {
        const range = document.createRange();
        range.setStart(node, word.index); range.setEnd(node, word.index + word[0].length);
        if (new Set([...range.getClientRects()].map(each => Math.round(each.top))).size > 1) found.push(word[0]);
      }
      return found;
    }).flat()"""
    assert chromium.ask(broken) == []


def test_the_policy_is_in_force(chromium, files):
    """What could be smuggled in would not run: a style, a script, a picture that somebody adds."""
    chromium.open(files["full"])
    chromium.ask(
        "(document.body.insertAdjacentHTML('beforeend', '<img src=\"https://example.org/x.png\""
        ' style="color:red">\'), 1)'
    )
    chromium.ask("(document.body.appendChild(document.createElement('script')).textContent = 'window.evil = 1', 1)")
    complaints = " ".join(chromium.logged())
    assert chromium.ask("window.evil") is None
    assert [word in complaints for word in ("img-src", "style-src", "script-src")] == [True] * 3


def test_a_hostile_log_runs_nothing(chromium, files):
    chromium.open(files["hostile"])
    assert chromium.ask("[document.scripts.length, document.images.length]") == [1, 0]
    assert "<script>alert(1)</script>" in chromium.ask("document.querySelector('#hanging h3').textContent")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_the_colours_that_the_reader_asked_for(chromium, files, scheme):
    chromium.open(files["full"], scheme=scheme)
    ground, ink = chromium.ask("(style => [style.backgroundColor, style.color])(getComputedStyle(document.body))")
    dark, light = (
        sum(map(int, colour[4:-1].split(", "))) for colour in ((ground, ink) if scheme == "dark" else (ink, ground))
    )
    assert light - dark > 550


def test_a_command_is_copied_as_it_is_shown(chromium, files):
    chromium.open(files["full"])
    chromium.command("Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
    button = chromium.driver.find_element(By.CSS_SELECTOR, "[aria-label='Copy: the abort of payments-0']")
    button.click()
    copied = chromium.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0], arguments[0])")
    assert (
        copied
        == "kafka-transactions.sh --bootstrap-server $BOOTSTRAP abort --topic payments --partition 0 --start-offset 24"
    )
    assert (button.text, chromium.ask("document.getElementById('said').textContent")) == ("Copied", "Copied")


def test_a_command_is_copied_where_the_clipboard_is_not_given(chromium, files):
    chromium.open(files["full"])
    chromium.ask("navigator.clipboard.writeText = () => Promise.reject(new Error('no'))")
    button = chromium.driver.find_element(By.CSS_SELECTOR, "[aria-label^='Copy: Before']")
    button.click()
    copied = chromium.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0], arguments[0])")
    assert copied.endswith("describe-producers --topic payments --partition 0")
    assert chromium.ask("document.querySelectorAll('textarea').length") == 0


def test_the_keyboard_reaches_the_answer_what_is_folded_and_what_scrolls(chromium, files):
    chromium.open(files["full"], PHONE)
    reached = []
    for _ in range(70):
        chromium.driver.switch_to.active_element.send_keys(Keys.TAB)
        reached.append(
            chromium.ask("[document.activeElement.tagName, document.activeElement.getAttribute('class') ?? '']")
        )
    assert reached[0] == ["A", "skip"]
    assert {("BUTTON", "copy"), ("SUMMARY", ""), ("DIV", "scroll"), ("g", "item"), ("BUTTON", "sort")} <= {
        tuple(each) for each in reached
    }


def test_without_its_script_the_page_says_the_same(chromium, files):
    chromium.command("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        chromium.open(files["full"])
        body = chromium.driver.find_element(By.TAG_NAME, "body").text
        buttons = chromium.driver.find_elements(By.TAG_NAME, "button")
        shown = [button for button in buttons if button.is_displayed()]
    finally:
        chromium.command("Emulation.setScriptExecutionDisabled", {"value": False})
    assert "abort --topic payments --partition 0 --start-offset 24" in body
    assert "$BOOTSTRAP is a broker of the cluster." in body
    assert buttons
    assert not shown


def test_without_its_script_every_row_of_a_long_list_can_be_unfolded(chromium, files):
    chromium.command("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        chromium.open(files["crowded"])
        (fold,) = chromium.driver.find_elements(By.CSS_SELECTOR, "#transactions details.rest")
        rows = chromium.driver.find_elements(By.CSS_SELECTOR, "#transactions tbody tr")
        in_view = [row.is_displayed() for row in rows]
        fold.find_element(By.TAG_NAME, "summary").click()
        unfolded = [row.is_displayed() for row in rows]
    finally:
        chromium.command("Emulation.setScriptExecutionDisabled", {"value": False})
    assert in_view == [True] * 15 + [False] * 113
    assert unfolded == [True] * 128


def test_on_paper_are_the_answer_the_plan_and_the_holders_and_nothing_to_click(chromium, files):
    chromium.open(files["crowded"], media="print")
    chromium.ask("dispatchEvent(new Event('beforeprint'))")
    of_all = "(name => [...document.querySelectorAll(name)].map(each => each.checkVisibility()))(arguments[0])"
    for name in ("#answer p", "#plan tbody tr", "#lag tbody tr", "article.card h3", ".printed"):
        assert {*chromium.ask(of_all, name)} >= {True}, name
    assert {*chromium.ask(of_all, "#plan tbody tr")} == {True}
    assert {*chromium.ask(of_all, "#lag tbody tr")} == {True}
    for name in ("#transactions", "#coverage", "#history", "footer", "button:not(.sort)", "nav", "input"):
        assert not any(chromium.ask(of_all, name)), name
    assert chromium.ask("getComputedStyle(document.querySelector('.sort'), '::after').content") == "none"


def test_128_transactions_are_no_stack_of_paper(chromium, files):
    """They were 67 sheets, of which one row in four was printed twice."""
    chromium.open(files["crowded"])
    printed = b64decode(chromium.command("Page.printToPDF", {})["data"])
    assert len(re.findall(rb"/Type ?/Page\b", printed)) <= 25


def test_a_page_of_128_transactions_opens_at_once_and_ten_thousand_rows_do_not_hang_it(chromium, files, tmp_path):
    """Time on a shared machine proves little; the number of elements in view is what drawing takes."""
    chromium.open(files["crowded"])
    opened = chromium.ask("(t => t.loadEventEnd - t.startTime)(performance.getEntriesByType('navigation')[0])")
    assert 0 < opened < 3_000
    in_view = "[...document.querySelectorAll('main *')].filter(each => each.checkVisibility()).length"
    few = chromium.ask(in_view)
    (tmp_path / "big.html").write_text(render_page(big_page()), "utf-8")
    chromium.open(tmp_path / "big.html")
    assert chromium.ask(in_view) < 3 * few
    assert chromium.ask("document.querySelectorAll('#transactions tbody tr').length") == MOST_ROWS
