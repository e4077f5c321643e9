"""Every notebook, run as it is."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from tests.notebooks.conftest import NOTEBOOKS, cells
from tests.support.three_nights import three_nights

ALL = sorted(path.name for path in NOTEBOOKS.glob("*.ipynb"))


def test_a_capture_is_audited(audited_in_a_notebook, capsys):
    assert audited_in_a_notebook["found"].cluster == "quickstart"


def test_one_transaction_is_followed_from_both_sides(run_notebook, audited_in_a_notebook, capsys):
    known = run_notebook("follow_one_transaction.ipynb", TABLES=audited_in_a_notebook["found"].location)
    assert known["transaction"]["verdict"] == "HANGING"
    assert "payments-batch-7 CompleteAbort" in " ".join(capsys.readouterr().out.split())


def test_a_stuck_partition_is_explained(run_notebook, audited_in_a_notebook):
    known = run_notebook("why_is_this_partition_stuck.ipynb", TABLES=audited_in_a_notebook["found"].location)
    assert [row["action"] for row in known["plan"].collect()] == ["ABORT"]


def test_the_history_of_three_nights_is_told(run_notebook, spark, tmp_path):
    known = run_notebook("history_of_the_nightly_audit.ipynb", TABLES=str(three_nights(tmp_path / "out")))
    assert known["found"].run_id == "test-1795226400000", "the newest that was finished"


def test_every_notebook_is_run_here():
    here = "".join(path.read_text() for path in (Path(__file__), Path(__file__).with_name("conftest.py")))
    assert [name for name in ALL if f'"{name}"' not in here] == []


@pytest.mark.parametrize("name", ALL)
def test_a_notebook_keeps_no_output_and_has_no_logic(name):
    for cell in cells(name):
        assert (cell["outputs"], cell["execution_count"]) == ([], None), "strip outputs before a commit"
        for node in ast.walk(ast.parse("".join(cell["source"]))):
            assert not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.For | ast.While | ast.If | ast.Lambda)


@pytest.mark.parametrize("name", ALL)
def test_queries_and_links_of_a_notebook_are_those_of_the_documents(name, repository):
    shown = (repository / "docs" / "sql.md").read_text()
    content = json.loads((NOTEBOOKS / name).read_text())["cells"]
    text = "\n".join("".join(cell["source"]) for cell in content)
    assert [query for query in re.findall(r'sql\("""\n(.*?)\n"""\)', text, re.DOTALL) if query not in shown] == []
    assert [link for link in re.findall(r"\]\(([^)#]+)", text) if not (NOTEBOOKS / link).exists()] == []
