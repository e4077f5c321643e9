"""Rows of `record_batches` that are runs of batches: what they say of all their batches, and the single batches in
them.

A consumer sums up runs, and takes single batches out of those few runs that an offset it looks for divides. Rows of
text have one batch each.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.kafka.constants import MAX_SEQUENCE
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


def single_batches(rows: DataFrame, where: str) -> DataFrame:
    """The rows, with the single batches of those runs for which `where` is true. Columns: those of `rows`.

    `rows` are rows of `record_batches`, with other columns at will; of its own columns, those that are needed.
    """
    # Without an index, a row stays as it is. The reader makes no run of more batches than it reads at a time.
    indexes = f"if({BATCHES} > 1 AND coalesce({where}, FALSE), sequence(0, {BATCHES} - 1), array(CAST(NULL AS INT)))"
    return batch_at(rows.withColumn("_index", F.expr(f"explode({indexes})")), "_index").drop("_index")


def batch_at(rows: DataFrame, index: str) -> DataFrame:
    """The rows, each run reduced to its batch at an index, unless that is NULL. Columns: those of `rows`."""
    is_of_run, own = f"{BATCHES} > 1 AND {index} IS NOT NULL", _columns(index)
    return rows.selectExpr(
        *[f"if({is_of_run}, {own[name]}, {name}) AS {name}" if name in own else f"`{name}`" for name in rows.columns]
    )


def _columns(index: str) -> dict[str, str]:
    """The columns in which one batch of a run differs from the row: `core.batch_runs.single_batches` in SQL."""
    base, delta = f"base_offset + {of_run('offset', index)}", of_run("offset_delta", index)
    sequence = f"(base_sequence + {of_run('sequence', index)} & {MAX_SEQUENCE})"
    timestamp_ms = f"first_timestamp_ms + {of_run('timestamp', index)}"
    return {
        "position": f"position + {of_run('position', index)}",
        "size": f"CAST({of_run('size', index)} AS INT)",
        "base_offset": base,
        "last_offset": f"{base} + {delta}",
        "offset_gap": f"if({index} = 0, offset_gap, 0L)",
        "records_count": f"CAST({delta} + 1 AS INT)",
        "base_sequence": f"CAST({sequence} AS INT)",
        "last_sequence": f"CAST({sequence} + {delta} & {MAX_SEQUENCE} AS INT)",
        "max_timestamp_ms": timestamp_ms,
        "crc": of_run("crc", index),
        "batches_count": "1",
        "last_batch_offset": base,
        "first_timestamp_ms": timestamp_ms,
        "batches_hash": "CAST(NULL AS BIGINT)",
        "run_batches": f"CAST(NULL AS {RUN_BATCHES})",
    }
