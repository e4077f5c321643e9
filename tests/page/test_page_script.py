"""What the script of the report page adds: sort, filter, search, links into folds, and commands with the reader's own
broker."""

from __future__ import annotations

import subprocess

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from tests.page.test_report_page import EVIL
from tests.support.browser import PHONE, Browser
from tests.support.crowded_pages import crowded_page
from tests.support.pages import full_page, held, page, tainted, transaction
from txnlib.ask.abort_script import abort_plan_script
from txnlib.core.display import instant
from txnlib.core.kafka_commands import force_terminate

#: A transactional id that would be replaced, or would end a quotation, if commands were handled as text.
SLY = "$BOOTSTRAP'; touch /tmp/evil; '"
#: For the fixture `files`.
PAGES = {
    "crowded": crowded_page,
    "cut": lambda: crowded_page(actions={"ABORT": 60_000}),
    "full": full_page,
    "hostile": lambda: tainted(full_page(), EVIL),
    "sly": lambda: page(held(command=force_terminate(SLY), transactional_id=SLY, before=[], after=[]), transaction()),
}


@pytest.fixture(scope="module", autouse=True)
def clipboard(chromium: Browser) -> None:
    """A page may write to the clipboard, and a test may read it."""
    chromium.command("Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})


def shown(chromium: Browser, selector: str) -> list[str]:
    """The text of the elements in view."""
    found = f"[...document.querySelectorAll({selector!r})].filter(each => each.checkVisibility())"
    texts: list[str] = chromium.ask(f"{found}.map(each => each.textContent.replace(/\\s+/g, ' ').trim())")
    return texts


def press(chromium: Browser, selector: str) -> None:
    """Clicks, wherever on the page it is."""
    chromium.driver.execute_script("document.querySelector(arguments[0]).click()", selector)


def type_into(chromium: Browser, name: str, text: str) -> None:
    """Types into a field, like a reader who pastes."""
    typed = (
        "const e = document.getElementById(arguments[0]); e.value = arguments[1]; e.dispatchEvent(new Event('input'))"
    )
    chromium.driver.execute_script(typed, name, text)


def copied(chromium: Browser) -> str:
    """What is on the clipboard."""
    text: str = chromium.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0], arguments[0])")
    return text


# ---- Lists

ROWS = "#transactions tbody tr"
FIRST_CELLS = "#transactions tbody th"


def test_a_long_list_is_folded_and_one_button_shows_all_of_it(chromium, files):
    chromium.open(files["crowded"])
    assert len(shown(chromium, ROWS)) == 15
    press(chromium, "#transactions .unfold")
    assert len(shown(chromium, ROWS)) == 128
    press(chromium, "#transactions .unfold")
    assert len(shown(chromium, ROWS)) == 15


def test_a_column_sorts_all_rows_both_ways_and_back(chromium, files):
    chromium.open(files["crowded"])
    original = shown(chromium, FIRST_CELLS)
    head = "#transactions th:nth-child(6)"  # offsets blocked
    press(chromium, f"{head} button")
    assert shown(chromium, f"{ROWS} td:nth-child(6)")[:2] == ["873", "874"], "a folded row comes first"
    assert chromium.ask(f"document.querySelector('{head}').getAttribute('aria-sort')") == "ascending"
    press(chromium, f"{head} button")
    assert shown(chromium, f"{ROWS} td:nth-child(6)")[:2] == ["1000", "999"]
    press(chromium, f"{head} button")
    assert shown(chromium, FIRST_CELLS) == original
    assert chromium.ask(f"document.querySelector('{head}').getAttribute('aria-sort')") is None


def test_names_sort_as_people_count(chromium, files):
    chromium.open(files["crowded"])
    press(chromium, "#transactions th:nth-child(1) button")
    press(chromium, "#transactions .unfold")
    topics = [text.split("-")[1] for text in shown(chromium, FIRST_CELLS)]
    assert topics == sorted(topics, key=int)


def test_a_filter_finds_rows_that_are_folded(chromium, files):
    chromium.open(files["crowded"])
    selects = chromium.driver.find_elements(By.CSS_SELECTOR, "#transactions select")
    assert [select.accessible_name.split()[0] for select in selects] == ["reason", "seen"]
    Select(selects[0]).select_by_visible_text("PRODUCER_ID_ROTATED")
    press(chromium, "#transactions .unfold")
    assert len(shown(chromium, ROWS)) == 64
    Select(selects[1]).select_by_visible_text("this audit: new")
    assert len(shown(chromium, ROWS)) == 21
    assert chromium.ask("document.getElementById('said').textContent") == "21 of 128 rows"


