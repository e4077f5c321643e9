"""The process that runs an audit, and whether it is still alive."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

#: An audit on another machine that began longer ago counts as dead, because its process cannot be checked.
LEASE: Final = timedelta(hours=24)


def start_of(process: int) -> str | None:
    """When a process started, in clock ticks since the machine booted; None if there is none.

    0 where there is no /proc, as on macOS.
    """
    try:
        with suppress(PermissionError):  # of another user
            os.kill(process, 0)
        if not Path("/proc/self/stat").exists():
            return "0"
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except (ProcessLookupError, FileNotFoundError):
        return None


def this_process() -> str:
    """`host process start`, as in `audit_runs.owner`."""
    return f"{socket.gethostname()} {os.getpid()} {start_of(os.getpid())}"


def is_alive(owner: str | None, started_ms: int, now: datetime) -> bool:
    """Whether the process of an unfinished audit may still be running."""
    host, process, start = (owner or "? 0 0").rsplit(" ", 2)
    if host != socket.gethostname():
        return now - datetime.fromtimestamp(started_ms / 1000, UTC) < LEASE
    return start_of(int(process)) == start
