"""Single batches from `record_batches`, whose rows may be runs of batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from txnlib.core.batch_runs import single_batches
from txnlib.queries.rows import Filter, Row, StoredRun

#: Number of batches in the rows.
COUNT: Final = 'sum(coalesce("batches_count", 1))'
#: Columns without which the batches of a run are not known.
_OF_RUNS: Final = ("base_offset", "last_offset", "offset_gap", "base_sequence", "position", "first_timestamp_ms", "packed_batches")


def first_batches(run: StoredRun, columns: Sequence[str], where: Sequence[Filter], since: int, limit: int) -> list[Row]:
    """The first batches of one producer at or after an offset, by offset."""
    rows = _rows(run, columns, [*where, ("last_offset", ">=", since)], order='"base_offset"', limit=limit + 1)
    return [batch for batch in _singles(columns, rows) if batch["base_offset"] >= since][:limit]


def last_batches(run: StoredRun, columns: Sequence[str], where: Sequence[Filter], before: int, limit: int) -> list[Row]:
    """The last batches of one producer before an offset, by offset."""
    rows = _rows(run, columns, [*where, ("base_offset", "<", before)], order='"base_offset" DESC', limit=limit + 1)
    return [batch for batch in _singles(columns, rows[::-1]) if batch["base_offset"] < before][-limit:]


def batches_between(run: StoredRun, columns: Sequence[str], where: Sequence[Filter], first: int, last: int) -> list[Row]:
    """The batches that begin between two offsets, both included, by offset."""
    rows = _rows(run, columns, [*where, ("last_offset", ">=", first), ("base_offset", "<=", last)])
    found = [batch for batch in _singles(columns, rows) if first <= batch["base_offset"] <= last]
    return sorted(found, key=lambda batch: batch["base_offset"])


def _rows(
    run: StoredRun, columns: Sequence[str], where: Sequence[Filter], *, order: str = "", limit: int | None = None
) -> list[Row]:
    wanted = [*columns, *(name for name in _OF_RUNS if name not in columns)]
    return run.rows("record_batches", wanted, where, order=order, limit=limit)


def _singles(columns: Sequence[str], rows: Sequence[Row]) -> Iterator[Row]:
    for row in rows:
        for batch in single_batches(row):
            yield {name: batch[name] for name in columns}
