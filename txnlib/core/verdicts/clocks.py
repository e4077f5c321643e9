"""Brokers' clocks, by leader epoch: whose clock stamped a record, and how far two of them differ.

The leader of a partition stamps its markers, the leader of a coordinator partition stamps its decisions. Leaders
change, so a stamp is of the leader of its leader epoch, not of today's. Source:
docs/rules/copies.md#clocks-of-two-brokers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from txnlib.core.cluster_metadata import Election, elections_of
from txnlib.core.copies import NO_LEADER, CoverageRow, highest
from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS, TRANSACTION_STATE_TOPIC, UNKNOWN_CLOCKS_DIFFER_MS
from txnlib.core.rows import grouped
from txnlib.core.verdicts.dossier import CoordinatorDecision

#: How far the clocks of two brokers that NTP keeps may be apart without a doubt about the order of a decision and its
#: marker.
MARKER_SLACK_MS: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The clock of a partition's leader less that of a coordinator. One clock: all are 0."""

    offset_ms: int = 0
    #: The measured error of the offset.
    error_ms: int = 0
    #: How far the two may differ beside the offset, at worst: clocks drift.
    differ_ms: int = 0
    #: What a single pair shows, too little for an estimate: the offset is not above it.
    shown_ms: int = 0

    @property
    def is_known(self) -> bool:
        """Whether it was measured, or both stamps are of one clock."""
        return self.differ_ms < UNKNOWN_CLOCKS_DIFFER_MS


ONE_CLOCK: Final = Difference()
UNKNOWN: Final = Difference(error_ms=MARKER_SLACK_MS, differ_ms=UNKNOWN_CLOCKS_DIFFER_MS)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredClocks(Difference):
    """What decisions and their markers show of two clocks, each named after its broker (`clock_of`)."""

    coordinator_clock: str
    clock: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockBounds:
    """What decisions and markers allow of a partition's clock less a coordinator's: it is between the greatest lower
    bound and the least upper bound of all pairs. If one clock is both, it shows whether that clock moved."""

    coordinator_clock: str
    clock: str
    #: Of the pairs of a producer with something open; None: of all others.
    producer_id: int | None = None
    #: The leader epoch of a log in which one of both stamped these pairs; None: of all logs.
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
        """The least and the greatest offset: what all pairs have in common, or, if the clocks moved, anything between
        the extremes."""
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


#: Fewer pairs of a decision and its marker show that clocks are apart, and not that they are near.
FEWEST_PAIRS: Final = 3


@dataclass(frozen=True, slots=True)
class ComparedClocks:
    """What the decisions and markers of other producers show of clocks.

    Which marker of a producer is of which of its own decisions is what a world decides (`world`).
    """

    #: (the coordinator's clock, the partition's) -> what all their pairs allow.
    pairs: Mapping[tuple[str, str], ClockBounds]
    #: (topic, partition, leader epoch) -> how far the clock moved, as pairs of that log show.
    moved_at: Mapping[tuple[str, int, int], int]
    #: Clock -> how far it moved, and how far it is off, by most others that it was compared with.
    moved: Mapping[str, int]
    off: Mapping[str, int]

    def apart_ms(self, left: str, right: str) -> tuple[int, int]:
        """What the right clock shows less what the left one shows, at least and at most."""
        for pair, sign in (((left, right), 1), ((right, left), -1)):
            if (found := self.pairs.get(pair)) is not None and found.pairs >= FEWEST_PAIRS:
                least, most = sorted(sign * each for each in found.offsets_ms)
                return least, most
        apart = UNKNOWN_CLOCKS_DIFFER_MS + self.off.get(left, 0) + self.off.get(right, 0)
        return -apart, apart


def compared(bounds: Iterable[ClockBounds], behind: Mapping[str, int]) -> ComparedClocks:
    """What bounds show together. `behind`: as `Clocks.behind`."""
    of_all = grouped((each for each in bounds if each.topic is None), lambda each: (each.coordinator_clock, each.clock))
    pairs = {pair: found for pair, of in of_all.items() if (found := joined(of)) is not None}
    by_clock: dict[str, list[ClockBounds]] = defaultdict(list)
    for pair, each in pairs.items():
        for clock in {*pair}:
            by_clock[clock].append(each)
    moved_at = {}
    of_logs = grouped((each for each in bounds if each.topic is not None), lambda each: each.log)
    for log, of in of_logs.items():
        joined_here = map(joined, grouped(of, lambda each: (each.coordinator_clock, each.clock)).values())
        moved_at[log] = _by_most(each.moved_ms for each in joined_here if each is not None)
    off = {clock: _by_most(each.apart_ms for each in of) for clock, of in by_clock.items()}
    return ComparedClocks(
        pairs,
        moved_at,
        {clock: _by_most(each.moved_ms for each in of) for clock, of in by_clock.items()},
        {clock: max(off.get(clock, 0), behind.get(clock, 0)) for clock in {*off, *behind}},
    )


