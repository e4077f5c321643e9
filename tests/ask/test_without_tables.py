"""What reads tables says nothing, and what says something reads no tables."""

from __future__ import annotations

import ast
import subprocess
import sys

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
