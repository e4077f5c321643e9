"""Text of `kafka-dump-log.sh`: batches, coordinator records, producers, and unreadable ranges.

Rule 1: the chain of positions decides what is genuine (`batch_chain`). All other text is payload, however perfectly it imitates a
line. It is measured by the printed sizes where possible (`record_lines`).
Rule 2: text never raises. Text that no tool prints, and text that is truncated or overwritten, becomes an `Unreadable` range.
"""

from __future__ import annotations

from typing import Final

from txnlib.core.text.batch_chain import BatchChain, ChainedBatches, offset_of
from txnlib.core.text.coordinator_text import DECODED, METADATA_PAYLOADS, UNDECODED, read_metadata_text
from txnlib.core.text.dump_events import DumpedMetadataRecord, DumpedTransactionLogRecord
from txnlib.core.text.dump_files import FileReader
from txnlib.core.text.dump_lines import (
    LOG_KINDS,
    NOT_PRINTED,
    DumpedBatch,
    DumpedFile,
    read_batch_line,
    read_file_line,
    read_snapshot_line,
)
from txnlib.core.text.free_text import OpenText
from txnlib.core.text.long_line import LongLine, size_of
from txnlib.core.text.record_lines import (
    KEY,
    RecordLine,
    contents_of,
    contents_size,
    may_have_contents,
    pass_over,
    read_coordinator_text,
    read_marker,
    read_record_line,
)
from txnlib.core.text.tool_messages import Remark, UnreadableReason, reason_of, reason_of_undecoded, remark_of

_HEADER_KEYS: Final = b"headerKeys: ["
_NO_CONTENTS: Final = (b"headerKeys: []\n", b"headerKeys: []\r\n")
#: Beginnings of lines with `--skip-record-metadata`; a payload without a key has no bar up to 4.2.
_BARE_KEY: Final = b"| key: "
_BARE_RECORDS: Final = (_BARE_KEY, b"| payload: ", b" payload: ")
_STARTING_OFFSETS: Final = (b"Log starting offset: ", b"Starting offset: ")
_OF_INDEXES: Final = (b"version: ", b"offset: ", b"timestamp: ")
#: Beginnings of lines that may follow a truncated line, in the middle of it.
_STARTS: Final = {b"Dumping ": read_file_line, b"baseOffset: ": read_batch_line, b"| offset: ": read_record_line}


