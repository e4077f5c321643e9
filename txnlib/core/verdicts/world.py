"""The axioms, and every history that agrees with the capture.

A *world* is one history of a producer id. Its instants are names in `Times`: when each decision began, was decided and
was complete, when each marker was written, when the first and the last open batch were; clocks are names there, too.

`AXIOMS` says what holds in every world: the premises from which everything here is concluded. Some bound instants;
others say what a world may choose: which decision each marker carries out, which decisions no record shows, and what
was lost.

A choice needs a fact of the capture that allows it. So what is shown need not be believed in one way, and what is not
shown need not be foreseen:

* No COMMIT includes the open records if some world exists, and in none of them does a COMMIT cover these records and
  lack its marker here.
* From a contradiction nothing is proven. A marker that no decision explains, a clock that lies, a batch that is older
  than its producer id leave no world.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple

from txnlib.core.copies import is_above
from txnlib.core.display import instant
from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.verdicts.case_facts import lists
from txnlib.core.verdicts.dossier import (
    MOST_MARKERS,
    CoordinatorDecision,
    EarlierAudit,
    Hole,
    Owner,
)
from txnlib.core.verdicts.match import is_of_its_kind
from txnlib.core.verdicts.reason import Reason
from txnlib.core.verdicts.scene import (
    CONTROLLER,
    FIRST,
    Scene,
    TooManyWorlds,
    audit,
    begun,
    complete,
    decided,
    is_complete,
    marker,
)
from txnlib.core.verdicts.times import Times


class Axiom(StrEnum):
    """The name of a premise."""

    ORDER = "ORDER"
    CLOCKS = "CLOCKS"
    EVERY_MARKER = "EVERY_MARKER"
    ONE_DECISION = "ONE_DECISION"
    ONE_AT_A_TIME = "ONE_AT_A_TIME"
    COMPACTION = "COMPACTION"
    LOSS = "LOSS"
    EPOCHS = "EPOCHS"
    REGISTERED = "REGISTERED"
    ORIGINS = "ORIGINS"
    CONTENT = "CONTENT"
    FILES = "FILES"
    CARRIED = "CARRIED"


@dataclass(frozen=True, slots=True)
class Premise:
    """What an axiom says, where Kafka says so, and what a world makes of it."""

    says: str
    source: str
    gives: str


AXIOMS: Final[Mapping[Axiom, Premise]] = {
    Axiom.ORDER: Premise(
        "The records of a log were written in the order of their offsets, by leaders whose epochs never fall.",
        "UnifiedLog.append, LeaderEpochFileCache.assign",
        "the order of the instants of a log",
    ),
    Axiom.CLOCKS: Premise(
        "A decision and its marker bound the difference of two clocks: the marker is written after the decision, and"
        " before its completion. What all pairs of two clocks have in common is their offset. Where that is nothing,"
        " they moved, and what they stamp is off by as much. Two that were never compared differ by five minutes, or"
        " as far as anything shows. Stamps that contradict each other prove nothing.",
        "TransactionMarkerRequestCompletionHandler.onComplete",
        "bounds between clocks, and between an instant and the clock that stamped it",
    ),
    Axiom.EVERY_MARKER: Premise(
        "A decision that is complete has written a marker to each partition that it lists; from 4.2 on, but for those"
        " without a leader.",
        "TransactionMarkerChannelManager.maybeWriteTxnCompletion",
        "a complete decision has a marker here, unless it was deleted or lost",
    ),
    Axiom.ONE_DECISION: Premise(
        "A marker carries out one decision, and so does its repeat. Only an ABORT may be one by hand. A COMMIT that"
        " no record explains is a decision that its coordinator has lost, and where one was lost, others may be.",
        "TransactionCoordinator.endTransaction, Admin.abortTransaction",
        "the choices of a marker",
    ),
    Axiom.ONE_AT_A_TIME: Premise(
        "Transactions of a producer id do not overlap: none begins before the one before is complete.",
        "TransactionCoordinator.handleAddPartitionsToTransaction (CONCURRENT_TRANSACTIONS)",
        "the order of decisions, and that markers have the same one",
    ),
    Axiom.COMPACTION: Premise(
        "Compaction removes a record only if a newer one of its key is in the log, and nothing from the end of the"
        " hole on. So it never removes the newest record of an id.",
        "Cleaner.shouldRetainRecord",
        "hidden decisions that were completed, each in a hole",
    ),
    Axiom.LOSS: Premise(
        "What was acknowledged vanishes only by an election whose leader was not in sync, by a leader that crashed as"
        " the only one in sync, or lost its disk, with a topic that was made again, or with a truncated tail. It is the"
        " end of a log that vanishes, and nothing in front of that. Of a coordinator, that may be decisions that were"
        " prepared and never completed.",
        "ReplicationControlManager, PartitionRegistration, LeaderRecoveryState",
        "lost markers; hidden decisions that need not have a marker",
    ),
    Axiom.EPOCHS: Premise(
        "Epochs of an id rise by one, and each is written before a client has it. An end under transactions v2 has"
        " the epoch behind that of its records. No other transaction has their epoch, except those"
        " from before the level became 2.",
        "TransactionMetadata.prepareIncrementProducerEpoch, prepareAbortOrCommit; KAFKA-18227",
        "which decision can be of the open records; that the log lacks an epoch",
    ),
    Axiom.REGISTERED: Premise(
        "Under transactions v2, no record is written that is not registered. What counts is the level of that time.",
        "KIP-890, AddPartitionsToTxnManager",
        "open records below their coordinator's epoch have lost their marker",
    ),
    Axiom.ORIGINS: Premise(
        "Nothing of a producer id precedes its assignment. A log that is younger than the batch does not tell what"
        " was decided before. An id expires only after transactional.id.expiration.ms.",
        "ProducerIdManager, TransactionStateManager.removeExpiredTransactionalIds",
        "the oldest instant of the producer id; hidden decisions of an earlier topic",
    ),
    Axiom.CONTENT: Premise(
        "Each coordinator epoch that a marker of any id of a coordinator partition names is a leader epoch of its"
        " log. A log without a hole has none in its content: a Prepare keeps its start, and what was begun was ended.",
        "TransactionStateManager.appendTransactionToLog, TransactionMetadata.validPreviousStates",
        "hidden decisions that the coordinator lost",
    ),
    Axiom.FILES: Premise(
        "Every file of a topic id speaks: segments of any copy, snapshots, transaction indices, checkpoints, and an"
        " empty control batch, which was a marker.",
        "ProducerStateManager, TransactionIndex, LeaderEpochCheckpointFile",
        "the first statement of the proof (`abort_proof`)",
    ),
    Axiom.CARRIED: Premise(
        "What an earlier audit read of the same topic id stays an event, also where compaction has removed it since."
        " Where a newer leader epoch begins below what was committed then, the log has lost the rest. Proofs are made"
        " again from all events.",
        "the column `carried` of open_transactions",
        "decisions, holes that are filled, and when a marker was not yet here",
    ),
}


#: Most choices that a search tries. What it has not found by then is not proven.
MOST_CHOICES: Final = 4_000
#: Reasons that mean that the producer id is never used again: no decision about it can follow.
GIVEN_UP: Final = frozenset(
    {
        Reason.PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR,
        Reason.TRANSACTIONAL_ID_EXPIRED,
        Reason.PRODUCER_ID_ROTATED,
    }
)
#: The name of a decision that no record shows and that may include open records.
NO_RECORD: Final = "of no record"


class Hidden(NamedTuple):
    """A way in which a decision is hidden: why no record shows it, and whether it was completed, so that it wrote its
    marker."""

    why: str
    is_complete: bool
    times: Times
    #: Whether it comes before all decisions of which records are left above the holes of the log.
    is_in_front: bool = False


@dataclass(frozen=True, slots=True)
class World:
    """A history that agrees with the capture."""

    times: Times
    #: Number of a decision -> number of its first marker.
    own: dict[int, int]
    #: Whether an ABORT here belongs to no decision, shown or hidden: it was written by hand, or the log lacks its
    #: decision.
    has_unexplained: bool = False


class Worlds(Scene):
    """The worlds of a case: its facts, and what a world may choose."""

    def lost_by_audits(self, times: Times, name: int | str) -> Iterator[Times]:
        """The ways in time in which the marker of a decision was lost, as far as earlier audits allow.

        Each of these audits saw the transaction open, under some leader. So a marker that was written between the
        copies of two audits was also lost between them.
        """
        case, found, is_possible = self.case, Times(times), True
        first, newest = case.first_leader_epoch, case.newest_leader_epoch
        for each in self.audits:
            if self._had_given_up(each) and not case.claim.owns_producer_id:
                is_possible &= found.precedes(complete(name), audit(each))
        if not is_possible:
            return
        if first is None or newest is None or self._lost_some_time is not None:
            yield found
            return
        seen: list[EarlierAudit] = []
        epochs = [first]
        for each in self.audits:  # a copy that is older than one before tells nothing new
            if each.newest_leader_epoch is not None and each.newest_leader_epoch >= epochs[-1]:
                seen.append(each)
                epochs.append(each.newest_leader_epoch)
        epochs.append(newest)
        for number, (since, until) in enumerate(pairwise(epochs)):
            then = Times(found)
            if self._lost_between(since, until) is None:
                continue
            is_between = number == 0 or then.add(audit(seen[number - 1]), complete(name), -1)
            if is_between and (number == len(seen) or then.precedes(decided(name), audit(seen[number]))):
                yield then

    def _had_given_up(self, seen: EarlierAudit) -> bool:
        """Whether the producer id was never used again after an earlier audit."""
        if seen.reason != Reason.TRANSACTIONAL_ID_EXPIRED:
            return seen.reason in GIVEN_UP
        known, expires_after = (
            self.case.coordinators_known_until_ms,
            self.case.thresholds.transactional_id_expiration_ms,
        )
        return known is not None and seen.copied_ms is not None and known - seen.copied_ms < expires_after

    # ---- What a world may choose: decisions that no record shows: COMPACTION, LOSS, CARRIED

    def hidden(self, times: Times, name: str, lost_behind: int | None = None) -> Iterator[Hidden]:
        """The ways in which a decision can be hidden, each with its instants `decided(name)` and `complete(name)`.

        `lost_behind`: for a decision that its coordinator lost, the offset of a record before it.
        """
        case, claim, of = self.case, self.case.claim, self.case.coordinator
        before = Times(times)
        before.precedes(decided(name), complete(name))
        yield from self._lost(before, name, lost_behind)
        if claim.is_nobodys or not of.shows_absence:
            why = (
                "no coordinator has a record of the producer id"
                if claim.is_nobodys
                else "its coordinator's log is not whole"
            )
            yield Hidden(why, True, before)
            return
        if len(case.dossier.decisions) >= MOST_MARKERS and case.own is None:
            yield Hidden(f"only the newest {MOST_MARKERS} decisions of its producer were compared", True, before, True)
            return
        if case.is_assigned_behind_holes:
            return
        if claim.owner == Owner.CURRENT and claim.state == "Empty" and claim.producer_epoch == 0:
            return  # the newest record of the id assigned the producer id
        for hole in case.holes:
            if (compacted := self._compacted(before, name, hole)) is not None:
                yield Hidden(f"compaction removed records below offset {hole.end_offset}", True, compacted, True)

    def _lost(self, times: Times, name: str, behind: int | None) -> Iterator[Hidden]:
        """The ways in which its coordinator can have lost the decision. Then it was perhaps never carried out."""
        case = self.case
        if (lost := self.lost_behind(behind)) is not None:
            yield Hidden(f"records of its coordinator are missing: {lost}", False, Times(times))
        # A marker in front of the batch, of a decision that is there, is of the same topic.
        is_older = not is_above(case.span.start_offset, case.span.oldest_decided_offset)
        born_ms = case.coordinators.born_ms if is_older else None
        if born_ms is not None and (until := self._until(times, decided(name), born_ms)) is not None:
            yield Hidden(f"{TRANSACTION_STATE_TOPIC} was made only at {instant(born_ms)}", False, until)
        for each in case.coordinators.unclean_elections:
            until = Times(times) if each.at_ms is None else self._until(times, decided(name), each.at_ms)
            if until is not None:
                what = (
                    "election of a leader that had crashed, or lost its disk,"
                    if each.is_after_crash
                    else "unclean election"
                )
                yield Hidden(f"an {what} of a partition of {TRANSACTION_STATE_TOPIC} may have lost it", False, until)

    def _until(self, times: Times, what: str, ms: int) -> Times | None:
        """The times in which `what` is before an instant by the controller's clock, which was never compared; None if
        that is impossible."""
        found, until = Times(times), f"at {ms} of the controller"
        is_possible = (
            self.knows_clock(found, CONTROLLER) and found.shows(until, CONTROLLER, ms) and found.precedes(what, until)
        )
        return found if is_possible else None

    def _compacted(self, times: Times, name: str, hole: Hole) -> Times | None:
        """The times in which the records of a decision were in a hole that compaction made: before the record after the
        hole, and before the next decision of the id that is left. None if that is impossible."""
        claim, found, is_possible = self.case.claim, Times(times), True
        log = TRANSACTION_STATE_TOPIC, claim.coordinator_partition or 0
        if hole.ms is not None:
            end = f"end of the hole below offset {hole.end_offset}"
            is_possible &= self._shows(found, end, log, hole.epoch, hole.ms) and found.precedes(complete(name), end)
        if hole.after_offset is not None:
            begin = f"record at offset {hole.after_offset}"
            is_possible &= self._shows(found, begin, log, hole.after_epoch, hole.after_ms)
            is_possible &= found.precedes(begin, decided(name))
        for seen in self.audits:
            if seen.run_id == hole.until_run and self.is_before(seen, hole.ms):
                is_possible &= found.precedes(complete(name), audit(seen))
            if seen.run_id == hole.since_run and not self._was_outdated(seen):
                is_possible &= found.add(audit(seen), decided(name), -1)
        for at, each in enumerate(self.decisions):
            is_its_own = each.coordinator_partition == claim.coordinator_partition
            is_kept = each.last_record_offset >= hole.end_offset or each.last_record_offset == claim.record_offset
            if is_its_own and is_kept:
                next_ = decided(at) if clock_ms(each.start_ms) is None else begun(at)
                is_possible &= found.precedes(complete(name), next_)
                break
        return found if is_possible else None

    def _was_outdated(self, seen: EarlierAudit) -> bool:
        """Whether an earlier audit had an outdated copy of the coordinator: it lacks the newest record of the id, which
        is older than that audit's copies."""
        claim, read = self.case.claim, seen.carried
        is_older = clock_ms(claim.record_ms) is not None and not is_above(claim.record_ms, seen.copied_ms)
        return is_older and read is not None and is_above(claim.record_offset, read.until_offset)

    def are_siblings_explained(self, times: Times) -> bool:
        """Whether a hidden decision can explain each COMMIT of the producer on another partition that no shown decision
        explains."""
        return all(
            self._may_be_hidden(times, (each.topic, each.partition), each.leader_epoch, each.ms)
            for each in self.case.unexplained_commits
        )

    def _may_be_hidden(self, times: Times, log: tuple[str, int], leader_epoch: int | None, ms: int | None) -> bool:
        """Whether a hidden decision can explain a marker of the producer on another partition, at the time `ms`."""
        this = "marker on {}-{}".format(*log)
        name = f"of {this}"
        return any(
            self._shows(way.times, this, log, leader_epoch, ms)
            and way.times.precedes(decided(name), this)
            and way.times.precedes(this, complete(name))
            for way in self.hidden(times, name)
        )

    @cached_property
    def has_unexplained_elsewhere(self) -> bool:
        """Whether another partition has a marker that no decision explains, not even a hidden one."""
        return any(
            not self._may_be_hidden(self.times, (each.topic, each.partition), None, each.newest_unexplained_ms)
            for each in self._siblings
            if each.newest_unexplained_ms is not None
        )

    # ---- The worlds: EVERY_MARKER, ONE_DECISION

    def worlds(self) -> Iterator[World]:
        """Every way to explain the markers here in which each complete decision has its marker, unless the marker may
        be lost or deleted."""
        for world in self._explained(0, 0, self.times, {}):
            lacking = (number for number in range(len(self.decisions)) if number not in world.own)
            is_marked = all(self._may_lack_its_marker(world.times, number) for number in lacking)
            if is_marked and self.are_siblings_explained(world.times):
                yield world

    def _explained(
        self, at: int, oldest: int, times: Times, own: dict[int, int], *, has_unexplained: bool = False
    ) -> Iterator[World]:
        """The worlds that explain the markers from number `at` on by decisions from number `oldest` on: markers and
        decisions have the same order."""
        if next(self._choices) > MOST_CHOICES:
            raise TooManyWorlds
        if at == len(self.markers):
            yield World(times, own, has_unexplained)
            return
        here, this, is_explained = self.markers[at], marker(at), False
        for number in range(oldest, len(self.decisions)):
            if (then := self.within(times, number, at)) is not None:
                is_explained = True
                found = {**own, number: own.get(number, at)}
                yield from self._explained(at + 1, number, then, found, has_unexplained=has_unexplained)
        name = f"of {this}"
        for each in self.hidden(times, name):
            if each.times.precedes(decided(name), this) and each.times.precedes(this, complete(name)):
                is_explained = True
                yield from self._explained(at + 1, oldest, each.times, own, has_unexplained=has_unexplained)
        # Only an ABORT may be one by hand.
        if here.type != "COMMIT" and (self.lost_markers is not None or not is_explained):
            is_odd = has_unexplained or not is_explained
            yield from self._explained(at + 1, oldest, times, own, has_unexplained=is_odd)

    def within(self, times: Times, number: int, at: int) -> Times | None:
        """The times in which a decision wrote a marker after it was made and before it was complete; None if the marker
        cannot be its own."""
        then, of = Times(times), self.decisions[number]
        if not is_of_its_kind(of, self.markers[at]) or not then.precedes(decided(number), marker(at)):
            return None
        return None if is_complete(of) and not then.precedes(marker(at), complete(number)) else then

    def may_have_marker(self, number: int) -> bool:
        """Whether some marker here may be that of a decision."""
        return any(self.within(self.times, number, at) is not None for at in range(len(self.markers)))

    def lists_partition(self, decision: CoordinatorDecision) -> bool | None:
        """Whether a decision lists the partition; None if only a record without its partitions is left."""
        return None if decision.partitions is None else lists(decision.partitions, self.case.span)

    def _may_lack_its_marker(self, times: Times, number: int) -> bool:
        decision = self.decisions[number]
        if decision.partitions is None or not is_complete(decision):
            return True
        return self.is_deleted(times, number) or self._is_lost(times, number)

    def is_deleted(self, times: Times, number: int) -> bool:
        """Whether the marker of a decision may have been in a part of the log that retention or compaction removed.

        Retention removes the beginning of a log, so a removed marker came before all that is left.
        """
        copy, then = self.case.copy, Times(times)
        if copy.gap_offset is not None:
            return then.precedes(decided(number), FIRST)
        if copy.begins_at_start and not copy.first_offset:
            return False
        left = [FIRST, *(marker(at) for at in range(len(self.markers))), *(each.name for each in self._stamps_in_front)]
        return all(then.precedes(decided(number), each) for each in left)

    def _is_lost(self, times: Times, number: int) -> bool:
        """Whether a leader may have lost the marker of a decision: since the open records, or before them under an
        earlier leader."""
        if self.lost_markers is None:
            return False
        had_one_leader = self.case.first_leader_epoch == 0 and self.case.shows_all_markers
        ways = self.lost_by_audits(times, number)
        return not had_one_leader or any(way.may_be_before(FIRST, complete(number)) for way in ways)
