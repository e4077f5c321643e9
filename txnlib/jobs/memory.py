"""A word before lack of memory ends the program.

Windows of the embedded engine cannot spill (Sail 0.7.2).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Final

from txnlib.engine.memory import NEEDED_ADDRESSES, address_limit, limit_bytes, scarce_addresses
from txnlib.errors import ON_SPARK

#: The share of the memory from which on the kernel may kill the program at any moment.
_MOST: Final = 0.9
_EVERY_S: Final = 0.5
_SIZES: Final = Path("/proc/self/statm")


def taken_bytes() -> tuple[int, int]:
    """The address space that this program has taken, and the memory."""
    addresses, resident, *_ = _SIZES.read_text().split()
    return int(addresses) * os.sysconf("SC_PAGE_SIZE"), int(resident) * os.sysconf("SC_PAGE_SIZE")


def lack_of_addresses() -> str | None:
    """Why the program cannot run within `ulimit -v`. None if it can."""
    limit = scarce_addresses()
    if limit is None:
        return None
    return (
        f"txnlib: an audit needs {NEEDED_ADDRESSES >> 30} GiB of address space, and ulimit -v allows"
        f" {limit / 2**30:.1f} GiB: raise that, or limit its memory by a control group"
    )


def watch_memory(end: Callable[[str], None], most: int | None = None) -> None:
    """Calls `end` with the last line of the program, once it takes nearly all memory, or more than `most` bytes, or
    nearly all address space that `ulimit -v` allows.

    Linux only: elsewhere, nothing is watched.
    """
    if _SIZES.exists():
        limit = int(limit_bytes() * _MOST) if most is None else most
        addresses = address_limit()
        Thread(target=_watch, args=(end, limit, addresses and int(addresses * _MOST)), daemon=True).start()


def _watch(end: Callable[[str], None], limit: int, most_addresses: int | None) -> None:
    while True:
        addresses, resident = taken_bytes()
        if resident > limit:
            what = f"{resident / 2**30:.1f} GiB of memory, nearly all that there is"
            break
        if most_addresses is not None and addresses > most_addresses:
            what = f"{addresses / 2**30:.1f} GiB of address space, nearly all that ulimit -v allows"
            break
        time.sleep(_EVERY_S)
    end(f"txnlib: the audit took {what}; {ON_SPARK}")
