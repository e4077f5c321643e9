"""Partition of a dumped file, and the Arrow rows of its events. Columns: `arrow_schemas.py`."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from txnlib.core.instants import FIRST_MS, LAST_MS
from txnlib.core.kafka.constants import CLUSTER_METADATA_TOPIC, NO_TIMESTAMP, TRANSACTION_STATE_TOPIC
from txnlib.core.kafka.record_batch import CompressionType, ControlType, TimestampType
from txnlib.core.kafka.wire import optional
from txnlib.core.text.batch_chain import BatchChain, Line
from txnlib.core.text.dump_events import Dumped, DumpedTransactionLogRecord, FileEnd, Unreadable
from txnlib.core.text.dump_lines import DumpedBatch, DumpedFile, DumpedSnapshotEntry
from txnlib.core.text.dump_reader import DumpReader
from txnlib.core.text.tool_messages import UnreadableReason
from txnlib.readers import arrow_schemas
from txnlib.readers.coordinator_records import entry_row
from txnlib.readers.dump_blocks import START, BatchBlock, field_of, read_plain_batches
from txnlib.readers.text_files import TextLines

#: Number of bytes to read line by line before trying a block again.
_ONE_BY_ONE: Final = 4_096
_MOST_ONE_BY_ONE: Final = 16 << 20

Event = Dumped | BatchBlock


class DumpStream:
    """The events of the lines, in order, each read once. Lines of `TextLines` are read in blocks where possible.

    `topic` is the topic of files whose path does not contain it.
    """

    def __init__(self, lines: Iterable[Line], topic: str | None) -> None:
        self.reader = DumpReader(lines, topic)
        self._text = lines if isinstance(lines, TextLines) else None
        self._blocks = None if self._text is None else BlockTaker(self._text)

    def __iter__(self) -> Iterator[Event]:
        reader, blocks = self.reader, self._blocks
        while True:
            chain = reader.chain
            if blocks is not None and chain is not None and chain.is_plain and (block := blocks.take(reader.lines.held, chain)):
                reader.skip_batches(block.chained, block.size)
                yield from reader.take_events()
                yield block
            elif self._text is not None and not reader.lines.held and reader.skips_empty and (count := self._text.skip_empty()):
                reader.skip_empty(count)
            elif not reader.read_line():
                break
            elif reader.out.values:
                yield from reader.take_events()
        reader.end_text(None if self._text is None else self._text.problem)
        yield from reader.take_events()


class BlockTaker:
    """Takes blocks from a text. After a failure, it waits for more and more lines before it tries again."""

    def __init__(self, text: TextLines) -> None:
        self._text = text
        #: Where to try a block again, and how many bytes to read line by line if that fails.
        self._next_try, self._one_by_one = 0, _ONE_BY_ONE

    def take(self, held: deque[Line], chain: BatchChain) -> BatchBlock | None:
        """The next lines as a block; None if not all are batch lines that continue the chain.

        `held`: lines that were yielded but not read yet. They become part of the block.
        """
        position = self._text.position_of(held)
        if position < self._next_try or not self._text.begins_with(START, held):
            return None
        lines = self._text.take_block(held)
        block = None if lines is None else read_plain_batches(lines, chain.next_position, chain.last_offset)
        if lines is not None:
            size = 0 if block is None else block.size
            self._text.give_back(lines[size:], position + size)
        if block is None:
            self._next_try, self._one_by_one = position + self._one_by_one, min(2 * self._one_by_one, _MOST_ONE_BY_ONE)
        else:
            self._one_by_one = _ONE_BY_ONE
        return block


# ---- Rows of a dump


class DumpPlace(NamedTuple):
    """The copy to which a dumped file belongs. `topic` and `partition` are None if they are unknown."""

    topic: str | None
    partition: int | None
    source: str
    file: DumpedFile

    @property
    def is_known(self) -> bool:
        return self.topic is not None and self.partition is not None


_COMPRESSION: Final = pa.array([codec.name.lower() for codec in CompressionType])
_TIMESTAMP_TYPE: Final = pa.array([timestamp_type.name for timestamp_type in TimestampType])
_CONTROL_TYPE: Final = pa.array([control_type.name for control_type in ControlType])
_UNKNOWN: Final = -1


class BatchRows:
    """Collects rows of `record_batches` until they fill an Arrow batch."""

    def __init__(self) -> None:
        #: All fields of all batches in one array: eight bytes each, converted to columns without a loop.
        self.fields = array("q")
        self.gaps = array("q")
        #: (place, index of its first row)
        self.places: list[tuple[DumpPlace, int]] = []
        self.end_offset = _UNKNOWN
        self.is_known = False

    def __len__(self) -> int:
        return len(self.gaps)

    def start(self, place: DumpPlace) -> None:
        self.end_offset, self.is_known = _UNKNOWN, place.is_known and place.file.kind == "log"
        if self.places and self.places[-1][1] == len(self):
            self.places.pop()
        self.places.append((place, len(self)))

    def add(self, batch: DumpedBatch) -> None:
        if not self.is_known:
            return
        self.fields.extend(batch)
        is_gap_known = self.end_offset >= 0 and batch.has_known_start
        self.gaps.append(batch.base_offset - self.end_offset if is_gap_known else _UNKNOWN)
        self.end_offset = batch.last_offset + 1

    def add_block(self, block: BatchBlock) -> None:
        """Adds the rows of a block."""
        if not self.is_known:
            return
        self.fields.frombytes(np.ascontiguousarray(block.columns).tobytes())
        base, last = field_of(block.columns, "base_offset"), field_of(block.columns, "last_offset")
        gaps = np.empty(len(base), dtype=np.int64)
        gaps[0] = base[0] - self.end_offset if self.end_offset >= 0 else _UNKNOWN
        gaps[1:] = base[1:] - last[:-1] - 1
        self.gaps.frombytes(gaps.tobytes())
        self.end_offset = int(last[-1]) + 1

    def take(self) -> pa.RecordBatch:
        """Returns the rows collected so far as one Arrow batch, and clears them."""
        count, places = len(self), self.places
        starts = [start for _place, start in places]
        of_place = np.repeat(np.arange(len(places), dtype=np.int32), np.diff([*starts, count]))
        cells = DumpedBatch._make(np.array(self.fields).reshape(count, len(DumpedBatch._fields)).T)
        arrays = {
            "topic": pa.array([place.topic for place, _ in places], pa.string()).take(of_place),
            "partition": pa.array([place.partition for place, _ in places], pa.int32()).take(of_place),
            "source": pa.array([place.source for place, _ in places], pa.string()).take(of_place),
            "segment_base_offset": pa.array([place.file.base_offset for place, _ in places], pa.int64()).take(of_place),
            "position": _nullable(cells.position),
            "size": _nullable(cells.size, np.int32),
            "base_offset": _nullable(cells.base_offset),
            "last_offset": _nullable(cells.last_offset),
            "offset_gap": _nullable(np.array(self.gaps)),
            "records_count": _nullable(cells.records_count, np.int32),
            "producer_id": _nullable(cells.producer_id),
            "producer_epoch": _nullable(cells.producer_epoch, np.int32),
            "base_sequence": _nullable(cells.base_sequence, np.int32),
            "last_sequence": _nullable(cells.last_sequence, np.int32),
            "partition_leader_epoch": _nullable(cells.partition_leader_epoch, np.int32),
            "is_transactional": pa.array(cells.is_transactional != 0),
            "is_control": pa.array(cells.is_control != 0),
            "control_type": _CONTROL_TYPE.take(_nullable(cells.control_type)),
            "coordinator_epoch": _nullable(cells.coordinator_epoch, np.int32),
            "timestamp_type": _TIMESTAMP_TYPE.take(_nullable(cells.timestamp_type)),
            "max_timestamp_ms": pa.array(cells.max_timestamp, mask=cells.max_timestamp == NO_TIMESTAMP),
            "delete_horizon_ms": _nullable(cells.delete_horizon_ms),
            "compression_type": _COMPRESSION.take(_nullable(cells.compression_type)),
            "magic": _nullable(cells.magic, np.int32),
            "crc": _nullable(cells.crc),
            "batches_count": pa.repeat(pa.scalar(1, pa.int32()), count),
            "last_batch_offset": _nullable(cells.base_offset),
            "first_timestamp_ms": pa.array(cells.max_timestamp, mask=cells.max_timestamp == NO_TIMESTAMP),
            "batches_hash": pa.nulls(count, pa.int64()),
            "packed_batches": pa.nulls(count, pa.binary()),
        }
        self.fields, self.gaps, self.places = array("q"), array("q"), [(places[-1][0], 0)]
        names = arrow_schemas.RECORD_BATCHES.names
        return pa.RecordBatch.from_arrays([arrays[name] for name in names], schema=arrow_schemas.RECORD_BATCHES)


def _nullable(values: Any, dtype: Any = np.int64) -> pa.Array:
    """The values with Kafka's -1 as null."""
    return pa.array(values.astype(dtype), mask=values < 0)


