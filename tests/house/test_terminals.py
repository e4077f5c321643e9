"""Every command in a terminal, as wide as people have them."""

import fcntl
import os
import re
import shlex
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

import pytest

from txnlib.ask.commands import COMMANDS
from txnlib.ask.grid import left_out

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
#: Carries out every command that lists about every transaction that is open, and tells on stdout which command follows.
LISTINGS = """
import sys
from txnlib.ask.delta_rows import open_run, open_tables
from txnlib.ask.main import main
from tests.house.test_terminals import COMMAND, LISTED
root = sys.argv[1]
columns = ("topic", "partition", "start_offset", "transactional_id")
opened = [tuple(row.values()) for row in open_run(open_tables(root)).rows("open_transactions", columns)]
about = [["explain", topic, str(partition), str(offset)] for topic, partition, offset, _ in opened]
about += [["timeline", topic, str(partition)] for topic, partition in sorted({each[:2] for each in opened})]
ids = sorted({each[3] for each in opened} - {None})
about += [[name, each] for each in ids for name in ("transaction", "timeline", "describe")]
for words in [*LISTED, *about]:
    print(COMMAND + words[0], flush=True)
    print(words, main([*words, "--tables", root]), file=sys.stderr, flush=True)
"""
COMMAND = "command: "
LISTED = [
    *(
        [name]
        for name in ("report", "open", "groups", "list", "find-hanging", "find-late", "abort-plan", "coverage", "runs")
    ),
    *(["collect-plan"], ["findings"], ["findings", "--severity", "INFO"]),
]
#: What is copied stays in one piece, however wide: commands of ours, requests and records.
COPIED = re.compile(
    r"txn-audit (abort-plan|collect-plan|explain|open|transaction) |^ +(\| )?(baseO|o)ffset: |scripts/|  request  "
)
#: The words of what only a terminal says: that columns are left out, and that a command goes on in the next line.
LEFT_OUT = {"\\"} | {word for number in range(1, 12) for word in re.split(r"[\s,]+", left_out(number))}
#: Command -> the columns that a terminal of any width has.
KEPT = {
    "explain": ("offset", "written by", "record", "state after"),
    "findings": ("severity", "name", "where", "evidence"),
    "timeline": ("when", "where", "what", "detail"),
    "open": ("topic", "partition", "verdict"),
}


#: The narrow one that all have, and one that has room for most columns.
LIST_WIDTHS = (80, 120)


def parts(text: str) -> set[str]:
    """The words of a text, each up to a comma: a list or JSON without spaces is wrapped behind commas."""
    return {part for word in text.split() for part in word.split(",")}


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
    return run_in(tmp_path_factory.mktemp("terminal"), repository)


def run_in(folder: Path, repository: Path) -> dict[str, Any]:
    return {"cwd": folder, "env": {**os.environ, "PYTHONPATH": str(repository), "TERM": "xterm"}}


@pytest.fixture(scope="module")
def piped(words: list[str], where: dict[str, Any]) -> list[str]:
    """The exit codes without a terminal."""
    found = codes(subprocess.run(words, capture_output=True, text=True, check=True, **where).stderr)
    assert len(found) == len(EXAMPLES)
    return found


def test_every_command_answers_in_a_terminal_as_in_a_pipe(words, where, piped):
    shown, told = in_a_terminal(words, 80, **where)
    assert codes(told) == piped
    assert "failed" not in told
    assert "payments-batch-7" in shown


#: What carries out every list, and what it prints and tells without a terminal.
Listed = tuple[list[str], str, str]


def listed_in_a_pipe(root: Path, where: dict[str, Any]) -> Listed:
    words = [sys.executable, "-c", LISTINGS, str(root)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, **where)
    return words, done.stdout, done.stderr


@pytest.fixture(scope="module")
def listed(demo_run: object, where: dict[str, Any], repository: Path) -> Listed:
    return listed_in_a_pipe(repository / "out" / "quickstart", where)


@pytest.mark.parametrize("columns", LIST_WIDTHS)
def test_every_list_fits_into_the_terminal_and_cuts_no_word(listed, where, columns):
    """Ids with spaces, quotes, commas and markup: tests/jobs/test_hostile_ids.py."""
    assert_lists_fit(listed, where, columns)


def assert_lists_fit(listed: Listed, where: dict[str, Any], columns: int) -> None:
    words, piped, codes_then = listed
    shown, told = in_a_terminal(words, columns, **where)
    assert told == codes_then
    assert {line.rpartition(" ")[2] for line in told.splitlines() if line.startswith("[")} == {"0"}
    answers = [each.splitlines() for each in re.sub(r"\x1b\[[0-9;]*m", "", shown).split(COMMAND)[1:]]
    assert [line for lines in answers for line in lines if len(line) > columns and not COPIED.search(line)] == []
    known = parts(piped)
    for name, *lines in answers:
        assert {word for word in parts("\n".join(lines)) if word.strip("─")} - known - LEFT_OUT == set(), name
        heads = " ".join(" ".join(lines[: next((at for at, line in enumerate(lines) if "──" in line), 0)]).split())
        if heads:
            assert [each for each in KEPT.get(name, ()) if each not in heads] == []
        if name == "explain":
            assert any("<--" in line for line in lines)
