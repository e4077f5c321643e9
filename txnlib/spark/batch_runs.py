"""Rows of `record_batches` that are runs of batches: what they say of all their batches, and the single batches in them.

A consumer sums up runs, and takes single batches out of those few runs that an offset it looks for divides. Rows of tables without
runs (text, `--detail batches`) have one batch each.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.core.batch_runs import PACKED, PackedBatch
from txnlib.core.kafka.constants import MAX_SEQUENCE

#: Bytes of each field of a packed batch, in order.
_WIDTHS: Final = {"offset": 2, "offset_delta": 2, "sequence": 2, "position": 4, "size": 4, "timestamp": 4, "crc": 4}
assert tuple(_WIDTHS) == PackedBatch._fields
assert sum(_WIDTHS.values()) == PACKED.size
#: Fields that may be negative.
_SIGNED: Final = frozenset({"timestamp"})


def batches_count() -> Column:
    """Number of batches in a row."""
    return F.coalesce("batches_count", F.lit(1))


def last_batch_offset() -> Column:
    """Base offset of the last batch in a row."""
    return F.coalesce("last_batch_offset", "base_offset")


def first_timestamp_ms() -> Column:
    """Timestamp of the first batch in a row."""
    return F.when(batches_count() > 1, F.col("first_timestamp_ms")).otherwise(F.col("max_timestamp_ms"))


def packed(field: str, index: Column | int) -> Column:
    """A field of a batch of a run, as LONG: see `PackedBatch`. The first batch has the index 0."""
    names = list(_WIDTHS)
    begin = sum(_WIDTHS[name] for name in names[: names.index(field)])
    position = (F.lit(index) if isinstance(index, int) else index) * PACKED.size + (begin + 1)
    number = F.conv(F.hex(F.substring("packed_batches", position, F.lit(_WIDTHS[field]))), 16, 10).cast("long")
    bits = 8 * _WIDTHS[field]
    return F.when(number >= 1 << (bits - 1), number - (1 << bits)).otherwise(number) if field in _SIGNED else number


def is_divided_at(offset: Column) -> Column:
    """Whether some batches of a row may lie before an offset, and others at or after it; NULL for a NULL offset."""
    return (batches_count() > 1) & (F.col("base_offset") < offset) & (offset <= F.col("last_offset"))


def single_batches(rows: DataFrame, where: Column) -> DataFrame:
    """The rows, with the single batches of those runs for which `where` is true. Columns: those of `rows`.

    `rows` are rows of `record_batches`, with other columns at will; of its own columns, those that are needed.
    """
    is_divided = F.coalesce((batches_count() > 1) & where, F.lit(False))
    last = F.when(is_divided, batches_count() - 1).otherwise(F.lit(0))
    # Without an index, a row stays as it is. The reader makes no run of more batches than it reads at a time.
    indexes = F.when(is_divided, F.sequence(F.lit(0), last)).otherwise(F.array(F.lit(None).cast("int")))
    return batch_at(rows.withColumn("_index", F.explode(indexes)), F.col("_index")).drop("_index")


def batch_at(rows: DataFrame, index: Column) -> DataFrame:
    """The rows, each run reduced to its batch at an index, unless that is NULL. Columns: those of `rows`."""
    is_of_run = (batches_count() > 1) & index.isNotNull()
    own = {name: F.when(is_of_run, value).otherwise(F.col(name)) for name, value in _columns(index).items()}
    return rows.select(*[own[name].alias(name) if name in own else F.col(name) for name in rows.columns])


def _columns(index: Column) -> dict[str, Column]:
    """The columns in which one batch of a run differs from the row: `core.batch_runs.single_batches` over columns."""
    base, delta = F.col("base_offset") + packed("offset", index), packed("offset_delta", index)
    sequence = (F.col("base_sequence").cast("long") + packed("sequence", index)).bitwiseAND(MAX_SEQUENCE)
    timestamp_ms = F.col("first_timestamp_ms") + packed("timestamp", index)
    return {
        "position": F.col("position") + packed("position", index),
        "size": packed("size", index).cast("int"),
        "base_offset": base,
        "last_offset": base + delta,
        "offset_gap": F.when(index == 0, F.col("offset_gap")).otherwise(F.lit(0).cast("long")),
        "records_count": (delta + 1).cast("int"),
        "base_sequence": sequence.cast("int"),
        "last_sequence": (sequence + delta).bitwiseAND(MAX_SEQUENCE).cast("int"),
        "max_timestamp_ms": timestamp_ms,
        "crc": packed("crc", index),
        "batches_count": F.lit(1),
        "last_batch_offset": base,
        "first_timestamp_ms": timestamp_ms,
        "batches_hash": F.lit(None).cast("long"),
        "packed_batches": F.lit(None).cast("binary"),
    }


def batch_hash() -> Column:
    """Hash of the fields of a row by which copies are compared; of a run, the XOR of the hashes of its batches.

    `readers.batch_rows` computes the same for runs. Offsets and sequences of a run follow from those of its batches, so two copies
    with the same XOR have the same batches.
    """
    delta = F.col("last_offset") - F.col("base_offset")
    flags = F.when(F.col("is_transactional"), 2).otherwise(0) + F.when(F.col("is_control"), 1).otherwise(0)
    leader_epoch, epoch = (
        F.coalesce(F.col(name).cast("long"), F.lit(-1)) + 1 for name in ("partition_leader_epoch", "producer_epoch")
    )
    of_batch = F.xxhash64(
        F.coalesce("producer_id", F.lit(-1).cast("long")),
        F.shiftleft(leader_epoch, 18) + F.shiftleft(epoch, 2) + flags,
        F.col("base_offset"),
        F.shiftleft(delta, 32) + F.coalesce(F.col("base_sequence").cast("long") + 1, F.lit(0).cast("long")),
        # Data has none, and NULL changes no hash.
        F.col("control_type"),
    )
    return F.when(batches_count() > 1, F.col("batches_hash")).otherwise(of_batch)
