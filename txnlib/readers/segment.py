"""Raw segments as Arrow batches: the bytes of a `.log` file to the columns of `arrow_schemas.py`.

One pass through the bytes fills up to three tables: batches, decoded records, and a summary of what was read and what
was not. For data batches only the headers are read. Markers, and the records of coordinators, groups and the
controller, are decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Final

import numpy as np
import pyarrow as pa

from txnlib.core.instants import FIRST_MS, LAST_MS
from txnlib.core.kafka.constants import CLUSTER_METADATA_TOPIC, GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from txnlib.core.kafka.record_batch import CONTROL_FLAG, HEADER, LOG_OVERHEAD, TIMESTAMP_TYPE_FLAG
from txnlib.readers import arrow_schemas
from txnlib.readers.arrow_schemas import SAMPLE_BYTES, RowList, unreadable
from txnlib.readers.batch_headers import Block, SegmentTail, UnreadableRange, read_blocks
from txnlib.readers.batch_rows import batch_rows, offset_gaps
from txnlib.readers.capture import READ_WHOLE
from txnlib.readers.decoded_metadata import are_no_ops, block_rows, iter_metadata_records, metadata_log_rows
from txnlib.readers.decoded_records import (
    UNDECODABLE_COMMIT,
    batches_at,
    commit_rows,
    entry_rows,
    iter_commits,
    iter_entries,
    undecodable_markers,
)
from txnlib.readers.fingerprints import Fingerprint, ReadSegment
from txnlib.readers.header_columns import AT_START, ReaderState, leader_epochs
from txnlib.readers.storage.block_buffer import BlockBuffer, Buffer
from txnlib.readers.storage.local_files import FileShrunk
from txnlib.version import __version__

#: Maximum number of undecodable records per batch that are named; the others are counted.
_NAMED_PROBLEMS: Final = 100
#: Reason for missing bytes that the file had when the capture was listed, or when it was opened.
FILE_SHRANK: Final = "FILE_SHRANK"


SegmentEvent = Block | UnreadableRange | SegmentTail


@dataclass(frozen=True, slots=True)
class Segment:
    """One `.log` file: its path, its copy, and its bytes."""

    path: str
    source: str
    topic: str
    partition: int
    base_offset: int
    buffer: Buffer
    size: int
    #: Releases the bytes before a position.
    forget: Callable[[int], None]
    #: Where reading begins, and what earlier audits have read before that.
    start: ReaderState = AT_START
    earlier: ReadSegment | None = None
    #: The number of what is read now.
    part: int | None = None
    #: Size in bytes when the capture was listed, if it is smaller now.
    listed_size: int | None = None

    def blocks(self) -> Iterator[SegmentEvent]:
        """The batches and unreadable ranges, as `read_blocks` yields them. Checks the CRC of every batch that will be
        decoded.

        Only the bytes of the last event that was yielded are surely still in memory.

        If the file shrinks meanwhile: what is left of it, and an unreadable range for the rest.
        """
        start, size = self.start, self.size
        is_decoded = self.topic in READ_WHOLE
        while True:
            try:
                for event in read_blocks(self.buffer, size, self.base_offset, check_all=is_decoded, start=start):
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
    def place(self) -> dict[str, Any]:
        """The columns that say which segment of which copy a row is from."""
        where = {"topic": self.topic, "partition": self.partition, "source": self.source}
        return where | {"segment_base_offset": self.base_offset}

    @property
    def whole_size(self) -> int:
        """The largest size of the file that was seen, in bytes."""
        return max(self.listed_size or 0, self.size)

    def _lost(self, size: int, begin: int) -> Iterator[UnreadableRange | SegmentTail]:
        """An unreadable range for the bytes that a truncated file no longer has.

        It starts at `begin`, because earlier ranges already report the bytes before.
        """
        end = self.whole_size
        position = min(max(begin, self.start.position), end)
        yield UnreadableRange(
            position, end - position, f"{FILE_SHRANK}: it had {self.whole_size} bytes, and now {size}", None
        )
        yield SegmentTail("CORRUPT", position)


class SegmentBatchRows:
    """The batches of a segment, one row per run. Columns: `arrow_schemas.RECORD_BATCHES`."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment

    def add(self, event: SegmentEvent) -> Iterable[pa.RecordBatch]:
        if not isinstance(event, Block):
            return ()
        segment = self._segment
        return (batch_rows(segment.place, segment.buffer, segment.size, event),)

    def end(self) -> Iterable[pa.RecordBatch]:
        return ()


