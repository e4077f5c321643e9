"""Notebooks of the sample, and the option that renews their outputs."""

from collections.abc import Callable

import pytest

from tests.support.notebooks import NOTEBOOKS, Ran, run


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--renew-notebooks", action="store_true", help="write the outputs of the notebooks into their files")


@pytest.fixture
def run_notebook(monkeypatch) -> Callable[..., Ran]:
    """Runs a notebook where it lies, as Jupyter and Databricks do."""
    monkeypatch.chdir(NOTEBOOKS)
    return run


@pytest.fixture(scope="session")
def notebook_of_the_audit(spark, tmp_path_factory) -> Ran:
    """audit_a_capture.ipynb after its last cell: `found` and `patient`, of the sample capture."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(NOTEBOOKS)
        return run("audit_a_capture.ipynb", OUTPUT=str(tmp_path_factory.mktemp("audit") / "out" / "quickstart"))


@pytest.fixture(scope="session")
def audited_in_a_notebook(notebook_of_the_audit) -> dict:
    return dict(notebook_of_the_audit.known)
