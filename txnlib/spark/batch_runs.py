"""Rows of `record_batches` that are runs of batches: what they say of all their batches, and the single batches in
them.

A consumer sums up runs, and takes single batches out of those few runs that an offset it looks for divides. Rows of
text have one batch each.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.kafka.constants import MAX_SEQUENCE
from txnlib.spark.joins import with_columns
from txnlib.spark.schemas import TABLES

#: The type of the batches of a run, as SQL.
RUN_BATCHES: Final = TABLES["record_batches"]["run_batches"].dataType.simpleString()

#: The number of batches in a row, the base offset of its last one, and the timestamp of its first one. SQL.
BATCHES: Final = "coalesce(batches_count, 1)"
LAST_BATCH_OFFSET: Final = "coalesce(last_batch_offset, base_offset)"
FIRST_TIMESTAMP_MS: Final = f"CASE WHEN {BATCHES} > 1 THEN first_timestamp_ms ELSE max_timestamp_ms END"

_LEADER_EPOCH, _EPOCH = (
    f"coalesce(CAST({name} AS BIGINT), -1) + 1" for name in ("partition_leader_epoch", "producer_epoch")
)
#: Hash of the fields of a row by which copies are compared; of a run, the XOR of the hashes of its batches. SQL.
#: `readers.batch_rows` computes the same for runs. Offsets and sequences of a run follow from those of its batches, so
#: two copies with the same XOR have the same batches. Data has no control type, and NULL changes no hash.
BATCH_HASH: Final = f"""CASE WHEN {BATCHES} > 1 THEN batches_hash ELSE xxhash64(
  coalesce(producer_id, -1L),
  shiftleft({_LEADER_EPOCH}, 18) + shiftleft({_EPOCH}, 2) + if(is_transactional, 2, 0) + if(is_control, 1, 0),
  base_offset,
  shiftleft(last_offset - base_offset, 32) + coalesce(CAST(base_sequence AS BIGINT) + 1, 0),
  control_type
) END"""


def of_run(field: str, index: str | int) -> str:
    """A field of a batch of a run, in SQL: see `core.batch_runs.RunBatch`. The first batch has the index 0."""
    return f"get(run_batches, {index}).{field}"


def is_divided_at(offset: str) -> str:
    """Whether some batches of a row may lie before an offset, and others at or after it; NULL for a NULL offset.
    SQL."""
    return f"({BATCHES} > 1 AND base_offset < {offset} AND {offset} <= last_offset)"


def single_batches(rows: DataFrame, where: str, *, has: Collection[str] = TABLES["record_batches"].names) -> DataFrame:
    """The rows, with the single batches of those runs for which `where` is true. Columns: those of `rows`.

    `rows` are rows of `record_batches`, with other columns at will. `has`: the columns of that table that they have.
    """
    return _divided(rows, f"if(coalesce({where}, FALSE), run_batches, NULL)", has)


def end_batches(rows: DataFrame) -> DataFrame:
    """The rows, with the first and the last batch of each run. Columns: those of `rows`, which has all of
    `record_batches`."""
    return _divided(
        rows, f"array(get(run_batches, 0), get(run_batches, {BATCHES} - 1))", TABLES["record_batches"].names
    )


def _divided(rows: DataFrame, batches: str, has: Collection[str]) -> DataFrame:
    """The rows, with some batches in place of their runs. `batches`: these, as SQL; NULL leaves a run as it is.

    A row is repeated for each batch, so it must no longer have all of them.
    """
    own = rows.withColumn("_batches", F.expr(f"if({BATCHES} > 1, {batches}, NULL)"))
    rest = own.withColumn("run_batches", F.expr("if(_batches IS NULL, run_batches, NULL)"))
    each = rest.withColumn("_batch", F.expr("explode_outer(_batches)"))
    values = {name: f"if(_batch IS NULL, {name}, {value})" for name, value in _OF_BATCH.items() if name in has}
    return with_columns(each, values).drop("_batches", "_batch")


_BASE: Final = "base_offset + _batch.offset"
_SEQUENCE: Final = f"(base_sequence + _batch.sequence & {MAX_SEQUENCE})"
#: The columns in which one batch of a run differs from the row: `core.batch_runs.single_batches` in SQL.
_OF_BATCH: Final = {
    "position": "position + _batch.position",
    "size": "CAST(_batch.size AS INT)",
    "base_offset": _BASE,
    "last_offset": f"{_BASE} + _batch.offset_delta",
    "offset_gap": "if(_batch.offset = 0, offset_gap, 0L)",
    "records_count": "CAST(_batch.offset_delta + 1 AS INT)",
    "base_sequence": f"CAST({_SEQUENCE} AS INT)",
    "last_sequence": f"CAST({_SEQUENCE} + _batch.offset_delta & {MAX_SEQUENCE} AS INT)",
    "max_timestamp_ms": "first_timestamp_ms + _batch.timestamp",
    "crc": "_batch.crc",
    "batches_count": "1",
    "last_batch_offset": _BASE,
    "first_timestamp_ms": "first_timestamp_ms + _batch.timestamp",
    "batches_hash": "CAST(NULL AS BIGINT)",
}
