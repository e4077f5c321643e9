"""The clock of this machine, to note when things happened. Verdicts never use it."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    """The time of this machine, in UTC."""
    return datetime.now(UTC)
