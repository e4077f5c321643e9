"""Output of `kafka-console-consumer.sh --topic __transaction_state --formatter …`, of any version.

Rule 1: a file has one form, lines or JSON, as one run of one tool prints it. An id may contain a perfect record of the
other form. Only white space and chatter can be between JSON objects, so if there are record lines, the form is lines.
Rule 2: text never raises, and every byte is accounted for.
Kafka: `TransactionLogMessageFormatter` of `kafka.coordinator.transaction.TransactionLog` and of
`org.apache.kafka.tools.consumer`, `TransactionMetadata.toString`; docs/rules/formats.md#records-of-a-console-consumer.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from json import JSONDecodeError, JSONDecoder
from typing import Any, Final

from txnlib.core.kafka.transaction_log import KEY, TransactionLogEntry
from txnlib.core.text.coordinator_text import read_json_value, read_printed_value
from txnlib.core.text.events import (
    Chatter,
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
from txnlib.core.text.lines import BYTE_ORDER_MARK, LONGEST_LINE, LongLine, TextLines
from txnlib.core.text.reasons import UnreadableReason

#: Number of bytes that decide the form of a text.
_HEAD_BYTES: Final = 1 << 20
_LINE_FORM: Final = re.compile(rb"::TransactionMetadata\(transactionalId=|::NULL\r?(?:\n|\Z)")


def read_console_text(text: TextLines) -> Iterator[Printed]:
    """The events, in order. Positions are in the text without what each line carries; lengths add up to its size."""
    if text.position:
        yield Chatter(0, len(BYTE_ORDER_MARK))
    head = text.head(_HEAD_BYTES)
    if text.form is not None:
        head = b"".join(line for _position, line in TextLines((head,)))
        if text.form.says:
            yield Unreadable(text.position, 0, UnreadableReason.LINE_FORM, text.form.says)
    yield from (read_json_form if _is_json(head) else read_text_form)(text)


def _is_json(head: bytes) -> bool:
    """Whether the JSON objects in a text are records, not ids that imitate them."""
    if not OBJECT_START.search(head):
        return False
    has_records = False
    for printed in read_json_form(TextLines((head,))):
        if type(printed) is ConsoleRecord:
            has_records = True
        elif not isinstance(printed, ConsoleEnd) and _LINE_FORM.search(
            head, printed.position, printed.position + printed.length
        ):
            is_object = OBJECT_START.match(head, printed.position) is not None
            if not (is_object and type(printed) is Unreadable and printed.reason is UnreadableReason.CUT_LINE):
                return False
    return has_records or not _LINE_FORM.search(head)


class ConsoleOutput:
    """Events that were read but not yielded yet. Adjacent ranges of one kind are merged."""

    def __init__(self, position: int) -> None:
        self.values: list[Printed] = []
        self._last: Chatter | Unreadable | None = None
        #: The position after them.
        self.end = position
        self.is_torn = self.is_ended_early = False

    @property
    def last_reason(self) -> UnreadableReason | None:
        """The reason if the text so far ends with an unreadable range, else None."""
        return self._last.reason if type(self._last) is Unreadable else None

    def record(self, length: int, transactional_id: str, entry: TransactionLogEntry | None) -> None:
        self._settle()
        self.values.append(ConsoleRecord(self.end, length, transactional_id, entry))
        self.end += length
        self.is_torn = False

    def chatter(self, text: bytes) -> None:
        if not text:
            return
        self.is_ended_early |= ends_consumer(text)
        if type(self._last) is not Chatter:
            self._settle()
            self._last = Chatter(self.end, 0)
        self._last = self._last._replace(length=self._last.length + len(text))
        self.end += len(text)

    def unreadable(self, text: bytes, reason: UnreadableReason) -> None:
        head, size = (text.head, text.size) if type(text) is LongLine else (text, len(text))
        if not size:
            return
        if type(self._last) is not Unreadable or self._last.reason is not reason:
            self._settle()
            self._last = Unreadable(self.end, 0, reason, sample_of(head))
        self._last = self._last._replace(length=self._last.length + size)
        self.end += size
        self.is_torn = reason is UnreadableReason.CUT_LINE

    def finish(self) -> None:
        """Adds all remaining events, and the end of the text."""
        self._settle()
        tail = DumpTail.TORN if self.is_torn else DumpTail.CLEAN
        self.values.append(ConsoleEnd(self.end, DumpTail.CORRUPT if self.is_ended_early else tail))

    def _settle(self) -> None:
        if self._last is not None:
            self.values.append(self._last)
            self._last = None


# ---- Lines


#: The text between the two copies of the id.
ECHO_LABEL: Final = b"::TransactionMetadata(transactionalId="
NULL: Final = b"::NULL"
_UNKNOWN_KEY: Final = re.compile(rb"unknown::version=-?\d{1,5}")
_REST: Final = b", producerId="
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
    rb"|, (producerId|producerEpoch|txn[A-Z]\w+|state|pendingState|topicPartitions)="
)
#: Reasons of text that is no record, but ends where a record ends.
_ENDED: Final = frozenset(
    {UnreadableReason.UNKNOWN_KEY_VERSION, UnreadableReason.AMBIGUOUS_RECORD, UnreadableReason.UNDECODABLE_RECORD}
)
#: Lines without any text, of which there may be millions.
_EMPTY_LINES: Final = re.compile(rb"\n{1,4096}")
#: Number of bytes after a label by which the line that they repeat is looked up.
_LOOKED_UP: Final = 64
#: Maximum number of labels to try as that of a record that the end of the text truncates.
_CUT_LABELS: Final = 64
#: Maximum size of a printed id: 32 767 bytes on disk, and twice that if each is a line feed whose line end was
#: converted.
_LONGEST_ID: Final = 2 * 32_767
#: Size of the text to keep: an id is printed twice.
_WINDOW: Final = 2 * _LONGEST_ID + 64


def read_text_form(text: TextLines) -> Iterator[Printed]:
    """The events of a text with one record per line, in order: up to 3.8, and 3.9 with the old formatter.

    A record is `<id>::TransactionMetadata(transactionalId=<id>, producerId=…)` or `<id>::NULL`. Nothing in the id is
    escaped, so it may contain line feeds and imitated records.
    Rule 1: One line is read as one record. Lines that together read as a record of an id with line feeds are ambiguous,
    whatever each of them reads as (docs/decisions/0014).
    Rule 2: A tombstone prints its id only once. After text that is no complete record, it may be the end of an id with
    line feeds, and is ambiguous.
    Memory is bounded by two copies of the longest id, a line, and all ids with line feeds. Never raises.
    """
    reader = _LineReader(text.position)
    for _position, line in text:
        reader.add(line)
        if reader.out.values:
            yield from reader.out.values
            reader.out.values.clear()
    reader.finish()
    yield from reader.out.values


def _read_line(line: bytes) -> TransactionLogText | UnreadableReason | None:
    """What a line reads as by itself; None for white space and chatter."""
    if not line.endswith(b"\n"):
        return UnreadableReason.CUT_LINE
    body = line.rstrip()
    start_of_rest = body.rfind(_REST)
    is_null = body.endswith(NULL)
    if start_of_rest >= 0 and not is_null:
        # Two copies of the id and a label: the length alone determines where each copy is.
        id_size, odd = divmod(start_of_rest - len(ECHO_LABEL), 2)
        raw_id = body[: max(id_size, 0)]
        if not odd and raw_id and body.startswith(raw_id + ECHO_LABEL + raw_id + _REST):
            return _read_record(raw_id, body[start_of_rest:])
    if is_null:
        return _read_tombstone(body[: -len(NULL)])
    if not line.strip() or is_chatter(line):
        return None
    if _UNKNOWN_KEY.fullmatch(body):
        return UnreadableReason.UNKNOWN_KEY_VERSION
    return UnreadableReason.BROKEN_LINE if _PIECE.search(body) else UnreadableReason.NOT_DUMP_TEXT


def _read_record(raw_id: bytes, fields: bytes) -> TransactionLogText | UnreadableReason:
    """The record of an id that is printed twice."""
    match, transactional_id = _FIELDS.fullmatch(fields), _decode(raw_id)
    entry = (
        None if match is None or transactional_id is None else read_printed_value(transactional_id, match.groupdict())
    )
    if transactional_id is None or entry is None:
        return UnreadableReason.UNDECODABLE_RECORD
    return TransactionLogText(transactional_id, entry)


def _read_tombstone(raw_id: bytes) -> TransactionLogText | UnreadableReason:
    transactional_id = _decode(raw_id)
    if not transactional_id:
        return UnreadableReason.UNDECODABLE_RECORD
    # If a record before it lost its line feed, that record's text would be the beginning of this id.
    if is_chatter(raw_id) or ECHO_LABEL in raw_id:
        return UnreadableReason.AMBIGUOUS_RECORD
    return TransactionLogText(transactional_id, None)


def _decode(raw_id: bytes) -> str | None:
    """The id; None if it is not UTF-8, the formatter's encoding in every console charset."""
    try:
        return raw_id.decode()
    except UnicodeDecodeError:
        return None


