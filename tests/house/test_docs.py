"""Are the documents true? Rendered pages are fresh, commands run, SQL runs, the report shown is the report printed."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from jobs import options
from tests.support.memory import audited
from txnlib.cli import main as txn_audit
from txnlib.spark.schemas import TABLES

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"```(?P<kind>\w*)\n(?P<text>.*?)```", re.DOTALL)


def blocks(kind: str) -> list[str]:
    return [match["text"] for page in PAGES for match in BLOCK.finditer(page.read_text()) if match["kind"] == kind]


def commands() -> list[str]:
    lines = [line.partition("#")[0].strip() for text in blocks("sh") for line in text.splitlines()]
    return [line for line in lines if line]


@pytest.mark.parametrize("page", ["tables.md", "rules.md"])
def test_a_rendered_page_is_what_the_code_says(page):
    spec = spec_from_file_location("render", ROOT / "docs" / "render.py")
    render = module_from_spec(spec)
    spec.loader.exec_module(render)
    assert (ROOT / "docs" / page).read_text() == render.PAGES[page](), "run python docs/render.py"


def test_every_link_leads_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page}: {target}"


@pytest.mark.parametrize("command", commands())
def test_every_command_shown_is_one_that_exists(command, tmp_path):
    """The demo and the tests are run as a whole elsewhere (below, and by CI); the rest must be understood as shown."""
    words = shlex.split(command)
    if words[0] == "python":
        done = subprocess.run([sys.executable, *words[1:], "--help"], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return
    if words[0].endswith("txn-audit"):
        txn_audit.parser().parse_args(words[1:])
        return
    assert words[0] in ("./spark-submit.sh", "./run-tests.sh"), command
    assert os.access(ROOT / words[0], os.X_OK)
    if len(words) > 1:
        assert words[1] in (options.AUDIT, options.INGEST, options.RECONSTRUCT, options.REPORT)
        options.parse(words[1], "", words[2:])


def test_every_sql_statement_shown_runs_on_the_sample(spark, captures):
    tables = audited(spark, captures / "quickstart" / "brokers")
    for name in TABLES:
        tables.frame(name).createOrReplaceTempView(name)
    statements = blocks("sql")
    assert len(statements) >= 3
    found = [spark.sql(statement).collect() for statement in statements]
    assert found[0][0]["abort_command"].endswith("abort --topic payments --partition 0 --start-offset 24")


def test_the_report_in_the_readme_is_the_one_that_is_printed(tmp_path):
    done = subprocess.run(
        [ROOT / "spark-submit.sh"], cwd=tmp_path, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stderr
    shown = re.search(r"<!-- report: ./spark-submit.sh -->\n```\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert done.stdout.replace(f"{ROOT}/", "") == shown[1]
