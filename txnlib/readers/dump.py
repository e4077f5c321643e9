"""How does the text of `kafka-dump-log.sh` become columns? Text of any tool version to the columns of `columns.py`.

Each reader goes through the text once, front to back, and holds no more than one batch of rows.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, Final, NamedTuple

import numpy as np
import pyarrow as pa

from txnlib.core.dump_chain import Line, Tail
from txnlib.core.dump_lines import (
    DumpedBatch,
    DumpedFile,
    DumpedSnapshotEntry,
    read_batch_line,
    read_file_line,
    read_record_line,
)
from txnlib.core.dump_text import (
    Dumped,
    DumpedTransactionLogRecord,
    FileEnd,
    FileStart,
    Unreadable,
    UnreadableReason,
    read_dump,
)
from txnlib.core.record_batch import CompressionType, TimestampType
from txnlib.core.sentinels import TRANSACTION_STATE_TOPIC
from txnlib.readers import columns
from txnlib.readers.coordinator_records import entry_row

CHUNK_BYTES: Final = 1 << 20


def iter_lines(stream: BinaryIO, chunk_size: int = CHUNK_BYTES) -> Iterator[Line]:
    """The lines of a stream with their line ends, each with its position; no more than a line and a chunk is held."""
    position, pieces = 0, []
    while chunk := stream.read(chunk_size):
        pieces.append(chunk)
        if b"\n" not in chunk:
            continue
        # `splitlines` would also split at a lone carriage return, which a payload may hold.
        lines = io.BytesIO(b"".join(pieces)).readlines()
        pieces = [] if lines[-1].endswith(b"\n") else [lines.pop()]
        for line in lines:
            yield position, line
            position += len(line)
    if last := b"".join(pieces):
        yield position, last


def looks_like_dump(head: bytes) -> bool:
    """Whether the first kilobytes of a file are such text, whatever stands before it.

    A segment can hold such text in its payloads; but like all of Kafka's binary files it starts with a zero byte.
    """
    if head.startswith(b"\0"):
        return False
    lines = head.splitlines()
    return any(read_file_line(line) or read_batch_line(line) or _is_record_line(line) for line in lines)


def _is_record_line(line: bytes) -> bool:
    return line.startswith((b"| offset: ", b"offset: ")) and read_record_line(line) is not None


class _Place(NamedTuple):
    """The copy that the file being read belongs to."""

    topic: str | None
    partition: int | None
    source: str
    file: DumpedFile

    @property
    def is_known(self) -> bool:
        return self.topic is not None and self.partition is not None


def _read_located(
    lines: Iterable[Line], source: str, topic_partition: tuple[str, int] | None
) -> Iterator[tuple[_Place | None, Dumped]]:
    """What the text holds, and where it belongs; None stands for text outside any file.

    Folders to be deleted are left out. The first log directory is the source itself, others are told apart by name.
    """
    topic, partition = topic_partition or (None, None)
    place: _Place | None = None
    first_directory: str | None = None
    for value in read_dump(lines, topic):
        if type(value) is FileStart:
            file = value.file
            if file.topic is None:
                place = _Place(topic, partition, source, file)
            else:
                first_directory = file.log_directory if first_directory is None else first_directory
                own = source if file.log_directory == first_directory else f"{source}:{file.log_directory}"
                place = _Place(file.topic, file.partition, own, file)
        if place is None or not place.file.is_deleted:
            yield place, value
        if type(value) is FileEnd:
            place = None


def read_record_batches(
    lines: Iterable[Line], source: str, path: str, topic_partition: tuple[str, int] | None = None
) -> Iterator[pa.RecordBatch]:
    """The batches in a dump. Columns: `columns.RECORD_BATCHES`.

    `topic_partition` is that of files whose path does not tell; batches without any are named by `read_segments`.
    """
    rows = _BatchRows(path)
    for place, value in _read_located(lines, source, topic_partition):
        if type(value) is DumpedBatch:
            rows.add(value)
            if len(rows.batches) == columns.ROWS_PER_BATCH:
                yield rows.take()
        elif type(value) is FileStart and place is not None:
            rows.start(place)
    if rows.batches:
        yield rows.take()


_COMPRESSION: Final = pa.array([codec.name.lower() for codec in CompressionType])
_TIMESTAMP_TYPE: Final = pa.array([timestamp_type.name for timestamp_type in TimestampType])
_CONTROL_TYPE: Final = pa.array(["ABORT", "COMMIT"])
_UNKNOWN: Final = -1


class _BatchRows:
    """Collects rows of `record_batches` until they fill an Arrow batch."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.batches: list[DumpedBatch] = []
        self.gaps: list[int] = []
        #: (place, index of its first row)
        self.places: list[tuple[_Place, int]] = []
        self.end_offset: int | None = None
        self.is_known = False

    def start(self, place: _Place) -> None:
        self.end_offset, self.is_known = None, place.is_known
        if self.places and self.places[-1][1] == len(self.batches):
            self.places.pop()
        self.places.append((place, len(self.batches)))

    def add(self, batch: DumpedBatch) -> None:
        if not self.is_known:
            return
        # The line of a compressed set of formats 0 and 1 does not tell where it begins.
        is_start_known = batch.magic == 2 or batch.compression_type is CompressionType.NONE
        is_gap_known = self.end_offset is not None and is_start_known
        self.gaps.append(batch.base_offset - (self.end_offset or 0) if is_gap_known else _UNKNOWN)
        self.end_offset = batch.last_offset + 1
        self.batches.append(batch)

    def take(self) -> pa.RecordBatch:
        """The rows so far, which are then forgotten."""
        count, places = len(self.batches), self.places
        ends = [start for _place, start in places[1:]] + [count]
        lengths = [end - start for (_place, start), end in zip(places, ends, strict=True)]
        of_place = np.repeat(np.arange(len(places), dtype=np.int32), lengths)
        cells = DumpedBatch._make(zip(*self.batches, strict=True))
        arrays = {
            "topic": pa.array([place.topic for place, _ in places], pa.string()).take(of_place),
            "partition": pa.array([place.partition for place, _ in places], pa.int32()).take(of_place),
            "source": pa.array([place.source for place, _ in places], pa.string()).take(of_place),
            "path": pa.repeat(self.path, count),
            "position": _nullable(cells.position),
            "size": _nullable(cells.size, np.int32),
            "base_offset": _nullable(cells.base_offset),
            "last_offset": _nullable(cells.last_offset),
            "offset_gap": _nullable(self.gaps),
            "records_count": _nullable(cells.records_count, np.int32),
            "producer_id": _nullable(cells.producer_id),
            "producer_epoch": _nullable(cells.producer_epoch, np.int32),
            "base_sequence": _nullable(cells.base_sequence, np.int32),
            "last_sequence": _nullable(cells.last_sequence, np.int32),
            "partition_leader_epoch": _nullable(cells.partition_leader_epoch, np.int32),
            "is_transactional": pa.array(cells.is_transactional, pa.bool_()),
            "is_control": pa.array(cells.is_control, pa.bool_()),
            "control_type": _named(cells.control_type, _CONTROL_TYPE),
            "coordinator_epoch": _nullable(cells.coordinator_epoch, np.int32),
            "timestamp_type": _named(cells.timestamp_type, _TIMESTAMP_TYPE),
            "max_timestamp_ms": _nullable(cells.max_timestamp),
            "delete_horizon_ms": _nullable(cells.delete_horizon_ms),
            "compression_type": _named(cells.compression_type, _COMPRESSION),
            "magic": _nullable(cells.magic, np.int32),
            "crc": _nullable(cells.crc),
        }
        self.batches, self.gaps, self.places = [], [], [(places[-1][0], 0)]
        names = columns.RECORD_BATCHES.names
        return pa.RecordBatch.from_arrays([arrays[name] for name in names], schema=columns.RECORD_BATCHES)


