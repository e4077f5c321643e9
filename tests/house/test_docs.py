"""Documents: fresh renderings, commands that run, reports as printed. SQL: test_sql.py."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import module_from_spec, spec_from_file_location
from itertools import dropwhile
from pathlib import Path

import pytest

from tests.support import capture_guide
from tests.support.delta_tables import write, write_run
from txnlib.ask import main as txn_audit
from txnlib.ask.commands import COMMANDS, Reads
from txnlib.ask.delta_rows import open_run, open_tables
from txnlib.ask.report_rows import report_of
from txnlib.ask.terminal_report import render
from txnlib.core.instants import parse_instant
from txnlib.jobs import options
from txnlib.version import __version__

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"```(?P<kind>\w*)\n(?P<text>.*?)```", re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The anchors of all headings, as GitHub makes them; a line of a code block is none."""
    prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def blocks(kind: str, pages: Sequence[Path] = PAGES) -> list[str]:
    return [match["text"] for page in pages for match in BLOCK.finditer(page.read_text()) if match["kind"] == kind]


def commands() -> list[str]:
    """Those of docs/capture.md are carried out as a whole, by test_capture_guide.py."""
    pages = [page for page in PAGES if page.name != "capture.md"]
    lines = [line.partition("#")[0].strip() for text in blocks("sh", pages) for line in text.splitlines()]
    return [line for line in lines if line]


RENDERED = [
    "tables.md", "rules/reference.md", "runbook.md", "api.md", "configuration.md", "numbers.md",
]  # fmt: skip


def renderer():
    spec = spec_from_file_location("render", ROOT / "docs" / "render.py")
    render = module_from_spec(spec)
    spec.loader.exec_module(render)
    return render


@pytest.mark.parametrize("page", [*RENDERED, "../conf/audit.toml"])
def test_a_rendered_page_is_what_the_code_says(page):
    assert (ROOT / "docs" / page).read_text() == renderer().PAGES[page](), "run python docs/render.py"


def test_what_is_rendered_has_its_place_in_one_page():
    places = re.findall(r"<!-- rendered: ([\w-]+) -->", "".join(page.read_text() for page in PAGES))
    assert sorted(places) == sorted(renderer().BLOCKS)


