"""The case of one open transaction: all that the capture shows of its producer id.

Gathered facts are read where they stand: in its span, its judged copy, its claim, its coordinator, and the facts of the
cluster. What follows from them is a property here, beside its reason. None means "not known", never "no".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Final

from txnlib.core.cluster_metadata import ProducerIdBlock
from txnlib.core.copies import CoverageRow, Role, highest, is_above, is_current, lowest
from txnlib.core.finding import Alarm
from txnlib.core.instants import NO_INSTANT_MS, clock_ms
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS, UNKNOWN_CLOCKS_DIFFER_MS
from txnlib.core.kafka.transaction_state import COMPLETE_STATES
from txnlib.core.verdicts.case_facts import CaseFacts, lists
from txnlib.core.verdicts.cluster_facts import Thresholds
from txnlib.core.verdicts.coordinators import Coordinators
from txnlib.core.verdicts.dossier import MarkerElsewhere, SiblingMarkers
from txnlib.core.verdicts.earlier_audits import is_same_transaction
from txnlib.core.verdicts.match import Marked, began_later_by_epoch
from txnlib.core.verdicts.whose_clock import newest_leader_epoch, newest_ms, written_by_ms


class Crc(Enum):
    """The result of checking the CRCs of the batches that a verdict depends on."""

    VALID = "VALID"
    #: Text has no bytes to check.
    NOT_CHECKED = "NOT_CHECKED"
    INVALID = "INVALID"


_COMPLETE: Final = frozenset(state.kafka_name for state in COMPLETE_STATES)
#: Findings about partitions of `__transaction_state` that cast doubt on every record in them.
OF_WHOLE_COORDINATOR: Final = (Alarm.COORDINATOR_EPOCH_WENT_BACK, Alarm.COPIES_DISAGREE)
#: Those that mean that records of it may be lost: a producer id without an owner may have had one.
OF_LOST_RECORDS: Final = (*OF_WHOLE_COORDINATOR, Alarm.CORRUPT_MESSAGE, Alarm.LIVE_OWNER_UNKNOWN)


@dataclass(frozen=True, kw_only=True)
class Case(CaseFacts):
    """What is known of one open transaction. `of_producer`: the cases of its producer id, itself included."""

    of_producer: Sequence[Case] = field(default=(), repr=False, compare=False)

    @property
    def thresholds(self) -> Thresholds:
        return self.facts.thresholds

    @property
    def kafka_version(self) -> str | None:
        """The version of the brokers; None if it is not known."""
        return self.facts.known_version

    @cached_property
    def alarms(self) -> tuple[str, ...]:
        """Names of findings that forbid an abort: about the partition, the producer id, its transactional ids, and
        their coordinators."""
        wanted = {each.coordinator_partition for each in self.dossier.claims}
        of_coordinators = [
            name
            for each in self.facts.coordinators
            for name in each.alarms
            if (each.partition in wanted and name in OF_WHOLE_COORDINATOR)
            or (self.claim.is_nobodys and name in OF_LOST_RECORDS)
        ]
        return tuple(sorted({*self.place.alarms, *self.dossier.alarms, *of_coordinators}))

    # ---- The judged copy of the partition

    @cached_property
    def is_current(self) -> bool:
        """Whether the copy shows everything up to the instant at which it was taken."""
        return is_current(self.copy.role, self.copy.ends)

    @cached_property
    def captured_by_ms(self) -> int | None:
        """When the copy was taken, in epoch ms: as noted, or at its newest broker stamp, if that is later. None if it
        is not noted."""
        stamp, noted = clock_ms(self.copy.newest_stamp_ms), self.copy.captured_at_ms
        return noted if noted is None or stamp is None or stamp <= noted + CLOCKS_DIFFER_MS else stamp

    @cached_property
    def is_instant_assumed(self) -> bool:
        """Whether nothing notes when its copy, or that of a coordinator it rests on, was taken."""
        return self.copy.is_instant_assumed is not False or self.coordinators.is_instant_assumed

    @property
    def is_instant_refuted(self) -> bool:
        """Whether the copy was taken after its noted instant."""
        return self.is_current and is_above(self.captured_by_ms, self.copy.known_until_ms)

    @cached_property
    def is_answered_closed(self) -> bool:
        """Whether the leader answered a last stable offset above the first batch, so that nothing was open there.

        An answer equal to the log start proves nothing: the leader raises the offset to it, whatever is open.
        """
        stable = self.copy.answered_stable_offset
        return is_above(stable, self.span.start_offset) and is_above(stable, self.copy.log_start_offset or 0)

    @cached_property
    def gap_offset(self) -> int | None:
        """The end of the newest hole in the judged copy, if it is above the start; else None."""
        return self.copy.gap_offset if is_above(self.copy.gap_offset, self.span.start_offset) else None

    @cached_property
    def is_tail_lost(self) -> bool:
        """Whether records above the start are known to be missing or damaged."""
        return is_above(self.copy.damaged_offset, self.span.start_offset)

    @cached_property
    def is_disputed(self) -> bool:
        """Whether copies have different batches below their high watermarks, and the judged copy is not known to be the
        leader's."""
        return Alarm.COPIES_DISAGREE in self.place.alarms and self.copy.role != Role.LEADER

    @cached_property
    def is_start_committed(self) -> bool | None:
        """Whether the start is below a high watermark; None if none is known."""
        mark = highest((self.copy.high_watermark, self.copy.noted_high_watermark))
        return None if mark is None else self.span.start_offset < mark

    @cached_property
    def crc(self) -> Crc:
        checks = self.span.checks
        if any(check.is_crc_valid is False for check in checks):
            return Crc.INVALID
        return Crc.VALID if checks and all(check.is_crc_valid for check in checks) else Crc.NOT_CHECKED

    # ---- Other copies and partitions

    @property
    def has_ended(self) -> bool:
        """Whether another copy has a marker of the producer above the end of the judged copy, so that the transaction
        has ended."""
        end = self.copy.end_offset or 0
        return any(each.offset >= end and not each.is_truncated for each in self.span.markers_elsewhere)

    @cached_property
    def truncated_markers(self) -> tuple[str, ...]:
        """The markers of the producer in truncated parts of other copies: `COMMIT marker at offset 7 of broker 2`."""
        return _named([each for each in self.span.markers_elsewhere if each.is_truncated])

    @cached_property
    def ended_elsewhere(self) -> tuple[str, ...]:
        """The markers of the producer after the first batch that only other copies have, in words as in
        `truncated_markers`."""
        others = [each for each in self.span.markers_elsewhere if not each.is_truncated]
        return _named([each for each in others if not each.is_cleaned])

    @cached_property
    def cleaned_markers(self) -> tuple[str, ...]:
        """The markers after the first batch of which the log cleaner left only the header, in any copy; in words."""
        others = [each for each in self.span.markers_elsewhere if not each.is_truncated]
        return _named([each for each in others if each.is_cleaned])

    @property
    def is_continued_elsewhere(self) -> bool:
        """Whether another copy has more of the transaction, above the end of the judged copy."""
        return is_above(self.span.last_elsewhere_offset, (self.copy.end_offset or 0) - 1)

    @cached_property
    def truncated_from(self) -> int | None:
        """The first offset that a newer leader truncated, in any copy; None if none was."""
        return lowest(each.truncated_from for each in self.place.captured)

    @cached_property
    def truncated_until(self) -> int | None:
        """The last offset that a newer leader truncated, in any copy; None if none was."""
        cut = [each.end_offset for each in self.place.captured if each.truncated_from is not None]
        return highest(end - 1 for end in cut if end is not None)

    @cached_property
    def newest_marker_ms(self) -> int | None:
        """The time of the newest marker of the producer, on any partition, that no known decision explains."""
        return highest(each.newest_unexplained_ms for each in self.siblings)

    @cached_property
    def newest_commit(self) -> SiblingMarkers | None:
        """The partition with the newest COMMIT marker that no known decision explains; only a coordinator writes a
        COMMIT."""

        def written(markers: SiblingMarkers) -> int:
            ms = markers.newest_unexplained_commit_ms
            return -1 if ms is None else ms

        return max(self.siblings, key=written, default=None)

    @property
    def committed_siblings(self) -> tuple[str, ...]:
        """Names of the other partitions with a COMMIT marker since the open records may have begun."""
        before = newest_ms(each.before_ms for each in self.span.stamps)
        since = None if before is None else before - UNKNOWN_CLOCKS_DIFFER_MS
        return tuple(
            sorted(
                f"{each.topic}-{each.partition}"
                for each in self.siblings
                if each.is_committed and (since is None or each.committed_ms is None or each.committed_ms >= since)
            )
        )

    # ---- When it began, and when it was last written to

    @cached_property
    def clocks_differ_ms(self) -> int:
        """How far the clocks of the partition and of the coordinator may differ today."""
        today = self.clocks.difference(self.claim.coordinator_partition, None, None)
        return max(CLOCKS_DIFFER_MS, today.differ_ms) if self.marked else CLOCKS_DIFFER_MS

    @cached_property
    def first_timestamp_ms(self) -> int | None:
        """The time of the first batch, in epoch ms. None if a broker's clock stamped it, and the stamps around it
        contradict that."""
        begun = self.span.last_timestamp_ms if self.span.first_timestamp_ms is None else self.span.first_timestamp_ms
        if not self.span.is_broker_clock or begun is None:
            return begun
        epoch, place = self.first_leader_epoch, (self.span.topic, self.span.partition)
        off = self.clocks.ahead_ms(epoch, self.compared_clocks) - self.moved_ms(*place, epoch)
        return written_by_ms([begun - off], self.stamped_before_ms)

    @cached_property
    def made_ms(self) -> int | None:
        """The newest time at which its producer id, its epoch, or the leader epoch of its first batch was handed out;
        None if none is known. The transaction is younger."""
        block, led = self.block, self.first_leader_epoch
        return highest(
            (
                clock_ms(self.claim.created_ms) if self.claim.is_first_assigned else None,
                self.span.epoch_since_ms,
                block.allocated_at_ms if block is not None else None,
                *(each.at_ms for each in self.elections if led == each.leader_epoch),
            )
        )

    @cached_property
    def block(self) -> ProducerIdBlock | None:
        """The newest block of producer ids that contains the producer id."""
        wanted, blocks = self.dossier.producer_id, reversed(self.facts.blocks)
        return next((each for each in blocks if each.first_producer_id <= wanted <= each.last_producer_id), None)

    @cached_property
    def begun_after_ms(self) -> int | None:
        """An instant that is before the first batch even if one of the clocks around it is wrong; None if unknown."""
        before = self.stamped_before_ms
        return None if before is None else lowest((before, *(each.behind_ms for each in self.stamps)))

    @cached_property
    def hides_stamps(self) -> bool:
        """Whether stamps before the first batch are unknown, because a snapshot replaces that part of the log."""
        return is_above(self.copy.read_from_offset, self.copy.log_start_offset or 0) and self.stamped_before_ms is None

    @cached_property
    def checkpointed_ms(self) -> int | None:
        """The instant of a high watermark checkpoint that was already above the start; None if it was not."""
        return self._checkpointed_ms(self.span.start_offset)

    def _checkpointed_ms(self, offset: int) -> int | None:
        return self.copy.checkpointed_at_ms if is_above(self.copy.high_watermark, offset) else None

    @cached_property
    def seen_open_ms(self) -> int | None:
        """The instant of the oldest copy in which an earlier audit certainly saw it open; None if none did."""
        seen = [e.copied_ms for e in self.span.earlier if is_same_transaction(e, self.copy, self.first_batch_crc)]
        return written_by_ms(seen, self.stamped_before_ms)

    @cached_property
    def last_offset(self) -> int:
        return self.span.start_offset if self.span.last_offset is None else self.span.last_offset

    @cached_property
    def is_written_again(self) -> bool:
        """Whether there is more than one batch, so that the last write is not the first."""
        return self.last_offset > self.span.start_offset

    @cached_property
    def written_after_ms(self) -> int | None:
        """The newest broker-stamped time before the end of the last batch."""
        return newest_ms(each.before_last_ms for each in self.stamps)

    @cached_property
    def written_before_ms(self) -> int | None:
        """The latest time of the last batch, by the stamps behind it."""
        floor = newest_ms([self.written_after_ms, self.stamped_before_ms])
        return written_by_ms((each.behind_last_ms for each in self.stamps), floor)

    @cached_property
    def written_checkpointed_ms(self) -> int | None:
        """The instant of a high watermark checkpoint that was already above the last batch; None if it was not."""
        return self._checkpointed_ms(self.last_offset)

    @cached_property
    def is_written_after_coordinator(self) -> bool:
        """Whether a time of the last write is after the coordinator's copy, by brokers' clocks or by the producer's
        own.

        A time after the partition's own copy, or after a broker's stamp behind it, is a client's invention.
        """
        earliest = self.coordinators.earliest_captured_at_ms
        copied = self.coordinators_known_until_ms if earliest is None else earliest
        claimed = lowest((self.span.last_timestamp_ms, self.written_before_ms))
        written, captured = newest_ms([self.written_after_ms, claimed]), self.captured_by_ms
        if written is None or copied is None or captured is None or captured <= copied:
            return False
        return copied + CLOCKS_DIFFER_MS < written <= captured + UNKNOWN_CLOCKS_DIFFER_MS

    # ---- The coordinator

    @cached_property
    def is_listed(self) -> bool:
        """Whether the last record of its id lists the partition."""
        return lists(self.claim.partitions, self.span)

    @cached_property
    def coordinator_copy(self) -> CoverageRow:
        """The best copy of its coordinator's log; for a producer id without an owner, that of the worst coordinator."""
        best = self.facts.worst_coordinator if self.claim.is_nobodys else self.coordinator.best
        return CoverageRow() if best is None else best

    @cached_property
    def is_coordinator_current(self) -> bool:
        """Whether the coordinator's log is known up to the instant at which it was copied."""
        return is_current(self.coordinator_copy.role, self.coordinator_copy.ends)

    @cached_property
    def coordinators_known_until_ms(self) -> int | None:
        """The instant up to which its coordinator's log is known; for a producer id without an owner, up to which the
        logs of all coordinators are."""
        known = self.facts.coordinators_known_until_ms
        return known if self.claim.is_nobodys else self.coordinator.known_until_ms

    @cached_property
    def coordinator_leader(self) -> str | None:
        """The leader of its coordinator partition, from which to copy that; for a producer id without an owner, the
        leaders of all coordinator partitions that are missing. None if not known."""
        of_missing = self.facts.leaders_of_missing if self.claim.is_nobodys else ()
        return ", ".join(of_missing) or self.coordinator_copy.led_by

    @cached_property
    def coordinators(self) -> Coordinators:
        """The captured coordinator partitions of the ids that have or had the producer id; without an owner, all."""
        if self.claim.is_nobodys:
            return self.facts.all_coordinators
        return self.facts.coordinators_of({each.coordinator_partition for each in self.dossier.claims})

    @cached_property
    def is_record_committed(self) -> bool:
        """Whether the last record is below the high watermark of the best copy, as far as both are known."""
        last, mark = self.claim.record_offset, self.coordinator_copy.high_watermark
        return last is None or mark is None or last < mark

    @cached_property
    def compacted_ms(self) -> int | None:
        """The newest time at which a missing record of the coordinator's log may have been written; None if no record
        is missing."""
        holes = highest(each.hole_ms for each in self.facts.coordinators)
        return holes if self.claim.is_nobodys else self.claim.hole_ms

    @cached_property
    def led_at_copies(self) -> int | None:
        """The newest leader epoch of the judged copy, for later audits; None if that epoch may have begun after the
        coordinators were copied."""
        newest = newest_leader_epoch((self.copy,), ())
        coordinators, partition = self.coordinators.earliest_captured_at_ms, self.captured_by_ms
        if coordinators is None or partition is None:
            return None
        led = [each.behind_ms for each in self.stamps if each.leader_epoch == newest]
        has_begun = min((partition, *(ms for ms in led if ms is not None))) <= coordinators
        return newest if has_begun or newest == self.first_leader_epoch else None

    @cached_property
    def may_be_v2(self) -> bool:
        return not self.facts.is_v2_excluded(self.begun_after_ms)

    @cached_property
    def is_upgraded(self) -> bool:
        """Whether the client of the open records may have used transactions v1 before, at the same epoch: the level
        rose since. Kafka's own client raises its epoch then (`TransactionManager.maybeUpdateTransactionV2Enabled`,
        KAFKA-18227), but no broker demands that."""
        return self.facts.is_raised_since(self.begun_after_ms)

    @cached_property
    def pending_ids(self) -> tuple[str, ...]:
        """What the transactional ids of the producer id may still do, in words: `payments is Ongoing`."""
        return tuple(each.pending for each in self.dossier.claims if each.pending is not None)

    # ---- Decisions about the producer id

    @cached_property
    def decided(self) -> list[Marked]:
        """The decisions that list, or may list, the partition, and that may be about the open records, the oldest
        first."""
        return [each for each in self.marked if not began_later_by_epoch(each.of, self.span)]

    @cached_property
    def decision(self) -> Marked | None:
        """The newest decision in `decided`; None if there is none."""
        return self.decided[-1] if self.decided else None

    @cached_property
    def commit_due(self) -> Marked | None:
        """The newest COMMIT whose marker is not known to be here, after the newest decision whose marker is here; None
        if there is none."""
        last_marked = max((number for number, each in enumerate(self.decided) if each.is_marked), default=-1)
        later = reversed(self.decided[last_marked + 1 :])
        return next((each for each in later if each.of.outcome == "COMMIT" and not each.may_be_deleted), None)

    @cached_property
    def ended_ms(self) -> int | None:
        """The latest time at which a decided transaction that lists the partition can have ended, in epoch ms; None if
        there is none.

        By the coordinator's clock or by the clock of the partition's leader, whichever gives the later time, because
        one of them may be wrong. If the time of an end is unknown, it counts as late as its copy, unless its marker is
        here.
        """
        decisions = [each.of for each in self.marked]
        ended = highest(
            ms + max(self.clocks.today(each).offset_ms, 0)
            for each in decisions
            for ms in (each.prepared_ms, each.completed_ms)
            if ms is not None
        )
        is_untimed = any(
            each.completed_ms is None and (each.state in _COMPLETE or each.prepared_ms is None) for each in decisions
        )
        last_prepared = highest(each.prepared_ms for each in decisions)
        marked = clock_ms(self.span.marker.ms) if self.span.marker else None
        if is_untimed and not (marked is not None and last_prepared is not None and marked >= last_prepared):
            captured = self.coordinator.newest_captured_at_ms
            return highest((ended, NO_INSTANT_MS if captured is None else captured))
        return ended


def _named(markers: Sequence[MarkerElsewhere]) -> tuple[str, ...]:
    return tuple(f"{each.type or 'a'} marker at offset {each.offset} of broker {each.broker}" for each in markers)