def transaction_log_rows(segment: Segment) -> RowList[SegmentEvent]:
    """The coordinator records in a segment of `__transaction_state`. Columns: `arrow_schemas.TRANSACTION_LOG`."""
    return RowList(arrow_schemas.TRANSACTION_LOG, partial(_decoded, segment, entry_rows))


def committed_offsets_rows(segment: Segment) -> RowList[SegmentEvent]:
    """The offset commits in a segment of `__consumer_offsets`, transactional or not. Columns:
    `arrow_schemas.COMMITTED_OFFSETS`."""
    rows_of = partial(_decoded, segment, commit_rows)
    return RowList(arrow_schemas.COMMITTED_OFFSETS, rows_of, arrow_schemas.DECODED_ROWS_PER_BATCH)


def _decoded(
    segment: Segment, rows_of: Callable[[Mapping[str, Any], bytes], Iterator[dict[str, Any]]], event: SegmentEvent
) -> Iterable[dict[str, Any]]:
    """The rows that `rows_of` makes of the records of each batch."""
    if not isinstance(event, Block):
        return ()
    batches = _data_batches(segment, event)
    return (row for position, _, batch in batches for row in rows_of(segment.place | {"position": position}, batch))


def metadata_rows(segment: Segment, snapshot_offset: int | None = None) -> RowList[SegmentEvent]:
    """The records in a segment of `__cluster_metadata`, or in its snapshot. Columns: `arrow_schemas.METADATA_LOG`."""
    where = {"source": segment.source, "path": segment.path, "snapshot_offset": snapshot_offset}
    return metadata_log_rows(
        lambda event: block_rows(where, segment.buffer, segment.size, event) if isinstance(event, Block) else ()
    )


def _data_batches(segment: Segment, block: Block) -> Iterator[tuple[int, int, bytes]]:
    headers = block.headers
    yield from batches_at(
        segment.buffer, block, np.flatnonzero((headers["magic"] == 2) & (headers["attributes"] & CONTROL_FLAG == 0))
    )


