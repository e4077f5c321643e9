"""Rows of `record_batches` from a block of headers: one row per batch, or one per run of batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from txnlib.core.kafka.constants import MAX_SEQUENCE, NO_TIMESTAMP
from txnlib.core.kafka.record_batch import (
    COMPRESSION_MASK,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    LOG_OVERHEAD,
    TIMESTAMP_TYPE_FLAG,
    TRANSACTIONAL_FLAG,
)
from txnlib.readers import arrow_schemas
from txnlib.readers.batch_headers import Block
from txnlib.readers.batch_runs import BatchRuns, find_runs
from txnlib.readers.markers import read_markers
from txnlib.readers.storage.block_buffer import Buffer

_COMPRESSION: Final = pa.array(["none", "gzip", "snappy", "lz4", "zstd"])
_TIMESTAMP_TYPE: Final = pa.array(["CREATE_TIME", "LOG_APPEND_TIME"])
_CONTROL_TYPE: Final = pa.array(["ABORT", "COMMIT"])


def offset_gaps(block: Block) -> Any:
    """Number of offsets missing before each batch; 0 for the first of a file."""
    base = block.headers["base_offset"].astype(np.int64)
    before = np.empty_like(base)
    before[1:] = block.last_offsets[:-1]
    before[0] = base[0] - 1 if block.previous_last_offset is None else block.previous_last_offset
    return base - before - 1


def batch_rows(segment: Mapping[str, Any], buffer: Buffer, size: int, block: Block, *, has_runs: bool) -> pa.RecordBatch:
    """The rows of a block. `segment`: the columns that are the same in all of its rows; `size`: of the segment, in bytes."""
    gaps = offset_gaps(block)
    runs = find_runs(block, gaps) if has_runs else None
    if runs is None:
        return _rows(segment, buffer, size, block, gaps, block.last_offsets, None)
    firsts = Block(block.positions[runs.first], block.headers[runs.first], block.previous_last_offset)
    return _rows(segment, buffer, size, firsts, gaps[runs.first], block.last_offsets[runs.last], runs)


def _rows(
    segment: Mapping[str, Any], buffer: Buffer, size: int, firsts: Block, gaps: Any, last_offsets: Any, runs: BatchRuns | None
) -> pa.RecordBatch:
    """Rows that begin with the batches `firsts` and end at `last_offsets`. The first row begins with the first batch of its block.

    Almost all fields are the same in all batches of a run.
    """
    headers, count = firsts.headers, len(firsts.headers)
    attributes = headers["attributes"].astype(np.int32)
    is_v2 = headers["magic"] == 2
    control_types, coordinator_epochs = read_markers(buffer, size, firsts)
    base_offset = headers["base_offset"].astype(np.int64)
    base_sequence = np.where(is_v2, headers["base_sequence"], -1).astype(np.int64)
    last_sequence = np.where(base_sequence >= 0, (base_sequence + (last_offsets - base_offset)) & MAX_SEQUENCE, -1)
    gap_mask = np.zeros(count, dtype=bool)
    gap_mask[0] = firsts.previous_last_offset is None
    has_horizon = is_v2 & (attributes & DELETE_HORIZON_FLAG != 0)
    arrays = {
        **{
            name: pa.repeat(pa.scalar(value, arrow_schemas.RECORD_BATCHES.field(name).type), count)
            for name, value in segment.items()
        },
        "position": pa.array(firsts.positions),
        "size": pa.array((headers["batch_length"] + LOG_OVERHEAD).astype(np.int32)),
        "base_offset": pa.array(base_offset),
        "last_offset": pa.array(last_offsets),
        "offset_gap": pa.array(gaps, mask=gap_mask),
        "records_count": _nullable(headers["records_count"], np.int32, is_v2),
        "producer_id": _nullable(headers["producer_id"], np.int64, is_v2),
        "producer_epoch": _nullable(headers["producer_epoch"], np.int32, is_v2),
        "base_sequence": _nullable(base_sequence, np.int32),
        "last_sequence": _nullable(last_sequence, np.int32),
        "partition_leader_epoch": _nullable(headers["partition_leader_epoch"], np.int32, is_v2),
        "is_transactional": pa.array(is_v2 & (attributes & TRANSACTIONAL_FLAG != 0)),
        "is_control": pa.array(is_v2 & (attributes & CONTROL_FLAG != 0)),
        "control_type": _CONTROL_TYPE.take(_nullable(control_types, np.int32)),
        "coordinator_epoch": _nullable(coordinator_epochs, np.int32),
        "timestamp_type": _TIMESTAMP_TYPE.take(_nullable((attributes & TIMESTAMP_TYPE_FLAG) >> 3, np.int32, is_v2)),
        "max_timestamp_ms": _time(headers["max_timestamp"], is_v2),
        "delete_horizon_ms": _nullable(headers["base_timestamp"], np.int64, has_horizon),
        "compression_type": _COMPRESSION.take(_nullable(attributes & COMPRESSION_MASK, np.int32, is_v2)),
        "magic": pa.array(headers["magic"].astype(np.int32)),
        "crc": _nullable(headers["crc"], np.int64, is_v2),
        "batches_count": pa.repeat(pa.scalar(1, pa.int32()), count),
        "last_batch_offset": pa.array(base_offset),
        "first_timestamp_ms": _time(headers["max_timestamp"], is_v2),
        "batches_hash": pa.nulls(count, pa.int64()),
        "packed_batches": pa.nulls(count, pa.binary()),
    }
    if runs is not None:
        last_sequence = np.where(base_sequence >= 0, runs.last_sequences, -1)
        arrays |= _columns_of_runs(runs, last_sequence, is_v2, headers["crc"])
    return pa.RecordBatch.from_arrays(
        [arrays[name] for name in arrow_schemas.RECORD_BATCHES.names], schema=arrow_schemas.RECORD_BATCHES
    )


def _columns_of_runs(runs: BatchRuns, last_sequence: Any, is_v2: Any, crc: Any) -> dict[str, pa.Array]:
    """The columns that are not those of the first batch."""
    is_run = runs.counts > 1
    return {
        "size": pa.array(runs.sizes.astype(np.int32)),
        "records_count": _nullable(runs.records, np.int32, is_v2),
        "last_sequence": _nullable(last_sequence, np.int32),
        "max_timestamp_ms": _time(runs.last_timestamps, is_v2),
        "crc": _nullable(crc, np.int64, is_v2 & ~is_run),
        "batches_count": pa.array(runs.counts.astype(np.int32)),
        "last_batch_offset": pa.array(runs.last_batch_offsets),
        "batches_hash": pa.array(runs.hashes, mask=~is_run),
        "packed_batches": _binary(runs.packed, runs.counts, is_run),
    }


def _binary(packed: Any, counts: Any, is_run: Any) -> pa.Array:
    """The packed batches of each run, without copying them; null for single batches, which have none among `packed`."""
    ends = np.cumsum(np.where(is_run, counts, 0) * packed.dtype.itemsize).astype(np.int32)
    offsets = np.concatenate([np.zeros(1, np.int32), ends])
    validity = pa.py_buffer(np.packbits(is_run, bitorder="little").tobytes())
    return pa.Array.from_buffers(pa.binary(), len(counts), [validity, pa.py_buffer(offsets), pa.py_buffer(packed.tobytes())])


def _nullable(values: Any, dtype: Any, is_present: Any = True) -> pa.Array:
    """The values, with null for Kafka's -1 and for fields that the format does not have."""
    native = values.astype(dtype)
    return pa.array(native, mask=~((native >= 0) & is_present))


def _time(values: Any, is_present: Any) -> pa.Array:
    """Timestamps, with null for Kafka's -1. Clients may choose any other number."""
    native = values.astype(np.int64)
    return pa.array(native, mask=~((native != NO_TIMESTAMP) & is_present))
