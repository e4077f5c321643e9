"""The producers of a partition, as a broker remembers them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from txnlib.errors import UsageError
from txnlib.queries.rows import Row, StoredRun, ms

_COLUMNS: Final = (
    "producer_id",
    "producer_epoch",
    "coordinator_epoch",
    "last_sequence",
    "last_timestamp",
    "last_timestamp_ms",
    "current_transaction_start_offset",
)


@dataclass(frozen=True, slots=True)
class Producers:
    """Rows of producer_states of one partition, by producer id."""

    rows: Sequence[Row]
    #: Producer id -> offset of its first batch, for Kafka's order: its hash tables keep this order within a bucket.
    first_offsets: Mapping[int, int]


def producers_of(run: StoredRun, topic: str, partition: int, *, with_order: bool = False) -> Producers:
    """The producers of a partition; `with_order`: also what decides Kafka's order. Raises UsageError if no copy of it was read."""
    here = [("topic", "=", topic), ("partition", "=", partition)]
    rows = run.rows("producer_states", _COLUMNS, here)
    if not rows and not run.number("coverage", "count(*)", [*here, ("status", "<>", "MISSING")]):
        raise UsageError(f"no copy of {topic}-{partition} was audited in this run")
    for row in rows:
        row["last_timestamp_ms"] = last_write_ms(row)
    first_offsets = run.grouped("record_batches", ("producer_id",), 'min("base_offset")', here) if with_order else {}
    by_id = sorted(rows, key=lambda row: int(row["producer_id"]))
    return Producers(by_id, {key[0]: offset for key, offset in first_offsets.items()})


def last_write_ms(row: Row) -> int | None:
    """The time of the last write as in the log. Tables of older versions contain only valid times."""
    logged_ms: int | None = row["last_timestamp_ms"]
    return ms(row["last_timestamp"]) if logged_ms is None else logged_ms
