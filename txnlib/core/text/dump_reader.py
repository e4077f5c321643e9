"""Text of `kafka-dump-log.sh`: batches, coordinator records, producers, and unreadable ranges.

Rule 1: the chain of positions decides what is genuine (`batch_chain`). All other text is payload, however perfectly it imitates a
line. It is measured by the printed sizes where possible (`record_lines`).
Rule 2: text never raises. Text that no tool prints, and text that is truncated or overwritten, becomes an `Unreadable` range.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from itertools import chain as joined
from typing import Final

from txnlib.core.text import dump_events as events
from txnlib.core.text.batch_chain import BATCHES_AHEAD, Chain, ChainedBatches, Line, Lines, offset_of
from txnlib.core.text.coordinator_text import DECODED, UNDECODED
from txnlib.core.text.dump_events import (
    DumpedMetadataRecord,
    DumpedTransactionLogRecord,
    FileEnd,
    FileStart,
    Output,
    Unreadable,
    sample_of,
)
from txnlib.core.text.dump_lines import (
    LOG_KINDS,
    NOT_PRINTED,
    DumpedBatch,
    DumpedFile,
    read_batch_line,
    read_file_line,
    read_snapshot_line,
)
from txnlib.core.text.free_text import FileLine, OpenText
from txnlib.core.text.long_line import LongLine, size_of
from txnlib.core.text.metadata_text import METADATA_PAYLOADS, read_metadata_text
from txnlib.core.text.record_lines import (
    KEY,
    RecordLine,
    batch_of,
    contents_of,
    contents_size,
    may_have_contents,
    pass_over,
    read_coordinator_text,
    read_marker,
    read_record_line,
)
from txnlib.core.text.tool_messages import Remark, Tail, UnreadableReason, reason_of, reason_of_undecoded, remark_of

_HEADER_KEYS: Final = b"headerKeys: ["
_NO_CONTENTS: Final = (b"headerKeys: []\n", b"headerKeys: []\r\n")
#: Beginnings of lines with `--skip-record-metadata`; a payload without a key has no bar up to 4.2.
_BARE_KEY: Final = b"| key: "
_BARE_RECORDS: Final = (_BARE_KEY, b"| payload: ", b" payload: ")
_STARTING_OFFSETS: Final = (b"Log starting offset: ", b"Starting offset: ")
_OF_INDEXES: Final = (b"version: ", b"offset: ", b"timestamp: ")
#: Beginnings of lines that may follow a truncated line, in the middle of it.
_STARTS: Final = {b"Dumping ": read_file_line, b"baseOffset: ": read_batch_line, b"| offset: ": read_record_line}
_LARGEST_BATCH: Final = (1 << 31) - 1
#: Maximum number of different `Dumping` lines in payloads to report per file.
_NOTED_IN_A_FILE: Final = 16


class DumpReader:
    """Reads one line after the other. Each line comes with its position in the text and with its line end.

    Between two lines, its state is its chain and the events waiting to be taken. The other `read_…` methods return whether a line
    is what it looks like.
    """

    def __init__(self, lines: Iterable[Line], topic: str | None, *, looks_ahead: bool = False) -> None:
        """`topic`: that of files whose path does not contain it. Only `__transaction_state` has coordinator records.

        `looks_ahead`: whether it reads lines ahead for another reader, and so trusts no file in doubt.
        """
        self.lines, self.topic, self.looks_ahead = Lines(lines), topic, looks_ahead
        self.out = Output()
        self.chain: Chain | None = None
        #: The end of the last `Dumping` line, and the log directories of files that are not in doubt.
        self.file_line_end = -1
        self.log_directories: set[str] = set()

    def read_line(self) -> bool:
        """Reads the next line; False at the end of the text."""
        line = self.lines.next()
        if line is not None:
            self.read(*line)
        return line is not None

    def skip_batches(self, batches: ChainedBatches, size: int) -> None:
        """Continues after batches that the caller has read, `size` bytes of text. `Chain.is_plain` says whether it may."""
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

    def end_text(self, problem: UnreadableReason | None) -> None:
        """Ends the last file. `problem`: why the text is incomplete; None if it is complete."""
        self.close_text(self.out.end)
        if problem is not None:
            self.out.note(self.out.end, problem)
        self.out.end_file(self.chain, self.out.end, is_last=True)

    def take_events(self) -> list[events.Dumped]:
        """Returns the events since the last call."""
        taken, self.out.values = self.out.values, []
        return taken

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
            is_genuine = self.read_batch(position, line) or self.read_lone_record(position, line)
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

    def skip_long_line(self, position: int, line: LongLine, chain: Chain | None) -> None:
        """Reports a line that is too long. If it may be part of contents, the next lines may be, too."""
        self.out.unreadable(position, line.head, UnreadableReason.LINE_TOO_LONG, line.size)
        if chain is None:
            return
        if chain.doubted is not None:
            chain.doubted.add_text(line)
        elif chain.has_text or may_have_contents(line.head):
            chain.open_text(OpenText(self.out.end, is_damage=True))

    def read_file(self, position: int, line: bytes) -> bool:
        file, chain = read_file_line(line), self.chain
        self.file_line_end = self.out.end
        if chain is not None and chain.doubted is not None:
            return self.read_file_in_doubt(position, line, file, chain.doubted)
        if file is None:
            return False
        verdict = FileLine.GENUINE if chain is None else self.judge_file(position, line, file, chain)
        if chain is not None and verdict is FileLine.GENUINE and chain.goes_on_in(file):
            # Whichever of the two names is wrong, the other lacks a segment: neither is fed with it, and both are lowered.
            verdict = FileLine.DOUBTFUL
        if chain is None or verdict is FileLine.GENUINE:
            self.close_text(position)
            self.start_file(position, file)
            self.log_directories.add(file.log_directory)
        elif verdict is FileLine.DOUBTFUL:
            self.doubt_file(position, line, file, chain)
        else:
            if verdict is FileLine.LIKELY_PAYLOAD:
                self.out.note(position, UnreadableReason.DUMPING_LINE_IN_DOUBT, line)
            self.note_payload([(position, line)], chain)
            self.read_other(position, line)
        return True

    def read_file_in_doubt(self, position: int, line: bytes, file: DumpedFile | None, doubted: Chain) -> bool:
        """Trusts a `Dumping` line after one in doubt if the open text has ended by its size, or if a sound file begins there."""
        if file is None:
            self.out.unreadable(position, line, UnreadableReason.DUMPING_LINE_IN_DOUBT)
            return True
        is_trusted = self.judge_file(position, line, file, doubted) is FileLine.GENUINE
        chain = self.start_file(position, file)
        if is_trusted:
            self.log_directories.add(file.log_directory)
        else:
            doubted.add_text(line)
            chain.doubted = doubted
            self.out.unreadable(position, line, UnreadableReason.DUMPING_LINE_IN_DOUBT)
        return True

    def judge_file(self, position: int, line: bytes, file: DumpedFile, before: Chain) -> FileLine:
        """Whether a `Dumping` line after another file is genuine. Where its text may be open, its chain counts first."""
        is_ended = before.is_whole(is_cut=bool(self.out.ranges)) or self.looks_ahead
        if not before.may_be_in_text and is_ended:
            return FileLine.GENUINE
        if not before.has_text and not before.has_open_text and self.is_sound_file(position, line, file):
            return FileLine.GENUINE
        verdict = before.judge_file(file, position, self.lines)
        if verdict is FileLine.DOUBTFUL and self.is_sound_file(position, line, file):
            if not self.out.ranges:
                # The file before is lowered in any case: no damage explains why its last text does not end here.
                self.out.note(position, UnreadableReason.DUMPING_LINE_IN_DOUBT, line)
            return FileLine.GENUINE
        return verdict

    def is_sound_file(self, position: int, line: bytes, file: DumpedFile) -> bool:
        """Whether the file that begins with a `Dumping` line in doubt is sound up to the next one, or for 32 batches.

        Of payloads, only one that imitates a whole file of a known log directory looks like that. And only the last record of the
        file before can hide it: after any other, that file's own chain goes on.
        """
        if self.looks_ahead or (self.log_directories and file.log_directory not in self.log_directories):
            return False
        with closing(self.lines.ahead()) as ahead:
            reader = DumpReader(joined([(position, line)], ahead), self.topic, looks_ahead=True)
            batches = 0
            while reader.read_line():
                for event in reader.take_events():
                    if type(event) is FileEnd:
                        return event.tail is Tail.CLEAN
                    if type(event) is Unreadable and event.length:
                        return False
                    batches += type(event) is DumpedBatch
                if reader.out.ranges:
                    return False
                if batches == BATCHES_AHEAD:
                    return True
            reader.end_text(None)
        return not any(type(event) is Unreadable for event in reader.take_events())

    def doubt_file(self, position: int, line: bytes, file: DumpedFile, chain: Chain) -> None:
        """Starts a file that may be part of a payload: its batches are not yielded, and the file before it may continue."""
        self.out.note(position, UnreadableReason.DUMPING_LINE_IN_DOUBT, line)
        chain.add_text(line)
        self.start_file(position, file).doubted = chain
        self.out.unreadable(position, line, UnreadableReason.DUMPING_LINE_IN_DOUBT)

    def note_payload(self, file_lines: list[Line], chain: Chain) -> None:
        for position, line in file_lines:
            if line not in chain.noted and len(chain.noted) < _NOTED_IN_A_FILE and read_file_line(line) is not None:
                chain.noted |= {line}
                self.out.values.append(Unreadable(position, 0, UnreadableReason.DUMPING_LINE_IN_PAYLOAD, sample_of(line)))

    def read_starting_offset(self, position: int, line: bytes) -> bool:
        """Reads `Log starting offset: N`, which the tool prints once per log, before any batch: N is the number in its name."""
        file = self.chain
        if file is not None and file.may_be_in_text and position != self.file_line_end:
            # A payload, or all that is left of the beginning of another file.
            self.out.note(position, UnreadableReason.OUT_OF_CHAIN, line)
        if file is None or file.may_be_in_text:
            return False
        if file.has_starting_offset or file.batch is not None or file.kind != "log":
            # The `Dumping` line of another file is lost: what follows does not belong to the file before.
            file = self.start_file(position, DumpedFile())
            self.out.note(position, UnreadableReason.OUT_OF_CHAIN, line)
        file.has_starting_offset = True
        number = line.rpartition(b" ")[2].strip()
        if file.base_offset is not None and number != b"%d" % file.base_offset:
            # A digit is wrong here or in the `Dumping` line.
            self.out.unreadable(position, line, UnreadableReason.BROKEN_LINE)
        return True

    def close_text(self, position: int) -> None:
        """Ends free text before a genuine line. If its size does not match, the text is unreadable instead of payload."""
        text = None if self.chain is None else self.chain.open
        if text is None or self.chain is None or text.size is None or text.may_end:
            return
        start = text.position
        self.chain.open = None
        if position > start:
            self.out.payload -= position - start
            self.out.unreadable(start, text.first_line, UnreadableReason.SIZE_MISMATCH, position - start)

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
        if chain.batch.is_control or not has_no_contents:
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

    def read_lone_record(self, position: int, line: bytes) -> bool:
        """A record line before 2.2, which also serves as batch line: records at the same position are one batch."""
        record = read_record_line(line) if line.startswith(b"offset: ") else None
        batch = batch_of(record) if record else None
        if record is None or batch is None:
            return False
        chain = self.chain or self.start_file(position, DumpedFile())
        if batch.position < chain.next_position or batch.base_offset <= chain.last_offset:
            return False
        before = self.out.pending
        if before is not None and before.position == batch.position:
            self.out.pending = before._replace(
                last_offset=batch.last_offset,
                records_count=before.records_count + 1,
                last_sequence=batch.last_sequence,
                max_timestamp=max(before.max_timestamp, batch.max_timestamp),
            )
        else:
            if before is not None:
                self.out.pending = before._replace(size=min(batch.position - before.position, _LARGEST_BATCH))
            self.out.settle(chain)
            self.out.pending = batch
        chain.next_position, chain.last_offset = batch.position, batch.last_offset
        chain.is_deep, chain.has_records = True, True
        chain.close_text()
        chain.is_torn = not line.endswith(b"\n")
        return self.read_text(position, record, chain, batch)

    def read_text(self, position: int, record: RecordLine, chain: Chain, batch: DumpedBatch) -> bool:
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
            if size >= 0 and chain.expects_decoded:
                self.out.unreadable(position, record.text, UnreadableReason.UNDECODABLE_RECORD)
                chain.open_text(OpenText(self.out.end, is_damage=True))
                return True
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
        # Header keys are free text, too, and their size is not printed.
        if text_open is None:
            text_open = OpenText(self.out.end, is_list=record.has_header_keys)
            text_open.add(record.text)
        chain.open_text(text_open)
        return True

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
        chain = self.chain or Chain(DumpedFile())
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

    def read_open_text(self, position: int, line: bytes, chain: Chain) -> None:
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

    def start_file(self, position: int, file: DumpedFile) -> Chain:
        self.out.end_file(self.chain, position)
        self.chain = Chain(file, self.topic)
        self.out.values.append(FileStart(position, file))
        return self.chain