class _LineReader:
    """Reads a line once all text is known that a record beginning with this line may have. Until then, the line is
    kept."""

    def __init__(self, position: int) -> None:
        self.out = ConsoleOutput(position)
        #: The text kept, from `out.end` on.
        self._text = bytearray()
        #: The labels in the text kept: (position, beginning of the text after it); and beginning -> positions.
        self._labels: deque[tuple[int, bytes]] = deque()
        self._echoes: dict[bytes, deque[int]] = {}
        #: Beginning of an id with line feeds -> all such ids that were printed twice.
        self._long_ids: dict[bytes, set[bytes]] = {}
        #: Position in the text where the last record of an id with line feeds ends.
        self._ambiguous_until = 0
        self._is_boundary = True

    def add(self, line: bytes) -> None:
        """Takes the next line of the text."""
        if type(line) is LongLine:
            self._read(len(self._text))
            self.out.unreadable(line, UnreadableReason.LINE_TOO_LONG)
            self._is_boundary = False
            return
        size, held = len(line), len(self._text)
        self._text += line
        # Further labels of a long line are followed by more than an id.
        label = line.find(ECHO_LABEL, size - _WINDOW if size > _WINDOW else 0)
        while label >= 0:
            after = label + len(ECHO_LABEL)
            beginning, position = line[after : after + _LOOKED_UP], self.out.end + held + label
            self._labels.append((position, beginning))
            self._echoes.setdefault(beginning, deque()).append(position)
            label = line.find(ECHO_LABEL, after)
        if held + size > _WINDOW:
            self._read(held + size - _WINDOW)

    def finish(self) -> None:
        """Reads the text kept, at the end of the text."""
        self._read(self._find_cut_record())
        self.out.unreadable(bytes(self._text), UnreadableReason.CUT_LINE)
        self.out.finish()

    def _read(self, size: int) -> None:
        """Reads the lines that start in the first `size` bytes of the text kept."""
        end = self.out.end + size
        while (start := self.out.end) < end:
            empty = _EMPTY_LINES.match(self._text)
            if (
                empty is not None
                and start >= self._ambiguous_until
                and b"\n" not in self._echoes
                and b"\n" not in self._long_ids
            ):
                self.out.chatter(empty[0])
                self._is_boundary = False
            else:
                line = bytes(self._text[: self._text.find(b"\n") + 1 or len(self._text)])
                self._note_long_id(line)
                self._report(line)
            del self._text[: self.out.end - start]
            while self._labels and self._labels[0][0] < self.out.end:
                _label, beginning = self._labels.popleft()
                self._echoes[beginning].popleft()
                if not self._echoes[beginning]:
                    del self._echoes[beginning]

    def _report(self, line: bytes) -> None:
        is_ambiguous = self.out.end < self._ambiguous_until
        read = UnreadableReason.AMBIGUOUS_RECORD if is_ambiguous else _read_line(line)
        if isinstance(read, TransactionLogText) and read.entry is None and not self._is_boundary:
            # Whatever it is, it ends here.
            read = UnreadableReason.AMBIGUOUS_RECORD
        if isinstance(read, TransactionLogText):
            self.out.record(len(line), *read)
            self._is_boundary = True
        elif read is None:
            self.out.chatter(line)
            self._is_boundary = bool(line.strip())
        else:
            self.out.unreadable(line, read)
            self._is_boundary = read in _ENDED

    def _note_long_id(self, line: bytes) -> None:
        """Notes where a record ends whose id begins with this line and has more lines. Only the second copy of the id
        shows it."""
        text, beginning = self._text, line[:_LOOKED_UP]
        for label in self._echoes.get(beginning, ()):
            size = label - self.out.end
            echo = size + len(ECHO_LABEL)
            if size > _LONGEST_ID:
                break
            if len(line) <= size and text.startswith(_REST, echo + size) and text.startswith(text[:size], echo):
                self._long_ids.setdefault(beginning, set()).add(bytes(text[:size]))
                self._note_end(echo + size)
        for raw_id in self._long_ids.get(beginning, ()):
            if text.startswith((raw_id + NULL + b"\n", raw_id + NULL + b"\r\n")):
                self._note_end(len(raw_id))

    def _note_end(self, index: int) -> None:
        """Notes that a record ends with the line at this index of the text kept."""
        end = self._text.find(b"\n", index) + 1 or len(self._text)
        self._ambiguous_until = max(self._ambiguous_until, self.out.end + end)

    def _find_cut_record(self) -> int:
        """Where a record begins whose second copy of an id with line feeds is cut off, as far as complete lines
        show."""
        text = self._text
        starts = [len(text)]
        for position, _beginning in list(self._labels)[-_CUT_LABELS:]:
            label = position - self.out.end
            echo = text[label + len(ECHO_LABEL) : text.rfind(b"\n") + 1]
            if echo and text.startswith(echo, 0, label):
                return 0
            if echo and (before := text.find(b"\n" + echo, 0, label)) >= 0:
                starts.append(before + 1)
        return min(starts)


