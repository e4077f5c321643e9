"""Which instant does an option name?"""

from __future__ import annotations

from datetime import UTC, datetime

from txnlib.errors import UsageError


def parse_instant(given: str) -> int:
    """Epoch milliseconds of an instant: digits are epoch ms, anything else ISO-8601, UTC unless it says otherwise."""
    if given.lstrip("-").isdigit():
        return int(given)
    try:
        instant = datetime.fromisoformat(given)
    except ValueError as error:
        raise UsageError(f"--as-of {given}: expected ISO-8601 such as 2026-11-21T07:46:12Z, or epoch ms") from error
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=UTC)
    return round(instant.timestamp() * 1000)
