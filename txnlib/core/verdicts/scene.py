"""The facts of a case as instants: what bounds every world (`world.AXIOMS`), and what may have been lost.

Its instants are names in `Times`: when each decision began, was decided and was complete, when each marker was written,
when the first and the last open batch were; clocks are names there, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count, pairwise
from typing import Final, NamedTuple

from txnlib.core.copies import highest
from txnlib.core.display import offset_text
from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC, UNKNOWN_CLOCKS_DIFFER_MS, is_ahead, is_from
from txnlib.core.kafka.transaction_state import BY_KAFKA_NAME, COMPLETE_STATES
from txnlib.core.verdicts.case import Case
from txnlib.core.verdicts.coordinators import Loss
from txnlib.core.verdicts.dossier import CoordinatorDecision, EarlierAudit, OddStep, Owner, SiblingMarkers
from txnlib.core.verdicts.earlier_audits import telling
from txnlib.core.verdicts.match import decided_ms
from txnlib.core.verdicts.times import Times

#: Above the first number of decisions or markers, only the newest are compared; above the second, none. Bounding
#: instants takes cubic time.
COMPARED: Final = 12
MOST_COMPARED: Final = 40
#: Instants by name.
FIRST, LAST, ASSIGNED, BORN = "first batch", "last batch", "producer id assigned", "coordinators' topic created"
CONTROLLER: Final = "clock of the controller"
_AUDITS: Final = "clock of the captures"
_LOSER: Final = "clock of the coordinator that lost records"
#: Whether nobody owns the producer id -> why its marker may be lost under transactions v2.
_BEYOND: Final = {
    True: (
        "under transactions v2, nothing tells whether open records that no coordinator knows have lost their marker or"
        " were never registered: ask the owner of the application that wrote them"
    ),
    False: "under transactions v2, records of an older epoch than the coordinator's have lost their marker",
}
#: From this version on, coordinators complete a transaction without the marker of a partition that has no leader.
_DROPS_MARKERS_FROM: Final = (4, 2)


#: The instant at which the epoch of the open records was handed out.
_HANDED_OUT: Final = "their epoch was handed out"


class TooManyWorlds(Exception):
    """The search has used up its choices."""


@dataclass
class Scene:
    """The facts of a case as instants, and what a world may choose."""

    case: Case
    times: Times = field(default_factory=Times)
    #: Whether the facts alone contradict each other; then there is no world.
    contradiction: str | None = None

    def __post_init__(self) -> None:
        case, self._choices = self.case, count()
        self.decisions, self.markers = case.all_decisions, list(case.span.markers)
        if max(len(self.decisions), len(self.markers)) > COMPARED:
            self._cut()
        steps = {
            "the clocks of brokers contradict each other": self._compare_clocks,
            "the records of its coordinator contradict each other": self._order_decisions,
            "what was written here contradicts itself, or the coordinator": self._order_partition,
        }
        if max(len(self.decisions), len(self.markers)) > MOST_COMPARED:
            raise TooManyWorlds
        self.contradiction = next((says for says, step in steps.items() if not step()), None)

    def _cut(self) -> None:
        """Leaves out all that comes before the newest decision whose marker is certainly here: it has no effect on what
        comes after."""
        if (own := self.case.own) is not None and (marked := own.markers[0]) is not None:
            newest, since = own.of, marked.offset
            self.markers = [each for each in self.markers if each.offset >= since]
            self.decisions = [
                each
                for each in self.decisions
                if each.coordinator_partition != newest.coordinator_partition
                or each.last_record_offset >= newest.last_record_offset
            ]

    @cached_property
    def audits(self) -> list[EarlierAudit]:
        """The earlier audits of which a world needs to know."""
        return telling(self.case.earlier, [run for hole in self.case.holes for run in (hole.since_run, hole.until_run)])

    # ---- CLOCKS

    def clock(self, leader_epoch: int | None) -> str:
        """The name of the clock of the partition's leader in a leader epoch."""
        return self.case.clocks.name(leader_epoch)

    def coordinators_clock(self, partition: int, leader_epoch: int | None) -> str:
        return self.case.facts.clocks.name(TRANSACTION_STATE_TOPIC, partition, leader_epoch)

    @property
    def _place(self) -> tuple[str, int]:
        return self.case.span.topic, self.case.span.partition

    def _shows(
        self, times: Times, instant: str, log: tuple[str, int], leader_epoch: int | None, ms: int | None
    ) -> bool:
        """Demands that a clock showed the time `ms` at an instant, give or take how far it moved: the clock of that
        leader epoch of a log. Returns False if that contradicts the rest."""
        clock = self.case.facts.clocks.name(*log, leader_epoch)
        return times.shows(instant, clock, ms, self.case.moved_ms(*log, leader_epoch))

    @cached_property
    def clocks(self) -> list[str]:
        """The names of the clocks that stamped a fact of the case."""
        case, number = self.case, self.case.claim.coordinator_partition
        epochs = {*(each.leader_epoch for each in self.markers), *(each.leader_epoch for each in case.span.stamps)}
        names = {self.clock(each) for each in (*epochs, case.first_leader_epoch)}
        for each in self.decisions:
            names |= {self.coordinators_clock(each.coordinator_partition, epoch) for epoch in _epochs_of(each)}
        if number is not None:
            holes = [epoch for each in case.holes for epoch in (each.epoch, each.after_epoch)]
            for shown in (None, case.claim.record_coordinator_epoch, *holes):
                names.add(self.coordinators_clock(number, shown))
        named = case.facts.clocks.name
        names |= {named(each.topic, each.partition, None) for each in self._siblings}
        names |= {named(each.topic, each.partition, each.leader_epoch) for each in case.unexplained_commits}
        return sorted(names)

    def _compare_clocks(self) -> bool:
        """Demands that any two clocks differ as far as they were compared. A clock is true time less what it shows.
        Returns False if that is impossible."""
        are_compared = all(
            self.times.differ(left, right, *self.case.compared_clocks.apart_ms(left, right))
            for number, left in enumerate(self.clocks)
            for right in self.clocks[number + 1 :]
        )
        if self.audits:
            are_compared &= self.knows_clock(self.times, _AUDITS)
        return are_compared

    def knows_clock(self, times: Times, clock: str) -> bool:
        """Demands that a clock that was never compared differs from each other clock by no more than such clocks may.
        Returns False if that is impossible."""
        apart = UNKNOWN_CLOCKS_DIFFER_MS
        return all(times.differ(each, clock, -apart, apart) for each in self.clocks)

    # ---- What is known of the order of instants : ORDER, ONE_AT_A_TIME, ORIGINS

    def _order_decisions(self) -> bool:
        times, claim, is_possible = self.times, self.case.claim, True
        if claim.is_first_assigned and claim.created_ms is not None and claim.coordinator_partition is not None:
            log = TRANSACTION_STATE_TOPIC, claim.coordinator_partition
            is_possible &= self._shows(times, ASSIGNED, log, None, claim.created_ms)
        for number, each in enumerate(self.decisions):
            log, (made, stamped) = (TRANSACTION_STATE_TOPIC, each.coordinator_partition), _epochs_of(each)
            is_possible &= times.precedes(begun(number), decided(number))
            is_possible &= times.precedes(decided(number), complete(number))
            is_possible &= self._shows(times, decided(number), log, made, decided_ms(each))
            is_possible &= self._shows(times, complete(number), log, stamped, each.completed_ms)
            if clock_ms(each.start_ms) is not None and decided_ms(each) is not None:
                is_possible &= self._shows(times, begun(number), log, made, each.start_ms)
        for (number, each), (after, next_) in pairwise(enumerate(self.decisions)):
            if each.coordinator_partition == next_.coordinator_partition:
                is_possible &= times.precedes(complete(number), decided(after))
        return is_possible

    def is_of_epoch(self, times: Times, name: int | str) -> bool:
        """Whether a decision may have been made after the epoch of the open records was handed out."""
        since_ms, number, then = self.case.span.epoch_since_ms, self.case.claim.coordinator_partition, Times(times)
        if since_ms is None or number is None:
            return True
        log = TRANSACTION_STATE_TOPIC, number
        return self._shows(then, _HANDED_OUT, log, None, since_ms) and then.precedes(_HANDED_OUT, decided(name))

    def _order_partition(self) -> bool:
        times, case, span = self.times, self.case, self.case.span
        is_possible = times.precedes(FIRST, LAST)
        for seen in self.audits:
            is_possible &= times.precedes(FIRST, audit(seen)) and times.shows(audit(seen), _AUDITS, seen.copied_ms)
            for number, decision in enumerate(self.decisions):
                if is_complete(decision) and self.has_read(seen, decision):
                    is_possible &= times.precedes(complete(number), audit(seen))
        instants = [marker(number) for number in range(len(self.markers))]
        for number, each in enumerate(self.markers):
            is_possible &= self._shows(times, marker(number), self._place, each.leader_epoch, each.ms)
        for earlier, later in pairwise([*instants, FIRST]):
            is_possible &= times.precedes(earlier, later)
        if span.is_broker_clock:
            is_possible &= self._shows(times, FIRST, self._place, case.first_leader_epoch, span.first_timestamp_ms)
        self._stamps_in_front = []
        for stamp in self._honest_stamps():
            if stamp.later == FIRST:
                self._stamps_in_front.append(stamp)
            is_possible &= stamp.add_to(times)
        if ASSIGNED in times:
            is_possible &= all(times.precedes(ASSIGNED, each) for each in (FIRST, *instants))
        return is_possible

    def has_read(self, seen: EarlierAudit, decision: CoordinatorDecision) -> bool:
        """Whether an earlier audit read all records of a decision, and the decision was complete before that audit's
        copy of the partition."""
        read = seen.carried
        if read is None or read.coordinator_partition != decision.coordinator_partition:
            return False
        return decision.last_record_offset <= read.until_offset and self.is_before(seen, decision.completed_ms)

    def is_before(self, seen: EarlierAudit, ms: int | None) -> bool:
        """Whether a time of the coordinator, in a record that an earlier audit read, is before that audit's copy of the
        partition. If both its copies are of one instant, clocks need not be compared."""
        is_first = seen.carried is not None and seen.carried.copied_ms == seen.copied_ms
        margin = 0 if is_first else self.case.clocks_differ_ms
        return ms is not None and seen.copied_ms is not None and ms <= seen.copied_ms - margin

    def _honest_stamps(self) -> list[Stamp]:
        """The stamps around the first and the last batch. Stamps that contradict each other are left out: nothing shows
        which of them is wrong."""
        found = [
            Stamp(
                f"{name} in leader epoch {each.leader_epoch}",
                earlier,
                later,
                self.clock(each.leader_epoch),
                at,
                self.case.moved_ms(*self._place, each.leader_epoch),
            )
            for each in self.case.span.stamps
            for name, earlier, later, ms in (
                ("stamp before", None, FIRST, each.before_ms),
                ("stamp behind", FIRST, None, each.behind_ms),
                ("stamp before last", None, LAST, each.before_last_ms),
                ("stamp behind last", LAST, None, each.behind_last_ms),
            )
            if (at := clock_ms(ms)) is not None
        ]

        def agree(left: Stamp, right: Stamp) -> bool:
            both = Times()
            both.precedes(FIRST, LAST)
            for one, other in ((left.clock, right.clock), (right.clock, left.clock)):
                most = self.times.most_ms(one, other)
                if one != other and most is not None:
                    both.add(one, other, most)
            return left.add_to(both) and right.add_to(both)

        return [each for each in found if all(agree(each, other) for other in found)]

    # ---- What a world may choose: what was lost: LOSS, EPOCHS, REGISTERED, CONTENT

    @cached_property
    def lost_markers(self) -> str | None:
        """What may have lost an acknowledged marker after the first batch of the partition, in words; None if nothing
        can."""
        if self._lost_some_time is not None:
            return self._lost_some_time
        first, newest = self.case.first_leader_epoch, self.case.newest_leader_epoch
        return None if first is None or newest is None else self._lost_between(first, newest)

    @cached_property
    def _lost_some_time(self) -> str | None:
        """What may have lost a marker in any leader epoch, in words; None if nothing can."""
        case = self.case
        if case.truncated_markers:
            return f"a marker of it was lost: {', '.join(case.truncated_markers)}"
        if case.truncated_until is not None and case.truncated_until >= case.span.start_offset:
            return "another copy has a truncated tail above its first batch"
        if self._is_beyond:
            return _BEYOND[case.claim.is_nobodys]
        if case.copy.checkpoint_leader_epoch is None and not case.facts.is_metadata_confirmed:
            return "the leader-epoch-checkpoint of the partition was not copied"
        if case.copy.checkpoint_leader_epoch is None and case.facts.hides_elections:
            return "records of the metadata log are lost, and an election may be among them"
        if case.first_leader_epoch is None or case.newest_leader_epoch is None:
            return "the leader epoch of its first batch is not known"
        return None

    def _lost_between(self, first: int, newest: int) -> str | None:
        """How a leader epoch above the first and up to the newest may have lost a marker, in words; None if none
        can."""
        case = self.case
        waits = is_from(_DROPS_MARKERS_FROM, case.kafka_version) is False
        for each in case.elections:
            if each.leader_epoch is None or not first < each.leader_epoch <= newest:
                continue
            if each.is_after_crash:
                lost = "had crashed, or lost its disk, as the only one in sync"
                return f"leader epoch {each.leader_epoch} began with a leader that {lost}"
            if each.is_unclean or (each.leader is None and not waits):
                return f"leader epoch {each.leader_epoch} began with an unclean election, or without a leader"
        # A snapshot does not show whether an election before it was clean.
        shown = {each.leader_epoch for each in case.elections if each.offset is not None}
        if newest > first and (not shown >= set(range(first + 1, newest + 1)) or not case.facts.is_metadata_confirmed):
            return (
                f"leaders changed since (leader epoch {first} to {newest}), and nothing shows that their elections were"
                " clean"
            )
        return None

    @cached_property
    def _siblings(self) -> list[SiblingMarkers]:
        """What its markers on other partitions show."""
        here = self.case.span.topic, self.case.span.partition
        return [each for each in self.case.siblings if (each.topic, each.partition) != here]

    @cached_property
    def _is_beyond(self) -> bool:
        """Whether the open records have lost their marker under transactions v2: their epoch is older than the
        coordinator's, and v2 registers every record."""
        claim = self.case.claim
        # If the id went on with another producer id, its epoch says nothing of this one.
        known = None if claim.owner == Owner.ROTATED else claim.producer_epoch
        return self.case.may_be_v2 and (known is None or known > self.case.span.producer_epoch)

    @cached_property
    def lost_decisions(self) -> str | None:
        """What shows that the coordinator decided something that its log does not have; None if nothing does."""
        return self.lost_behind(None)

    def lost_behind(self, offset: int | None) -> str | None:
        """What shows that the coordinator lost a decision after an offset of its log, in words; None if nothing does.
        `offset` None: anywhere.

        A producer id that no coordinator knows may be among the records that were lost after a certain record only if
        it was assigned after that record. Otherwise its assignment would be in the part of the log that was not lost,
        or its id has expired, and an id that expired decides nothing any more.
        """
        is_nobodys = self.case.claim.is_nobodys
        found = (each for each in self._losses() if not is_nobodys or self._may_be_since(each.since_ms))
        return next((each.why for each in found if offset is None or each.until_offset > offset), None)

    def _may_be_since(self, ms: int | None) -> bool:
        """Whether all that is known of the producer id may be younger than a coordinator's record at `ms`, whose clock
        was never compared."""
        found, since = Times(self.times), f"record at {ms}"
        if not self.knows_clock(found, _LOSER) or not found.shows(since, _LOSER, ms):
            return True
        known = [FIRST, *(marker(number) for number in range(len(self.markers)))]
        return all(Times(found).precedes(since, each) for each in known)

    def _losses(self) -> Iterator[Loss]:
        """What shows that decisions are lost: in the log of each coordinator, and about the producer id."""
        case, claim = self.case, self.case.claim
        facts = case.facts
        logs = facts.all_coordinators if claim.is_nobodys else facts.coordinators_of((claim.coordinator_partition,))
        seen = [each.coordinator_epoch for each in self.markers]
        seen += [case.span.coordinator_epoch, *(each.newest_coordinator_epoch for each in case.siblings)]
        if any(is_ahead(each, logs.newest_leader_epoch) for each in seen):
            yield Loss("a marker has a newer coordinator epoch than all of its records")
        for each in logs.losing:
            yield from each.losses
            is_of_id = case.dossier.producer_id in (each.truncated_ids or ())
            if is_of_id and not each.truncates_decisions and each.lost_tail is not None:
                yield Loss(each.lost_tail)
        if (step := next(filter(_follows_lost, case.odd_steps), None)) is not None:
            why = f"others must have been in front of offset {step.offset}, which no hole shows"
            yield Loss(why, until_offset=step.offset)
        if case.is_made_again:
            yield Loss("an earlier audit read another topic of its coordinator")
        if case.vanished:
            offset = case.vanished[-1].last_record_offset
            yield Loss(f"an earlier audit read a decision at {offset_text(offset)}, which is gone")
        known = claim.highest_epoch if claim.owner == Owner.CURRENT or case.shows_all_decisions else None
        if is_ahead(max(case.span.producer_epoch, case.dossier.newest_epoch or 0), known):
            yield Loss("the partition has a newer producer epoch than all of its records")
        if claim.is_nobodys and self._is_younger_than_expiration:
            why = "a COMMIT of it is younger than the expiration of transactional ids"
            yield Loss(f"{why}, and no coordinator knows its id")

    @property
    def _is_younger_than_expiration(self) -> bool:
        """Whether an id committed so recently that it cannot have expired since."""
        commits = [each.ms for each in self.markers if each.type == "COMMIT"]
        commits += [each.newest_unexplained_commit_ms for each in self.case.siblings]
        newest, copied = highest(clock_ms(each) for each in commits), self.case.coordinators.earliest_captured_at_ms
        after = self.case.thresholds.transactional_id_expiration_ms
        return newest is not None and copied is not None and newest + after > copied


