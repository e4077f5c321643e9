"""Output of `kafka-console-consumer.sh --topic __transaction_state --formatter …`, of any version.

A text has one form, as one run of one tool prints it: JSON objects, or one record per line. Text never raises.
JSON escapes ids. Nothing in a line is escaped, so that an id with line feeds may imitate records: near a piece of a
record, no line is believed (docs/decisions/0014).
Kafka: `TransactionLogMessageFormatter` of `kafka.coordinator.transaction.TransactionLog` and of
`org.apache.kafka.tools.consumer`, `TransactionMetadata.toString`; docs/rules/formats.md#records-of-a-console-consumer.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from json import JSONDecodeError, JSONDecoder
from typing import Any, Final, NamedTuple

from txnlib.core.kafka.transaction_log import KEY
from txnlib.core.text.coordinator_text import read_json_value, read_printed_value
from txnlib.core.text.lines import LONGEST_LINE, LongLine, TextLines, UnreadableReason
from txnlib.core.text.printed import (
    ConsoleEnd,
    ConsoleRecord,
    DumpTail,
    Printed,
    TransactionLogText,
    Unreadable,
    ends_consumer,
    is_chatter,
    sample_of,
)

#: Number of bytes that decide the form of a text.
_HEAD_BYTES: Final = 1 << 20


class Piece(NamedTuple):
    """A part of the text and what it reads as; None for a message of a tool or logger."""

    position: int
    length: int
    text: bytes
    read: TransactionLogText | UnreadableReason | None


def read_console_text(text: TextLines) -> Iterator[Printed]:
    """The records and unreadable ranges, in order. Adjacent ranges of one reason are one."""
    head = text.head(_HEAD_BYTES)
    if text.form is not None:
        head = b"".join(line for _position, line in TextLines((head,)))
        if text.form.says:
            yield Unreadable(text.position, 0, UnreadableReason.LINE_FORM, text.form.says)
    is_ended_early, tail, end, last = False, DumpTail.CLEAN, 0, None
    for position, length, content, read in (read_objects if _is_json(head) else read_lines)(text):
        end = position + length
        if read is None or not length:
            is_ended_early |= ends_consumer(content)
            continue
        tail = DumpTail.TORN if read is UnreadableReason.CUT_LINE else DumpTail.CLEAN
        if last is not None and last.reason is read and last.end == position:
            last = last._replace(length=last.length + length)
            continue
        if last is not None:
            yield last
        last = None
        if isinstance(read, TransactionLogText):
            yield ConsoleRecord(position, length, *read)
        else:
            last = Unreadable(position, length, read, sample_of(content))
    if last is not None:
        yield last
    yield ConsoleEnd(max(end, text.position), DumpTail.CORRUPT if is_ended_early else tail)


def _is_json(head: bytes) -> bool:
    """Whether the JSON objects in a text are records, not ids that imitate them: no line form is between them."""
    if not OBJECT_START.search(head):
        return False
    has_records = False
    for _position, _length, content, read in read_objects(TextLines((head,))):
        has_records |= isinstance(read, TransactionLogText)
        is_cut_object = read is UnreadableReason.CUT_LINE and OBJECT_START.match(content) is not None
        if not isinstance(read, TransactionLogText) and not is_cut_object and _LINE_FORM.search(content):
            return False
    return has_records or not _LINE_FORM.search(head)


# ---- Lines: up to 3.8, and 3.9 with the old formatter


#: The text between the two copies of the id, and behind the second one.
ECHO_LABEL: Final = b"::TransactionMetadata(transactionalId="
_REST: Final = b", producerId="
_NULL: Final = b"::NULL"
_LINE_FORM: Final = re.compile(rb"::TransactionMetadata\(transactionalId=|::NULL\s*(?:\n|\Z)")
_UNKNOWN_KEY: Final = re.compile(rb"unknown::version=-?\d{1,5}")
#: Scala 2.13 prints `HashSet(a, b)`, 2.12 and 2.11 `Set(a, b)`. A record is never pending.
_FIELDS: Final = re.compile(
    rb", producerId=(?P<producer_id>-?\d{1,19}), producerEpoch=(?P<producer_epoch>-?\d{1,19}), "
    rb"txnTimeoutMs=(?P<transaction_timeout_ms>-?\d{1,19}), state=(?P<state>[A-Za-z]+), pendingState=None, "
    rb"topicPartitions=(?:Hash)?Set\((?P<partitions>[A-Za-z0-9._, -]*)\), "
    rb"txnStartTimestamp=(?P<start_timestamp_ms>-?\d{1,19}),"
    rb" txnLastUpdateTimestamp=(?P<last_update_timestamp_ms>-?\d{1,19})\)"
)
#: Pieces of records, also of the JSON form: two texts may have been concatenated.
_PIECE: Final = re.compile(
    rb'"transactionalId"|TransactionMetadata\(|transactionalId=|::NULL'
    rb"|, (producerEpoch|txn[A-Z]\w+|state|pendingState|topicPartitions)="
)
#: What text reads as that is no record, but ends where a record ends.
_ENDED: Final = frozenset(
    {None, UnreadableReason.UNKNOWN_KEY_VERSION, UnreadableReason.AMBIGUOUS_RECORD, UnreadableReason.UNDECODABLE_RECORD}
)
#: Far above two copies of the longest id, 32,767 bytes each, of which an invalid one is printed as three.
_WINDOW: Final = 1 << 18


def read_lines(text: TextLines) -> Iterator[Piece]:
    """The lines, each read by itself.

    An id with line feeds is printed twice over several lines, and any of these may imitate a record. But one of them
    has a piece of a record without being one: the line of the label, or the first line if it makes that a record.
    Lines near such a piece are not believed. A tombstone prints its id once, so that it may be the end of a longer one
    unless it follows what ends like a record.
    """
    #: Lines of which is not known yet whether such a piece is behind them, with the size of the text up to each.
    held: deque[tuple[int, Piece]] = deque()
    #: That of the newest such piece.
    broken_at: int | None = None
    size, end, is_behind_record = 0, text.position, True
    while True:
        text.skip_empty()
        found = text.next()
        if found is None:
            break
        position, line = found
        size += len(line)
        while held and size - held[0][0] > _WINDOW:
            yield _judged(*held.popleft(), broken_at)
        read = _read_line(line)
        if read is None and not line.strip():
            continue
        is_cut = read is UnreadableReason.CUT_LINE
        if read is UnreadableReason.AMBIGUOUS_RECORD or (is_cut and not _may_begin_record(line)):
            broken_at = size
        if isinstance(read, TransactionLogText) and read.entry is None and not (is_behind_record and position == end):
            read = UnreadableReason.AMBIGUOUS_RECORD
        content, end = line.head if type(line) is LongLine else line, text.position
        held.append((size, Piece(position, end - position, content, read)))
        is_behind_record = isinstance(read, TransactionLogText) or read in _ENDED
    yield from (_judged(*each, broken_at) for each in held)


def _judged(size: int, piece: Piece, broken_at: int | None) -> Piece:
    """The piece up to this size of the text; ambiguous near a piece of a record."""
    is_near = broken_at is not None and size - broken_at <= _WINDOW
    if not is_near or piece.read is None or piece.read is UnreadableReason.CUT_LINE:
        return piece
    return piece._replace(read=UnreadableReason.AMBIGUOUS_RECORD)


def _read_line(line: bytes) -> TransactionLogText | UnreadableReason | None:
    """What a line reads as by itself; None for white space and chatter."""
    if type(line) is LongLine:
        return UnreadableReason.LINE_TOO_LONG
    if not line.endswith(b"\n"):
        return UnreadableReason.CUT_LINE
    body = line.rstrip()
    raw_id, label, rest = body.partition(ECHO_LABEL)
    if raw_id and rest.startswith(raw_id + _REST) and ECHO_LABEL not in rest:
        return _read_record(raw_id, rest[len(raw_id) :])
    if label or _REST in body:
        return UnreadableReason.AMBIGUOUS_RECORD
    if body.endswith(_NULL):
        transactional_id = _decode(body.removesuffix(_NULL))
        return TransactionLogText(transactional_id, None) if transactional_id else UnreadableReason.UNDECODABLE_RECORD
    if not body or is_chatter(line):
        return None
    if _UNKNOWN_KEY.fullmatch(body):
        return UnreadableReason.UNKNOWN_KEY_VERSION
    return UnreadableReason.BROKEN_LINE if _PIECE.search(body) else UnreadableReason.NOT_DUMP_TEXT


def _read_record(raw_id: bytes, fields: bytes) -> TransactionLogText | UnreadableReason:
    """The record of an id that is printed twice."""
    match, transactional_id = _FIELDS.fullmatch(fields), _decode(raw_id)
    if match is None or transactional_id is None:
        return UnreadableReason.UNDECODABLE_RECORD
    entry = read_printed_value(transactional_id, match.groupdict())
    return UnreadableReason.UNDECODABLE_RECORD if entry is None else TransactionLogText(transactional_id, entry)


def _may_begin_record(line: bytes) -> bool:
    """Whether a line without its end may be the beginning of a record of an id without line feeds."""
    raw_id, label, rest = line.partition(ECHO_LABEL)
    if not label:
        return _REST not in line
    begin = raw_id + _REST
    return (begin.startswith(rest) or rest.startswith(begin)) and ECHO_LABEL not in rest


def _decode(raw_id: bytes) -> str | None:
    """The id; None if it is not UTF-8, the formatter's encoding in every console charset."""
    try:
        return raw_id.decode()
    except UnicodeDecodeError:
        return None


