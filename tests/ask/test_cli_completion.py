"""Completion in a shell: commands, options, and the names that the tables hold."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.delta_tables import RUN, txn_audit, write, write_run
from txnlib.ask.commands import COMMANDS
from txnlib.ask.main import main

SHELLS = ("bash", "zsh", "fish")
COVERED = {"partition": 0, "status": "COMPLETE"}


def printed(capsys, *argv: object) -> str:
    assert main([*map(str, argv)]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("shell", SHELLS)
def test_a_completion_knows_every_command_and_option(capsys, shell):
    script = printed(capsys, "completion", shell)
    for name, command in COMMANDS.items():
        assert name in script
        for option in command.options:
            assert not option.startswith("--") or option.removeprefix("--") in script, option


@pytest.mark.parametrize("shell", SHELLS)
def test_a_completion_is_a_script_of_its_shell(capsys, shell):
    """zsh and fish are asked where they are installed; bash is wherever the tests run."""
    script = printed(capsys, "completion", shell)
    assert shell != "bash" or shutil.which("bash")
    if shutil.which(shell):
        done = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_bash_completes_a_command_and_its_options(capsys, tmp_path):
    script = tmp_path / "completion"
    script.write_text(printed(capsys, "completion", "bash"))
    (tmp_path / "nightly").mkdir()
    (tmp_path / "night.txt").touch()
    asked = {
        "fin": "find-late findings find-hanging",
        "find-hanging --max": "--max-transaction-timeout",
        "completion f": "fish",
        "runs --tables nig": "nightly",
    }
    for typed, expected in asked.items():
        words = ["txn-audit", *typed.split()]
        quoted = " ".join(f"'{word}'" for word in words)
        code = (
            f"source {script}; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _shtab_txn_audit; echo"
            " ${COMPREPLY[@]}"
        )
        done = subprocess.run(["bash", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == expected, done.stderr


EVIL = ("pay$(touch hacked)", "pay `touch hacked`", "pay*", "pay\nments", "päy")


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["open", "--topic", ""], "orders payments"),
        (["open", "--topic", "pay"], "payments"),
        (["explain", "o"], "orders"),
        (["describe", "pay"], "pay-1 pay-2"),
        (["describe", "--transactional-id", "pay-2"], "pay-2"),
        (["timeline", "pay"], "pay-1 pay-2 payments"),
        (["runs", "--run", ""], RUN),
        (["locate", "--transactional-id", "pay"], ""),
    ],
)
def test_bash_completes_names_of_the_tables_and_runs_none_of_them(capsys, tmp_path, typed, expected):
    tables = tmp_path / "out"
    write_run(tables)
    write(tables, "coverage", *({**COVERED, "topic": topic} for topic in ("payments", "orders", "payments")))
    write(tables, "transactional_ids", *({"transactional_id": name} for name in ("pay-2", "pay-1", *EVIL)))
    (tmp_path / "completion").write_text(printed(capsys, "completion", "bash"))
    words = [str(Path(sys.executable).with_name("txn-audit")), *typed[:1], "--tables", "out", *typed[1:]]
    if typed[0] == "locate":
        words = [words[0], *typed]
    code = (
        'source completion; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _shtab_txn_audit; printf "%s" "${COMPREPLY[*]}"'
    )
    done = subprocess.run(
        ["bash", "-c", code, "bash", *words], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == (expected, "")
    assert not (tmp_path / "hacked").exists()


def test_names_are_those_of_all_asked_kinds_and_json_leaves_none_out(tmp_path):
    write_run(tmp_path)
    write(tmp_path, "coverage", {**COVERED, "topic": "payments"})
    write(tmp_path, "transactional_ids", *({"transactional_id": name} for name in ("pay-1", *EVIL)))
    assert txn_audit(tmp_path, "names", "topics", "ids") == (0, "pay-1\npayments\n", "")
    listed = json.loads(txn_audit(tmp_path, "names", "ids", "--format", "json")[1])
    assert [row["name"] for row in listed] == sorted(["pay-1", *EVIL])
