"""Arrow rows of the batches and files in a dump. Columns: `arrow_schemas.py`."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from txnlib.core.instants import FIRST_MS, LAST_MS
from txnlib.core.kafka.constants import CLUSTER_METADATA_TOPIC, NO_TIMESTAMP, TRANSACTION_STATE_TOPIC
from txnlib.core.kafka.record_batch import CompressionType, ControlType, TimestampType
from txnlib.core.text.dump_lines import DumpedBatch, DumpedFile
from txnlib.core.text.events import Dumped, DumpTail, FileEnd, FileStart, Unreadable, UnreadableReason
from txnlib.readers import arrow_schemas
from txnlib.readers.dump_blocks import BatchBlock
from txnlib.readers.one_pass import RowList

Event = Dumped | BatchBlock


class DumpPlace(NamedTuple):
    """The copy to which a dumped file belongs. `topic` and `partition` are None if they are unknown."""

    topic: str | None
    partition: int | None
    source: str
    file: DumpedFile

    @property
    def is_known(self) -> bool:
        return self.topic is not None and self.partition is not None

    def columns(self, path: str) -> dict[str, Any]:
        """The columns that say where a row is from. `path`: that of the text."""
        return {"topic": self.topic, "partition": self.partition, "source": self.source, "path": path}


#: An event of the text with its place; None for text outside any file.
Located = tuple[DumpPlace | None, Event]

_COMPRESSION: Final = pa.array([codec.name.lower() for codec in CompressionType])
_TIMESTAMP_TYPE: Final = pa.array([timestamp_type.name for timestamp_type in TimestampType])
_CONTROL_TYPE: Final = pa.array([control_type.name for control_type in ControlType])
_UNKNOWN: Final = -1


class DumpBatchRows:
    """The batches in a dump. Columns: `arrow_schemas.RECORD_BATCHES`.

    Batches without any partition are left out here and reported by `DumpSegmentRows`.
    """

    def __init__(self) -> None:
        #: All fields of all batches in one array: eight bytes each, converted to columns without a loop.
        self._fields, self._gaps = array("q"), array("q")
        #: (place, index of its first row)
        self._places: list[tuple[DumpPlace, int]] = []
        self._end_offset, self._is_known = _UNKNOWN, False

    def add(self, located: Located) -> Iterable[pa.RecordBatch]:
        place, value = located
        if type(value) is FileStart and place is not None:
            self._end_offset, self._is_known = _UNKNOWN, place.is_known and place.file.kind == "log"
            if self._places and self._places[-1][1] == len(self._gaps):
                self._places.pop()
            self._places.append((place, len(self._gaps)))
        elif self._is_known and type(value) is DumpedBatch:
            self._add_batch(value)
        elif self._is_known and type(value) is BatchBlock:
            self._add_block(value.columns)
        return self.end() if len(self._gaps) >= arrow_schemas.ROWS_PER_BATCH else ()

    def end(self) -> Iterable[pa.RecordBatch]:
        return (self._take(),) if self._gaps else ()

    def _add_batch(self, batch: DumpedBatch) -> None:
        self._fields.extend(batch)
        is_gap_known = self._end_offset >= 0 and batch.has_known_start
        self._gaps.append(batch.base_offset - self._end_offset if is_gap_known else _UNKNOWN)
        self._end_offset = batch.last_offset + 1

    def _add_block(self, columns: Any) -> None:
        self._fields.frombytes(np.column_stack(columns).tobytes())
        base, last = columns.base_offset, columns.last_offset
        gaps = base - np.concatenate([[self._end_offset], last[:-1] + 1])
        gaps[0] = gaps[0] if self._end_offset >= 0 else _UNKNOWN
        self._gaps.frombytes(gaps.tobytes())
        self._end_offset = int(last[-1]) + 1

    def _take(self) -> pa.RecordBatch:
        """Returns the rows collected so far as one Arrow batch, and clears them."""
        count, places = len(self._gaps), self._places
        starts = [start for _place, start in places]
        of_place = np.repeat(np.arange(len(places), dtype=np.int32), np.diff([*starts, count]))
        cells = DumpedBatch._make(np.array(self._fields).reshape(count, len(DumpedBatch._fields)).T)
        arrays = {
            "topic": pa.array([place.topic for place, _ in places], pa.string()).take(of_place),
            "partition": pa.array([place.partition for place, _ in places], pa.int32()).take(of_place),
            "source": pa.array([place.source for place, _ in places], pa.string()).take(of_place),
            "segment_base_offset": pa.array([place.file.base_offset for place, _ in places], pa.int64()).take(of_place),
            "position": _nullable(cells.position),
            "size": _nullable(cells.size, np.int32),
            "base_offset": _nullable(cells.base_offset),
            "last_offset": _nullable(cells.last_offset),
            "offset_gap": _nullable(np.array(self._gaps)),
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
        self._fields, self._gaps, self._places = array("q"), array("q"), [(places[-1][0], 0)]
        names = arrow_schemas.RECORD_BATCHES.names
        return pa.RecordBatch.from_arrays([arrays[name] for name in names], schema=arrow_schemas.RECORD_BATCHES)


def _nullable(values: Any, dtype: Any = np.int64) -> pa.Array:
    """The values with Kafka's -1 as null."""
    return pa.array(values.astype(dtype), mask=values < 0)


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
            self.add_block(value.columns, value.last)
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
            **place.columns(path),
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


class DumpSegmentRows:
    """One row per dumped `.log` file, and one without topic for unreadable text outside any file.

    Columns: `arrow_schemas.SEGMENTS`.
    """

    def __init__(self, source: str, path: str) -> None:
        self._path, self._rows = path, RowList(arrow_schemas.SEGMENTS)
        self._elsewhere = self._seen = Seen(DumpPlace(None, None, source, DumpedFile()), -1)

    def add(self, located: Located) -> Iterable[pa.RecordBatch]:
        place, value = located
        if type(value) is FileStart:
            self._seen = Seen(place, value.position) if place is not None and _has_row(place) else self._elsewhere
        seen = self._seen
        if seen is not self._elsewhere or type(value) is Unreadable:
            seen.add(value)
        if type(value) is not FileEnd or seen is self._elsewhere:
            return ()
        self._seen = self._elsewhere
        return self._rows.add([seen.row(self._path, value)])

    def end(self) -> Iterable[pa.RecordBatch]:
        if self._elsewhere.unreadable:
            yield from self._rows.add([self._elsewhere.row(self._path, FileEnd(0, DumpTail.CLEAN, True))])
        yield from self._rows.end()


def _has_row(place: DumpPlace) -> bool:
    """Whether a dumped file has a row in `segments`: a log, or a snapshot of an unknown partition."""
    return place.file.kind == "log" or (place.file.kind == "snapshot" and not place.is_known)
