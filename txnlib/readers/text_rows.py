"""Arrow rows of the events of text. Columns: `arrow_schemas.py`. Fields that a tool does not print are null."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import count
from typing import Any, Final

import numpy as np
import pyarrow as pa

from txnlib.core.instants import FIRST_MS, LAST_MS, clock_ms
from txnlib.core.kafka.constants import CLUSTER_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from txnlib.core.kafka.metadata_records import MetadataRecord
from txnlib.core.kafka.record_batch import TimestampType
from txnlib.core.kafka.transaction_log import TransactionLogEntry
from txnlib.core.kafka.wire import optional
from txnlib.core.text.dump_lines import DumpedBatch, DumpedFile, DumpedSnapshotEntry
from txnlib.core.text.lines import TextLines, UnreadableReason
from txnlib.core.text.printed import (
    ConsoleEnd,
    ConsoleRecord,
    DumpedRecord,
    DumpTail,
    FileEnd,
    FileStart,
    Printed,
    TransactionLogText,
    Unreadable,
)
from txnlib.readers import arrow_schemas
from txnlib.readers.arrow_schemas import RowList
from txnlib.readers.batch_rows import record_batches
from txnlib.readers.decoded_metadata import metadata_log_rows, metadata_row
from txnlib.readers.decoded_records import entry_row
from txnlib.readers.printed_again import Again
from txnlib.readers.text_events import DumpPlace, Located

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
        return self.end() if len(self._gaps) >= arrow_schemas.ROWS_PER_BATCH else ()

    def end(self) -> Iterable[pa.RecordBatch]:
        return (self._take(),) if self._gaps else ()

    def _add_batch(self, batch: DumpedBatch) -> None:
        self._fields.extend(batch)
        is_gap_known = self._end_offset >= 0 and batch.has_known_start
        self._gaps.append(batch.base_offset - self._end_offset if is_gap_known else _UNKNOWN)
        self._end_offset = batch.last_offset + 1

    def _take(self) -> pa.RecordBatch:
        """Returns the rows collected so far as one Arrow batch, and clears them."""
        number, places = len(self._gaps), self._places
        of_place = np.repeat(
            np.arange(len(places), dtype=np.int32), np.diff([*(start for _place, start in places), number])
        )
        cells = DumpedBatch._make(np.array(self._fields).reshape(number, len(DumpedBatch._fields)).T)._asdict()
        cells |= {
            "topic": pa.array([place.topic for place, _ in places], pa.string()).take(of_place),
            "partition": pa.array([place.partition for place, _ in places], pa.int32()).take(of_place),
            "source": pa.array([place.source for place, _ in places], pa.string()).take(of_place),
            "segment_base_offset": pa.array([place.file.base_offset for place, _ in places], pa.int64()).take(of_place),
            "offset_gap": np.array(self._gaps),
            "max_timestamp_ms": cells["max_timestamp"],
        }
        self._fields, self._gaps, self._places = array("q"), array("q"), [(places[-1][0], 0)]
        return record_batches(cells, number)


class _Seen:
    """What of a dumped file was read and what was not."""

    def __init__(self, place: DumpPlace, position: int) -> None:
        self.place, self.position = place, position
        self.is_brokers = place.topic in (TRANSACTION_STATE_TOPIC, CLUSTER_METADATA_TOPIC)
        self.first_offset: int | None = None
        self.end_offset: int | None = None
        self.last_gap_offset: int | None = None
        self.newest_broker_ms: int | None = None
        self.bytes = self.batches = self.coordinator_records = 0
        self.unreadable: list[dict[str, Any]] = []

    def add_batch(self, batch: DumpedBatch) -> None:
        self.batches += 1
        self.bytes = max(self.bytes, batch.position + max(batch.size, 0))
        self._go_on_at(batch.base_offset)
        if self.end_offset is not None and batch.base_offset > self.end_offset and batch.has_known_start:
            self.last_gap_offset = batch.base_offset
        self.end_offset = batch.last_offset + 1
        if self.is_stamped(batch) and FIRST_MS <= batch.max_timestamp <= LAST_MS:
            self.newest_broker_ms = max(batch.max_timestamp, self.newest_broker_ms or 0)

    def _go_on_at(self, offset: int) -> None:
        """Sets `next_offset` of the unreadable ranges before this batch and, for the first batch, the first offset of
        the file."""
        if self.first_offset is None:
            self.first_offset = offset
        for unreadable in reversed(self.unreadable):
            if unreadable["next_offset"] is not None:
                break
            unreadable["next_offset"] = offset

    def is_stamped(self, batch: DumpedBatch) -> bool:
        """Whether a batch's timestamp is on a broker's clock: markers, LogAppendTime, and everything that only brokers
        write."""
        is_marker = batch.is_control and batch.producer_id >= 0
        return is_marker or batch.timestamp_type == TimestampType.LOG_APPEND_TIME or self.is_brokers

    def add_unreadable(self, position: int, length: int, reason: str, sample: str) -> None:
        unreadable = {
            "position": position,
            "length": length,
            "reason": str(reason),
            "sample": sample,
            "next_offset": None,
        }
        self.unreadable.append(unreadable)

    def row(self, path: str, end: FileEnd) -> dict[str, Any]:
        """A row of `segments`."""
        place = self.place
        if not place.is_known and self.coordinator_records:
            return self._row_as_console(path, end)
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

    def _row_as_console(self, path: str, end: FileEnd) -> dict[str, Any]:
        """A row for coordinator records of a file whose partition is unknown: as console text, which never shows it."""
        return {
            "topic": TRANSACTION_STATE_TOPIC,
            "source": console_source(self.place.source),
            "path": path,
            "kind": "console",
            "bytes": end.position - self.position,
            "batches": self.coordinator_records,
            "tail": str(end.tail),
            "is_decoded": end.is_decoded,
            "newest_broker_ms": self.newest_broker_ms,
            "unreadable": self.unreadable,
        }


def console_source(source: str) -> str:
    """The source of coordinator records without a partition, in a text of this source."""
    return source.replace("text:", "console:", 1)


class DumpSegmentRows:
    """One row per dumped `.log` file, and one without topic for unreadable text outside any file.

    Columns: `arrow_schemas.SEGMENTS`.
    """

    def __init__(self, source: str, path: str) -> None:
        self._path, self._rows = path, RowList[dict[str, Any]](arrow_schemas.SEGMENTS, lambda row: (row,))
        self._elsewhere = self._seen = _Seen(DumpPlace(None, None, source, DumpedFile()), -1)

    def add(self, located: Located) -> Iterable[pa.RecordBatch]:
        place, value = located
        if type(value) is FileStart:
            # A log, or a snapshot of an unknown partition.
            kind = None if place is None else place.file.kind
            has_row = place is not None and (kind == "log" or (kind == "snapshot" and not place.is_known))
            self._seen = _Seen(place, value.position) if place is not None and has_row else self._elsewhere
        seen = self._seen
        if type(value) is Again:
            # Each time that a file is printed is a row: the longer one counts.
            value = value.value
        if type(value) is Unreadable:
            seen.add_unreadable(*value)
        elif seen is self._elsewhere:
            return ()
        elif type(value) is DumpedBatch:
            seen.add_batch(value)
        elif type(value) is DumpedRecord:
            seen.coordinator_records += isinstance(value.content, TransactionLogText)
        elif type(value) is FileEnd:
            self._seen = self._elsewhere
            return self._rows.add(seen.row(self._path, value))
        return ()

    def end(self) -> Iterable[pa.RecordBatch]:
        if self._elsewhere.unreadable:
            yield from self._rows.add(self._elsewhere.row(self._path, FileEnd(0, DumpTail.CLEAN, True)))
        yield from self._rows.end()


def dump_transaction_log_rows() -> RowList[Located]:
    """The coordinator records in a dump. Columns: `arrow_schemas.TRANSACTION_LOG`."""

    def rows_of(located: Located) -> Iterable[dict[str, Any]]:
        place, value = located
        if type(value) is not DumpedRecord or place is None or not place.is_known:
            return ()
        if not isinstance(value.content, TransactionLogText):
            return ()
        row = {
            "topic": place.topic,
            "partition": place.partition,
            "source": place.source,
            "segment_base_offset": place.file.base_offset,
            "position": value.position,
            "offset": value.offset,
            "timestamp_ms": optional(value.timestamp),
            "coordinator_epoch": optional(value.partition_leader_epoch),
            "transactional_id": value.content.transactional_id,
            **entry_row(value.content.entry),
            # Tools print only the tags that they know.
            "unknown_tags": None,
        }
        return (row,)

    return RowList(arrow_schemas.TRANSACTION_LOG, rows_of)


def dump_metadata_log_rows(path: str) -> RowList[Located]:
    """The records of `__cluster_metadata` in a dump with `--cluster-metadata-decoder`. Columns:
    `arrow_schemas.METADATA_LOG`."""

    def rows_of(located: Located) -> Iterable[dict[str, Any]]:
        place, value = located
        if type(value) is not DumpedRecord or not isinstance(value.content, MetadataRecord) or place is None:
            return ()
        snapshot_offset = place.file.snapshot_offset
        if place.file.kind != "log" and snapshot_offset is None:
            # A snapshot without its offset in its name may be of any time.
            return ()
        where = {"source": place.source, "path": path, "snapshot_offset": snapshot_offset, "position": value.position}
        return (metadata_row(where, value.offset, value.timestamp, value.partition_leader_epoch, value.content),)

    return metadata_log_rows(rows_of)


def dump_snapshot_rows(path: str) -> RowList[Located]:
    """The producers in snapshots, and one row without a producer per complete snapshot.

    Columns: `arrow_schemas.PRODUCER_SNAPSHOTS`. A snapshot without producers has no row at all, because the tool prints
    nothing for a corrupt snapshot either.
    """
    has_producers = is_broken = False

    def rows_of(located: Located) -> Iterable[dict[str, Any]]:
        nonlocal has_producers, is_broken
        place, value = located
        if place is None or not place.is_known or place.file.kind != "snapshot":
            return ()
        if type(value) is FileStart:
            has_producers = is_broken = False
        elif type(value) is Unreadable:
            is_broken = True
        elif type(value) is DumpedSnapshotEntry:
            has_producers = True
            found = {name: optional(number) for name, number in value._asdict().items()}
            found |= {"producer_id": value.producer_id, "producer_epoch": value.producer_epoch}
            return ({**place.columns(path), "snapshot_offset": place.file.base_offset, **found},)
        elif type(value) is FileEnd and has_producers and not is_broken and value.tail is DumpTail.CLEAN:
            return ({**place.columns(path), "snapshot_offset": place.file.base_offset},)
        return ()

    return RowList(arrow_schemas.PRODUCER_SNAPSHOTS, rows_of)


def console_log_rows(source: str, partition: int | None = None) -> RowList[Printed]:
    """The coordinator records in console consumer text. Columns: `arrow_schemas.TRANSACTION_LOG`.

    The formatter prints neither partition, offset, timestamp nor leader epoch of a record. `partition`: that of all
    records, if known. `position` is the record's ordinal: all records of one transactional id are printed in offset
    order. Kafka: `TransactionLogMessageFormatter`.
    """
    where = {"topic": TRANSACTION_STATE_TOPIC, "partition": partition, "source": source}
    ordinals = count()

    def rows_of(printed: Printed) -> Iterable[dict[str, Any]]:
        if type(printed) is not ConsoleRecord:
            return ()
        return (_console_row(where, next(ordinals), printed.transactional_id, printed.entry),)

    return RowList(arrow_schemas.TRANSACTION_LOG, rows_of)


def _console_row(
    where: dict[str, Any], ordinal: int, transactional_id: str, entry: TransactionLogEntry | None
) -> dict[str, Any]:
    row = {**where, "position": ordinal, "transactional_id": transactional_id, **entry_row(entry)}
    return row | {"unknown_tags": None}


def dump_console_rows(source: str) -> RowList[Located]:
    """The coordinator records of dumped files whose partition is unknown, as those in console text. Columns:
    `arrow_schemas.TRANSACTION_LOG`."""
    where = {"topic": TRANSACTION_STATE_TOPIC, "source": console_source(source)}
    ordinals = count()

    def rows_of(located: Located) -> Iterable[dict[str, Any]]:
        place, value = located
        if type(value) is not DumpedRecord or place is None or place.is_known:
            return ()
        if not isinstance(value.content, TransactionLogText):
            return ()
        return (_console_row(where, next(ordinals), *value.content),)

    return RowList(arrow_schemas.TRANSACTION_LOG, rows_of)


class ConsoleSegmentRow:
    """One row for the text. Columns: `arrow_schemas.SEGMENTS`; offsets are null, `bytes` is the size of the text.

    `batches` counts records, because a coordinator writes nearly every record in a batch of its own. `newest_broker_ms`
    is the newest `txnLastUpdateTimestamp`, which is on the coordinator's clock. `text`: what it is read from.
    """

    def __init__(self, text: TextLines, source: str, path: str, partition: int | None = None) -> None:
        self._text, self._unreadable = text, list[dict[str, Any]]()
        self._row: dict[str, Any] = {
            "topic": TRANSACTION_STATE_TOPIC,
            "partition": partition,
            "source": source,
            "path": path,
        }
        self._row |= {
            "kind": "console",
            "bytes": 0,
            "batches": 0,
            "tail": "",
            "is_decoded": True,
            "newest_broker_ms": None,
        }

    def add(self, printed: Printed) -> Iterable[pa.RecordBatch]:
        row = self._row
        if type(printed) is ConsoleRecord:
            row["batches"] += 1
            updated_ms = None if printed.entry is None else clock_ms(printed.entry.last_update_timestamp_ms)
            if updated_ms is not None:
                row["newest_broker_ms"] = max(updated_ms, row["newest_broker_ms"] or 0)
        elif isinstance(printed, ConsoleEnd):
            row["bytes"], row["tail"] = printed.position, str(printed.tail)
        elif isinstance(printed, Unreadable):
            self._unreadable.append({**printed._asdict(), "reason": str(printed.reason)})
        return ()

    def end(self) -> Iterable[pa.RecordBatch]:
        row = self._row
        if (problem := self._text.problem) is not None:
            self._unreadable.append({"position": row["bytes"], "length": 0, "reason": str(problem), "sample": ""})
            row["tail"] = str(DumpTail.CORRUPT)
        yield pa.RecordBatch.from_pylist([row | {"unreadable": self._unreadable}], schema=arrow_schemas.SEGMENTS)
