"""Text of Kafka's tools inside a JSON document, CSV or a saved page.

What people hand over went through other tools: `ansible`, `gh --json body` and `jq` make one JSON string, or a list of
strings, of a dump; a log shipper exports CSV, one column of which has the lines; a browser saves the page of a ticket.
It is looked for once in the beginning of a text. What stands around each line is in `line_forms`.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from itertools import chain
from json import JSONDecodeError, JSONDecoder
from typing import Any, Final, NamedTuple

from txnlib.core.text.line_forms import begin_of_line

#: Number of bytes that decide what a text is inside of.
HEAD_BYTES: Final = 65_536
#: Largest JSON document that is taken apart: it has to be in memory.
MOST_OF_JSON: Final = 1 << 26
#: Longest line of CSV, and most of a page to look through for text.
_LONGEST: Final = 1 << 24
#: What a tool's line inside a string of JSON has.
_WORDS: Final = re.compile(rb'Dumping \S|tarting offset: \d|ffset: \d|::TransactionMetadata\(|\{\\"key\\"')
#: Beginnings of JSON; records of a console consumer are no wrapping.
_JSON: Final = re.compile(rb'\s*["\[{]')
#: What Ansible prints before the result of a task: `ok: [kafka-1] => {`, or `kafka-1 | SUCCESS => {`.
_RESULT: Final = re.compile(r'(?m)^[^\n"{}]{1,200} => (?={)')
_RECORDS: Final = re.compile(rb'\s*\[?\s*\{\s{0,16}"key"\s{0,16}:')
_PAGE: Final = re.compile(rb"(?i)\s*(?:<\?xml[^>]*>\s*)?<(?:!doctype html|html|head|body|meta|pre|div|table|span|p)\b")
_QUOTED_CELL: Final = re.compile(rb'(?:^|[,;])"[^"]')
_DELIMITERS: Final = (",", ";")

#: The text inside, in chunks, and what it was taken out of, in words.
Unwrapped = tuple[Iterator[bytes], str]


def unwrapped(chunks: Iterable[bytes]) -> Unwrapped:
    """The text without what is around it as a whole; the chunks themselves, and no words, if nothing is."""
    rest, head = iter(chunks), b""
    while len(head) < HEAD_BYTES and (chunk := next(rest, b"")):
        head += chunk
    beginning = head[:HEAD_BYTES].removeprefix(codecs.BOM_UTF8)
    whole: Iterator[bytes] = chain((head,), rest)
    is_json = _JSON.match(beginning) or _RESULT.search(beginning.decode(errors="replace"))
    if is_json and not _RECORDS.match(beginning):
        whole, says = _of_json(whole, beginning)
        if says:
            return whole, says
    if _PAGE.match(beginning):
        return _of_page(whole), "a saved page, of which the text was read"
    column = _column_of_csv(beginning)
    if column is not None:
        return _of_csv(whole, column), f"CSV, of which column {column.position + 1} was read"
    return whole, ""


# ---- JSON


def _of_json(chunks: Iterator[bytes], head: bytes) -> Unwrapped:
    """The strings of the fields that have tools' lines. A document that is cut, or too large, stays as it is."""
    if not _WORDS.search(head) or _is_shipped(head):
        return chunks, ""
    text = b""
    while len(text) <= MOST_OF_JSON and (chunk := next(chunks, b"")):
        text += chunk
    documents = _documents(text.removeprefix(codecs.BOM_UTF8)) if len(text) <= MOST_OF_JSON else []
    strings = [found for each in documents for found in _strings(each)]
    names = dict.fromkeys(name for name, value in strings if _has_tools_line(value))
    if not names:
        return chain((text,), chunks), ""
    # Ansible prints what a command printed twice: as `stdout`, and as a list of its lines.
    read = [name for name in names if name.removesuffix("_lines") == name or name.removesuffix("_lines") not in names]
    inside = (value if value.endswith("\n") else f"{value}\n" for name, value in strings if name in read)
    where = ", ".join(filter(None, read)) or "its strings"
    return (each.encode(errors="replace") for each in inside), f"JSON, of which this was read: {where}"


def _is_shipped(head: bytes) -> bool:
    """Whether each line of a text is a JSON object of its own with one line: a form of lines."""
    first, _, others = head.lstrip().partition(b"\n")
    documents = _documents(first) if first.startswith(b"{") and others.lstrip().startswith(b"{") else []
    return bool(documents) and not any("\n" in value.strip() for each in documents for _, value in _strings(each))


def _documents(text: bytes) -> list[Any]:
    """The JSON documents of a text, one behind the other; none if it is anything else."""
    decoder, found = JSONDecoder(), []
    try:
        content, position = text.decode().strip(), 0
        if _JSON.match(text) is None:
            return _results(content)
        while position < len(content):
            document, position = decoder.raw_decode(content, position)
            found.append(document)
            while position < len(content) and content[position].isspace():
                position += 1
    except (UnicodeDecodeError, JSONDecodeError, RecursionError, ValueError):
        return []
    # Lines of CSV between quotes look like strings, one behind the other.
    return found if len(found) == 1 or all(isinstance(each, dict | list) for each in found) else []


