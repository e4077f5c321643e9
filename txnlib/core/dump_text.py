"""What does the text of `kafka-dump-log.sh` hold: batches, coordinator records, snapshot entries, and broken stretches?

Rule 1: the chain of positions decides what is genuine (`dump_chain`). Whatever else is printed is a payload, however
perfectly it imitates a line, and is measured off by the printed sizes where that is possible.
Rule 2: text never raises. What no tool prints, or what is cut or overwritten, is an `Unreadable` stretch.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Final, NamedTuple

from txnlib.core.dump_chain import Chain, Line, Lines, Tail, offset_of
from txnlib.core.dump_lines import (
    CONTROL_TYPES,
    NOT_PRINTED,
    DumpedBatch,
    DumpedFile,
    DumpedSnapshotEntry,
    RecordLine,
    batch_of,
    contents_of,
    contents_size,
    read_batch_line,
    read_file_line,
    read_record_line,
    read_snapshot_line,
)
from txnlib.core.dump_transaction_log import (
    DECODED,
    ID_LABELS,
    UNDECODED,
    TransactionLogText,
    read_transaction_log_text,
    shortest_text,
)
from txnlib.core.record_batch import CompressionType
from txnlib.core.transaction_log import TransactionLogEntry


class UnreadableReason(StrEnum):
    #: No tool prints this.
    NOT_DUMP_TEXT = "NOT_DUMP_TEXT"
    #: A piece of a line, or a line with something in its middle.
    BROKEN_LINE = "BROKEN_LINE"
    #: The last line of the text, without its end.
    CUT_LINE = "CUT_LINE"
    #: A batch that the tool calls invalid, with its records.
    CRC_MISMATCH = "CRC_MISMATCH"
    #: A batch or record line that does not follow from those before it, or the place where lines are missing.
    OUT_OF_CHAIN = "OUT_OF_CHAIN"
    #: A coordinator record that the tool or this reader could not decode.
    UNDECODABLE_RECORD = "UNDECODABLE_RECORD"
    #: A whole file whose path does not tell its partition.
    TOPIC_PARTITION_UNKNOWN = "TOPIC_PARTITION_UNKNOWN"


class Unreadable(NamedTuple):
    """A stretch of text, in bytes of the text file."""

    position: int
    length: int
    reason: UnreadableReason
    sample: str


class DumpedTransactionLogRecord(NamedTuple):
    """A record of `__transaction_state`; `entry` None: a tombstone. `position` is that of its batch in the segment."""

    offset: int
    timestamp: int
    partition_leader_epoch: int
    position: int
    transactional_id: str
    entry: TransactionLogEntry | None


class FileStart(NamedTuple):
    position: int
    file: DumpedFile


class FileEnd(NamedTuple):
    """`is_decoded`: marker types and coordinator records were printed, wherever there were any to print."""

    position: int
    tail: Tail
    is_decoded: bool


Dumped = FileStart | FileEnd | DumpedBatch | DumpedTransactionLogRecord | DumpedSnapshotEntry | Unreadable

#: Lines a tool prints, to stdout or stderr, that hold nothing an audit needs (formats.md 1.2, 1.9, 5).
_HARMLESS: Final = re.compile(
    rb"\s*$|(Log s|S)tarting offset: |Snapshot end offset: |KRaft bootstrap snapshot|\S* is deprecated\. Please use "
    rb"|Non-consecutive offsets in |  -?\d+ is followed by \d+|Mismatches in :|  Index offset: |  Index timestamp: "
    rb"|Found (timestamp mismatch|out of order timestamp) in :|The following indexed offsets are not found in the log"
    rb"|Indexed offset: |Ignoring unknown file |\S+ passed sanity check\.|\S+ is empty\.\s*$"
)
#: An exception ends the run, so whatever follows in the segment is missing from the text (formats.md 1.8).
_EXCEPTION: Final = re.compile(
    rb'Exception in thread "|Caused by: |\tat |\t\.\.\. |Found record size |Record size is smaller than '
    rb"|[a-z]\w*(\.\w+)+(\$\w+)?(Exception|Error)\b"
)
_TORN: Final = re.compile(rb"Found \d+ invalid bytes at the end of ")
_OF_OTHER_FILES: Final = (b"version: ", b"offset: ", b"timestamp: ")
_PIECE_OF_A_LINE: Final = re.compile(
    rb"[a-zA-Z]?(ffset|[sS]ize|equence|poch|Keys|arker|alid|Time|crc|osition|magic|ount): ?"
)
_BARE_RECORDS: Final = (b"| key: ", b"| payload: ", b" payload: ")
_AFTER_A_RECORD: Final = (
    b"baseOffset: ",
    b"| offset: ",
    b"offset: ",
    b"Dumping ",
    b"Found ",
    b"Non-",
    b"Mism",
    b"Exception ",
)
_NO_CONTENTS: Final = (b"headerKeys: []\n", b"headerKeys: []\r\n")
_KEY: Final = b" key: "
_STARTS: Final = {b"Dumping ": read_file_line, b"baseOffset: ": read_batch_line, b"| offset: ": read_record_line}
_STRETCHES: Final = 256
#: What, at the end of a file, means that more was there.
_CORRUPT: Final = frozenset(
    {UnreadableReason.BROKEN_LINE, UnreadableReason.CRC_MISMATCH, UnreadableReason.OUT_OF_CHAIN}
)
#: Transactional ids have at most 32767 bytes; one with more line feeds than this is not worth the waiting.
_LINES_OF_AN_ID: Final = 64
_SAMPLE_BYTES: Final = 160


def read_dump(lines: Iterable[Line], topic: str | None = None) -> Iterator[Dumped]:
    """The contents of a dump, in order; each line comes with its position in the text and with its line end.

    `topic` is that of files whose path does not tell: only `__transaction_state` is looked through for its records.
    """
    reader = _Reader(lines, topic)
    out = reader.out
    while (line := reader.lines.next()) is not None:
        reader.read(*line)
        if out:
            yield from out
            out.clear()
    reader.end_file()
    yield from out


class _Reader:
    """One line after the other. The `read_…` methods say whether a line is what it looks like."""

    def __init__(self, lines: Iterable[Line], topic: str | None) -> None:
        self.lines, self.topic = Lines(lines), topic
        self.out: list[Dumped] = []
        self.chain: Chain | None = None
        #: A batch whose record lines may tell more, and the unreadable stretches since the last genuine line.
        self.pending: DumpedBatch | None = None
        self.stretches: list[Unreadable] = []
        self.end = 0

    def read(self, position: int, line: bytes) -> None:
        self.end = position + len(line)
        if line.startswith((b"baseOffset: ", b"offset: ")):
            is_genuine = self.read_batch(position, line) or self.read_lone_record(position, line)
        elif line.startswith(b"| offset: "):
            is_genuine = self.read_record(position, line)
        elif line.startswith(_BARE_RECORDS):
            is_genuine = self.read_bare_record(position, line)
        elif line.startswith(b"Dumping "):
            is_genuine = self.read_file(position, line)
        else:
            is_genuine = self.read_snapshot_entry(position, line)
        if not is_genuine:
            self.read_other(position, line)

    def read_file(self, position: int, line: bytes) -> bool:
        file = read_file_line(line)
        if file is None or (self.chain is not None and not self.chain.is_ended_by(file, self.lines)):
            return False
        self.start_file(position, file)
        return True

    def read_batch(self, position: int, line: bytes) -> bool:
        batch = read_batch_line(line)
        if batch is None:
            return False
        chain = self.chain
        if chain is None or chain.kind != "log":
            chain = self.start_file(position, DumpedFile())
            chain.next_position = batch.position
        if not chain.follows(batch, self.lines):
            if batch.position > 0 or chain.has_text:
                return False
            chain = self.start_file(position, DumpedFile())
        if not chain.continues(batch) and not self.stretches:
            self.stretches.append(Unreadable(position, 0, UnreadableReason.OUT_OF_CHAIN, ""))
        self.settle()
        chain.append(batch)
        if not batch.is_valid:
            self.unreadable(position, line, UnreadableReason.CRC_MISMATCH)
        elif batch.is_control or (batch.magic < 2 and batch.compression_type is not CompressionType.NONE):
            self.pending = batch
        else:
            self.out.append(batch)
        return True

    def read_record(self, position: int, line: bytes) -> bool:
        chain = self.chain
        if chain is None or chain.batch is None or not chain.batch.is_valid:
            return False
        offset = offset_of(line)
        if not chain.holds(offset):
            return False
        if not line.endswith(_NO_CONTENTS) or chain.batch.is_control:
            record = read_record_line(line)
            if record is None or record.timestamp_type is not chain.batch.timestamp_type:
                return False
            if not self.read_text(position, record, chain, chain.batch):
                return False
            chain.is_torn |= not line.endswith(b"\n")
        if self.pending is not None and self.pending.magic < 2:
            self.pending = self.pending._replace(base_offset=offset)
        chain.records, chain.record_offset, chain.is_deep = chain.records + 1, offset, True
        if self.pending or self.stretches:
            self.settle()
        return True

    def read_lone_record(self, position: int, line: bytes) -> bool:
        """A record line before 2.2, which stands for its batch, too: records at the same position are one batch."""
        record = read_record_line(line) if line.startswith(b"offset: ") else None
        batch = batch_of(record) if record else None
        if record is None or batch is None:
            return False
        chain = self.chain or self.start_file(position, DumpedFile())
        if batch.position < chain.next_position or batch.base_offset <= chain.last_offset:
            return False
        before = self.pending
        if before is not None and before.position == batch.position:
            self.pending = before._replace(
                last_offset=batch.last_offset,
                records_count=before.records_count + 1,
                last_sequence=batch.last_sequence,
                max_timestamp=max(before.max_timestamp, batch.max_timestamp),
            )
        else:
            if before is not None:
                self.pending = before._replace(size=batch.position - before.position)
            self.settle()
            self.pending = batch
        chain.next_position, chain.last_offset = batch.position, batch.last_offset
        chain.is_deep, chain.has_records, chain.has_open_text = True, True, False
        chain.is_torn = not line.endswith(b"\n")
        return self.read_text(position, record, chain, batch)

    def read_text(self, position: int, record: RecordLine, chain: Chain, batch: DumpedBatch) -> bool:
        """What stands behind a record's metadata: a marker, a coordinator record, or contents to be passed over."""
        for contents in contents_of(record):
            if batch.is_control:
                return self.read_marker(contents)
            if (
                chain.may_hold_coordinator_records
                and contents.startswith(_KEY)
                and contents[len(_KEY) :].startswith(DECODED)
            ):
                text, size = contents[len(_KEY) :], record.key_size
                self.read_coordinator_record(position, record.offset, record.timestamp, text, size, batch)
                return True
            size = contents_size(record, contents)
            chain.has_text |= size >= 0
            if size >= 0 and self.is_measured(contents, size):
                return True
            if size < 0 and not contents.strip():
                if record.has_header_keys and not record.text.startswith(b"]"):
                    chain.has_text = chain.has_open_text = True
                return True
        chain.has_text = chain.has_open_text = True
        return True

    def read_marker(self, contents: bytes) -> bool:
        label, *values = contents.split() or [b""]
        if label != b"endTxnMarker:":
            # KRaft's control records, which do not concern producers.
            return contents.startswith(b" ") or not contents.strip()
        control_type = CONTROL_TYPES.get(values[0]) if values else None
        if control_type is None or len(values) > 3 or self.pending is None:
            return False
        epoch = NOT_PRINTED
        if len(values) == 3 and contents.endswith(b"\n") and values[2].isdigit() and len(values[2]) < 10:
            epoch = int(values[2])
        self.pending = self.pending._replace(control_type=control_type, coordinator_epoch=epoch)
        return True

    def is_measured(self, contents: bytes, size: int) -> bool:
        """Whether contents end exactly where the sizes of key and value tell; if so they have been passed over.

        They may go on for many lines. A dump whose line ends were converted has a byte more in each.
        """
        held: list[Line] = []
        length, converted = len(contents), 0
        line = contents
        while True:
            line_end = 2 if line.endswith(b"\r\n") else 1 if line.endswith(b"\n") else 0
            if size in (length - line_end, length - line_end - converted):
                break
            ahead = self.lines.next() if length - line_end - converted < size and line_end else None
            if ahead is None:
                self.lines.give_back(held)
                return False
            held.append(ahead)
            converted += line_end - 1
            line = ahead[1]
            length += len(line)
        if held and (ahead := self.lines.next()) is not None:
            self.lines.give_back([ahead])
            if not ahead[1].startswith(_AFTER_A_RECORD):
                self.lines.give_back(held)
                return False
        self.end += sum(len(line) for _position, line in held)
        return True

    def read_bare_record(self, position: int, line: bytes) -> bool:
        """A line of `--skip-record-metadata`. Compaction apart, the records of a batch have consecutive offsets."""
        chain = self.chain
        if chain is None or chain.batch is None or not chain.batch.is_valid or chain.batch.is_control:
            return False
        batch, offset = chain.batch, chain.batch.base_offset + chain.records
        if offset > batch.last_offset or chain.records >= batch.records_count != NOT_PRINTED:
            return False
        text = line.removeprefix(b"| key: ")
        if chain.may_hold_coordinator_records and len(text) < len(line) and text.startswith(DECODED):
            timestamp = batch.max_timestamp if batch.records_count == 1 else NOT_PRINTED
            self.read_coordinator_record(position, offset, timestamp, text, None, batch)
        else:
            chain.has_text = chain.has_open_text = True
        chain.records += 1
        return True

    def read_coordinator_record(
        self, position: int, offset: int, timestamp: int, text: bytes, key_size: int | None, batch: DumpedBatch
    ) -> None:
        found = None if text.startswith(UNDECODED) else self.read_joined(text, key_size) or self.read_joined(text, None)
        if self.chain is not None:
            self.chain.has_decoded_records = True
            self.chain.has_open_text |= found is None and not text.startswith(UNDECODED)
        if found is None:
            self.unreadable(position, text, UnreadableReason.UNDECODABLE_RECORD)
            return
        epoch = batch.partition_leader_epoch
        self.out.append(DumpedTransactionLogRecord(offset, timestamp, epoch, batch.position, *found))

    def read_joined(self, text: bytes, key_size: int | None) -> TransactionLogText | None:
        """The record in a text that may go on for many lines, as a transactional id may hold line feeds."""
        held: list[Line] = []
        while True:
            body = text.removesuffix(b"\n").removesuffix(b"\r")
            found = read_transaction_log_text(body, key_size)
            if found is None and b"\r\n" in body:
                found = read_transaction_log_text(body.replace(b"\r\n", b"\n"), key_size)
            if found is not None and (text.endswith(b"\n") or found.entry is None or found.entry.version is not None):
                self.end += sum(len(line) for _position, line in held)
                return found
            is_short = key_size is None or len(body) < shortest_text(text, key_size)
            line = (
                self.lines.next() if is_short and len(held) < _LINES_OF_AN_ID and text.startswith(ID_LABELS) else None
            )
            if line is not None:
                held.append(line)
            if line is None or (key_size is None and line[1].startswith(_AFTER_A_RECORD)):
                self.lines.give_back(held)
                return None
            text += line[1]

    def read_snapshot_entry(self, position: int, line: bytes) -> bool:
        if (
            not line.startswith(b"producerId: ")
            or not line.endswith(b"\n")
            or (self.chain and self.chain.kind == "log")
        ):
            return False
        entry = read_snapshot_line(line)
        if entry is None:
            return False
        if self.chain is None:
            self.start_file(position, DumpedFile(kind="snapshot"))
        self.settle()
        self.out.append(entry)
        return True

    def read_other(self, position: int, line: bytes) -> None:
        """What looks like nothing genuine: the tool's remarks, payload, or damage."""
        chain = self.chain or Chain(DumpedFile())
        chain.is_torn |= bool(_TORN.match(line))
        chain.is_ended_early |= bool(_EXCEPTION.match(line)) or b'Exception in thread "' in line
        if chain.has_open_text or _HARMLESS.match(line) or _TORN.match(line) or _EXCEPTION.match(line):
            return
        if chain.kind not in ("log", "snapshot") and line.startswith(_OF_OTHER_FILES):
            return
        for start, read in _STARTS.items():
            index = line.rfind(start, 1)
            if index > 0 and read(line[index:]):
                # The line before it was cut, so that this one does not stand at the start of a line.
                self.unreadable(position, line[:index], UnreadableReason.BROKEN_LINE)
                self.read(position + index, line[index:])
                return
        chain.is_torn |= not line.endswith(b"\n")
        self.unreadable(position, line, _reason(line, chain))

    def unreadable(self, position: int, text: bytes, reason: UnreadableReason) -> None:
        """Notes a stretch from here to where reading stands, or lengthens the one before it."""
        last = self.stretches[-1] if self.stretches else None
        length = max(self.end, position + len(text)) - position
        if last is not None and (last.reason is reason or len(self.stretches) == _STRETCHES):
            self.stretches[-1] = last._replace(length=position + length - last.position)
        else:
            sample = text[:_SAMPLE_BYTES].decode(errors="replace").rstrip("\r\n")
            self.stretches.append(Unreadable(position, length, reason, sample))

    def settle(self) -> None:
        """Hands out what waited for more."""
        batch, self.pending = self.pending, None
        if batch is not None:
            self.out.append(batch)
            is_marker = batch.is_control and batch.producer_id != NOT_PRINTED and batch.records_count != 0
            if self.chain is not None and is_marker and batch.control_type is None:
                self.chain.has_untyped_markers = True
        if self.stretches:
            self.out += self.stretches
            self.stretches.clear()

    def start_file(self, position: int, file: DumpedFile) -> Chain:
        self.end_file(position)
        self.chain = Chain(file, self.topic)
        self.out.append(FileStart(position, file))
        return self.chain

    def end_file(self, position: int | None = None) -> None:
        reasons = {stretch.reason for stretch in self.stretches}
        self.settle()
        if self.chain is not None:
            self.out.append(
                FileEnd(self.end if position is None else position, _tail(self.chain, reasons), self.chain.is_decoded)
            )


def _tail(chain: Chain, reasons: set[UnreadableReason]) -> Tail:
    if chain.is_ended_early or reasons & _CORRUPT:
        return Tail.CORRUPT
    return Tail.TORN if chain.is_torn or not chain.is_complete else Tail.CLEAN


def _reason(line: bytes, chain: Chain) -> UnreadableReason:
    if chain.batch is not None and not chain.batch.is_valid:
        return UnreadableReason.CRC_MISMATCH
    if not line.endswith(b"\n"):
        return UnreadableReason.CUT_LINE
    if read_batch_line(line) or (line.startswith((b"| offset: ", b"offset: ")) and read_record_line(line)):
        return UnreadableReason.OUT_OF_CHAIN
    return UnreadableReason.BROKEN_LINE if _PIECE_OF_A_LINE.search(line) else UnreadableReason.NOT_DUMP_TEXT