def _by_most(found: Iterable[int]) -> int:
    """What most of some show at least."""
    ordered = sorted(found)
    return ordered[(len(ordered) - 1) // 2]


def clock_of(topic: str, partition: int, leader: str | None) -> str:
    """The name of the clock that stamps a partition: its leader, or a clock of its own if none is known."""
    return f"{topic}-{partition}" if leader in (None, NO_LEADER) else str(leader)


def newest_leader_epoch(copies: Iterable[CoverageRow], elections: Iterable[Election]) -> int | None:
    """The newest leader epoch of a partition in batches, checkpoints or elections."""
    of_copies = (epoch for each in copies for epoch in (each.leader_epoch, each.checkpoint_leader_epoch))
    return highest((*of_copies, *(each.leader_epoch for each in elections)))


def clocks_by_epoch(copies: Iterable[CoverageRow], elections: Iterable[Election]) -> dict[int, str]:
    """Leader epoch -> the clock that stamped its batches, of the copies of one partition.

    Who led the newest epoch is noted with the judged copy; the elections of the same topic id show the others.
    """
    copies, found = list(copies), {}
    judged = next((each for each in copies if each.is_judged), None)
    if judged is None:
        return {}
    ours = elections_of(judged.topic_id, elections) if judged.topic_id is not None else []
    for each in ours:
        if each.leader_epoch is not None and each.leader is not None:
            found[each.leader_epoch] = str(each.leader)
    newest = newest_leader_epoch(copies, ours)
    found[-1 if newest is None else newest] = clock_of(judged.topic, judged.partition, judged.leader)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """The clocks of one partition and of the coordinators."""

    topic: str = ""
    partition: int = 0
    #: Topic and partition -> leader epoch -> clock. -1: not shown.
    named: Mapping[tuple[str, int], Mapping[int, str]] = field(default_factory=dict)
    #: (the coordinator's clock, the partition's) -> how they differ.
    measured: Mapping[tuple[str, str], Difference] = field(default_factory=dict)
    #: Clock -> how far it is behind at least, where one of its stamps is older than what it stamps.
    behind: Mapping[str, int] = field(default_factory=dict)
    #: What decisions and markers allow of any two of them.
    bounds: Sequence[ClockBounds] = ()
    #: The partitions whose logs still have their beginning.
    begun: frozenset[tuple[str, int]] = frozenset()

    def of(self, topic: str, partition: int) -> Clocks:
        """Those of another partition."""
        return replace(self, topic=topic, partition=partition)

    def compared(self, but: int) -> ComparedClocks:
        """What decisions and markers of all producers but one show."""
        return compared([each for each in self.bounds if each.producer_id != but], self.behind)

    def name(self, topic: str, partition: int, leader_epoch: int | None) -> str:
        """The clock of a leader epoch; None: of the newest."""
        return self._at(topic, partition, leader_epoch)

    def ahead_ms(self, leader_epoch: int | None, others: ComparedClocks) -> int:
        """How far the clock of the partition in a leader epoch is ahead at least; negative: how far it is behind at
        most.

        The coordinators' clocks tell. It is ahead only of those that together lead most of their partitions: of a
        single one, that one may be behind. `others`: what other producers' decisions and markers show.
        """
        clock = self._at(self.topic, self.partition, leader_epoch)
        today = [self._at(*place, None) for place in self.named if place[0] == TRANSACTION_STATE_TOPIC]
        known = {
            there: each.offset_ms - each.error_ms if each.is_known else min(each.shown_ms, 0)
            for (there, here), each in self.measured.items()
            if here == clock
        }
        for (there, here), pair in others.pairs.items():
            if here == clock != there:
                least, _ = pair.offsets_ms
                known[there] = least if pair.pairs >= FEWEST_PAIRS else min(least + MARKER_SLACK_MS, 0)
        if clock in today:
            known[clock] = 0
        ahead = min(known.values(), default=0)
        if ahead > 0 and 2 * sum(there in known for there in today) <= len(today):
            ahead = 0
        ahead = min(ahead, -self.behind.get(clock, -ahead))
        return ahead if abs(ahead) > CLOCKS_DIFFER_MS else 0

    def difference(
        self, coordinator_partition: int | None, coordinator_epoch: int | None, leader_epoch: int | None
    ) -> Difference:
        """The clock of the partition in a leader epoch less that of a coordinator; None: in the newest epoch."""
        if coordinator_partition is None:
            return UNKNOWN
        found = self._shown(*self._pair(coordinator_partition, coordinator_epoch, leader_epoch))
        return found if found.is_known else UNKNOWN

    def today(self, decision: CoordinatorDecision) -> Difference:
        """The clock of today's leader of the partition less the one that stamped a decision."""
        return self.difference(decision.coordinator_partition, decision.stamped_epoch, None)

    def _pair(
        self, coordinator_partition: int, coordinator_epoch: int | None, leader_epoch: int | None
    ) -> tuple[str, str]:
        """The clock of a coordinator, and that of the partition."""
        there = self._at(TRANSACTION_STATE_TOPIC, coordinator_partition, coordinator_epoch)
        return there, self._at(self.topic, self.partition, leader_epoch)

    def _shown(self, there: str, here: str) -> Difference:
        """What pairs show of two clocks, be it an estimate or not."""
        return ONE_CLOCK if here == there else self.measured.get((there, here), UNKNOWN)

    def _at(self, topic: str, partition: int, epoch: int | None) -> str:
        """The clock of a leader epoch. Who led an epoch may not be known: its clock is one of its own."""
        clocks = self.named.get((topic, partition), {})
        wanted = max(clocks, default=-1) if epoch is None else epoch
        return clocks.get(wanted, f"{topic}-{partition}@{wanted}")


#: Clocks of which nothing is known.
UNCOMPARED: Final = Clocks()


# ---- Times that clocks stamped


def newest_ms(times: Iterable[int | None]) -> int | None:
    """The newest of some broker-stamped times, those that a clock can show; None if there is none."""
    return highest(map(clock_ms, times))


def latest_bound_ms(behind: Iterable[int | None], floor_ms: int | None) -> int | None:
    """The latest time at which something was written that stands before all of these stamps; None if they prove
    nothing.

    `floor_ms`: it was not written before. A stamp that is older proves nothing, unless clocks may differ that much.
    """
    times = [ms for ms in map(clock_ms, behind) if ms is not None]
    if floor_ms is not None:
        times = [max(ms, floor_ms) for ms in times if ms >= floor_ms - UNKNOWN_CLOCKS_DIFFER_MS]
    return min(times, default=None)
