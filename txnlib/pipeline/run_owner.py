"""The process that runs an audit, and whether it is still alive."""

from __future__ import annotations

import socket
from datetime import UTC, datetime, timedelta
from typing import Final

import psutil

#: An audit on another machine that began longer ago counts as dead, because its process cannot be checked.
LEASE: Final = timedelta(hours=24)
#: Largest difference between two readings of the start of one process.
_SAME_START_S: Final = 2.0


def this_process() -> str:
    """`host process start`, as in `audit_runs.owner`."""
    process = psutil.Process()
    return f"{socket.gethostname()} {process.pid} {process.create_time():.0f}"


def is_alive(owner: str | None, started_ms: int, now: datetime) -> bool:
    """Whether the process of an unfinished audit may still be running."""
    host, process, start = (owner or "? 0 0").rsplit(" ", 2)
    if host != socket.gethostname():
        return now - datetime.fromtimestamp(started_ms / 1000, UTC) < LEASE
    try:
        return abs(psutil.Process(int(process)).create_time() - float(start)) < _SAME_START_S
    except psutil.NoSuchProcess:
        return False
