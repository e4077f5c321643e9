"""Text of `kafka-dump-log.sh` as Arrow batches, for all tool versions.

One pass through the text fills all tables, and keeps at most one Arrow batch of rows for each. Columns: `arrow_schemas.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa

from txnlib.core.kafka.metadata_records import MetadataRecord
from txnlib.core.kafka.wire import optional
from txnlib.core.text.chain import BatchChain
from txnlib.core.text.dump_lines import DumpedSnapshotEntry, is_of_old_tool, read_batch_line, read_file_line, read_record_line
from txnlib.core.text.dump_reader import DumpReader
from txnlib.core.text.events import DumpedRecord, DumpTail, FileEnd, FileStart, TransactionLogText, Unreadable
from txnlib.core.text.lines import Lines, TextLines
from txnlib.readers import arrow_schemas
from txnlib.readers.coordinator_records import entry_row
from txnlib.readers.dump_blocks import START, BatchBlock, read_plain_batches
from txnlib.readers.dump_rows import DumpPlace, Event, Located
from txnlib.readers.metadata_log import MetadataRows
from txnlib.readers.one_pass import RowList

#: Number of bytes to read line by line before trying a block again.
_ONE_BY_ONE: Final = 4_096
_MOST_ONE_BY_ONE: Final = 16 << 20


def looks_like_dump(head: bytes) -> bool:
    """Whether the first kilobytes of a file contain dump text, possibly after other text.

    A segment can contain such text in its payloads, but all of Kafka's binary files start with a zero byte.
    """
    if head.startswith(b"\0"):
        return False
    readers = read_file_line, read_batch_line, read_record_line, is_of_old_tool
    return any(read(line) for line in head.splitlines() for read in readers)


class DumpStream:
    """The events of the lines, in order, each read once. Lines of `TextLines` are read in blocks where possible.

    `topic` is the topic of files whose path does not contain it.
    """

    def __init__(self, lines: Lines, topic: str | None) -> None:
        self.reader, self._text = DumpReader(lines, topic), lines if isinstance(lines, TextLines) else None
        #: Where to try a block, and how many bytes to read line by line if that fails: more and more.
        self._next_try, self._one_by_one = 0, _ONE_BY_ONE

    def __iter__(self) -> Iterator[Event]:
        reader, text = self.reader, self._text
        while True:
            chain = reader.chain
            if text is not None and chain is not None and chain.is_plain and (block := self._take_block(text, chain)) is not None:
                reader.skip_batches(block.last, block.size, has_records=block.has_records, has_untyped_markers=block.has_markers)
                yield from reader.take_events()
                yield block
            elif text is not None and not (text.of_piece or text.held) and reader.skips_empty and (count := text.skip_empty()):
                reader.skip(count)
            elif not reader.read_line():
                break
            elif reader.out.values:
                yield from reader.take_events()
        reader.end_text()
        yield from reader.take_events()

    def _take_block(self, lines: TextLines, chain: BatchChain) -> BatchBlock | None:
        """Takes the next lines as a block; None if not all are batch lines that continue the chain."""
        position = lines.position
        if position < self._next_try or not lines.begins_with(START):
            return None
        text = lines.take_block()
        block = None if text is None else read_plain_batches(text, chain.next_position, chain.last_offset)
        if text is not None:
            size = 0 if block is None else block.size
            lines.end_block(text[size:], position + size)
        if block is None:
            self._next_try, self._one_by_one = position + self._one_by_one, min(2 * self._one_by_one, _MOST_ONE_BY_ONE)
        else:
            self._one_by_one = _ONE_BY_ONE
        return block


def read_located(lines: Lines, source: str, topic_partition: tuple[str, int] | None) -> Iterator[Located]:
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


class DumpTransactionLogRows:
    """The coordinator records in a dump. Columns: `arrow_schemas.TRANSACTION_LOG`; fields that the tool does not print are null."""

    def __init__(self, path: str) -> None:
        self._path, self._rows = path, RowList(arrow_schemas.TRANSACTION_LOG)

    def add(self, located: Located) -> Iterable[pa.RecordBatch]:
        place, value = located
        if type(value) is not DumpedRecord or place is None or not place.is_known:
            return ()
        if not isinstance(value.content, TransactionLogText):
            return ()
        row = {
            **place.columns(self._path),
            "position": value.position,
            "offset": value.offset,
            "timestamp_ms": optional(value.timestamp),
            "coordinator_epoch": optional(value.partition_leader_epoch),
            "transactional_id": value.content.transactional_id,
            **entry_row(value.content.entry),
            # Tools print only the tags that they know.
            "unknown_tags": None,
        }
        return self._rows.add([row])

    def end(self) -> Iterable[pa.RecordBatch]:
        return self._rows.end()


class DumpMetadataLogRows:
    """The records of `__cluster_metadata` in a dump with `--cluster-metadata-decoder`. Columns: `arrow_schemas.METADATA_LOG`."""

    def __init__(self, path: str) -> None:
        self._path, self._rows = path, MetadataRows()

    def add(self, located: Located) -> Iterable[pa.RecordBatch]:
        place, value = located
        if type(value) is not DumpedRecord or not isinstance(value.content, MetadataRecord) or place is None:
            return ()
        if place.file.kind != "log" and place.file.snapshot_offset is None:
            # A snapshot without its offset in its name may be of any time.
            return ()
        where = {"source": place.source, "path": self._path, "snapshot_offset": place.file.snapshot_offset}
        where["position"] = value.position
        self._rows.add(where, value.offset, value.timestamp, value.partition_leader_epoch, value.content)
        return self._rows.take()

    def end(self) -> Iterable[pa.RecordBatch]:
        return self._rows.take(is_last=True)


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
            found = {name: optional(number) for name, number in value._asdict().items()}
            found |= {"producer_id": value.producer_id, "producer_epoch": value.producer_epoch}
            return self._rows.add([{**place.columns(self._path), "snapshot_offset": place.file.base_offset, **found}])
        elif type(value) is Unreadable:
            self._is_broken = True
        elif type(value) is FileEnd and self._has_producers and not self._is_broken and value.tail is DumpTail.CLEAN:
            return self._rows.add([{**place.columns(self._path), "snapshot_offset": place.file.base_offset}])
        return ()

    def end(self) -> Iterable[pa.RecordBatch]:
        return self._rows.end()
