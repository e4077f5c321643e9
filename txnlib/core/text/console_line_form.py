"""Text lines that a console consumer prints: up to 3.8, and 3.9 with the old formatter.

A record is `<id>::TransactionMetadata(transactionalId=<id>, producerId=…)` or `<id>::NULL`. Nothing in the id is escaped, so it may
contain line feeds and imitated records. The echo, the second copy of the id, decides.
Rule 1: Text that reads as one record with an echo, line feeds included, is one record. If each of its lines also reads by itself,
both readings are possible, and the text is reported as ambiguous.
Rule 2: A tombstone has no echo. After text that is no complete record, it may be the end of a longer id, and is reported as
ambiguous. The exception is the tombstone of an id with line feeds that was seen with its echo before.
Kafka: `TransactionLog.TransactionLogMessageFormatter`, `TransactionMetadata.toString`; formats.md 2.3.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Final, NamedTuple

from txnlib.core.kafka.transaction_log import TransactionLogEntry
from txnlib.core.text.console_events import ConsoleOutput, Printed, is_blank, is_chatter
from txnlib.core.text.coordinator_text import LONGEST_RECORD, read_printed_value
from txnlib.core.text.tool_messages import UnreadableReason

#: The text between the two copies of the id.
ECHO_LABEL: Final = b"::TransactionMetadata(transactionalId="
NULL: Final = b"::NULL"
_UNKNOWN_KEY: Final = re.compile(rb"unknown::version=-?\d{1,5}")
_REST: Final = b", producerId="
#: Scala 2.13 prints `HashSet(a, b)`, 2.12 and 2.11 `Set(a, b)`. A record is never pending.
_FIELDS: Final = re.compile(
    rb", producerId=(?P<producer_id>-?\d{1,19}), producerEpoch=(?P<producer_epoch>-?\d{1,19}), "
    rb"txnTimeoutMs=(?P<timeout>-?\d{1,19}), state=(?P<state>[A-Za-z]+), pendingState=None, "
    rb"topicPartitions=(?:Hash)?Set\((?P<partitions>[A-Za-z0-9._, -]*)\), "
    rb"txnStartTimestamp=(?P<start>-?\d{1,19}), txnLastUpdateTimestamp=(?P<last_update>-?\d{1,19})\)"
)
#: Pieces of records, also of the JSON form: two texts may have been concatenated.
_PIECE: Final = re.compile(
    rb'"transactionalId"|TransactionMetadata\(|transactionalId=|::NULL'
    rb"|, (producerId|producerEpoch|txn[A-Z]\w+|state|pendingState|topicPartitions)="
)
#: Reasons of text that is not yielded as a record, but ends where a record ends.
_ENDED: Final = frozenset(
    {UnreadableReason.UNKNOWN_KEY_VERSION, UnreadableReason.AMBIGUOUS_RECORD, UnreadableReason.UNDECODABLE_RECORD}
)
_LINE_FEED: Final = ord("\n")
#: Maximum number of consecutive blank lines per item; there may be millions.
_BLANKS: Final = 4_096
#: Maximum number of labels to try as that of a record that the end of the text truncates.
_ECHOES: Final = 64
#: Size of the text to keep: an id has up to 32 767 bytes, twice that if each is a line feed whose line end was converted, and is
#: printed twice.
_WINDOW: Final = 2 * 2 * 32_767 + 64


class _Kind(Enum):
    RECORD = "RECORD"
    TOMBSTONE = "TOMBSTONE"
    CHATTER = "CHATTER"
    BLANK = "BLANK"
    UNREADABLE = "UNREADABLE"


#: Kinds of items that are complete by themselves, so that a record may begin after them.
_WHOLE: Final = frozenset({_Kind.RECORD, _Kind.TOMBSTONE, _Kind.CHATTER})


class _Item(NamedTuple):
    """A line, or the lines of one record."""

    position: int
    length: int
    kind: _Kind
    transactional_id: str = ""
    entry: TransactionLogEntry | None = None
    reason: UnreadableReason = UnreadableReason.NOT_DUMP_TEXT


def read_text_form(chunks: Iterable[bytes], position: int = 0) -> Iterator[Printed]:
    """The events of a text with one record per line, in order. `position` is the position of its first byte in the file.

    The text may come in chunks of any size. Memory is bounded by two copies of the longest id, a line, and all ids with line feeds.
    Never raises.
    """
    reader = _Reader(position)
    for line, is_piece in _lines(chunks):
        reader.add(line, is_piece)
        yield from reader.out.values
        reader.out.values.clear()
    reader.finish()
    yield from reader.out.values


def _lines(chunks: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """The lines, and whether each is only a piece of a line that is longer than any record."""
    pieces: list[bytes] = []
    held, is_piece = 0, False
    for chunk in chunks:
        # `splitlines` would also split at a lone carriage return, which an id may contain.
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            yield b"".join([*pieces, line, b"\n"]), is_piece
            pieces, held, is_piece = [], 0, False
        if rest:
            pieces.append(rest)
            held += len(rest)
        if held > (0 if is_piece else LONGEST_RECORD):
            joined = b"".join(pieces)
            pieces, held, is_piece = [], 0, True
            yield joined, True
    if held:
        yield b"".join(pieces), is_piece


def _read_line(line: bytes) -> _Item:
    """The item of a line by itself, with position 0."""
    size = len(line)
    if not line.endswith(b"\n"):
        reason = UnreadableReason.CUT_LINE
        return _Item(0, size, _Kind.UNREADABLE, reason=reason)
    body = _without_line_end(line)
    start_of_rest = body.rfind(_REST)
    is_null = body.endswith(NULL)
    if start_of_rest >= 0 and not is_null:
        # Two copies of the id and a label: the length alone determines where each copy is.
        id_size, odd = divmod(start_of_rest - len(ECHO_LABEL), 2)
        if not odd and id_size > 0 and _is_echoed(body, 0, id_size, start_of_rest):
            return _record(0, line, body[:id_size], body[start_of_rest:])
    if is_null:
        return _read_tombstone(body[: -len(NULL)], size)
    if is_blank(line):
        return _Item(0, size, _Kind.BLANK)
    if is_chatter(line):
        return _Item(0, size, _Kind.CHATTER)
    if _UNKNOWN_KEY.fullmatch(body):
        reason = UnreadableReason.UNKNOWN_KEY_VERSION
    else:
        reason = UnreadableReason.BROKEN_LINE if _PIECE.search(body) else UnreadableReason.NOT_DUMP_TEXT
    return _Item(0, size, _Kind.UNREADABLE, reason=reason)


def _without_line_end(line: bytes) -> bytes:
    return line[:-2] if line.endswith(b"\r\n") else line[:-1]


def _is_echoed(text: bytes | bytearray, start: int, label: int, end: int) -> bool:
    """Whether `text[start:end]` is the same id twice, with the label at `label` between the copies."""
    return text.startswith(ECHO_LABEL, label) and text[start:label] == text[label + len(ECHO_LABEL) : end]


def _record(position: int, text: bytes, raw_id: bytes, fields: bytes) -> _Item:
    """The record of an id that was printed with its echo."""
    match = _FIELDS.fullmatch(fields)
    entry = transactional_id = None
    if match is not None:
        transactional_id = _decode(raw_id)
        entry = None if transactional_id is None else read_printed_value(transactional_id, match.groupdict())
    if transactional_id is None or entry is None:
        return _Item(position, len(text), _Kind.UNREADABLE, reason=UnreadableReason.UNDECODABLE_RECORD)
    return _Item(position, len(text), _Kind.RECORD, transactional_id, entry)


def _read_tombstone(raw_id: bytes, size: int) -> _Item:
    transactional_id = _decode(raw_id)
    if not transactional_id:
        return _Item(0, size, _Kind.UNREADABLE, reason=UnreadableReason.UNDECODABLE_RECORD)
    # If a record before it lost its line feed, that record's text would be the beginning of this id.
    if is_chatter(raw_id) or ECHO_LABEL in raw_id:
        return _Item(0, size, _Kind.UNREADABLE, reason=UnreadableReason.AMBIGUOUS_RECORD)
    return _Item(0, size, _Kind.TOMBSTONE, transactional_id)


def _decode(raw_id: bytes) -> str | None:
    """The id; None if it is not UTF-8, the formatter's encoding in every console charset."""
    try:
        return raw_id.decode()
    except UnicodeDecodeError:
        return None


