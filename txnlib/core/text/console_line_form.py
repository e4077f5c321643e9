"""The text lines that a console consumer prints: up to 3.8, and 3.9 with the old formatter.

A record is `<id>::TransactionMetadata(transactionalId=<id>, producerId=…)` or `<id>::NULL`, and nothing in the id is
escaped: it may hold line feeds and whole imitated records. What decides is the echo, the id's second copy.
Rule 1: what reads as one record with an echo, line feeds and all, is one, unless each of its lines reads by itself too:
then both may be true, and neither is told.
Rule 2: a tombstone has no echo. Behind text that is no whole record, it may be the end of a longer id, and is not told,
but for the tombstone of an id with line feeds that was seen with its echo before.
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

#: Between the two copies of the id.
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
#: Also of the other form, which two texts put together hold.
_PIECE: Final = re.compile(
    rb'"transactionalId"|TransactionMetadata\(|transactionalId=|::NULL'
    rb"|, (producerId|producerEpoch|txn[A-Z]\w+|state|pendingState|topicPartitions)="
)
#: What is not told, but ends with a record's end.
_ENDED: Final = frozenset(
    {UnreadableReason.UNKNOWN_KEY_VERSION, UnreadableReason.AMBIGUOUS_RECORD, UnreadableReason.UNDECODABLE_RECORD}
)
_LINE_FEED: Final = ord("\n")
#: So many blank lines in a row are one item, as there may be millions.
_BLANKS: Final = 4_096
#: So many labels are tried as that of a record which the end of the text cuts.
_ECHOES: Final = 64
#: An id has up to 32 767 bytes, twice that if each is a line feed whose line end was converted, and stands there twice.
_WINDOW: Final = 2 * 2 * 32_767 + 64


class _Kind(Enum):
    RECORD = "RECORD"
    TOMBSTONE = "TOMBSTONE"
    CHATTER = "CHATTER"
    BLANK = "BLANK"
    UNREADABLE = "UNREADABLE"


#: What reads by itself, so that the text may well be cut here.
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
    """What a text of records one a line holds, in order; `position` is that of its first byte in the file.

    The text may come in pieces of any size. No more is held than what two copies of the longest id take, and a line, and
    each id with line feeds. Never raises.
    """
    reader = _Reader(position)
    for line, is_piece in _lines(chunks):
        reader.add(line, is_piece)
        yield from reader.out.values
        reader.out.values.clear()
    reader.finish()
    yield from reader.out.values


def _lines(chunks: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """The lines, and whether each is but a piece of one that no record can be as long as."""
    pieces: list[bytes] = []
    held, is_piece = 0, False
    for chunk in chunks:
        # `splitlines` would also split at a lone carriage return, which an id may hold.
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
    """What a line says by itself; its position is left 0."""
    size = len(line)
    if not line.endswith(b"\n"):
        reason = UnreadableReason.CUT_LINE
        return _Item(0, size, _Kind.UNREADABLE, reason=reason)
    body = _without_line_end(line)
    start_of_rest = body.rfind(_REST)
    is_null = body.endswith(NULL)
    if start_of_rest >= 0 and not is_null:
        # Two copies of the id and the label: the length alone tells where each is.
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
    """Whether `text[start:end]` is twice the same id, and the label at `label` between them."""
    return text.startswith(ECHO_LABEL, label) and text[start:label] == text[label + len(ECHO_LABEL) : end]


def _record(position: int, text: bytes, raw_id: bytes, fields: bytes) -> _Item:
    """The record of an id that was found with its echo."""
    found = _FIELDS.fullmatch(fields)
    entry = transactional_id = None
    if found is not None:
        transactional_id = _decode(raw_id)
        entry = None if transactional_id is None else read_printed_value(transactional_id, found.groupdict())
    if transactional_id is None or entry is None:
        return _Item(position, len(text), _Kind.UNREADABLE, reason=UnreadableReason.UNDECODABLE_RECORD)
    return _Item(position, len(text), _Kind.RECORD, transactional_id, entry)


def _read_tombstone(raw_id: bytes, size: int) -> _Item:
    transactional_id = _decode(raw_id)
    if not transactional_id:
        return _Item(0, size, _Kind.UNREADABLE, reason=UnreadableReason.UNDECODABLE_RECORD)
    # Behind a record that lost its line feed, its text would be the beginning of the id.
    if is_chatter(raw_id) or ECHO_LABEL in raw_id:
        return _Item(0, size, _Kind.UNREADABLE, reason=UnreadableReason.AMBIGUOUS_RECORD)
    return _Item(0, size, _Kind.TOMBSTONE, transactional_id)


def _decode(raw_id: bytes) -> str | None:
    """The id; None if it is no UTF-8, in which the formatter writes whatever the console's charset is."""
    try:
        return raw_id.decode()
    except UnicodeDecodeError:
        return None


