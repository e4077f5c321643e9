"""`broker_clocks`: the offset between the clocks of two brokers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from txnlib.core.clock_offset import Fastest, OffsetBasis, clock_offset
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.verdicts.coordinator_copies import NO_LEADER


@dataclass(frozen=True, slots=True)
class LedPartition:
    """A row of `coverage`: who leads the partition of a copy."""

    topic: str
    partition: int
    leader: str | None
    is_judged: bool


@dataclass(frozen=True, slots=True)
class MarkerDelays:
    """The newest decisions of a coordinator partition that have a marker on a partition, one for each producer."""

    coordinator_partition: int
    topic: str
    partition: int
    #: Number of those whose times are known, and the least time from decision to marker.
    samples: int
    least_ms: int | None
    #: The offset with the largest absolute value that was applied when markers were matched with decisions.
    applied_ms: int | None


@dataclass(frozen=True, slots=True)
class ClockPair:
    """A row of `broker_clocks`."""

    as_of_ms: int
    broker: str
    other_broker: str
    offset_ms: int
    error_ms: int
    lower_ms: int
    upper_ms: int
    basis: OffsetBasis
    samples: int
    samples_back: int
    applied_ms: int
    is_far: bool


def broker_clocks(coverage: Sequence[LedPartition], marker_delays: Sequence[MarkerDelays], *, as_of_ms: int) -> Iterator[ClockPair]:
    """A row for each pair of brokers whose clocks a marker compares: its coordinator's, and its partition's leader's.

    Source: docs/rules/copies.md#clocks-of-two-brokers.
    """
    leaders = {
        (copy.topic, copy.partition): copy.leader
        for copy in coverage
        if copy.is_judged and copy.leader is not None and copy.leader != NO_LEADER
    }
    ways: dict[tuple[str, str], list[MarkerDelays]] = defaultdict(list)
    for delays in marker_delays:
        decided_by = leaders.get((TRANSACTION_STATE_TOPIC, delays.coordinator_partition))
        marked_by = leaders.get((delays.topic, delays.partition))
        if decided_by is not None and marked_by is not None and decided_by != marked_by:
            ways[decided_by, marked_by].append(delays)
    fastest = {way: least for way, delays in ways.items() if (least := _fastest(delays)) is not None}
    applied = {way: _applied(ways[way]) for way in fastest}
    for one, other in sorted({(min(way), max(way)) for way in fastest}):
        there, back = fastest.get((one, other)), fastest.get((other, one))
        found = clock_offset(there, back)
        yield ClockPair(
            as_of_ms=as_of_ms,
            broker=one,
            other_broker=other,
            offset_ms=found.offset_ms,
            error_ms=found.error_ms,
            lower_ms=found.lower_ms,
            upper_ms=found.upper_ms,
            basis=found.basis,
            samples=0 if there is None else there.samples,
            samples_back=0 if back is None else back.samples,
            applied_ms=applied.get((one, other), 0) or -applied.get((other, one), 0),
            is_far=found.is_far,
        )


def _fastest(delays: Sequence[MarkerDelays]) -> Fastest | None:
    known = [each.least_ms for each in delays if each.least_ms is not None]
    return Fastest(sum(each.samples for each in delays), min(known)) if known else None


def _applied(delays: Sequence[MarkerDelays]) -> int:
    """The applied offset with the largest absolute value."""
    return max((each.applied_ms for each in delays if each.applied_ms is not None), key=abs, default=0)