class _Reader:
    """Keeps back the lines that may still turn out to be part of a record of several lines."""

    def __init__(self, position: int) -> None:
        self.out = ConsoleOutput()
        self.out.end = position
        #: The text kept back, and the position of its first byte.
        self._text = bytearray()
        self._start = position
        self._items: deque[_Item] = deque()
        #: Positions of kept lines with more than one label. If the last line of a record of several lines reads as a record by
        #: itself, the id contains a label, so the label between its copies is not the first in its line.
        self._labelled_twice: deque[int] = deque()
        #: Last line of an id with line feeds -> the ids, each seen with its echo.
        self._long_ids: dict[bytes, set[bytes]] = {}
        self._is_boundary = True

    def add(self, line: bytes, is_piece: bool) -> None:
        """Takes the next line of the text."""
        start = self._start + len(self._text)
        if line == b"\n" and not is_piece and self._lengthen_blank():
            return
        item = _read_line(line)
        if is_piece:
            item = _Item(0, len(line), _Kind.UNREADABLE, reason=UnreadableReason.BROKEN_LINE)
        self._text += line
        self._items.append(item._replace(position=start))
        if line.count(ECHO_LABEL) > 1:
            self._labelled_twice.append(start)
        body = _without_line_end(line) if line.endswith(b"\n") else b""
        if item.kind is not _Kind.RECORD or self._labelled_twice:
            rest = body.rfind(_REST)
            if body.endswith(NULL):
                self._find_tombstone_ending(start, line, body[: -len(NULL)])
            elif rest >= 0:
                # Complete or not, fields after an echo are those of a record, and a record that its id imitates is none.
                self._find_records_ending(start, line, body[rest:])
        # An echo that ends in the next line starts no earlier than this.
        self._release(start + len(line) - _WINDOW)

    def _lengthen_blank(self) -> bool:
        """Adds an empty line to the blank item before it; False if there is none, or if it is long enough."""
        last = self._items[-1] if self._items else None
        if last is None or last.kind is not _Kind.BLANK or last.length >= _BLANKS:
            return False
        self._text += b"\n"
        self._items[-1] = last._replace(length=last.length + 1)
        return True

    def _take_back(self, start: int) -> list[_Item]:
        """Removes and returns the items that end after `start`, the last one first. A blank item is split there."""
        taken: list[_Item] = []
        while self._items and self._items[-1].position + self._items[-1].length > start:
            taken.append(self._items.pop())
        if taken and taken[-1].kind is _Kind.BLANK and taken[-1].position < start:
            blank = taken.pop()
            length = start - blank.position
            self._items.append(blank._replace(length=length))
            taken.append(blank._replace(position=start, length=blank.length - length))
        return taken

    def finish(self) -> None:
        """Yields all items kept back, at the end of the text."""
        self._name_cut_record()
        self._release(self._start + len(self._text) + 1)
        self.out.finish()

    def _find_records_ending(self, last_line: int, line: bytes, fields: bytes) -> None:
        """Looks for records that start in an earlier line and whose echo ends in this line, before `fields`."""
        text = self._text
        end = last_line - self._start + len(_without_line_end(line)) - len(fields)
        records = []
        label = text.find(ECHO_LABEL)
        while 0 <= label < last_line - self._start:
            start = label - (end - label - len(ECHO_LABEL))
            if self._is_line_start(start) and _is_echoed(text, start, label, end):
                records.append((start + self._start, bytes(text[start:label])))
            label = text.find(ECHO_LABEL, label + 1)
        for _start, raw_id in records:
            self._remember(raw_id)
        if not records:
            return
        start, raw_id = records[0]
        record = _record(start, bytes(text[start - self._start :]), raw_id, fields)
        if len(records) > 1 or (b"\r\n" in raw_id and line.endswith(b"\r\n")):
            # Line ends were converted, and it is unknown which of them were line feeds before.
            record = _Item(start, record.length, _Kind.UNREADABLE, reason=UnreadableReason.AMBIGUOUS_RECORD)
        self._join(record)

    def _find_tombstone_ending(self, last_line: int, line: bytes, last_of_id: bytes) -> None:
        """Looks for a remembered id of several lines that ends in this line."""
        end = last_line - self._start + len(last_of_id)
        raw_ids = self._long_ids.get(last_of_id, ())
        matches = [raw_id for raw_id in raw_ids if self._text.endswith(raw_id, 0, end) and self._is_line_start(end - len(raw_id))]
        if not matches:
            return
        raw_id = max(matches, key=len)
        start = end - len(raw_id)
        transactional_id = _decode(raw_id) or ""
        is_converted = b"\r\n" in raw_id and line.endswith(b"\r\n")
        kind = _Kind.UNREADABLE if len(matches) > 1 or is_converted or not transactional_id else _Kind.TOMBSTONE
        length, reason = len(self._text) - start, UnreadableReason.AMBIGUOUS_RECORD
        self._join(_Item(start + self._start, length, kind, transactional_id, reason=reason))

    def _remember(self, raw_id: bytes) -> None:
        self._long_ids.setdefault(raw_id.rpartition(b"\n")[2], set()).add(raw_id)

    def _is_line_start(self, start: int) -> bool:
        """Whether a line starts at this index of the text kept back."""
        return start == 0 or (start > 0 and self._text[start - 1] == _LINE_FEED)

    def _join(self, whole: _Item) -> None:
        """Replaces items by the one record that they form; by an ambiguous item if each of them also reads by itself."""
        replaced = self._take_back(whole.position)
        first = replaced[-1].position
        if first < whole.position or all(item.kind in _WHOLE for item in replaced):
            length = whole.position + whole.length - first
            whole = _Item(first, length, _Kind.UNREADABLE, reason=UnreadableReason.AMBIGUOUS_RECORD)
        self._items.append(whole)

    def _name_cut_record(self) -> None:
        """Looks for a record of several lines whose echo is truncated by the end of the text, as far as complete lines show."""
        text = self._text
        label, tries = text.find(ECHO_LABEL), _ECHOES
        while label >= 0 and tries:
            tries -= 1
            echo = text[label + len(ECHO_LABEL) : text.rfind(b"\n") + 1]
            start = -1 if not echo else 0 if text.startswith(echo, 0, label) else text.find(b"\n" + echo, 0, label) + 1 or -1
            if start >= 0:
                self._join_cut(start + self._start)
                return
            label = text.find(ECHO_LABEL, label + 1)

    def _join_cut(self, start: int) -> None:
        end = self._start + len(self._text)
        start = min([start, *(item.position for item in self._take_back(start))])
        self._items.append(_Item(start, end - start, _Kind.UNREADABLE, reason=UnreadableReason.CUT_LINE))

    def _release(self, end: int) -> None:
        """Yields the items that start before `end`."""
        while self._items and (first := self._items[0]).position < end:
            if first.kind is _Kind.BLANK and first.position + first.length > end:
                break
            item = self._items.popleft()
            with memoryview(self._text) as held:
                text = bytes(held[: item.length])
            del self._text[: item.length]
            self._start += item.length
            self._hand_out(item, text)
        while self._labelled_twice and self._labelled_twice[0] < self._start:
            self._labelled_twice.popleft()

    def _hand_out(self, item: _Item, text: bytes) -> None:
        if item.kind is _Kind.TOMBSTONE and not self._is_boundary:
            self.out.unreadable(item.position, text, UnreadableReason.AMBIGUOUS_RECORD)
            # Whatever it was, it ended here.
            self._is_boundary = True
            return
        if item.kind in (_Kind.RECORD, _Kind.TOMBSTONE):
            self.out.record(item.position, item.length, item.transactional_id, item.entry)
        elif item.kind is _Kind.UNREADABLE:
            self.out.unreadable(item.position, text, item.reason)
        else:
            self.out.chatter(item.position, text)
        self._is_boundary = item.kind in _WHOLE or item.reason in _ENDED
