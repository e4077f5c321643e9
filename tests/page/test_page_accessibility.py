"""The report page under axe, the checker of accessibility."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from typing import Any

import pytest

from tests.page.test_page_browser import PAGES, UNFOLD
from tests.support.browser import DESKTOP, PHONE, Browser
from tests.support.crowded_pages import crowded_page
from txnlib.page.report_page import render_page

AXE = files("axe_core_python").joinpath("axe.min.js").read_text("utf-8")


def violations(chromium: Browser) -> list[tuple[str, str]]:
    """What axe complains of: its rule and the first element. All its rules are asked, those of best practice too."""
    chromium.driver.set_script_timeout(120)  # a shared machine is slow
    chromium.driver.execute_script(AXE)
    found: dict[str, Any] = chromium.driver.execute_async_script("axe.run(document).then(arguments[0])")
    return [(each["id"], each["nodes"][0]["html"][:200]) for each in found["violations"]]


MADE = {"full": PAGES["full"], "empty": PAGES["empty"], "folded": lambda: replace(crowded_page(20), stories={})}


@pytest.mark.parametrize(
    ("name", "size", "scheme"),
    [
        ("full", DESKTOP, "light"),
        ("full", DESKTOP, "dark"),
        ("full", PHONE, "light"),
        ("empty", DESKTOP, "light"),
        ("folded", DESKTOP, "light"),
    ],
    ids=str,
)
def test_axe_finds_nothing(chromium, tmp_path, name, size, scheme):
    file = tmp_path / "page.html"
    file.write_text(render_page(MADE[name]()), "utf-8")
    chromium.open(file, size, scheme)
    if name == "full":
        chromium.ask(UNFOLD)
    assert violations(chromium) == []


def test_axe_finds_what_is_wrong(chromium, tmp_path):
    file = tmp_path / "page.html"
    file.write_text('<!doctype html><html><title>x</title><body><main><h1>x</h1><input><img src="x"></main>', "utf-8")
    chromium.open(file)
    assert {"html-has-lang", "label", "image-alt"} <= {rule for rule, _ in violations(chromium)}
