"""What pages say, section by section, as text files: `pytest FILE --renew` writes them anew."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from xml.etree.ElementTree import Element

from tests.page.test_report_page import words
from tests.support.html import parsed
from tests.support.pages import AS_OF, broken, full_page, held, page, transaction
from txnlib.ask.extents import Reach
from txnlib.ask.nights import Night
from txnlib.ask.stuck_ids import StuckId
from txnlib.core.verdicts.plan_step import Action
from txnlib.page.report_page import render_page

#: Elements that are a line of the screen each, as commands are (which end with "Copy" if they are offered); and those
#: without words.
LINES = {"h1", "h2", "h3", "p", "li", "dt", "dd", "tr", "summary", "caption", "figcaption", "pre"}
SILENT = {"head", "style", "script", "template", "svg"}
ROW = transaction()
OPEN = held("OPEN", start_offset=40)
BOTH = page(ROW, stories={})
TWO = [held(start_offset=1, number=1, places=["payments-0 offset 1"])]
TWO.append(held(start_offset=2, number=2, topic="orders", places=["orders-0 offset 2"]))
#: What frees a partition comes first, whatever its reasons.
HOLDERS = [("ABORT", "A"), ("ABORT", "B"), ("ABORT", "A"), ("END_AT_COORDINATOR", "C")]
STEPS = [
    transaction(action=action, reason=reason, number=n, start_offset=n, command=f"abort {n}", places=None)
    for n, (action, reason) in enumerate(HOLDERS, 1)
]
STEPS.append(STEPS[0] | {"is_holder": False, "number": 5, "start_offset": 5, "command": "abort 5"})
FIRST = [{"run_id": "run-1", "as_of_ms": AS_OF, "verdicts": {}, "lag_ms": None}]
ENDED = {"topic": "orders", "partition": 1, "start_offset": 3, "producer_id": 9, "verdict": "LATE"}
COUNTS = {"verdicts": {"HANGING": 2, "OPEN": 1}, "transactions": {"HANGING": 2, "OPEN": 1}}
NEW = {"HANGING": Reach(2, 2, 1, new=1), "OPEN": Reach(1, 1, 1, new=1)}
TOPICS = {"payments": {"COMPLETE": 3, "MISSING": 4}, "orders": {"COMPLETE": 5}, "stock": {"COMPLETE": 6}}
NIGHTS = [Night("a", AS_OF - 86_400_000, 1, 40, 600_000), Night("b", AS_OF, 3, 400, 90_000)]
STUCK = StuckId("pay-gw-1", 3, 7001, 6, "PrepareCommit", AS_OF - 7_200_000, "pay-gw")
UNSAFE = transaction(safe_to_abort=False, do_not_abort_because="no clock proves its age", action="ABORT_LATER")
PROMISES = [f"an abort of payments-{n} from offset 24 was called safe now; it is not, because x" for n in range(7)]
CALM = page(held("OPEN", is_two_phase_commit=True), stories={})
#: Pages, and the sections that are read.
PAGES = {
    "nothing is wrong": (CALM, "answer"),
    "two partitions were not read": (
        replace(BOTH, report=replace(BOTH.report, missing_partitions=(("payments", 0), ("payments", 1)))),
        "answer",
    ),
    "an id is stuck alone": (replace(CALM, report=replace(CALM.report, stuck_ids=[STUCK])), "answer stuck_id"),
    "an audit withdraws promises": (
        page(ROW, stories={}, report={"withdrawn": PROMISES, "earlier_ms": AS_OF - 86_400_000}),
        "nav answer withdrawn",
    ),
    "one in time holds a partition": (
        replace(BOTH, report=replace(BOTH.report, transactions={**BOTH.report.transactions, "OPEN": [OPEN]})),
        "nav open",
    ),
    "nothing was audited": (
        page(lags=[], lagging=0, brokers=[], harmed=[], topics={}, topics_known=0, runs=[], plan=[]),
        "nav answer lag coverage history",
    ),
    "the only one hangs": (page(ROW), "nav answer hanging plan"),
    "the only one is not safe to abort": (page(UNSAFE), "answer hanging plan"),
    "every action is to be done": (page(ROW, report={"actions": {action.name: 3 for action in Action}}), "answer"),
    "one command ends two": (page(*TWO), "answer late plan"),
    "steps stand in the order of the plan": (page(*STEPS), "plan"),
    "some are new, and one ended": (
        page(
            ROW,
            transaction(start_offset=30, runs_seen=4),
            OPEN,
            report={"counts": COUNTS, "extents": NEW, "ended": ({**ENDED, "says": "it was committed"},)},
        ),
        "nav new",
    ),
    "the first audit": (page(ROW, runs=FIRST, stories={}), "nav hanging history"),
    "complete topics are folded": (page(ROW, topics=TOPICS, topics_known=3), "coverage"),
    "tables that only SQL asks": (page(ROW, tables=None, report={"broken": [broken()]}), "hanging split plan"),
    "two audits have a chart": (replace(page(ROW), nights=NIGHTS), "history"),
}


def outline(html: str, named: str = "") -> str:
    """The words of a page, or of its named sections: a line for each element that is one, further in where it is
    folded."""
    document = parsed(html)
    parts = [each for each in document.iter() if {each.tag, each.get("id")} & {*named.split()}] if named else [document]
    return "".join(f"{line}\n" for part in parts for line in _outline(part, ""))


def _outline(element: Element, indent: str) -> Iterator[str]:
    if element.tag in SILENT or element.get("hidden") is not None:
        return
    if element.tag == "section":
        yield f"\n[{' '.join(filter(None, (element.get('id'), element.get('class'))))}]"
    is_command = (element.get("class") or "").startswith("command")
    if element.tag == "tr":
        yield (indent + " | ".join(map(words, element))).rstrip()
    elif is_command or (
        element.tag in LINES and not any(each.tag in LINES for each in element.iter() if each != element)
    ):
        yield f"{indent}{words(element)}".rstrip()
    else:
        for each in element:
            yield from _outline(each, f"{indent}  " if element.tag == "details" else indent)


def test_what_a_page_of_everything_says_is_as_it_was_read_last(assert_as_read):
    assert_as_read("everything", outline(render_page(full_page())))


def test_what_pages_say_is_as_it_was_read_last(assert_as_read):
    told = "\n".join(f"== {name}\n{outline(render_page(made), named)}" for name, (made, named) in PAGES.items())
    assert_as_read("pages", told)
