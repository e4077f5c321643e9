"""Which instant does an option name?"""

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
