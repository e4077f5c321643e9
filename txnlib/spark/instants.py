"""Instants from epoch milliseconds: the only place that makes them, since any int64 may stand in a log.

A time that no clock shows (`core.instants`) is NULL here; raw columns (`*_ms`) keep it. What is read back from an instant, and
what these give, is small enough to be added and subtracted.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from txnlib.core.instants import FIRST_MS, LAST_MS, NO_INSTANT_MS


def _column(ms: Column | str) -> Column:
    return F.col(ms) if isinstance(ms, str) else ms


def is_shown(ms: Column | str) -> Column:
    """Whether a time is one that a clock shows; NULL where there is none."""
    return _column(ms).between(FIRST_MS, LAST_MS)


def clock_ms(ms: Column | str) -> Column:
    """`core.instants.clock_ms` over a column: NULL for a time that no clock shows."""
    return F.when(is_shown(ms), _column(ms))


def latest_ms(ms: Column | str) -> Column:
    """`core.instants.latest_ms` over a column: later than any, for a time that no clock shows."""
    return F.when(~is_shown(ms), F.lit(NO_INSTANT_MS)).otherwise(_column(ms))


def instant(ms: Column | str) -> Column:
    """A time in epoch ms as TIMESTAMP; NULL for one that no clock shows."""
    return F.timestamp_millis(clock_ms(ms))
