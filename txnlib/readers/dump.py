"""Text of `kafka-dump-log.sh` as Arrow batches, for all tool versions.

One pass through the text fills all tables, and keeps at most one Arrow batch of rows for each. Columns: `arrow_schemas.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import pyarrow as pa

from txnlib.core.text.batch_chain import Line
from txnlib.core.text.dump_events import DumpedMetadataRecord, DumpedTransactionLogRecord, FileEnd, FileStart, Unreadable
from txnlib.core.text.dump_lines import DumpedBatch, DumpedFile, DumpedSnapshotEntry, read_batch_line, read_file_line
from txnlib.core.text.record_lines import read_record_line
from txnlib.core.text.tool_messages import DumpTail
from txnlib.readers import arrow_schemas
from txnlib.readers.dump_blocks import BatchBlock
from txnlib.readers.dump_rows import BatchRows, DumpPlace, DumpStream, Event, Seen, snapshot_row, transaction_log_row
from txnlib.readers.metadata_log import MetadataRows
from txnlib.readers.one_pass import RowList
from txnlib.readers.text_files import CHUNK_BYTES, TextLines


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


#: An event of the text with its place; None for text outside any file.
Located = tuple[DumpPlace | None, Event]


def read_located(lines: Iterable[Line], source: str, topic_partition: tuple[str, int] | None) -> Iterator[Located]:
    """Yields the events of the text. `topic_partition` applies to files whose path does not contain it.

    Folders that Kafka is deleting are left out. The first log directory belongs to the source itself; further ones become sources
    of their own, named `<source>:<log directory>`.
    """
    topic, partition = topic_partition or (None, None)
    place: DumpPlace | None = None
    last: DumpPlace | None = None
    first_directory: str | None = None
    for value in DumpStream(lines, topic):
        if type(value) is FileStart:
            file = value.file
            if file.path is None and last is not None and last.file.topic is not None and last[:2] != (topic, partition):
                # The line with the partition of these batches is lost, and the name of the text belongs to other files.
                place = DumpPlace(None, None, source, file)
            elif file.topic is None or file.is_deleted:
                place = DumpPlace(topic, partition, source, file)
            else:
                first_directory = file.log_directory if first_directory is None else first_directory
                own = source if file.log_directory == first_directory else f"{source}:{file.log_directory}"
                place = DumpPlace(file.topic, file.partition, own, file)
            last = place
        if place is None or not place.file.is_deleted:
            yield place, value
        if type(value) is FileEnd:
            place = None


class DumpBatchRows:
    """The batches in a dump. Columns: `arrow_schemas.RECORD_BATCHES`.

    Batches without any partition are left out here and reported by `DumpSegmentRows`.
    """

    def __init__(self) -> None:
        self._rows = BatchRows()

    def add(self, located: Located) -> Iterable[pa.RecordBatch]:
        place, value = located
        if type(value) is DumpedBatch:
            self._rows.add(value)
        elif type(value) is BatchBlock:
            self._rows.add_block(value)
        elif type(value) is FileStart and place is not None:
            self._rows.start(place)
        return (self._rows.take(),) if len(self._rows) >= arrow_schemas.ROWS_PER_BATCH else ()

    def end(self) -> Iterable[pa.RecordBatch]:
        return (self._rows.take(),) if len(self._rows) else ()


class DumpTransactionLogRows:
    """The coordinator records in a dump. Columns: `arrow_schemas.TRANSACTION_LOG`; fields that the tool does not print are null."""

    def __init__(self, path: str) -> None:
        self._path, self._rows = path, RowList(arrow_schemas.TRANSACTION_LOG)

    def add(self, located: Located) -> Iterable[pa.RecordBatch]:
        place, value = located
        if type(value) is not DumpedTransactionLogRecord or place is None or not place.is_known:
            return ()
        return self._rows.add([transaction_log_row(place, self._path, value)])

    def end(self) -> Iterable[pa.RecordBatch]:
        return self._rows.end()


class DumpMetadataLogRows:
    """The records of `__cluster_metadata` in a dump with `--cluster-metadata-decoder`. Columns: `arrow_schemas.METADATA_LOG`."""

    def __init__(self, path: str) -> None:
        self._path, self._rows = path, MetadataRows()

    def add(self, located: Located) -> Iterable[pa.RecordBatch]:
        place, value = located
        if type(value) is not DumpedMetadataRecord or place is None or not _is_metadata(place):
            return ()
        where = {"source": place.source, "path": self._path, "snapshot_offset": place.file.snapshot_offset}
        where["position"] = value.position
        self._rows.add(where, value.offset, value.timestamp, value.partition_leader_epoch, value.record)
        return self._rows.take()

    def end(self) -> Iterable[pa.RecordBatch]:
        return self._rows.take(is_last=True)


def _is_metadata(place: DumpPlace) -> bool:
    """Whether the records of a file count: a snapshot without its offset in its name may be of any time."""
    return place.file.kind == "log" or place.file.snapshot_offset is not None


class DumpSnapshotRows:
    """The producers in snapshots, and one row without a producer per complete snapshot.

    Columns: `arrow_schemas.PRODUCER_SNAPSHOTS`. A snapshot without producers has no row at all, because the tool prints nothing for
    a corrupt snapshot either.
    """

    def __init__(self, path: str) -> None:
        self._path, self._rows = path, RowList(arrow_schemas.PRODUCER_SNAPSHOTS)
        self._has_producers = self._is_broken = False

    def add(self, located: Located) -> Iterable[pa.RecordBatch]:
        place, value = located
        if place is None or not place.is_known or place.file.kind != "snapshot":
            return ()
        if type(value) is FileStart:
            self._has_producers = self._is_broken = False
        elif type(value) is DumpedSnapshotEntry:
            self._has_producers = True
            return self._rows.add([{**self._where(place), **snapshot_row(value)}])
        elif type(value) is Unreadable:
            self._is_broken = True
        elif type(value) is FileEnd and self._has_producers and not self._is_broken and value.tail is DumpTail.CLEAN:
            return self._rows.add([self._where(place)])
        return ()

    def _where(self, place: DumpPlace) -> dict[str, Any]:
        return {
            "topic": place.topic,
            "partition": place.partition,
            "source": place.source,
            "path": self._path,
            "snapshot_offset": place.file.base_offset,
        }

    def end(self) -> Iterable[pa.RecordBatch]:
        return self._rows.end()


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
