"""Text of `kafka-dump-log.sh`: batches, coordinator records, producers, and unreadable ranges.

Rule 1: the chain of positions decides what is genuine (`batch_chain`). All other text is payload, however perfectly it
imitates a line. It is measured by the printed sizes where possible (`free_text`).
Rule 2: text never raises. Text that no tool prints, and text that is truncated or overwritten, becomes an `Unreadable`
range.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from txnlib.core.text.batch_chain import BatchChain, State
from txnlib.core.text.coordinator_text import (
    DECODED,
    METADATA_PAYLOADS,
    UNDECODED,
    read_metadata_text,
    reason_of_undecoded,
)
from txnlib.core.text.dump_files import FileReader
from txnlib.core.text.dump_lines import (
    KEY,
    NOT_PRINTED,
    DumpedBatch,
    DumpedFile,
    RecordLine,
    contents_of,
    contents_size,
    is_of_old_tool,
    may_have_contents,
    offset_of,
    read_batch_line,
    read_file_line,
    read_marker,
    read_record_line,
    read_snapshot_line,
)
from txnlib.core.text.events import DumpedRecord, UnreadableReason, reason_of, remark_of
from txnlib.core.text.free_text import OpenText, pass_over, read_coordinator_text
from txnlib.core.text.lines import LongLine, size_of

#: The kinds of lines, by their first words. BARE: of `--skip-record-metadata`; a payload without a key has no bar up to
#: 4.2.
_KIND: Final = re.compile(
    rb"(?P<RECORD>\| offset: )|(?P<BATCH>baseOffset: |offset: )|(?P<BARE>\| key: |\| payload: | payload:"
    rb" )|(?P<FILE>Dumping )"
    rb"|(?P<START>Log starting offset: |Starting offset: )|(?P<PRODUCER>producerId: )|(?P<EMPTY>\n\Z)"
)
#: The same without a search.
_FREQUENT: Final = {b"| offset: ": "RECORD", b"baseOffset": "BATCH"}
_HEADER_KEYS: Final = b"headerKeys: ["
_NO_CONTENTS: Final = (b"headerKeys: []\n", b"headerKeys: []\r\n")
_BARE_KEY: Final = b"| key: "
_OF_INDEXES: Final = (b"version: ", b"offset: ", b"timestamp: ")
#: Beginnings of lines that may follow a truncated line, in the middle of it.
_STARTS: Final = {b"Dumping ": read_file_line, b"baseOffset: ": read_batch_line, b"| offset: ": read_record_line}


def _kind_of(line: bytes) -> str:
    """The kind of a line; empty if it has none."""
    match = _KIND.match(line)
    return (match and match.lastgroup) or ""


class DumpReader(FileReader):
    """Reads one line after the other: `_ACTIONS` is what it does with each kind of line in each state."""

    def read_line(self) -> bool:
        """Reads the next line; False at the end of the text."""
        line = self.lines.next()
        if line is not None:
            self.read(*line)
        return line is not None

    def read(self, position: int, line: bytes) -> None:
        out = self.out
        out.end = position + (len(line) or size_of(line))
        if type(line) is LongLine:
            self.skip_long_line(position, line)
            return
        elsewhere = out.payload + out.quarantined
        state = State.OUTSIDE if self.chain is None else self.chain.state
        action = _ACTIONS[state].get(_FREQUENT.get(line[:10]) or _kind_of(line))
        if action is not None and action(self, position, line):
            out.read += out.end - position - (out.payload + out.quarantined - elsewhere)
        elif state is State.DOUBTED:
            self.doubt(position, line)
        else:
            self.read_other(position, line)

    @property
    def skips_empty(self) -> bool:
        """Whether empty lines mean nothing here: in any tool they do, except in text. There may be millions."""
        return "EMPTY" in _ACTIONS[self.state]

    def skip(self, size: int) -> None:
        """Continues after so many bytes of text that the caller has read."""
        self.out.read += size
        self.out.end += size

    def skip_batches(self, last: DumpedBatch, size: int, *, has_records: bool, has_untyped_markers: bool) -> None:
        """Continues after the lines of batches that the caller has read. `BatchChain.is_plain` says whether it may."""
        assert self.chain is not None
        self.out.settle()
        self.chain.append_all(last, has_records=has_records, has_untyped_markers=has_untyped_markers)
        self.skip(size)

    # ---- Batches and records

    def read_batch(self, position: int, line: bytes) -> bool:
        batch, chain = read_batch_line(line), self.chain
        if batch is None:
            return False
        if chain is None or not chain.file.has_batches:
            chain = self.start_file(position, DumpedFile(), next_position=batch.position)
        is_next = chain.continues(batch)
        if not (is_next and chain.open is None) and not chain.follows(batch, position, self.lines):
            if not chain.is_left_by(batch):
                chain.pass_batch(batch)
                return False
            chain, is_next = self.start_file(position, DumpedFile()), True
        elif not is_next and self.before is not None and self.before.has_text and self.before.continues(batch):
            # The `Dumping` line between the two files may be of a payload.
            chain = self.start_file(position, DumpedFile())
        elif chain.open is not None and chain.is_rivalled_at(batch):
            # Either the `Dumping` line of another file is lost, or a payload leads here.
            self.doubt_file(position, line, DumpedFile(), chain)
            return True
        is_any_missing = not is_next or chain.lacks_records
        self.close_text(position)
        if is_any_missing:
            self.out.missing(position)
        if self.out.pending is not None or self.out.ranges:
            self.out.settle()
        chain.append(batch, is_cut=not line.endswith(b"\n"))
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
        if not chain.holds(offset) or (chain.open is not None and chain.open.is_unfinished):
            return False
        # Contents can end with the same text.
        has_no_contents = line.endswith(_NO_CONTENTS) and line.find(_HEADER_KEYS) > len(line) - len(_HEADER_KEYS) - 4
        if has_no_contents and chain.expects_decoded and not chain.batch.is_control:
            self.out.unreadable(position, line, UnreadableReason.UNDECODABLE_RECORD)
        elif chain.batch.is_control or not has_no_contents or (not chain.is_deep and b" keysize: " in line):
            record = read_record_line(line)
            if record is None or record.timestamp_type != chain.batch.timestamp_type:
                return False
            if chain.batch.magic >= 2 and not record.has_header_keys:
                return False
            if not self.read_text(position, record, chain, chain.batch):
                return False
            if not line.endswith(b"\n"):
                chain.tear()
        if not chain.is_deep and chain.has_lost_records:
            self.out.missing(position)
        chain.take_record(offset)
        if self.out.pending is not None or self.out.ranges:
            self.out.settle()
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
                marker = read_marker(contents)
                if marker is not None and self.out.pending is not None:
                    self.out.pending = self.out.pending._replace(control_type=marker[0], coordinator_epoch=marker[1])
                return marker is not None
            text = contents.removeprefix(KEY)
            if chain.may_hold_coordinator_records and len(text) < len(contents) and text.startswith(DECODED):
                self.read_coordinator_record(
                    position, record.offset, record.timestamp, text, record.key_size, chain, batch
                )
                return True
            size = contents_size(record, contents)
            if chain.expects_decoded and (size >= 0 or not contents.strip()):
                break
            if size >= 0:
                chain.take_text()
                passed = pass_over(self.lines, contents, size)
                if passed is not None:
                    self.out.end += passed[0]
                    self.out.payload += passed[0]
                    self.note_payload(passed[1])
                    return True
                if text_open is None and record.is_alone and not (chain.open is not None and chain.open.is_list):
                    text_open = OpenText(self.out.end, contents, size)
            elif record.is_alone:
                # No header keys, so that no other text is possible here.
                return not contents.strip()
        chain.open_text(text_open or self.text_after(record, chain))
        return True

    def text_after(self, record: RecordLine, chain: BatchChain) -> OpenText:
        """The text after a record line without contents to measure. Header keys are free text, too, without a printed
        size."""
        if not chain.expects_decoded:
            return OpenText(self.out.end, record.text, is_list=record.has_header_keys)
        self.out.unreadable(self.out.end - len(record.text), record.text, UnreadableReason.UNDECODABLE_RECORD)
        return OpenText(self.out.end, is_damage=True)

    def read_bare_record(self, position: int, line: bytes) -> bool:
        """A line of `--skip-record-metadata`."""
        chain = self.chain
        offset = None if chain is None else chain.next_bare_offset()
        if chain is None or chain.batch is None or offset is None:
            return False
        batch, text = chain.batch, line.removeprefix(_BARE_KEY)
        if chain.may_hold_coordinator_records and len(text) < len(line) and text.startswith(DECODED):
            timestamp = batch.max_timestamp if batch.records_count == 1 else NOT_PRINTED
            self.read_coordinator_record(position, offset, timestamp, text, NOT_PRINTED, chain, batch)
        elif chain.holds_metadata and (payload := line.removeprefix(b"|")).startswith(METADATA_PAYLOADS):
            self.read_metadata_record(position, offset, batch.max_timestamp, payload, batch)
        else:
            chain.open_text(OpenText(self.out.end))
        chain.take_bare_record()
        return True

    def read_coordinator_record(
        self,
        position: int,
        offset: int,
        timestamp: int,
        text: bytes,
        key_size: int,
        chain: BatchChain,
        batch: DumpedBatch,
    ) -> None:
        is_undecoded = text.startswith(UNDECODED)
        decoded = None if is_undecoded else read_coordinator_text(self.lines, text, key_size)
        if not chain.take_decoded():
            self.out.missing(position)
        if decoded is not None:
            record, length = decoded
            self.out.end += length
            place = offset, timestamp, batch.partition_leader_epoch, batch.position
            self.out.values.append(DumpedRecord(*place, record))
            return
        if not is_undecoded:
            chain.open_text(OpenText(self.out.end, is_damage=True))
        self.out.unreadable(
            position, text, reason_of_undecoded(text) if text.endswith(b"\n") else UnreadableReason.CUT_LINE
        )

    def read_metadata_record(
        self, position: int, offset: int, timestamp: int, contents: bytes, batch: DumpedBatch
    ) -> None:
        """Reads a record of `__cluster_metadata`, which the tool prints on one line."""
        decoded = read_metadata_text(contents, is_control=batch.is_control)
        if decoded is not None:
            place = offset, timestamp, batch.partition_leader_epoch, batch.position
            self.out.values.append(DumpedRecord(*place, decoded))
        elif not batch.is_control:
            reason = UnreadableReason.UNDECODABLE_RECORD if contents.endswith(b"\n") else UnreadableReason.CUT_LINE
            self.out.unreadable(position, contents, reason)

    def read_snapshot_entry(self, position: int, line: bytes) -> bool:
        """A line without its line end does not count, because its last number may be truncated."""
        if not line.endswith(b"\n") or (self.chain is not None and self.chain.file.has_batches):
            return False
        entry = read_snapshot_line(line)
        if entry is None:
            return False
        if self.chain is None:
            self.start_file(position, DumpedFile(kind="snapshot"))
        self.out.settle()
        self.out.values.append(entry)
        return True

    # ---- Other lines: messages of the tool, payload, or damage

    def skip_long_line(self, position: int, line: LongLine) -> None:
        """Reports a line that is too long. If it may be part of contents, the next lines may be, too."""
        self.out.unreadable(position, line.head, UnreadableReason.LINE_TOO_LONG, line.size)
        chain = self.chain
        if chain is not None and chain.doubted is None and (chain.has_text or may_have_contents(line.head)):
            chain.open_text(OpenText(self.out.end, is_damage=True))

    def read_other(self, position: int, line: bytes) -> None:
        chain = self.chain or BatchChain(DumpedFile())
        remark = remark_of(line)
        chain.take_remark(remark, line)
        if chain.open is not None:
            if chain.open.is_damage:
                self.out.unreadable(
                    position, line, UnreadableReason.OLD_TOOL if is_of_old_tool(line) else UnreadableReason.BROKEN_LINE
                )
            else:
                chain.open.add(line)
                self.out.payload += len(line)
            return
        is_of_index = not chain.file.has_batches and chain.file.kind != "snapshot" and line.startswith(_OF_INDEXES)
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
        if not line.endswith(b"\n"):
            chain.tear()
        is_of_invalid = chain.batch is not None and not chain.batch.is_valid
        reason = UnreadableReason.CRC_MISMATCH if is_of_invalid else reason_of(line)
        is_measured = line.startswith(b"| offset: ") and self.pass_contents(line)
        may_be_of_text = chain.may_be_in_text or reason is not UnreadableReason.NOT_DUMP_TEXT or line.startswith(b"|")
        self.out.unreadable(position, line, reason)
        if not is_measured and may_be_of_text and (chain.has_text or may_have_contents(line)):
            # The next lines may be the rest of a payload whose beginning is lost.
            chain.open_text(OpenText(self.out.end, is_damage=True))

    def pass_contents(self, line: bytes) -> bool:
        """Skips the contents of a record that is not part of the batch, over several lines; False if they cannot be
        measured."""
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


Action = Callable[[DumpReader, int, bytes], bool]
_OF_LOG: Final[Mapping[str, Action]] = {
    "FILE": DumpReader.read_file,
    "START": DumpReader.read_starting_offset,
    "BATCH": DumpReader.read_batch,
}
_RECORDS: Final[Mapping[str, Action]] = {"RECORD": DumpReader.read_record, "BARE": DumpReader.read_bare_record}
_PRODUCERS: Final[Mapping[str, Action]] = {"PRODUCER": DumpReader.read_snapshot_entry}
_EMPTY: Final[Mapping[str, Action]] = {"EMPTY": lambda _reader, _position, _line: True}
#: What to do with a line, by what may come next and by the kind of line. An action returns whether the line is what it
#: looks like. Otherwise, and where there is no action, the line is a message of the tool, payload, or damage; or in
#: doubt with its file.
_ACTIONS: Final[Mapping[State, Mapping[str, Action]]] = {
    State.OUTSIDE: {**_OF_LOG, **_PRODUCERS, **_EMPTY},
    State.TABLE: {**_OF_LOG, **_PRODUCERS, **_EMPTY},
    State.LOG: {**_OF_LOG, **_EMPTY},
    State.BATCH: {**_OF_LOG, **_RECORDS, **_EMPTY},
    State.TEXT: {**_OF_LOG, **_RECORDS, **_PRODUCERS},
    State.DOUBTED: {"FILE": DumpReader.read_file_in_doubt},
}
