"""How fast a capture fetches, and how far it is."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Hashable
from typing import Final, TextIO

_EVERY_SECONDS: Final = 5.0
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


class Pace:
    """Waits so that all threads together fetch at most `rate` bytes per second; None for no limit."""

    def __init__(
        self, rate: int | None, *, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._rate, self._clock, self._sleep = rate, clock, sleep
        self._lock = threading.Lock()
        self._free_at = clock()

    def __call__(self, count: int) -> None:
        """Counts bytes that were just fetched, and waits until the next ones may be."""
        if self._rate is None:
            return
        with self._lock:
            self._free_at = max(self._free_at, self._clock()) + count / self._rate
            due = self._free_at - self._clock()
        if due > 0:
            self._sleep(due)


class Progress:
    """Says how many offsets of how many are fetched, every few seconds, with the time that is left at this rate.

    Each part is named by what is fetched: what is still expected of it is replaced as soon as more is known.
    """

    def __init__(self, out: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._out, self._clock = out or sys.stderr, clock
        self._lock = threading.Lock()
        self._began = self._said_at = clock()
        self._done = self._bytes = 0
        self._left: dict[Hashable, int] = {}

    def say(self, text: str) -> None:
        """A line for the operator."""
        with self._lock:
            self._out.write(f"capture: {text}\n")
            self._out.flush()

    def expect(self, part: Hashable, offsets: int) -> None:
        """Says how many offsets of a part are still to be fetched."""
        with self._lock:
            self._left[part] = offsets

    def add(self, part: Hashable, offsets: int, count: int) -> None:
        """Adds offsets of a part that were fetched, and their bytes."""
        with self._lock:
            self._done += offsets
            self._bytes += count
            self._left[part] = max(0, self._left.get(part, 0) - offsets)
            now = self._clock()
            if now - self._said_at < _EVERY_SECONDS:
                return
            self._said_at = now
        self.say(self.text())

    def text(self) -> str:
        """How far the capture is, in words."""
        elapsed = max(self._clock() - self._began, 0.001)
        left = sum(self._left.values())
        total = self._done + left
        eta = f", about {duration_text(left * elapsed / self._done)} left" if self._done else ""
        percent = 100 * self._done // total if total else 100
        return f"{percent}% of {total} offsets, {size_text(self._bytes)} at {size_text(self._bytes / elapsed)}/s{eta}"


def size_text(count: float) -> str:
    """A number of bytes with its unit."""
    for unit in _UNITS:
        if count < 10240 or unit == _UNITS[-1]:
            return f"{count:.0f} {unit}"
        count /= 1024
    raise AssertionError("unreachable")


def duration_text(seconds: float) -> str:
    """A duration in seconds, minutes or hours."""
    return f"{seconds:.0f} s" if seconds < 120 else (f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h")