# ---- JSON objects: 3.9 with the new formatter, and every version from 4.0 on


#: Accepts the white space that `jq` prints.
OBJECT_START: Final = re.compile(rb'\{\s{0,16}"key"\s{0,16}:')
_LONGEST_START: Final = 40
#: Pieces of records, also of the line form: two texts may have been concatenated.
_JSON_PIECE: Final = re.compile(
    rb'"(transactionalId|producerId|transactionStatus|transactionPartitions|version)"\s*:|TransactionMetadata\(|::NULL\s*$'
)
_JSON: Final = JSONDecoder()


def read_objects(text: TextLines) -> Iterator[Piece]:
    """The objects, and the lines between them. Positions are in the text without what each line carries.

    Memory is bounded by one object, the text after it, and a chunk.
    """
    buffer, position, searched, is_long = bytearray(), text.position, 0, False
    for chunk in text.chunks() if text.form is None else (line for _position, line in text):
        buffer += chunk
        while start := OBJECT_START.search(buffer, searched):
            element = bytes(buffer[: start.start()])
            if is_long:
                yield Piece(position, len(element), element, UnreadableReason.LINE_TOO_LONG)
            else:
                yield from _read_element(position, element, UnreadableReason.BROKEN_LINE)
            del buffer[: len(element)]
            # The beginning of this object is not that of the next.
            position, searched, is_long = position + len(element), 1, False
        searched = max(1 if OBJECT_START.match(buffer) else 0, len(buffer) - _LONGEST_START)
        if len(buffer) > LONGEST_LINE:
            element = bytes(buffer[: buffer.rfind(b"\n") + 1 or len(buffer) - _LONGEST_START])
            yield from _read_element(position, element, UnreadableReason.LINE_TOO_LONG)
            del buffer[: len(element)]
            position, searched, is_long = position + len(element), 0, True
    if is_long:
        yield Piece(position, len(buffer), bytes(buffer), UnreadableReason.LINE_TOO_LONG)
    else:
        yield from _read_element(position, bytes(buffer), UnreadableReason.CUT_LINE)