def _nullable(values: Any, dtype: Any = np.int64) -> pa.Array:
    """The values with Kafka's -1 as null."""
    numbers = np.array(values, dtype=dtype)
    return pa.array(numbers, mask=numbers < 0)


def _named(values: Any, names: pa.Array) -> pa.Array:
    return names.take(pa.array(values, pa.int32()))


def read_transaction_log(
    lines: Iterable[Line], source: str, path: str, topic_partition: tuple[str, int] | None = None
) -> Iterator[pa.RecordBatch]:
    """The coordinator records in a dump. Columns: `columns.TRANSACTION_LOG`, null where the tool prints no such field."""
    rows: list[dict[str, Any]] = []
    for place, value in _read_located(lines, source, topic_partition):
        if type(value) is not DumpedTransactionLogRecord or place is None or not place.is_known:
            continue
        rows.append(
            {
                "topic": place.topic,
                "partition": place.partition,
                "source": place.source,
                "path": path,
                "position": value.position,
                "offset": value.offset,
                "timestamp_ms": _present(value.timestamp),
                "coordinator_epoch": _present(value.partition_leader_epoch),
                "transactional_id": value.transactional_id,
                **entry_row(value.entry),
                # No tool prints tags that it does not know.
                "unknown_tags": None,
            }
        )
        if len(rows) == columns.ROWS_PER_BATCH:
            yield pa.RecordBatch.from_pylist(rows, schema=columns.TRANSACTION_LOG)
            rows = []
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=columns.TRANSACTION_LOG)


def _present(value: int) -> int | None:
    return None if value < 0 else value


