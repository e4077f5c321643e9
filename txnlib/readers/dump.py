"""Text of `kafka-dump-log.sh` as Arrow batches, for all tool versions.

Each reader passes through the text once and keeps at most one Arrow batch of rows. Columns: `arrow_schemas.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import pyarrow as pa

from txnlib.core.text.batch_chain import Line
from txnlib.core.text.dump_events import DumpedMetadataRecord, DumpedTransactionLogRecord, FileEnd, FileStart, Unreadable
from txnlib.core.text.dump_lines import DumpedBatch, DumpedFile, DumpedSnapshotEntry, read_batch_line, read_file_line
from txnlib.core.text.record_lines import read_record_line
from txnlib.core.text.tool_messages import Tail
from txnlib.readers import arrow_schemas
from txnlib.readers.dump_blocks import BatchBlock
from txnlib.readers.dump_rows import BatchRows, Place, Seen, snapshot_row, transaction_log_row
from txnlib.readers.dump_stream import DumpStream, Event
from txnlib.readers.metadata_log import MetadataRows
from txnlib.readers.text_lines import CHUNK_BYTES, TextLines


def iter_lines(stream: BinaryIO, chunk_size: int = CHUNK_BYTES) -> TextLines:
    """The lines of a stream with their line ends, each with its position. Keeps at most one line and one chunk in memory."""
    return TextLines(stream, chunk_size)


def looks_like_dump(head: bytes) -> bool:
    """Whether the first kilobytes of a file contain dump text, possibly after other text.

    A segment can contain such text in its payloads, but all of Kafka's binary files start with a zero byte.
    """
    if head.startswith(b"\0"):
        return False
    lines = head.splitlines()
    return any(read_file_line(line) or read_batch_line(line) or _is_record_line(line) for line in lines)


def _is_record_line(line: bytes) -> bool:
    return line.startswith((b"| offset: ", b"offset: ")) and read_record_line(line) is not None


def _read_located(
    lines: Iterable[Line], source: str, topic_partition: tuple[str, int] | None
) -> Iterator[tuple[Place | None, Event]]:
    """Yields the events of the text, each with its place; None for text outside any file.

    Folders that Kafka is deleting are left out. The first log directory belongs to the source itself; further ones become sources
    of their own, named `<source>:<log directory>`.
    """
    topic, partition = topic_partition or (None, None)
    place: Place | None = None
    last: Place | None = None
    first_directory: str | None = None
    for value in DumpStream(lines, topic):
        if type(value) is FileStart:
            file = value.file
            if file.path is None and last is not None and last.file.topic is not None and last[:2] != (topic, partition):
                # The line with the partition of these batches is lost, and the name of the text belongs to other files.
                place = Place(None, None, source, file)
            elif file.topic is None or file.is_deleted:
                place = Place(topic, partition, source, file)
            else:
                first_directory = file.log_directory if first_directory is None else first_directory
                own = source if file.log_directory == first_directory else f"{source}:{file.log_directory}"
                place = Place(file.topic, file.partition, own, file)
            last = place
        if place is None or not place.file.is_deleted:
            yield place, value
        if type(value) is FileEnd:
            place = None


def read_record_batches(
    lines: Iterable[Line], source: str, path: str, topic_partition: tuple[str, int] | None = None
) -> Iterator[pa.RecordBatch]:
    """The batches in a dump. Columns: `arrow_schemas.RECORD_BATCHES`.

    `topic_partition` applies to files whose path does not contain it. Batches without any partition are left out here and reported
    by `read_segments`.
    """
    rows = BatchRows()
    for place, value in _read_located(lines, source, topic_partition):
        if type(value) is DumpedBatch:
            rows.add(value)
            if len(rows) >= arrow_schemas.ROWS_PER_BATCH:
                yield rows.take()
        elif type(value) is BatchBlock:
            rows.add_block(value)
            if len(rows) >= arrow_schemas.ROWS_PER_BATCH:
                yield rows.take()
        elif type(value) is FileStart and place is not None:
            rows.start(place)
    if len(rows):
        yield rows.take()


def read_transaction_log(
    lines: Iterable[Line], source: str, path: str, topic_partition: tuple[str, int] | None = None
) -> Iterator[pa.RecordBatch]:
    """The coordinator records in a dump. Columns: `arrow_schemas.TRANSACTION_LOG`; fields that the tool does not print are null."""
    rows: list[dict[str, Any]] = []
    for place, value in _read_located(lines, source, topic_partition):
        if type(value) is not DumpedTransactionLogRecord or place is None or not place.is_known:
            continue
        rows.append(transaction_log_row(place, path, value))
        if len(rows) == arrow_schemas.ROWS_PER_BATCH:
            yield pa.RecordBatch.from_pylist(rows, schema=arrow_schemas.TRANSACTION_LOG)
            rows = []
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=arrow_schemas.TRANSACTION_LOG)


def read_metadata_log(
    lines: Iterable[Line], source: str, path: str, topic_partition: tuple[str, int] | None = None
) -> Iterator[pa.RecordBatch]:
    """The records of `__cluster_metadata` in a dump with `--cluster-metadata-decoder`. Columns: `arrow_schemas.METADATA_LOG`."""
    rows = MetadataRows()
    for place, value in _read_located(lines, source, topic_partition):
        if type(value) is DumpedMetadataRecord and place is not None and _is_metadata(place):
            where = {
                "source": place.source,
                "path": path,
                "snapshot_offset": place.file.snapshot_offset,
                "position": value.position,
            }
            rows.add(where, value.offset, value.timestamp, value.partition_leader_epoch, value.record)
            yield from rows.take()
    yield from rows.take(is_last=True)


def _is_metadata(place: Place) -> bool:
    """Whether the records of a file count: a snapshot without its offset in its name may be of any time."""
    return place.file.kind == "log" or place.file.snapshot_offset is not None


def read_producer_snapshots(
    lines: Iterable[Line], source: str, path: str, topic_partition: tuple[str, int] | None = None
) -> Iterator[pa.RecordBatch]:
    """The producers in snapshots, and one row without a producer per complete snapshot.

    Columns: `arrow_schemas.PRODUCER_SNAPSHOTS`. A snapshot without producers has no row at all, because the tool prints nothing for
    a corrupt snapshot either.
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
            rows.append({**where, **snapshot_row(value)})
        elif type(value) is Unreadable:
            is_broken = True
        elif type(value) is FileEnd and has_producers and not is_broken and value.tail is Tail.CLEAN:
            rows.append(where)
        if len(rows) == arrow_schemas.ROWS_PER_BATCH:
            yield pa.RecordBatch.from_pylist(rows, schema=arrow_schemas.PRODUCER_SNAPSHOTS)
            rows = []
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=arrow_schemas.PRODUCER_SNAPSHOTS)


