"""Durations, instants, sizes and text from logs, as people read them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

_ISO: Final = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d(?:\.\d{3})?Z)")
#: What commands of Kafka's tools have behind their name. Nothing from a log stands before it.
BOOTSTRAP: Final = "--bootstrap-server $BOOTSTRAP"
#: Records of console text have no offsets. These stand for them, which order them and match no real one: the first, and
#: the step.
FIRST_OF_TEXT: Final = -(1 << 62)
OFFSETS_OF_TEXT: Final = 2
#: Characters of our own that not every terminal has -> what stands for them there.
_IN_ASCII: Final = str.maketrans({"─": "-", "–": "-", "…": "...", "’": "'"})
#: An instant in JSON, as epoch ms.
_JSON_MS: Final = re.compile(r'"(\w+?)(?:_ms|(?<=timestamp))":(\d{13})\b')


def duration(ms: int | None) -> str:
    """A duration in words: 38 s, 23 min, 5 h 10 min, 3 d 4 h."""
    if ms is None:
        return "unknown"
    sign, seconds = ("-" if ms < 0 else ""), abs(ms) // 1000
    for size, unit, below, lower in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min")):
        if seconds >= size:
            rest = seconds % size // below
            return f"{sign}{seconds // size} {unit}" + (f" {rest} {lower}" if rest else "")
    return f"{sign}{seconds // 60} min" if seconds >= 60 else f"{sign}{seconds} s"


def elapsed(ms: int | None) -> str:
    """An age in words. A clock that is ahead makes none negative."""
    return duration(None if ms is None else max(0, ms))


def instant(ms: int | None) -> str:
    """2026-11-21T07:46:12Z; "no known instant" for None or a time outside of the calendar."""
    if ms is None:
        return "no known instant"
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"


def utc_time(ms: int | None) -> str:
    """2026-11-21 07:46:12Z; a dash for None, the number if it is outside of the calendar."""
    return "-" if ms is None else instant(ms).replace("T", " ")


def not_before(ms: int) -> str:
    """As `utc_time`, rounded up, so that the instant is not named a moment too early."""
    return utc_time(-(-ms // 1000) * 1000)


def precise_time(ms: int) -> str:
    """2026-11-21 07:46:12.345Z; the number if it is outside of the calendar."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat(sep=" ", timespec="milliseconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"


def size(count: int | None) -> str:
    """Bytes in KiB, MiB, GiB."""
    if count is None:
        return "an unknown number of bytes"
    amount = float(count)
    for unit in ("B", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GiB"


def counted(number: int, name: str) -> str:
    """A number with what it counts: 1 partition, 2 partitions."""
    return f"{number} {name}{'' if number == 1 else 's'}"


def printable(text: object) -> str:
    """Text from a log, safe to print: control characters and line feeds of a transactional id must not forge lines."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


def some_of(named: Sequence[str], most: int) -> str:
    """The first names, and how many more there are: a, b and 3 more."""
    more = len(named) - most
    return ", ".join(named[:most]) + (f" and {more} more" if more > 0 else "")


def at_offset(offset: int) -> str:
    """@24: a place in a log; of console text, which prints no offsets, its record."""
    return f"@{offset}" if offset >= 0 else f"record {_record_of_text(offset)} of its text"


def offset_text(offset: int) -> str:
    """A place in a log, as `at_offset`, in words: offset 24."""
    return f"offset {offset}" if offset >= 0 else f"record {_record_of_text(offset)} of its text"


def _record_of_text(offset: int) -> int:
    return (offset - FIRST_OF_TEXT) // OFFSETS_OF_TEXT


def encodable(text: str, encoding: str | None) -> str:
    """Text that a terminal of an encoding shows: rules and dashes in ASCII where it has none, all else escaped."""
    name = encoding or "utf-8"
    try:
        text.encode(name)
    except LookupError:
        name = "ascii"
    except UnicodeEncodeError:
        pass
    else:
        return text
    return text.translate(_IN_ASCII).encode(name, "backslashreplace").decode(name)


def told(sentence: object) -> str:
    """A stored sentence, ready to print. Instants in it, even inside JSON, look like all others on the screen."""
    text = _JSON_MS.sub(lambda found: f'"{found[1]}":"{precise_time(int(found[2]))}"', printable(sentence))
    return _ISO.sub(r"\1 \2", text)


@dataclass(frozen=True, slots=True)
class Written:
    """The rows that a step wrote, if known, and its duration. Steps overlap, so seconds do not add up."""

    rows: int | None
    seconds: float

    def __str__(self) -> str:
        rows = "" if self.rows is None else f"{self.rows:,} row{'' if self.rows == 1 else 's'}, "
        return f"{rows}{self.seconds:.1f} s"
