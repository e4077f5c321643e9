"""The instant of an audit that nobody gave: by notes, by brokers, or one on which nothing depends."""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.instants import BY_CLIENTS, BY_NOBODY
from txnlib.errors import UnreadableInputError
from txnlib.spark.capture_source import CaptureSource
from txnlib.spark.instants import clock_ms

BY_NOTES: Final = "newest capture instant"
BY_BROKERS: Final = "newest broker-stamped time in the capture (no capture.json)"


def instant_of(source: CaptureSource, now_ms: int) -> tuple[int, str]:
    """The instant in epoch ms, and where it is from.

    A client's time after `now_ms` counts as that: its clock is wrong. Without any time, the instant is 0. Raises
    UnreadableInputError if something may be open, and no broker says when.
    """
    noted = source.capture.notes.newest_instant_ms
    if noted is not None:
        return noted, BY_NOTES
    stamped = _newest(source.read("segments"), "newest_broker_ms")
    if stamped is not None:
        return stamped, BY_BROKERS
    found = what_may_be_open(source)
    if found is not None:
        raise UnreadableInputError(
            ", ".join(source.capture.inputs),
            f"has {found}, and contains no time at which it was taken",
            "Give --captured-at, or add a capture.json",
        )
    written = _newest(source.read("record_batches"), "max_timestamp_ms")
    return (0, BY_NOBODY) if written is None else (min(written, now_ms), BY_CLIENTS)


def what_may_be_open(source: CaptureSource) -> str | None:
    """What in a capture may be, or belong to, an open transaction, in words; None if nothing may."""
    for table, condition, says in (
        ("record_batches", "coalesce(is_transactional, magic IS NULL OR magic > 1)", "transactional batches"),
        ("producer_snapshots", "current_txn_first_offset IS NOT NULL", "open transactions in producer snapshots"),
        ("live_producers", "current_transaction_start_offset IS NOT NULL", "open transactions by brokers' answers"),
        ("transaction_log", "TRUE", "coordinators' records"),
        ("console_log", "TRUE", "coordinators' records"),
        ("live_transactions", "TRUE", "transactions by brokers' answers"),
    ):
        if source.may_have(table) and not source.read(table).where(condition).isEmpty():
            return says
    return None


def _newest(rows: DataFrame, column: str) -> int | None:
    """The newest instant in a column of epoch ms; None if there is none."""
    found: Any = rows.agg(F.max(F.expr(clock_ms(column))).alias("newest")).first()
    return None if found is None or found["newest"] is None else int(found["newest"])
