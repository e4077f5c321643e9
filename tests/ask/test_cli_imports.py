"""What a command loads before it answers: most of its processor time. And what reads tables says nothing, and what
says something reads no tables."""

from __future__ import annotations

import ast
import json
import subprocess
import sys

import pytest

from tests.support.delta_tables import READ_BY_COMMANDS, write, write_run

#: Libraries that no answer needs: each takes as long as all of the rest.
NEVER = ("pyarrow", "numpy", "pandas", "pyspark", "pydantic", "jinja2", "rich", "prometheus_client", "fsspec")
#: Command -> modules of ours that it does not use.
UNUSED = {
    "list": (
        "txnlib.ask.report_rows",
        "txnlib.ask.terminal_report",
        "txnlib.page.report_page",
        "txnlib.settings",
        "txnlib.readers",
    ),
    "abort-plan": ("txnlib.ask.report_rows", "txnlib.ask.terminal_report", "txnlib.settings", "txnlib.readers"),
    "runs": ("txnlib.ask.report_rows", "txnlib.core.verdicts", "txnlib.core.kafka", "txnlib.readers"),
    "report": ("txnlib.page.report_page", "txnlib.settings", "txnlib.readers"),
}
LOADED = (
    "import json, sys; from txnlib.ask.main import main; code = main(sys.argv[1:]); print(json.dumps([code,"
    " *sys.modules]))"
)


@pytest.mark.parametrize("command", UNUSED)
def test_an_answer_loads_no_more_than_it_uses(tmp_path, command):
    write_run(tmp_path)
    for name in READ_BY_COMMANDS:
        write(tmp_path, name)
    done = subprocess.run(
        [sys.executable, "-c", LOADED, command, "--tables", str(tmp_path)], capture_output=True, text=True, check=True
    )
    code, *loaded = json.loads(done.stdout.splitlines()[-1])
    assert code == 0, done.stderr
    assert {"deltalake"} <= {*loaded}
    assert not {*NEVER, *UNUSED[command]} & {*loaded}


OPENS_TABLES = ("txnlib.ask.delta_rows", "txnlib.pipeline.audit", "deltalake", "pyarrow", "pyspark")
#: Rooms of `txnlib.ask` that hand a run on, or open one.
WITH_TABLES = {"__init__", "arrow_tables", "delta_rows", "diff", "main", "runs", "sql"}
TEXT = {"str", "list[str]", "Iterator[str]", "list[Line]", "Markup"}
#: What is given the tables of a run.
READERS = {"StoredRun", "Tables", "Rows"}


def test_text_is_made_without_anything_that_opens_a_table(repository):
    rooms = [
        path
        for name in ("ask", "page")
        for path in (repository / "txnlib" / name).glob("*.py")
        if path.stem not in WITH_TABLES
    ]
    names = sorted(f"txnlib.{path.parent.name}.{path.stem}" for path in rooms if path.stem != "capture")
    assert "txnlib.page.report_page" in names
    code = f"import sys; from importlib import import_module; [import_module(name) for name in {names!r}]; "
    code += f"print([name for name in {OPENS_TABLES!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_public_function_that_is_given_tables_returns_no_text(repository):
    given, wrong = 0, []
    for path in [*(repository / "txnlib" / "ask").glob("*.py"), *(repository / "txnlib" / "page").glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
                continue
            kinds = {ast.unparse(each.annotation) for each in node.args.args if each.annotation is not None}
            given += bool(kinds & READERS)
            if kinds & READERS and node.returns is not None and ast.unparse(node.returns) in TEXT:
                wrong.append(f"{path.name}: {node.name}")
    assert given > 40
    assert wrong == []
