"""Raw segments as Arrow batches: the bytes of a `.log` file to the columns of `arrow_schemas.py`.

One pass through the bytes fills up to three tables: batches, decoded records, and a summary of what was read and what was not. For
data batches only the headers are read. Markers, and the records of coordinators, groups and the controller, are decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from txnlib.core.instants import FIRST_MS, LAST_MS
from txnlib.core.kafka.constants import CLUSTER_METADATA_TOPIC, GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from txnlib.core.kafka.record_batch import CONTROL_FLAG, HEADER, LOG_OVERHEAD, TIMESTAMP_TYPE_FLAG
from txnlib.readers import arrow_schemas
from txnlib.readers.batch_headers import Block, SegmentTail, UnreadableRange, read_blocks
from txnlib.readers.batch_rows import batch_rows, offset_gaps
from txnlib.readers.coordinator_records import entry_rows, iter_entries
from txnlib.readers.decoded_records import named
from txnlib.readers.header_columns import leader_epochs
from txnlib.readers.markers import batches_at, marker_problems, unusual_markers
from txnlib.readers.metadata_log import MetadataRows, are_no_ops, block_rows, iter_metadata_records
from txnlib.readers.offset_commits import commit_rows, iter_commits
from txnlib.readers.one_pass import RowList
from txnlib.readers.reader_state import AT_START, ReaderState
from txnlib.readers.segment_fingerprint import Landmarks
from txnlib.readers.storage.block_buffer import BlockBuffer, Buffer
from txnlib.readers.storage.local_files import FileShrunk

SAMPLE_BYTES: Final = 32
#: Reason for missing bytes that the file had when the capture was listed, or when it was opened.
FILE_SHRANK: Final = "FILE_SHRANK"


@dataclass(frozen=True, slots=True)
class Segment:
    """One `.log` file or a part of it: its path, its copy, and its bytes."""

    path: str
    source: str
    topic: str
    partition: int
    base_offset: int
    buffer: Buffer
    size: int
    #: Releases the bytes before a position.
    forget: Callable[[int], None]
    #: Where reading begins, and the position where it stops; None: at the end.
    start: ReaderState = AT_START
    until: int | None = None
    #: Size in bytes when the capture was listed, if it is smaller now.
    listed_size: int | None = None

    @property
    def is_coordinator(self) -> bool:
        return self.topic == TRANSACTION_STATE_TOPIC

    @property
    def has_commits(self) -> bool:
        return self.topic == GROUP_METADATA_TOPIC

    @property
    def has_metadata(self) -> bool:
        return self.topic == CLUSTER_METADATA_TOPIC

    def blocks(self) -> Iterator[Block | UnreadableRange | SegmentTail | ReaderState]:
        """The batches and unreadable ranges, as `read_blocks` yields them. Checks the CRC of every batch that will be decoded.

        Only the bytes of the last event that was yielded are surely still in memory.

        If the file shrinks meanwhile: what is left of it, and an unreadable range for the rest.
        """
        start, size = self.start, self.size
        while True:
            try:
                for event in self._blocks(start, size):
                    if isinstance(event, SegmentTail) and size < self.whole_size:
                        # If these bytes are not all zeros, an earlier range reports those up to the end.
                        yield from self._lost(size, event.position if event.how == "ZEROS" else size)
                    else:
                        yield event
                    if isinstance(event, Block):
                        self.forget(int(event.positions[-1]))
                        end = int(event.positions[-1]) + int(event.headers["batch_length"][-1]) + LOG_OVERHEAD
                        start = ReaderState(end, int(event.last_offsets[-1]), int(leader_epochs(event.headers)[-1]))
                    elif isinstance(event, UnreadableRange):
                        start = ReaderState(event.position + event.length, start.last_offset, start.leader_epoch)
                return
            except FileShrunk as shrunk:
                size = min(shrunk.size, size)
                if isinstance(self.buffer, BlockBuffer):
                    self.buffer.cut(size)

    @property
    def whole_size(self) -> int:
        """The largest size of the file that was seen, in bytes."""
        return max(self.listed_size or 0, self.size)

    def _blocks(self, start: ReaderState, size: int) -> Iterator[Block | UnreadableRange | SegmentTail | ReaderState]:
        check_all = self.is_coordinator or self.has_commits or self.has_metadata
        return read_blocks(self.buffer, size, self.base_offset, check_all=check_all, start=start, until=self.until)

    def _lost(self, size: int, begin: int) -> Iterator[UnreadableRange | SegmentTail]:
        """An unreadable range for the bytes that a truncated file no longer has.

        It starts at `begin`, because earlier ranges already report the bytes before.
        """
        end = self.whole_size if self.until is None else self.until
        position = min(max(begin, self.start.position), end)
        yield UnreadableRange(position, end - position, f"{FILE_SHRANK}: it had {self.whole_size} bytes, and now {size}", None)
        yield SegmentTail("CORRUPT", position)


SegmentEvent = Block | UnreadableRange | SegmentTail | ReaderState


class SegmentBatchRows:
    """The batches of a segment, one row each or one row per run. Columns: `arrow_schemas.RECORD_BATCHES`."""

    def __init__(self, segment: Segment, *, has_runs: bool = False) -> None:
        self._segment, self._has_runs = segment, has_runs
        self._constants = {"topic": segment.topic, "partition": segment.partition, "source": segment.source}
        self._constants |= {"segment_base_offset": segment.base_offset}

    def add(self, event: SegmentEvent) -> Iterable[pa.RecordBatch]:
        if not isinstance(event, Block):
            return ()
        segment = self._segment
        return (batch_rows(self._constants, segment.buffer, segment.size, event, has_runs=self._has_runs),)

    def end(self) -> Iterable[pa.RecordBatch]:
        return ()


class DecodedRows:
    """The rows that `rows_of` makes of the records of each batch. `where`: the columns that are the same in all of them."""

    def __init__(self, segment: Segment, rows_of: Callable[[Mapping[str, Any], bytes], Iterator[dict[str, Any]]], rows: RowList):
        self._segment, self._rows_of, self._rows = segment, rows_of, rows
        self._where = {"topic": segment.topic, "partition": segment.partition, "source": segment.source, "path": segment.path}

    def add(self, event: SegmentEvent) -> Iterable[pa.RecordBatch]:
        return self._rows.add(self._decoded(event)) if isinstance(event, Block) else ()

    def _decoded(self, block: Block) -> Iterator[dict[str, Any]]:
        for position, _size, batch in _data_batches(self._segment, block):
            yield from self._rows_of(self._where | {"position": position}, batch)

    def end(self) -> Iterable[pa.RecordBatch]:
        return self._rows.end()


class MetadataLogRows:
    """The records in a segment of `__cluster_metadata`, or in its snapshot. Columns: `arrow_schemas.METADATA_LOG`."""

    def __init__(self, segment: Segment, snapshot_offset: int | None = None) -> None:
        self._segment, self._rows = segment, MetadataRows()
        self._where = {"source": segment.source, "path": segment.path, "snapshot_offset": snapshot_offset}

    def add(self, event: SegmentEvent) -> Iterable[pa.RecordBatch]:
        if not isinstance(event, Block):
            return ()
        return block_rows(self._rows, self._where, self._segment.buffer, self._segment.size, event)

    def end(self) -> Iterable[pa.RecordBatch]:
        return self._rows.take(is_last=True)


class SegmentRow:
    """One row: what of the segment was read and what was not. Columns: `arrow_schemas.SEGMENTS`.

    For a part of a segment, one row of `arrow_schemas.SEGMENT_PARTS`; `file_parts.put_together` combines them.
    """

    def __init__(self, segment: Segment, schema: pa.Schema = arrow_schemas.SEGMENTS) -> None:
        self._segment, self._schema, self._seen = segment, schema, _Seen()

    def add(self, event: SegmentEvent) -> Iterable[pa.RecordBatch]:
        if isinstance(event, Block):
            self._seen.add_block(self._segment, event)
        elif isinstance(event, UnreadableRange):
            self._seen.add_unreadable(self._segment, event)
        elif isinstance(event, SegmentTail):
            self._seen.tail = event.how
        return ()

    def end(self) -> Iterable[pa.RecordBatch]:
        return (pa.RecordBatch.from_pylist([self._seen.row(self._segment)], schema=self._schema),)


def transaction_log_rows(segment: Segment) -> DecodedRows:
    """The coordinator records in a segment of `__transaction_state`. Columns: `arrow_schemas.TRANSACTION_LOG`."""
    return DecodedRows(segment, entry_rows, RowList(arrow_schemas.TRANSACTION_LOG))


def committed_offsets_rows(segment: Segment) -> DecodedRows:
    """The offset commits in a segment of `__consumer_offsets`, transactional or not. Columns: `arrow_schemas.COMMITTED_OFFSETS`."""
    return DecodedRows(segment, commit_rows, RowList(arrow_schemas.COMMITTED_OFFSETS, arrow_schemas.DECODED_ROWS_PER_BATCH))


def _data_batches(segment: Segment, block: Block) -> Iterator[tuple[int, int, bytes]]:
    headers = block.headers
    yield from batches_at(
        segment.buffer, block, np.flatnonzero((headers["magic"] == 2) & (headers["attributes"] & CONTROL_FLAG == 0))
    )


class _Seen:
    """The counts of `read_segments` so far."""

    def __init__(self) -> None:
        self.first_offset: int | None = None
        self.end_offset: int | None = None
        self.last_gap_offset: int | None = None
        self.newest_broker_ms: int | None = None
        self.batches = 0
        self.tail: str | None = None
        self.unreadable: list[dict[str, Any]] = []
        self.landmarks = Landmarks()
        self.has_undecodable_commits = False

    def add_block(self, segment: Segment, block: Block) -> None:
        headers = block.headers
        self.batches += len(headers)
        if self.first_offset is None:
            self.first_offset = int(headers["base_offset"][0])
        self.end_offset = int(block.last_offsets[-1]) + 1
        self.landmarks.add(block.positions, headers)
        gaps = np.flatnonzero(offset_gaps(block) > 0)
        if len(gaps):
            self.last_gap_offset = int(headers["base_offset"][gaps[-1]])
        stamped = _is_broker_stamped(headers) | segment.is_coordinator | segment.has_metadata
        stamped &= (headers["max_timestamp"] >= FIRST_MS) & (headers["max_timestamp"] <= LAST_MS)
        if stamped.any():
            newest = int(headers["max_timestamp"][stamped].max())
            self.newest_broker_ms = newest if self.newest_broker_ms is None else max(newest, self.newest_broker_ms)
        for position, size, batch in batches_at(segment.buffer, block, unusual_markers(segment.buffer, segment.size, block)):
            self._add_undecodable(position, size, batch, marker_problems(batch))
        if segment.is_coordinator:
            for position, size, batch in _data_batches(segment, block):
                self._add_undecodable(position, size, batch, (entry for entry in iter_entries(batch) if isinstance(entry, str)))
        elif segment.has_commits and not self.has_undecodable_commits:
            self._add_undecodable_commit(segment, block)
        elif segment.has_metadata:
            indexes = np.flatnonzero((headers["magic"] == 2) & ~are_no_ops(segment.buffer, segment.size, block))
            for position, size, batch in batches_at(segment.buffer, block, indexes):
                problems = (entry for entry in iter_metadata_records(batch) if isinstance(entry, str))
                self._add_undecodable(position, size, batch, problems)

    def _add_undecodable(self, position: int, size: int, batch: bytes, problems: Iterator[str]) -> None:
        following = HEADER.unpack_from(batch)[0] + 1
        self.unreadable += [_unreadable(batch, position, size, problem, following) for problem in named(problems)]

    def _add_undecodable_commit(self, segment: Segment, block: Block) -> None:
        """Adds only the first undecodable commit of a segment: a later version could make all of them undecodable."""
        for position, size, batch in _data_batches(segment, block):
            problem = next((entry for entry in iter_commits(batch) if isinstance(entry, str)), None)
            if problem is not None:
                self._add_undecodable(position, size, batch, iter([problem]))
                self.has_undecodable_commits = True
                return

    def add_unreadable(self, segment: Segment, damage: UnreadableRange) -> None:
        sample = b"" if damage.reason.startswith(FILE_SHRANK) else segment.buffer[damage.position : damage.position + SAMPLE_BYTES]
        self.unreadable.append(_unreadable(sample, damage.position, damage.length, damage.reason, damage.next_offset))

    def row(self, segment: Segment) -> dict[str, Any]:
        return {
            "topic": segment.topic,
            "partition": segment.partition,
            "source": segment.source,
            "path": segment.path,
            "kind": "raw",
            "segment_base_offset": segment.base_offset,
            "first_offset": self.first_offset,
            "end_offset": self.end_offset,
            "last_gap_offset": self.last_gap_offset,
            "bytes": segment.whole_size,
            "batches": self.batches,
            "tail": self.tail,
            "is_decoded": True,
            "newest_broker_ms": self.newest_broker_ms,
            "unreadable": self.unreadable,
            "landmarks": self.landmarks.rows(),
            "part_position": segment.start.position,
        }


def _unreadable(sample: bytes, position: int, length: int, reason: str, next_offset: int | None) -> dict[str, Any]:
    return {
        "position": position,
        "length": length,
        "reason": reason,
        "sample": sample[:SAMPLE_BYTES].hex(),
        "next_offset": next_offset,
    }


def _is_broker_stamped(headers: Any) -> Any:
    """Whether each batch's timestamp is on a broker's clock: markers, and everything in LogAppendTime."""
    is_marker = (headers["attributes"] & CONTROL_FLAG != 0) & (headers["producer_id"] >= 0)
    return (headers["magic"] == 2) & (is_marker | (headers["attributes"] & TIMESTAMP_TYPE_FLAG != 0))
