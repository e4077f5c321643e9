"""The memory that this program may take.

It is that of the machine, less by the limits of its containers and of its user (ulimit).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

#: Of the address space, an audit of a few files takes 4 GiB: mostly what its threads could need.
NEEDED_ADDRESSES: Final = 5 << 30
#: The share of free memory for rows that queries hold at a time. Python, what is read, and what is written need the
#: rest.
_SHARE: Final = 0.5
_LEAST_POOL: Final = 256 << 20
_PROC: Final = Path("/proc")
_GROUPS: Final = Path("/sys/fs/cgroup")


class Group(NamedTuple):
    """A control group with a limit: a container, or a unit of systemd. Both numbers are bytes; `taken` is without what
    the kernel can drop."""

    limit: int
    taken: int


def limit_bytes() -> int:
    """The memory that this program may take at most."""
    return min([_physical_bytes(), *(group.limit for group in groups())])


def free_bytes() -> int:
    """The memory that this program can take now besides what it has."""
    left = [group.limit - group.taken for group in groups()]
    addresses = address_limit()
    if addresses is not None:
        left.append(addresses - NEEDED_ADDRESSES)
    return max(min([_available_bytes(), *left]), 0)


def pool_bytes() -> int:
    """The memory for rows that queries hold at a time. Beyond it, they use files."""
    return max(int(free_bytes() * _SHARE), _LEAST_POOL)


def address_limit() -> int | None:
    """The address space that `ulimit -v` allows; None if it is not limited."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    soft = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def scarce_addresses() -> int | None:
    """The address space that `ulimit -v` allows, if it is too little: Rust would abort the program without a word. None
    if there is enough."""
    limit = address_limit()
    return limit if limit is not None and limit < NEEDED_ADDRESSES else None


def groups(proc: Path = _PROC, root: Path = _GROUPS) -> list[Group]:
    """The control groups of this program that have a limit. Kernel: memory.max of cgroup v2,
    memory.limit_in_bytes of v1."""
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return []
    found: list[Group] = []
    for number, controllers, path in (line.split(":", 2) for line in lines):
        if number == "0" and not controllers:
            found += _with_parents(root, path, ("memory.max", "memory.current", "inactive_file"))
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            found += _with_parents(root / "memory", path, names)
    return found


def _with_parents(root: Path, path: str, names: tuple[str, str, str]) -> Iterator[Group]:
    """The limits of a control group and of its parents. In a container, the group's own folder may be the topmost that
    is visible."""
    limit, current, droppable = names
    own = root / path.lstrip("/")
    for folder in [own, *own.parents]:
        if not folder.is_relative_to(root):
            return
        try:
            most = (folder / limit).read_text().strip()
            taken = int((folder / current).read_text())
            numbers = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        except (OSError, ValueError):
            continue
        if most.isdecimal():  # else it is "max"
            yield Group(int(most), taken - int(numbers.get(droppable, 0)))


def _available_bytes() -> int:
    """What the machine can give without swapping."""
    try:
        lines = (_PROC / "meminfo").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return _physical_bytes()


def _physical_bytes() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
