"""Runs of batches, each one row of `record_batches`, and their single batches.

A run loses nothing. The headers of its batches differ in a few numbers only: the row has those of the first or of the
last batch, and `run_batches` has those of all. So whatever needs a single batch takes it out of the run again
(docs/decisions/0016-a-row-is-a-run-of-batches.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
