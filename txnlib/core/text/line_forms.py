"""What stands around each line of a pasted or shipped text.

Colours, a common prefix, or a log shipper's JSON. It is looked for once in the beginning of a text, and taken off each
line of it. White space in front of a tool's line never matters (`dump_lines`), so that only a prefix of another kind is
told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

#: Beginnings of lines that Kafka's tools print.
_TOOLS_LINE: Final = re.compile(
    rb"Dumping \S|(?:Log s|S)tarting offset: \d|baseOffset: \d+ lastOffset: |\| offset: \d+ |offset: \d+ position: \d+ "
    rb"|producerId: \d+ producerEpoch: "
)
_OBJECT: Final = re.compile(rb'\{\s?"key"\s?:')
#: A record of a console consumer: the id that is printed twice shows where the prefix ends.
_CONSOLE_LINE: Final = re.compile(rb"(?P<before>.*?)::TransactionMetadata\(transactionalId=(?P<id>.*), producerId=")
#: Escape sequences of terminals.
_COLOUR: Final = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
#: Non-breaking spaces: U+00A0, U+2007 and U+202F.
_SPACES: Final = re.compile(b"|".join(re.escape(each.encode()) for each in "\u00a0\u2007\u202f"))
#: What mail and tickets put in front of lines that they quote.
_QUOTED: Final = re.compile(rb"[> \t]*")
_LONGEST_SAMPLE: Final = 120


@dataclass(frozen=True, slots=True)
class LineForm:
    """What each line of a text carries. `says`: in words, with a sample; empty if it is nothing but white space."""

    says: str
    steps: tuple[Callable[[bytes], bytes], ...]

    def taken_off(self, line: bytes) -> bytes:
        """The line without it."""
        for step in self.steps:
            line = step(line)
        return line


def find_form(head: bytes) -> LineForm | None:
    """What each line carries, by the beginning of the text; None if its lines are bare, or are of no tool."""
    lines = [line for line in head.split(b"\n")[:-1] or [head] if line]
    steps, says = [], []
    for find in (_find_spaces, _find_shipper, _find_colours, _find_prefix):
        found = find(lines)
        if found is not None:
            step, said = found
            steps.append(step)
            says.append(said)
            lines = [step(line) for line in lines]
    return LineForm("; ".join(filter(None, says)), tuple(steps)) if steps else None


_Found = tuple[Callable[[bytes], bytes], str] | None


def _find_shipper(lines: Sequence[bytes]) -> _Found:
    """The JSON of a log shipper around at least half of the lines, in one field of which a tool's line stands."""
    field = next((found for line in lines if (found := _shipped_field(line))), None)
    if field is None:
        return None

    def shipped(line: bytes) -> bytes:
        found: Any = _object(line)
        for name in field:
            found = found.get(name) if isinstance(found, dict) else None
        if not isinstance(found, str):
            return line
        return found.rstrip("\n").encode(errors="replace") + (b"\n" if line.endswith(b"\n") else b"")

    if 2 * sum(shipped(line) is not line for line in lines) < len(lines):
        return None
    return shipped, f"JSON of a log shipper: {_sample(lines[0])}"


def _shipped_field(line: bytes) -> tuple[str, ...] | None:
    """Where a tool's line stands in the JSON object of a line: the name of the field, or of one inside a field."""
    for name, value in _object(line).items():
        inside = value.items() if isinstance(value, dict) else ()
        for field, text in (((name,), value), *(((name, each), text) for each, text in inside)):
            if isinstance(text, str) and begin_of_line(text.encode(errors="replace")) is not None:
                return field
    return None


def _object(line: bytes) -> dict[str, Any]:
    """The JSON object that a line is, or that is one of an array; empty for a record of a console consumer."""
    text = line.strip().removeprefix(b"[").rstrip(b",]").lstrip()
    if not text.startswith(b"{") or _OBJECT.match(text):
        return {}
    try:
        found: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found


