"""The proof that the copies of coordinator partitions give together.

Source: docs/rules/abort.md#no-coordinator-left; Kafka: `TransactionStateManager.loadTransactionMetadata` reads the whole log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.verdicts.copies import LOG_END, PROVES_LEADER, End, Role
from txnlib.core.verdicts.dossier import CapturedCopy, ClusterFacts, CoordinatorPartition

#: The leader of a partition without one.
NO_LEADER: Final = "-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What the copies of one coordinator partition prove. Times are epoch ms."""

    partition: int
    #: The copy that reaches furthest for certain; None if nothing was captured.
    best: CapturedCopy | None
    #: The instant up to which the copies show everything.
    known_until_ms: int | None
    #: When the newest copy that shows absence was taken.
    captured_ms: int | None
    is_assumed: bool
    #: Records below this offset are lost in every copy.
    damaged_offset: int | None
    #: Whether an id without a record in the copies has none in the log.
    shows_absence: bool

    @property
    def is_current(self) -> bool:
        return self.best is not None and self.best.is_current


def standing_of(coordinator: CoordinatorPartition) -> Standing:
    """What the copies of a coordinator partition prove together."""
    copies = [copy for copy in coordinator.copies if copy.status != "MISSING"]
    damaged = _lost_below(copies)
    return Standing(
        partition=coordinator.partition,
        best=max(copies, key=_trust, default=None),
        known_until_ms=max(
            (copy.known_until_ms for copy in copies if copy.is_decoded and copy.known_until_ms is not None), default=None
        ),
        captured_ms=max(
            (copy.captured_at_ms for copy in copies if copy.shows_absence and copy.captured_at_ms is not None), default=None
        ),
        is_assumed=all(copy.is_instant_assumed for copy in copies),
        damaged_offset=damaged,
        shows_absence=damaged is None and any(copy.shows_absence for copy in copies),
    )


def _trust(copy: CapturedCopy) -> tuple[bool, bool, bool, int]:
    return copy.is_current, copy.ends == End.WHOLE, copy.is_judged, copy.end_offset or 0


def _lost_below(copies: Sequence[CapturedCopy]) -> int | None:
    """The offset below which records may be lost in every copy; None if nothing is.

    Only a copy that contains the damaged offsets, undamaged and not truncated below them, makes up for a damaged one.
    """
    damages = (copy.damage_ends_at for copy in copies)
    lost = [end for end in damages if end is not None and not any(_contains(copy, end, copies) for copy in copies)]
    return max(lost, default=None)


def _contains(copy: CapturedCopy, end: int, copies: Iterable[CapturedCopy]) -> bool:
    """Whether a copy is whole up to an offset; for the end of the log, up to all that any copy or checkpoint reaches."""
    if not copy.shows_absence or copy.survives_until is None:
        return False
    if end < LOG_END:
        return copy.survives_until >= end
    marks = [mark for each in copies for mark in (each.noted_high_watermark, each.high_watermark) if mark is not None]
    reached = [each.end_offset for each in copies if each.end_offset is not None]
    return bool(marks) and copy.is_current and copy.survives_until >= max([*marks, *reached])


def uncertainties(standing: Standing) -> list[str]:
    """Why a coordinator partition is not known for certain, in words; empty if it is: current, whole, by a certain leader."""
    name, best = f"{TRANSACTION_STATE_TOPIC}-{standing.partition}", standing.best
    if best is None:
        return [f"{name} was not captured"]
    if best.leader_basis not in PROVES_LEADER or best.leader in (None, NO_LEADER):
        return [f"the leader of {name} is not known for certain: note it in capture.json, or copy the metadata log"]
    if best.role != Role.LEADER or not best.is_current:
        return [f"the copy of {name} is not known to be current: copy its leader's (broker {best.leader})"]
    if standing.damaged_offset is not None:
        return [f"{name} is damaged{_below(standing.damaged_offset)}: copy another replica of it"]
    if not best.begins_at_start:
        return [f"the copy of {name} lacks its first segments: copy the whole folder"]
    if not standing.shows_absence:
        return [f"the copy of {name} does not show all of its records: copy the raw segments"]
    if best.high_watermark is None:
        return [f"the end of the copy of {name} is not confirmed: copy the replication-offset-checkpoint of broker {best.leader}"]
    return []


def _below(offset: int) -> str:
    return " at its end" if offset >= LOG_END else f" below offset {offset}"


@dataclass(frozen=True, slots=True)
class Coordinators:
    """What all coordinator partitions of a capture prove: computed once for an audit."""

    standings: Mapping[int, Standing]

    @classmethod
    def of(cls, facts: ClusterFacts) -> Coordinators:
        return cls({each.partition: standing_of(each) for each in facts.coordinators})

    @property
    def missing(self) -> tuple[int, ...] | None:
        """The partitions that do not show which ids have no record; None if nothing was captured."""
        if not self.standings:
            return None
        return tuple(sorted(number for number, each in self.standings.items() if not each.shows_absence))

    @property
    def known_until_ms(self) -> int | None:
        """The instant up to which all of them are known; None if one is unknown."""
        known = [each.known_until_ms for each in self.standings.values()]
        instants = [ms for ms in known if ms is not None]
        return min(instants) if instants and len(instants) == len(known) else None

    @property
    def worst(self) -> CapturedCopy | None:
        """The best copy of the partition that is known least."""
        bests = [each.best for each in self.standings.values() if each.best is not None]
        return min(bests, key=lambda copy: (copy.is_current, copy.ends == End.WHOLE), default=None)


def has_leader(copy: CapturedCopy | None) -> bool | None:
    """Whether a partition has a leader; None if that is not known for certain."""
    if copy is None or copy.leader_basis not in PROVES_LEADER or copy.leader is None:
        return None
    return copy.leader != NO_LEADER