def test_the_search_finds_rows_and_cards_wherever_they_are_folded(chromium, files):
    chromium.open(files["crowded"])
    before = shown(chromium, "article")
    type_into(chromium, "search", "SHOP-100")
    WebDriverWait(chromium.driver, 5).until(lambda _: chromium.ask("document.getElementById('matches').textContent"))
    (card,) = shown(chromium, "article")
    assert "shop-100" in card
    (found,) = shown(chromium, FIRST_CELLS)
    assert found.split(" from")[0] == "topic-40-0"
    assert len(shown(chromium, "#plan tbody tr")) == 1
    sections = "[...document.querySelectorAll('main > section')].filter(each => each.offsetParent).map(each => each.id)"
    assert chromium.ask(sections) == ["answer", "hanging", "plan", "transactions"], "and nothing that is empty"
    type_into(chromium, "search", "")
    WebDriverWait(chromium.driver, 5).until(
        lambda _: not chromium.ask("document.getElementById('matches').textContent")
    )
    assert shown(chromium, "article") == before
    assert len(shown(chromium, ROWS)) == 15
    type_into(chromium, "search", found.replace(" from offset ", "@"))
    WebDriverWait(chromium.driver, 5).until(lambda _: chromium.ask("document.getElementById('matches').textContent"))
    assert found in shown(chromium, FIRST_CELLS), "as commands name it"


def test_the_navigation_stays_in_view_and_hides_nothing_that_a_link_leads_to(chromium, files):
    for size in ((1280, 900), PHONE):
        chromium.open(files["crowded"], size)
        press(chromium, "nav a[href='#history']")
        bar = chromium.ask("document.querySelector('nav').getBoundingClientRect().toJSON()")
        head = chromium.ask("document.querySelector('#history h2').getBoundingClientRect().toJSON()")
        assert bar["top"] == 0
        assert bar["bottom"] <= head["top"] + 1
        assert bar["height"] < 120


# ---- Links


@pytest.mark.parametrize(
    ("anchor", "opened"),
    [
        ("topic-40-0-100", "#topic-40-0-100 dl"),
        ("plan:topic-40-0-100", "[id='plan:topic-40-0-100'] code"),
        ("lag:topic-39", "[id='lag:topic-39'] th"),
    ],
)
def test_a_link_opens_what_is_folded(chromium, files, anchor, opened):
    target = f"document.getElementById('{anchor}')"
    chromium.open(files["crowded"])
    assert not chromium.ask(f'document.querySelector("{opened}").checkVisibility()')
    chromium.driver.get(f"{files['crowded'].as_uri()}#{anchor}")
    assert chromium.ask(f'document.querySelector("{opened}").checkVisibility()')
    assert 0 <= chromium.ask(f"{target}.getBoundingClientRect().top") < 900


def test_a_link_opens_what_is_folded_in_browsers_that_do_not(chromium, files):
    """Chromium opens the folds around a target by itself, so here no navigation takes place."""
    chromium.open(files["crowded"])
    follow = "history.replaceState(null, '', '#topic-40-0-100'); dispatchEvent(new HashChangeEvent('hashchange'))"
    chromium.driver.execute_script(follow)
    assert chromium.ask("document.querySelector('#topic-40-0-100 dl').checkVisibility()")


def test_a_hostile_name_has_an_anchor_that_works(chromium, files):
    chromium.open(files["hostile"])
    link = "document.querySelector('#hanging .card .self')"
    assert chromium.ask(f"document.getElementById({link}.getAttribute('href').slice(1)) === {link}.closest('.card')")
    assert chromium.ask(f"/^#[\\w.~-]+$/.test({link}.getAttribute('href'))")


# ---- Commands


ADDRESSES = (
    "broker:9092",
    "a:9092,b:9092",
    "[::1]:9092",
    "it's; touch /tmp/evil",
    "$(touch /tmp/evil)",
    "`touch /tmp/evil`",
    '"a" & b | c > d',
    "--help",
    "$BOOTSTRAP",
    "ü\\n",
)


def arguments(commands: str) -> list[list[str]]:
    """What bash makes of commands: the arguments of each. Only the functions here exist for it."""
    tool = """kafka-transactions.sh() { printf '%s\\0' "$@" $'\\n'; }; PATH=; """
    done = subprocess.run(["/bin/bash", "-c", tool + commands], capture_output=True, check=True, text=True)
    return [line.split("\0")[:-1] for line in done.stdout.split("\n\0")[:-1]]


@pytest.mark.parametrize("typed", ADDRESSES)
def test_the_typed_broker_is_one_argument_whatever_it_is(chromium, files, typed):
    chromium.open(files["sly"])
    type_into(chromium, "bootstrap", typed)
    ended, aborted = arguments("".join(f"{code}\n" for code in shown(chromium, "#plan .now code")))
    assert ended == ["--bootstrap-server", typed, "forceTerminateTransaction", "--transactionalId", SLY]
    assert aborted[:3] == ["--bootstrap-server", typed, "abort"]
    assert chromium.ask("document.getElementById('bootstrap').getAttribute('aria-invalid')") == "false"