def test_every_link_leads_somewhere():
    for page in PAGES:
        for target, heading in re.findall(r"\]\((?!http)([^)#]+)(#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page}: {target}"
            if heading:
                assert heading[1:] in anchors(page.parent / target), f"{page}: {target}{heading}"


def test_every_file_that_is_named_is_there():
    """By its path from the root, or from the package."""
    named = re.compile(r"`((?:\w+/)+[\w.-]+\.(?:py|sh|md|toml|conf|xml))`")
    found = {(page.name, name) for page in PAGES for name in named.findall(page.read_text())}
    assert len(found) > 30
    assert [
        name for name in sorted(found) if not any((root / name[1]).exists() for root in (ROOT, ROOT / "txnlib"))
    ] == []


def test_jars_are_those_of_the_pinned_packages():
    spark, delta = re.findall(r'"(?:pyspark\[.*\]|delta-spark)==([0-9.]+)"', (ROOT / "pyproject.toml").read_text())
    named = re.findall(r"io\.delta:delta-spark_[\w.:]+", "".join(page.read_text() for page in PAGES))
    assert set(named) == {f"io.delta:delta-spark_{spark.rpartition('.')[0]}_2.13:{delta}"}


#: All commands of this part of the page.
OFFLINE = (ROOT / "docs" / "operations.md").read_text().partition("### Without a network")[2].partition("\n## ")[0]


@pytest.mark.parametrize("command", commands())
def test_every_command_shown_is_one_that_exists(command, tmp_path):
    """The demo and the tests are run as a whole elsewhere (below, and by CI); the rest must be understood as shown."""
    words = [
        *dropwhile(re.compile(r"[A-Z_]+=").match, shlex.split(command.partition(" > ")[0]))
    ]  # without variables before it
    if words[0] == "python":
        done = subprocess.run(
            [sys.executable, *words[1:], "--help"], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return
    if words[0] == "scripts/capture.sh":
        capture_guide.carry_out(command, tmp_path)
        return
    if words[0].endswith("txn-audit"):
        txn_audit.parser().parse_args(words[1:])  # and answered below, where the demo has what is asked for
        return
    if words[:2] == [".venv/bin/pip", "wheel"]:
        return  # tests/house/test_packaging.py builds and installs it
    if words[0] == "git":
        assert words[1] in ("status", "tag", "push"), "CONTRIBUTING.md, about releases"
        assert words[1] != "tag" or words[2:] == ["-a", f"v{__version__}", "-m", f"txnlib {__version__}"]
        return
    if words[0] == "scripts/check_wheel.sh":
        assert words[1:] == [f"dist/txnlib-{__version__}-py3-none-any.whl"]
        return  # tests/house/test_fresh_machine.py carries it out
    if words[0] in ("docker", "kubectl", "databricks"):
        assert all((ROOT / word).exists() for word in words if word.startswith("deploy/"))
        return
    if words[0] == "scp":
        assert words[1:] == ["-r", "broker1:/backup/text/.", "capture/"], "what the command before it prints"
        return
    if words[0] == "sed" or words[1:2] == ["/opt/txnlib/deploy/notify.py"] or command in OFFLINE:
        return  # test_scheduling.py, tests/deploy/test_notify.py and tests/scripts/test_offline.py carry them out
    assert words[0] in ("./spark-submit.sh", "./run-tests.sh"), command
    assert os.access(ROOT / words[0], os.X_OK)
    if words[0] == "./run-tests.sh":
        assert set(words[1:]) <= {"slow"}
    elif len(words) > 1:
        assert words[1] in (options.AUDIT, options.INGEST, options.RECONSTRUCT, options.REPORT)
        own, _, _ = shlex.join(words[2:]).partition(" -- ")  # the rest is spark-submit's, and so is the master
        options.parse(words[1], "", shlex.split(re.sub(r"--master \S+", "", own)))


def test_the_report_in_the_readme_is_the_one_that_is_printed(demo):
    shown = re.search(r"<!-- report: ./spark-submit.sh -->\n```\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    # Tests have an environment of their own, with Spark.
    assert demo.replace(f"{ROOT}/", "").replace(".venv-spark/", ".venv/") == shown[1]


def test_the_report_of_the_sample_fits_a_screen(demo):
    sample = open_run(open_tables(str(ROOT / "out" / "quickstart")))
    lines = render(report_of(sample), 120).splitlines()
    assert len(lines) <= 44
    assert [line for line in lines if len(line) > 120 and "--tables" not in line] == []


def questions() -> list[str]:
    """Commands of txn-audit that are about the demo, or about no tables."""
    asked = [command for command in commands() if shlex.split(command)[0].endswith("txn-audit")]
    needs_none = {name for name, command in COMMANDS.items() if command.reads is Reads.NOTHING}
    needs_none.discard("capture")  # tests/wire_capture runs it against brokers
    return [
        command for command in asked if "--tables out/quickstart" in command or shlex.split(command)[1] in needs_none
    ]


@pytest.mark.parametrize("command", questions())
def test_every_question_shown_is_answered(demo, command, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert txn_audit.main(shlex.split(command.partition(" > ")[0])[1:]) == 0
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) > 1, printed


@pytest.mark.parametrize("command", [command for command in commands() if "--tables out/nightly" in command])
def test_every_question_about_several_nights_is_answered(command, tmp_path, monkeypatch, capsys):
    """Of two nights, of which the second has one more open transaction."""
    for night in ("2026-11-20T02:00:00Z", "2026-11-21T02:00:00Z"):
        run_id = write_run(tmp_path / "out" / "nightly", parse_instant(night))
        write(
            tmp_path / "out" / "nightly",
            "coverage",
            {"topic": "orders", "partition": 0, "status": "COMPLETE"},
            run_id=run_id,
        )
        opened = {"topic": "orders", "partition": 0, "start_offset": 7, "producer_id": 1, "verdict": "HANGING"}
        write(
            tmp_path / "out" / "nightly", "open_transactions", *[opened] * night.startswith("2026-11-21"), run_id=run_id
        )
    monkeypatch.chdir(tmp_path)
    assert txn_audit.main(shlex.split(command)[1:]) == 0
    assert "1 NEW: open now, and not then" in capsys.readouterr().out


def test_every_command_has_a_place_in_its_page():
    page = (ROOT / "docs" / "cli.md").read_text()
    assert [name for name in COMMANDS if f"`{name}" not in page and f"txn-audit {name}" not in page] == []