class _Reader:
    """Holds back what a record of several lines could still turn out to hold."""

    def __init__(self, position: int) -> None:
        self.out = ConsoleOutput()
        self.out.end = position
        #: The text held back, and the position of its first byte.
        self._text = bytearray()
        self._start = position
        self._items: deque[_Item] = deque()
        #: Where held lines start that hold more than one label. A record of several lines whose last one reads as a record
        #: by itself has an id with a label in it, so that the label between its copies is not the first of its line.
        self._labelled_twice: deque[int] = deque()
        #: Last line of an id with line feeds -> such ids, each seen with its echo.
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
                # Whole or not: behind an echo they are those of a record, and what its id imitates is none.
                self._find_records_ending(start, line, body[rest:])
        # An echo that ends in the next line starts no further back than this.
        self._release(start + len(line) - _WINDOW)

    def _lengthen_blank(self) -> bool:
        """Adds an empty line to those before it; False if there are none, or enough."""
        last = self._items[-1] if self._items else None
        if last is None or last.kind is not _Kind.BLANK or last.length >= _BLANKS:
            return False
        self._text += b"\n"
        self._items[-1] = last._replace(length=last.length + 1)
        return True

    def _take_back(self, start: int) -> list[_Item]:
        """Takes the items from a place on, the last one first; blank lines are parted there."""
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
        """Hands out all that is held back; the text ends here."""
        self._name_cut_record()
        self._release(self._start + len(self._text) + 1)
        self.out.finish()

    def _find_records_ending(self, last_line: int, line: bytes, fields: bytes) -> None:
        """Looks for records that start lines before and whose echo ends in this line, before `fields`."""
        text = self._text
        end = last_line - self._start + len(_without_line_end(line)) - len(fields)
        found = []
        label = text.find(ECHO_LABEL)
        while 0 <= label < last_line - self._start:
            start = label - (end - label - len(ECHO_LABEL))
            if self._is_line_start(start) and _is_echoed(text, start, label, end):
                found.append((start + self._start, bytes(text[start:label])))
            label = text.find(ECHO_LABEL, label + 1)
        for _start, raw_id in found:
            self._remember(raw_id)
        if not found:
            return
        start, raw_id = found[0]
        record = _record(start, bytes(text[start - self._start :]), raw_id, fields)
        if len(found) > 1 or (b"\r\n" in raw_id and line.endswith(b"\r\n")):
            # Line ends were converted, and nobody knows which of them were line feeds before.
            record = _Item(start, record.length, _Kind.UNREADABLE, reason=UnreadableReason.AMBIGUOUS_RECORD)
        self._join(record)

    def _find_tombstone_ending(self, last_line: int, line: bytes, last_of_id: bytes) -> None:
        """Looks for a known id of several lines that ends in this line."""
        end = last_line - self._start + len(last_of_id)
        known = self._long_ids.get(last_of_id, ())
        found = [raw_id for raw_id in known if self._text.endswith(raw_id, 0, end) and self._is_line_start(end - len(raw_id))]
        if not found:
            return
        raw_id = max(found, key=len)
        start = end - len(raw_id)
        transactional_id = _decode(raw_id) or ""
        is_converted = b"\r\n" in raw_id and line.endswith(b"\r\n")
        kind = _Kind.UNREADABLE if len(found) > 1 or is_converted or not transactional_id else _Kind.TOMBSTONE
        length, reason = len(self._text) - start, UnreadableReason.AMBIGUOUS_RECORD
        self._join(_Item(start + self._start, length, kind, transactional_id, reason=reason))

    def _remember(self, raw_id: bytes) -> None:
        self._long_ids.setdefault(raw_id.rpartition(b"\n")[2], set()).add(raw_id)

    def _is_line_start(self, start: int) -> bool:
        """Whether a line starts at this place of the text held back."""
        return start == 0 or (start > 0 and self._text[start - 1] == _LINE_FEED)

    def _join(self, whole: _Item) -> None:
        """Puts one item in the place of those it is made of; ambiguous if they all read by themselves, too."""
        replaced = self._take_back(whole.position)
        first = replaced[-1].position
        if first < whole.position or all(item.kind in _WHOLE for item in replaced):
            length = whole.position + whole.length - first
            whole = _Item(first, length, _Kind.UNREADABLE, reason=UnreadableReason.AMBIGUOUS_RECORD)
        self._items.append(whole)

    def _name_cut_record(self) -> None:
        """Looks for a record of several lines whose echo has begun when the text ends, as far as whole lines tell."""
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
        """Hands out the items that start before `end`."""
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
