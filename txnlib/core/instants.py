"""Instants: which times a clock can show, and which one an option names.

The time of a batch is its client's to choose (CreateTime), and brokers before 4.0 take any: nanoseconds, microseconds, the greatest
number there is. Kafka itself writes -1, and 0 from old clients, for none.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from txnlib.errors import UsageError

#: Instants to judge at lie from 1970 up to the year 9998, so that whatever is added to one is still a date.
LAST_INSTANT_MS: Final = 253_370_764_799_999
_EPOCH_MS: Final = re.compile("-?[0-9]+")
#: Of what somebody gave, so much is repeated.
_SHOWN: Final = 40
#: The times that a clock shows, in epoch ms: after the beginning of 1970, up to the end of the year 9999, where calendars end.
FIRST_MS: Final = 1
LAST_MS: Final = 253_402_300_799_999
#: Later than any of them: of an end whose time nothing bounds.
NO_INSTANT_MS: Final = 1 << 62


def long_difference(left_ms: int, right_ms: int) -> int:
    """`left_ms - right_ms` as Java's `long` has it, which Kafka compares: beyond int64 it wraps around."""
    return (left_ms - right_ms + (1 << 63)) % (1 << 64) - (1 << 63)


def clock_ms(ms: int | None) -> int | None:
    """A time in epoch ms; None where there is none, or one that no clock shows: nothing can be said by it."""
    return ms if ms is not None and FIRST_MS <= ms <= LAST_MS else None


def latest_ms(ms: int | None) -> int | None:
    """When something happened at the latest, in epoch ms: where no clock shows its time, later than any; None where there is none.

    For what speaks against a verdict: that it was written long ago is not known.
    """
    return NO_INSTANT_MS if ms is not None and clock_ms(ms) is None else ms


def parse_instant(given: str) -> int:
    """Epoch milliseconds of an instant: digits are epoch ms, anything else ISO-8601, UTC unless it says otherwise.

    Raises UsageError for anything else, and for an instant before 1970 or after the year 9998.
    """
    try:
        instant_ms = _epoch_ms(given)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"--as-of {given[:_SHOWN]}: expected ISO-8601 such as 2026-11-21T07:46:12Z, or epoch ms") from error
    if not 0 <= instant_ms <= LAST_INSTANT_MS:
        raise UsageError(f"--as-of {given[:_SHOWN]}: expected an instant from 1970 up to the year 9998")
    return instant_ms


def _epoch_ms(given: str) -> int:
    if _EPOCH_MS.fullmatch(given):
        return int(given)
    instant = datetime.fromisoformat(given)
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=UTC)
    return round(instant.timestamp() * 1000)