class SegmentRow:
    """One row: what of the segment was read, now and before, and what was not. Columns: `arrow_schemas.SEGMENTS`."""

    def __init__(self, segment: Segment) -> None:
        self._segment, self._fingerprint = segment, Fingerprint()
        self._unreadable: list[dict[str, Any]] = []
        before = segment.earlier.unreadable if segment.earlier else ()
        self._has_undecodable_commits = any(each["reason"].startswith(UNDECODABLE_COMMIT) for each in before)
        self._row: dict[str, Any] = {
            **segment.place,
            "path": segment.path,
            "kind": "raw",
            "first_offset": None,
            "newest_broker_ms": None,
            "bytes": segment.whole_size,
            "batches": 0,
            "is_decoded": True,
            "unreadable": self._unreadable,
            "version": __version__,
            "parts": [] if segment.part is None else [segment.part],
        }

    def add(self, event: SegmentEvent) -> Iterable[pa.RecordBatch]:
        if isinstance(event, Block):
            self._add_block(event)
        elif isinstance(event, UnreadableRange):
            position = event.position
            sample = (
                b""
                if event.reason.startswith(FILE_SHRANK)
                else self._segment.buffer[position : position + SAMPLE_BYTES]
            )
            self._add_unreadable(position, event.length, sample, event.reason, event.next_offset)
        elif isinstance(event, SegmentTail):
            self._row["tail"] = event.how
        return ()

    def end(self) -> Iterable[pa.RecordBatch]:
        row, segment = self._row | {"landmarks": self._fingerprint.landmarks()}, self._segment
        if segment.earlier is not None:
            row = segment.earlier.with_rest(row, segment.start)
        return (pa.RecordBatch.from_pylist([row], schema=arrow_schemas.SEGMENTS),)

    def _add_block(self, block: Block) -> None:
        segment, headers, row, topic = self._segment, block.headers, self._row, self._segment.topic
        row["batches"] += len(headers)
        if row["first_offset"] is None:
            row["first_offset"] = int(headers["base_offset"][0])
        row["end_offset"] = int(block.last_offsets[-1]) + 1
        self._fingerprint.add(block.positions, headers)
        gaps = np.flatnonzero(offset_gaps(block) > 0)
        if len(gaps):
            row["last_gap_offset"] = int(headers["base_offset"][gaps[-1]])
        # On a broker's clock: markers, everything in LogAppendTime, and what only brokers write.
        stamped = (headers["attributes"] & CONTROL_FLAG != 0) & (headers["producer_id"] >= 0)
        stamped |= headers["attributes"] & TIMESTAMP_TYPE_FLAG != 0
        stamped &= headers["magic"] == 2
        stamped |= topic in (TRANSACTION_STATE_TOPIC, CLUSTER_METADATA_TOPIC)
        stamped &= (headers["max_timestamp"] >= FIRST_MS) & (headers["max_timestamp"] <= LAST_MS)
        if stamped.any():
            row["newest_broker_ms"] = max(int(headers["max_timestamp"][stamped].max()), row["newest_broker_ms"] or 0)
        for position, size, batch, problem in undecodable_markers(segment.buffer, segment.size, block):
            self._add_undecodable(position, size, batch, (problem,))
        if topic == TRANSACTION_STATE_TOPIC:
            self._add_problems(_data_batches(segment, block), iter_entries)
        elif topic == GROUP_METADATA_TOPIC and not self._has_undecodable_commits:
            # Only the first undecodable commit of a segment: a later version could make all of them undecodable.
            for position, size, batch in _data_batches(segment, block):
                if problems := [*islice((entry for entry in iter_commits(batch) if isinstance(entry, str)), 1)]:
                    self._add_undecodable(position, size, batch, problems)
                    self._has_undecodable_commits = True
                    break
        elif topic == CLUSTER_METADATA_TOPIC:
            indexes = np.flatnonzero((headers["magic"] == 2) & ~are_no_ops(segment.buffer, segment.size, block))
            self._add_problems(batches_at(segment.buffer, block, indexes), iter_metadata_records)

    def _add_problems(
        self, batches: Iterator[tuple[int, int, bytes]], decode: Callable[[bytes], Iterator[Any]]
    ) -> None:
        for position, size, batch in batches:
            self._add_undecodable(position, size, batch, (entry for entry in decode(batch) if isinstance(entry, str)))

    def _add_undecodable(self, position: int, size: int, batch: bytes, problems: Iterable[str]) -> None:
        """Adds the problems of one batch; after the first 100, only the number of the others."""
        following, more = HEADER.unpack_from(batch)[0] + 1, 0
        for number, problem in enumerate(problems):
            if number < _NAMED_PROBLEMS:
                self._add_unreadable(position, size, batch, problem, following)
            else:
                more += 1
        if more:
            self._add_unreadable(position, size, batch, f"UNDECODABLE_RECORDS: {more:,} more in this batch", following)

    def _add_unreadable(self, position: int, length: int, sample: bytes, reason: str, next_offset: int | None) -> None:
        self._unreadable.append(unreadable(position, length, reason, sample, next_offset))
