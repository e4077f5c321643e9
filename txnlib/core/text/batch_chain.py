"""Chain of batch positions in a dumped file. After a break, reading resumes where a chain of lines is proven.

A genuine batch line has the position at which the previous batch ends, and a higher offset. A genuine record line
belongs to the batch line above it (docs/rules/formats.md#imitated-lines).
"""

from __future__ import annotations

from contextlib import closing
from enum import Enum
from operator import ne
from typing import Final

from txnlib.core.kafka.constants import CLUSTER_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from txnlib.core.text.dump_lines import (
    NOT_PRINTED,
    DumpedBatch,
    DumpedFile,
    looks_like_batch,
    offset_of,
    read_batch_line,
)
from txnlib.core.text.events import DumpTail, Remark
from txnlib.core.text.free_text import (
    BATCHES_AHEAD,
    BATCHES_TOGETHER,
    COST_OF_A_GAP,
    Candidate,
    Link,
    OpenText,
    OtherChains,
    genuine_lines,
)
from txnlib.core.text.lines import Lines

#: Number of recent batches of a chain to remember, so that a single damaged line does not hide that another file has
#: the same batches.
_RECENT: Final = 4


class State(Enum):
    """What may come next in a dumped file."""

    #: Outside any file.
    OUTSIDE = "OUTSIDE"
    #: A file that may be part of a payload.
    DOUBTED = "DOUBTED"
    #: A file without batches: producers, or an index.
    TABLE = "TABLE"
    #: A log, before its first batch.
    LOG = "LOG"
    #: After a batch: its records, or the next batch.
    BATCH = "BATCH"
    #: In free text of unknown extent.
    TEXT = "TEXT"


class FileLine(Enum):
    """The kinds of a line `Dumping <path>`."""

    GENUINE = "GENUINE"
    #: The chain continues after it.
    PAYLOAD = "PAYLOAD"
    #: The chain continues only after another `Dumping` line, where a file with like batches may have lost its first
    #: ones.
    LIKELY_PAYLOAD = "LIKELY_PAYLOAD"
    #: A payload may be open here, and nothing shows that the line is not part of it.
    DOUBTFUL = "DOUBTFUL"


