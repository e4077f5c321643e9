"""Events of reading a dump. A batch waits for its record lines, an unreadable range for its end."""

from __future__ import annotations

from typing import Final, NamedTuple

from txnlib.core.kafka.metadata_records import MetadataRecord
from txnlib.core.kafka.transaction_log import TransactionLogEntry
from txnlib.core.text.batch_chain import BatchChain
from txnlib.core.text.dump_lines import NOT_PRINTED, DumpedBatch, DumpedFile, DumpedSnapshotEntry
from txnlib.core.text.tool_messages import DumpTail, UnreadableReason


class Unreadable(NamedTuple):
    """An unreadable range of the text file, in bytes."""

    position: int
    length: int
    reason: UnreadableReason
    sample: str

    @property
    def end(self) -> int:
        """The position after the range."""
        return self.position + self.length


class DumpedTransactionLogRecord(NamedTuple):
    """A record of `__transaction_state`; `entry` is None for a tombstone. `position`: that of its batch in the segment."""

    offset: int
    timestamp: int
    partition_leader_epoch: int
    position: int
    transactional_id: str
    entry: TransactionLogEntry | None


class DumpedMetadataRecord(NamedTuple):
    """A record of `__cluster_metadata`. `position`: that of its batch in the file."""

    offset: int
    timestamp: int
    partition_leader_epoch: int
    position: int
    record: MetadataRecord


class FileStart(NamedTuple):
    position: int
    file: DumpedFile


class FileEnd(NamedTuple):
    """The end of a dumped file. `is_decoded`: all of its marker types and coordinator records were printed."""

    position: int
    tail: DumpTail
    is_decoded: bool


Dumped = FileStart | FileEnd | DumpedBatch | DumpedTransactionLogRecord | DumpedMetadataRecord | DumpedSnapshotEntry | Unreadable


def sample_of(text: bytes) -> str:
    """The beginning of an unreadable range, as a sample."""
    return text[:_SAMPLE_BYTES].decode(errors="replace").rstrip("\r\n")


#: Reasons that, at the end of a file, mean that the file is incomplete.
_CORRUPT: Final = frozenset(
    {
        UnreadableReason.BROKEN_LINE,
        UnreadableReason.LINE_TOO_LONG,
        UnreadableReason.CRC_MISMATCH,
        UnreadableReason.OUT_OF_CHAIN,
        UnreadableReason.SIZE_MISMATCH,
        UnreadableReason.DUMPING_LINE_IN_DOUBT,
        UnreadableReason.CANNOT_UNPACK,
        UnreadableReason.FILE_SHRANK,
    }
)
#: Maximum number of consecutive ranges to keep separate. Further ones are merged whatever their reason.
_MOST_RANGES: Final = 256
_SAMPLE_BYTES: Final = 160


class Output:
    """Events that were read but not yielded yet. Counts every byte as read, as payload, or as unreadable."""

    def __init__(self) -> None:
        self.values: list[Dumped] = []
        #: A batch whose record line may add its marker, and the unreadable ranges since the last genuine line.
        self.pending: DumpedBatch | None = None
        self.ranges: list[Unreadable] = []
        #: Current position in the text.
        self.end = 0
        #: Number of bytes that were read, that are payload, and that are in unreadable ranges.
        self.read = self.payload = self.quarantined = 0
        #: The first two numbers at the end of the last range.
        self._before = (0, 0)

    def unreadable(self, position: int, text: bytes, reason: UnreadableReason, length: int | None = None) -> None:
        """Adds an unreadable range of `length` bytes (None: up to the current position), or extends the last range to its end."""
        length = self.end - position if length is None else length
        last = self.ranges[-1] if self.ranges else None
        if last is not None and (last.reason is reason or len(self.ranges) == _MOST_RANGES):
            between = position - last.position - last.length
            self.ranges[-1] = last._replace(length=last.length + between + length)
            self.read, self.payload = self._before
            self.quarantined += between + length
        else:
            self.ranges.append(Unreadable(position, length, reason, sample_of(text)))
            self.quarantined += length
        self._before = self.read, self.payload

    def missing(self, position: int) -> None:
        """Notes that genuine lines are missing here, unless an unreadable range already shows it."""
        if all(unreadable.reason is UnreadableReason.NOT_DUMP_TEXT for unreadable in self.ranges):
            self.note(position, UnreadableReason.OUT_OF_CHAIN)

    def note(self, position: int, reason: UnreadableReason, text: bytes = b"") -> None:
        """Adds an empty range."""
        self.ranges.append(Unreadable(position, 0, reason, sample_of(text)))
        self._before = self.read, self.payload

    def settle(self, chain: BatchChain | None) -> None:
        """Releases the waiting events."""
        if self.pending is not None:
            batch, self.pending = self.pending, None
            self.values.append(batch)
            is_marker = batch.is_control and batch.producer_id >= 0 and batch.records_count != 0
            if chain is not None and is_marker and batch.control_type == NOT_PRINTED:
                chain.has_untyped_markers = True
        if self.ranges:
            self.values += self.ranges
            self.ranges.clear()

    def end_file(self, chain: BatchChain | None, position: int, *, is_last: bool = False) -> None:
        """Releases all remaining events of a file and its end. `chain` None: text outside any file.

        `is_last`: no `Dumping` line follows, which the tool prints only after it has read the file before.
        """
        if chain is not None and chain.has_doubt:
            self.missing(position)
        is_corrupt = not _CORRUPT.isdisjoint(unreadable.reason for unreadable in self.ranges)
        self.settle(chain)
        if chain is None:
            return
        is_empty = chain.kind == "log" and chain.batch is None
        tail = DumpTail.EMPTY_OR_CUT if is_last and is_empty else DumpTail.CLEAN
        if chain.is_torn or chain.lacks_records:
            tail = DumpTail.TORN
        if is_corrupt or chain.is_ended_early:
            tail = DumpTail.CORRUPT
        self.values.append(FileEnd(position, tail, chain.is_decoded))
