"""The ways of a byte and of a record in CONTRIBUTING.md are true."""

from __future__ import annotations

import re
import sys
import threading
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

import txnlib
from txnlib.spark import python_tasks
from txnlib.spark.tables import open_transactions

ROOT = Path(__file__).resolve().parents[2]
STEP = re.compile(r"^(\d+)\. `(\S+\.py)` `([\w.]+)`: ", re.MULTILINE)


def way(heading: str) -> list[tuple[str, str]]:
    """The file and the function of each step under a heading."""
    text = (ROOT / "CONTRIBUTING.md").read_text().split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    steps = STEP.findall(text)
    assert [int(number) for number, _, _ in steps] == list(range(1, 11))
    return [(file, function) for _, file, function in steps]


#: The code that ran, in the order of its first call. Tasks find it by its name, because they are sent to the engine.
RAN: dict[CodeType, None] = {}


def note(frame: FrameType, event: str, _: Any) -> None:
    if event == "call" and frame.f_code not in RAN:
        RAN[frame.f_code] = None


def by_python(frame: Any, columns: Any, read: Any, schema: Any) -> Any:
    def noted(batch: Any) -> Any:
        begin_task()
        return read(batch)

    return python_tasks.by_python(frame, columns, noted, schema)


def begin_task() -> None:
    sys.setprofile(note)  # the threads of the engine are not Python's


@pytest.fixture(scope="module")
def called(tmp_path_factory) -> list[tuple[str, str]]:
    """The functions of the package, in the order in which an audit of the sample first calls them."""
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(open_transactions, "by_python", by_python)
            txnlib.audit(str(ROOT / "examples/quickstart/brokers"), output=str(tmp_path_factory.mktemp("ways")))
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    package = f"{Path(txnlib.__file__).parent}/"
    return [(code.co_filename.removeprefix(package), code.co_qualname) for code in RAN]


@pytest.mark.parametrize("heading", ["The way of a byte", "The way of a record"])
def test_each_step_is_taken_after_the_one_before(called, heading):
    steps = way(heading)
    assert set(steps) <= set(called)
    assert [called.index(step) for step in steps] == sorted(called.index(step) for step in steps)
