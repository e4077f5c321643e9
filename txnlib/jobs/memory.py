"""A word before the kernel kills the program: the embedded engine may need more memory than there is.

Its windows hold about 24 KB for each producer of a log (Sail 0.7.2), and cannot spill.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Final

from txnlib.errors import ON_SPARK

#: The share of the memory from which on the kernel may kill the program at any moment.
_MOST: Final = 0.9
_EVERY_S: Final = 0.5
_RESIDENT: Final = Path("/proc/self/statm")
_LIMITS: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def memory_bytes() -> int:
    """The memory that this program may take: of the machine, or of its container."""
    limits = (path.read_text().strip() for path in _LIMITS if path.exists())
    return min([os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), *map(int, filter(str.isdecimal, limits))])


def resident_bytes() -> int:
    """The memory that this program has taken."""
    return int(_RESIDENT.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def watch_memory(end: Callable[[str], None], most: int | None = None) -> None:
    """Calls `end` with the last line of the program, once it takes nearly all memory, or more than `most` bytes.

    Linux only: elsewhere, nothing is watched.
    """
    if _RESIDENT.exists():
        limit = int(memory_bytes() * _MOST) if most is None else most
        Thread(target=_watch, args=(end, limit), daemon=True).start()


def _watch(end: Callable[[str], None], limit: int) -> None:
    while (taken := resident_bytes()) <= limit:
        time.sleep(_EVERY_S)
    end(f"txnlib: the audit took {taken / 2**30:.1f} GiB of memory, nearly all that there is; {ON_SPARK}")
