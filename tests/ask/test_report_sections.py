"""A section of a report is one row: text, page and JSON have it from there."""

from __future__ import annotations

import pytest

from tests.page.test_report_page import by_id, words
from tests.support.outcomes import outcome
from tests.support.pages import full_page
from txnlib.ask import report_sections, run_result, terminal_report
from txnlib.ask.report_sections import SECTIONS, Section, navigation
from txnlib.ask.terminal_report import render
from txnlib.page.report_page import render_page

CLOCKS = Section(
    name="clocks",
    title="CLOCKS OF BROKERS",
    says=lambda report: [f"those of {report.cluster} are 3 s apart"],
    heading="Clocks of brokers",
    fields=lambda run, report: {"clocks_apart_seconds": 3},
)


@pytest.fixture
def with_clocks(monkeypatch):
    for writer in (report_sections, terminal_report, run_result):
        monkeypatch.setattr(writer, "SECTIONS", (*SECTIONS, CLOCKS))


@pytest.mark.usefixtures("with_clocks")
def test_a_row_is_a_section_of_text_page_and_json():
    page = full_page()
    said = f"those of {page.report.cluster} are 3 s apart"
    assert f"\n\nCLOCKS OF BROKERS\n  {said}\n\n" in render(page.report)
    assert navigation(page)[-1] == ("clocks", "Clocks of brokers", 1)
    assert words(by_id(render_page(page), "clocks")) == f"Clocks of brokers 1 # {said}"
    assert outcome().found["clocks_apart_seconds"] == 3


def test_a_section_has_an_anchor_of_its_own_and_something_to_show():
    names = [section.name for section in SECTIONS]
    assert sorted({*names}) == sorted(names)
    nothing = Section(name="nothing")
    assert [each.name for each in SECTIONS if (each.title, each.heading, each.fields) == ("", "", nothing.fields)] == []