def read_segments(
    lines: Iterable[Line], source: str, path: str, topic_partition: tuple[str, int] | None = None
) -> Iterator[pa.RecordBatch]:
    """One row per dumped `.log` file, and one without topic for unreadable text outside any file.

    Columns: `arrow_schemas.SEGMENTS`.
    """
    rows: list[dict[str, Any]] = []
    elsewhere = Seen(Place(None, None, source, DumpedFile()), -1)
    seen = elsewhere
    for place, value in _read_located(lines, source, topic_partition):
        if type(value) is FileStart:
            seen = Seen(place, value.position) if place is not None and _has_row(place) else elsewhere
        if seen is not elsewhere or type(value) is Unreadable:
            seen.add(value)
        if type(value) is FileEnd and seen is not elsewhere:
            rows.append(seen.row(path, value))
            seen = elsewhere
        if len(rows) == arrow_schemas.ROWS_PER_BATCH:
            yield pa.RecordBatch.from_pylist(rows, schema=arrow_schemas.SEGMENTS)
            rows = []
    if elsewhere.unreadable:
        rows.append(elsewhere.row(path, FileEnd(0, Tail.CLEAN, True)))
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=arrow_schemas.SEGMENTS)


def _has_row(place: Place) -> bool:
    """Whether a dumped file has a row in `segments`: a log, or a snapshot of an unknown partition."""
    return place.file.kind == "log" or (place.file.kind == "snapshot" and not place.is_known)
