"""Facts of one open transaction, up to the decisions about it.

Facts are gathered (`dossier`, `cluster_facts`), or follow from those: then each is a property, beside its reason. None
means "not known", never "no".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from txnlib.core.cluster_metadata import Election, elections_of
from txnlib.core.copies import CoverageRow, highest, is_above, is_current, lowest
from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import MAX_SEQUENCE, UNKNOWN_CLOCKS_DIFFER_MS
from txnlib.core.rows import TopicPartition
from txnlib.core.verdicts.clock_bounds import ComparedClocks
from txnlib.core.verdicts.cluster_facts import ClusterFacts
from txnlib.core.verdicts.coordinators import CoordinatorPartition, PartitionFacts
from txnlib.core.verdicts.dossier import (
    MOST_MARKERS,
    Carried,
    CheckedBatch,
    Claim,
    CoordinatorDecision,
    Dossier,
    EarlierAudit,
    EpochStamps,
    Hole,
    OddStep,
    OpenSpan,
    Owner,
    SiblingMarkers,
    UnexplainedCommit,
)
from txnlib.core.verdicts.earlier_audits import are_one, holes, is_same_transaction, with_earlier
from txnlib.core.verdicts.match import Comparison, Histories, Marked, decided_ms, with_unexplained
from txnlib.core.verdicts.whose_clock import PartitionClocks, newest_leader_epoch, newest_ms, written_by_ms

#: Owners of a producer id, the best claim first.
_BY_CLAIM: Final = (Owner.CURRENT, Owner.NEXT, Owner.ROTATED, Owner.EXPIRED)


@dataclass(frozen=True, kw_only=True)
class CaseFacts:
    """What is gathered of one open transaction, and what follows from that. `Case` adds what a verdict asks."""

    dossier: Dossier
    span: OpenSpan
    facts: ClusterFacts

    @cached_property
    def claim(self) -> Claim:
        """The transactional id of the producer id (`best_claim`)."""
        return best_claim(self.dossier.claims, self.span)

    @cached_property
    def coordinator(self) -> CoordinatorPartition:
        """The coordinator partition of its id; one without copies if there is none."""
        return self.facts.coordinator(self.claim.coordinator_partition)

    @cached_property
    def place(self) -> PartitionFacts:
        """Its partition, as the tables of the cluster show it."""
        return self.facts.partition(self.span.topic, self.span.partition)

    @cached_property
    def copy(self) -> CoverageRow:
        """The judged copy of its partition."""
        return self.place.judged

    @cached_property
    def clocks(self) -> PartitionClocks:
        return self.facts.clocks.of(self.span.topic, self.span.partition)

    @cached_property
    def elections(self) -> list[Election]:
        """The elections of the partition."""
        return elections_of(self.copy.topic_id, self.place.elections)

    @cached_property
    def first_batch_crc(self) -> int | None:
        """The CRC of the first batch. With the topic id, it lets a later audit recognise the transaction. None if not
        known."""
        first = self.span.first_check
        return None if first is None else first.crc

    @cached_property
    def earlier(self) -> list[EarlierAudit]:
        """The earlier audits that saw this very transaction, oldest first."""
        seen = [each for each in self.span.earlier if is_same_transaction(each, self.copy, self.first_batch_crc)]
        return sorted(seen, key=lambda each: each.as_of_ms)

    @cached_property
    def carried_by(self) -> EarlierAudit | None:
        """The newest earlier audit that read the log of its coordinator. If no transactional id is known now, that is
        the coordinator of the id that it had then."""
        own = self.claim.coordinator_partition

        def has_read(audit: EarlierAudit) -> bool:
            read = audit.carried
            if read is None or own not in (None, read.coordinator_partition):
                return False
            topic_id = self.facts.coordinator(read.coordinator_partition).judged.topic_id
            return topic_id == read.topic_id or None in (topic_id, read.topic_id)

        return next(filter(has_read, reversed(self.earlier)), None)

    @cached_property
    def is_made_again(self) -> bool:
        """Whether an earlier audit read `__transaction_state` under another topic id, so that the topic was created
        again."""
        read = [each.carried for each in self.earlier if each.carried is not None]
        now = [self.facts.coordinator(each.coordinator_partition).judged.topic_id for each in read]
        return any(None not in (id_, of.topic_id) and id_ != of.topic_id for id_, of in zip(now, read, strict=True))

    @property
    def vanished(self) -> list[CoordinatorDecision]:
        """The decisions that an earlier audit read and this capture lacks, although no hole hides them."""
        known = self.dossier.decisions
        if self.carried is None or len(known) >= MOST_MARKERS:
            return []
        end = self.facts.coordinator(self.carried.coordinator_partition).hole_end or 0
        behind = [each for each in self.carried.decisions if each.last_record_offset >= end]
        return [each for each in behind if not any(are_one(each, other) for other in known)]

    @property
    def carried(self) -> Carried | None:
        """What the audit `carried_by` read of the coordinator's log, and audits before it."""
        return None if self.carried_by is None else self.carried_by.carried

    @cached_property
    def holes(self) -> tuple[Hole, ...]:
        """What is missing of the records of its id, in all that was read of its coordinator's log."""
        of, claim, end = self.coordinator, self.claim, self.hole_end
        tonight = None
        if end is not None and end == of.hole_end:
            tonight = Hole(end_offset=end, ms=of.hole_ms, epoch=of.hole_epoch)
        elif end is not None:
            tonight = Hole(end_offset=end, ms=claim.hole_ms, epoch=claim.record_coordinator_epoch)
        return holes(tonight, self.carried_by, claim.record_offset)

    @cached_property
    def to_carry(self) -> Carried | None:
        """What later audits need of what was read of its coordinator's log."""
        of, claim, carried = self.coordinator, self.claim, self.carried
        if claim.coordinator_partition is None:
            return carried
        if of.last_offset is None:
            return None
        until = of.last_offset, of.last_ms, of.newest_coordinator_epoch, of.known_until_ms
        if carried is not None and carried.until_offset > of.last_offset:
            until = carried.until_offset, carried.until_ms, carried.until_epoch, carried.copied_ms
        return Carried(
            coordinator_partition=claim.coordinator_partition,
            topic_id=of.judged.topic_id,
            holes=self.holes,
            until_offset=until[0],
            until_ms=until[1],
            until_epoch=until[2],
            copied_ms=until[3],
            is_current=of.best is not None and is_current(of.best.role, of.best.ends),
            is_assigned_behind=self.is_assigned_behind_holes or (carried is not None and carried.is_assigned_behind),
            decisions=tuple(self.all_decisions[-MOST_MARKERS:]),
            odd_steps=self.odd_steps,
            unexplained=self.unexplained_commits,
        )

    @cached_property
    def all_decisions(self) -> list[CoordinatorDecision]:
        """The decisions that list, or may list, the partition, of this capture and of earlier ones, in the order of
        their coordinator's log."""
        earlier = () if self.carried is None else self.carried.decisions
        found = with_earlier(self.dossier.decisions, earlier)
        here = [each for each in found if each.partitions is None or lists(each.partitions, self.span)]
        return sorted(here, key=lambda each: (each.coordinator_partition, each.last_record_offset))

    @cached_property
    def odd_steps(self) -> tuple[OddStep, ...]:
        """The records of its id that do not follow from the record before them, in this capture and in earlier ones."""
        earlier = () if self.carried is None else self.carried.odd_steps
        return tuple({each.offset: each for each in (*earlier, *self.claim.odd_steps)}.values())

    @cached_property
    def unexplained_commits(self) -> tuple[UnexplainedCommit, ...]:
        """For each other partition, the newest COMMIT marker that no decision explains, although the coordinator was
        copied after it. From this capture and from earlier ones."""
        here, known = (self.span.topic, self.span.partition), self.coordinator.known_until_ms
        found = (
            {} if self.carried is None else {(each.topic, each.partition): each for each in self.carried.unexplained}
        )
        for each in self.siblings:
            ms, place = each.newest_unexplained_commit_ms, (each.topic, each.partition)
            is_read = known is None or (ms is not None and ms <= known - UNKNOWN_CLOCKS_DIFFER_MS)
            if ms is not None and place != here and is_read:
                by = each.newest_unexplained_commit_leader_epoch
                found[place] = UnexplainedCommit(topic=each.topic, partition=each.partition, ms=ms, leader_epoch=by)
        return tuple(found.values())

    @cached_property
    def newest_leader_epoch(self) -> int | None:
        """The newest leader epoch of the partition in any copy, also of those without their logs."""
        beside = (each.leader_epoch for each in self.copy.copies_beside or ())
        return highest((newest_leader_epoch(self.place.captured, self.elections), *beside))

    # ---- Its beginning

    @cached_property
    def first_leader_epoch(self) -> int | None:
        """The leader epoch of the first batch."""
        first = self.span.first_check
        return first.partition_leader_epoch if first else None

    @cached_property
    def is_begin_gone(self) -> bool:
        """Whether the first batch is gone: only a producer snapshot, or the answer of the leader, shows where the
        transaction began."""
        begins = max(self.copy.log_start_offset or 0, self.copy.read_from_offset or 0)
        return self.span.first_check is None and self.span.start_offset < begins

    @cached_property
    def is_start_exact(self) -> bool:
        """Whether the log shows the beginning of the transaction; if not, it may have begun below the first captured
        offset."""
        marker = self.span.marker
        closed = highest((marker.offset if marker else None, self.span.closed_offset))
        is_proven = self.is_begin_gone or is_start_proven(self.span.checks, self.copy, closed)
        return self.span.is_start_exact and is_proven

    # ---- Decisions and markers

    @cached_property
    def marked(self) -> list[Marked]:
        """The decisions that list, or may list, the partition, each with what is known of its marker. Oldest first."""
        here = [each for each in self.dossier.decisions if each.partitions is None or lists(each.partitions, self.span)]
        histories = Histories(
            decisions=sorted(here, key=lambda each: (each.coordinator_partition, each.last_record_offset)),
            markers=self.span.markers,
            compared=Comparison(self.clocks, is_strict=True),
            may_be_deleted=self.may_be_deleted,
            has_hole=self.copy.gap_offset is not None,
            # Compaction keeps the newest record of an id, so a hidden decision has another one after it.
            hides=lambda after: after is not None and not self.has_all_decisions,
        )
        return histories.marked()

    def may_be_deleted(self, decision: CoordinatorDecision) -> bool:
        """Whether the marker of a decision may have been in a part of the log that retention or compaction removed.

        It was not, if an older stamp is left before the first batch, or if every stamp that is left is older than the
        decision.
        """
        copy, stamps = self.copy, self.span.stamps
        begins = (copy.begins_at_start and not copy.first_offset) or any(each.before_ms is not None for each in stamps)
        if begins and copy.gap_offset is None:
            return False
        oldest, ended = lowest(each.behind_ms for each in stamps), decided_ms(decision)
        differ = self.clocks.today(decision)
        return oldest is None or ended is None or ended + differ.offset_ms <= oldest + differ.differ_ms

    @cached_property
    def siblings(self) -> tuple[SiblingMarkers, ...]:
        """What its markers on other partitions show. Repeats of a decision's marker do not count as unexplained."""
        clocks, epoch = self.facts.clocks, self.span.producer_epoch
        return tuple(
            with_unexplained(each, clocks.of(each.topic, each.partition), epoch) for each in self.span.siblings
        )

    @cached_property
    def has_all_decisions(self) -> bool:
        """Whether every decision about the producer id since it was assigned is in the dossier."""
        return len(self.dossier.decisions) < MOST_MARKERS and self.shows_all_decisions

    @cached_property
    def shows_all_decisions(self) -> bool:
        """Whether the coordinator's log has every record about the producer id since it was assigned."""
        return self.coordinator.shows_absence and (self.hole_end is None or self.is_assigned_behind_holes)

    @cached_property
    def hole_end(self) -> int | None:
        """The offset below which records of its id may be missing in the coordinator's log; None if none are.

        Compaction removes a record only if a newer one of its id is in the log. So records that are missing above the
        newest record of an id are of other ids. Kafka: `Cleaner.shouldRetainRecord`.
        """
        of, since = self.coordinator, self.claim.complete_from
        # What is missing at the end of the log was not compacted.
        return of.hole_end if since is None or of.hole_end != of.hole_offset else since or None

    @cached_property
    def is_assigned_behind_holes(self) -> bool:
        """Whether the record that assigned the producer id is behind all records of its id that may be missing."""
        hole, first = self.hole_end, self.claim.first_record_offset
        return self.claim.is_first_assigned and hole is not None and first is not None and first >= hole

    @cached_property
    def shows_all_markers(self) -> bool:
        """Whether the copy has its beginning and no hole. Then it lacks only markers that a leader lost."""
        return self.copy.begins_at_start and self.copy.first_offset == 0 and self.copy.gap_offset is None

    @cached_property
    def own(self) -> Marked | None:
        """The newest decision whose marker is certainly here, by clocks or by an epoch of its own; None if there is
        none."""
        return next((each for each in reversed(self.marked) if each.is_marked and each.is_alone), None)

    # ---- Times by brokers' clocks

    @cached_property
    def compared_clocks(self) -> ComparedClocks:
        """What other producers' decisions and markers show of clocks. If the leader of an epoch is not known, its clock
        counts as wrong as the worst clock of the partition's replicas."""
        found = self.facts.clocks.compared(self.dossier.producer_id)
        epochs = {each.leader_epoch for each in self.span.stamps} | {each.leader_epoch for each in self.span.markers}
        unknown = [name for each in epochs if (name := self._unknown_clock(each)) is not None]
        if not unknown:
            return found
        off = max(found.off_ms(each) for each in self._replicas)
        return replace(found, unknown=dict.fromkeys(unknown, off))

    def moved_ms(self, topic: str, partition: int, leader_epoch: int | None) -> int:
        """How far the clock of a leader epoch of a log moved at least, in ms: by the pairs in that log, or by all pairs
        of the clock, whichever is more."""
        found, clock = self.compared_clocks, self.facts.clocks.name(topic, partition, leader_epoch)
        epoch = -1 if leader_epoch is None else leader_epoch
        here = (topic, partition) == (self.span.topic, self.span.partition)
        may_be = self._replicas if here and self._unknown_clock(leader_epoch) is not None else [clock]
        return max(found.moved_at_ms(topic, partition, epoch), *map(found.moved_ms, may_be))

    @cached_property
    def _replicas(self) -> list[str]:
        """The clocks of the brokers that have a copy of the partition, or lead it."""
        known = {each.broker for each in self.place.captured} | {self.copy.leader}
        return sorted(each for each in known if each is not None) or [""]

    def _unknown_clock(self, leader_epoch: int | None) -> str | None:
        """The name of the clock of a leader epoch of the partition, if its leader is not known; else None."""
        place = self.span.topic, self.span.partition
        is_known = leader_epoch is None or leader_epoch in self.facts.clocks.named.get(place, {})
        return None if is_known else self.clocks.name(leader_epoch)

    @cached_property
    def stamps(self) -> list[EpochStamps]:
        """The stamps around the transaction, converted to the coordinators' clocks. Where a clock moved, each stamp is
        as early or as late as it may be."""
        found, place = [], (self.span.topic, self.span.partition)
        for each in self.span.stamps:
            ahead = self.clocks.ahead_ms(each.leader_epoch, self.compared_clocks)
            moved = self.moved_ms(*place, each.leader_epoch)

            def by_coordinators(ms: int | None, off: int) -> int | None:
                at = clock_ms(ms)
                return None if at is None else at - off

            found.append(
                replace(
                    each,
                    before_ms=by_coordinators(each.before_ms, ahead + moved),
                    before_last_ms=by_coordinators(each.before_last_ms, ahead + moved),
                    behind_ms=by_coordinators(each.behind_ms, ahead - moved),
                    behind_last_ms=by_coordinators(each.behind_last_ms, ahead - moved),
                )
            )
        return found

    @cached_property
    def stamped_before_ms(self) -> int | None:
        """The newest broker-stamped time before the first batch."""
        return newest_ms(each.before_ms for each in self.stamps)

    @cached_property
    def stamped_after_ms(self) -> int | None:
        """The latest time of the first batch, by the stamps behind it."""
        return written_by_ms((each.behind_ms for each in self.stamps), self.stamped_before_ms)


