"""The task that audits on Databricks: its failures, and its files in the volume."""

import subprocess
import sys
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


@pytest.fixture
def task(repository, monkeypatch) -> ModuleType:
    spec = spec_from_file_location("nightly_audit", repository / "deploy" / "databricks" / "audit.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(sys, "argv", ["driver"])
    return module


@dataclass
class Audit:
    """An entry point that writes what it is asked for and ends with a code."""

    code: int
    name: str = "txnlib-audit"
    given: list[str] = field(default_factory=list)

    def load(self) -> Any:
        return self.run

    def run(self) -> None:
        self.given = sys.argv[1:]
        *_, summary = self.given
        Path(summary).write_text(str(self.code))
        if self.code in (0, 3):
            Path(self.given[-3]).write_text("page")
        if self.code:
            sys.exit(self.code)


@pytest.mark.parametrize(("code", "expected"), [(0, 0), (3, 0), (1, 1), (2, 2)])
def test_the_task_fails_only_if_the_audit_failed(task, monkeypatch, tmp_path, code, expected):
    audit = Audit(code)
    monkeypatch.setattr(task, "entry_points", lambda **_: (audit,))
    assert task.main([str(tmp_path / "kafka" / "2026-11-21"), "--input", "in"]) == expected
    assert audit.given[:2] == ["--input", "in"]
    assert (audit.given[-4], audit.given[-2]) == ("--report", "--summary")
    written = {file.name: file.read_text() for file in (tmp_path / "kafka" / "2026-11-21").iterdir()}
    assert written == {"summary.json": str(code)} | ({"report.html": "page"} if expected == 0 else {})


def test_the_task_runs_the_program_of_the_wheel(repository, tmp_path):
    """In a process of its own, because a program that fails ends the JVM of its process."""
    assert len(entry_points(group="console_scripts", name="txnlib-audit")) == 1
    command = [sys.executable, repository / "deploy" / "databricks" / "audit.py", tmp_path, "--no-such-option"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, "--no-such-option" in done.stderr) == (2, True), done.stderr
