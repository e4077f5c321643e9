"""Instants from epoch milliseconds, as SQL. The only module that creates them, because a log may contain any int64.

A time that no clock shows (`core.instants`) is NULL here; raw columns (`*_ms`) keep it. All instants, and the
milliseconds read back from them, are small enough to add and subtract.
"""

from __future__ import annotations

from txnlib.core.instants import FIRST_MS, LAST_MS, NO_INSTANT_MS


def is_shown(ms: str) -> str:
    """Whether a time is one that a clock can show; NULL for NULL."""
    return f"({ms} BETWEEN {FIRST_MS} AND {LAST_MS})"


def clock_ms(ms: str) -> str:
    """`core.instants.clock_ms`: NULL for a time that no clock shows."""
    return f"CASE WHEN {is_shown(ms)} THEN {ms} END"


def latest_ms(ms: str) -> str:
    """`core.instants.latest_ms`: a time that no clock shows becomes later than any other."""
    return f"CASE WHEN NOT {is_shown(ms)} THEN {NO_INSTANT_MS} ELSE {ms} END"


def instant(ms: str) -> str:
    """A time in epoch ms as TIMESTAMP; NULL for one that no clock shows."""
    return f"timestamp_millis({clock_ms(ms)})"
