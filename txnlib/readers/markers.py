"""The control batches of a block: which of them are markers, and what these say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from txnlib.core.kafka.record_batch import (
    COMPRESSION_MASK,
    CONTROL_FLAG,
    HEADER,
    LOG_OVERHEAD,
    EndTxnMarker,
    read_end_txn_marker,
)
from txnlib.core.kafka.wire import CorruptRecordError, on_disk
from txnlib.readers.batch_headers import Block
from txnlib.readers.decoded_records import MAX_BATCH_BYTES, UnreadableRecord, iter_batch_records
from txnlib.readers.header_columns import gather
from txnlib.readers.storage.block_buffer import Buffer

#: Size in bytes of a marker batch as brokers write it: 61 of header, 17 of one record with a 4-byte key and a 6-byte value.
MARKER_SIZE: Final = 78
NO_CONTROL_TYPE: Final = -1


def batches_at(buffer: Buffer, block: Block, indexes: Any) -> Iterator[tuple[int, int, bytes]]:
    """Position, size and bytes of the batches at some indexes. For a batch too large to decode, only its first bytes."""
    for index in indexes:
        position, size = int(block.positions[index]), int(block.headers["batch_length"][index]) + LOG_OVERHEAD
        yield position, size, buffer[position : position + min(size, MAX_BATCH_BYTES)]


def read_markers(buffer: Buffer, size: int, block: Block) -> tuple[Any, Any]:
    """Control type and coordinator epoch of each batch; -1 for batches that are not markers. `size`: of the segment.

    Nearly every marker has the 78 bytes that brokers write, so these are read as columns. Compaction leaves markers of other sizes.
    """
    headers = block.headers
    control_types = np.full(len(headers), NO_CONTROL_TYPE, dtype=np.int32)
    epochs = np.full(len(headers), -1, dtype=np.int32)
    usual, bodies, unusual = _split_markers(buffer, size, block)
    control_types[usual] = bodies[:, 8]
    epochs[usual] = bodies[:, 12:16].copy().view(">i4").reshape(-1)
    for index, (_position, _size, batch) in zip(unusual, batches_at(buffer, block, unusual), strict=True):
        control_types[index], epochs[index] = _read_marker(batch)
    return control_types, epochs


def unusual_markers(buffer: Buffer, size: int, block: Block) -> Any:
    """Indexes of the markers whose record must be decoded."""
    return _split_markers(buffer, size, block)[2]


def marker_problems(batch: bytes) -> Iterator[str]:
    """Why a control batch cannot be decoded; nothing if it can, or if it concerns no producer."""
    try:
        _marker(batch)
    except CorruptRecordError as error:
        yield f"UNDECODABLE_MARKER: {error.problem}"


def _split_markers(buffer: Buffer, size: int, block: Block) -> tuple[Any, Any, Any]:
    """Indexes of the markers as brokers write them, the 17 bytes after their headers, and indexes of all other markers."""
    headers = block.headers
    is_control = (headers["magic"] == 2) & (headers["attributes"] & CONTROL_FLAG != 0)
    candidates = np.flatnonzero(is_control & (headers["records_count"] > 0) & (headers["producer_id"] >= 0))
    is_plain = headers["batch_length"][candidates] == MARKER_SIZE - LOG_OVERHEAD
    plain = candidates[is_plain]
    bodies = _marker_bodies(buffer, size, block.positions[plain])
    # varint 4 before the key, varint 6 before the value, after the usual one-byte timestamp delta.
    is_usual = (bodies[:, 4] == 8) & (bodies[:, 9] == 12) & (headers["attributes"][plain] & COMPRESSION_MASK == 0)
    is_usual &= (bodies[:, 7] == 0) & (bodies[:, 8] <= 1)
    return plain[is_usual], bodies[is_usual], np.concatenate([candidates[~is_plain], plain[~is_usual]])


def _marker_bodies(buffer: Buffer, size: int, positions: Any) -> Any:
    """The 17 bytes after the header of each 78-byte batch."""
    if not len(positions):
        return np.empty((0, MARKER_SIZE - HEADER.size), dtype=np.uint8)
    return gather(buffer, positions + HEADER.size, MARKER_SIZE - HEADER.size, size)


def _read_marker(batch: bytes) -> tuple[int, int]:
    """Control type and coordinator epoch; (-1, -1) for an undecodable record.

    As in Kafka, such a record changes nothing for its producer. Its batch is still listed.
    """
    try:
        marker = _marker(batch)
    except CorruptRecordError:
        marker = None
    if marker is None or marker.control_type is None:
        return NO_CONTROL_TYPE, -1
    return marker.control_type, on_disk(marker.coordinator_epoch)


def _marker(batch: bytes) -> EndTxnMarker | None:
    """The marker in a control batch; None for other control records. Its timestamp and offset are those of the header."""
    first = next(iter_batch_records(batch))
    return read_end_txn_marker(first.record if isinstance(first, UnreadableRecord) else first)
