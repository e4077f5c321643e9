"""Record lines of `kafka-dump-log.sh`, and the free text after them.

Keys, payloads and header keys are printed unescaped, line feeds included. Their sizes are printed, too. So contents can be
measured, unless the console has replaced characters or a decoder has printed other text (docs/rules/formats.md#imitated-lines).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from txnlib.core.kafka.record_batch import ControlType
from txnlib.core.text.batch_chain import Line, Lines
from txnlib.core.text.coordinator_text import (
    ID_LABELS,
    TransactionLogText,
    read_transaction_log_text,
    shortest_text,
)
from txnlib.core.text.dump_lines import LONGEST_METADATA, NOT_PRINTED, TIMESTAMP_TYPES
from txnlib.core.text.long_line import LONGEST_LINE, LongLine


class RecordLine(NamedTuple):
    """The metadata of a record line, and its free text with the line end: header keys, then contents."""

    offset: int
    timestamp: int
    timestamp_type: int
    key_size: int
    value_size: int
    has_header_keys: bool
    text: bytes


KEY: Final = b" key: "
PAYLOAD: Final = b" payload: "
#: Beginnings of the lines that can follow a complete record.
AFTER_A_RECORD: Final = (
    b"baseOffset: ",
    b"| offset: ",
    b"offset: ",
    b"Dumping ",
    b"Found ",
    b"Non-consecutive ",
    b"Mismatches ",
    b"Exception ",
)
_END_TXN_MARKER: Final = b" endTxnMarker: "
#: KRaft's control records, which do not concern producers.
_OTHER_CONTROL: Final = (b" controlType: ", b" LeaderChange", b" SnapshotHeader", b" SnapshotFooter", b" KRaftV")
CONTROL_TYPES: Final = {control_type.name.encode(): int(control_type) for control_type in ControlType}
#: A header key may contain brackets: the maximum number to try as the end of the keys.
_BRACKETS: Final = 16
#: Maximum number of lines of a transactional id. Ids have at most 32767 bytes; more line feeds are not worth the search.
_LINES_OF_AN_ID: Final = 64
#: Far above the size of a record that any broker accepts.
_LARGEST_RECORD: Final = 1 << 28
#: Maximum number of bytes of lines to keep until they can be given back; each line counts with an overhead.
_ROOM: Final = 1 << 26
#: Limit of the bytes searched without success, and its increase per byte of text. Otherwise many wrong sizes take quadratic time.
_IN_VAIN: Final = 1 << 26
_IN_VAIN_PER_BYTE: Final = 4
_COST_OF_A_LINE: Final = 128
#: Labels that 2.8 prints twice for formats 0 and 1.
_PRINTED_TWICE: Final = frozenset({b"crc:", b"isvalid:"})
_TIMESTAMPS: Final = range(-(1 << 63), 1 << 63)


def read_record_line(line: bytes) -> RecordLine | None:
    """The record in a line `| offset: …`; None for any other line."""
    head, header_keys, text = line.partition(b" headerKeys: [")
    if not header_keys:
        # Formats 0 and 1 have no headers.
        ends = [end for end in (line.find(KEY), line.find(PAYLOAD)) if end >= 0]
        end = min(ends, default=len(line.rstrip(b"\r\n")))
        head, text = line[:end], line[end:]
    if len(head) > LONGEST_METADATA:
        return None
    tokens = head.removeprefix(b"| ").split()
    labels = [label.lower() for label in tokens[0::2]]
    fields = dict(zip(labels, tokens[1::2], strict=False))
    timestamp_label = next((label for label in TIMESTAMP_TYPES if label in fields), b"")
    if len(tokens) % 2 or any(not label.endswith(b":") for label in fields):
        return None
    if len(fields) < len(labels) and any(labels.count(label) > 1 for label in fields if label not in _PRINTED_TWICE):
        return None
    try:
        timestamp = int(fields[timestamp_label])
        if timestamp not in _TIMESTAMPS:
            return None
        return RecordLine(
            offset=int(fields[b"offset:"]),
            timestamp=timestamp,
            timestamp_type=TIMESTAMP_TYPES[timestamp_label],
            key_size=int(fields[b"keysize:"]),
            value_size=int(fields[b"valuesize:"]),
            has_header_keys=bool(header_keys),
            text=text,
        )
    except (ValueError, KeyError):
        return None


def contents_of(record: RecordLine) -> Iterator[bytes]:
    """The possible contents of a record after its header keys, with the line end. The keys may contain brackets, too."""
    if not record.has_header_keys:
        yield record.text
        return
    end = record.text.find(b"]")
    # An empty list ends at once.
    tries = 1 if end == 0 else _BRACKETS
    while end >= 0 and tries:
        yield record.text[end + 1 :]
        end, tries = record.text.find(b"]", end + 1), tries - 1


def contents_size(record: RecordLine, contents: bytes) -> int:
    """The size of key and payload with their labels, in bytes, from the printed sizes; -1 if no contents are printed."""
    key = len(KEY) + record.key_size if contents.startswith(KEY) and record.key_size >= 0 else 0
    if not key and not contents.startswith(PAYLOAD):
        return NOT_PRINTED
    return key + (len(PAYLOAD) + record.value_size if record.value_size >= 0 else 0)


def may_have_contents(line: bytes) -> bool:
    """Whether a broken line may be part of a record whose contents are printed."""
    return KEY in line or PAYLOAD in line or (line.startswith(b"|") and b"] " not in line and not line.rstrip().endswith(b"]"))


def read_marker(contents: bytes) -> tuple[int, int] | None:
    """Control type and coordinator epoch, -1 if they are not printed; None for a broken line."""
    if not contents.strip() or contents.startswith(_OTHER_CONTROL):
        return NOT_PRINTED, NOT_PRINTED
    if not contents.startswith(_END_TXN_MARKER):
        return None
    _label, *values = contents.split()
    control_type = CONTROL_TYPES.get(values[0]) if values else None
    if control_type is None or len(values) > 3:
        return None
    # At the end of the text, the last number may be truncated.
    is_whole = len(values) == 3 and contents.endswith(b"\n") and values[2].isdigit() and len(values[2]) < 10
    return control_type, int(values[2]) if is_whole else NOT_PRINTED


def pass_over(lines: Lines, contents: bytes, size: int) -> tuple[int, list[Line]] | None:
    """Takes the further lines of contents. Returns their number of bytes, and the `Dumping` lines among them.

    Returns None and takes no lines if the size does not match. In a dump whose line ends were converted, each line has one byte
    more.
    """
    held: list[Line] = []
    room = _ROOM
    length, converted, line = len(contents), 0, contents
    while True:
        line_end = 2 if line.endswith(b"\r\n") else 1 if line.endswith(b"\n") else 0
        # A carriage return may also be the last character of a payload.
        if size in (length - line_end, length - line_end - converted, length - min(line_end, 1)):
            break
        may_go_on = line_end and room > 0 and length - line_end - converted < size < _LARGEST_RECORD
        ahead = lines.next() if may_go_on else None
        if ahead is None:
            lines.give_back(held)
            lines.in_vain += length - len(contents)
            return None
        if not held:
            room = min(room, _IN_VAIN + _IN_VAIN_PER_BYTE * ahead[0] - lines.in_vain)
        held.append(ahead)
        converted += line_end - 1
        line = ahead[1]
        length += len(line)
        room -= len(line) + _COST_OF_A_LINE
    if held and (ahead := lines.next()) is not None:
        lines.give_back([ahead])
        if not ahead[1].startswith(AFTER_A_RECORD):
            lines.give_back(held)
            return None
    return length - len(contents), [line for line in held if line[1].startswith(b"Dumping ")]


def read_coordinator_text(lines: Lines, text: bytes, key_size: int) -> tuple[TransactionLogText, int] | None:
    """The coordinator record in a text from after `key: `, and the number of bytes of the further lines that it spans.

    Returns None and takes no lines if there is no such record. Tries the size of the key first (-1: not printed), then the last
    payload.
    """
    sizes = (key_size, None) if key_size >= 0 else (None,)
    return next((record for size in sizes if (record := _read_joined(lines, text, size)) is not None), None)


def _read_joined(lines: Lines, text: bytes, key_size: int | None) -> tuple[TransactionLogText, int] | None:
    held: list[Line] = []
    joined = text
    while True:
        body = joined.removesuffix(b"\n").removesuffix(b"\r")
        decoded = read_transaction_log_text(body, key_size)
        if decoded is None and b"\r\n" in body:
            # Converted line ends inside an id.
            decoded = read_transaction_log_text(body.replace(b"\r\n", b"\n"), key_size)
        # Without its line end, the last number of a text payload may be truncated; JSON and tombstones show their end.
        if decoded is not None and (joined.endswith(b"\n") or decoded.entry is None or decoded.entry.version is not None):
            return decoded, len(joined) - len(text)
        is_short = key_size is None or len(body) < shortest_text(text, key_size)
        may_go_on = is_short and len(held) < _LINES_OF_AN_ID and text.startswith(ID_LABELS)
        ahead = lines.next() if may_go_on else None
        if ahead is not None:
            held.append(ahead)
        is_over = ahead is None or type(ahead[1]) is LongLine or len(joined) > LONGEST_LINE
        if ahead is None or is_over or (key_size is None and ahead[1].startswith(AFTER_A_RECORD)):
            lines.give_back(held)
            return None
        joined += ahead[1]