def _read_element(position: int, element: bytes, unfinished: UnreadableReason) -> Iterator[Piece]:
    """Reads an object and the lines after it, up to the next object.

    `unfinished`: why an object or a line may have no end.
    """
    size = 0
    if OBJECT_START.match(element):
        text = element.decode("utf-8", "surrogateescape")
        try:
            printed, end = _JSON.raw_decode(text)
        except (JSONDecodeError, RecursionError, ValueError):
            yield Piece(position, len(element), element, unfinished)
            return
        content = text[:end].encode("utf-8", "surrogateescape")
        is_text = _decode(content) is not None
        read = _read_object(printed) if is_text else UnreadableReason.UNDECODABLE_RECORD
        size = len(content)
        yield Piece(position, size, content, read)
    for line in element[size:].splitlines(keepends=True):
        yield Piece(position + size, len(line), line, _read_gap(line, unfinished))
        size += len(line)


def _read_gap(line: bytes, unfinished: UnreadableReason) -> UnreadableReason | None:
    """What a line that is no object reads as."""
    is_whole = line.endswith(b"\n")
    # `jq -s` makes one array of all objects.
    if not line.strip(b"[], \t\r\n") or (is_whole and is_chatter(line)):
        return None
    if unfinished is UnreadableReason.LINE_TOO_LONG and not is_whole:
        return unfinished
    if _JSON_PIECE.search(line):
        return UnreadableReason.BROKEN_LINE
    is_cut = unfinished is UnreadableReason.CUT_LINE and not is_whole
    return UnreadableReason.CUT_LINE if is_cut else UnreadableReason.NOT_DUMP_TEXT


def _read_object(printed: dict[str, Any]) -> TransactionLogText | UnreadableReason:
    try:
        key, value = printed["key"], printed["value"]
        # 3.9 calls it `version`, as it is called on disk; 4.0 calls it `type`.
        version = key["type"] if "type" in key else key["version"]
        if type(version) is not int or version not in KEY.versions:
            return UnreadableReason.UNKNOWN_KEY_VERSION
        transactional_id = key["data"]["transactionalId"]
        # JSON can contain an escaped unpaired surrogate, but a log cannot.
        transactional_id.encode()
        if not transactional_id:
            return UnreadableReason.UNDECODABLE_RECORD
        if value is None:
            return TransactionLogText(transactional_id, None)
        if value["data"] == "unknown":
            return UnreadableReason.UNKNOWN_VALUE_VERSION
        entry = read_json_value(transactional_id, value["version"], value["data"])
    except (KeyError, TypeError, ValueError, AttributeError):
        return UnreadableReason.UNDECODABLE_RECORD
    return UnreadableReason.UNDECODABLE_RECORD if entry is None else TransactionLogText(transactional_id, entry)
