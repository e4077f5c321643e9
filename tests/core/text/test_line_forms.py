"""What stands around each line of a text, and what is taken off."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.support.consoles import Record as Printed
from tests.support.consoles import as_line
from tests.support.dumps import Batch, lines_in, marker, print_dump
from txnlib.core.text.line_forms import find_form
from txnlib.core.text.lines import TextLines

DUMP = print_dump(Batch(), marker("COMMIT"), Batch())
CONSOLE = as_line(Printed("a")) + as_line(Printed("b c"))
PREFIXES = {
    "compose": lambda number: b"kafka-1  | ",
    "time": lambda number: b"2026-11-22T09:58:%02d.12345Z " % number,
    "number": lambda number: b"%6d\t" % (number + 95),
    "grep": lambda number: b"a/b.txt:%d:" % (number + 7),
    "quote": lambda number: b"> ",
    "syslog": lambda number: b"Nov %2d 09:58:00 host kafka[%d]: " % (number + 1, number),
    "indent": lambda number: b"    ",
    "colour": lambda number: b"\x1b[3%dmkafka\x1b[0m | " % (number % 8),
    "other words": lambda number: [b"[abc] ", b"[xyz] "][number % 2],
}


def prefixed(text: bytes, name: str) -> bytes:
    lines = text.splitlines(keepends=True)
    return b"".join(PREFIXES[name](number) + line for number, line in enumerate(lines))


def bare(text: bytes) -> bytes:
    return b"".join(line for _position, line in lines_in(text))


#: An id may begin with anything, so that only white space ends a prefix before it.
CASES = [(DUMP, name) for name in PREFIXES] + [(CONSOLE, name) for name in PREFIXES if name != "grep"]


@pytest.mark.parametrize(("text", "name"), CASES)
def test_a_prefix_is_taken_off_each_line(text: bytes, name: str) -> None:
    form = find_form(prefixed(text, name))

    assert bare(prefixed(text, name)) == text
    assert form is not None
    assert bool(form.says) is (name != "indent")


def test_lines_without_a_prefix_stay() -> None:
    assert find_form(DUMP) is None
    assert find_form(CONSOLE) is None
    first, _, rest = DUMP.partition(b"\n")
    assert bare(first + b"\n" + prefixed(rest, "compose")) == DUMP
    assert bare(b"prose\n" + DUMP + b"more prose\n") == b"prose\n" + DUMP + b"more prose\n"


def test_a_payload_with_the_prefix_of_few_lines_is_left_alone() -> None:
    text = DUMP + b"x | baseOffset: 1 lastOffset: 2\n" * 2

    assert find_form(text) is None


def test_an_empty_line_may_lack_the_end_of_the_prefix() -> None:
    text = prefixed(DUMP.replace(b"\n| offset", b"\n\n| offset"), "compose").replace(b"| \n", b"|\n")

    assert bare(text) == DUMP.replace(b"\n| offset", b"\n\n| offset")


def shipped(line: str, *, around: str = "log") -> dict[str, object]:
    """The object in which a shipper puts a line."""
    return {"time": "now", "of": {"pod": "a"}, around: line}


#: Shipper -> a line of the tool as it ships it.
SHIPPERS: dict[str, Callable[[str], str]] = {
    "docker": lambda line: json.dumps(shipped(line)) + "\n",
    "journalctl -o json": lambda line: json.dumps(shipped(line.rstrip("\n"), around="MESSAGE")) + "\n",
    "Google": lambda line: json.dumps(shipped(line, around="textPayload")) + "\n",
    "Datadog": lambda line: json.dumps({"id": "a", "attributes": shipped(line, around="message")}) + "\n",
    "an array": lambda line: json.dumps(shipped(line)) + ",\n",
}


@pytest.mark.parametrize("shipper", SHIPPERS)
def test_lines_of_a_log_shipper_are_unwrapped(shipper: str) -> None:
    text = "".join(map(SHIPPERS[shipper], DUMP.decode().splitlines(keepends=True))).encode()
    form = find_form(text)

    assert bare(text) == DUMP
    assert form is not None
    assert form.says.startswith("JSON of a log shipper: ")


def test_a_record_of_a_console_consumer_ships_nothing() -> None:
    line = {"key": {"data": {"transactionalId": "baseOffset: 0 lastOffset: 1"}}, "value": "Dumping a"}
    assert find_form((json.dumps(line) + "\n").encode() * 3) is None


@pytest.mark.parametrize("name", PREFIXES)
def test_positions_are_those_in_the_file(name: str) -> None:
    text = prefixed(DUMP, name)
    lines = TextLines([text])

    starts = [position for position, _line in lines]

    assert starts == [0, *(index + 1 for index, byte in enumerate(text[:-1]) if byte == ord("\n"))]
    assert lines.position == len(text)
