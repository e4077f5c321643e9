"""A dump inside a JSON document, CSV or a saved page: what is inside is read, and nothing beside it is lost."""

from __future__ import annotations

import csv
import html
import io
import json
from collections.abc import Callable

import pytest

from tests.support.consoles import Record as Printed
from tests.support.consoles import as_json, as_line
from tests.support.dumps import Batch, Record, lines_in, marker, print_dump
from txnlib.core.text.lines import TextLines
from txnlib.core.text.wrappings import MOST_OF_JSON, unwrapped

DUMP = print_dump(Batch(), marker("COMMIT"), Batch((Record(value=b'{"a": 1, "b": "<2>"}'),)), contents=True)
CONSOLE = as_line(Printed("a")) + as_line(Printed("b c"))


def as_csv(rows: list[list[str]], **how: object) -> bytes:
    text = io.StringIO()
    csv.writer(text, **how).writerows(rows)  # type: ignore[arg-type]
    return text.getvalue().encode()


def csv_of(text: str, columns: Callable[[int, str], list[str]], head: list[str], **how: object) -> bytes:
    lines = [columns(number, line) for number, line in enumerate(text.splitlines())]
    return as_csv([head, *lines], **how)


def page_of(text: str, before: str, line: str, after: str) -> bytes:
    script = "<script>var baseOffset = '| offset: 1 ';</script>" * 3_000
    lines = "".join(line.format(html.escape(each)) for each in text.splitlines())
    head = f"<!DOCTYPE html>\n<html><head><title>KAFKA-1</title>{script}</head>"
    return f"{head}<body>{before}{lines}{after}</body>".encode()


#: What people have -> a text inside of it.
WRAPPINGS: dict[str, Callable[[str], bytes]] = {
    "string": lambda text: json.dumps(text).encode(),
    "list of strings": lambda text: json.dumps(text.splitlines()).encode(),
    "indented list": lambda text: json.dumps(text.splitlines(), indent=1).encode(),
    "gh": lambda text: json.dumps({"author": "a", "body": "We see this:\r\n" + text}).encode(),
    "ansible": lambda text: json.dumps({"rc": 0, "stdout": text, "stdout_lines": text.splitlines()}).encode(),
    "only lines": lambda text: json.dumps({"rc": 0, "stdout_lines": text.splitlines()}, indent=2).encode(),
    "output of ansible": lambda text: (
        f"TASK [debug] ***\nok: [kafka-1] => {json.dumps({'msg': text.splitlines()}, indent=4)}\n\nPLAY RECAP ***\n"
    ).encode(),
    "ad-hoc ansible": lambda text: f"kafka-1 | SUCCESS => {json.dumps({'stdout': text}, indent=4)}\n".encode(),
    "deep": lambda text: json.dumps({"plays": [{"hosts": {"kafka-1": {"stdout": text}}}]}).encode(),
    "indented text": lambda text: json.dumps("".join(f"    {line}\n" for line in text.splitlines())).encode(),
    "quoted text": lambda text: json.dumps("".join(f"> {line}\n" for line in text.splitlines())).encode(),
    "csv": lambda text: csv_of(text, lambda n, line: [f"2026-11-22T09:58:{n:02}Z", "kafka-1", line], ["t", "pod", "m"]),
    "csv, in the middle": lambda text: csv_of(text, lambda n, line: [str(n), line, "INFO"], ["n", "m", "l"]),
    "csv, all quoted": lambda text: csv_of(
        text, lambda n, line: [line], ["message"], quoting=csv.QUOTE_ALL, delimiter=";"
    ),
    "csv of a spreadsheet": lambda text: csv_of(text, lambda n, line: [str(n), line], ["n", "m"], delimiter=";"),
    "page": lambda text: page_of(text, "<p>Hello</p><pre><code>", "{}\n", "</code></pre>"),
    "page of divs": lambda text: page_of(text, "<div>", '<div class="line"><span>{}</span></div>', "</div>"),
    "page of breaks": lambda text: page_of(text, "<p>", "{}<br/>", "</p>"),
}


