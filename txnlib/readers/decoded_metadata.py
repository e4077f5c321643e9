"""Rows of `metadata_log` from batches: decoded, or recognised as NoOpRecords without decoding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import numpy as np

from txnlib.core.kafka.constants import MetadataType
from txnlib.core.kafka.metadata_records import (
    NO_OP_VALUE,
    MetadataRecord,
    read_control_record_type,
    read_metadata_record,
)
from txnlib.core.kafka.record_batch import CONTROL_FLAG, HEADER, LOG_OVERHEAD, Record
from txnlib.core.kafka.wire import optional
from txnlib.readers import arrow_schemas
from txnlib.readers.arrow_schemas import RowList
from txnlib.readers.batch_headers import Block
from txnlib.readers.decoded_records import MAX_BATCH_BYTES, iter_decoded
from txnlib.readers.header_columns import gather
from txnlib.readers.storage.block_buffer import Buffer

#: The record of a batch with one NoOpRecord: length, attributes, deltas of time and offset, no key, its value, no
#: headers.
_NO_OP_RECORD: Final = bytes([20, 0, 0, 0, 1, 8, *NO_OP_VALUE, 0])
_NO_OP_BATCH_SIZE: Final = HEADER.size + len(_NO_OP_RECORD)


#: Stands for a batch that is recognised without decoding.
_NO_OP: Final = MetadataRecord(MetadataType.NO_OP, 0, {})


def metadata_log_rows(rows_of: Callable[[Any], Iterable[dict[str, Any]]]) -> RowList[Any]:
    """Collects rows of `metadata_log`. Consecutive NoOpRecords of one leader epoch are one row."""
    return RowList(arrow_schemas.METADATA_LOG, rows_of, arrow_schemas.DECODED_ROWS_PER_BATCH, _joins)


def metadata_row(
    where: Mapping[str, Any],
    offset: int,
    timestamp_ms: int,
    epoch: int,
    record: MetadataRecord,
    last_offset: int | None = None,
) -> dict[str, Any]:
    """A row. `where`: the columns source, path, snapshot_offset and position. `epoch`: -1 if it is not known."""
    is_no_op = record.type == MetadataType.NO_OP
    return {
        **where,
        "offset": offset,
        "last_offset": offset if last_offset is None else last_offset,
        "timestamp_ms": optional(timestamp_ms),
        "controller_epoch": optional(epoch),
        "type": str(record.type),
        "version": 0 if is_no_op else record.version,
        **({} if is_no_op else record.columns),
    }


def _joins(last: dict[str, Any], row: dict[str, Any]) -> bool:
    if not row["type"] == last["type"] == MetadataType.NO_OP:
        return False
    follows = (last["path"], last["last_offset"] + 1, last["controller_epoch"])
    if follows != (row["path"], row["offset"], row["controller_epoch"]):
        return False
    last.update(last_offset=row["last_offset"], timestamp_ms=row["timestamp_ms"])
    return True


def iter_metadata_records(batch: bytes) -> Iterator[tuple[Record, MetadataRecord] | str]:
    """Yields the records of one complete batch, and a problem as a string for each undecodable one."""
    is_control = HEADER.unpack_from(batch)[5] & CONTROL_FLAG

    def decoded(record: Record) -> tuple[Record, MetadataRecord]:
        if is_control:
            return record, MetadataRecord(read_control_record_type(record.key or b""), None, {})
        return record, read_metadata_record(record.value or b"")

    return iter_decoded(batch, decoded)


def are_no_ops(buffer: Buffer, size: int, block: Block) -> Any:
    """Whether each batch of a block is one NoOpRecord, as a boolean array."""
    is_as_large = (block.headers["batch_length"] == _NO_OP_BATCH_SIZE - LOG_OVERHEAD) & (
        block.headers["records_count"] == 1
    )
    found = np.asarray(is_as_large & (block.headers["attributes"] & CONTROL_FLAG == 0) & (block.headers["magic"] == 2))
    indexes = np.flatnonzero(found)
    if len(indexes):
        content = gather(buffer, block.positions[indexes], _NO_OP_BATCH_SIZE, size)[:, HEADER.size :]
        found[indexes] = (content == np.frombuffer(_NO_OP_RECORD, dtype=np.uint8)).all(axis=1)
    return found


def block_rows(where: Mapping[str, Any], buffer: Buffer, size: int, block: Block) -> Iterator[dict[str, Any]]:
    """Yields the rows of a block's batches."""
    headers, offsets, epochs = (
        block.headers,
        block.headers["base_offset"].astype(np.int64),
        block.headers["partition_leader_epoch"],
    )
    is_no_op = are_no_ops(buffer, size, block)
    # Runs of batches: consecutive NoOpRecords of one leader epoch, or one other batch.
    goes_on = is_no_op[1:] & is_no_op[:-1] & (np.diff(offsets) == 1) & (epochs[1:] == epochs[:-1])
    starts = [0, *(np.flatnonzero(~goes_on) + 1).tolist()]
    for start, end in zip(starts, [*starts[1:], len(headers)], strict=True):
        position, epoch = int(block.positions[start]), int(epochs[start])
        here = {**where, "position": position}
        if is_no_op[start]:
            newest = int(headers["max_timestamp"][end - 1])
            yield metadata_row(here, int(offsets[start]), newest, epoch, _NO_OP, int(offsets[end - 1]))
        elif headers["magic"][start] == 2:
            length = int(headers["batch_length"][start]) + LOG_OVERHEAD
            for entry in iter_metadata_records(buffer[position : position + min(length, MAX_BATCH_BYTES)]):
                if not isinstance(entry, str):
                    yield metadata_row(here, entry[0].offset, entry[0].timestamp, epoch, entry[1])
