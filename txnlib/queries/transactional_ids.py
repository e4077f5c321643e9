"""Transactional ids as their coordinators have them: all that pass a filter, or one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.kafka.wire import on_disk
from txnlib.errors import UsageError
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


def runs_longer(start_ms: int | None, now_ms: int, filter_ms: int | None) -> bool:
    """Whether a transaction has been running for longer (KIP-994). True if the limit is negative or not given.

    The broker uses -1 as the start of an id without a transaction, so an id in Empty passes. It ignores the state, so an id whose
    transaction has ended passes by the start of that transaction.
    """
    if filter_ms is None or filter_ms < 0:
        return True
    return now_ms - on_disk(start_ms) > filter_ms


def matches_whole(pattern: str | None, names: Sequence[str]) -> list[bool]:
    """Whether an RE2 expression matches each name from beginning to end (KIP-1152); an empty one matches all.

    Brokers use RE2J, the same language in Java: no look-around, no backreferences, linear time. Python's `re` allows both, and
    interprets some expressions differently. Raises UsageError for an invalid expression.
    """
    if not pattern:
        return [True] * len(names)
    import re2

    quiet = re2.Options()
    quiet.log_errors = False  # otherwise it also prints them
    try:
        expression = re2.compile(pattern, quiet)
    except re2.error as error:
        raise UsageError(f"--transactional-id-pattern {pattern}: {error.args[0].decode(errors='replace')[:200]}") from error
    return [expression.fullmatch(name) is not None for name in names]
