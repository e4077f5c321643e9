"""Linear work on text of any shape, counted in calls of functions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.support.dumps import Batch, Record, print_dump, rows
from txnlib.core.text.console import read_console_text
from txnlib.core.text.lines import TextLines

DUMP: Final = print_dump(Batch(), Batch())
FOLDER: Final = b"Dumping /d/orders-0/00000000000000000000.log\n"
DUMPS: Final[dict[str, Callable[[int], bytes]]] = {
    "blank lines": lambda count: b"\n" * count,
    "blank lines behind a dump": lambda count: DUMP + b"\n" * count + DUMP,
    "blank lines in header keys": lambda count: print_dump(Batch((Record(header_keys=(b"\n" * count,)),)), Batch()),
    "blank lines in contents": lambda count: print_dump(Batch((Record(value=b"\n" * count),)), Batch(), contents=True),
    "files": lambda count: FOLDER * count,
    "files in header keys": lambda count: print_dump(Batch((Record(header_keys=(b"[\n" + FOLDER * count,)),)), Batch()),
    "words in a line": lambda count: b"baseOffset: Dumping | offset: " * count + b"\n",
    "brackets in a line": lambda count: DUMP + b"| offset: 1 CreateTime: 1 headerKeys: [" + b"]" * count + b"\n",
}
CONSOLES: Final[dict[str, Callable[[int], bytes]]] = {
    "blank lines": lambda count: b"\n" * count,
    "braces": lambda count: b"{" * count,
    "beginnings of objects": lambda count: b'{"key":' * count,
    "beginnings of echoes": lambda count: b"a::TransactionMetadata(transactionalId=\n" * count,
}


def steps_of(read: Callable[[bytes], object], text: bytes) -> int:
    count = 0

    def step(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(step)
    try:
        read(text)
    finally:
        sys.setprofile(None)
    return count


def is_linear(read: Callable[[bytes], object], make: Callable[[int], bytes]) -> None:
    small, large = steps_of(read, make(1_000)), steps_of(read, make(4_000))
    assert large < 5 * small


@pytest.mark.parametrize("shape", DUMPS)
def test_a_dump_takes_steps_in_proportion_to_its_size(shape: str) -> None:
    is_linear(lambda text: rows("segments", text), DUMPS[shape])


def test_records_of_wrong_sizes_take_steps_in_proportion_to_their_number() -> None:
    """The first of them ends reading."""

    def make(count: int) -> bytes:
        text = print_dump(*(Batch((Record(value=b"x"),)) for _ in range(count // 10)), contents=True)
        return text.replace(b"valueSize: 1", b"valueSize: 9999999")

    assert b"valueSize: 9999999 " in make(10)
    is_linear(lambda text: rows("segments", text), make)


@pytest.mark.parametrize("shape", CONSOLES)
def test_console_text_takes_steps_in_proportion_to_its_size(shape: str) -> None:
    is_linear(lambda text: list(read_console_text(TextLines((text,)))), CONSOLES[shape])


def test_blank_lines_take_few_steps_each() -> None:
    assert steps_of(lambda text: rows("segments", text), b"\n" * 10_000) < 12 * 10_000
    assert steps_of(lambda text: list(read_console_text(TextLines((text,)))), b"\n" * 10_000) < 12 * 10_000
