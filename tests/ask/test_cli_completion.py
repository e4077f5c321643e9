"""Completion in a shell: commands and options."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from txnlib.ask.commands import COMMANDS
from txnlib.ask.main import main

SHELLS = ("bash", "zsh", "fish")


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