# ---- The owner: docs/rules/copies.md#owners-of-a-producer-id


def lists(partitions: Sequence[TopicPartition], span: OpenSpan) -> bool:
    """Whether the partition of an open transaction is among these."""
    return TopicPartition(span.topic, span.partition) in partitions


def best_claim(claims: Sequence[Claim], span: OpenSpan) -> Claim:
    """The transactional id that an open transaction belongs to; a claim of nobody if no id ever had its producer id.

    If several ids claim it, one that lists the partition wins, then one whose current producer id it is. An id has
    expired if the current copy of its coordinator's log no longer has its last record: compaction keeps the newest
    record of every other id.
    """
    known = [
        replace(claim, owner=Owner.EXPIRED, state=None, partitions=()) if claim.is_superseded else claim
        for claim in claims
    ]
    return min(
        known,
        key=lambda claim: (
            not lists(claim.partitions, span),
            _BY_CLAIM.index(claim.owner),
            -(claim.last_record_offset or 0),
            claim.transactional_id or "",
        ),
        default=Claim(),
    )


# ---- The first batch


def is_start_proven(checks: Sequence[CheckedBatch], copy: CoverageRow, since_offset: int | None = None) -> bool:
    """Whether no batch of the producer can be missing before its first one. `since_offset`: the offset of the marker
    before it, or of a snapshot that has nothing open.

    Within an epoch, the sequences of a producer are consecutive, starting at 0. If they are not, or if there are none
    and the copy has holes or damage, an earlier batch of the transaction may be missing.
    """
    of = {check.place: check for check in sorted(checks, key=lambda check: check.place)}
    before, first = of.get("before"), of.get("first")
    # A hole below the marker before it, or below the snapshot, says nothing about the first batch.
    floor = highest((since_offset, copy.read_from_offset, copy.log_start_offset)) or 0
    has_holes = any(is_above(each, floor) for each in (copy.gap_offset, copy.damaged_offset, copy.first_offset))
    if since_offset is not None and not has_holes:
        return True
    if first is None or first.base_sequence is None:
        return not has_holes
    if before is None:
        # If the log begins late, its snapshot shows what came before.
        begins_late = (copy.read_from_offset or copy.log_start_offset or 0) > 0
        return begins_late or first.base_sequence == 0
    if before.producer_epoch != first.producer_epoch:
        return first.base_sequence == 0
    if before.last_sequence is None:
        return not has_holes
    return first.base_sequence == (0 if before.last_sequence == MAX_SEQUENCE else before.last_sequence + 1)