class BatchChain:
    """The state of reading the dump of one file. Only its own methods change it.

    `next_position`: where its first batch begins. `doubted`: the chain in whose open text this file begins, if it does:
    the file may be a payload of that chain.
    """

    def __init__(
        self, file: DumpedFile, topic: str | None = None, *, next_position: int = 0, doubted: BatchChain | None = None
    ) -> None:
        self.file, self.doubted = file, doubted
        #: What may come next.
        self.state = State.DOUBTED if doubted is not None else State.LOG if file.has_batches else State.TABLE
        topic = file.topic or topic
        self.may_hold_coordinator_records = topic in (None, TRANSACTION_STATE_TOPIC)
        self.is_coordinator = topic == TRANSACTION_STATE_TOPIC
        #: Only the metadata log has snapshots of batches; that of a new cluster, `bootstrap.checkpoint`, is outside its
        #: folder.
        self.holds_metadata = topic == CLUSTER_METADATA_TOPIC or file.kind == "checkpoint"
        self.next_position, self.last_offset = next_position, NOT_PRINTED
        #: Lowest position and offset for a batch that replaces the current one, if the last resumption proves wrong.
        self.floor = (0, NOT_PRINTED)
        self.first: DumpedBatch | None = None
        self.batch: DumpedBatch | None = None
        self.records, self.record_offset = 0, NOT_PRINTED
        #: Whether the line `Log starting offset: N` was read, and whether free text was printed in this file.
        self.has_starting_offset = self.has_text = False
        #: The free text since the last batch line that could not be measured; and chains of other files that began in
        #: it.
        self.open: OpenText | None = None
        self._others, self._has_twin = OtherChains(), False
        #: Positions and offsets of the most recent batches.
        self._recent: tuple[tuple[int, int], ...] = ()
        #: Whether record lines are printed with metadata, or without (`--skip-record-metadata`).
        self.is_deep = self.is_bare = False
        #: Later batch lines were taken for payload, and no genuine one has followed since.
        self.has_doubt = False
        self.is_torn = self.is_ended_early = False
        self.has_records = self.has_decoded_records = self.has_untyped_markers = False
        #: There was a batch whose records were not printed.
        self.has_unprinted_records = False
        #: Positions in the text: of genuine batch lines, of the end of the lines judged so far, and of the line where
        #: the file continues.
        self._genuine: set[int] = set()
        self._judged_until = self._goes_on_at = 0

    # ---- Transitions

    def start_at(self) -> bool:
        """Takes the line `Log starting offset: N`; False where it cannot be: the tool prints it once per log, before
        any batch."""
        may_start = not self.has_starting_offset and self.batch is None and self.file.kind == "log"
        self.has_starting_offset |= may_start
        return may_start

    def append(self, batch: DumpedBatch, *, is_cut: bool = False) -> None:
        """Continues the chain after a batch line. For a batch that fails its CRC, only the size counts, as in the
        tool."""
        if self.continues(batch):
            self.floor = (
                batch.position + 1,
                max(batch.last_offset, self.last_offset) if batch.is_valid else self.last_offset,
            )
        if self.batch is not None and self.batch.is_valid and not self.is_bare and not self.records:
            self.has_unprinted_records |= self.batch.records_count > 0
        self.next_position = batch.position + batch.size
        # The line of a compressed set of formats 0 and 1 does not show its first offset.
        self.record_offset = batch.base_offset - 1 if batch.magic >= 2 else self.last_offset
        self.first = self.first or batch
        self.batch, self.records = batch, 0
        self._recent = (*self._recent[1 - _RECENT :], (batch.position, batch.base_offset))
        self.end_text()
        self.state = State.BATCH
        # What seemed to be the end of the file was not. Tools end every line.
        self.is_ended_early = self.has_doubt = False
        self.is_torn = is_cut
        if batch.is_valid:
            self.last_offset = batch.last_offset
            self.has_records |= batch.records_count != 0
            self.has_untyped_markers |= batch.is_marker

    def append_all(self, last: DumpedBatch, *, has_records: bool, has_untyped_markers: bool) -> None:
        """Continues the chain after valid batches that continue it. `last`: the last one."""
        self.next_position, self.last_offset = last.position, last.base_offset - 1
        self.append(last)
        self.has_records |= has_records
        self.has_untyped_markers |= has_untyped_markers

    def take_record(self, offset: int) -> None:
        """Takes a record of the current batch."""
        self.records, self.record_offset, self.is_deep = self.records + 1, offset, True

    def take_bare_record(self) -> None:
        """Takes a record that is printed without metadata."""
        self.records, self.is_bare = self.records + 1, True

    def take_decoded(self) -> bool:
        """Notes a decoded coordinator record. False if text before it was taken for contents, but was a broken
        record."""
        is_first_text = self.has_text and not self.has_decoded_records
        self.has_decoded_records = True
        return not is_first_text

    def take_text(self) -> None:
        """Notes that free text was measured."""
        self.has_text = True

    def end_text(self) -> None:
        """Notes that free text has ended."""
        if self.open is not None:
            self.open, self.state = None, State.LOG if self.batch is None else State.BATCH
            self._others, self._has_twin = OtherChains(), False

    def open_text(self, text: OpenText) -> None:
        """Notes that free text of unknown extent follows this line."""
        self.has_text, self.open, self.state = True, text, State.TEXT

    def take_remark(self, remark: Remark | None, line: bytes) -> None:
        """Takes a line that may be a message of the tool about the end of the file."""
        self.is_torn |= remark is Remark.TORN
        self.is_ended_early |= remark is Remark.ENDED_EARLY or b'Exception in thread "' in line

    def tear(self) -> None:
        """Notes that the text ends inside a line."""
        self.is_torn = True

    def pass_batch(self, batch: DumpedBatch) -> None:
        """Notes a batch line that is not part of this chain: another file may have begun there."""
        if self.open is not None and batch != self.first:
            self._others.add(batch)
            # Only after the beginning of another file: a payload may quote batches from before it.
            self._has_twin |= bool(self._others) and self._is_of_twin(batch)

    # ---- What may follow

    def continues(self, batch: DumpedBatch) -> bool:
        """Whether a batch starts where the previous one ends, with a higher offset."""
        return batch.position == self.next_position and batch.base_offset > self.last_offset

    def holds(self, offset: int) -> bool:
        """Whether this may be the offset of the next record of the current batch."""
        batch = self.batch
        if batch is None or not self.record_offset < offset <= batch.last_offset:
            return False
        return self.records < batch.records_count or batch.records_count == NOT_PRINTED

    def next_bare_offset(self) -> int | None:
        """The offset of the next record without metadata: except after compaction, those of a batch are consecutive.

        None if there is no such record.
        """
        batch = self.batch
        if batch is None or not batch.is_valid or batch.is_control or self.is_deep:
            return None
        offset = batch.base_offset + self.records
        return None if offset > batch.last_offset or self.records >= batch.records_count != NOT_PRINTED else offset

    @property
    def is_plain(self) -> bool:
        """Whether no record lines are printed and nothing is in doubt, so that the next batches may be read as a
        block."""
        if self.is_deep or self.has_text or self.is_bare or self.has_doubt or self.is_torn:
            return False
        return self.file.kind == "log" and self.batch is not None and self.batch.is_valid

    @property
    def expects_decoded(self) -> bool:
        """Whether contents other than a coordinator record mean damage, because other records were decoded."""
        return self.is_coordinator and self.has_decoded_records

    @property
    def has_lost_records(self) -> bool:
        """Whether the records before the first printed one are lost."""
        return self.is_coordinator and self.has_unprinted_records and not self.is_deep

    def is_left_by(self, batch: DumpedBatch) -> bool:
        """Whether a batch line that does not follow is the first of another file whose `Dumping` line is lost."""
        return batch.position == 0 and batch != self.first and not self.may_be_in_text

    def is_rivalled_at(self, batch: DumpedBatch) -> bool:
        """Whether a batch line also continues a chain that began at position 0 since this chain's last batch line."""
        return batch.position > 0 and (self._has_twin or self._others.hold(batch))

    def _is_of_twin(self, batch: DumpedBatch) -> bool:
        """Whether a batch has position and offset of a recent batch: partitions that are written together are alike."""
        return batch.position > 0 and (batch.position, batch.base_offset) in self._recent

    def follows(self, batch: DumpedBatch, position: int, lines: Lines) -> bool:
        """Whether the batch line at this position in the text is genuine: it continues the chain or resumes it.

        If contents are printed, it must be on the best chain through the lines after it.
        """
        if not self.has_text:
            return self.continues(batch) or (self._is_ahead(batch) and self._has_whole_numbers(batch, lines))
        if position >= self._judged_until:
            self._judge(batch, position, lines)
        is_genuine = position in self._genuine
        self.has_doubt |= not is_genuine and self._is_ahead(batch)
        return is_genuine

    def _is_ahead(self, batch: DumpedBatch) -> bool:
        return batch.position >= self.floor[0] and batch.base_offset > self.floor[1]

    def _has_whole_numbers(self, batch: DumpedBatch, lines: Lines) -> bool:
        """Whether the numbers in a later batch line are complete, as far as the next batch or record line shows."""
        with closing(lines.ahead()) as ahead:
            for _position, line in ahead:
                if line.startswith(b"| offset: ") and batch.may_begin_with(offset_of(line)):
                    return True
                if looks_like_batch(line) and (other := read_batch_line(line)):
                    return not self.continues(other) and other.position >= batch.end
                if line.startswith(b"Dumping "):
                    break
        return True

    def _judge(self, batch: DumpedBatch, position: int, lines: Lines) -> None:
        """Finds the genuine lines among the next lines that look like batches."""
        candidates, has_own_record, files = [Candidate(position, batch, 0)], False, 0
        with closing(lines.ahead()) as ahead:
            for other_position, line in ahead:
                if line.startswith(b"| offset: ") and len(candidates) == 1 and self.open is None:
                    has_own_record |= batch.may_begin_with(offset_of(line))
                elif line.startswith(b"Dumping "):
                    files += 1
                elif looks_like_batch(line) and (other := read_batch_line(line)):
                    candidates.append(Candidate(other_position, other, files))
                    if len(candidates) == BATCHES_TOGETHER:
                        break
        roots = Link(self.next_position, self.last_offset), Link(*self.floor, -COST_OF_A_GAP)
        self._genuine, self._judged_until = genuine_lines(candidates, roots, has_own_record=has_own_record)

    def is_whole(self, *, is_cut: bool) -> bool:
        """Whether all records are printed, if any are. `is_cut`: damage directly before explains missing records."""
        return (
            self.batch is not self.first or self.batch is None if not self.is_deep else is_cut or not self._lacks_record
        )

    def judge_file(self, file: DumpedFile, position: int, lines: Lines) -> FileLine:
        """Whether a `Dumping` line that may be in a text is genuine. It is payload if the chain continues after it.

        Batches that continue the chain of the file that begins here prove nothing, even if they also continue this
        chain: partitions that are written together have the same positions and offsets.
        """
        if position < self._goes_on_at:
            return FileLine.PAYLOAD
        end, last_offset = self.next_position, self.last_offset
        others, has_twin = OtherChains(), False
        is_first = is_straight = has_header = True
        going_on = files = straight = 0
        with closing(lines.ahead()) as ahead:
            for other_position, line in ahead:
                if is_first and file.kind == "log":
                    is_straight = has_header = line.startswith((b"Log starting offset: ", b"Starting offset: "))
                is_first = False
                files += line.startswith(b"Dumping ")
                is_straight &= not files
                if not looks_like_batch(line) or (batch := read_batch_line(line)) is None:
                    continue
                is_own = batch.position == end and batch.base_offset > last_offset
                is_other = others.add(batch)
                is_straight &= is_other and not is_own
                straight += is_straight
                if is_straight and straight == BATCHES_AHEAD:
                    return FileLine.GENUINE
                has_twin |= self._is_of_twin(batch)
                if is_own and not is_other and not has_twin:
                    # In another file, one batch may match by chance, but hardly two, nor one with the next offset.
                    going_on += 2 if batch.base_offset == last_offset + 1 else 1
                    if going_on >= 2:
                        self._goes_on_at = other_position
                        return FileLine.LIKELY_PAYLOAD if files else FileLine.PAYLOAD
                if is_own:
                    end, last_offset = batch.end, batch.last_offset
        return FileLine.GENUINE if self.may_end and has_header else FileLine.DOUBTFUL

    @property
    def may_end(self) -> bool:
        """Whether the file may end here: all records are printed, and the text of the last one may end."""
        return (
            not (self.is_deep and self._lacks_record)
            and not self._lacks_text
            and (self.open is None or self.open.may_end)
        )

    @property
    def may_be_in_text(self) -> bool:
        """Whether the next line may be free text: a text is open, or records are missing whose contents would be
        printed."""
        return self.open is not None or self._lacks_text

    @property
    def _lacks_text(self) -> bool:
        return self.has_text and self._lacks_record

    @property
    def _lacks_record(self) -> bool:
        if self.batch is None or not self.batch.is_valid or (self.is_bare and self.batch.is_control):
            # Without metadata, the record of a control batch is an empty line.
            return False
        return self.records < self.batch.records_count

    @property
    def lacks_records(self) -> bool:
        """Whether records of the current batch are missing, in a dump that prints records."""
        return self.is_deep and self.open is None and self._lacks_record

    @property
    def is_decoded(self) -> bool:
        """Whether all marker types and coordinator records were printed."""
        if self.is_coordinator and self.has_records and not self.has_decoded_records:
            return False
        return self.is_deep or not self.has_untyped_markers

    def tail(self, *, is_last: bool, is_corrupt: bool) -> DumpTail:
        """How the file ends. `is_last`: with the text. `is_corrupt`: nothing believable follows."""
        if is_corrupt or self.is_ended_early:
            return DumpTail.CORRUPT
        if self.is_torn or self.lacks_records:
            return DumpTail.TORN
        return DumpTail.EMPTY_OR_CUT if is_last and self.file.kind == "log" and self.batch is None else DumpTail.CLEAN

    def is_followed_by(self, file: DumpedFile) -> bool:
        """Whether a file continues this log at its very end, but in a folder whose path differs in one letter.

        A wrong letter in a `Dumping` line moves a segment to another partition. The tool prints a partition's segments
        one after the other, and another partition hardly begins where this one ends. A copy of one segment shows no
        such thing: a broker may well have only one of two partitions with like names.
        """
        folders = self.file.folder, file.folder
        is_next = self.has_records and file.kind == self.file.kind == "log" and file.base_offset == self.last_offset + 1
        return is_next and len(folders[0]) == len(folders[1]) and sum(map(ne, *folders)) == 1
