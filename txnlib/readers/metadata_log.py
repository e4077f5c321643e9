"""Records of `__cluster_metadata` as Arrow batches, from segments and snapshots. Columns: `arrow_schemas.METADATA_LOG`.

An idle controller writes two NoOpRecords a second. Consecutive ones are one row, and their batches are recognised without decoding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from txnlib.core.kafka.metadata_records import (
    NO_OP_VALUE,
    MetadataRecord,
    MetadataType,
    read_control_record_type,
    read_metadata_record,
)
from txnlib.core.kafka.record_batch import CONTROL_FLAG, HEADER, LOG_OVERHEAD, Record
from txnlib.core.kafka.wire import CorruptRecordError, optional
from txnlib.readers import arrow_schemas
from txnlib.readers.batch_headers import Block
from txnlib.readers.decoded_records import MAX_BATCH_BYTES, UnreadableRecord, iter_batch_records
from txnlib.readers.header_columns import gather
from txnlib.readers.storage.block_buffer import Buffer

#: The record of a batch with one NoOpRecord: length, attributes, deltas of time and offset, no key, its value, no headers.
_NO_OP_RECORD: Final = bytes([20, 0, 0, 0, 1, 8, *NO_OP_VALUE, 0])
_NO_OP_BATCH_SIZE: Final = HEADER.size + len(_NO_OP_RECORD)


class MetadataRows:
    """Collects rows of `metadata_log`. Consecutive NoOpRecords of one leader epoch are one row."""

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []

    def add(self, where: Mapping[str, Any], offset: int, timestamp_ms: int, epoch: int, record: MetadataRecord) -> None:
        """Adds a record. `where`: the columns source, path, snapshot_offset and position. `epoch`: -1 if it is not known."""
        if record.type == MetadataType.NO_OP:
            self.add_no_ops(where, offset, offset, timestamp_ms, epoch)
            return
        self._rows.append(
            {
                **where,
                "offset": offset,
                "last_offset": offset,
                "timestamp_ms": optional(timestamp_ms),
                "controller_epoch": optional(epoch),
                "type": record.type,
                "version": record.version,
                **record.columns,
            }
        )

    def add_no_ops(self, where: Mapping[str, Any], offset: int, last_offset: int, timestamp_ms: int, epoch: int) -> None:
        """Adds consecutive NoOpRecords; `timestamp_ms` is that of the last one."""
        last = self._rows[-1] if self._rows else None
        if (
            last is not None
            and (last["type"], last["path"], last["last_offset"] + 1) == (MetadataType.NO_OP, where["path"], offset)
            and last["controller_epoch"] == optional(epoch)
        ):
            last.update(last_offset=last_offset, timestamp_ms=optional(timestamp_ms))
            return
        fields = {"offset": offset, "last_offset": last_offset, "timestamp_ms": optional(timestamp_ms)}
        self._rows.append({**where, **fields, "controller_epoch": optional(epoch), "type": str(MetadataType.NO_OP), "version": 0})

    def take(self, *, is_last: bool = False) -> Iterator[pa.RecordBatch]:
        """Yields the rows as one Arrow batch if they fill one, or if there will be no more."""
        if len(self._rows) >= arrow_schemas.DECODED_ROWS_PER_BATCH or (is_last and self._rows):
            yield pa.RecordBatch.from_pylist(self._rows, schema=arrow_schemas.METADATA_LOG)
            self._rows = []


def iter_metadata_records(batch: bytes) -> Iterator[tuple[Record, MetadataRecord] | str]:
    """Yields the records of one complete batch, and a problem as a string for each undecodable one."""
    is_control = HEADER.unpack_from(batch)[5] & CONTROL_FLAG
    try:
        for record in iter_batch_records(batch):
            if isinstance(record, UnreadableRecord):
                yield f"UNDECODABLE_RECORD: {record.problem}"
                continue
            try:
                if is_control:
                    yield record, MetadataRecord(read_control_record_type(record.key or b""), None, {})
                else:
                    yield record, read_metadata_record(record.value or b"")
            except CorruptRecordError as error:
                yield f"UNDECODABLE_RECORD: offset {record.offset}, {error.problem}"
    except CorruptRecordError as error:
        yield f"UNDECODABLE_RECORDS: {error.problem}"


def are_no_ops(buffer: Buffer, size: int, block: Block) -> Any:
    """Whether each batch of a block is one NoOpRecord, as a boolean array."""
    is_as_large = (block.headers["batch_length"] == _NO_OP_BATCH_SIZE - LOG_OVERHEAD) & (block.headers["records_count"] == 1)
    found = np.asarray(is_as_large & (block.headers["attributes"] & CONTROL_FLAG == 0) & (block.headers["magic"] == 2))
    indexes = np.flatnonzero(found)
    if len(indexes):
        content = gather(buffer, block.positions[indexes], _NO_OP_BATCH_SIZE, size)[:, HEADER.size :]
        found[indexes] = (content == np.frombuffer(_NO_OP_RECORD, dtype=np.uint8)).all(axis=1)
    return found


def block_rows(rows: MetadataRows, where: Mapping[str, Any], buffer: Buffer, size: int, block: Block) -> Iterator[pa.RecordBatch]:
    """Adds the records of a block's batches to the rows, and yields full Arrow batches."""
    headers = block.headers
    is_no_op = are_no_ops(buffer, size, block)
    runs = _runs(block, is_no_op)
    for start, end in zip(runs, [*runs[1:], len(headers)], strict=True):
        position, epoch = int(block.positions[start]), int(headers["partition_leader_epoch"][start])
        here = {**where, "position": position}
        if is_no_op[start]:
            first, last = int(headers["base_offset"][start]), int(headers["base_offset"][end - 1])
            rows.add_no_ops(here, first, last, int(headers["max_timestamp"][end - 1]), epoch)
        elif headers["magic"][start] == 2:
            length = int(headers["batch_length"][start]) + LOG_OVERHEAD
            for entry in iter_metadata_records(buffer[position : position + min(length, MAX_BATCH_BYTES)]):
                if not isinstance(entry, str):
                    rows.add(here, entry[0].offset, entry[0].timestamp, epoch, entry[1])
                    yield from rows.take()
        yield from rows.take()


def _runs(block: Block, is_no_op: Any) -> list[int]:
    """The indexes at which runs of batches begin: consecutive NoOpRecords of one leader epoch, or one other batch."""
    offsets, epochs = block.headers["base_offset"].astype(np.int64), block.headers["partition_leader_epoch"]
    goes_on = is_no_op[1:] & is_no_op[:-1] & (np.diff(offsets) == 1) & (epochs[1:] == epochs[:-1])
    return [0, *(np.flatnonzero(~goes_on) + 1).tolist()]
