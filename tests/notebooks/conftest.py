"""Notebooks of the sample, and the option that renews their outputs."""

from collections.abc import Callable

import pytest

from tests.support.notebooks import NOTEBOOKS, Ran, run


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--renew-notebooks", action="store_true", help="write the outputs of the notebooks into their files"
    )


@pytest.fixture
def run_notebook(monkeypatch) -> Callable[..., Ran]:
    """Runs a notebook where it lies, as Jupyter and Databricks do."""
    monkeypatch.chdir(NOTEBOOKS)
    return run