def _find_spaces(lines: Sequence[bytes]) -> _Found:
    """Non-breaking spaces, as word processors and chats write them, in at least half of the lines of tools."""
    plain = [(line, _with_plain_spaces(line)) for line in lines]
    of_tools = [(line, bare) for line, bare in plain if begin_of_line(bare) is not None]
    odd = sum(begin_of_line(line) is None for line, _ in of_tools)
    return (_with_plain_spaces, "non-breaking spaces") if odd * 2 >= len(of_tools) > 0 else None


def _with_plain_spaces(line: bytes) -> bytes:
    return _SPACES.sub(b" ", line)


def _find_colours(lines: Sequence[bytes]) -> _Found:
    plain = [(line, _without_colours(line)) for line in lines]
    of_tools = [(line, bare) for line, bare in plain if begin_of_line(bare) is not None]
    coloured = sum(line != bare for line, bare in of_tools)
    return (_without_colours, "colours of a terminal") if coloured * 2 >= len(of_tools) > 0 else None


def _without_colours(line: bytes) -> bytes:
    return _COLOUR.sub(b"", line)


def _find_prefix(lines: Sequence[bytes]) -> _Found:
    """The prefix of at least half of the lines that tools print, if all of those share its form."""
    begins = [(line, begin) for line in lines if (begin := begin_of_line(line)) is not None]
    prefixes = [line[:begin] for line, begin in begins if begin]
    if not prefixes or 2 * len(prefixes) < len(begins):
        return None
    for words, gap in _forms(prefixes[0]):
        pattern = re.compile(words + gap)
        if all(pattern.fullmatch(prefix) for prefix in prefixes):
            said = f"prefix of each line: {_sample(prefixes[0])}" if prefixes[0].strip() else ""
            return _Prefix(pattern, re.compile(words + rb"\s*\Z")), said
    return None


def begin_of_line(line: bytes) -> int | None:
    """Where the tool's line begins in a line; None if there is none."""
    found, printed, record = _TOOLS_LINE.search(line), _OBJECT.search(line), _CONSOLE_LINE.match(line)
    if record is not None and record["before"].endswith(record["id"]):
        begin = len(record["before"]) - len(record["id"])
    elif printed is not None and (found is None or printed.start() < found.start()):
        begin = printed.start()
    else:
        return None if found is None else found.start()
    # A consumer ends no line behind an object, and an id may be anything: only white space ends a prefix, or quoting.
    return begin if line[:begin].endswith((b" ", b"\t")) or _QUOTED.fullmatch(line, 0, begin) else None


def _forms(prefix: bytes) -> tuple[tuple[bytes, bytes], ...]:
    """Patterns for prefixes like this one, each with that of its last gap: with other numbers and gaps, or as wide."""
    words = prefix.rstrip(b" \t")
    gap = re.escape(prefix[len(words) :])
    if not words:
        return ((b"", gap),)
    pieces = re.findall(rb"\d+|[ \t]+|[^\d \t]+", words)
    alike = [
        rb"\d+" if piece.isdigit() else re.escape(piece) if piece.strip() else rb"[ \t]+" if index else b""
        for index, piece in enumerate(pieces)
    ]
    return (rb"[ \t]*" + b"".join(alike), gap), (b".{%d}" % len(words), gap)


class _Prefix:
    """Takes a prefix off a line. `bare`: a line of nothing but the prefix, whose white space an editor may have cut."""

    def __init__(self, pattern: re.Pattern[bytes], bare: re.Pattern[bytes]) -> None:
        self._pattern, self._bare = pattern, bare

    def __call__(self, line: bytes) -> bytes:
        found = self._pattern.match(line)
        if found is not None:
            return line[found.end() :]
        return b"\n" if self._bare.match(line) and line.endswith(b"\n") else line


def _sample(prefix: bytes) -> str:
    return prefix[:_LONGEST_SAMPLE].decode(errors="replace")