class DumpReader(FileReader):
    """Reads one line after the other. Each line comes with its position in the text and with its line end.

    Between two lines, its state is its chain and the events waiting to be taken. The other `read_…` methods return whether a line
    is what it looks like.
    """

    def read_line(self) -> bool:
        """Reads the next line; False at the end of the text."""
        line = self.lines.next()
        if line is not None:
            self.read(*line)
        return line is not None

    def skip_batches(self, batches: ChainedBatches, size: int) -> None:
        """Continues after batches that the caller has read, `size` bytes of text. `BatchChain.is_plain` says whether it may."""
        assert self.chain is not None
        self.out.settle(self.chain)
        self.chain.append_all(batches)
        self.out.read += size
        self.out.end += size

    @property
    def skips_empty(self) -> bool:
        """Whether empty lines mean nothing here: in any tool they do, except in text. There may be millions."""
        return self.chain is None or (not self.chain.has_open_text and self.chain.doubted is None)

    def skip_empty(self, count: int) -> None:
        """Continues after so many empty lines, where `skips_empty`."""
        self.out.read += count
        self.out.end += count

    def read(self, position: int, line: bytes) -> None:
        out = self.out
        out.end = position + size_of(line)
        if line == b"\n" and self.skips_empty:
            out.read += 1
            return
        if type(line) is LongLine:
            self.skip_long_line(position, line, self.chain)
            return
        elsewhere = out.payload + out.quarantined
        if self.chain is not None and self.chain.doubted is not None and not line.startswith(b"Dumping "):
            out.unreadable(position, line, UnreadableReason.DUMPING_LINE_IN_DOUBT)
            self.chain.doubted.add_text(line)
            return
        if line.startswith((b"baseOffset: ", b"offset: ")):
            is_genuine = self.read_batch(position, line)
        elif line.startswith(b"| offset: "):
            is_genuine = self.read_record(position, line)
        elif line.startswith(_BARE_RECORDS):
            is_genuine = self.read_bare_record(position, line)
        elif line.startswith(b"Dumping "):
            is_genuine = self.read_file(position, line)
        elif line.startswith(_STARTING_OFFSETS):
            is_genuine = self.read_starting_offset(position, line)
        else:
            is_genuine = self.read_snapshot_entry(position, line)
        if is_genuine:
            out.read += out.end - position - (out.payload + out.quarantined - elsewhere)
        else:
            self.read_other(position, line)

    def skip_long_line(self, position: int, line: LongLine, chain: BatchChain | None) -> None:
        """Reports a line that is too long. If it may be part of contents, the next lines may be, too."""
        self.out.unreadable(position, line.head, UnreadableReason.LINE_TOO_LONG, line.size)
        if chain is None:
            return
        if chain.doubted is not None:
            chain.doubted.add_text(line)
        elif chain.has_text or may_have_contents(line.head):
            chain.open_text(OpenText(self.out.end, is_damage=True))

    def read_batch(self, position: int, line: bytes) -> bool:
        batch = read_batch_line(line)
        if batch is None:
            return False
        chain = self.chain
        if chain is None or chain.kind not in LOG_KINDS:
            chain = self.start_file(position, DumpedFile())
            chain.next_position = batch.position
        is_next = chain.continues(batch)
        if not (is_next and not chain.has_open_text) and not chain.follows(batch, position, self.lines):
            if not chain.is_left_by(batch):
                chain.pass_batch(batch)
                return False
            chain = self.start_file(position, DumpedFile())
            is_next = True
        elif not is_next and self.returns_to_file_before(batch):
            chain = self.start_file(position, DumpedFile())
            is_next = False
        elif chain.has_open_text and chain.is_rivalled_at(batch):
            # Either the `Dumping` line of another file is lost, or a payload leads here.
            self.doubt_file(position, line, DumpedFile(), chain)
            return True
        self.close_text(position)
        if not is_next or (chain.is_deep and chain.lacks_records):
            self.out.missing(position)
        if self.out.pending is not None or self.out.ranges:
            self.out.settle(chain)
        chain.append(batch)
        # Tools end every line.
        chain.is_torn = not line.endswith(b"\n")
        if not batch.is_valid:
            self.out.unreadable(position, line, UnreadableReason.CRC_MISMATCH)
        elif batch.is_control:
            self.out.pending = batch
        else:
            self.out.values.append(batch)
        return True

    def read_record(self, position: int, line: bytes) -> bool:
        chain = self.chain
        if chain is None or chain.batch is None or not chain.batch.is_valid or chain.is_bare:
            return False
        offset = offset_of(line)
        if not chain.holds(offset):
            return False
        # Contents can end with the same text.
        has_no_contents = line.endswith(_NO_CONTENTS) and line.find(_HEADER_KEYS) > len(line) - len(_HEADER_KEYS) - 4
        if chain.open is not None and chain.open.size is not None and not chain.open.may_end and not chain.open.is_damage:
            return False
        if has_no_contents and chain.expects_decoded and not chain.batch.is_control:
            self.out.unreadable(position, line, UnreadableReason.UNDECODABLE_RECORD)
        elif chain.batch.is_control or not has_no_contents:
            record = read_record_line(line)
            if record is None or record.timestamp_type != chain.batch.timestamp_type:
                return False
            if chain.batch.magic >= 2 and not record.has_header_keys:
                return False
            if not self.read_text(position, record, chain, chain.batch):
                return False
            chain.is_torn |= not line.endswith(b"\n")
        if chain.is_coordinator and chain.has_unprinted_records and not chain.is_deep:
            # The records before the first printed one are lost.
            self.out.missing(position)
        chain.records, chain.record_offset, chain.is_deep = chain.records + 1, offset, True
        if self.out.pending is not None or self.out.ranges:
            self.out.settle(chain)
        return True

    def read_text(self, position: int, record: RecordLine, chain: BatchChain, batch: DumpedBatch) -> bool:
        """Reads the text after a record's metadata: a marker, a coordinator record, or contents to skip."""
        text_open: OpenText | None = None
        for contents in contents_of(record):
            if chain.holds_metadata and (batch.is_control or contents.startswith(METADATA_PAYLOADS)):
                self.read_metadata_record(position, record.offset, record.timestamp, contents, batch)
                if not batch.is_control:
                    return True
            if batch.is_control:
                return self.read_marker(contents)
            text = contents.removeprefix(KEY)
            if chain.may_hold_coordinator_records and len(text) < len(contents) and text.startswith(DECODED):
                self.read_coordinator_record(position, record.offset, record.timestamp, text, record.key_size, batch)
                return True
            size = contents_size(record, contents)
            if chain.expects_decoded and (size >= 0 or not contents.strip()):
                break
            if size >= 0:
                chain.has_text = True
                passed = pass_over(self.lines, contents, size)
                if passed is not None:
                    self.out.end += passed[0]
                    self.out.payload += passed[0]
                    self.note_payload(passed[1], chain)
                    return True
                is_in_list = chain.has_open_text and (chain.open is None or chain.open.is_list)
                if text_open is None and not is_in_list and (record.text.startswith(b"]") or not record.has_header_keys):
                    text_open = OpenText(self.out.end, size)
                    text_open.add(contents)
            elif record.text.startswith(b"]") or not record.has_header_keys:
                # No header keys, so that no other text is possible here.
                return not contents.strip()
        chain.open_text(text_open or self.text_after(record, chain))
        return True

    def text_after(self, record: RecordLine, chain: BatchChain) -> OpenText:
        """The text after a record line without contents to measure. Header keys are free text, too, without a printed size."""
        if chain.expects_decoded:
            self.out.unreadable(self.out.end - len(record.text), record.text, UnreadableReason.UNDECODABLE_RECORD)
            return OpenText(self.out.end, is_damage=True)
        text = OpenText(self.out.end, is_list=record.has_header_keys)
        text.add(record.text)
        return text

    def read_marker(self, contents: bytes) -> bool:
        marker = read_marker(contents)
        if marker is not None and self.out.pending is not None:
            control_type, coordinator_epoch = marker
            self.out.pending = self.out.pending._replace(control_type=control_type, coordinator_epoch=coordinator_epoch)
        return marker is not None

    def read_bare_record(self, position: int, line: bytes) -> bool:
        """A line of `--skip-record-metadata`. Except after compaction, the records of a batch have consecutive offsets."""
        chain = self.chain
        if chain is None or chain.batch is None or not chain.batch.is_valid or chain.batch.is_control or chain.is_deep:
            return False
        batch, offset = chain.batch, chain.batch.base_offset + chain.records
        if offset > batch.last_offset or chain.records >= batch.records_count != NOT_PRINTED:
            return False
        chain.is_bare = True
        text = line.removeprefix(_BARE_KEY)
        if chain.may_hold_coordinator_records and len(text) < len(line) and text.startswith(DECODED):
            timestamp = batch.max_timestamp if batch.records_count == 1 else NOT_PRINTED
            self.read_coordinator_record(position, offset, timestamp, text, NOT_PRINTED, batch)
        elif chain.holds_metadata and (payload := line.removeprefix(b"|")).startswith(METADATA_PAYLOADS):
            self.read_metadata_record(position, offset, batch.max_timestamp, payload, batch)
        else:
            chain.open_text()
        chain.records += 1
        return True

    def read_coordinator_record(
        self, position: int, offset: int, timestamp: int, text: bytes, key_size: int, batch: DumpedBatch
    ) -> None:
        is_undecoded = text.startswith(UNDECODED)
        decoded = None if is_undecoded else read_coordinator_text(self.lines, text, key_size)
        if self.chain is not None:
            if self.chain.has_text and not self.chain.has_decoded_records:
                # Text that was taken for contents was a broken coordinator record.
                self.out.missing(position)
            self.chain.has_decoded_records = True
            if decoded is None and not is_undecoded:
                self.chain.open_text(OpenText(self.out.end, is_damage=True))
        if decoded is None:
            reason = reason_of_undecoded(text) if text.endswith(b"\n") else UnreadableReason.CUT_LINE
            self.out.unreadable(position, text, reason)
            return
        record, length = decoded
        self.out.end += length
        place = offset, timestamp, batch.partition_leader_epoch, batch.position
        self.out.values.append(DumpedTransactionLogRecord(*place, *record))

    def read_metadata_record(self, position: int, offset: int, timestamp: int, contents: bytes, batch: DumpedBatch) -> None:
        """Reads a record of `__cluster_metadata`, which the tool prints on one line."""
        decoded = read_metadata_text(contents, is_control=batch.is_control)
        if decoded is not None:
            place = offset, timestamp, batch.partition_leader_epoch, batch.position
            self.out.values.append(DumpedMetadataRecord(*place, decoded))
        elif not batch.is_control:
            reason = UnreadableReason.UNDECODABLE_RECORD if contents.endswith(b"\n") else UnreadableReason.CUT_LINE
            self.out.unreadable(position, contents, reason)

    def read_snapshot_entry(self, position: int, line: bytes) -> bool:
        """A line without its line end does not count, because its last number may be truncated."""
        if not line.startswith(b"producerId: ") or not line.endswith(b"\n") or (self.chain and self.chain.kind in LOG_KINDS):
            return False
        entry = read_snapshot_line(line)
        if entry is None:
            return False
        chain = self.chain or self.start_file(position, DumpedFile(kind="snapshot"))
        self.out.settle(chain)
        self.out.values.append(entry)
        return True

    def read_other(self, position: int, line: bytes) -> None:
        """Reads a line that is not genuine: a message of the tool, payload, or damage."""
        chain = self.chain or BatchChain(DumpedFile())
        remark = remark_of(line)
        chain.is_torn |= remark is Remark.TORN
        chain.is_ended_early |= remark is Remark.ENDED_EARLY or b'Exception in thread "' in line
        is_of_index = chain.kind not in (*LOG_KINDS, "snapshot") and line.startswith(_OF_INDEXES)
        if chain.has_open_text:
            self.read_open_text(position, line, chain)
            return
        if remark is not None or is_of_index:
            self.out.read += len(line)
            return
        for start, read in _STARTS.items():
            index = line.rfind(start, 1)
            rest = line[index:]
            if index > 0 and read(rest):
                self.out.unreadable(position, line[:index], UnreadableReason.BROKEN_LINE, index)
                self.read(position + index, rest)
                return
        chain.is_torn |= not line.endswith(b"\n")
        is_of_invalid = chain.batch is not None and not chain.batch.is_valid
        reason = UnreadableReason.CRC_MISMATCH if is_of_invalid else reason_of(line)
        is_measured = line.startswith(b"| offset: ") and self.pass_contents(line)
        may_be_of_text = chain.may_be_in_text or reason is not UnreadableReason.NOT_DUMP_TEXT or line.startswith(b"|")
        self.out.unreadable(position, line, reason)
        if not is_measured and may_be_of_text and (chain.has_text or may_have_contents(line)):
            # The next lines may be the rest of a payload whose beginning is lost.
            chain.open_text(OpenText(self.out.end, is_damage=True))

    def read_open_text(self, position: int, line: bytes, chain: BatchChain) -> None:
        if chain.open is not None and chain.open.is_damage:
            self.out.unreadable(position, line, UnreadableReason.BROKEN_LINE)
            return
        chain.add_text(line)
        self.out.payload += len(line)

    def pass_contents(self, line: bytes) -> bool:
        """Skips the contents of a record that is not part of the batch, over several lines; False if they cannot be measured."""
        record = read_record_line(line)
        for contents in () if record is None else contents_of(record):
            size = contents_size(record, contents) if record is not None else NOT_PRINTED
            passed = pass_over(self.lines, contents, size) if size >= 0 else None
            if passed is not None:
                self.out.end += passed[0]
                return True
            if size < 0 and not contents.strip() and contents.endswith(b"\n"):
                return True
        return False
