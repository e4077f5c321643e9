"""A browser and pages for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.browser import Browser, browser
from txnlib.page.report_page import render_page


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def files(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The files of the module's PAGES."""
    folder = tmp_path_factory.mktemp("pages")
    for name, made in request.module.PAGES.items():
        (folder / f"{name}.html").write_text(render_page(made()), "utf-8")
    return {name: folder / f"{name}.html" for name in request.module.PAGES}
