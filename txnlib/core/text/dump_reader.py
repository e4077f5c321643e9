"""Text of `kafka-dump-log.sh`: batches, coordinator records, producers, and unreadable ranges.

Rule 1: a dump is a chain. A batch begins at the position where the one before it ends, and its records follow it.
Rule 2: contents are measured by their printed sizes. Behind contents that do not fit, nothing of the text is read.
Rule 3: text never raises. Damage becomes an `Unreadable` range, and prose between the lines of a tool costs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from txnlib.core.kafka.record_batch import TimestampType
from txnlib.core.text.contents import Measured, is_id_whole, is_one_record, pass_over, read_coordinator_text
from txnlib.core.text.coordinator_text import (
    CONTROL_LABELS,
    DECODED,
    METADATA_PAYLOADS,
    UNDECODED,
    read_metadata_text,
    reason_of_undecoded,
)
from txnlib.core.text.dump_chain import DumpChain
from txnlib.core.text.dump_files import FileReader
from txnlib.core.text.dump_lines import (
    KEY,
    NOT_PRINTED,
    PAYLOAD,
    DumpedFile,
    RecordLine,
    contents_of,
    contents_size,
    is_of_old_tool,
    offset_of,
    read_batch_line,
    read_file_line,
    read_marker,
    read_record_line,
    read_snapshot_line,
)
from txnlib.core.text.lines import Line, LongLine, UnreadableReason
from txnlib.core.text.printed import (
    Dumped,
    DumpedRecord,
    Unreadable,
    is_piece_of_a_line,
    remark_of,
)

#: The kinds of lines, by their first words. BARE: of `--skip-record-metadata`.
_KIND: Final = re.compile(
    rb"(?P<RECORD>\| offset: )|(?P<BATCH>baseOffset: |offset: )|(?P<BARE>\| key: |\| payload: )"
    rb"|(?P<FILE>Dumping )|(?P<START>Log starting offset: |Starting offset: )|(?P<PRODUCER>producerId: )"
)
#: The same without a search.
_FREQUENT: Final = {b"| offset: ": "RECORD", b"baseOffset": "BATCH"}
#: The same of a record without a key, up to 4.2.
_BARE_PAYLOAD: Final = b" payload: "
_HEADER_KEYS: Final = b" headerKeys: ["
_NO_CONTENTS: Final = _HEADER_KEYS + b"]"
_OF_INDEXES: Final = (b"version: ", b"offset: ", b"timestamp: ")
#: Beginnings of lines that may follow a truncated line, in the middle of it.
_STARTS: Final = {b"Dumping ": read_file_line, b"baseOffset: ": read_batch_line, b"| offset: ": read_record_line}
#: Number of lines in which to find the second batch of a file that is printed again.
_LOOKED_AT: Final = 64
#: Beginnings of lines that no prose has.
_BEGINNINGS: Final = (b"baseOffset: ", b"| offset: ")


class DumpReader(FileReader):
    """Reads one line after the other: `_READ` has the method for each kind of line."""

    def __iter__(self) -> Iterator[Dumped]:
        form = self.lines.form
        if form is not None and form.says:
            yield Unreadable(0, 0, UnreadableReason.LINE_FORM, form.says)
        while not self.is_stopped:
            # Empty lines mean nothing here: they are records of control batches without metadata, or no line of a tool.
            self.lines.skip_empty()
            line = self.lines.next()
            if line is None:
                break
            self.read(*line)
            if self.out.values:
                yield from self.take_events()
        self.end_text()
        self.header_keys.clear()
        yield from self.take_events()

    def read(self, position: int, line: bytes) -> None:
        text = line.strip()
        if type(line) is LongLine:
            self.read_long_line(position, line)
            return
        if not text:
            return
        kind = _FREQUENT.get(text[:10]) or _kind_of(text) or ("BARE" if line.startswith(_BARE_PAYLOAD) else "")
        self.is_whole, self.is_lost = line.endswith(b"\n"), False
        read = _READ.get(kind)
        if read is None or not read(self, position, line.lstrip() if kind == "RECORD" else text):
            self.read_other(position, line, text)

    # ---- Batches

    def read_batch(self, position: int, text: bytes) -> bool:
        batch, chain = read_batch_line(text), self.chain
        if batch is None:
            return False
        if chain is None or not chain.file.has_batches:
            chain = self.start_file(position, DumpedFile(), next_position=batch.position)
        is_next = chain.continues(batch)
        if self.header_keys and self.is_hidden(lambda other: other.continues(batch), continues_file=is_next):
            return True
        if not is_next and batch.position == 0 and chain.first not in (None, batch):
            # The `Dumping` line of another file is lost.
            chain, is_next = self.start_file(position, DumpedFile()), True
        elif not is_next and batch == chain.first and not chain.is_doubted and self._begins_again(chain):
            chain, is_next = self.start_file(position, chain.file), True
        elif not is_next and not chain.is_resumed_by(batch):
            self.unreadable(position, text, UnreadableReason.OUT_OF_CHAIN)
            return True
        if not is_next or chain.lacks_records:
            self.out.missing(position)
            # A part of lost contents may imitate what follows, so that it is not believed.
            chain.is_doubted |= self.prints_contents
        if chain.is_doubted:
            self.unreadable(position, text, UnreadableReason.OUT_OF_CHAIN)
            chain.append(batch)
            return True
        self.out.settle()
        chain.append(batch)
        chain.is_torn = not self.is_whole
        if not batch.is_valid:
            self.unreadable(position, text, UnreadableReason.CRC_MISMATCH)
        elif batch.is_control:
            self.out.pending = batch
        else:
            self.out.values.append(batch)
        return True

    def _begins_again(self, chain: DumpChain) -> bool:
        """Whether the first batch line of a file, once more, begins it once more: then its second one follows."""
        ahead: list[Line] = []
        while len(ahead) < _LOOKED_AT and (found := self.lines.next()) is not None:
            ahead.append(found)
            if found[1].startswith(b"baseOffset: "):
                break
        self.lines.give_back(ahead)
        batch = read_batch_line(ahead[-1][1]) if ahead and chain.batch != chain.first else None
        return batch is not None and chain.is_behind_first(batch)

    # ---- Records

    def read_record(self, position: int, line: bytes) -> bool:
        """A record's line from its bar on, and its contents, whether or not the record belongs to the batch above."""
        chain, offset = self.chain, offset_of(line)
        has_contents = KEY in line or PAYLOAD in line
        is_own = chain is not None and chain.holds(offset) and not (chain.is_control and has_contents)
        if self.header_keys and self.is_hidden(lambda other: other.holds(offset), continues_file=is_own):
            return True
        own, text = chain if is_own else None, line.rstrip()
        # Contents can end with the same text.
        has_no_text = text.endswith(_NO_CONTENTS) and text.find(_NO_CONTENTS[:-1]) == len(text) - len(_NO_CONTENTS)
        if has_no_text and own is not None and not own.is_control:
            if own.expects_decoded:
                self.unreadable(position, text, UnreadableReason.UNDECODABLE_RECORD)
        else:
            record = read_record_line(line)
            if record is None:
                return False
            own = own if own is not None and self._is_alike(position, record, own) else None
            if not self._read_text(position, record, own):
                return False
        if self.is_lost:
            return True
        if own is None:
            self._skip_record(position, text)
        else:
            self._take_record(position, text, own, offset)
        if chain is not None and text.partition(_HEADER_KEYS)[2][:1] not in (b"", b"]"):
            self.note_header_keys(chain)
        return True

    def _skip_record(self, position: int, text: bytes) -> None:
        """Reports a record that is not of the batch above."""
        chain, reason = self.chain, UnreadableReason.OUT_OF_CHAIN
        if chain is not None and chain.batch is not None and not chain.batch.is_valid:
            reason = UnreadableReason.CRC_MISMATCH
        if chain is not None and not self.is_whole:
            chain.is_torn, reason = True, UnreadableReason.CUT_LINE
        self.unreadable(position, text, reason)

    def _take_record(self, position: int, text: bytes, chain: DumpChain, offset: int) -> None:
        chain.is_torn |= not self.is_whole
        if not chain.is_deep and chain.has_lost_records:
            self.out.missing(position)
        chain.take_record(offset)
        if chain.is_doubted:
            self.unreadable(position, text, UnreadableReason.OUT_OF_CHAIN)
            return
        self.out.settle()

    def _is_alike(self, position: int, record: RecordLine, chain: DumpChain) -> bool:
        """Whether a record may be of its batch, by type and time of its timestamp."""
        batch = chain.batch
        assert batch is not None
        if record.timestamp_type != batch.timestamp_type or (batch.magic >= 2 and not record.has_header_keys):
            return False
        is_timed = chain.is_coordinator and batch.timestamp_type == TimestampType.CREATE_TIME
        if is_timed and batch.records_count == 1 and record.timestamp != batch.max_timestamp:
            self.out.unreadable(position, 0, UnreadableReason.TIMES_DIFFER)
        return True

    def _read_text(self, position: int, record: RecordLine, chain: DumpChain | None) -> bool:
        """Reads the text after a record's metadata: a marker, a decoded record, or contents to pass over.

        `chain`: that of the record's batch; None if there is none. False if the line is broken.
        """
        is_cut = not self.is_whole
        for contents in contents_of(record):
            if chain is not None and chain.is_control:
                return self._read_control_record(position, record, contents, chain)
            if not contents.strip():
                return True
            if contents.startswith((b" endTxnMarker: ", b" controlType: ", *CONTROL_LABELS)):
                # Of a batch whose line is lost.
                return record.is_alone
            if chain is not None and chain.holds_metadata and contents.startswith(METADATA_PAYLOADS):
                self._read_metadata_record(position, record.offset, record.timestamp, contents, chain)
                return True
            text = contents.removeprefix(KEY)
            is_decoded = len(text) < len(contents) and text.startswith(DECODED)
            if is_decoded and chain is not None and chain.may_hold_coordinator_records:
                self._read_coordinator_record(position, record.offset, record.timestamp, text, record.key_size, chain)
                return True
            size = contents_size(record, contents)
            extent = Measured.UNKNOWN if size < 0 else pass_over(self.lines, contents, size, self._may_follow)
            if extent is Measured.WHOLE:
                if chain is not None and chain.expects_decoded:
                    self.unreadable(position, record.text, UnreadableReason.UNDECODABLE_RECORD)
                else:
                    self.prints_contents = True
                return True
            if is_decoded and is_one_record(self.lines, text, record.key_size):
                # A decoder for coordinators printed a record of another topic.
                return True
            is_cut |= extent is Measured.CUT
        if record.is_alone and not record.text.removeprefix(b"]").startswith((KEY, PAYLOAD)):
            # Neither contents nor header keys, so that nothing can go on.
            return False
        reason = UnreadableReason.CUT_LINE if is_cut else UnreadableReason.SIZE_MISMATCH
        self.stop(position, record.text, reason, None if chain is None else record.text)
        return True

    def _may_follow(self, line: bytes) -> bool:
        """Whether a line looks like the next one of the chain."""
        text, chain = line.strip(), self.chain
        if text.startswith(b"| offset: "):
            return chain is not None and chain.holds(offset_of(text))
        batch = read_batch_line(text)
        if batch is not None:
            return chain is None or chain.continues(batch)
        return read_file_line(text) is not None or (bool(text) and remark_of(text) is not None)

    def _read_control_record(self, position: int, record: RecordLine, contents: bytes, chain: DumpChain) -> bool:
        if chain.holds_metadata:
            self._read_metadata_record(position, record.offset, record.timestamp, contents, chain)
        marker = read_marker(contents)
        if marker is not None and self.out.pending is not None:
            self.out.pending = self.out.pending._replace(control_type=marker[0], coordinator_epoch=marker[1])
        return marker is not None

    def read_bare_record(self, position: int, text: bytes) -> bool:
        """A line of `--skip-record-metadata`."""
        chain = self.chain
        offset = None if chain is None else chain.next_bare_offset()
        contents = b" " + text.removeprefix(b"| ")
        decoded = contents.removeprefix(KEY)
        if chain is None or chain.batch is None or offset is None:
            is_bare = chain is not None and chain.is_bare
            if not is_bare or read_coordinator_text(self.lines, decoded + b"\n", NOT_PRINTED) is None:
                return False
            # The line of its batch is lost.
            self.unreadable(position, text, UnreadableReason.OUT_OF_CHAIN)
            return True
        timestamp = chain.batch.max_timestamp if chain.batch.records_count == 1 else NOT_PRINTED
        if chain.may_hold_coordinator_records and len(decoded) < len(contents) and decoded.startswith(DECODED):
            self._read_coordinator_record(position, offset, timestamp, decoded + b"\n", NOT_PRINTED, chain)
        elif chain.holds_metadata and contents.startswith(METADATA_PAYLOADS):
            self._read_metadata_record(position, offset, chain.batch.max_timestamp, contents + b"\n", chain)
        else:
            self.stop(position, text, UnreadableReason.SIZE_MISMATCH, text)
        chain.take_bare_record()
        return True

    def _read_coordinator_record(
        self, position: int, offset: int, timestamp: int, text: bytes, key_size: int, chain: DumpChain
    ) -> None:
        assert chain.batch is not None
        is_undecoded = text.startswith(UNDECODED)
        decoded = None if is_undecoded else read_coordinator_text(self.lines, text, key_size)
        chain.has_decoded_records = True
        is_broken = decoded is None and not is_undecoded
        if is_broken and (chain.counts_records or not is_id_whole(text, key_size)):
            is_cut = not text.endswith(b"\n")
            reason = UnreadableReason.CUT_LINE if is_cut else UnreadableReason.SIZE_MISMATCH
            self.stop(position, text, reason, text)
        elif decoded is None:
            reason = reason_of_undecoded(text) if text.endswith(b"\n") else UnreadableReason.CUT_LINE
            self.unreadable(position, text, reason)
        elif not chain.is_doubted:
            place = offset, timestamp, chain.batch.partition_leader_epoch, chain.batch.position
            self.out.settle()
            self.out.values.append(DumpedRecord(*place, decoded))

    def _read_metadata_record(
        self, position: int, offset: int, timestamp: int, contents: bytes, chain: DumpChain
    ) -> None:
        """Reads a record of `__cluster_metadata`, which the tool prints on one line."""
        assert chain.batch is not None
        decoded = read_metadata_text(contents, is_control=chain.is_control)
        if decoded is not None:
            place = offset, timestamp, chain.batch.partition_leader_epoch, chain.batch.position
            self.out.values.append(DumpedRecord(*place, decoded))
        elif not chain.is_control:
            reason = UnreadableReason.UNDECODABLE_RECORD if contents.endswith(b"\n") else UnreadableReason.CUT_LINE
            self.unreadable(position, contents, reason)

    def read_producer(self, position: int, text: bytes) -> bool:
        """A line of a `.snapshot` file."""
        # The last number of a line without its end may be truncated.
        entry = read_snapshot_line(text) if self.is_whole else None
        if entry is None or (self.chain is not None and self.chain.file.has_batches):
            return False
        if self.chain is None:
            self.start_file(position, DumpedFile(kind="snapshot"))
        self.out.settle()
        self.out.values.append(entry)
        return True

    # ---- Other lines: messages of the tool, prose, or damage

    def read_long_line(self, position: int, line: LongLine) -> None:
        """If a line that is too long may have contents, the next lines may be a part of them."""
        if self.prints_contents or any(label in line.head for label in (KEY, PAYLOAD, _HEADER_KEYS)):
            self.stop(position, line.head, UnreadableReason.LINE_TOO_LONG)
        else:
            self.unreadable(position, line.head, UnreadableReason.LINE_TOO_LONG)

    def read_other(self, position: int, line: bytes, text: bytes) -> None:
        chain = self.chain
        remark = remark_of(text)
        if chain is not None:
            chain.take_remark(remark, text)
        is_of_index = chain is not None and chain.file.is_index and text.startswith(_OF_INDEXES)
        if remark is not None or is_of_index:
            return
        is_whole = self.is_whole
        if chain is not None and chain.counts_records and (KEY in text or PAYLOAD in text):
            self.stop(position, text, _reason_of(text, is_whole=is_whole), text)
            return
        is_piece = text.startswith(_BEGINNINGS) or is_piece_of_a_line(text) or (not is_whole and _may_begin(text))
        is_piece |= chain is not None and chain.file.kind == "snapshot" and text.startswith(b"producerId: ")
        if is_piece and self._read_line_behind(position, line, text):
            return
        if not is_piece:
            self.unreadable(position, text, UnreadableReason.NOT_DUMP_TEXT)
            return
        if chain is not None and not is_whole:
            chain.is_torn = True
        may_go_on = text.startswith(b"|") or is_of_old_tool(text)
        if may_go_on and (KEY in text or PAYLOAD in text or _is_open(text)):
            is_own = chain is not None and (offset_of(text) == NOT_PRINTED or chain.holds(offset_of(text)))
            contents = max((text.partition(label)[2] for label in (_HEADER_KEYS, KEY, PAYLOAD)), key=len)
            self.stop(position, text, _reason_of(text, is_whole=is_whole), contents if is_own else None)
        else:
            self.unreadable(position, text, _reason_of(text, is_whole=is_whole))

    def _read_line_behind(self, position: int, line: bytes, text: bytes) -> bool:
        """Reads the line that follows a truncated one on the same line; False if there is none."""
        for start, read in _STARTS.items():
            index = line.rfind(start, 1)
            if line[:index].strip() and index > 0 and read(line[index:]):
                self.out.unreadable(position, index, UnreadableReason.BROKEN_LINE, text)
                self.read(position + index, line[index:])
                return True
        return False


def _kind_of(text: bytes) -> str:
    """The kind of a line; empty if it has none."""
    match = _KIND.match(text)
    return (match and match.lastgroup) or ""


def _may_begin(text: bytes) -> bool:
    """Whether this may be the beginning of a line of the tool."""
    return any(start.startswith(text) for start in (*_STARTS, b"offset: ", b"producerId: ", b"Log starting offset: "))


def _is_open(text: bytes) -> bool:
    """Whether the header keys of a broken record line may go on over the next lines. The first one may be `]`."""
    return text.partition(_HEADER_KEYS)[2] not in (b"", b"]")


def _reason_of(text: bytes, *, is_whole: bool) -> UnreadableReason:
    if not is_whole:
        return UnreadableReason.CUT_LINE
    return UnreadableReason.OLD_TOOL if is_of_old_tool(text) else UnreadableReason.BROKEN_LINE


_READ: Final[Mapping[str, Callable[[DumpReader, int, bytes], bool]]] = {
    "FILE": DumpReader.read_file,
    "START": DumpReader.read_starting_offset,
    "BATCH": DumpReader.read_batch,
    "RECORD": DumpReader.read_record,
    "BARE": DumpReader.read_bare_record,
    "PRODUCER": DumpReader.read_producer,
}
