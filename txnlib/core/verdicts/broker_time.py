"""Brokers' clocks around an open transaction: an interval for its age.

A record behind a broker's stamp is not older than the stamp, and one before a stamp not younger. A stamp that contradicts the order
of the log proves nothing. A stamp of a clock that is behind is corrected by how far it is.
Source: docs/rules/copies.md#age.
"""

from __future__ import annotations

from collections.abc import Iterable

from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS, UNKNOWN_CLOCKS_DIFFER_MS
from txnlib.core.verdicts.dossier import EpochStamps


def newest_ms(times: Iterable[int | None]) -> int | None:
    """The newest of some broker-stamped times, those that a clock can show; None if there is none."""
    return max((ms for ms in map(clock_ms, times) if ms is not None), default=None)


def latest_bound_ms(behind: Iterable[int | None], floor_ms: int | None, lag_ms: int | None) -> int | None:
    """The latest time at which something was written that stands before all of these stamps; None if they prove nothing.

    `floor_ms`: it was not written before. A stamp that is older proves nothing, unless clocks may differ that much. `lag_ms`: how
    far the clock is from its coordinators', negative if it is behind; nothing is corrected downwards.
    """
    bounds = [bound for ms in behind if (bound := _bound(clock_ms(ms), floor_ms, lag_ms)) is not None]
    return min(bounds, default=None)


def _bound(ms: int | None, floor_ms: int | None, lag_ms: int | None) -> int | None:
    if ms is None:
        return None
    if lag_ms is not None and lag_ms < -CLOCKS_DIFFER_MS:
        ms -= lag_ms
    if floor_ms is None:
        return ms
    return None if ms < floor_ms - UNKNOWN_CLOCKS_DIFFER_MS else max(ms, floor_ms)


def before_first_ms(stamps: Iterable[EpochStamps]) -> int | None:
    """The newest stamp before the first batch."""
    return newest_ms(each.before_ms for each in stamps)
