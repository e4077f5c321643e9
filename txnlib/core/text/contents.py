"""Contents of records in a dump, measured by their printed sizes.

Keys and payloads are printed unescaped, line feeds included. Where a size does not fit, any line that follows may be a
part of the contents (docs/rules/formats.md#measured-contents).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from typing import Final

from txnlib.core.text.coordinator_text import ID_LABEL, KEY_OVERHEAD, read_transaction_log_text, shortest_text
from txnlib.core.text.dump_lines import PAYLOAD
from txnlib.core.text.lines import LONGEST_LINE, Line, LongLine, TextLines
from txnlib.core.text.printed import TransactionLogText

#: Maximum number of bytes of lines to keep until contents end; each line counts with an overhead.
_ROOM: Final = 1 << 26
_COST_OF_A_LINE: Final = 128
#: An invalid byte sequence is printed as three bytes, and has at least one.
_REPLACED: Final = "\N{REPLACEMENT CHARACTER}".encode()
_ADDED_BY_REPLACED: Final = 2
#: A character that the console's charset lacks is printed as one byte, and has up to four.
_MISSING: Final = b"?"
_HIDDEN_BY_MISSING: Final = 3
#: A key that is not of a coordinator, as decoders print it.
_UNKNOWN_KEY: Final = re.compile(rb"(unknown::version=-?\d+|Unknown record type -?\d+ at offset \d+, skipping\.)\s*")
#: Maximum number of lines of a transactional id. Ids have at most 32767 bytes; more line feeds are not worth the
#: search.
_LINES_OF_AN_ID: Final = 64


class Measured(Enum):
    """Whether contents were measured."""

    WHOLE = "WHOLE"
    #: No line can be their last one, or several can.
    UNKNOWN = "UNKNOWN"
    #: The text ends inside them.
    CUT = "CUT"


def pass_over(lines: TextLines, contents: bytes, size: int, may_follow: Callable[[bytes], bool]) -> Measured:
    """Takes the further lines of contents of `size` bytes that begin with the rest of a line.

    Takes none unless exactly one line can be their last. The size need not fit to the byte where characters were
    replaced, or where carriage returns were lost. `may_follow`: whether a line looks like what follows the record.
    """
    held: list[Line] = []
    exact: int | None = None
    #: The numbers of lines after which the contents may end, if their size does not fit to the byte.
    about: list[int] = []
    line, printed, replaced, missing, converted, lost, room = contents, 0, 0, 0, 0, 0, _ROOM
    is_cut = False
    while True:
        body = line.removesuffix(b"\n").removesuffix(b"\r")
        printed += len(body)
        replaced += body.count(_REPLACED)
        missing += body.count(_MISSING)
        least = printed - _ADDED_BY_REPLACED * replaced - converted
        # Editors and terminals pad lines; a carriage return may also be the last character of a payload.
        fits = size in (printed, printed - converted) or (not held and size == len(body.rstrip()))
        if not replaced and (fits or (size == printed + 1 and line.endswith(b"\r\n"))):
            exact = len(held)
        elif least <= size <= printed + _HIDDEN_BY_MISSING * missing + lost:
            about.append(len(held))
        if least >= size or room <= 0:
            break
        ahead = lines.next() if line.endswith(b"\n") else None
        if ahead is None:
            is_cut = exact is None and not about
            break
        held.append(ahead)
        if type(ahead[1]) is LongLine:
            break
        printed += len(line) - len(body)
        converted += line.endswith(b"\r\n")
        lost += not line.endswith(b"\r\n")
        room -= len(ahead[1]) + _COST_OF_A_LINE
        line = ahead[1]
    lines.give_back(held)
    if is_cut:
        return Measured.CUT
    if exact is not None:
        is_unique = not any(may_follow(held[count][1]) for count in about if count < len(held))
        return _taken(lines, exact) if is_unique else Measured.UNKNOWN
    # Whether the last lines are part of the contents makes no difference if they are blank.
    is_unique = bool(about) and not any(held[count - 1][1].strip() for count in about[1:])
    return _taken(lines, about[-1]) if is_unique else Measured.UNKNOWN


def least_size(text: bytes) -> int:
    """The fewest bytes that a text can have on disk, if it is a part of contents."""
    if isinstance(text, LongLine):
        return text.size // (1 + _ADDED_BY_REPLACED)
    return len(text.rstrip(b"\r\n")) - _ADDED_BY_REPLACED * text.count(_REPLACED)


def _taken(lines: TextLines, count: int) -> Measured:
    for _ in range(count):
        lines.next()
    return Measured.WHOLE


def read_coordinator_text(lines: TextLines, text: bytes, key_size: int) -> TransactionLogText | None:
    """The coordinator record in a text from after `key: `, and in the further lines of its id, which it takes.

    None, without taking any, if there is no such record. `key_size`: -1 if it is not printed; then the last payload on
    the line counts. So it does where the console lacks characters of the id.
    """
    measured = _read_joined(lines, text, key_size) if key_size >= 0 else None
    if measured is not None or (key_size >= 0 and _MISSING not in text and _REPLACED not in text):
        return measured
    return _read_joined(lines, text, None)


def is_id_whole(text: bytes, key_size: int) -> bool:
    """Whether the id in a text that is no record ends on its line: in JSON it does, else its size shows it."""
    label, _, rest = text.partition(ID_LABEL)
    return bool(label) or rest[max(key_size - KEY_OVERHEAD, 0) :].startswith(PAYLOAD)


def is_one_record(lines: TextLines, text: bytes, key_size: int) -> bool:
    """Whether a decoder for coordinators printed no more than this text for a record. Takes the further lines of an
    id."""
    return _UNKNOWN_KEY.fullmatch(text) is not None or _read_joined(lines, text, key_size) is not None


def _read_joined(lines: TextLines, text: bytes, key_size: int | None) -> TransactionLogText | None:
    held: list[Line] = []
    joined = text
    while True:
        body = joined.rstrip()
        decoded = read_transaction_log_text(body, key_size)
        if decoded is None and b"\r\n" in body:
            # Converted line ends inside an id.
            decoded = read_transaction_log_text(body.replace(b"\r\n", b"\n"), key_size)
        # Without its line end, the last number of a text payload may be truncated; JSON and tombstones show their end.
        if decoded is not None and (
            joined.endswith(b"\n") or decoded.entry is None or decoded.entry.version is not None
        ):
            return decoded
        is_short = key_size is not None and len(body) < shortest_text(key_size)
        may_go_on = is_short and len(held) < _LINES_OF_AN_ID and text.startswith(ID_LABEL)
        ahead = lines.next() if may_go_on else None
        if ahead is not None:
            held.append(ahead)
        if ahead is None or type(ahead[1]) is LongLine or len(joined) > LONGEST_LINE:
            lines.give_back(held)
            return None
        joined += ahead[1]