def inside(text: bytes) -> bytes:
    return b"".join(line for _position, line in lines_in(text))


#: Nothing ends a prefix before an id, which may be anything.
CASES = [
    (text, name) for text in (DUMP, CONSOLE) for name in WRAPPINGS if (text, name) != (CONSOLE, "csv of a spreadsheet")
]


@pytest.mark.parametrize(("text", "name"), CASES)
def test_what_is_inside_is_read_to_its_last_byte(text: bytes, name: str) -> None:
    wrapped = WRAPPINGS[name](text.decode())

    assert inside(wrapped).endswith(text)
    assert TextLines((wrapped,)).form is not None, "it is told"
    # Wherever a chunk ends.
    pieces = [wrapped[at : at + 7] for at in range(0, len(wrapped), 7)]
    assert b"".join(line for _position, line in TextLines(pieces)).endswith(text)


@pytest.mark.parametrize("name", WRAPPINGS)
def test_a_text_of_several_chunks_is_read_as_one(name: str) -> None:
    text = DUMP.decode() * 400

    wrapped = WRAPPINGS[name](text)

    assert len(wrapped) > 200_000
    assert inside(wrapped).endswith(text.encode())


def test_texts_of_two_hosts_in_one_document_are_both_read() -> None:
    hosts = json.dumps({"kafka-1": DUMP.decode(), "kafka-2": CONSOLE.decode()}).encode()
    assert inside(hosts) == DUMP + CONSOLE
    documents = b"\n".join(json.dumps({"stdout": each.decode()}).encode() for each in (DUMP, DUMP))
    assert inside(documents) == DUMP + DUMP
    tasks = "".join(f"ok: [{host}] => {json.dumps({'stdout': DUMP.decode()})}\n" for host in ("kafka-1", "kafka-2"))
    assert inside(tasks.encode()) == DUMP + DUMP


def test_lines_of_csv_without_the_column_stay() -> None:
    wrapped = WRAPPINGS["csv"](DUMP.decode())
    assert b"a torn baseOffset: 1\n" in inside(wrapped + b"a torn baseOffset: 1\n")


@pytest.mark.parametrize(
    "text",
    [
        DUMP,
        CONSOLE,
        as_json(Printed("a")),
        b"He said, baseOffset: 0 lastOffset: 0 of it, so\n" + DUMP,
        b'["a", "b"]\n' + DUMP,
        b"<details>\n" + DUMP,
        json.dumps(DUMP.decode()).encode()[:-40],
        json.dumps(["a", "b"]).encode(),
        b'ok: [kafka-1] => {"msg": "offset: 1"}\n' + DUMP,
        b"",
    ],
    ids=[
        "dump",
        "console",
        "json",
        "prose",
        "list before it",
        "details",
        "cut",
        "other json",
        "beside a task",
        "empty",
    ],
)
def test_any_other_text_stays_as_it_is(text: bytes) -> None:
    chunks, says = unwrapped((text,))
    assert (b"".join(chunks), says) == (text, "")


def test_a_document_that_is_too_large_stays_as_it_is() -> None:
    begin = json.dumps(DUMP.decode()).encode()[:-1]
    rest = (b"x" * (1 << 20) for _ in range((MOST_OF_JSON >> 20) + 1))
    chunks, says = unwrapped(chunk for source in ((begin,), rest) for chunk in source)
    assert next(chunks).startswith(begin)
    assert says == ""


def test_a_comment_of_a_page_that_never_ends_is_bounded() -> None:
    piece = b"a" * (1 << 20)
    chunks, says = unwrapped(chunk for chunk in (b"<html><!-- ", *([piece] * 40)))
    assert says
    assert max(map(len, chunks)) <= 18 << 20
