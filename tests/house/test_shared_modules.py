"""Processes that share the tests run each of them once."""

import subprocess
import sys
from pathlib import Path

MODULES, TESTS = 12, 3
#: Modules that share something, in several folders.
SHARING = {1, 5, 9}
#: A test that says that it was run, and by whom.
_MODULE = """
import os
import pytest

{mark}

@pytest.fixture(scope="module")
def own():
    yield os.getpid()

@pytest.mark.parametrize("number", range({tests}))
def test_one(number, own):
    with open({told!r}, "a") as out:
        print({name!r}, number, own, file=out)
    assert {name!r} != "m07" or number
"""


def test_each_test_is_run_once_and_a_failure_is_one_of_the_process_that_met_it(repository, tmp_path: Path):
    told, share = tmp_path / "told", tmp_path / "share"
    share.mkdir()
    for number in range(MODULES):
        name = f"m{number:02}"
        folder = tmp_path / "tests" / f"folder{number % 3}"
        folder.mkdir(parents=True, exist_ok=True)
        mark = 'pytestmark = pytest.mark.shares("an audit")' if number in SHARING else ""
        (folder / f"test_{name}.py").write_text(_MODULE.format(tests=TESTS, told=str(told), name=name, mark=mark))
    how = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.support.shared_modules"]
    asked = [*how, "--rootdir", str(tmp_path), "--share", str(share), str(tmp_path / "tests")]
    both = [
        subprocess.Popen([*asked, *more], cwd=repository, stdout=subprocess.PIPE, text=True)
        for more in ([], ["--from-the-end"])
    ]
    said = [process.communicate()[0] for process in both]
    ran = [line.split() for line in told.read_text().splitlines()]
    assert sorted(name + number for name, number, _ in ran) == sorted(
        f"m{module:02}{number}" for module in range(MODULES) for number in range(TESTS)
    ), said
    by = {name: {pid for each, _, pid in ran if each == name} for name, *_ in ran}
    assert {len(pids) for pids in by.values()} == {1}
    assert len(set.union(*(by[f"m{number:02}"] for number in SHARING))) == 1
    failing = {str(process.pid) for process in both if process.returncode == 1}
    assert by["m07"] == failing, said