class Stamp(NamedTuple):
    """A time that a broker's clock showed when something was written before a batch, or after it."""

    name: str
    earlier: str | None
    later: str | None
    clock: str
    ms: int
    #: How far that clock moved.
    moved_ms: int

    def add_to(self, times: Times) -> bool:
        is_possible = times.precedes(self.earlier or self.name, self.later or self.name)
        return is_possible and times.shows(self.name, self.clock, self.ms, self.moved_ms)


def _epochs_of(decision: CoordinatorDecision) -> tuple[int | None, int | None]:
    """The leader epochs in which its Prepare and its last record were stamped; None: not shown."""
    made, stamped = decision.coordinator_epoch, decision.stamped_epoch
    return (stamped if made is None or stamped is None else made), stamped


def begun(decision: int | str) -> str:
    return f"decision {decision} began"


def decided(decision: int | str) -> str:
    return f"decision {decision} was made"


def complete(decision: int | str) -> str:
    return f"decision {decision} was complete"


def marker(number: int) -> str:
    return f"marker {number}"


def audit(of: EarlierAudit) -> str:
    return f"copies of audit {of.run_id}"


def is_complete(decision: CoordinatorDecision) -> bool:
    is_said = decision.state is not None and BY_KAFKA_NAME[decision.state] in COMPLETE_STATES
    return is_said or decision.completed_ms is not None


def _follows_lost(step: OddStep) -> bool:
    """Whether a record does not follow from the one before. Kafka: `TransactionMetadata.prepareIncrementProducerEpoch`,
    `prepareAbortOrCommit`, `validPreviousStates`."""
    if step.state_before == "Ongoing" and step.state in ("Empty", None):  # None: a tombstone
        return bool(step.listed_before)  # the producer wrote there, so Ongoing was acknowledged
    if step.state_before == "Ongoing" and step.start_ms != step.start_before_ms:
        return True
    # KAFKA-19367: an ABORT of 4.0.0 raises the epoch by two.
    most = 2 if (step.state or "").endswith("Abort") else 1
    return is_ahead(step.epoch, (step.epoch_before or 0) + most)
