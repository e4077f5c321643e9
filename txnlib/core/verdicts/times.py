"""Instants of one history, and what their differences allow.

Each constraint is `later - earlier <= ms`, so a set of them has a solution exactly if its graph has no negative cycle.
The shortest path between two instants bounds their difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from txnlib.core.instants import clock_ms

#: Longer than any time between two instants.
_UNBOUNDED: Final = 10**18


class Times:
    """Instants and clocks by name, and how far any two can be apart: always the shortest paths of all constraints so
    far.

    A clock is a name, too: true time less what it shows. `add` updates Floyd and Warshall's closure by one constraint.
    """

    def __init__(self, like: Times | None = None) -> None:
        #: Earlier -> later -> the greatest difference.
        self._most: dict[str, dict[str, int]] = (
            {} if like is None else {earlier: dict(row) for earlier, row in like._most.items()}
        )

    def __contains__(self, instant: str) -> bool:
        return instant in self._most

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._most))

    def most_ms(self, later: str, earlier: str) -> int | None:
        """The greatest `later - earlier` that is possible; None if nothing bounds it."""
        return self._most.get(earlier, {}).get(later)

    def may_be_before(self, earlier: str, later: str) -> bool:
        """Whether an instant may be before another one, or at the same time."""
        most = self.most_ms(later, earlier)
        return most is None or most >= 0

    def add(self, later: str, earlier: str, ms: int = 0) -> bool:
        """Demands `later - earlier <= ms`; False, and nothing is changed, if that contradicts the rest."""
        for each in (later, earlier):
            self._most.setdefault(each, {each: 0})
        if self._most[earlier].get(later, _UNBOUNDED) <= ms:
            return True
        if self._most[later].get(earlier, _UNBOUNDED) + ms < 0:
            return False
        rows = [(row, row[earlier]) for row in self._most.values() if earlier in row]
        for reached, beyond in list(self._most[later].items()):
            for row, before in rows:
                if before + ms + beyond < row.get(reached, _UNBOUNDED):
                    row[reached] = before + ms + beyond
        return True

    def precedes(self, earlier: str, later: str) -> bool:
        """Demands that an instant is not after another one."""
        return self.add(earlier, later)

    def shows(self, instant: str, clock: str, ms: int | None, slack_ms: int = 0) -> bool:
        """Demands that a clock showed a time at an instant, within a slack. A time that no clock can show demands
        nothing."""
        ms = clock_ms(ms)
        return ms is None or (self.add(instant, clock, ms + slack_ms) and self.add(clock, instant, slack_ms - ms))

    def differ(self, left: str, right: str, least_ms: int, most_ms: int) -> bool:
        """Demands `least_ms <= left - right <= most_ms`."""
        return self.add(left, right, most_ms) and self.add(right, left, -least_ms)
