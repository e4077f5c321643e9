"""Notebooks, run cell by cell in this process.

A kernel of its own would start a second Spark.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = Path(__file__).resolve().parent.parent.parent / "notebooks"


def cells(name: str) -> list[dict[str, Any]]:
    """The cells of code of a notebook."""
    return [cell for cell in json.loads((NOTEBOOKS / name).read_text())["cells"] if cell["cell_type"] == "code"]


def run(name: str, **parameters: object) -> dict[str, Any]:
    """What is known after the last cell; parameters take the place of those in the cell that is tagged so."""
    known: dict[str, Any] = {}
    for number, cell in enumerate(cells(name)):
        exec(compile("".join(cell["source"]), f"{name}, cell {number}", "exec"), known)
        if "parameters" in cell["metadata"].get("tags", ()):
            assert parameters.keys() <= known.keys()
            known |= parameters
    return known


@pytest.fixture
def run_notebook(monkeypatch) -> Callable[..., dict[str, Any]]:
    """Runs a notebook where it lies, as Jupyter and Databricks do."""
    monkeypatch.chdir(NOTEBOOKS)
    return run


@pytest.fixture(scope="session")
def audited_in_a_notebook(spark, tmp_path_factory) -> dict[str, Any]:
    """What is known at the end of audit_a_capture.ipynb: `found` and `patient`, of the sample capture."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(NOTEBOOKS)
        return run("audit_a_capture.ipynb", OUTPUT=str(tmp_path_factory.mktemp("audit") / "out"))