def read_producer_snapshots(
    lines: Iterable[Line], source: str, path: str, topic_partition: tuple[str, int] | None = None
) -> Iterator[pa.RecordBatch]:
    """The producers in snapshots, and for each whole snapshot a row without one. Columns: `columns.PRODUCER_SNAPSHOTS`.

    A snapshot without producers gets no such row: of a corrupt one the tool prints nothing either.
    """
    rows: list[dict[str, Any]] = []
    has_producers = is_broken = False
    for place, value in _read_located(lines, source, topic_partition):
        if place is None or not place.is_known or place.file.kind != "snapshot":
            continue
        where = {
            "topic": place.topic,
            "partition": place.partition,
            "source": place.source,
            "path": path,
            "snapshot_offset": place.file.base_offset,
        }
        if type(value) is FileStart:
            has_producers = is_broken = False
        elif type(value) is DumpedSnapshotEntry:
            has_producers = True
            rows.append({**where, **_snapshot_row(value)})
        elif type(value) is Unreadable:
            is_broken = True
        elif type(value) is FileEnd and has_producers and not is_broken and value.tail is Tail.CLEAN:
            rows.append(where)
        if len(rows) == columns.ROWS_PER_BATCH:
            yield pa.RecordBatch.from_pylist(rows, schema=columns.PRODUCER_SNAPSHOTS)
            rows = []
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=columns.PRODUCER_SNAPSHOTS)


def _snapshot_row(entry: DumpedSnapshotEntry) -> dict[str, Any]:
    return {
        "producer_id": entry.producer_id,
        "producer_epoch": entry.producer_epoch,
        "last_sequence": _present(entry.last_sequence),
        "last_offset": _present(entry.last_offset),
        "offset_delta": _present(entry.offset_delta),
        "last_timestamp_ms": _present(entry.last_timestamp),
        "coordinator_epoch": _present(entry.coordinator_epoch),
        "current_txn_first_offset": _present(entry.current_txn_first_offset),
    }


def read_segments(
    lines: Iterable[Line], source: str, path: str, topic_partition: tuple[str, int] | None = None
) -> Iterator[pa.RecordBatch]:
    """One row per dumped `.log` file, and one without topic for what is unreadable outside them.

    Columns: `columns.SEGMENTS`.
    """
    rows: list[dict[str, Any]] = []
    elsewhere = _Seen(_Place(None, None, source, DumpedFile()), 0)
    seen = elsewhere
    for place, value in _read_located(lines, source, topic_partition):
        if type(value) is FileStart:
            seen = _Seen(place, value.position) if place is not None and place.file.kind == "log" else elsewhere
        seen.add(value)
        if type(value) is FileEnd and seen is not elsewhere:
            rows.append(seen.row(path, value))
            seen = elsewhere
        if len(rows) == columns.ROWS_PER_BATCH:
            yield pa.RecordBatch.from_pylist(rows, schema=columns.SEGMENTS)
            rows = []
    if elsewhere.unreadable:
        rows.append(elsewhere.row(path, FileEnd(0, Tail.CLEAN, True)))
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=columns.SEGMENTS)


class _Seen:
    """What `read_segments` has seen of one file."""

    def __init__(self, place: _Place, position: int) -> None:
        self.place, self.position = place, position
        self.first_offset: int | None = None
        self.end_offset: int | None = None
        self.last_gap_offset: int | None = None
        self.newest_broker_ms: int | None = None
        self.bytes = self.batches = 0
        self.has_records = False
        self.unreadable: list[dict[str, Any]] = []

    def add(self, value: Dumped) -> None:
        if type(value) is DumpedBatch:
            self.add_batch(value)
        elif type(value) is Unreadable:
            self.add_unreadable(*value)
        elif type(value) is DumpedTransactionLogRecord:
            self.has_records = True

    def add_batch(self, batch: DumpedBatch) -> None:
        self.batches += 1
        self.bytes = max(self.bytes, batch.position + max(batch.size, 0))
        if self.first_offset is None:
            self.first_offset = batch.base_offset
        is_start_known = batch.magic == 2 or batch.compression_type is CompressionType.NONE
        if self.end_offset is not None and batch.base_offset > self.end_offset and is_start_known:
            self.last_gap_offset = batch.base_offset
        self.end_offset = batch.last_offset + 1
        if self.is_stamped(batch) and batch.max_timestamp >= 0:
            self.newest_broker_ms = max(batch.max_timestamp, self.newest_broker_ms or 0)
        for stretch in reversed(self.unreadable):
            if stretch["next_offset"] is not None:
                break
            stretch["next_offset"] = batch.base_offset

    def is_stamped(self, batch: DumpedBatch) -> bool:
        """Whether a batch's time is a broker's: markers, LogAppendTime, and all that coordinators write."""
        if self.place.topic == TRANSACTION_STATE_TOPIC or (batch.is_control and batch.producer_id >= 0):
            return True
        return batch.timestamp_type is TimestampType.LOG_APPEND_TIME

    def add_unreadable(self, position: int, length: int, reason: str, sample: str) -> None:
        stretch = {"position": position, "length": length, "reason": str(reason), "sample": sample, "next_offset": None}
        self.unreadable.append(stretch)

    def row(self, path: str, end: FileEnd) -> dict[str, Any]:
        place = self.place
        is_elsewhere = place.file.path is None and not place.is_known and not self.batches
        if not place.is_known and not is_elsewhere:
            length, sample = end.position - self.position, place.file.path or ""
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
