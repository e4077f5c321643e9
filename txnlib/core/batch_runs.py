"""Runs of batches, each one row of `record_batches`, and their single batches.

A run loses nothing. The headers of its batches differ in a few numbers only: the row has those of the first or of the
last batch, and `run_batches` has those of all. So whatever needs a single batch takes it out of the run again
(docs/decisions/0016-a-row-is-a-run-of-batches.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from txnlib.core.kafka.constants import MAX_SEQUENCE

#: A run does not cross a multiple of this number of offsets. So runs end at the same offsets in every copy of a
#: partition, and few rows cover any one offset.
RUN_OFFSETS: Final = 1 << 16


class RunBatch(NamedTuple):
    """The numbers of one batch in `run_batches`. Relative ones are relative to those of the first batch."""

    #: Base offset, relative.
    offset: int
    #: Last offset minus base offset.
    offset_delta: int
    #: Base sequence, relative.
    sequence: int
    #: Byte position, relative.
    position: int
    size: int
    #: Largest timestamp, relative.
    timestamp: int
    crc: int


def single_batches(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The batches of a row of `record_batches`, in order, each with the columns of the row.

    The row has `run_batches` and the columns to which its numbers are relative.
    """
    if row.get("run_batches") is None:
        yield dict(row)
        return
    for index, numbers in enumerate(row["run_batches"]):
        own = _columns(row, RunBatch(**numbers), is_first=index == 0)
        yield {**row, **{name: value for name, value in own.items() if name in row}}


def _columns(row: Mapping[str, Any], batch: RunBatch, *, is_first: bool) -> dict[str, Any]:
    """The columns in which one batch of a run differs from the row."""
    base, sequence = row["base_offset"] + batch.offset, row.get("base_sequence")
    first_sequence = None if sequence is None else (sequence + batch.sequence) & MAX_SEQUENCE
    timestamp_ms = row.get("first_timestamp_ms", 0) + batch.timestamp
    return {
        "position": row.get("position", 0) + batch.position,
        "size": batch.size,
        "base_offset": base,
        "last_offset": base + batch.offset_delta,
        "offset_gap": row.get("offset_gap") if is_first else 0,
        "records_count": batch.offset_delta + 1,
        "base_sequence": first_sequence,
        "last_sequence": None if first_sequence is None else (first_sequence + batch.offset_delta) & MAX_SEQUENCE,
        "max_timestamp_ms": timestamp_ms,
        "crc": batch.crc,
        "batches_count": 1,
        "last_batch_offset": base,
        "first_timestamp_ms": timestamp_ms,
        "batches_hash": None,
        "run_batches": None,
    }


# ---- The same, as SQL

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


_BASE: Final = "base_offset + _batch.offset"
_SEQUENCE: Final = f"(base_sequence + _batch.sequence & {MAX_SEQUENCE})"
#: The columns in which one batch of a run, `_batch`, differs from the row.
OF_BATCH: Final = {
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


def single_batches_of(rows: str, where: str, columns: Iterable[str]) -> str:
    """A query for columns of rows of `record_batches`, with the single batches of those runs for which `where` is true.

    `rows`: a query in parentheses. A row is repeated for each batch, so it no longer has all of them.
    """
    own = OF_BATCH | {"run_batches": "NULL"}
    values = [f"if(_batch IS NULL, {name}, {own[name]}) AS {name}" if name in own else name for name in columns]
    return f"""
    SELECT {", ".join(values)}
    FROM (
      SELECT *, explode_outer(_batches) AS _batch
      FROM (SELECT *, if({BATCHES} > 1 AND coalesce({where}, FALSE), run_batches, NULL) AS _batches FROM {rows})
    )
    """
