"""Rows of `record_batches` from a block of headers: one row per run of batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from txnlib.core.batch_runs import RUN_OFFSETS
from txnlib.core.instants import FIRST_MS, LAST_MS
from txnlib.core.kafka.constants import MAX_INT32, MAX_SEQUENCE, NO_TIMESTAMP
from txnlib.core.kafka.record_batch import (
    COMPRESSION_MASK,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    LOG_OVERHEAD,
    TIMESTAMP_TYPE_FLAG,
    TRANSACTIONAL_FLAG,
    CompressionType,
    ControlType,
    TimestampType,
)
from txnlib.readers import arrow_schemas
from txnlib.readers.batch_headers import Block
from txnlib.readers.decoded_records import read_markers
from txnlib.readers.header_columns import PAGE
from txnlib.readers.storage.block_buffer import Buffer

#: Attributes of batches that are never part of a run.
_SINGLE_FLAGS: Final = CONTROL_FLAG | DELETE_HORIZON_FLAG


class _Fields(NamedTuple):
    """Header fields as native columns."""

    producer_id: Any
    producer_epoch: Any
    base_sequence: Any
    attributes: Any
    leader_epoch: Any
    base_offset: Any
    last_offset: Any
    timestamp: Any
    size: Any
    position: Any
    can_be_in_run: Any
    has_gap: Any


def find_runs(block: Block, gaps: Any) -> tuple[Any, Any, dict[str, Any]] | None:
    """The runs of a block, by their first batch: indexes of the first and the last one, and columns that are not the
    first one's.

    None if no batch continues another. A batch that is not part of a longer run is a run of one. `gaps`: number of
    offsets missing before each batch.
    """
    fields = _fields_of(block, gaps)
    first_of_batch = _first_of_batch(fields)
    count = len(first_of_batch)
    is_first = first_of_batch == np.arange(count)
    if is_first.all():
        return None
    # By the first batch of their run, then in order.
    order = np.argsort(first_of_batch, kind="stable")
    starts = np.flatnonzero(is_first[order])
    ends = np.append(starts[1:], count) - 1
    first, last, counts = order[starts], order[ends], ends - starts + 1
    is_run = counts > 1
    in_run = np.repeat(is_run, counts)
    inside, first_inside = order[in_run], first_of_batch[order][in_run]
    hashes = np.zeros(len(first), dtype=np.int64)
    hashes[is_run] = _hashes(fields, inside, np.flatnonzero(is_first[inside]))
    header_counts = block.headers["records_count"].astype(np.int64)[first]
    spans = fields.last_offset - fields.base_offset + 1
    has_sequence = (block.headers["magic"][first] == 2) & (fields.base_sequence[first] >= 0)
    cells = {
        "size": np.add.reduceat(fields.size[order], starts),
        "records_count": np.where(is_run, np.add.reduceat(spans[order], starts), header_counts),
        "last_sequence": np.where(has_sequence, (fields.base_sequence[last] + spans[last] - 1) & MAX_SEQUENCE, -1),
        "max_timestamp_ms": fields.timestamp[last],
        "crc": np.where(is_run, -1, block.headers["crc"][first].astype(np.int64)),
        "batches_count": counts,
        "last_batch_offset": fields.base_offset[last],
        "batches_hash": pa.array(hashes, mask=~is_run),
        "run_batches": _run_batches(block, fields, inside, first_inside, np.where(is_run, counts, 0)),
    }
    return first, last, cells


def _fields_of(block: Block, gaps: Any) -> _Fields:
    headers, last_offset = block.headers, block.last_offsets
    attributes, timestamp = headers["attributes"].astype(np.int32), headers["max_timestamp"].astype(np.int64)
    producer_id, epoch = headers["producer_id"].astype(np.int64), headers["producer_epoch"].astype(np.int32)
    sequence, base_offset = headers["base_sequence"].astype(np.int64), headers["base_offset"].astype(np.int64)
    has_sequence = (producer_id >= 0) & (epoch >= 0) & (sequence >= 0)
    has_none = (producer_id == -1) & (sequence == -1)
    can_be_in_run = (
        (headers["magic"] == 2)
        & (attributes & _SINGLE_FLAGS == 0)
        # Compaction removed none of its records.
        & (headers["records_count"] == last_offset - base_offset + 1)
        & (base_offset // RUN_OFFSETS == last_offset // RUN_OFFSETS)
        & (timestamp >= FIRST_MS)
        & (timestamp <= LAST_MS)
        & (has_sequence | (has_none & (attributes & TRANSACTIONAL_FLAG == 0)))
    )
    # A later audit resumes at the last batch of a segment, and its neighbours may contradict it.
    can_be_in_run[-1] = False
    return _Fields(
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        attributes=attributes,
        leader_epoch=headers["partition_leader_epoch"].astype(np.int64),
        base_offset=base_offset,
        last_offset=last_offset,
        timestamp=timestamp,
        size=headers["batch_length"].astype(np.int64) + LOG_OVERHEAD,
        position=block.positions,
        can_be_in_run=can_be_in_run,
        has_gap=gaps != 0,
    )


def _first_of_batch(fields: _Fields) -> Any:
    """For each batch, the index of the first batch of its run."""
    # Sixteen bits sort ten times as fast. Producers that share them end each other's runs, which costs rows, and
    # nothing else.
    by_producer = np.argsort((fields.producer_id & 0xFFFF).astype(np.uint16), kind="stable")
    continues = _continues(fields, by_producer)
    first_of_batch = np.empty(len(by_producer), dtype=np.int64)
    first = by_producer[np.maximum.accumulate(np.where(continues, 0, np.arange(len(by_producer))))]
    first_of_batch[by_producer] = first
    too_long = _first_batches_of_far_runs(fields, first_of_batch)
    if len(too_long):
        is_single = np.isin(first_of_batch, too_long)
        first_of_batch[is_single] = np.flatnonzero(is_single)
    # So that it can be sorted by 16 bits.
    return first_of_batch.astype(np.uint16) if len(first_of_batch) <= 1 << 16 else first_of_batch


def _continues(fields: _Fields, order: Any) -> Any:
    """Whether each batch, in this order, continues the one before it."""
    now, before = order[1:], order[:-1]
    producer_id, attributes, timestamp = fields.producer_id, fields.attributes, fields.timestamp
    same = [fields.producer_epoch, attributes, fields.leader_epoch, fields.base_offset // RUN_OFFSETS]
    expected = (fields.base_sequence + fields.last_offset - fields.base_offset + 1) & MAX_SEQUENCE
    is_next = (fields.base_sequence[now] == expected[before]) | (producer_id[now] < 0)
    # Times of brokers are evidence: those of a run lie between its first and its last, and are all proved or none is
    # (PAGE).
    is_small = fields.size <= PAGE
    is_in_time = (timestamp[now] >= timestamp[before]) & (is_small[now] == is_small[before])
    continues = np.zeros(len(order), dtype=bool)
    continues[1:] = (
        (producer_id[now] == producer_id[before])
        & fields.can_be_in_run[now]
        & fields.can_be_in_run[before]
        & ~fields.has_gap[now]
        & is_next
        & ((attributes[now] & TIMESTAMP_TYPE_FLAG == 0) | is_in_time)
    )
    for values in same:
        continues[1:] &= values[now] == values[before]
    return continues


def _first_batches_of_far_runs(fields: _Fields, first_of_batch: Any) -> Any:
    """The first batches of runs with a number that a column of the row cannot hold. Only odd logs have
    any."""
    after_ms = fields.timestamp - fields.timestamp[first_of_batch]
    after_bytes = fields.position - fields.position[first_of_batch]
    is_far = (np.abs(after_ms) > MAX_INT32) | (after_bytes + fields.size > MAX_INT32)
    return np.unique(first_of_batch[is_far])


def _run_batches(block: Block, fields: _Fields, inside: Any, first: Any, counts: Any) -> pa.Array:
    """The batches `inside` runs, whose first batches are `first`: `counts` of them for each row; NULL for 0."""
    has_sequence = fields.base_sequence[inside] >= 0
    sequence = (fields.base_sequence[inside] - fields.base_sequence[first]) & MAX_SEQUENCE
    # In the order of RunBatch.
    numbers: tuple[Any, ...] = (
        fields.base_offset[inside] - fields.base_offset[first],
        fields.last_offset[inside] - fields.base_offset[inside],
        np.where(has_sequence, sequence, 0),
        fields.position[inside] - fields.position[first],
        fields.size[inside],
        fields.timestamp[inside] - fields.timestamp[first],
        block.headers["crc"][inside],
    )
    kind: Any = arrow_schemas.RECORD_BATCHES.field("run_batches").type
    batches = pa.StructArray.from_arrays(
        [
            pa.array(each.astype(field.type.to_pandas_dtype()))
            for each, field in zip(numbers, kind.value_type, strict=True)
        ],
        fields=list(kind.value_type),
    )
    ends = np.concatenate([np.zeros(1, np.int32), np.cumsum(counts, dtype=np.int32)])
    return pa.ListArray.from_arrays(ends, batches, type=kind, mask=pa.array(counts == 0))


_PRIME_1, _PRIME_2, _PRIME_3, _PRIME_4, _PRIME_5 = (
    np.uint64(prime)
    for prime in (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
)
_SPARK_SEED: Final = np.uint64(42)


def _hashes(fields: _Fields, inside: Any, starts: Any) -> Any:
    """XOR of the hashes of the batches of each run: `core.batch_runs.BATCH_HASH`, which hashes single batches, in
    numpy."""
    sequence, delta = fields.base_sequence[inside], fields.last_offset[inside] - fields.base_offset[inside]
    numbers = (
        fields.producer_id[inside],
        (fields.leader_epoch[inside] + 1 << 18)
        + (fields.producer_epoch[inside].astype(np.int64) + 1 << 2)
        + np.where(fields.attributes[inside] & TRANSACTIONAL_FLAG != 0, 2, 0),
        fields.base_offset[inside],
        (delta << 32) + sequence + 1,
    )
    hashed: Any = np.full(len(inside), _SPARK_SEED)
    for number in numbers:
        hashed = _xxhash64(number.view(np.uint64), hashed)
    return np.bitwise_xor.reduceat(hashed, starts).view(np.int64) if len(starts) else hashed.view(np.int64)


def _xxhash64(number: Any, seed: Any) -> Any:
    """XXH64 of an int64, as Spark's `xxhash64`, which hashes a column with the hash of the columns before it as the
    seed."""
    hashed = seed + _PRIME_5 + np.uint64(8)
    hashed ^= _rotated(number * _PRIME_2, 31) * _PRIME_1
    hashed = _rotated(hashed, 27) * _PRIME_1 + _PRIME_4
    hashed ^= hashed >> np.uint64(33)
    hashed *= _PRIME_2
    hashed ^= hashed >> np.uint64(29)
    hashed *= _PRIME_3
    hashed ^= hashed >> np.uint64(32)
    return hashed


def _rotated(number: Any, bits: int) -> Any:
    return (number << np.uint64(bits)) | (number >> np.uint64(64 - bits))


# ---- Rows of batches


#: Columns of words -> the words, by their numbers in Kafka.
_WORDS: Final = {
    "compression_type": pa.array([codec.name.lower() for codec in CompressionType]),
    "timestamp_type": pa.array([timestamp_type.name for timestamp_type in TimestampType]),
    "control_type": pa.array([control_type.name for control_type in ControlType]),
}
#: Columns of runs that message sets of v0 and v1 do not have.
_OF_V2: Final = ("records_count", "max_timestamp_ms", "crc")
_TIMES: Final = ("max_timestamp_ms", "first_timestamp_ms")


def record_batches(cells: Mapping[str, Any], count: int) -> pa.RecordBatch:
    """Rows of `record_batches`, each a single batch if `cells` has no columns of runs. Without `part`, which
    `table_readers` knows.

    `cells`: column -> an Arrow array, or numbers as Kafka has them, of which any below 0 is null (for times, only -1).
    """
    base_offset, newest = cells["base_offset"], cells["max_timestamp_ms"]
    single = {"batches_count": np.ones(count, np.int32), "last_batch_offset": base_offset, "first_timestamp_ms": newest}
    single |= {
        name: pa.nulls(count, arrow_schemas.RECORD_BATCHES.field(name).type)
        for name in ("batches_hash", "run_batches", "part")
    }
    cells = single | dict(cells)
    columns = [_column(field, cells[field.name]) for field in arrow_schemas.RECORD_BATCHES]
    return pa.RecordBatch.from_arrays(columns, schema=arrow_schemas.RECORD_BATCHES)


def _column(field: pa.Field, values: Any) -> pa.Array:
    if isinstance(values, pa.Array):
        return values
    if pa.types.is_boolean(field.type):
        return pa.array(values != 0)
    if field.name in _TIMES:
        native = values.astype(np.int64)
        return pa.array(native, mask=native == NO_TIMESTAMP)
    words = _WORDS.get(field.name)
    native = values.astype(np.int32 if words is not None else field.type.to_pandas_dtype())
    is_null = native < 0
    numbers = pa.array(native, mask=is_null) if is_null.any() else pa.array(native)
    return numbers if words is None else words.take(numbers)


def offset_gaps(block: Block) -> Any:
    """Number of offsets missing before each batch; 0 for the first of a file."""
    base = block.headers["base_offset"].astype(np.int64)
    before = np.empty_like(base)
    before[1:] = block.last_offsets[:-1]
    before[0] = base[0] - 1 if block.previous_last_offset is None else block.previous_last_offset
    return base - before - 1


def batch_rows(segment: Mapping[str, Any], buffer: Buffer, size: int, block: Block) -> pa.RecordBatch:
    """The rows of a block. `segment`: the columns that are the same in all of its rows; `size`: of the segment, in
    bytes."""
    gaps = offset_gaps(block)
    runs = find_runs(block, gaps)
    if runs is None:
        return _rows(segment, buffer, size, block, gaps, block.last_offsets, {})
    first, last, cells = runs
    firsts = Block(block.positions[first], block.headers[first], block.previous_last_offset)
    return _rows(segment, buffer, size, firsts, gaps[first], block.last_offsets[last], cells)


def _rows(
    segment: Mapping[str, Any],
    buffer: Buffer,
    size: int,
    firsts: Block,
    gaps: Any,
    last_offsets: Any,
    of_runs: dict[str, Any],
) -> pa.RecordBatch:
    """Rows that begin with the batches `firsts` and end at `last_offsets`. The first row begins with the first batch of
    its block.

    Almost all fields are the same in all batches of a run.
    """
    headers, count = firsts.headers, len(firsts.headers)
    is_v2 = headers["magic"] == 2
    is_all_v2 = is_v2.all()

    def of_v2(values: Any) -> Any:
        return values if is_all_v2 else np.where(is_v2, values, -1)

    attributes = headers["attributes"].astype(np.int32)
    control_types, coordinator_epochs = read_markers(buffer, size, firsts)
    base_offset = headers["base_offset"].astype(np.int64)
    base_sequence = of_v2(headers["base_sequence"]).astype(np.int64)
    has_horizon = is_v2 & (attributes & DELETE_HORIZON_FLAG != 0)
    if firsts.previous_last_offset is None:
        gaps[0] = -1
    cells = {
        name: pa.repeat(pa.scalar(value, arrow_schemas.RECORD_BATCHES.field(name).type), count)
        for name, value in segment.items()
    }
    cells |= {name: of_v2(headers[name]) for name in ("producer_id", "producer_epoch", "partition_leader_epoch")}
    cells |= {
        "position": firsts.positions,
        "size": headers["batch_length"] + LOG_OVERHEAD,
        "base_offset": base_offset,
        "last_offset": last_offsets,
        "offset_gap": gaps,
        "records_count": of_v2(headers["records_count"]),
        "base_sequence": base_sequence,
        "last_sequence": np.where(
            base_sequence >= 0, (base_sequence + (last_offsets - base_offset)) & MAX_SEQUENCE, -1
        ),
        "is_transactional": is_v2 & (attributes & TRANSACTIONAL_FLAG != 0),
        "is_control": is_v2 & (attributes & CONTROL_FLAG != 0),
        "control_type": control_types,
        "coordinator_epoch": coordinator_epochs,
        "timestamp_type": of_v2((attributes & TIMESTAMP_TYPE_FLAG) >> 3),
        "max_timestamp_ms": of_v2(headers["max_timestamp"]),
        "delete_horizon_ms": np.where(has_horizon, headers["base_timestamp"], -1),
        "compression_type": of_v2(attributes & COMPRESSION_MASK),
        "magic": headers["magic"],
        "crc": of_v2(headers["crc"].astype(np.int64)),
    }
    cells["first_timestamp_ms"] = cells["max_timestamp_ms"]
    cells |= {name: of_v2(values) if name in _OF_V2 else values for name, values in of_runs.items()}
    return record_batches(cells, count)
