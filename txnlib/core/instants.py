"""Instants: which times a clock can show, and which one an option names.

With CreateTime, the client chooses the time of a batch, and brokers before 4.0 accept any: nanoseconds, microseconds,
the largest int64. Kafka itself writes -1 for no time; old clients write 0.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Final

from txnlib.errors import UsageError

#: An audit can be as of any instant from 1970 to the year 9998, so that adding to it still gives a date.
LAST_INSTANT_MS: Final = 253_370_764_799_999
#: Where the instant of an audit comes from if no broker shows it and nobody gave it. Only an audit in which nothing can
#: be open does without.
BY_CLIENTS: Final = "newest time of a client in the capture, on which nothing depends, because nothing is open"
BY_NOBODY: Final = "beginning of 1970, because the capture contains no time, and nothing that is open"
_EPOCH_MS: Final = re.compile("-?[0-9]+")
#: Epoch seconds as `date +%s` prints them, from 2001 to the year 2286. As ms, these would be in the first months of
#: 1970.
_EPOCH_SECONDS: Final = re.compile("[0-9]{10}")
#: Most characters of a value that an error message repeats.
_SHOWN: Final = 40
#: A day without dashes. As ms, it would be in the first hours of 1970.
_DAY: Final = re.compile("20[0-9]{6}")
#: Valid times in epoch ms: after the beginning of 1970, up to the end of the year 9999, the last of the calendar.
FIRST_MS: Final = 1
LAST_MS: Final = 253_402_300_799_999
#: Later than any valid time, for an end whose time is unbounded.
NO_INSTANT_MS: Final = 1 << 62


def long_difference(left_ms: int | None, right_ms: int | None) -> int:
    """`left_ms - right_ms` in Java's `long`, which Kafka compares: it wraps around beyond int64.

    None counts as -1, which Kafka writes for no time and subtracts like any other.
    """
    left, right = (-1 if ms is None else ms for ms in (left_ms, right_ms))
    return (left - right + (1 << 63)) % (1 << 64) - (1 << 63)


def clock_ms(ms: int | None) -> int | None:
    """A time in epoch ms; None if there is none, or if it is out of range and so proves nothing."""
    return ms if ms is not None and FIRST_MS <= ms <= LAST_MS else None


def clock_ms_or_latest(ms: int | None) -> int | None:
    """A time in epoch ms; one that is out of range counts as later than any valid time; None if there is none.

    For evidence against a verdict: if its time is invalid, it may have been written recently.
    """
    return NO_INSTANT_MS if ms is not None and clock_ms(ms) is None else ms


def parse_instant(given: str | int | datetime, option: str = "--as-of", *, takes_days: bool = False) -> int:
    """Parses an instant to epoch ms: digits are epoch ms, or ten of them epoch seconds; anything else is ISO-8601, in
    UTC by default. `takes_days`: a day alone is its first instant.

    Raises UsageError for anything else, for a day alone without `takes_days`, and for an instant before 1970 or after
    the year 9998.
    """
    given = given.isoformat() if isinstance(given, datetime) else str(given)
    try:
        if _EPOCH_SECONDS.fullmatch(given):
            instant_ms = int(given) * 1000
        elif _EPOCH_MS.fullmatch(given) and not _DAY.fullmatch(given):
            instant_ms = int(given)
        else:
            if not takes_days and "T" not in given and " " not in given:
                day = date.fromisoformat(given)
                raise UsageError(
                    f"{option} {given}: a day is no instant; give a time of it, such as {day}T02:00:00Z, or of its end,"
                    f" {day}T23:59:59Z"
                )
            instant = datetime.fromisoformat(given)
            instant_ms = round((instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant).timestamp() * 1000)
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f"{option} {given[:_SHOWN]}: expected ISO-8601 such as 2026-11-21T07:46:12Z, or epoch ms or seconds"
        ) from error
    if not 0 <= instant_ms <= LAST_INSTANT_MS:
        raise UsageError(f"{option} {given[:_SHOWN]}: expected an instant from 1970 up to the year 9998")
    return instant_ms
