"""Every command in a terminal, as wide as people have them."""

import fcntl
import os
import shlex
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

import pytest

from txnlib.ask.commands import COMMANDS

#: The example of each help page, but of `capture`, which needs a cluster.
EXAMPLES = {name: shlex.split(command.example) for name, command in COMMANDS.items() if name != "capture"}
#: Carries out the examples one after the other, and tells their exit codes on stderr.
ALL = """
import sys
from txnlib.ask.main import main
from tests.house.test_terminals import EXAMPLES
for name, words in EXAMPLES.items():
    tables = [] if name == "locate" else ["--tables", sys.argv[1]]
    print(name, main([name, *words, *tables]), file=sys.stderr, flush=True)
"""


def codes(told: str) -> list[str]:
    return [line for line in told.splitlines() if line.split(" ")[0] in EXAMPLES]


def in_a_terminal(words: list[str], columns: int, **more: Any) -> tuple[str, str]:
    """What a command prints to a terminal of so many columns, and to stderr."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    with subprocess.Popen(words, stdout=theirs, stdin=theirs, stderr=subprocess.PIPE, text=True, **more) as child:
        os.close(theirs)
        shown = b""
        while part := _read(ours):
            shown += part
        os.close(ours)
        assert child.stderr is not None
        return shown.decode(), child.stderr.read()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # how Linux says that nobody writes to it anymore
        return b""


@pytest.fixture(scope="module")
def words(demo_run: object, repository: Path) -> list[str]:
    return [sys.executable, "-c", ALL, str(repository / "out" / "quickstart")]


@pytest.fixture(scope="module")
def where(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONPATH": str(repository), "TERM": "xterm"}
    return {"cwd": tmp_path_factory.mktemp("terminal"), "env": environment}


@pytest.fixture(scope="module")
def piped(words: list[str], where: dict[str, Any]) -> list[str]:
    """The exit codes without a terminal."""
    found = codes(subprocess.run(words, capture_output=True, text=True, check=True, **where).stderr)
    assert len(found) == len(EXAMPLES)
    return found


@pytest.mark.parametrize("columns", [80, 120, 160, 240])
def test_every_command_answers_in_a_terminal_as_in_a_pipe(words, where, piped, columns):
    shown, told = in_a_terminal(words, columns, **where)
    assert codes(told) == piped
    assert "failed" not in told
    assert "payments-batch-7" in shown