def _results(content: str) -> list[Any]:
    """The JSON of each task in the output of Ansible; none if tools' lines stand between. Raises ValueError."""
    decoder, found, position = JSONDecoder(), [], 0
    while (begin := _RESULT.search(content, position)) is not None:
        if _has_tools_line(content[position : begin.start()]):
            return []
        document, position = decoder.raw_decode(content, begin.end())
        found.append(document)
    return [] if _has_tools_line(content[position:]) else found


def _strings(document: Any) -> Iterator[tuple[str, str]]:
    """Every string of a JSON document, with the name of its field, which may be around a list. Not recursive: nothing
    bounds how deep it is nested."""
    waiting = [("", document)]
    while waiting:
        name, each = waiting.pop()
        if isinstance(each, str):
            yield name, each
        elif isinstance(each, dict):
            waiting += reversed(each.items())
        elif isinstance(each, list):
            waiting += [(name, inside) for inside in reversed(each)]


def _has_tools_line(text: str) -> bool:
    content = text.encode(errors="replace")
    return any(begin_of_line(line) is not None for line in content[:HEAD_BYTES].split(b"\n"))


# ---- CSV


class _Column(NamedTuple):
    """The column of a CSV in which tools' lines stand, of how many; the last may contain delimiters without quotes."""

    delimiter: str
    position: int
    width: int

    def cell(self, row: list[str]) -> str:
        """The cell, or the row as it is if that has none."""
        if len(row) <= self.position:
            return self.delimiter.join(row)
        return self.delimiter.join(row[self.position :]) if self.position == self.width - 1 else row[self.position]


def _column_of_csv(head: bytes) -> _Column | None:
    """The column of tools' lines: at least half of the rows have one there, and no line of the text is one by itself.
    None for any other text."""
    lines = [line for line in head.split(b"\n") if line.strip()]
    if any(_RECORDS.match(line) or begin_of_line(line.lstrip()) == 0 for line in lines):
        return None
    has_quotes = any(_QUOTED_CELL.search(line) for line in lines)
    for delimiter in _DELIMITERS:
        rows = list(_rows(_text_lines((head,)), delimiter))
        found = Counter(
            _Column(delimiter, position, len(row))
            for row in rows
            for position, cell in enumerate(row)
            if begin_of_line(cell.lstrip().encode("utf-8", "surrogateescape")) == 0
        )
        for column, number in found.most_common(1):
            # What stands before lines without quotes is a prefix of each (`line_forms`).
            if number > 1 and 2 * number >= len(rows) and (has_quotes or column.position < column.width - 1):
                return column
    return None


def _of_csv(chunks: Iterable[bytes], column: _Column) -> Iterator[bytes]:
    for row in _rows(_text_lines(chunks), column.delimiter):
        if any(row):
            yield column.cell(row).encode("utf-8", "surrogateescape") + b"\n"


def _rows(lines: Iterator[str], delimiter: str) -> Iterator[list[str]]:
    """The rows, without those that are no CSV."""
    read = csv.reader(lines, delimiter=delimiter)
    while True:
        try:
            yield next(read)
        except StopIteration:
            return
        except csv.Error:
            continue


def _text_lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """The lines of a text, each with its end; one that is too long in pieces."""
    held = b""
    for chunk in chunks:
        held += chunk
        *lines, held = held.split(b"\n")
        yield from (line.decode("utf-8", "surrogateescape") + "\n" for line in lines)
        if len(held) > _LONGEST:
            yield held.decode("utf-8", "surrogateescape")
            held = b""
    if held:
        yield held.decode("utf-8", "surrogateescape")


# ---- Pages


_NO_TEXT: Final = frozenset({"script", "style", "template", "noscript"})
_INLINE: Final = frozenset(
    {"a", "b", "code", "em", "font", "i", "kbd", "mark", "s", "samp", "small", "span", "strong", "tt", "u"}
)


class _PageText(HTMLParser):
    """Collects the text of a page; each block is a line of its own."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._hidden, self._is_line_open = 0, False
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._hidden += tag in _NO_TEXT
        self._break(tag)

    def handle_endtag(self, tag: str) -> None:
        self._hidden = max(self._hidden - (tag in _NO_TEXT), 0)
        self._break(tag)

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.found.append(data)

    def _break(self, tag: str) -> None:
        is_open = not self.found[-1].endswith("\n") if self.found else self._is_line_open
        if tag not in _INLINE and is_open:
            self.found.append("\n")

    def taken(self) -> bytes:
        """The text up to here, of which nothing is kept."""
        text = "".join(self.found).encode("utf-8", "surrogateescape")
        self._is_line_open = not text.endswith(b"\n") if text else self._is_line_open
        self.found.clear()
        return text


def _of_page(chunks: Iterable[bytes]) -> Iterator[bytes]:
    page, decode = _PageText(), codecs.getincrementaldecoder("utf-8")("surrogateescape").decode
    for chunk in chunks:
        page.feed(decode(chunk))
        # A tag, a comment or a script that does not end is no page: what it holds is passed on as it is.
        if len(page.rawdata) > _LONGEST:
            page.handle_data(page.rawdata)
            page.rawdata = ""
        if page.found:
            yield page.taken()
    page.feed(decode(b"", final=True))
    page.close()
    yield page.taken()
