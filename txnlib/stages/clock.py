"""What time is it on this machine? Asked to note when a run began and ended and how long a step took, never to judge by."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    """The machine's time, in UTC."""
    return datetime.now(UTC)
