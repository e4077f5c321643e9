"""Whose clock stamped a record, and the estimate of a difference.

The leader of a partition stamps its markers, the leader of a coordinator partition stamps its decisions. Leaders
change, so a stamp is of the leader of its leader epoch, not of today's. Source:
docs/rules/copies.md#clocks-of-two-brokers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from txnlib.core.cluster_metadata import Election, elections_of
from txnlib.core.copies import NO_LEADER, CoverageRow, highest
from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS, TRANSACTION_STATE_TOPIC, UNKNOWN_CLOCKS_DIFFER_MS
from txnlib.core.verdicts.clock_bounds import FEWEST_PAIRS, MARKER_SLACK_MS, AllBounds, ClockBounds, ComparedClocks
from txnlib.core.verdicts.dossier import CoordinatorDecision


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The clock of a partition's leader less the clock of a coordinator's leader. If both are one clock, all fields are
    0."""

    offset_ms: int = 0
    #: The measured error of the offset.
    error_ms: int = 0
    #: How far, at worst, the difference may deviate from the offset, because clocks drift.
    differ_ms: int = 0
    #: An upper limit of the offset, if there are too few pairs for an estimate.
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


def clock_of(topic: str, partition: int, leader: str | None) -> str:
    """The name of the clock that stamps a partition: that of its leader; if none is known, a name that only this
    partition has."""
    return f"{topic}-{partition}" if leader in (None, NO_LEADER) else str(leader)


def newest_leader_epoch(copies: Iterable[CoverageRow], elections: Iterable[Election]) -> int | None:
    """The newest leader epoch of a partition in batches, checkpoints or elections."""
    of_copies = (epoch for each in copies for epoch in (each.leader_epoch, each.checkpoint_leader_epoch))
    return highest((*of_copies, *(each.leader_epoch for each in elections)))


def clocks_by_epoch(copies: Iterable[CoverageRow], elections: Iterable[Election]) -> dict[int, str]:
    """Leader epoch of one partition -> the name of the clock that stamped its batches.

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


@dataclass(frozen=True, kw_only=True)
class Clocks:
    """The clocks of all partitions."""

    #: Topic and partition -> leader epoch -> clock. -1: not shown.
    named: Mapping[tuple[str, int], Mapping[int, str]] = field(default_factory=dict)
    #: (the coordinator's clock, the partition's) -> how they differ.
    measured: Mapping[tuple[str, str], Difference] = field(default_factory=dict)
    #: Clock -> how far it is behind at least: one of its stamps is older than what it was written for.
    behind: Mapping[str, int] = field(default_factory=dict)
    #: How far any two clocks may be apart, by decisions and markers.
    bounds: Sequence[ClockBounds] = ()
    #: The partitions whose logs still have their beginning.
    begun: frozenset[tuple[str, int]] = frozenset()

    def of(self, topic: str, partition: int) -> PartitionClocks:
        """The clocks of one partition."""
        return PartitionClocks(self, topic, partition)

    def compared(self, but: int) -> ComparedClocks:
        """What the decisions and markers of all producers except `but` show."""
        return ComparedClocks(self._all_bounds, self.behind, but if but in self._all_bounds.producers else None)

    @cached_property
    def _all_bounds(self) -> AllBounds:
        return AllBounds(self.bounds)

    @cached_property
    def of_coordinators(self) -> Sequence[str]:
        """The clocks of today's leaders of the partitions of `__transaction_state`."""
        return [self.name(*place, None) for place in self.named if place[0] == TRANSACTION_STATE_TOPIC]

    @cached_property
    def ahead_of_coordinators(self) -> Mapping[str, Mapping[str, int]]:
        """Partition's clock -> coordinator's clock -> how far the first is ahead at least, as measured, in ms."""
        found: dict[str, dict[str, int]] = defaultdict(dict)
        for (there, here), each in self.measured.items():
            found[here][there] = each.offset_ms - each.error_ms if each.is_known else min(each.shown_ms, 0)
        return found

    def name(self, topic: str, partition: int, leader_epoch: int | None) -> str:
        """The name of the clock of a leader epoch; None: of the newest epoch. If the leader of an epoch is not known,
        its clock has a name of its own."""
        clocks = self.named.get((topic, partition), {})
        wanted = max(clocks, default=-1) if leader_epoch is None else leader_epoch
        return clocks.get(wanted, f"{topic}-{partition}@{wanted}")


@dataclass(frozen=True, slots=True)
class PartitionClocks:
    """The clocks of one partition, and those of the coordinators."""

    clocks: Clocks
    topic: str
    partition: int

    def ahead_ms(self, leader_epoch: int | None, others: ComparedClocks) -> int:
        """How far the partition's clock in a leader epoch is certainly ahead, in ms; below 0: how far it may be behind.

        It is compared with the clocks of coordinators. If it is ahead of only few of them, these may be behind. So it
        counts as ahead only if it is ahead of those that lead most coordinator partitions. `others`: what other
        producers' decisions and markers show.
        """
        clock, today = self.name(leader_epoch), self.clocks.of_coordinators
        known = dict(self.clocks.ahead_of_coordinators.get(clock, {}))
        for pair in others.pairs_of(clock):
            if pair.clock == clock != pair.coordinator_clock:
                least, _ = pair.offsets_ms
                is_estimate = pair.pairs >= FEWEST_PAIRS
                known[pair.coordinator_clock] = least if is_estimate else min(least + MARKER_SLACK_MS, 0)
        if clock in today:
            known[clock] = 0
        ahead = min(known.values(), default=0)
        if ahead > 0 and 2 * sum(there in known for there in today) <= len(today):
            ahead = 0
        ahead = min(ahead, -self.clocks.behind.get(clock, -ahead))
        return ahead if abs(ahead) > CLOCKS_DIFFER_MS else 0

    def difference(
        self, coordinator_partition: int | None, coordinator_epoch: int | None, leader_epoch: int | None
    ) -> Difference:
        """The partition's clock in a leader epoch less that of a coordinator in one. An epoch of None is the newest
        one."""
        if coordinator_partition is None:
            return UNKNOWN
        there = self.clocks.name(TRANSACTION_STATE_TOPIC, coordinator_partition, coordinator_epoch)
        here = self.name(leader_epoch)
        found = ONE_CLOCK if here == there else self.clocks.measured.get((there, here), UNKNOWN)
        return found if found.is_known else UNKNOWN

    def today(self, decision: CoordinatorDecision) -> Difference:
        """The clock of the partition's newest leader epoch, less the clock that stamped the last record of a
        decision."""
        return self.difference(decision.coordinator_partition, decision.stamped_epoch, None)

    def name(self, leader_epoch: int | None) -> str:
        return self.clocks.name(self.topic, self.partition, leader_epoch)


#: Clocks of which nothing is known.
UNCOMPARED: Final = Clocks()


# ---- Times that clocks stamped


def newest_ms(times: Iterable[int | None]) -> int | None:
    """The newest of some broker-stamped times, those that a clock can show; None if there is none."""
    return highest(map(clock_ms, times))


def written_by_ms(behind: Iterable[int | None], floor_ms: int | None) -> int | None:
    """The latest time at which something can have been written: the oldest of the stamps after it. None if these prove
    nothing.

    `floor_ms`: a time at which it was not written yet. A stamp after it that is older than this counts as `floor_ms`,
    or not at all if clocks cannot differ that much.
    """
    times = [ms for ms in map(clock_ms, behind) if ms is not None]
    if floor_ms is not None:
        times = [max(ms, floor_ms) for ms in times if ms >= floor_ms - UNKNOWN_CLOCKS_DIFFER_MS]
    return min(times, default=None)
