"""Instants from epoch milliseconds. The only module that creates them, because a log may contain any int64.

A time that no clock shows (`core.instants`) is NULL here; raw columns (`*_ms`) keep it. All instants, and the milliseconds read
back from them, are small enough to add and subtract.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from txnlib.core.instants import FIRST_MS, LAST_MS, NO_INSTANT_MS


def _column(ms: Column | str) -> Column:
    return F.col(ms) if isinstance(ms, str) else ms


def is_shown(ms: Column | str) -> Column:
    """Whether a time is one that a clock can show; NULL for NULL."""
    return _column(ms).between(FIRST_MS, LAST_MS)


def clock_ms(ms: Column | str) -> Column:
    """`core.instants.clock_ms` over a column: NULL for a time that no clock shows."""
    return F.when(is_shown(ms), _column(ms))


def clock_ms_sql(ms: str) -> str:
    """`clock_ms` as SQL."""
    return f"CASE WHEN {ms} BETWEEN {FIRST_MS} AND {LAST_MS} THEN {ms} END"


def latest_ms_sql(ms: str) -> str:
    """`core.instants.latest_ms` as SQL: a time that no clock shows becomes later than any other."""
    return f"CASE WHEN NOT ({ms} BETWEEN {FIRST_MS} AND {LAST_MS}) THEN {NO_INSTANT_MS} ELSE {ms} END"


def instant_sql(ms: str) -> str:
    """`instant` as SQL."""
    return f"timestamp_millis({clock_ms_sql(ms)})"


def instant(ms: Column | str) -> Column:
    """A time in epoch ms as TIMESTAMP; NULL for one that no clock shows."""
    return F.timestamp_millis(clock_ms(ms))