def transaction_log_row(place: DumpPlace, path: str, record: DumpedTransactionLogRecord) -> dict[str, Any]:
    """A row of `transaction_log`."""
    return {
        "topic": place.topic,
        "partition": place.partition,
        "source": place.source,
        "path": path,
        "position": record.position,
        "offset": record.offset,
        "timestamp_ms": optional(record.timestamp),
        "coordinator_epoch": optional(record.partition_leader_epoch),
        "transactional_id": record.transactional_id,
        **entry_row(record.entry),
        # Tools print only the tags that they know.
        "unknown_tags": None,
    }


def snapshot_row(entry: DumpedSnapshotEntry) -> dict[str, Any]:
    """The columns of `producer_snapshots` that describe a producer."""
    return {
        "producer_id": entry.producer_id,
        "producer_epoch": entry.producer_epoch,
        "last_sequence": optional(entry.last_sequence),
        "last_offset": optional(entry.last_offset),
        "offset_delta": optional(entry.offset_delta),
        "last_timestamp_ms": optional(entry.last_timestamp),
        "coordinator_epoch": optional(entry.coordinator_epoch),
        "current_txn_first_offset": optional(entry.current_txn_first_offset),
    }


class Seen:
    """What `read_segments` has counted in one file."""

    def __init__(self, place: DumpPlace, position: int) -> None:
        self.place, self.position = place, position
        self.is_brokers = place.topic in (TRANSACTION_STATE_TOPIC, CLUSTER_METADATA_TOPIC)
        self.first_offset: int | None = None
        self.end_offset: int | None = None
        self.last_gap_offset: int | None = None
        self.newest_broker_ms: int | None = None
        self.bytes = self.batches = 0
        self.unreadable: list[dict[str, Any]] = []

    def add(self, value: Event) -> None:
        if type(value) is DumpedBatch:
            self.add_batch(value)
        elif type(value) is BatchBlock:
            self.add_block(DumpedBatch._make(value.columns.T), value.last)
        elif type(value) is Unreadable:
            self.add_unreadable(*value)

    def add_batch(self, batch: DumpedBatch) -> None:
        self.batches += 1
        self.bytes = max(self.bytes, batch.position + max(batch.size, 0))
        self._go_on_at(batch.base_offset)
        if self.end_offset is not None and batch.base_offset > self.end_offset and batch.has_known_start:
            self.last_gap_offset = batch.base_offset
        self.end_offset = batch.last_offset + 1
        if self.is_stamped(batch) and FIRST_MS <= batch.max_timestamp <= LAST_MS:
            self.newest_broker_ms = max(batch.max_timestamp, self.newest_broker_ms or 0)

    def add_block(self, columns: Any, last: DumpedBatch) -> None:
        """The same for a block: a `DumpedBatch` of columns, and its last row."""
        base, ends = columns.base_offset, columns.last_offset + 1
        self.batches += len(base) - 1
        before = np.concatenate([[base[0] if self.end_offset is None else self.end_offset], ends[:-1]])
        gaps = np.flatnonzero(base > before)
        if len(gaps):
            self.last_gap_offset = int(base[gaps[-1]])
        stamps = columns.max_timestamp[self.is_stamped(columns)]
        stamps = stamps[(stamps >= FIRST_MS) & (stamps <= LAST_MS)]
        if len(stamps):
            self.newest_broker_ms = max(int(stamps.max()), self.newest_broker_ms or 0)
        self._go_on_at(int(base[0]))
        self.end_offset = int(base[-1])
        self.add_batch(last)

    def _go_on_at(self, offset: int) -> None:
        """Sets `next_offset` of the unreadable ranges before this batch and, for the first batch, the first offset of the file."""
        if self.first_offset is None:
            self.first_offset = offset
        for unreadable in reversed(self.unreadable):
            if unreadable["next_offset"] is not None:
                break
            unreadable["next_offset"] = offset

    def is_stamped(self, batch: DumpedBatch) -> Any:
        """Whether a batch's timestamp is on a broker's clock: markers, LogAppendTime, and everything that only brokers write.

        For a `DumpedBatch` of columns, returns a column.
        """
        is_marker = (batch.is_control != 0) & (batch.producer_id >= 0)
        return is_marker | (batch.timestamp_type == int(TimestampType.LOG_APPEND_TIME)) | self.is_brokers

    def add_unreadable(self, position: int, length: int, reason: str, sample: str) -> None:
        unreadable = {"position": position, "length": length, "reason": str(reason), "sample": sample, "next_offset": None}
        self.unreadable.append(unreadable)

    def row(self, path: str, end: FileEnd) -> dict[str, Any]:
        """A row of `segments`."""
        place = self.place
        is_elsewhere = place.file.path is None and not place.is_known and not self.batches
        if not place.is_known and not is_elsewhere:
            length, sample = end.position - self.position, place.file.path or ""
            # This range contains all others of the file.
            self.unreadable.clear()
            self.add_unreadable(self.position, length, UnreadableReason.TOPIC_PARTITION_UNKNOWN, sample)
        return {
            "topic": place.topic,
            "partition": place.partition,
            "source": place.source,
            "path": path,
            "kind": "text",
            "segment_base_offset": place.file.base_offset,
            "first_offset": self.first_offset,
            "end_offset": self.end_offset,
            "last_gap_offset": self.last_gap_offset,
            "bytes": self.bytes,
            "batches": self.batches,
            "tail": str(end.tail),
            "is_decoded": end.is_decoded,
            "newest_broker_ms": self.newest_broker_ms,
            "unreadable": self.unreadable,
        }
