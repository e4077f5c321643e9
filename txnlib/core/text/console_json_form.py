"""JSON objects that a console consumer prints: 3.9 with the new formatter, and every version from 4.0.

The formatter writes `{"key":…,"value":…}` without anything between one object and the next. Jackson escapes quotes in strings, so
`{"key":` is always the beginning of an object, and an object ends before the next one begins.
Kafka: `ApiMessageFormatter.writeTo`, `TransactionLogMessageFormatter`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from json import JSONDecodeError, JSONDecoder
from typing import Any, Final

from txnlib.core.kafka.transaction_log import KEY_VERSION, TransactionLogEntry
from txnlib.core.text.console_events import ConsoleOutput, Printed, is_blank, is_chatter
from txnlib.core.text.coordinator_text import read_json_value
from txnlib.core.text.long_line import LONGEST_LINE
from txnlib.core.text.tool_messages import UnreadableReason

#: Accepts the white space that `jq` prints.
OBJECT_START: Final = re.compile(rb'\{\s{0,16}"key"\s{0,16}:')
_LONGEST_START: Final = 40
#: Pieces of records, also of the line form: two texts may have been concatenated.
_PIECE: Final = re.compile(
    rb'"(transactionalId|producerId|transactionStatus|transactionPartitions|version)"\s*:|TransactionMetadata\(|::NULL\s*$'
)
_JSON: Final = JSONDecoder()


class _NotARecord(Exception):
    """Carries an UnreadableReason."""

    def __init__(self, reason: UnreadableReason) -> None:
        super().__init__(reason)
        self.reason = reason


def read_json_form(chunks: Iterable[bytes], position: int = 0) -> Iterator[Printed]:
    """The events of a text of JSON objects, in order. `position` is the position of its first byte in the file.

    The text may come in chunks of any size. Memory is bounded by one object, the text after it, and a chunk. Never raises.
    """
    out = ConsoleOutput()
    out.end = position
    buffer = bytearray()
    searched = 0
    for chunk in chunks:
        buffer += chunk
        while start := OBJECT_START.search(buffer, searched):
            _read_element(out, bytes(buffer[: start.start()]), UnreadableReason.BROKEN_LINE)
            del buffer[: start.start()]
            # The beginning of this object is not that of the next.
            searched = 1
        searched = max(1 if OBJECT_START.match(buffer) else 0, len(buffer) - _LONGEST_START)
        if len(buffer) > LONGEST_LINE:
            end = buffer.rfind(b"\n") + 1 or len(buffer) - _LONGEST_START
            _read_element(out, bytes(buffer[:end]), UnreadableReason.LINE_TOO_LONG)
            del buffer[:end]
            searched = 0
        yield from out.values
        out.values.clear()
    _read_element(out, bytes(buffer), UnreadableReason.CUT_LINE)
    out.finish()
    yield from out.values


def _read_element(out: ConsoleOutput, element: bytes, unfinished: UnreadableReason) -> None:
    """Reads an object and the text after it, up to the next object. `unfinished`: why an object or a line may have no end."""
    if not OBJECT_START.match(element):
        _read_gap(out, element, unfinished)
        return
    start = out.end
    text = element.decode("utf-8", "surrogateescape")
    try:
        printed, end = _JSON.raw_decode(text)
    except (JSONDecodeError, RecursionError, ValueError):
        out.unreadable(start, element, unfinished)
        return
    length = len(text[:end].encode("utf-8", "surrogateescape"))
    try:
        element[:length].decode()
        out.record(start, length, *_read_object(printed))
    except UnicodeDecodeError:
        out.unreadable(start, element[:length], UnreadableReason.UNDECODABLE_RECORD)
    except _NotARecord as error:
        out.unreadable(start, element[:length], error.reason)
    _read_gap(out, element[length:], unfinished)


def _read_gap(out: ConsoleOutput, text: bytes, unfinished: UnreadableReason) -> None:
    if out.last_reason is UnreadableReason.LINE_TOO_LONG:
        # The rest of it.
        out.unreadable(out.end, text, UnreadableReason.LINE_TOO_LONG)
        return
    for line in text.splitlines(keepends=True):
        if is_blank(line) or (is_chatter(line) and line.endswith(b"\n")):
            out.chatter(out.end, line)
        elif unfinished is UnreadableReason.LINE_TOO_LONG and not line.endswith(b"\n"):
            out.unreadable(out.end, line, unfinished)
        elif _PIECE.search(line):
            out.unreadable(out.end, line, UnreadableReason.BROKEN_LINE)
        else:
            is_cut = unfinished is UnreadableReason.CUT_LINE and not line.endswith(b"\n")
            out.unreadable(out.end, line, UnreadableReason.CUT_LINE if is_cut else UnreadableReason.NOT_DUMP_TEXT)


def _read_object(printed: dict[str, Any]) -> tuple[str, TransactionLogEntry | None]:
    """The record in a decoded object. Raises _NotARecord."""
    try:
        key, value = printed["key"], printed["value"]
        # 3.9 calls it `version`, as it is called on disk; 4.0 calls it `type`.
        version = key["type"] if "type" in key else key["version"]
        if type(version) is not int or version != KEY_VERSION:
            raise _NotARecord(UnreadableReason.UNKNOWN_KEY_VERSION)
        transactional_id = key["data"]["transactionalId"]
        # JSON can contain an escaped unpaired surrogate, but a log cannot.
        transactional_id.encode()
        if not transactional_id:
            raise _NotARecord(UnreadableReason.UNDECODABLE_RECORD)
        if value is None:
            return transactional_id, None
        if value["data"] == "unknown":
            raise _NotARecord(UnreadableReason.UNKNOWN_VALUE_VERSION)
        entry = read_json_value(transactional_id, value["version"], value["data"])
    except (KeyError, TypeError, ValueError, AttributeError):
        raise _NotARecord(UnreadableReason.UNDECODABLE_RECORD) from None
    if entry is None:
        raise _NotARecord(UnreadableReason.UNDECODABLE_RECORD)
    return transactional_id, entry
