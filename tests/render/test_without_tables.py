"""Renderers import nothing that opens a table."""

from __future__ import annotations

import subprocess
import sys

OPENS_TABLES = ("txnlib.queries.delta_rows", "txnlib.queries.spark_rows", "deltalake", "pyarrow", "pyspark")


def test_renderers_import_nothing_that_opens_a_table(repository):
    names = sorted(f"txnlib.render.{path.stem}" for path in (repository / "txnlib" / "render").glob("*.py"))
    code = f"import sys; from importlib import import_module; [import_module(name) for name in {names!r}]; "
    code += f"print([name for name in {OPENS_TABLES!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
