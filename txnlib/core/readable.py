"""Text from logs and instants, safe and short enough to print."""

from __future__ import annotations

from txnlib.core.durations import instant


def printable(text: object) -> str:
    """Text from a log, safe to print: control characters and line feeds of a transactional id must not forge lines."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


def utc_time(ms: int | None) -> str:
    """2026-11-21 07:46:12Z; a dash for None, the number if it is outside of the calendar."""
    return "-" if ms is None else instant(ms).replace("T", " ")
