"""The chain of batches of a dumped file.

It tells where the next batch begins, and which records the current one lacks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from txnlib.core.kafka.constants import CLUSTER_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from txnlib.core.kafka.record_batch import CompressionType
from txnlib.core.text.dump_lines import NOT_PRINTED, SMALLEST_SIZES, DumpedBatch, DumpedFile
from txnlib.core.text.printed import DumpTail, Remark

_EXCEPTION: Final = b'Exception in thread "'


@dataclass(slots=True)
class DumpChain:
    """The state of reading the dump of one file."""

    file: DumpedFile
    may_hold_coordinator_records: bool
    is_coordinator: bool
    holds_metadata: bool
    #: Where the next batch begins, the offset before it, and the offset before the current batch.
    next_position: int
    last_offset: int = NOT_PRINTED
    offset_before: int = NOT_PRINTED
    first: DumpedBatch | None = None
    batch: DumpedBatch | None = None
    #: Number of records of the current batch so far, and the offset of the last one.
    records: int = 0
    record_offset: int = NOT_PRINTED
    has_starting_offset: bool = False
    #: Whether record lines are printed with metadata, or without (`--skip-record-metadata`).
    is_deep: bool = False
    is_bare: bool = False
    #: Whether lines are lost among contents. Then later lines are read, but not believed.
    is_doubted: bool = False
    #: Whether some contents did not fit their sizes.
    is_unmeasured: bool = False
    is_torn: bool = False
    is_ended_early: bool = False
    has_records: bool = False
    has_decoded_records: bool = False
    has_untyped_markers: bool = False
    #: Whether the records of some batch were not printed.
    has_unprinted_records: bool = False

    @classmethod
    def of(cls, file: DumpedFile, topic: str | None, next_position: int = 0) -> Self:
        """The chain before the first batch. `topic`: that of the file, if its path does not contain one."""
        topic = file.topic or topic
        # Only the metadata log has snapshots of batches; that of a new cluster, `bootstrap.checkpoint`, is outside its
        # folder.
        holds_metadata = topic == CLUSTER_METADATA_TOPIC or file.kind == "checkpoint"
        is_coordinator = topic == TRANSACTION_STATE_TOPIC
        return cls(file, is_coordinator or topic is None, is_coordinator, holds_metadata, next_position)

    # ---- What may follow

    def continues(self, batch: DumpedBatch) -> bool:
        """Whether a batch starts where the previous one ends, with a higher offset."""
        return batch.position == self.next_position and batch.base_offset > self.last_offset

    def is_resumed_by(self, batch: DumpedBatch) -> bool:
        """Whether a batch follows after lost lines, or after one with a wrong digit: its position or its offset shows
        it."""
        is_next = batch.position == self.next_position and batch.base_offset > self.offset_before
        return is_next or batch.base_offset > self.last_offset

    def may_be_followed_by(self, batch: DumpedBatch) -> bool:
        """Whether a batch may come after the current one, in this file or at the beginning of another one."""
        return batch.base_offset > self.last_offset and (batch.position >= self.next_position or batch.position == 0)

    def is_behind_first(self, batch: DumpedBatch) -> bool:
        """Whether a batch stands at the position of the second batch of the file."""
        return self.first is not None and (batch.position, batch.base_offset > self.first.last_offset) == (
            self.first.end,
            True,
        )

    def holds(self, offset: int) -> bool:
        """Whether the next record of the current batch may have this offset."""
        batch = self.batch
        if batch is None or not batch.is_valid or self.is_bare:
            return False
        if not self.record_offset < offset <= batch.last_offset:
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
    def counts_records(self) -> bool:
        """Whether the offset of a record follows only from the number of lines since the batch's own, so that no line
        may be missing."""
        batch = self.batch
        return self.next_bare_offset() is not None and batch is not None and batch.records_count > 1

    @property
    def is_control(self) -> bool:
        """Whether the current batch is a control batch."""
        return self.batch is not None and self.batch.is_control

    @property
    def expects_decoded(self) -> bool:
        """Whether contents that are no coordinator record mean damage, because the tool decoded the other records."""
        return self.is_coordinator and self.has_decoded_records and not self.is_control

    @property
    def has_lost_records(self) -> bool:
        """Whether the records before the first printed one are lost."""
        return self.is_coordinator and self.has_unprinted_records and not self.is_deep

    @property
    def lacks_records(self) -> bool:
        """Whether records of the current batch are missing, in a dump that prints records."""
        batch = self.batch
        is_printed = self.is_deep or (self.is_bare and not self.is_control)
        return is_printed and batch is not None and batch.is_valid and self.records < batch.records_count

    @property
    def contents_bound(self) -> int | None:
        """The most bytes that the contents of the current batch's next record can have.

        None if the batch has all its records, if its size does not show it, as that of compressed records, or if it may
        have records of users, whose payloads may be of any size and imitate any line.
        """
        batch = self.batch
        is_brokers = (
            self.is_coordinator or self.is_control or (self.may_hold_coordinator_records and self.has_decoded_records)
        )
        if batch is None or not is_brokers or not batch.is_valid or batch.compression_type != CompressionType.NONE:
            return None
        return batch.size - SMALLEST_SIZES[batch.magic] if self.records < batch.records_count else None

    # ---- Transitions

    def start_at(self) -> bool:
        """Takes the line `Log starting offset: N`; False where it cannot be: the tool prints it once per log, before
        any batch."""
        may_start = not self.has_starting_offset and self.batch is None and self.file.kind == "log"
        self.has_starting_offset |= may_start
        return may_start

    def append(self, batch: DumpedBatch) -> None:
        """Continues the chain after a batch line. For a batch that fails its CRC, only the size counts, as in the
        tool."""
        if self.batch is not None and self.batch.is_valid and not self.is_bare and not self.records:
            self.has_unprinted_records |= self.batch.records_count > 0
        self.next_position = batch.end
        # The line of a compressed set of formats 0 and 1 does not show its first offset.
        self.record_offset = batch.base_offset - 1 if batch.magic >= 2 else self.last_offset
        self.first = self.first or batch
        self.batch, self.records = batch, 0
        # What seemed to be the end of the file was not.
        self.is_ended_early = self.is_torn = False
        if batch.is_valid:
            self.offset_before, self.last_offset = self.last_offset, batch.last_offset
            self.has_records |= batch.records_count != 0
            self.has_untyped_markers |= batch.is_marker

    def take_record(self, offset: int) -> None:
        """Takes a record of the current batch."""
        self.records, self.record_offset, self.is_deep = self.records + 1, offset, True

    def take_bare_record(self) -> None:
        """Takes a record that is printed without metadata."""
        self.records, self.is_bare = self.records + 1, True

    def give_up_records(self) -> None:
        """Gives up the other records of the current batch, which are reported as unreadable."""
        if self.batch is not None:
            self.records, self.record_offset = self.batch.records_count, self.batch.last_offset

    def take_remark(self, remark: Remark | None, text: bytes) -> None:
        """Takes a line that may be a message of the tool about the end of the file."""
        self.is_torn |= remark is Remark.TORN
        self.is_ended_early |= remark is Remark.ENDED_EARLY or _EXCEPTION in text

    # ---- The end

    @property
    def is_decoded(self) -> bool:
        """Whether all marker types and coordinator records were printed."""
        if self.is_coordinator and self.has_records and not self.has_decoded_records:
            return False
        return self.is_deep or not self.has_untyped_markers

    def tail(self, *, is_last: bool, is_corrupt: bool) -> DumpTail:
        """How the file ends. `is_last`: with the text. `is_corrupt`: nothing believable follows."""
        if self.is_unmeasured:
            return DumpTail.UNMEASURED
        if is_corrupt or self.is_ended_early:
            return DumpTail.CORRUPT
        if self.is_torn or self.lacks_records:
            return DumpTail.TORN
        return DumpTail.EMPTY_OR_CUT if is_last and self.file.kind == "log" and self.batch is None else DumpTail.CLEAN