@pytest.mark.parametrize("typed", ["a\u202eb", "a\tb\x1b", "a\u2028b", "\u200bb"])
def test_what_cannot_be_seen_is_refused(chromium, files, typed):
    chromium.open(files["sly"])
    type_into(chromium, "bootstrap", typed)
    assert chromium.ask("document.getElementById('bootstrap').getAttribute('aria-invalid')") == "true"
    assert set(shown(chromium, ".bootstrap")) == {"$BOOTSTRAP"}
    assert "cannot be seen" in shown(chromium, "#bootstrap-refused")[0]
    type_into(chromium, "bootstrap", "")
    assert shown(chromium, "#bootstrap-refused") == []
    assert chromium.ask("document.getElementById('bootstrap').getAttribute('aria-invalid')") == "false"


def test_one_broker_is_in_all_commands_of_the_page(chromium, files):
    chromium.open(files["full"])
    type_into(chromium, "bootstrap", "kafka-1:9093")
    assert set(shown(chromium, ".bootstrap")) == {"kafka-1:9093"}
    codes = chromium.ask("[...document.querySelectorAll('code')].map(each => each.textContent)")
    assert not [code for code in codes if code.startswith("kafka-") and "$BOOTSTRAP" in code]


def test_the_script_of_the_plan_is_copied_whole_and_checks_before_each_step(chromium, files):
    chromium.open(files["full"])
    press(chromium, "#plan .bootstrap-tools .copy-script")
    script = copied(chromium)
    assert script == abort_plan_script(full_page().plan, full_page().run_id, instant(full_page().report.as_of_ms))
    assert "surprise" in script
    assert subprocess.run(["/bin/bash", "-n"], input=script, text=True).returncode == 0


def test_a_page_without_the_whole_plan_offers_no_script(chromium, files):
    chromium.open(files["cut"])
    assert shown(chromium, ".copy-script") == []


# ---- Details


def test_the_details_of_a_timeline_are_told_on_focus_and_the_arrow_keys_move_on(chromium, files):
    chromium.open(files["full"])
    plot = "document.querySelector('.plot.wide')"
    assert chromium.ask(f"{plot}.querySelectorAll('[tabindex=\"0\"]').length") == 1
    chromium.driver.execute_script(f"{plot}.querySelector('[tabindex=\"0\"]').focus()")
    detail = "document.querySelector('.timeline .detail').textContent"
    first = chromium.ask(detail)
    assert first == chromium.ask("document.activeElement.querySelector('title').textContent")
    chromium.driver.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    second = chromium.ask(detail)
    assert second != first
    assert second == chromium.ask("document.activeElement.querySelector('title').textContent")
    chromium.driver.switch_to.active_element.send_keys(Keys.ARROW_LEFT)
    assert chromium.ask(detail) == first
    assert chromium.ask(f"{plot}.querySelectorAll('[tabindex=\"0\"]').length") == 1


def test_the_details_of_a_timeline_are_told_on_hover(chromium, files):
    chromium.open(files["full"])
    last = "[...document.querySelectorAll('.plot.wide .marker')][0]"
    chromium.driver.execute_script(f"{last}.dispatchEvent(new PointerEvent('pointerenter'))")
    assert chromium.ask("document.querySelector('.timeline .detail').textContent").startswith("offset 23: ABORT marker")


def test_a_timeline_is_whole_on_a_phone(chromium, files):
    chromium.open(files["full"], PHONE)
    boxes = chromium.ask(
        "[...document.querySelectorAll('.plot.narrow')].filter(each => each.checkVisibility())"
        ".map(each => [each.getBoundingClientRect().left, each.getBoundingClientRect().right])"
    )
    assert boxes
    assert all(left >= 0 and right <= PHONE[0] for left, right in boxes)
    assert shown(chromium, ".plot.wide") == []
    texts = "[...document.querySelectorAll('.plot.narrow text')].map(each => each.getBoundingClientRect())"
    assert chromium.ask(f"{texts}.every(box => box.left >= 0 && box.right <= {PHONE[0]})")
    assert chromium.ask(f"{texts}.filter(box => box.height).every(box => box.height > 9)")


def test_a_time_says_what_it_is_where_the_reader_is(chromium, files):
    chromium.command("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Tokyo"})
    try:
        chromium.open(files["full"])
        chromium.driver.execute_script(
            "document.querySelector('time').dispatchEvent(new PointerEvent('pointerover', {bubbles: true}))"
        )
        title = chromium.ask("document.querySelector('time').title")
    finally:
        chromium.command("Emulation.setTimezoneOverride", {"timezoneId": ""})
    assert "4:42:41" in title
    assert title.endswith("(your time)")
