"""Bounds of how far any two clocks are apart, by pairs of records.

Source: docs/rules/copies.md#clocks-of-two-brokers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from txnlib.core.kafka.constants import UNKNOWN_CLOCKS_DIFFER_MS
from txnlib.core.rows import grouped

#: How far the clocks of two brokers that NTP keeps may be apart without a doubt about the order of a decision and its
#: marker.
MARKER_SLACK_MS: Final = 20
#: Fewer pairs of a decision and its marker show that clocks are apart, and not that they are near.
FEWEST_PAIRS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockBounds:
    """How far a partition's clock may be ahead of a coordinator's: at least `lower_ms` and at most `upper_ms`, by all
    pairs of a decision and its marker. If both names are of one clock, the bounds show whether it moved."""

    coordinator_clock: str
    clock: str
    #: The producer of the pairs, if it has something open; None: all other producers.
    producer_id: int | None = None
    #: The log, and its leader epoch, in which one of the two clocks stamped these pairs; None: all logs.
    topic: str | None = None
    partition: int | None = None
    leader_epoch: int | None = None
    lower_ms: int
    upper_ms: int
    #: How many pairs there are.
    pairs: int

    @property
    def log(self) -> tuple[str | None, int | None, int | None]:
        return self.topic, self.partition, self.leader_epoch

    @property
    def moved_ms(self) -> int:
        """How far the clocks moved against each other at least; 0 if one offset agrees with all pairs."""
        moved = self.lower_ms - self.upper_ms
        return moved if moved > MARKER_SLACK_MS else 0

    @property
    def offsets_ms(self) -> tuple[int, int]:
        """The least and the greatest possible offset: by what all pairs have in common, or, if the clocks moved, by
        their extremes."""
        least, most = sorted((self.lower_ms, self.upper_ms))
        return least - MARKER_SLACK_MS, most + MARKER_SLACK_MS

    @property
    def apart_ms(self) -> int:
        """How far the clocks are apart at least."""
        least, most = self.offsets_ms
        return max(least, -most, 0)


def joined(bounds: Iterable[ClockBounds]) -> ClockBounds | None:
    """What several bounds of one pair of clocks allow together; None if there are none."""
    found = list(bounds)
    if not found:
        return None
    return replace(
        found[0],
        producer_id=None,
        lower_ms=max(each.lower_ms for each in found),
        upper_ms=min(each.upper_ms for each in found),
        pairs=sum(each.pairs for each in found),
    )


class _OneOut:
    """The bounds of one pair of clocks by all producers, and by all but one."""

    def __init__(self, bounds: Iterable[ClockBounds]) -> None:
        of_producers = grouped(bounds, lambda each: each.producer_id)
        self._by_producer = {id_: found for id_, of in of_producers.items() if (found := joined(of)) is not None}
        each = self._by_producer.values()
        # If a producer is left out, the second-best bound counts.
        self._lowest = sorted(each, key=lambda bound: -bound.lower_ms)[:2]
        self._highest = sorted(each, key=lambda bound: bound.upper_ms)[:2]
        self.all = joined(each)

    def but(self, producer_id: int | None) -> ClockBounds | None:
        """The bounds without the pairs of one producer; None if no other producer has a pair. `producer_id` None: all
        bounds."""
        own = None if producer_id is None else self._by_producer.get(producer_id)
        if own is None or self.all is None:
            return self.all
        lower = next((each.lower_ms for each in self._lowest if each is not own), None)
        upper = next((each.upper_ms for each in self._highest if each is not own), None)
        if lower is None or upper is None:
            return None
        return replace(self.all, lower_ms=lower, upper_ms=upper, pairs=self.all.pairs - own.pairs)


@dataclass(frozen=True)
class AllBounds:
    """The bounds that the decisions and markers of all producers show, by the clocks and by the log of their pairs."""

    bounds: Sequence[ClockBounds]

    @cached_property
    def producers(self) -> frozenset[int | None]:
        """The producers with something open, each of which has bounds of its own."""
        return frozenset(each.producer_id for each in self.bounds) - {None}

    @cached_property
    def of_pair(self) -> Mapping[tuple[str, str], _OneOut]:
        """(the coordinator's clock, the partition's) -> the bounds of these two."""
        return _by_pair(each for each in self.bounds if each.topic is None)

    @cached_property
    def of_clock(self) -> Mapping[str, Sequence[_OneOut]]:
        found: dict[str, list[_OneOut]] = defaultdict(list)
        for pair, each in self.of_pair.items():
            for clock in {*pair}:
                found[clock].append(each)
        return found

    @cached_property
    def of_log(self) -> Mapping[tuple[str | None, int | None, int | None], Sequence[_OneOut]]:
        """(topic, partition, leader epoch) -> the bounds of each two clocks, by the pairs of that log."""
        of_logs = grouped((each for each in self.bounds if each.topic is not None), lambda each: each.log)
        return {log: [*_by_pair(of).values()] for log, of in of_logs.items()}


def _by_pair(bounds: Iterable[ClockBounds]) -> dict[tuple[str, str], _OneOut]:
    of_pairs = grouped(bounds, lambda each: (each.coordinator_clock, each.clock))
    return {pair: _OneOut(of) for pair, of in of_pairs.items()}


@dataclass(frozen=True, slots=True)
class ComparedClocks:
    """What the decisions and markers of other producers show of clocks.

    A producer's own decisions and markers do not count: a world decides which belong together (`world`).
    """

    all: AllBounds
    #: As `Clocks.behind`.
    behind: Mapping[str, int]
    #: The producer that is left out; None: none is.
    but: int | None = None
    #: Clocks whose broker is not known -> how far they may be off, if nothing else tells.
    unknown: Mapping[str, int] = field(default_factory=dict)

    def pairs_of(self, clock: str) -> list[ClockBounds]:
        """The bounds of a clock with each other clock."""
        return self._left(self.all.of_clock.get(clock, ()))

    def apart_ms(self, left: str, right: str) -> tuple[int, int]:
        """The least and the greatest value of what the right clock shows less what the left one shows, in ms."""
        for pair, sign in (((left, right), 1), ((right, left), -1)):
            of = self.all.of_pair.get(pair)
            if of is not None and (found := of.but(self.but)) is not None and found.pairs >= FEWEST_PAIRS:
                least, most = sorted(sign * each for each in found.offsets_ms)
                return least, most
        apart = UNKNOWN_CLOCKS_DIFFER_MS + self.off_ms(left) + self.off_ms(right)
        return -apart, apart

    def off_ms(self, clock: str) -> int:
        """How far a clock is wrong at least, in ms, by most of the clocks that it was compared with."""
        found = self.pairs_of(clock)
        if not found and clock not in self.behind:
            return self.unknown.get(clock, 0)
        return max(_by_most(each.apart_ms for each in found), self.behind.get(clock, 0))

    def moved_ms(self, clock: str) -> int:
        """How far a clock moved at least, in ms, by most of the clocks that it was compared with."""
        return _by_most(each.moved_ms for each in self.pairs_of(clock))

    def moved_at_ms(self, topic: str, partition: int, leader_epoch: int) -> int:
        """How far the clock of a leader epoch moved at least, in ms, by the pairs in that log alone."""
        of_log = self.all.of_log.get((topic, partition, leader_epoch), ())
        return _by_most(each.moved_ms for each in self._left(of_log))

    def _left(self, given: Sequence[_OneOut]) -> list[ClockBounds]:
        return [found for each in given if (found := each.but(self.but)) is not None]


def _by_most(found: Iterable[int]) -> int:
    """The value that more than half of the values reach; 0 if there are none."""
    ordered = sorted(found)
    return ordered[(len(ordered) - 1) // 2] if ordered else 0