# ---- JSON objects


#: Accepts the white space that `jq` prints.
OBJECT_START: Final = re.compile(rb'\{\s{0,16}"key"\s{0,16}:')
_LONGEST_START: Final = 40
#: Pieces of records, also of the line form: two texts may have been concatenated.
_JSON_PIECE: Final = re.compile(
    rb'"(transactionalId|producerId|transactionStatus|transactionPartitions|version)"\s*:|TransactionMetadata\(|::NULL\s*$'
)
_JSON: Final = JSONDecoder()


def read_json_form(text: TextLines) -> Iterator[Printed]:
    """The events of a text of JSON objects, in order: 3.9 with the new formatter, and every version from 4.0 on.

    Memory is bounded by one object, the text after it, and a chunk. Never raises.
    """
    out = ConsoleOutput(text.position)
    buffer = bytearray()
    searched = 0
    for chunk in text.chunks() if text.form is None else (line for _position, line in text):
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
    """Reads an object and the text after it, up to the next object. `unfinished`: why an object or a line may have no
    end."""
    if not OBJECT_START.match(element):
        _read_gap(out, element, unfinished)
        return
    text = element.decode("utf-8", "surrogateescape")
    try:
        printed, end = _JSON.raw_decode(text)
    except (JSONDecodeError, RecursionError, ValueError):
        out.unreadable(element, unfinished)
        return
    length = len(text[:end].encode("utf-8", "surrogateescape"))
    read = UnreadableReason.UNDECODABLE_RECORD if _decode(element[:length]) is None else _read_object(printed)
    if isinstance(read, TransactionLogText):
        out.record(length, *read)
    else:
        out.unreadable(element[:length], read)
    _read_gap(out, element[length:], unfinished)


def _read_gap(out: ConsoleOutput, text: bytes, unfinished: UnreadableReason) -> None:
    if out.last_reason is UnreadableReason.LINE_TOO_LONG:
        # The rest of it.
        out.unreadable(text, UnreadableReason.LINE_TOO_LONG)
        return
    for line in text.splitlines(keepends=True):
        if not line.strip() or (is_chatter(line) and line.endswith(b"\n")):
            out.chatter(line)
        elif unfinished is UnreadableReason.LINE_TOO_LONG and not line.endswith(b"\n"):
            out.unreadable(line, unfinished)
        elif _JSON_PIECE.search(line):
            out.unreadable(line, UnreadableReason.BROKEN_LINE)
        else:
            is_cut = unfinished is UnreadableReason.CUT_LINE and not line.endswith(b"\n")
            out.unreadable(line, UnreadableReason.CUT_LINE if is_cut else UnreadableReason.NOT_DUMP_TEXT)


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
