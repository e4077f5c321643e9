"""Transactional ids as their coordinators have them: all that pass a filter, or one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.errors import UsageError
from txnlib.queries.kafka_filters import matches_whole, runs_longer
from txnlib.queries.rows import Filter, Row, StoredRun, ms

_COLUMNS: Final = (
    "transactional_id",
    "coordinator_partition",
    "producer_id",
    "producer_epoch",
    "state",
    "transaction_timeout_ms",
    "transaction_start",
    "partitions",
)


@dataclass(frozen=True, slots=True)
class TransactionalIds:
    """Rows of transactional_ids that pass the filters, each with its `coordinator` and `transaction_start_ms`."""

    rows: Sequence[Row]
    #: Number of these that pass a filter by duration only because their start is unknown, as on a broker.
    without_start: int
    #: Transactional id -> offset of its first record, for Kafka's order: its hash tables keep this order within a bucket.
    first_offsets: Mapping[str, int]


def transactional_ids(
    run: StoredRun, *, longer_than_ms: int | None = None, pattern: str | None = None, with_order: bool = False
) -> TransactionalIds:
    """Every transactional id that has not expired and that passes the filters; `with_order`: also what decides Kafka's order.

    Raises UsageError for an invalid expression.
    """
    rows = [row for row in rows_of_ids(run) if runs_longer(row["transaction_start_ms"], run.as_of_ms, longer_than_ms)]
    matching = matches_whole(pattern, [row["transactional_id"] for row in rows])
    rows = [row for row, is_match in zip(rows, matching, strict=True) if is_match]
    first_offsets = run.grouped("coordinator_states", ("transactional_id",), 'min("offset")') if with_order else {}
    return TransactionalIds(
        rows,
        sum(row["transaction_start_ms"] is None for row in rows) if longer_than_ms is not None and longer_than_ms > 0 else 0,
        {key[0]: offset for key, offset in first_offsets.items()},
    )


def transactional_id(run: StoredRun, name: str) -> Row:
    """One transactional id, with its duration up to the instant of the run. Raises UsageError if no coordinator has it."""
    rows = rows_of_ids(run, ("transactional_id", "=", name))
    if not rows:
        raise UsageError(f"no captured coordinator has the transactional id {name!r} (any more)")
    start_ms = rows[0]["transaction_start_ms"]
    return {**rows[0], "duration_ms": None if start_ms is None else run.as_of_ms - start_ms}


def rows_of_ids(run: StoredRun, *where: Filter) -> list[Row]:
    """Rows of transactional_ids that have not expired, each with its `coordinator` and `transaction_start_ms`."""
    order = '"coordinator_partition", "transactional_id"'
    rows = run.rows("transactional_ids", _COLUMNS, [("state", "IS NOT", None), *where], order=order)
    led = run.rows("coverage", ("partition", "broker"), [("topic", "=", TRANSACTION_STATE_TOPIC), ("is_leader", "=", True)])
    leaders = {row["partition"]: broker_id(row["broker"]) for row in led}
    for row in rows:
        row["coordinator"] = leaders.get(row["coordinator_partition"])
        row["transaction_start_ms"] = ms(row["transaction_start"])
        row["partitions"] = row["partitions"] or []
    return rows


def broker_id(broker: str | None) -> int | None:
    """The number of a broker; None if a capture names it otherwise."""
    return int(broker) if broker is not None and broker.isdecimal() else None
